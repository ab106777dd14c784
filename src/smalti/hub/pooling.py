"""Texts become sentence vectors: a transformer's last hidden states, pooled and normalised."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from smalti.errors import ConfigError, DataError
from smalti.hub.batching import Batches, batches, limit_of
from smalti.hub.library import Model, quiet, transformers_library
from smalti.hub.outputs import last_hidden
from smalti.quantizers.settings import word

# The names that sentence-transformers has for ways of pooling, before version 6 and since.
NAMES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


def _max(hidden: Tensor, mask: Tensor) -> Tensor:
    return hidden.masked_fill(mask == 0, float("-inf")).amax(dim=1)


def _cls(hidden: Tensor, mask: Tensor) -> Tensor:
    del mask
    return hidden[:, 0]


POOLING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mean": _mean, "cls": _cls, "max": _max}


@dataclass(frozen=True)
class SentenceSettings:
    """How a model makes sentence vectors.

    Args:
        pooling: ``"mean"``, ``"cls"`` or ``"max"``.
        limit: Longer texts are cut to so many tokens; None for the model's own limit.
        left_out: Further modules that sentence-transformers would apply and smalti does not.
    """

    pooling: str = "mean"
    limit: int | None = None
    left_out: tuple[str, ...] = ()


def sentence_settings(place: str | Path | None) -> SentenceSettings:
    """What the files of sentence-transformers beside a model say; the mean where there are none.

    Args:
        place: A directory, or the name of a model on the Hub.

    Raises:
        ConfigError: They ask for a way of pooling that smalti does not have.
    """
    if place is None or Path(place).is_file():
        return SentenceSettings()
    config: dict[str, Any] = _read(place, "1_Pooling/config.json") or {}
    modes = config.get("pooling_mode") or [mode for key, mode in NAMES.items() if config.get(key)]
    modes = [modes] if isinstance(modes, str) else list(modes) or ["mean"]
    if len(modes) > 1 or modes[0] not in POOLING:
        raise ConfigError(
            f"the sentence vectors of {place} are pooled by {' and '.join(modes)}; "
            f"smalti has: {', '.join(POOLING)}"
        )
    limit = (_read(place, "sentence_bert_config.json") or {}).get("max_seq_length")
    kinds = [module["type"].rpartition(".")[2] for module in _read(place, "modules.json") or ()]
    others = [kind for kind in kinds if kind not in {"Transformer", "Pooling", "Normalize"}]
    return SentenceSettings(modes[0], limit, tuple(others))


def encode(
    model: Model,
    tokenizer: Any,
    texts: Sequence[str],
    batch_size: int = 64,
    pooling: str = "mean",
    progress: bool | None = None,
    *,
    limit: int | None = None,
) -> Tensor:
    """Sentence vectors ``(texts, dim)`` of length 1, as float32 on the CPU.

    To encode the same texts with many models, call :func:`batches` once and
    :func:`encode_batches` for each.

    Args:
        model: A transformer; a head for some task is not used.
        tokenizer: Its tokenizer.
        texts: In any order.
        batch_size: Texts of a batch.
        pooling: ``"mean"``, ``"cls"`` or ``"max"`` of a text's tokens.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
        limit: Longer texts are cut to so many tokens; by default the model's own limit.
    """
    limit = min(filter(None, (limit, limit_of(model, tokenizer))), default=None)
    made = batches(tokenizer, texts, batch_size=batch_size, limit=limit)
    return encode_batches(model, made, pooling, progress)


@torch.inference_mode()
def encode_batches(
    model: Model, made: Batches, pooling: str = "mean", progress: bool | None = None
) -> Tensor:
    """As :func:`encode`, for texts that are tokenized already."""
    pool = POOLING[word("pooling", pooling, list(POOLING))]
    rows = []
    for inputs in made.watched("encoding", progress):
        hidden = last_hidden(model, inputs).float()
        mask = inputs["attention_mask"].to(hidden)[..., None]
        rows.append(functional.normalize(pool(hidden, mask), dim=-1).cpu())
    return made.restored(rows)


def _read(place: str | Path, name: str) -> Any:
    """A JSON file of a directory or of a model on the Hub; None if there is none."""
    try:
        with quiet():
            file = transformers_library().utils.cached_file(str(place), name)
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError:
        return None
    except ValueError as error:
        raise DataError(f"can't read {name} of {place}: {error}") from error
