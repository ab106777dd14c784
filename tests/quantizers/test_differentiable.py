"""What is particular to DPQ-SX and DPQ-VQ."""

from __future__ import annotations

import pytest
import torch

from smalti.errors import ConfigError
from smalti.quantizers import DifferentiableCentroid, DifferentiableSoftmax
from smalti.quantizers.scored import EPSILON

BOTH = [DifferentiableSoftmax, DifferentiableCentroid]


def responses(
    layer: DifferentiableSoftmax | DifferentiableCentroid, x: torch.Tensor
) -> torch.Tensor:
    """Scores (n, groups, size) by an explicit loop."""
    pieces = x.split(layer.width, dim=-1)
    keys = [layer.keys[0 if layer.shared else group] for group in range(len(pieces))]
    if isinstance(layer, DifferentiableSoftmax):
        return torch.stack([p @ k.t() for p, k in zip(pieces, keys, strict=True)], dim=1)
    return torch.stack(
        [-torch.cdist(p, k).square() for p, k in zip(pieces, keys, strict=True)], dim=1
    )


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", BOTH)
def test_without_normalisation_the_code_has_the_best_score(kind: type, shared: bool) -> None:
    torch.manual_seed(0)
    layer = kind(12, 3, 8, shared=shared, normalisation="none")
    x = torch.randn(40, 12)
    expected = responses(layer, x).argmax(-1)
    assert torch.equal(layer(x).codes, expected)
    assert torch.equal(layer.eval()(x).codes, expected)


@pytest.mark.parametrize("normalisation", ["batch", "batch_per_group"])
@pytest.mark.parametrize("kind", BOTH)
def test_scores_are_normalised_over_the_batch_then_by_running_statistics(
    kind: type, normalisation: str
) -> None:
    torch.manual_seed(0)
    layer = kind(12, 3, 8, normalisation=normalisation)
    x = torch.randn(40, 12)
    scores = responses(layer, x)
    axes = (0, 1) if normalisation == "batch" else (0,)
    mean = scores.mean(axes, keepdim=True)
    spread = (scores.var(axes, unbiased=False, keepdim=True) + EPSILON).sqrt()
    expected = ((scores - mean) / spread).argmax(-1)
    assert torch.equal(layer(x).codes, expected)
    # One batch was seen, so its statistics are the running ones.
    assert torch.equal(layer.eval()(x).codes, expected)


def test_softmax_keys_learn_as_from_a_softmax_and_values_as_from_a_choice() -> None:
    torch.manual_seed(0)
    layer = DifferentiableSoftmax(4, 1, 5, normalisation="none", temperature=0.7)
    x = torch.randn(6, 4, requires_grad=True)
    weights = torch.randn(6, 4)
    (layer(x).vectors * weights).sum().backward()

    y, keys = x.detach().requires_grad_(), layer.keys.detach()[0].requires_grad_()
    values = layer.values.detach()[0].requires_grad_()
    shares = (y @ keys.t() / 0.7).softmax(-1)
    hard = torch.nn.functional.one_hot(shares.argmax(-1), 5).float()
    mixed = (hard + shares - shares.detach()) @ values
    (mixed * weights).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(layer.keys.grad[0], keys.grad)  # type: ignore[index]
    torch.testing.assert_close(layer.values.grad[0], values.grad)  # type: ignore[index]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("normalisation", ["batch", "batch_per_group"])
def test_gradients_of_normalised_scores_are_those_of_scores_written_out(
    normalisation: str, masked: bool
) -> None:
    torch.manual_seed(0)
    layer = DifferentiableSoftmax(12, 3, 8, normalisation=normalisation, temperature=0.7)
    # Far from zero, where sums of squares would lose their digits.
    x = (torch.randn(40, 12) + 20).requires_grad_()
    mask = torch.arange(40) % 3 > 0 if masked else torch.ones(40, dtype=torch.bool)
    upstream = torch.randn(40, 12) * mask[:, None]
    (layer(x, mask if masked else None).vectors * upstream).sum().backward()

    y = x.detach().double().requires_grad_()
    keys, values = (part.detach().double().requires_grad_() for part in (layer.keys, layer.values))
    scores = torch.einsum("ngw,gkw->ngk", y.view(40, 3, 4), keys)
    axes = (0, 1) if normalisation == "batch" else (0,)
    mean = scores[mask].mean(axes, keepdim=True)
    variance = scores[mask].var(axes, unbiased=False, keepdim=True)
    shares = ((scores - mean) / (variance + EPSILON).sqrt() / 0.7).softmax(-1)
    mixed = torch.einsum("ngk,gkw->ngw", shares, values).reshape(40, 12)
    (mixed * upstream).sum().backward()
    torch.testing.assert_close(x.grad, y.grad.float(), rtol=1e-3, atol=1e-5)  # type: ignore[union-attr]
    torch.testing.assert_close(layer.keys.grad, keys.grad.float(), rtol=1e-3, atol=1e-4)  # type: ignore[union-attr]
    torch.testing.assert_close(layer.running_mean, _groups_first(mean), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        layer.running_variance, _groups_first(variance), rtol=1e-4, atol=1e-5
    )


def _groups_first(statistic: torch.Tensor) -> torch.Tensor:
    return statistic.detach()[0].float()


def test_queries_whose_sum_of_squares_overflows_have_finite_gradients() -> None:
    torch.manual_seed(0)
    layer = DifferentiableSoftmax(4, 2, 8)
    x = (9e17 * (2 * torch.rand(3000, 4) - 1)).requires_grad_()
    found = layer(x)
    found.vectors.sum().backward()
    assert x.grad is not None
    assert bool(torch.isfinite(x.grad).all())
    assert bool(torch.isfinite(found.vectors).all())


def test_centroids_learn_from_the_attraction_only() -> None:
    torch.manual_seed(0)
    layer = DifferentiableCentroid(4, 2, 5)
    x = torch.randn(6, 4, requires_grad=True)
    layer(x).vectors.sum().backward()
    assert layer.keys.grad is None or layer.keys.grad.abs().sum() == 0
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(6, 4))
    x.grad = None
    layer(x).loss.backward()
    assert layer.keys.grad is not None
    assert layer.keys.grad.abs().sum() > 0
    assert x.grad is None or x.grad.abs().sum() == 0


@pytest.mark.parametrize("kind", BOTH)
def test_a_shared_subspace_has_one_set_of_keys(kind: type) -> None:
    assert kind(12, 3, 8, shared=True).keys.shape == (1, 8, 4)
    assert kind(12, 3, 8).keys.shape == (3, 8, 4)


@pytest.mark.parametrize("bad", [{"num_codebooks": 5}, {"normalisation": "layer"}])
@pytest.mark.parametrize("kind", BOTH)
def test_impossible_settings_are_refused(kind: type, bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        kind(**{"dim": 12, "num_codebooks": 3, "codebook_size": 8, **bad})
