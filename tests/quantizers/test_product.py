"""Product, Depthwise, Repeated and Residual: what combining quantizers must keep."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from smalti.errors import ConfigError, ShapeError
from smalti.quantizers import (
    Depthwise,
    FiniteScalar,
    Product,
    Repeated,
    Residual,
    VectorQuantizer,
    build,
)


def test_one_codebook_equals_vector_quantization_bit_for_bit() -> None:
    """Vectors, codes, losses, gradients and codebooks, over steps with a start and revivals."""
    results = []
    for make in (lambda: VectorQuantizer(6, 40), lambda: Product(6, 1, 40)):
        torch.manual_seed(7)
        layer = make()
        seen: list[Tensor] = []
        for _ in range(205):
            x = torch.randn(30, 6, requires_grad=True)
            out = layer(x)
            (out.vectors.square().sum() + out.loss).backward()
            assert x.grad is not None
            seen += [out.vectors.detach(), out.codes, out.loss.detach(), x.grad]
        results.append((seen, layer.codebook.reshape(40, 6)))
    for one, other in zip(*(seen for seen, _ in results), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(results[0][1], results[1][1])


def test_parts_equal_separate_quantizers_on_the_slices() -> None:
    torch.manual_seed(0)
    layer = Product(12, 3, 16, start="random", dead="keep")
    singles = [VectorQuantizer(4, 16, start="random", dead="keep") for _ in range(3)]
    for part, single in enumerate(singles):
        single.codebook.copy_(layer.codebook[part])
    for _ in range(3):
        x = torch.randn(50, 12)
        out = layer(x)
        outs = [single(piece) for single, piece in zip(singles, x.split(4, dim=-1), strict=True)]
        assert torch.equal(out.vectors, torch.cat([one.vectors for one in outs], dim=-1))
        assert torch.equal(out.codes, torch.cat([one.codes for one in outs], dim=-1))
        torch.testing.assert_close(out.loss, sum(one.loss for one in outs))
    for part, single in enumerate(singles):
        torch.testing.assert_close(single.codebook, layer.codebook[part])


def test_512_channels_in_7_slices_are_padded_to_74() -> None:
    layer = Product(512, 7, 8)
    x = torch.randn(20, 512)
    out = layer(x)
    assert layer.width == 74
    assert layer.codebook.shape == (7, 8, 74)
    assert out.vectors.shape == (20, 512)
    assert layer.codebook[6, :, 68:].abs().max() == 0
    # The padded coordinates count nowhere: the loss is the sum of means over real ones.
    error = (x - out.vectors).square()
    expected = sum(piece.mean() for piece in error.split(74, dim=-1))
    torch.testing.assert_close(out.loss, 0.25 * expected)
    torch.testing.assert_close(out.metrics["distortion"], error.mean())


def test_the_mean_of_the_losses_can_be_chosen() -> None:
    torch.manual_seed(0)
    layers = [Product(8, 4, 16, reduction=how, start="random") for how in ("sum", "mean")]
    layers[1].load_state_dict(layers[0].state_dict())
    x = torch.randn(9, 8)
    torch.testing.assert_close(layers[0](x).loss, 4 * layers[1](x).loss)


def test_a_sum_begins_as_the_concatenation_and_learns_its_views() -> None:
    torch.manual_seed(0)
    layer = Product(8, 4, 16, combine="sum")
    x = torch.randn(300, 8)
    out = layer(x)
    for part in range(4):
        outside = torch.ones(8, dtype=torch.bool)
        outside[2 * part : 2 * part + 2] = False
        assert layer.codebook[part][:, outside].abs().max() < 1e-6
    out.vectors.square().sum().backward()
    assert layer.views.grad is not None
    assert layer.views.grad.abs().sum() > 0


def test_different_parts_can_be_given() -> None:
    parts = [VectorQuantizer(4, 16), FiniteScalar(3, (8, 5, 5))]
    layer = Product(7, 2, part=parts)
    out = layer(torch.randn(5, 7))
    assert layer.code_sizes == (16, 8, 5, 5)
    assert out.codes.shape == (5, 4)
    x = torch.randn(4, 7)
    layer.eval()
    assert torch.equal(layer.decode(layer.encode(x)), layer(x).vectors)


@pytest.mark.parametrize("part", ["soft_em", "gumbel", "semantic_hash", "lookup_free"])
def test_any_registered_quantizer_can_be_the_part(part: str) -> None:
    if part in {"soft_em", "gumbel"}:
        layer = Product(8, 2, 16, part=part)
    else:
        layer = Product(8, 2, part=part, bits=3)
    x = torch.randn(30, 8)
    layer(x)
    layer.eval()
    assert torch.equal(layer.decode(layer.encode(x)), layer(x).vectors)


@pytest.mark.parametrize(
    "bad",
    [
        {"num_codebooks": 9},
        {"num_codebooks": 0},
        {"codebook_size": None},
        {"combine": "max"},
        {"part": "nothing"},
        {"part": [VectorQuantizer(3, 4)]},
        {"part": [VectorQuantizer(3, 4), VectorQuantizer(3, 4)]},
        {"colour": 3},
    ],
)
def test_impossible_products_are_refused(bad: dict[str, object]) -> None:
    settings = {"dim": 8, "num_codebooks": 2, "codebook_size": 4, **bad}
    with pytest.raises(ConfigError):
        Product(**settings)  # type: ignore[arg-type]


def test_channel_and_pixel_axes_quantize_the_same_vectors_with_other_codebooks() -> None:
    """With equal codewords everywhere the axis can't matter; with different ones it must."""
    torch.manual_seed(0)
    x = torch.randn(2, 6, 5, 9)
    layers = [
        Depthwise(9, 3, 8, axis=axis, start="random", dead="keep").eval()
        for axis in ("channel", "pixel")
    ]
    shared = torch.randn(8, 3)
    for layer in layers:
        layer.codebook.copy_(shared.expand(3, 8, 3))
    assert torch.equal(layers[0](x).codes, layers[1](x).codes)
    layers[1].codebook[2] += 100.0
    codes, vectors = layers[1](x).codes, layers[1](x).vectors
    # The last two of six rows belong to codebook 2.
    assert torch.equal(codes[:, :4], layers[0](x).codes[:, :4])
    assert (vectors[:, 4:] > 50).all()
    assert torch.equal(layers[1].decode(codes), vectors)


