"""Two gloo processes, started by torchrun, learn what one process learns on the joined batch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

WORKER = Path(__file__).with_name("rank_worker.py")


def load_worker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rank_worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker = load_worker()


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, dict[str, torch.Tensor]]]:
    """What each of two processes ended with."""
    place = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    subprocess.run(
        [*command, str(WORKER), str(place)], check=True, timeout=240, capture_output=True
    )
    return [torch.load(place / f"rank{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.parametrize("case", worker.CASES)
def test_two_processes_give_the_codebook_of_one(
    states: list[dict[str, dict[str, torch.Tensor]]], case: str
) -> None:
    alone = worker.learn(*worker.CASES[case], rank=0, world=1)
    for state in states:
        assert state[case].keys() == alone.keys()
        for name, tensor in alone.items():
            if name.startswith("usage"):
                # Where the last two batches were accumulated, one process saw them too.
                assert state[case][name].sum() == tensor.sum()
            torch.testing.assert_close(
                state[case][name], tensor, atol=1e-6, rtol=1e-6, msg=f"{case}: {name}"
            )
