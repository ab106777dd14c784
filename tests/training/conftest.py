"""Training in processes of their own, which can be killed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

WORKER = Path(__file__).with_name("worker.py")


class End(NamedTuple):
    """How processes ended: their statuses and what they said on stderr."""

    statuses: list[int]
    said: list[str]


Trainer = Callable[..., End]


@pytest.fixture(scope="session")
def worker() -> Any:
    """The module of the worker."""
    pytest.importorskip("accelerate")
    spec = importlib.util.spec_from_file_location("training_worker", WORKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    """Trains in processes of their own, as a job of the worker says."""
    pytest.importorskip("accelerate")
    logs, numbers = tmp_path_factory.mktemp("logs"), count()
    server = subprocess.Popen(
        [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    asking, answering = server.stdin, server.stdout

    def end_of(**job: Any) -> End:
        log = str(logs / str(next(numbers)))
        asking.write(json.dumps({**job, "log": log}, default=str) + "\n")
        asking.flush()
        answer = json.loads(answering.readline())
        return End(answer["ends"], answer["said"])

    yield end_of
    server.kill()
    server.wait()


def names(folder: Path) -> list[str]:
    """The names in a folder, in order."""
    return sorted(path.name for path in folder.iterdir())


def weights(out: Path, rank: int = 0) -> dict[str, Tensor]:
    """What a job wrote to ``out``."""
    found: dict[str, Tensor] = torch.load(f"{out}.{rank}", weights_only=True)
    return found
