"""How fast is encoding, compared with faiss, at equal answers?"""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import numpy as np
import torch

from benchmarks.timing import Ratio, interleaved, way
from smalti.quantizers import Product, nearest

WANTED = {"torch alone": 1 / 6, "with fast": 1.0}


def run() -> Iterator[Ratio]:
    faiss.omp_set_num_threads(torch.get_num_threads())
    yield from _product_codes()
    yield from _flat_search()


def _product_codes() -> Iterator[Ratio]:
    x = torch.randn(100_000, 384)
    peer = faiss.ProductQuantizer(384, 48, 8)
    peer.train(x[:10_000].numpy())
    codebook = faiss.vector_to_array(peer.centroids).reshape(48, 256, 8)
    ours = Product(384, 48, 256).eval()
    ours.codebook.copy_(torch.from_numpy(codebook.copy()))
    for name, wanted in WANTED.items():
        with way(name):
            same = (ours.encode(x).numpy() == peer.compute_codes(x.numpy())).mean()
            assert same > 0.9999, f"only {same:.4%} of the codes agree with faiss"
            medians = interleaved(lambda: ours.encode(x), lambda: peer.compute_codes(x.numpy()), 3)
        question = "encode 100,000 x 384 with 48 codebooks of 256"
        yield Ratio(question, name, *medians, "faiss ProductQuantizer.compute_codes", "ms", wanted)


def _flat_search() -> Iterator[Ratio]:
    x, codebook = torch.randn(65_536, 8), torch.randn(8192, 8)
    peer = faiss.IndexFlatL2(8)
    peer.add(codebook.numpy())
    for name, wanted in WANTED.items():
        with way(name):
            found = np.asarray(peer.search(x.numpy(), 1)[1])[:, 0]
            same = (nearest(x, codebook).numpy() == found).mean()
            assert same > 0.9999, f"only {same:.4%} of the codes agree with faiss"
            medians = interleaved(
                lambda: nearest(x, codebook), lambda: peer.search(x.numpy(), 1), 9
            )
        question = "nearest of 8,192 codewords for 65,536 vectors of 8"
        yield Ratio(question, name, *medians, "faiss IndexFlatL2", "ms", wanted)
