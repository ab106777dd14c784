"""The laws that every registered quantizer keeps; particulars are in tests/quantizers."""

from __future__ import annotations

import copy
import json
import math
import shutil

import pytest
import torch
from torch import Tensor, nn

import smalti
from smalti.errors import ConfigError, DataError, ShapeError, SmaltiError
from smalti.quantizers import Quantized, Quantizer, build, quantizers

NAMES = quantizers.names()
CODED = [name for name in NAMES if name != "identity"]


def make(name: str, seed: int = 0) -> Quantizer:
    torch.manual_seed(seed)
    kind = quantizers.get(name)
    return kind(**kind.example)


def vectors(layer: Quantizer, *lead: int, seed: int = 1) -> Tensor:
    """Normal vectors in the layer's layout: channels last, or on axis 1 for images."""
    x = torch.randn(*lead, layer.dim, generator=torch.Generator().manual_seed(seed))
    return as_layout(layer, x)


def as_layout(layer: Quantizer, x: Tensor) -> Tensor:
    return x.movedim(-1, 1) if type(layer).__name__ == "ChannelsFirst" else x


def trained(name: str, steps: int = 3) -> Quantizer:
    layer = make(name)
    for step in range(steps):
        layer(vectors(layer, 64, 2, seed=step))
    return layer


def state(layer: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in layer.state_dict().items()}


def assert_same_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def assert_finite_state(layer: nn.Module) -> None:
    assert all(tensor.isfinite().all() for tensor in state(layer).values())


