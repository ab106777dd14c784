"""Checkpoints: what comes back, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from smalti.errors import ArtifactError, ConfigError
from smalti.training import Checkpoints, read_weights
from smalti.training.checkpoints import load_model
from smalti.training.trees import flattened, restored

from .conftest import names


def state(model: nn.Module) -> dict[str, Any]:
    return {"model": model.state_dict(), "place": (1, 2.5)}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    """Two of them, of a small model."""
    made = Checkpoints(tmp_path, keep=2)
    torch.manual_seed(0)
    for step in (4, 8):
        made.write(step, {"seed": 0}, state(nn.Linear(3, 2)))
    return made


def test_states_come_back_as_they_were() -> None:
    shared = torch.randn(3)
    tree = {
        "tensors": [shared, shared, torch.tensor(2, dtype=torch.int64), torch.zeros(0)],
        "half": torch.randn(2, 3, dtype=torch.bfloat16).T,
        "numbers": (1, 2.5, float("inf"), True, None, "word"),
        0: {1: {"deep": [()]}},
    }
    plain, tensors = flattened(tree)
    back = restored(json.loads(json.dumps(plain)), tensors)
    assert back.keys() == tree.keys()
    assert back["numbers"] == tree["numbers"]
    assert back[0] == tree[0]
    assert all(torch.equal(a, b) for a, b in zip(back["tensors"], tree["tensors"], strict=True))
    assert torch.equal(back["half"], tree["half"])
    assert tensors.keys() >= {"tensors/0", "half"}


def test_what_can_not_be_written_without_pickle_is_refused_when_it_is_written() -> None:
    with pytest.raises(ConfigError, match="can't hold task/hook, a function"):
        flattened({"task": {"hook": lambda: 0}})


@pytest.mark.parametrize("plain", [{"pickle": 1}, {"tensor": "none"}, {"a": 1, "b": 2}, {}])
def test_a_state_in_another_manner_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="state can't be read"):
        restored(plain, {})


def test_tied_weights_are_written(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    Checkpoints(tmp_path).write(1, {}, state(model))
    weights = read_weights(tmp_path)
    assert torch.equal(weights["0.weight"], weights["1.weight"])


def test_the_latest_come_back_and_older_ones_go(checkpoints: Checkpoints) -> None:
    model = nn.Linear(3, 2)
    checkpoints.write(12, {"seed": 0}, state(model))
    assert checkpoints.steps() == [8, 12]
    found = checkpoints.latest()
    assert found is not None
    assert (found.step, found.settings, found.state["place"]) == (12, {"seed": 0}, (1, 2.5))
    other = nn.Linear(3, 2)
    load_model(other, found)
    assert torch.equal(other.weight, model.weight)
    # Numbers and JSON only: nothing that could be run.
    assert names(found.path) == ["manifest.json", "tensors.safetensors"]


@pytest.mark.parametrize("name", ["tensors.safetensors", "manifest.json"])
@pytest.mark.parametrize("fault", ["flipped", "short", "missing"])
def test_a_damaged_checkpoint_is_refused_and_the_older_one_named(
    checkpoints: Checkpoints, name: str, fault: str
) -> None:
    file = checkpoints.path(8) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    if fault == "missing":
        file.unlink()
    else:
        file.write_bytes(content if fault == "flipped" else content[:-10])
    with pytest.raises(
        ArtifactError, match=name.removesuffix(".json").removesuffix(".safetensors")
    ) as caught:
        checkpoints.latest()
    assert "remove it to go on from step 4" in str(caught.value)
    assert checkpoints.read(4).step == 4


def test_a_checkpoint_under_another_name_is_refused(checkpoints: Checkpoints) -> None:
    checkpoints.path(8).rename(checkpoints.path(9))
    with pytest.raises(ArtifactError, match="is not the checkpoint of step 9"):
        checkpoints.latest()


def test_another_model_is_refused(checkpoints: Checkpoints) -> None:
    with pytest.raises(ArtifactError, match=r"another model: expected weight of shape \(2, 4\)"):
        load_model(nn.Linear(4, 2), checkpoints.read(8))
    with pytest.raises(ArtifactError, match=r"expected bias of shape nothing, got \(2,\)"):
        load_model(nn.Linear(3, 2, bias=False), checkpoints.read(8))


def test_a_place_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file in the way")
    with pytest.raises(ArtifactError, match="can't write the checkpoint of step 1"):
        Checkpoints(tmp_path).write(1, {}, state(nn.Linear(1, 1)))


def test_a_run_without_checkpoints_has_no_weights(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).latest() is None
    with pytest.raises(ArtifactError, match="has no checkpoint"):
        read_weights(tmp_path)
