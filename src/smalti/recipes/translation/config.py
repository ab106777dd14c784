"""The settings of a translation model: texts, model, tables, training, decoding."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from smalti.training import Settings, TrainingSettings


class TextSettings(Settings):
    """The texts to train with. A file is a path, or a name under the folder of data sets.

    Args:
        source: Sentences, one a line.
        target: Their translations, one a line.
        distilled: What another model made of the source (``smalti distill``); it is learned in
            the place of the target, which still serves to learn the vocabulary.
        more_source: Further sentences to learn from, of which nobody knows a translation:
            sentences of one language, or those that ``smalti splice`` makes.
        more_distilled: What another model made of them.
        valid_source: Held-out sentences.
        valid_target: Their translations.
        valid_share: Without such files, the share of the pairs that is held out.
        split_seed: Which pairs are held out; the same for all seeds of training.
        vocabulary: How many parts of words both languages have together.
        longest: Pairs with more tokens on a side are left out of training.
    """

    # Where texts lie: what is trained depends on their content alone.
    files: ClassVar[frozenset[str]] = frozenset(
        {
            *("source", "target", "distilled", "more_source", "more_distilled"),
            *("valid_source", "valid_target"),
        }
    )

    source: str
    target: str
    distilled: str | None = None
    more_source: str | None = None
    more_distilled: str | None = None
    valid_source: str | None = None
    valid_target: str | None = None
    valid_share: float = Field(default=0.02, gt=0, lt=1)
    split_seed: int = Field(default=0, ge=0, lt=2**63)
    vocabulary: PositiveInt = 6000
    longest: PositiveInt = 256

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        for one, other in (("valid_source", "valid_target"), ("more_source", "more_distilled")):
            if (getattr(self, one) is None) != (getattr(self, other) is None):
                raise ValueError(f"give both {one} and {other}, or neither")
        return self


class DecodingSettings(Settings):
    """How the trained model looks for translations, unless told otherwise.

    Args:
        beam: Hypotheses of an autoregressive model.
        length_penalties: Those that are tried on the held-out sentences; the best one is kept
            with the model. A single one is kept as it is.
    """

    beam: PositiveInt = 4
    length_penalties: tuple[float, ...] = Field(
        default=(0.0, 0.5, 1.0, 1.5, 2.0, 2.5), min_length=1
    )


class TranslationConfig(Settings):
    """A translation model.

    Args:
        kind: Says that it is one.
        data: The texts.
        model: The spec of the translator, without what the texts say: the vocabulary.
        embedding: The compressor of its tables of word vectors, or compressors by use (source,
            target, output) of a model whose tables are not tied; None for full tables. One
            that can't learn from nothing is fitted to the table of the model to start from.
        start_from: The directory of a trained model whose vocabulary is used and whose weights
            are taken over where the two models have the same parts.
        training: How it is trained; ``batch_size`` counts tokens of a side, padding included.
        frozen_codes_share: Of a latent model: the share of the steps, at the end, in which the
            codes of a sentence stay what they are, for the predictor to catch up.
        averaged_share: The share of the steps, at the end, whose weights are averaged.
        judged_sentences: On how many held-out sentences evaluations translate.
        decoding: How it translates.

    Example:
        >>> TranslationConfig(
        ...     kind="translation",
        ...     data={"source": "a.en", "traget": "a.de"},
        ...     model={"translator": "autoregressive"},
        ...     training={"steps": 5},
        ... )
        Traceback (most recent call last):
        smalti.errors.ConfigError: the setting data.target is missing; there is no setting \
data.traget; did you mean data.target?
    """

    kind: Literal["translation"]
    data: TextSettings
    model: dict[str, Any]
    embedding: dict[str, Any] | str | None = None
    start_from: str | None = None
    training: TrainingSettings
    frozen_codes_share: float = Field(default=0.0, ge=0, lt=1)
    averaged_share: float = Field(default=0.0, ge=0, lt=1)
    judged_sentences: PositiveInt = 500
    decoding: DecodingSettings = DecodingSettings()

    def with_seed(self, seed: int) -> Self:
        """The same, with another seed of everything that is trained."""
        content = self.model_dump()
        content["training"]["seed"] = seed
        return type(self)(**content)
