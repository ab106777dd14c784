"""How much faster does an autoregressive translator learn than one of torch's own layers?

Both have three layers on each side, 256 wide, one table of 6,000 words for all uses, dropout and
smoothed labels, and make the same step of Adam with the same sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.timing import Ratio, interleaved
from smalti.translation import Autoregressive
from smalti.translation.ids import BEGIN, EOS, PAD

VOCABULARY, DIM, DEPTH, HEADS = 6000, 256, 3, 4
SENTENCES, LENGTH = 128, 18


class TorchTranslator(nn.Module):
    """``nn.Transformer`` with a tied table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, DIM)
        self.layers = nn.Transformer(
            DIM, HEADS, DEPTH, DEPTH, 4 * DIM, 0.1, "gelu", batch_first=True, norm_first=True
        )

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The smoothed cross-entropy."""
        begin = target.new_full((len(target), 1), BEGIN)
        before = torch.cat([begin, target[:, :-1]], dim=1)
        hidden = self.layers(
            self.table(source),
            self.table(before),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]),
            src_key_padding_mask=source == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        logits = functional.linear(hidden, self.table.weight)
        return functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=0.1
        )


def run() -> Iterator[Ratio]:
    torch.manual_seed(1)
    source, target = _sentences(), _sentences()
    ours, peer = Autoregressive(VOCABULARY), TorchTranslator()

    def our_loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return ours.loss(source, target)[0]

    medians = interleaved(
        _step(our_loss, torch.optim.Adam(ours.parameters(), fused=True)),
        _step(lambda: peer.loss(source, target), torch.optim.Adam(peer.parameters())),
        6,
    )
    question = f"a training step of {int((target != PAD).sum())} target tokens"
    yield Ratio(question, "torch alone", *medians, "nn.Transformer, float32", "ms", wanted=2.0)


def _sentences() -> Tensor:
    """Sentences of about two thirds of the greatest length and more."""
    ids = torch.randint(BEGIN + 1, VOCABULARY, (SENTENCES, LENGTH))
    ends = torch.randint(2 * LENGTH // 3, LENGTH, (SENTENCES, 1))
    places = torch.arange(LENGTH)
    return torch.where(places < ends, ids, torch.where(places == ends, EOS, PAD))


def _step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> Callable[[], None]:
    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step
