"""How much memory does a training step take beyond its model, compared with the peer's?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.timing import Ratio

# Each in a process of its own: the peak that the system saw, less what stood before the steps.
PROGRAM = """
import re, torch
def peak():
    # Of this program alone: what rusage reports begins with the process that started it.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
torch.set_num_threads(2)
x = torch.randn(1, 2048, 32, requires_grad=True)
{make}
def step(x):
    {step}
step(x[:, :64])
before = peak()
for _ in range(3):
    step(x)
print(peak() - before)
"""
OURS = {
    "make": "from smalti.quantizers import VectorQuantizer\nlayer = VectorQuantizer(32, 32768)",
    "step": "out = layer(x); (out.vectors.sum() + out.loss).backward()",
}
PEER = {
    "make": "from vector_quantize_pytorch import VectorQuantize\n"
    "layer = VectorQuantize(dim=32, codebook_size=32768, decay=0.99)",
    "step": "vectors, _, loss = layer(x); (vectors.sum() + loss.sum()).backward()",
}


def run() -> Iterator[Ratio]:
    ours, peer = (_extra_megabytes(program) for program in (OURS, PEER))
    question = "extra peak memory, 2,048 vectors of 32, 32,768 codewords"
    yield Ratio(
        question, "torch alone", ours, peer, "vector-quantize-pytorch 1.32.0", "MB", wanted=20
    )


def _extra_megabytes(program: dict[str, str]) -> float:
    command = [sys.executable, "-c", PROGRAM.format(**program)]
    # Less than a tenth of a megabyte can't be told from nothing.
    return max(float(subprocess.check_output(command, text=True)), 0.1)
