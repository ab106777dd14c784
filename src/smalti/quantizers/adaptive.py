"""Adaptive dynamic quantization: each location picks one codebook of a pool.

Reference:
    Chen, Reddy, Chen, Liu, "Balance of Number of Embedding and their Dimensions in Vector
    Quantization", NeurIPS 2024, arXiv:2407.04939, section 3 (two-head attention over learned
    keys, Gumbel-softmax, pool of codebooks of equal capacity).

Differs from the paper:
    Selection is per location, as its text says; its code selects slabs of channels
    (``selection="slab"``), so that every location is told all words. Scores before the softmax
    are the logits of the draw; its code passes probabilities, which keep the choice nearly
    uniform whatever is learned. The temperature falls from 2 to 0.5; the published one
    (``schedule="paper"``) is so high that the selector hardly learns. Evaluation takes the best
    codebook instead of a draw. The rate is measured and reported. A selector that knows nothing
    (``selector="random"``) shows what choosing is worth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.errors import DataError, require
from smalti.quantizers.annealing import Annealing
from smalti.quantizers.base import Quantized, Quantizer, quantizers
from smalti.quantizers.settings import count, number, word
from smalti.quantizers.vector import VectorQuantizer

PAPER_POOL = tuple((2 ** (9 + i), 2 ** (7 - i)) for i in range(8))
HEADS = 2


@quantizers.register("adaptive")
class Adaptive(Quantizer):
    """A pool of codebooks; codes are (selection, word).

    Args:
        dim: Width of the vectors, in and out; even, for two heads.
        pool: ``(codebook_size, width)`` of each codebook; N and D in the paper.
        alpha: How strongly an encoder is held to the codewords it chose.
        beta: Weight of all codebooks' losses together.
        decay: Of the moving averages.
        learning: Of the codebooks: ``"ema"``, moving averages, or ``"gradient"``.
        update: Whether ``"all"`` codebooks learn from each vector (as published) or only
            the ``"selected"`` one.
        selection: ``"location"``, or ``"slab"`` for the study of the published code: inputs
            are then ``(batch, ..., dim)`` and codes (selection, a word of every codebook).
        selector: ``"attention"``, which learns, or ``"random"``, a control: every codebook is as
            likely, whatever the vector says.
        schedule: ``"exponential"`` from ``temperature`` to ``final_temperature``, or ``"paper"``.
        temperature: Of the Gumbel-softmax at the first step.
        final_temperature: After ``anneal_steps``.
        anneal_steps: Training steps of the schedule.

    ``bits_per_vector`` is an upper bound; the measured rate is in the metrics.

    Metrics: distortion (mean over the pool, in each codebook's own width), rate_bits (entropy
    of the selection plus the mean length of the selected words, of this batch),
    selection_entropy_bits, temperature, revived, and share/0, share/1, ... of each codebook.
    """

    example: ClassVar[Mapping[str, Any]] = {"dim": 8, "pool": ((8, 4), (16, 2), (32, 1))}
    word_bits: Tensor

    def __init__(
        self,
        dim: int,
        pool: Sequence[Sequence[int]] = PAPER_POOL,
        *,
        alpha: float = 0.25,
        beta: float = 1.0,
        decay: float = 0.99,
        learning: str = "ema",
        update: str = "all",
        selection: str = "location",
        selector: str = "attention",
        schedule: str = "exponential",
        temperature: float = 2.0,
        final_temperature: float = 0.5,
        anneal_steps: int = 20_000,
    ) -> None:
        require(
            isinstance(pool, Sequence)
            and len(pool) >= 2
            and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pool),
            f"expected a pool of at least two (codebook_size, width) pairs, got {pool!r}",
        )
        pool = tuple((count("codebook_size", n, least=2), count("width", d)) for n, d in pool)
        require(count("dim", dim) % HEADS == 0, f"dim must be even, for two heads, got {dim!r}")
        update = word("update", update, ("all", "selected"))
        selection = word("selection", selection, ("location", "slab"))
        selector = word("selector", selector, ("attention", "random"))
        require(
            update == "all" or selection == "location",
            "update='selected' needs selection='location': a slab lies across all locations",
        )
        sizes = [size for size, _ in pool]
        slab = selection == "slab"
        super().__init__(dim, (len(pool), *(sizes if slab else [max(sizes)])))
        self.learns_from_vectors = True
        self.pool = pool
        self.alpha = number("alpha", alpha, least=0)
        self.beta = number("beta", beta, least=0)
        self.decay = number("decay", decay, least=0, below=1)
        self.learning = word("learning", learning, ("ema", "gradient"))
        self.update, self.selection, self.schedule = update, selection, schedule
        self.selector = selector
        self.temperature, self.final_temperature = temperature, final_temperature
        self.anneal_steps = anneal_steps
        self.annealing = Annealing(temperature, final_temperature, anneal_steps, schedule)
        self.project_in = nn.ModuleList(nn.Linear(dim, width) for _, width in self.pool)
        self.project_out = nn.ModuleList(nn.Linear(width, dim) for _, width in self.pool)
        self.books = nn.ModuleList(
            VectorQuantizer(width, size, learning=learning, decay=decay, beta=alpha)
            for size, width in self.pool
        )
        if selector == "attention":
            self.keys = nn.Parameter(torch.randn(len(pool), dim))
            self.to_query = nn.Linear(dim, dim)
            self.to_key = nn.Linear(dim, dim)
        bits = torch.tensor([math.log2(size) for size in sizes])
        self.register_buffer("word_bits", bits, persistent=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Quantized:
        """Quantize vectors ``(..., dim)``; see :class:`Quantizer`."""
        checked = self.checked(x, mask)
        flat = checked.reshape(-1, self.dim)
        valid = None if mask is None else mask.reshape(-1)
        temperature = self.annealing.value()
        gates = self._gates(self._queries(checked), temperature)
        selected = gates.argmax(dim=-1)
        outs, words = [], []
        losses = []
        metrics: dict[str, list[Tensor]] = {"distortion": [], "revived": []}
        for index, book in enumerate(self._books()):
            seen = valid
            if self.update == "selected":
                chosen = selected == index
                seen = chosen if valid is None else chosen & valid
            # All positions are quantized, so that the gates learn what each codebook would
            # have given; only the seen ones count in its loss and its averages.
            out = book.quantize(self.project_in[index](flat).unsqueeze(0), seen)
            outs.append(self.project_out[index](out.vectors.squeeze(0)))
            words.append(out.codes.squeeze(0))
            losses.append(out.loss.sum())
            for name, values in metrics.items():
                values.append(out.metrics.get(name, flat.new_zeros(())))
        vectors = self._mix(gates, torch.stack(outs, dim=1), checked)
        if self.training:
            self.annealing.advance()
        return Quantized(
            vectors=vectors.view(x.shape).to(x.dtype),
            codes=self._codes(selected, torch.stack(words, dim=-1)).view(
                *x.shape[:-1], self.num_codebooks
            ),
            loss=self.beta * torch.stack(losses).mean(),
            metrics={
                "distortion": torch.stack(metrics["distortion"]).mean(),
                "revived": torch.stack(metrics["revived"]).sum(),
                "temperature": temperature,
                **self._rate(selected, valid),
            },
        )

    def encode(self, x: Tensor) -> Tensor:
        """The codes ``(..., 2)``: which codebook, which word (or a word of each, for slabs)."""
        checked = self.checked(x)
        flat = checked.reshape(-1, self.dim)
        selected = self._scores(self._queries(checked)).argmax(dim=-1)
        if self.selection == "slab" or torch.compiler.is_compiling():
            # A graph has fixed shapes: there every codebook is asked for every vector.
            codes = self._codes(selected, self._words_of_all(flat))
        else:
            codes = torch.stack([selected, self._selected_words(flat, selected)], dim=-1)
        return codes.view(*x.shape[:-1], self.num_codebooks)

    def decode(self, codes: Tensor) -> Tensor:
        """The vectors ``(..., dim)`` of codes; a word beyond its codebook is refused."""
        flat = self.checked_codes(codes).reshape(-1, self.num_codebooks)
        selected, words = flat[:, 0], flat[:, 1:]
        outs = []
        for index, (book, (size, _)) in enumerate(zip(self._books(), self.pool, strict=True)):
            if self.selection == "slab":
                code = words[:, index]
            else:
                # Words of other codebooks may be too large for this one; they are not used.
                code = torch.where(selected == index, words[:, 0], 0)
            if not torch.compiler.is_compiling() and bool((code >= size).any()):
                raise DataError(
                    f"expected words of codebook {index} in 0..{size - 1}, got {int(code.max())}"
                )
            outs.append(self.project_out[index](book.decode(code.clamp(max=size - 1)[:, None])))
        gates = functional.one_hot(selected, len(self.pool)).float()
        like = torch.empty((*codes.shape[:-1], self.dim), device="meta")
        return self._mix(gates, torch.stack(outs, dim=1), like).view(like.shape)

    def _words_of_all(self, x: Tensor) -> Tensor:
        """The nearest word ``(n, pool)`` of every codebook."""
        asked = zip(self._books(), self.project_in, strict=True)
        return torch.cat([book.encode(project(x)) for book, project in asked], dim=-1)

    def _selected_words(self, x: Tensor, selected: Tensor) -> Tensor:
        """The nearest word ``(n,)`` of the selected codebook: the others are not searched."""
        words = torch.zeros_like(selected)
        for index, (book, project) in enumerate(zip(self._books(), self.project_in, strict=True)):
            places = torch.nonzero(selected == index).flatten()
            # Rows are projected all together, as in training: fewer might round otherwise.
            words[places] = book.encode(project(x)[places]).squeeze(-1)
        return words

    def _start(self, x: Tensor) -> None:
        for book, project in zip(self._books(), self.project_in, strict=True):
            book.start_from(project(x).detach())

    def _books(self) -> list[VectorQuantizer]:
        return [book for book in self.books if isinstance(book, VectorQuantizer)]

    def _scores(self, queries: Tensor) -> Tensor:
        """Attention scores ``(n, pool)`` before the softmax, averaged over the heads."""
        if self.selector == "random":
            return self._random_scores(queries)
        # The mean over heads of scaled products is one product, divided once more.
        scale = HEADS * math.sqrt(self.dim / HEADS)
        scores: Tensor = self.to_query(queries) @ self.to_key(self.keys).t() / scale
        return scores

    def _random_scores(self, queries: Tensor) -> Tensor:
        """One codebook for each vector, from digits far behind the point.

        So the same vector always has the same codes, as evaluation demands.
        """
        places = torch.arange(1, self.dim + 1, device=queries.device, dtype=queries.dtype)
        # Products and a sum of each row alone: a matrix product may round otherwise in a
        # batch of another size, and these digits would show it.
        share = ((queries.detach() * places.cos()).sum(dim=-1) * 1e3).frac().abs()
        chosen = (share * len(self.pool)).long().clamp(max=len(self.pool) - 1)
        return functional.one_hot(chosen, len(self.pool)).to(queries.dtype)

    def _gates(self, queries: Tensor, temperature: Tensor) -> Tensor:
        """One-hot going forward; going back, the softmax of noisy scores."""
        scores = self._scores(queries)
        if self.training:
            uniform = torch.rand_like(scores).clamp_(1e-6, 1 - 1e-6)
            noise = -(-uniform.log()).log()
            scores = noise if self.selector == "random" else scores + noise
        shares = functional.softmax(scores / temperature, dim=-1)
        hard = functional.one_hot(scores.argmax(dim=-1), len(self.pool)).to(shares.dtype)
        return hard + (shares - shares.detach())

    def _queries(self, x: Tensor) -> Tensor:
        """What selects: each location, or each slab of ``dim`` numbers with channels first."""
        return self._to_slabs(x) if self.selection == "slab" else x.reshape(-1, self.dim)

    def _to_slabs(self, x: Tensor) -> Tensor:
        return x.movedim(-1, min(1, x.dim() - 1)).reshape(-1, self.dim)

    def _mix(self, gates: Tensor, outs: Tensor, like: Tensor) -> Tensor:
        """The selected output ``(n, dim)`` of ``(n, pool, dim)``, at each location or slab."""
        if self.selection == "location":
            return (gates.unsqueeze(-1) * outs).sum(dim=1)
        slabs = [self._to_slabs(out.reshape(like.shape)) for out in outs.unbind(dim=1)]
        mixed = (gates.unsqueeze(-1) * torch.stack(slabs, dim=1)).sum(dim=1)
        first = torch.empty(like.shape, device="meta").movedim(-1, min(1, like.dim() - 1))
        back = mixed.view(first.shape).movedim(min(1, like.dim() - 1), -1)
        return back.reshape(-1, self.dim)

    def _codes(self, selected: Tensor, words: Tensor) -> Tensor:
        if self.selection == "slab":
            return torch.cat([selected[:, None], words], dim=-1)
        return torch.stack([selected, words.gather(1, selected[:, None])[:, 0]], dim=-1)

    @torch.no_grad()
    def _rate(self, selected: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
        weights = functional.one_hot(selected, len(self.pool)).float()
        if mask is not None:
            weights = weights * mask[:, None]
        shares = weights.sum(dim=0) / weights.sum().clamp(min=1)
        entropy = torch.special.entr(shares).sum() / math.log(2)
        words = self.word_bits.sum() if self.selection == "slab" else shares @ self.word_bits
        metrics = {"rate_bits": entropy + words, "selection_entropy_bits": entropy}
        return metrics | {f"share/{index}": share for index, share in enumerate(shares)}
