"""What is particular to Hierarchical; the common contract is in tests/contracts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from smalti.autoencoders import Hierarchical
from smalti.errors import ConfigError
from smalti.quantizers import VectorQuantizer

Shape = tuple[int, ...]


def depthwise(size: int, num_codebooks: int = 5) -> dict[str, Any]:
    return {"quantizer": "depthwise", "num_codebooks": num_codebooks, "codebook_size": size}


def small(levels: int = 3, **changed: Any) -> Hierarchical:
    torch.manual_seed(0)
    settings: dict[str, Any] = {
        "quantizers": [depthwise(8, 2) for _ in range(levels)],
        **{"dim": 8, "width": 16, "hidden": 8, "depth": 1, "stages": 1},
    }
    return Hierarchical(**{**settings, **changed})


def images(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(256, shape, generator=generator).to(torch.uint8)


# Maps, vectors, what is carried down, what is decoded together; top first. From the paper's
# appendix A.2 to A.4 for images of 32 x 32: width 256, five codebooks of width 64.
TWO_LEVELS: list[list[Shape]] = [
    [(256, 4, 4), (256, 8, 8)],
    [(4, 4, 320), (8, 8, 320)],
    [(256, 8, 8)],
    [(256, 16, 16), (256, 16, 16)],
]
THREE_LEVELS: list[list[Shape]] = [
    [(256, 2, 2), (256, 4, 4), (256, 8, 8)],
    [(2, 2, 320), (4, 4, 320), (8, 8, 320)],
    [(256, 4, 4), (256, 8, 8)],
    [(256, 16, 16), (256, 16, 16), (256, 16, 16)],
]


@pytest.mark.parametrize(("levels", "expected"), [(2, TWO_LEVELS), (3, THREE_LEVELS)])
def test_the_shapes_are_the_published_ones(levels: int, expected: list[list[Shape]]) -> None:
    sizes = (256, 128, 128)[:levels]
    model = Hierarchical(quantizers=[depthwise(size) for size in sizes], depth=1).eval()
    pixels = images(1, 3, 32, 32)
    seen: list[list[Shape]] = [[], [], [], []]
    with torch.no_grad():
        seen[0] = [tuple(one.shape[1:]) for one in model.maps(model.network_input(pixels))]
        seen[1] = [tuple(one.shape[1:]) for one in model.vectors(pixels)]
        for place, modules in ((2, model.decoders), (3, model.upsamplers)):
            for module in modules:
                module.register_forward_hook(
                    lambda _, __, out, place=place: seen[place].append(tuple(out.shape[1:]))
                )
        out = model(pixels)
    assert seen == expected
    assert [codes.shape[1:] for codes in out.codes] == [
        (*grid, 5) for grid in [(2, 2), (4, 4), (8, 8)][-levels:]
    ]
    assert out.parameters.shape == (1, 100, 32, 32)
    joined = next(model.decoder[0].children())
    assert joined.in_channels == 256 * levels


def test_the_published_model_has_its_rate_and_about_its_parameters() -> None:
    model = Hierarchical()
    # (16 places x 5 x 8 bits + 64 places x 5 x 7 bits) of 3072 subpixels: 0.94 bits each.
    assert model.bits_per_image(32, 32) == 16 * 5 * 8 + 64 * 5 * 7
    parameters = sum(weight.numel() for weight in model.parameters())
    assert parameters == pytest.approx(22e6, rel=0.15)


@pytest.mark.parametrize("size", [(8, 8), (16, 16), (32, 16), (64, 64)])
def test_one_set_of_weights_serves_growing_images(size: tuple[int, int]) -> None:
    model = small()
    model(images(2, 3, 8, 8))
    model.eval()
    pixels = images(2, 3, *size)
    codes = model.encode(pixels)
    grids = [(size[0] // side, size[1] // side) for side in (8, 4, 2)]
    assert [grid.shape[1:3] for grid in codes] == grids == list(model.grids(*size))
    assert model.decode(codes).shape == (2, 100, *size)


def test_what_comes_from_above_is_repeated_and_added() -> None:
    with_skip, without = small(residual_decode=True), small(residual_decode=False)
    without.load_state_dict(with_skip.state_dict())
    vectors, above = torch.randn(2, 2, 2, 8), torch.randn(2, 16, 2, 2)
    # By hand: every number of what comes from above stands in a square of four.
    square = above.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    torch.testing.assert_close(
        with_skip.carry(1, vectors, above), without.carry(1, vectors, above) + square
    )
    pixels = images(2, 3, 8, 8)
    assert not torch.equal(with_skip.eval()(pixels).parameters, without.eval()(pixels).parameters)


def test_two_levels_have_nothing_to_skip() -> None:
    with_skip, without = small(2, residual_decode=True), small(2, residual_decode=False)
    without.load_state_dict(with_skip.state_dict())
    pixels = images(2, 3, 8, 8)
    assert torch.equal(with_skip.eval()(pixels).parameters, without.eval()(pixels).parameters)


def test_a_level_steers_the_ones_below_it() -> None:
    model = small(2).eval()
    maps = model.maps(model.network_input(images(2, 3, 8, 8)))
    plain = model.descend(maps, lambda _, x: x)
    steered = model.descend(maps, lambda level, x: x + 1 if level == 0 else x)
    assert not torch.equal(plain[1], steered[1])


@pytest.mark.parametrize("left_out", [[0], [2], [0, 1], [1, 2]])
def test_a_level_that_is_left_out_is_a_map_of_zeros(left_out: list[int]) -> None:
    model = small().eval()
    pixels = images(2, 3, 16, 16)
    codes = model.encode(pixels)
    ups = []
    for level, (upsampler, quantizer) in enumerate(
        zip(model.upsamplers, model.levels(), strict=True)
    ):
        up = upsampler(quantizer.decode(codes[level]).permute(0, 3, 1, 2))
        ups.append(up * (level not in left_out))
    expected = model.decoder(torch.cat(ups, dim=1))
    some = [None if level in left_out else grid for level, grid in enumerate(codes)]
    torch.testing.assert_close(model.decode(some), expected)
    assert not torch.allclose(expected, model.decode(codes))


def test_a_coarse_level_is_repeated_before_it_is_doubled_twice() -> None:
    model = small(4, stages=1)
    factors = [upsampler(torch.zeros(1, 8, 1, 1)).shape[-1] for upsampler in model.upsamplers]
    assert factors == [16, 8, 4, 2]
    learned = [
        sum(isinstance(layer, torch.nn.ConvTranspose2d) for layer in upsampler.modules())
        for upsampler in model.upsamplers
    ]
    assert learned == [2, 2, 2, 1]
    x = torch.randn(1, 8, 2, 2)
    repeated = functional.interpolate(x, scale_factor=4)
    torch.testing.assert_close(model.upsamplers[0](x), model.upsamplers[0][1:](repeated))


def test_metrics_are_named_for_their_levels() -> None:
    names = [{name.split("/")[0] for name in small(n)(images(2, 3, 8, 8)).metrics} for n in (2, 3)]
    assert names == [{"top", "bottom"}, {"top", "level1", "bottom"}]
    assert "distortion" in small(1)(images(2, 3, 8, 8)).metrics


def test_the_losses_of_all_levels_are_added() -> None:
    model = small().eval()
    pixels = images(2, 3, 8, 8)
    alone = [
        quantizer(vectors).loss
        for quantizer, vectors in zip(model.levels(), model.vectors(pixels), strict=True)
    ]
    torch.testing.assert_close(model(pixels).loss, torch.stack(alone).sum())


@pytest.mark.parametrize(
    ("quantizer", "codes"),
    [
        ({"quantizer": "vector", "codebook_size": 16, "dim": 4}, 1),
        ({"quantizer": "repeated", "num_codebooks": 2, "codebook_size": 16}, 2),
        ({"quantizer": "residual", "num_codebooks": 3, "codebook_size": 16}, 3),
    ],
)
def test_the_other_arms_of_the_comparison_fit(quantizer: dict[str, Any], codes: int) -> None:
    model = small(quantizers=[quantizer, quantizer])
    assert [grid.shape[-1] for grid in model(images(2, 3, 8, 8)).codes] == [codes, codes]
    assert model.levels()[0].dim == quantizer.get("dim", 8)


def test_levels_may_differ() -> None:
    model = small(quantizers=[VectorQuantizer(4, 32), depthwise(8, 2)])
    assert model.code_sizes == ((32,), (8, 8))
    assert [quantizer.dim for quantizer in model.levels()] == [4, 8]


def test_a_quantizer_serves_one_level_only() -> None:
    shared = VectorQuantizer(8, 16)
    with pytest.raises(ConfigError, match="of its own"):
        small(quantizers=[shared, shared])


@pytest.mark.parametrize("bad", [{"quantizers": []}, {"stages": 0}, {"residual_decode": "yes"}])
def test_impossible_settings_are_refused_at_construction(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        small(**bad)
