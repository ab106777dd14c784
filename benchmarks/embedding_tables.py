"""How fast are tables compressed, compared with faiss and scikit-learn, at equal results?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import faiss
import numpy as np
import torch
from sklearn.manifold._locally_linear import barycenter_weights
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from benchmarks.timing import Ratio, interleaved, way
from smalti.embeddings import Product
from smalti.embeddings.neighbours import barycentre_weights, nearest_by_cosine, units
from smalti.hub import open_model

WANTED = {"torch alone": 1 / 10, "with fast": 1 / 3}


def run() -> Iterator[Ratio]:
    table = open_model("all-MiniLM-L6-v2").model.get_input_embeddings().weight.detach()
    faiss.omp_set_num_threads(torch.get_num_threads())
    yield from _neighbours(table)
    yield from _sparse_weights(table)
    yield from _product(table)


def _product(table: Tensor) -> Iterator[Ratio]:
    vectors = table.numpy()
    peer = faiss.ProductQuantizer(384, 48, 8)
    peer.cp.niter = 20
    codes = []

    def train() -> None:
        peer.train(vectors)
        codes[:] = [peer.compute_codes(vectors)]

    # Tens of seconds each: once is enough, everything is warm by now.
    theirs = _milliseconds(train)
    lost = float(np.square(peer.decode(codes[0]) - vectors).mean())
    for name, wanted in WANTED.items():
        with way(name):
            made = []
            ours = _milliseconds(lambda made=made: made.append(Product(48, 256).fit(table)))
        ratio = float((made[0].dense() - table).square().mean()) / lost
        assert ratio < 1.02, f"{ratio:.3f} times the distortion of faiss"
        question = "fit 48 codebooks of 256 to 30,522 x 384, codes included"
        yield Ratio(question, name, ours, theirs, "faiss ProductQuantizer", "ms", wanted)


def _neighbours(table: Tensor) -> Iterator[Ratio]:
    queries, sources = table[20_000:23_000], table[:10_000].contiguous()
    peer = NearestNeighbors(n_neighbors=5, algorithm="brute", metric="cosine").fit(sources.numpy())

    def theirs() -> np.ndarray:
        return peer.kneighbors(queries.numpy(), return_distance=False)

    same = (nearest_by_cosine(queries, sources, 5).numpy() == theirs()).mean()
    assert same > 0.999, f"only {same:.4%} of the neighbours agree with scikit-learn"
    medians = interleaved(lambda: nearest_by_cosine(queries, sources, 5), theirs, 3)
    question = "5 of 10,000 nearest by cosine for 3,000 rows of 384"
    yield Ratio(question, "torch alone", *medians, "scikit-learn NearestNeighbors", "ms", wanted=1)


def _sparse_weights(table: Tensor) -> Iterator[Ratio]:
    rows, sources = units(table[20_000:25_000]), units(table[:10_000])
    ids = nearest_by_cosine(rows, sources, 5)
    wide = [tensor.double().numpy() for tensor in (rows, sources)]

    def theirs() -> np.ndarray:
        return barycenter_weights(*wide, ids.numpy(), reg=1e-3)

    off = np.abs(barycentre_weights(rows, sources, ids).numpy() - theirs()).max()
    assert off < 1e-3, f"a weight differs from scikit-learn's by {off:.2g}"
    medians = interleaved(lambda: barycentre_weights(rows, sources, ids), theirs, 5)
    question = "weights of 5 neighbours for 5,000 rows of 384"
    yield Ratio(question, "torch alone", *medians, "scikit-learn barycenter_weights", "ms", 10)


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)
