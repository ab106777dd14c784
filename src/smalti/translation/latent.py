"""A translator through latents: a few codes are predicted, then all tokens written at once.

Reference:
    Roy, Vaswani, Neelakantan, Parmar, "Theory and Experiments on Vector Quantized
    Autoencoders", 2018, arXiv:1805.11063, sections 3 and 5.1. Kaiser, Roy, Vaswani, Parmar,
    Bengio, Uszkoreit, Shazeer, "Fast Decoding in Sequence Models Using Discrete Latent
    Variables", ICML 2018, arXiv:1803.03382, section 2 (the architecture and its warm-ups).

Differs from the paper:
    How many latents there are is predicted with them, not twice the source's length; positions
    of latents are marked. Latents pass a dense layer and may be narrower than the model. What
    the decoder sees in the place of latents while it warms up are the tokens before (causal) or
    the tokens themselves (bidirectional). The decoder may be trained on predicted codes too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.layers.dropout import Dropout
from smalti.layers.modes import evaluating
from smalti.layers.positions import Sinusoids
from smalti.quantizers.base import Quantized, Quantizer
from smalti.quantizers.settings import count, flag, number, word
from smalti.translation.autoregressive import Autoregressive, shifted
from smalti.translation.base import Translator, translators
from smalti.translation.bottleneck import Bottleneck, fitting_quantizer
from smalti.translation.compressor import Compressor, Decompressor
from smalti.translation.decoding import Decoding
from smalti.translation.encoding import Encoded
from smalti.translation.ids import PAD
from smalti.translation.latent_search import Latents, predict
from smalti.translation.predictor import Predictor
from smalti.translation.rescoring import best_of
from smalti.translation.warm_start import start_from
from smalti.translation.writer import ParallelWriter, partly_known, read_off


@translators.register("latent")
class Latent(Translator):
    """Target tokens are compressed to a few codes, which are predicted from the source.

    Args:
        vocabulary: How many tokens there are.
        quantizer: The bottleneck: a registered name or a spec; ``dim`` is filled in.
        compressions: How often the target's length is halved, n_c in the paper.
        dim: Width of the vectors.
        latent_dim: Width of the latents; that of the vectors by default.
        depth: Layers that read the source.
        decoder_depth: Layers of the parallel decoder.
        predictor_depth: Layers of the latent predictor.
        heads: Views that attention takes; must divide ``dim``.
        ratio: How many times wider the hidden dense layers are.
        decoder: ``"causal"`` as published, or ``"bidirectional"``.
        compressor_attends: Whether the compressor sees the source; the paper finds it unstable.
        predictor_labels: ``"codes"``, or ``"assignments"``: all that soft EM sampled.
        predictor_weight: Weight of the predictor's loss.
        prior_regularises_encoder: Whether the predictor's loss reaches the compressor.
        gold_until: The share of training over which known tokens fade from the decoder's input.
        guesses: At the end of training, which share of the latents that the decoder sees are
            those that the predictor thinks likeliest; it grows once known tokens are gone.
        dropout: Share of each part's output that is dropped in training.
        label_smoothing: The share of a label that is spread over all tokens.
        tied: Whether source, target and output share one table.
        tables: Tables in the place of full ones, see ``WordTables``.

    Metrics of the loss: token_nats, latent_nats (a latent, all codebooks), end_nats,
    guessed_share (codes that the predictor finds likeliest), and those of the quantizer.

    Example:
        >>> bottleneck = {"quantizer": "vector", "codebook_size": 8}
        >>> model = Latent(100, quantizer=bottleneck, dim=32, compressions=2, heads=2)
        >>> source = torch.tensor([[7, 9, 4, 1], [8, 1, 0, 0]])
        >>> target = torch.tensor([[5, 6, 7, 8, 1], [6, 1, 0, 0, 0]])
        >>> latents = model.latents_of(source, target)
        >>> latents.codes.shape, latents.mask.tolist()
        (torch.Size([2, 2, 1]), [[True, True], [True, False]])
    """

    example: ClassVar[Mapping[str, Any]] = {
        "quantizer": {"quantizer": "vector", "codebook_size": 16},
        "compressions": 2,
        "dim": 32,
        "depth": 1,
        "decoder_depth": 1,
        "predictor_depth": 1,
        "heads": 2,
        "ratio": 2,
        "dropout": 0.0,
    }

    def __init__(
        self,
        vocabulary: int,
        *,
        quantizer: str | Mapping[str, Any] | Quantizer,
        compressions: int = 3,
        dim: int = 256,
        latent_dim: int | None = None,
        depth: int = 3,
        decoder_depth: int = 3,
        predictor_depth: int = 2,
        heads: int = 4,
        ratio: int = 4,
        decoder: str = "causal",
        compressor_attends: bool = False,
        predictor_labels: str = "codes",
        predictor_weight: float = 1.0,
        prior_regularises_encoder: bool = False,
        gold_until: float = 0.25,
        guesses: float = 0.0,
        dropout: float = 0.1,
        label_smoothing: float = 0.1,
        tied: bool = True,
        tables: Mapping[str, nn.Module] | None = None,
    ) -> None:
        shape = (vocabulary, dim, depth, decoder_depth, heads, ratio)
        super().__init__(*shape, dropout, label_smoothing, tied, tables)
        self.compressions = count("compressions", compressions)
        self.latent_dim = dim if latent_dim is None else count("latent_dim", latent_dim)
        self.predictor_depth = count("predictor_depth", predictor_depth)
        self.decoder = word("decoder", decoder, ("causal", "bidirectional"))
        self.compressor_attends = flag("compressor_attends", compressor_attends)
        self.predictor_labels = word("predictor_labels", predictor_labels, ("codes", "assignments"))
        self.predictor_weight = number("predictor_weight", predictor_weight, least=0)
        regularises = flag("prior_regularises_encoder", prior_regularises_encoder)
        self.prior_regularises_encoder = regularises
        self.gold_until = number("gold_until", gold_until, least=0, most=1)
        self.guesses = number("guesses", guesses, least=0, most=1)
        self.positions = Sinusoids(dim)
        self.drop = Dropout(self.dropout)
        self.bottleneck = Bottleneck(
            Compressor(dim, self.latent_dim, compressions, heads if compressor_attends else None),
            fitting_quantizer(quantizer, self.latent_dim),
            samples=predictor_labels == "assignments",
        )
        self.decompressor = Decompressor(dim, self.latent_dim, compressions)
        self.writer = ParallelWriter(
            dim, decoder_depth, heads, ratio, self.dropout, causal=decoder == "causal"
        )
        codes = (self.quantizer.code_sizes, self.stride)
        self.predictor = Predictor(
            dim, self.latent_dim, *codes, predictor_depth, heads, ratio, self.dropout
        )

    @property
    def quantizer(self) -> Quantizer:
        """The bottleneck's quantizer."""
        return self.bottleneck.quantizer

    @property
    def stride(self) -> int:
        """How many tokens a latent stands for."""
        return int(2**self.compressions)

    def start_from_teacher(self, teacher: Autoregressive) -> None:
        """Take over the tables, the encoder and the decoder's layers of a trained model.

        The decoder's layers start both who writes tokens and who predicts codes.
        """
        start_from(teacher, self.words, self.encoder, [self.writer.layers, self.predictor.layers])

    def freeze_codes(self) -> None:
        """From now on the codes of every sentence stay what they are; all else goes on learning.

        Vectors of target tokens stay too, because codes are made of them.
        """
        self.bottleneck.freeze()
        self.words.table("target").requires_grad_(False)

    @torch.no_grad()
    def latents_of(self, source: Tensor, target: Tensor) -> Latents:
        """The codes of targets; the source matters where the compressor attends to it."""
        self._check(source, target)
        with evaluating(self):
            return self._latents_of(self.encoder(self.words, source), target)

    def reconstruct(
        self,
        source: Tensor,
        target: Tensor,
        *,
        latents_of: Tensor | None = None,
        half: bool = True,
    ) -> list[list[int]]:
        """Translations from the latents of the targets themselves: an upper bound.

        Args:
            source: Sentences.
            target: Their translations.
            latents_of: Other targets, whose latents are used instead: a lower bound.
            half: As in ``Decoding``.
        """
        self._check(source, target)
        with torch.inference_mode(), evaluating(self):
            encoded = self.encoder.lean(self.words, source, half=half)
            given = target if latents_of is None else latents_of
            return self._write(encoded, self._latents_of(encoded, given), half)

    def _loss(
        self, source: Tensor, target: Tensor, progress: float
    ) -> tuple[Tensor, dict[str, Tensor]]:
        encoded = self.encoder(self.words, source)
        target = self._rounded_up(target)
        real = target != PAD
        latent_mask = real[:, :: self.stride]
        out, labels = self.bottleneck(self._compressed(encoded, target), latent_mask)
        logits = self._predicted(out, encoded)
        latent_nats = _mean(self.predictor.nats(logits, labels), latent_mask)
        end_nats = _mean(self.predictor.end_nats(logits, out.codes, real), latent_mask)
        likeliest = self.predictor.likeliest(logits.detach())
        known, guessed = self._warm_up(progress)
        latents = out.vectors
        if guessed > 0:
            latents = partly_known(latents, self.quantizer.decode(likeliest), guessed)
        x = self.decompressor(latents, latent_mask)
        if known > 0:
            shown = shifted(target) if self.decoder == "causal" else target
            x = partly_known(x, self.words.read("target", shown), known)
        # A latent that is there has places for tokens that are not.
        spread = latent_mask.repeat_interleave(self.stride, dim=1)
        hidden = self.writer(x, spread, encoded)
        smoothed, plain = self.words.loss(hidden[real], target[real], self.label_smoothing)
        tokens, weight = real.sum(), self.predictor_weight * (1 - known)
        loss = smoothed / tokens + out.loss + weight * (latent_nats + end_nats)
        right = (likeliest == out.codes).float().mean(dim=-1)
        return loss, {
            "token_nats": plain / tokens,
            "latent_nats": latent_nats.detach(),
            "end_nats": end_nats.detach(),
            "guessed_share": _mean(right, latent_mask),
            **out.metrics,
        }

    def _translate(
        self, source: Tensor, options: Decoding, rescore_with: Translator | None
    ) -> list[list[int]]:
        encoded = self.encoder.lean(self.words, source, half=options.half)
        limits = [options.longest(length) for length in encoded.lengths()]
        latents = predict(self.predictor, self.quantizer, encoded, limits, options)
        if options.samples == 1:
            return self._write(encoded, latents, options.half)
        found = self._write(encoded.repeated(options.samples), latents, options.half)
        return best_of(rescore_with, source, found, options.length_penalty)

    def _rounded_up(self, target: Tensor) -> Tensor:
        """Targets padded to a length that all halvings divide."""
        return functional.pad(target, (0, -target.shape[1] % self.stride), value=PAD)

    def _compressed(self, encoded: Encoded, target: Tensor) -> Tensor:
        x = self.words.read("target", target) + self.positions(target.shape[1])
        latents: Tensor = self.bottleneck.compressor(self.drop(x), target != PAD, encoded)
        return latents

    def _warm_up(self, progress: float) -> tuple[float, float]:
        """The shares of known tokens and of predicted latents that the decoder sees."""
        if progress < self.gold_until:
            return 1 - progress / self.gold_until, 0.0
        left = 1 - self.gold_until
        return 0.0, self.guesses * (progress - self.gold_until) / left if left > 0 else 0.0

    def _predicted(self, out: Quantized, encoded: Encoded) -> Tensor:
        vectors = out.vectors
        if not self.prior_regularises_encoder:
            # What is decoded later are codewords, not means of several.
            vectors = self.quantizer.decode(out.codes).detach().to(vectors.dtype)
        logits: Tensor = self.predictor(vectors, encoded)
        return logits

    def _latents_of(self, encoded: Encoded, target: Tensor) -> Latents:
        target = self._rounded_up(target)
        real = target != PAD
        codes = self.quantizer.encode(self._compressed(encoded, target))
        # How many tokens the last latent stands for is predicted with its codes.
        return Latents(codes, real[:, :: self.stride], real.sum(dim=1).tolist())

    def _write(self, encoded: Encoded, latents: Latents, half: bool) -> list[list[int]]:
        mask = None if bool(latents.mask.all()) else latents.mask
        x = self.decompressor.lean(self.quantizer, latents.codes, mask, half=half)
        spread = None
        if self.decoder == "causal":
            # What comes after the end changes nothing before it.
            x = x[:, : max(latents.lengths)]
        elif mask is not None:
            spread = mask.repeat_interleave(self.stride, dim=1)
        hidden = self.writer.lean(x, spread, encoded, half=half)
        return read_off(self.words, hidden, latents.lengths, half=half)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum() / mask.sum()
