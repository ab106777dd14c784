"""What errors of rows cost: measured by gradients, checked by derivatives and by trying."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from smalti.hub.choosing.judging import in_place
from smalti.hub.choosing.sensitivity import metric_of, output_metric
from smalti.hub.choosing.targets import mean_cosine, target_of
from smalti.hub.opening import Opened, open_model

pytest.importorskip("transformers")


def exact_metric(opened: Opened, texts: list[str]) -> Tensor:
    """All derivatives of all outputs, one by one."""
    target = target_of(opened, texts)
    weight = opened.model.get_input_embeddings().weight
    total = torch.zeros(weight.shape[1], weight.shape[1], dtype=torch.float64)
    for place in range(len(target.made.inputs)):
        for number in target.outputs(opened.model, place).flatten():
            (gradient,) = torch.autograd.grad(number, weight, retain_graph=True)
            total += (gradient.T @ gradient).double()
    return total / total.diagonal().mean()


def test_the_metric_is_that_of_all_derivatives(
    small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened, texts = open_model(small_model("encoder")), sentences[:3]
    found = metric_of(opened, target_of(opened, texts), projections=1500, progress=False)
    exact = exact_metric(opened, texts)
    assert float((found - exact).norm() / exact.norm()) < 0.1
    assert float(found.diagonal().mean()) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["encoder", "classifier", "causal", "t5"])
def test_what_is_said_to_cost_more_moves_outputs_more(
    kind: str, small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened, texts = open_model(small_model(kind)), sentences[:200]
    metric = output_metric(opened, texts, progress=False)
    directions = torch.linalg.eigh(metric).eigenvectors.float()
    weight = opened.model.get_input_embeddings().weight.detach().clone()
    signs = torch.randn(len(weight), 1, generator=torch.Generator().manual_seed(1))
    target = target_of(opened, sentences[200:300])
    cosines = []
    for direction in (directions[:, 0], directions[:, -1]):
        with in_place(opened, weight + 0.1 * weight.norm(dim=1).mean() * signs * direction):
            cosines.append(mean_cosine(target, opened.model))
    cheap, dear = cosines
    assert 1 - dear > 1.5 * (1 - cheap)


def test_the_model_is_as_before(small_model: Callable[[str], Path], sentences: list[str]) -> None:
    opened = open_model(small_model("causal"))
    learning = {
        name: number % 2 == 0 for number, (name, _) in enumerate(opened.model.named_parameters())
    }
    for name, parameter in opened.model.named_parameters():
        parameter.requires_grad_(learning[name])
    before = {name: tensor.clone() for name, tensor in opened.model.state_dict().items()}
    output_metric(opened, sentences[:20], progress=False)
    for name, tensor in opened.model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    for name, parameter in opened.model.named_parameters():
        assert parameter.requires_grad is learning[name], name
        assert parameter.grad is None, name


def test_the_same_seed_gives_the_same_metric(
    small_model: Callable[[str], Path], sentences: list[str]
) -> None:
    opened = open_model(small_model("encoder"))
    one, same, other = (
        output_metric(opened, sentences[:20], seed=seed, progress=False) for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
