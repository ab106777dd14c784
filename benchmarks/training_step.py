"""How much faster is a training step than vector-quantize-pytorch's?

Forward, backward and the update of the codebook, moving averages on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from vector_quantize_pytorch import VectorQuantize

from benchmarks.timing import Ratio, interleaved, way
from smalti.quantizers import VectorQuantizer

# (vectors, dim, codewords), pairs of runs, the ratio wanted from each way.
CASES = [
    ((4096, 64, 512), 15, {"torch alone": 6}),
    ((16_384, 64, 1024), 7, {"torch alone": 8}),
    ((4096, 8, 8192), 5, {"torch alone": 15, "with fast": 60}),
    ((4096, 1, 65_536), 3, {"torch alone": 200}),
]


def run() -> Iterator[Ratio]:
    for (n, dim, size), pairs, wanted in CASES:
        x = torch.randn(1, n, dim, requires_grad=True)
        peer = VectorQuantize(dim=dim, codebook_size=size, decay=0.99)
        ours = VectorQuantizer(dim, size)

        def our_step(x: torch.Tensor = x, layer: VectorQuantizer = ours) -> None:
            x.grad = None
            out = layer(x)
            (out.vectors.sum() + out.loss).backward()

        def peer_step(x: torch.Tensor = x, layer: VectorQuantize = peer) -> None:
            x.grad = None
            vectors, _, loss = layer(x)
            (vectors.sum() + loss.sum()).backward()

        for name, least in wanted.items():
            with way(name):
                medians = interleaved(our_step, peer_step, pairs)
            question = f"training step, {n} vectors of {dim}, {size} codewords"
            yield Ratio(question, name, *medians, "vector-quantize-pytorch 1.32.0", "ms", least)