def test_the_registry_holds_the_whole_family() -> None:
    expected = "adaptive channels_first depthwise differentiable_centroid differentiable_softmax "
    expected += "finite_scalar gumbel identity lookup_free product repeated residual "
    expected += "semantic_hash soft_em vector"
    assert set(expected.split()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_can_be_imported_from_the_package(name: str) -> None:
    kind = quantizers.get(name)
    assert getattr(smalti.quantizers, kind.__name__) is kind


@pytest.mark.parametrize("name", NAMES)
def test_the_result_has_the_shapes_and_types_of_the_contract(name: str) -> None:
    layer = make(name)
    x = vectors(layer, 4, 3, 5)
    for out in (layer(x), layer.eval()(x)):
        assert isinstance(out, Quantized)
        assert out.vectors.shape == x.shape
        assert out.vectors.dtype == x.dtype
        assert out.codes.shape == (4, 3, 5, layer.num_codebooks)
        assert out.codes.dtype == torch.int64
        assert out.loss.shape == ()
        assert not any(metric.requires_grad for metric in out.metrics.values())
        assert all(metric.shape == () for metric in out.metrics.values())


@pytest.mark.parametrize("name", CODED)
def test_decoding_the_codes_gives_exactly_the_forward_vectors(name: str) -> None:
    layer = trained(name).eval()
    x = vectors(layer, 7, 5)
    out = layer(x)
    assert torch.equal(layer.encode(x), out.codes)
    assert torch.equal(layer.decode(layer.encode(x)), out.vectors)


@pytest.mark.parametrize("name", CODED)
def test_codes_are_in_range(name: str) -> None:
    layer = trained(name)
    x = 10 * vectors(layer, 500, 1)
    for codes in (layer(x).codes, layer.eval()(x).codes):
        for book, size in enumerate(layer.code_sizes):
            assert codes[..., book].min() >= 0
            assert codes[..., book].max() < size


@pytest.mark.parametrize("name", CODED)
def test_bits_per_vector_is_the_sum_of_the_codes_logarithms(name: str) -> None:
    layer = make(name)
    assert layer.bits_per_vector == pytest.approx(sum(math.log2(n) for n in layer.code_sizes))


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_is_deterministic_and_changes_no_state(name: str) -> None:
    layer = trained(name).eval()
    before, x = state(layer), vectors(layer, 64, 1)
    first, second = layer(x), layer(x)
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(first.codes, second.codes)
    assert_same_state(before, state(layer))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_reaches_the_input(name: str, training: bool) -> None:
    layer = trained(name).train(training)
    x = vectors(layer, 32, 2).requires_grad_()
    (layer(x).vectors * vectors(layer, 32, 2, seed=5)).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert x.grad.abs().sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_masked_positions_count_for_nothing(name: str) -> None:
    """Padding may hold anything, NaN included: only the real vectors are learned from."""
    mask = torch.ones(12, 3, dtype=torch.bool)
    mask[8:] = False
    layer = trained(name)
    x = vectors(layer, 12, 3)
    padded = x.clone()
    padded[8:] = torch.nan
    twin = copy.deepcopy(layer)
    # Randomness is drawn for all positions, so both are given the same shapes.
    filled = x.clone()
    filled[8:] = 99.0
    torch.manual_seed(3)
    out = layer(padded, mask)
    torch.manual_seed(3)
    other = twin(filled, mask)
    assert torch.equal(out.vectors[:8], other.vectors[:8])
    torch.testing.assert_close(out.loss, other.loss)
    assert out.loss.isfinite()
    assert_same_state(state(layer), state(twin))
    for metric, value in out.metrics.items():
        torch.testing.assert_close(value, other.metrics[metric], msg=metric)

    layer.eval()
    short, long = layer(x[:8]), layer(padded, mask)
    torch.testing.assert_close(short.loss, long.loss)
    for metric, value in short.metrics.items():
        torch.testing.assert_close(value, long.metrics[metric], msg=metric)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch_works_and_teaches_nothing_false(name: str) -> None:
    layer = trained(name)
    x = vectors(layer, 0, 3).requires_grad_()
    for mode in (True, False):
        out = layer.train(mode)(x)
        assert out.vectors.shape == x.shape
        assert out.codes.shape == (0, 3, layer.num_codebooks)
        assert out.loss.isfinite()
    x = vectors(layer, 16, 1)
    assert layer.train()(x).vectors.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_one_vector_works(name: str) -> None:
    layer = make(name)
    x = as_layout(layer, torch.randn(1, layer.dim))
    assert layer(x).vectors.isfinite().all()
    assert layer.eval()(x).vectors.shape == x.shape


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_million_vectors_work(name: str) -> None:
    layer = trained(name)
    x = vectors(layer, 1_000_000, 1)
    assert layer(x).codes.shape[0] == 1_000_000
    assert layer.eval().encode(x).shape[0] == 1_000_000


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_other_types_of_number_keep_their_type_and_the_first_law(
    name: str, dtype: torch.dtype
) -> None:
    layer = trained(name)
    x = vectors(layer, 32, 2).to(dtype).requires_grad_()
    out = layer(x)
    assert out.vectors.dtype == dtype
    (out.vectors.sum() + out.loss).backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype
    if name in CODED:
        layer.eval()
        assert torch.equal(layer.decode(layer.encode(x)).to(dtype), layer(x).vectors)


@pytest.mark.parametrize("name", NAMES)
def test_casting_a_model_leaves_codebooks_in_float32(name: str) -> None:
    layer = trained(name)
    before = state(layer)
    nn.Sequential(layer).to(torch.bfloat16)
    assert_same_state(before, state(layer))
    x = vectors(layer, 8, 1).to(torch.bfloat16)
    assert layer(x).vectors.dtype == torch.bfloat16


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_autocast_changes_nothing(name: str, training: bool) -> None:
    layer = trained(name).train(training)
    twin = copy.deepcopy(layer)
    x = 5 + vectors(layer, 64, 2)
    torch.manual_seed(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = layer(x)
        if name in CODED and not training:
            assert torch.equal(layer.decode(layer.encode(x)), mixed.vectors)
    torch.manual_seed(2)
    expected = twin(x)
    assert torch.equal(mixed.codes, expected.codes)
    assert torch.equal(mixed.vectors, expected.vectors)
    assert_same_state(state(layer), state(twin))


@pytest.mark.parametrize("name", NAMES)
def test_inference_mode_leaves_no_trace(name: str) -> None:
    layer = trained(name).eval()
    x = vectors(layer, 64, 2)
    with torch.inference_mode():
        codes = layer(x).codes
    assert torch.equal(codes, layer(x).codes)
    out = layer.train()(x.requires_grad_())
    (out.vectors.sum() + out.loss).backward()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_padding_alone_ruins_nothing(name: str) -> None:
    nothing = torch.zeros(8, 2, dtype=torch.bool)
    for layer in (make(name), trained(name)):
        padding = vectors(layer, 8, 2)
        layer(padding, nothing)
        x = vectors(layer, 64, 2)
        assert layer(x).vectors.isfinite().all()
        assert_finite_state(layer)


@pytest.mark.parametrize("size", [1e20, 1e300])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_too_large_to_square_are_refused_and_change_nothing(name: str, size: float) -> None:
    layer = trained(name)
    before = state(layer)
    x = vectors(layer, 16, 2).double()
    x[3, 1, 0] = size
    with pytest.raises(DataError, match="expected finite vectors"):
        layer(x)
    assert_same_state(before, state(layer))
    x[3, 1, 0] = 1e17
    layer(x)
    assert_finite_state(layer)


@pytest.mark.parametrize("name", NAMES)
def test_spec_and_state_make_an_equal_twin(name: str) -> None:
    layer = trained(name)
    spec = json.loads(json.dumps(layer.spec()))
    twin = build(spec)
    twin.load_state_dict(layer.state_dict())
    x = vectors(layer, 32, 2)
    assert twin.spec() == layer.spec()
    torch.manual_seed(9)
    ours = layer(x)
    torch.manual_seed(9)
    assert torch.equal(twin(x).vectors, ours.vectors)
    assert_same_state(state(layer), state(twin))


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_layer_comes_back_equal(name: str, tmp_path: object) -> None:
    layer = trained(name).eval()
    directory = f"{tmp_path}/layer"
    smalti.save(layer, directory)
    twin = smalti.load(directory)
    x = vectors(layer, 16, 2)
    assert torch.equal(twin(x).vectors, layer(x).vectors)
    assert_same_state(state(layer), state(twin))
    assert not twin.training


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_result(name: str) -> None:
    results = []
    for _ in range(2):
        layer = make(name, seed=4)
        out = [layer(vectors(layer, 50, 1, seed=step)) for step in range(4)]
        results.append((state(layer), out[-1].vectors.detach()))
    assert torch.equal(results[0][1], results[1][1])
    assert_same_state(results[0][0], results[1][0])


@pytest.mark.parametrize("name", NAMES)
def test_a_frozen_layer_learns_nothing_while_its_model_trains(name: str) -> None:
    layer = trained(name)
    model = nn.Sequential(layer).train()
    layer.freeze()
    model.train()
    before = state(layer)
    x = vectors(layer, 64, 1).requires_grad_()
    out = model(x)
    (out.vectors.sum() + out.loss).backward()
    assert not any(parameter.requires_grad for parameter in layer.parameters())
    assert_same_state(before, state(layer))
    assert x.grad is not None
    with pytest.raises(ConfigError, match="frozen"):
        layer.start_from(vectors(layer, 64, 1))
    assert layer.unfreeze().train().training


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_are_not_finite_are_refused_and_change_nothing(name: str, bad: float) -> None:
    layer = trained(name)
    before = state(layer)
    x = vectors(layer, 16, 2)
    x[3, 1, 0] = bad
    with pytest.raises(DataError, match="NaN or infinite"):
        layer(x)
    with pytest.raises(DataError, match="NaN or infinite"):
        layer.encode(x)
    assert_same_state(before, state(layer))


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_width_names_both_shapes(name: str) -> None:
    layer = make(name)
    x = as_layout(layer, torch.zeros(4, 2, layer.dim + 1))
    with pytest.raises(ShapeError, match=rf"{layer.dim}.*got \({', '.join(map(str, x.shape))}\)"):
        layer(x)


@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_and_wrong_masks_are_refused(name: str) -> None:
    layer = make(name)
    x = vectors(layer, 4, 2)
    with pytest.raises(ShapeError):
        layer(x.long())
    with pytest.raises(ShapeError, match="mask"):
        layer(x, torch.ones(4, 3, dtype=torch.bool))
    with pytest.raises(ShapeError, match="mask"):
        layer(x, torch.ones(4, 2))


@pytest.mark.parametrize("name", CODED)
def test_codes_out_of_range_are_refused(name: str) -> None:
    layer = trained(name)
    codes = layer.encode(vectors(layer, 4, 2))
    for book, size in enumerate(layer.code_sizes):
        for bad in (-1, size):
            wrong = codes.clone()
            wrong[2, 0, book] = bad
            with pytest.raises(DataError, match=rf"in 0\.\.{size - 1}, got"):
                layer.decode(wrong)
    with pytest.raises(ShapeError):
        layer.decode(codes.float())
    with pytest.raises(ShapeError):
        layer.decode(torch.cat([codes, codes], dim=-1))


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_names_the_known_ones(name: str) -> None:
    kind = quantizers.get(name)
    with pytest.raises(SmaltiError, match="no_such_setting"):
        build({"quantizer": name, **kind.example, "no_such_setting": 1})


@pytest.mark.parametrize("name", NAMES)
def test_starting_from_a_stream_of_batches_works(name: str) -> None:
    layer = make(name)
    layer.start_from(vectors(layer, 20, 2, seed=seed) for seed in range(3))
    assert layer.eval()(vectors(layer, 5, 2)).vectors.isfinite().all()
    if name != "identity":
        with pytest.raises(DataError, match="at least one vector"):
            make(name).start_from([])


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_compiles_to_one_graph(name: str) -> None:
    layer = trained(name).eval()
    x = vectors(layer, 16, 2)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    out, expected = compiled(x), layer(x)
    assert torch.equal(out.codes, expected.codes)
    torch.testing.assert_close(out.vectors, expected.vectors)


@pytest.mark.parametrize("name", NAMES)
def test_evaluation_exports_for_any_number_of_vectors(name: str) -> None:
    layer = trained(name).eval()
    any_number = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(layer, (vectors(layer, 16, 2),), dynamic_shapes=any_number)
    for count in (16, 33):
        x = vectors(layer, count, 2)
        assert torch.equal(program.module()(x)[1], layer(x).codes)


@pytest.mark.parametrize("name", NAMES)
def test_a_graph_compiled_before_the_first_batch_starts_from_data_once(name: str) -> None:
    layer = make(name)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for step in range(3):
        assert compiled(vectors(layer, 256, 1, seed=step)).vectors.isfinite().all()
    assert all(bool(flag) for key, flag in layer.state_dict().items() if key.endswith("started"))


@pytest.mark.parametrize("name", NAMES)
def test_training_compiles_to_one_graph_and_learns_the_same(name: str) -> None:
    layer = trained(name)
    twin = copy.deepcopy(layer)
    torch._dynamo.reset()
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for step in range(3):
        x = vectors(layer, 64, 2, seed=20 + step).requires_grad_()
        y = x.detach().clone().requires_grad_()
        torch.manual_seed(step)
        out = layer(x)
        torch.manual_seed(step)
        other = compiled(y)
        (out.vectors.sum() + out.loss).backward()
        (other.vectors.sum() + other.loss).backward()
        torch.testing.assert_close(out.vectors, other.vectors)
        torch.testing.assert_close(x.grad, y.grad)
    for key, tensor in layer.state_dict().items():
        torch.testing.assert_close(tensor, twin.state_dict()[key], msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_training_exports(name: str) -> None:
    for layer in (make(name), trained(name)):
        x = vectors(layer, 16, 2)
        program = torch.export.export(layer, (x,))
        assert program.module()(x)[1].shape == layer(x).codes.shape


@pytest.mark.slow
# A compiler is not among what pip installs; the tests above trace without one.
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_inductor_compiles_where_there_is_a_compiler(name: str, training: bool) -> None:
    layer = trained(name).train(training)
    x = vectors(layer, 16, 2)
    torch._dynamo.reset()
    out = torch.compile(copy.deepcopy(layer), fullgraph=True)(x)
    assert out.codes.shape == (16, 2, layer.num_codebooks)
    if not training:
        # In training the compiler draws random numbers of its own.
        assert torch.equal(out.codes, layer(x).codes)