def test_the_pixel_axis_needs_rows_that_divide() -> None:
    layer = Depthwise(9, 3, 8, axis="pixel")
    with pytest.raises(ShapeError, match="rows divisible by 3"):
        layer(torch.randn(2, 7, 5, 9))
    with pytest.raises(ConfigError):
        Depthwise(9, 3, 8, axis="diagonal")


def test_repeated_codebooks_all_see_one_view() -> None:
    torch.manual_seed(0)
    layer = Repeated(8, 4, 16).eval()
    layer.codebook.copy_(layer.codebook[:1].expand(4, -1, -1).clone())
    codes = layer.encode(torch.randn(50, 8))
    assert (codes == codes[:, :1]).all()


def test_residual_codebooks_quantize_what_is_left_over() -> None:
    torch.manual_seed(0)
    layer = Residual(4, 3, 16).start_from(torch.randn(500, 4)).eval()
    x = torch.randn(20, 4)
    codes = layer.encode(x)
    rest = x
    for level, quantizer in enumerate(layer.levels):
        assert isinstance(quantizer, VectorQuantizer)
        expected = torch.cdist(rest, quantizer.codebook).argmin(1)
        assert torch.equal(codes[:, level], expected)
        rest = rest - quantizer.codebook[expected]
    torch.testing.assert_close(layer.decode(codes), x - rest)


def test_more_residual_codebooks_lower_the_distortion() -> None:
    torch.manual_seed(0)
    x = torch.randn(2000, 8)
    errors = []
    for count in (1, 2, 4):
        layer = Residual(8, count, 32)
        for _ in range(30):
            layer(x)
        errors.append(float(layer.eval()(x).metrics["distortion"]))
    assert errors[0] > 1.2 * errors[1] > 1.2 * 1.2 * errors[2]


def test_the_encoder_receives_the_gradient_once_not_once_a_codebook() -> None:
    layer = Residual(4, 3, 16)
    x = torch.randn(10, 4, requires_grad=True)
    layer(x).vectors.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(10, 4))


def test_wrapped_parts_that_learn_through_vectors_still_learn() -> None:
    part = {"quantizer": "product", "num_codebooks": 2, "combine": "sum"}
    layer = Residual(8, 2, 16, part=part)
    layer(torch.randn(60, 8)).vectors.square().sum().backward()
    for level in layer.levels:
        assert isinstance(level, Product)
        assert level.views.grad is not None
        assert level.views.grad.abs().sum() > 0


def test_parts_without_a_codebook_size_need_none() -> None:
    part = {"quantizer": "product", "num_codebooks": 2, "part": "finite_scalar", "levels": (5, 5)}
    layer = Residual(8, 2, part=part)
    assert layer.code_sizes == (5,) * 8
    assert layer(torch.randn(3, 8)).codes.shape == (3, 8)


@pytest.mark.parametrize(
    "layer",
    [
        Residual(8, 2, part={"quantizer": "vector", "codebook_size": 16}),
        Residual(8, 2, part={"quantizer": "product", "num_codebooks": 2, "codebook_size": 16}),
        Product(8, 2, part={"quantizer": "vector", "codebook_size": 16}),
        Product(8, 2, part={"quantizer": "residual", "num_codebooks": 2, "codebook_size": 16}),
        Product(10, 3, 8, part="gumbel", kl_weight=0.5),
        Product(9, 3, part="semantic_hash", bits=4),
        Product(8, 2, 16, gradient="rotation", start="kmeans++", dead="keep"),
    ],
    ids=repr,
)
def test_nested_specs_make_equal_twins(layer: Product | Residual) -> None:
    twin = build(layer.spec())
    twin.load_state_dict(layer.state_dict())
    x = torch.randn(40, layer.dim)
    assert torch.equal(twin.eval().encode(x), layer.eval().encode(x))
    assert twin.spec() == layer.spec()


def test_stacked_and_separate_parts_have_the_same_loss_when_padded() -> None:
    torch.manual_seed(0)
    stacked = Product(10, 3, 16, start="random", dead="keep")
    parts = [VectorQuantizer(width, 16, start="random", dead="keep") for width in (4, 4, 2)]
    for index, part in enumerate(parts):
        part.codebook.copy_(stacked.codebook[index, :, : part.dim])
    x = torch.randn(50, 10)
    torch.testing.assert_close(stacked(x).loss, Product(10, 3, part=parts)(x).loss)


def test_a_slice_of_padding_alone_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave none of 9"):
        Product(9, 4, 16)


def test_residual_codebooks_honour_the_rotation_gradient() -> None:
    gradients = []
    for gradient in ("straight-through", "rotation"):
        torch.manual_seed(0)
        layer = Residual(4, 2, 16, gradient=gradient)
        x = torch.randn(10, 4, requires_grad=True)
        (layer(x).vectors * torch.randn(10, 4)).sum().backward()
        gradients.append(x.grad)
    assert not torch.equal(*gradients)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Product, Residual])
def test_parts_without_codes_are_refused(kind: type) -> None:
    with pytest.raises(ConfigError, match="without codes"):
        kind(8, 2, part="identity")
