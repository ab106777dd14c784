"""How a translation is looked for."""

from __future__ import annotations

from dataclasses import dataclass

from smalti.quantizers.settings import count, flag, number


@dataclass(frozen=True)
class Decoding:
    """The choices of decoding; each model heeds those that it can.

    Args:
        beam: How many hypotheses an autoregressive model follows; 1 is greedy.
        length_penalty: Log-probabilities of finished hypotheses are divided by their length to
            this power: 0 favours short ones, 1 compares means.
        max_ratio: The longest translation has ``max_ratio`` tokens for each of the source ...
        max_extra: ... and so many more.
        samples: How many translations a model with latents makes to choose from; the first is
            the likeliest, the others come from sampled codes.
        temperature: Of that sampling: below 1 closer to the likeliest.
        seed: Of that sampling.
        lengths: How many lengths a parallel model writes and chooses from.
        clean_repeats: Whether a token that repeats the one before it is left out.
        half: Whether what is computed for a whole sentence at once is rounded to bfloat16 where
            the processor is quicker with it; token by token, all is float32.
        cached: Whether steps build on what was computed for earlier ones. The result is the
            same; without, it takes longer.
    """

    beam: int = 1
    length_penalty: float = 1.0
    max_ratio: float = 2.0
    max_extra: int = 10
    samples: int = 1
    temperature: float = 1.0
    seed: int = 0
    lengths: int = 1
    clean_repeats: bool = False
    half: bool = True
    cached: bool = True

    def __post_init__(self) -> None:
        for name in ("beam", "samples", "lengths"):
            count(name, getattr(self, name))
        count("max_extra", self.max_extra)
        count("seed", self.seed, least=0)
        number("length_penalty", self.length_penalty, least=0)
        number("max_ratio", self.max_ratio, least=0)
        number("temperature", self.temperature, above=0)
        flag("clean_repeats", self.clean_repeats)
        flag("half", self.half)
        flag("cached", self.cached)

    def longest(self, source_length: int) -> int:
        """How many tokens a translation of so many has at most."""
        return int(self.max_ratio * source_length) + self.max_extra
