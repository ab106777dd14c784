"""Compiled loops for the nearest of many narrow codewords: the extra ``fast``.

The loops are a page of LLVM assembly that llvmlite turns into machine code for the very
processor at hand, in some milliseconds and without a compiler. Squared differences are
summed directly, so nothing cancels. Where many vectors meet many codewords these are first
sorted into boxes (a k-d tree's leaves), and a vector skips every box that is farther away than
the best codeword it has seen: the answer stays exact, most of the work falls away.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

# Codewords in a leaf; the assembly counts on it.
LEAF = 64
# Wider vectors are faster as a matrix product.
WIDEST = 16
# Below so many comparisons the matrix product is done before our threads have started.
LEAST_WORK = 1 << 18
# Vectors farther from the codewords than so many times their spread take the other way.
FAR = 100
# Vectors that a thread takes at a time, at least.
LEAST_SHARE = 64
# Sorting into boxes pays from so many codewords on, if each is met by a few vectors.
LEAST_BOXED = 2048


def suits(x: Tensor, codebook: Tensor) -> bool:
    """Whether the compiled loops are there and are the faster way for these tensors."""
    return (
        1 < x.shape[-1] <= WIDEST
        and x.device.type == "cpu"
        and x.shape[0] * x.shape[1] * codebook.shape[1] >= LEAST_WORK
        and available()
        and _are_near(x, codebook)
    )


def _are_near(x: Tensor, codebook: Tensor) -> bool:
    """Whether differences keep the digits that tell codewords apart.

    Seen from very far away all codewords are at the same distance, in float32; a product
    with them is then the better way.
    """
    lowest, highest = codebook.aminmax()
    # Slices of vectors are transposed; a look along memory is ten times as fast.
    x_lowest, x_highest = (x if x.is_contiguous() else x.transpose(0, 1)).aminmax()
    spread = highest - lowest
    return bool(torch.maximum(lowest - x_lowest, x_highest - highest) <= FAR * spread)


@functools.cache
def available() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("llvmlite") is not None


def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    """Codes ``(parts, n)`` for ``x`` ``(parts, n, dim)``; ties go to the lowest code."""
    parts, n, _ = x.shape
    size = codebook.shape[1]
    if x.stride(2) != 1:
        x = x.contiguous()
    # The codes of a vector lie side by side, as whoever asked for parts will want them.
    codes = torch.empty(n, parts, dtype=torch.int64).t()
    if size < LEAST_BOXED or n < 2 * size:
        _search(x, codebook, _order_as_is(size), codes, boxed=False)
        return codes
    for part in range(parts):
        some = slice(part, part + 1)
        _search(x[some], codebook[some], _order_in_boxes(codebook[part]), codes[some], boxed=True)
    return codes


def _search(x: Tensor, codebook: Tensor, order: Tensor, codes: Tensor, boxed: bool) -> None:
    """Search all parts in the given order of codewords; with boxes there is one part."""
    parts, n, dim = x.shape
    # (parts, leaves, dim, LEAF): the codewords of a leaf side by side, coordinate by coordinate.
    members = codebook[:, order].view(parts, -1, LEAF, dim)
    leaves = members.transpose(2, 3).contiguous()
    count = leaves.shape[1]
    padded = -(-count // 16) * 16
    boxes = torch.full((2, dim, padded), torch.inf)
    if boxed:
        boxes[0, :, :count] = members[0].amin(dim=1).t()
        boxes[1, :, :count] = members[0].amax(dim=1).t()
    threads = max(1, min(torch.get_num_threads(), parts * n * codebook.shape[1] // LEAST_WORK))
    bounds = torch.empty(threads, padded)
    tensors = (x, leaves, order, boxes[0], boxes[1], bounds, codes)
    task = _Task(
        *(tensor.data_ptr() for tensor in tensors),
        *(n, dim, count, padded, int(boxed), max(LEAST_SHARE, n // (16 * threads)), parts),
        *(x.stride(1), x.stride(0), codes.stride(1), codes.stride(0), leaves.stride(0), 0),
    )
    _compiled().run(task, threads)


_ARRAYS = ("x", "leaves", "codes", "lows", "highs", "bounds", "result")
_COUNTS = (
    *("n", "dim", "count", "padded", "boxed", "share", "parts"),
    *("x_step", "x_part", "result_step", "result_part", "leaves_part", "next"),
)


class _Task(ctypes.Structure):
    """What the assembly reads: seven arrays, then the counts."""

    _fields_: ClassVar = [
        *((name, ctypes.c_void_p) for name in _ARRAYS),
        *((name, ctypes.c_int64) for name in _COUNTS),
    ]


def _order_as_is(size: int) -> Tensor:
    """The codes in order, the last leaf filled up with repetitions of the first code."""
    order = torch.zeros(-(-size // LEAF) * LEAF, dtype=torch.int64)
    order[:size] = torch.arange(size)
    return order


def _order_in_boxes(codebook: Tensor) -> Tensor:
    """Codes leaf by leaf, after halving the codewords along the widest side again and again."""
    order = _order_as_is(len(codebook))
    levels = (len(order) // LEAF - 1).bit_length()
    whole = LEAF << levels
    order = torch.cat([order, order.new_zeros(whole - len(order))])
    for level in range(levels):
        cells = codebook[order].view(1 << level, -1, codebook.shape[1])
        widest = (cells.amax(dim=1) - cells.amin(dim=1)).argmax(dim=1)
        index = widest[:, None, None].expand(-1, cells.shape[1], 1)
        along = cells.gather(2, index).squeeze(2).numpy()
        halves = torch.from_numpy(np.argpartition(along, along.shape[1] // 2, axis=1))
        order = order.view(1 << level, -1).gather(1, halves).view(-1)
    # Within a leaf the lowest code first, so that a tie finds it first.
    return order.view(-1, LEAF).sort(dim=1).values.view(-1)


class _Search:
    """The machine code of nearest.ll for this processor."""

    def __init__(self) -> None:
        from llvmlite import binding  # noqa: PLC0415  (an optional dependency)

        self.team = _openmp_team()
        if self.team is None:
            binding.add_symbol("omp_get_thread_num", ctypes.cast(_no_team, ctypes.c_void_p).value)
        else:
            number = ctypes.cast(self.team.omp_get_thread_num, ctypes.c_void_p)
            binding.add_symbol("omp_get_thread_num", number.value)
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=3,
        )
        assembly = Path(__file__).with_name("nearest.ll").read_text("utf-8")
        # The code lives as long as the engine that made it.
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(assembly), machine)
        self.engine.finalize_object()
        share = self.engine.get_function_address("search_share")
        self.share = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(share)
        self.in_team = ctypes.c_void_p(self.engine.get_function_address("search_in_team"))

    def run(self, task: _Task, threads: int) -> None:
        """Run every thread's share; all are done when this returns."""
        place = ctypes.byref(task)
        if threads == 1:
            self.share(place, 0)
            return
        if self.team is not None:
            self.team.GOMP_parallel(self.in_team, place, threads, 0)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(functools.partial(self.share, place), range(threads)))


_compiled = functools.cache(_Search)


# What a lone thread answers when it is asked for its number in the team.
_no_team = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)


def _openmp_team() -> Any:
    """The OpenMP library that torch runs on, where it is GNU's.

    Threads of our own would have to share the cores with torch's, which spin for a while
    after each of its operations: with its own team the search takes half the time.
    """
    if platform.system() != "Linux" or "libgomp" not in _loaded_libraries():
        return None
    library = ctypes.CDLL("libgomp.so.1")
    has_all = hasattr(library, "GOMP_parallel") and hasattr(library, "omp_get_thread_num")
    return library if has_all else None


def _loaded_libraries() -> str:
    return Path("/proc/self/maps").read_text("utf-8")
