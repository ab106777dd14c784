"""The smoothed loss, against torch's cross-entropy."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from smalti.layers import smoothed_loss as module
from smalti.layers.smoothed_loss import smoothed_loss, smoothed_loss_of_products


def case(rows: int = 11) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(rows, 6, generator=generator, dtype=torch.float64)
    table = torch.randn(13, 6, generator=generator, dtype=torch.float64)
    return hidden, table, torch.randint(13, (rows,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_are_torchs(smoothing: float) -> None:
    hidden, table, labels = case()
    logits = hidden @ table.T
    smoothed = functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    plain = functional.cross_entropy(logits, labels, reduction="sum")
    for ours in (
        smoothed_loss(logits, labels, smoothing),
        smoothed_loss_of_products(hidden, table, labels, smoothing),
    ):
        torch.testing.assert_close(torch.stack(ours).double(), torch.stack([smoothed, plain]))


def test_gradients_are_torchs_also_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    hidden, table, labels = case()
    found = []
    for ours in (True, False):
        inputs = [hidden.clone().requires_grad_(), table.clone().requires_grad_()]
        if ours:
            loss, plain = smoothed_loss_of_products(*inputs, labels, 0.1)
            assert not plain.requires_grad
        else:
            logits = inputs[0] @ inputs[1].T
            loss = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
        (3 * loss).backward()
        found.append([item.grad for item in inputs])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("learning", [0, 1])
def test_either_alone_may_learn(learning: int) -> None:
    hidden, table, labels = case()
    inputs = [hidden, table]
    inputs[learning] = inputs[learning].clone().requires_grad_()
    smoothed_loss_of_products(*inputs, labels, 0.1)[0].backward()
    gradient = inputs[learning].grad
    assert gradient is not None
    logits = inputs[0] @ inputs[1].T
    loss = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    (expected,) = torch.autograd.grad(loss, inputs[learning])
    torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-5)
    assert inputs[1 - learning].grad is None


def test_autocast_computes_in_half_of_the_bits_and_stays_close() -> None:
    hidden, table, labels = (item.float() if item.is_floating_point() else item for item in case())
    hidden.requires_grad_()
    exact, _ = smoothed_loss_of_products(hidden, table, labels, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        rounded, _ = smoothed_loss_of_products(hidden, table, labels, 0.1)
    assert rounded.dtype == torch.float32
    assert 0 < abs((rounded - exact).item()) < 0.02 * exact.item()


def test_no_rows_cost_nothing() -> None:
    hidden, table, labels = case(rows=0)
    assert smoothed_loss_of_products(hidden.requires_grad_(), table, labels, 0.1)[0] == 0
