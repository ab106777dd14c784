"""The autoregressive prior: a causal transformer predicts each code from those before it.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, sections 3.2 (labels that are averages of sampled
    codes) and 5.2 (the latent predictor). Conditioning on levels: Razavi, van den Oord,
    Vinyals, "Generating Diverse High-Fidelity Images with VQ-VAE-2", NeurIPS 2019,
    arXiv:1906.00446, section 3.2.

Differs from the paper:
    Codebooks have vectors of their own, not shared ones, and may differ in size. Rows, columns
    and codebooks are marked by learned vectors. A place is conditioned on the codes above it
    by adding their vectors, not by attention. Earlier codes are fed as codes also where labels
    are averages; the published code feeds averaged vectors there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.attention import CausalTransformer
from smalti.priors.base import Prior, priors
from smalti.priors.exact_walk import ExactWalk
from smalti.priors.level import Level
from smalti.priors.sampling import uniforms, walk
from smalti.priors.stepper import Stepper
from smalti.priors.walks import CachedWalk, RepeatedWalk
from smalti.quantizers.settings import count, number

# The spread of new vectors: several are added up, and their sum should be of size 1.
SPREAD = 0.5


@priors.register("autoregressive")
class Autoregressive(Prior):
    """Each code given all codes before it, row by row, the codebooks of a place one by one.

    Args:
        level: Grid and code sizes of the codes.
        above: The levels that are known before, top first. A place sees the codes that lie
            over it.
        dim: Width of the transformer.
        depth: Its layers.
        heads: Views that its attention takes; must divide ``dim``.
        ratio: How many times wider its hidden dense layers are.
        dropout: Share of each part's output that is dropped in training.
        window: How many of the latest codes a code is predicted from; None for all. Time and
            memory then grow with the number of codes, not with its square.

    Example:
        >>> prior = Autoregressive(level=((4, 4), (16, 8)), dim=32, depth=1)
        >>> codes = prior.sample(3)
        >>> codes.shape, prior.nats(codes).shape
        (torch.Size([3, 4, 4, 2]), torch.Size([3]))
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 16, "depth": 2, "heads": 2}

    def __init__(
        self,
        level: Level | Sequence[Any],
        above: Sequence[Any] = (),
        *,
        dim: int = 128,
        depth: int = 6,
        heads: int = 4,
        ratio: int = 4,
        dropout: float = 0.0,
        window: int | None = None,
    ) -> None:
        super().__init__(level, above)
        self.dim, self.depth = count("dim", dim), count("depth", depth)
        self.heads, self.ratio = count("heads", heads), count("ratio", ratio)
        self.dropout = number("dropout", dropout, least=0, below=1)
        self.window = None if window is None else count("window", window)
        height, width = self.level.grid
        self.start = nn.Parameter(torch.empty(1, dim))
        self.codes = nn.Embedding(sum(self.level.code_sizes), dim)
        self.rows = nn.Embedding(height, dim)
        self.columns = nn.Embedding(width, dim)
        self.books = nn.Embedding(self.level.num_codebooks, dim)
        self.codes_above = nn.ModuleList(
            nn.Embedding(sum(item.code_sizes), dim) for item in self.above
        )
        self.transformer = CausalTransformer(
            dim, depth, heads, ratio=ratio, dropout=self.dropout, window=self.window
        )
        self.head = nn.Linear(dim, sum(self.level.code_sizes))
        vectors = [module.weight for module in self.modules() if isinstance(module, nn.Embedding)]
        for vector in (self.start, *vectors):
            nn.init.normal_(vector, std=SPREAD)
        # It begins close to the uniform prior.
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def logits(self, codes: Tensor, above: Sequence[Tensor] = ()) -> tuple[Tensor, ...]:
        """For each codebook the logits ``(batch, height, width, size)`` of its codes."""
        return self._logits(*self._checked(codes, above))

    def places(self, above: tuple[Tensor, ...]) -> Tensor:
        """What is known of each place before any code, ``(batch or 1, codes, dim)``."""
        marks = self.columns.weight[:, None] + self.books.weight
        found = (self.rows.weight[:, None, None] + marks)[None]
        for vectors, level, codes in zip(self.codes_above, self.above, above, strict=True):
            begin = torch.tensor(level.offsets, device=codes.device)
            over = _spread(vectors(codes + begin).sum(dim=3), self.level.grid)
            found = found + over[:, :, :, None]
        return found.flatten(1, 3)

    def vectors(self, codes: Tensor, book: int) -> Tensor:
        """The vectors ``(n, dim)`` of a codebook's codes ``(n,)``."""
        found: Tensor = self.codes(codes + self.level.offsets[book])
        return found

    def scores(self, hidden: Tensor, book: int) -> Tensor:
        """The logits ``(..., size)`` of a codebook's codes from hidden ``(..., dim)``."""
        first, size = self.level.offsets[book], self.level.code_sizes[book]
        own = slice(first, first + size)
        return functional.linear(hidden, self.head.weight[own], self.head.bias[own])

    def _logits(self, codes: Tensor, above: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        begin = torch.tensor(self.level.offsets, device=codes.device)
        before = self.codes((codes + begin).flatten(1))[:, :-1]
        before = torch.cat([self.start.expand(len(codes), 1, -1), before], dim=1)
        hidden = self.transformer(before + self.places(above)).view(*codes.shape, self.dim)
        return tuple(
            self.scores(hidden[..., book, :], book) for book in range(self.level.num_codebooks)
        )

    def _nats(
        self,
        codes: Tensor,
        above: tuple[Tensor, ...],
        assignments: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        found = []
        for book, logits in enumerate(self._logits(codes, above)):
            logs = logits.to(dtype).log_softmax(dim=-1)
            if assignments is None:
                found.append(-logs.gather(-1, codes[..., book, None])[..., 0])
            else:
                labels = assignments[..., book, : logs.shape[-1]]
                found.append(-(labels * logs).sum(dim=-1))
        return torch.stack(found, dim=-1)

    def _sample(
        self,
        count: int,
        above: tuple[Tensor, ...],
        generator: torch.Generator | None,
        temperature: float,
        cached: bool,
    ) -> Tensor:
        chances = uniforms((self.level.num_codes, count), generator, self.here)
        way = CachedWalk if cached else RepeatedWalk
        return walk(way(self, count, above), chances, temperature)

    def _stepper(self, count: int, above: tuple[Tensor, ...]) -> Stepper:
        return ExactWalk(self, count, above)


def _spread(x: Tensor, grid: tuple[int, int]) -> Tensor:
    """Vectors ``(batch, height, width, dim)`` on another grid: each place takes what is over it."""
    rows = torch.arange(grid[0], device=x.device) * x.shape[1] // grid[0]
    columns = torch.arange(grid[1], device=x.device) * x.shape[2] // grid[1]
    return x[:, rows][:, :, columns]
