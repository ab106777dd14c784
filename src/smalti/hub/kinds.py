"""Which class of transformers opens a model, and what the model is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smalti.errors import ConfigError
from smalti.hub.library import transformers_library

# For each kind: transformers' list of its classes, and the class that opens it. In this
# order, because some classes stand in several lists.
KINDS = {
    "classifier": (
        "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
        "AutoModelForSequenceClassification",
    ),
    "seq2seq": ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "AutoModelForSeq2SeqLM"),
    "causal": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "AutoModelForCausalLM"),
    "masked": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "AutoModelForMaskedLM"),
    "encoder": ("MODEL_MAPPING_NAMES", "AutoModel"),
}


def kind_of(architectures: Sequence[str] | None) -> str:
    """What a model of that class is for; ``"encoder"`` where it is nothing else.

    Example:
        >>> kind_of(["GPT2LMHeadModel"])
        'causal'
    """
    lists = transformers_library().models.auto.modeling_auto
    for name in architectures or ():
        for kind, (members, _) in KINDS.items():
            for member in getattr(lists, members).values():
                if name == member or (isinstance(member, tuple) and name in member):
                    return kind
    return "encoder"


def class_for(architectures: Sequence[str] | None, kind: str | None = None) -> Any:
    """The class that opens a model whole, or as another kind."""
    library = transformers_library()
    if kind is not None:
        if kind not in KINDS:
            raise ConfigError(f"there is no kind {kind!r} of models; there are: {', '.join(KINDS)}")
        return getattr(library, KINDS[kind][1])
    # The very class that was saved, so that no part of the model is left behind.
    exact = getattr(library, architectures[0], None) if architectures else None
    return exact if exact is not None else library.AutoModel
