"""What codes become of tokens' vectors, in training and for inference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from smalti.quantizers import Quantizer, build
from smalti.translation.compressor import Decompressor

BOTTLENECKS = [
    {"quantizer": "vector", "codebook_size": 12, "dim": 6},
    {"quantizer": "product", "codebook_size": 4, "num_codebooks": 2, "dim": 6},
]


@pytest.mark.parametrize("spec", BOTTLENECKS)
@pytest.mark.parametrize("latents", [1, 2, 5])
def test_inference_gives_what_training_gives(spec: dict[str, object], latents: int) -> None:
    quantizer, layers, codes, mask = _made(spec, latents)
    with torch.no_grad():
        expected = layers(quantizer.decode(codes), mask)
        out = layers.lean(quantizer, codes, mask, half=False)
        plain = layers.lean(quantizer, codes, None, half=False)
        unmasked = layers(quantizer.decode(codes), None)
    assert out.shape == (3, 8 * latents, 16)
    real = mask.repeat_interleave(8, dim=1)
    torch.testing.assert_close(out[real], expected[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(plain, unmasked, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("spec", BOTTLENECKS)
@pytest.mark.parametrize("half", [False, True])
def test_a_sentence_is_the_same_alone_and_beside_longer_ones(
    spec: dict[str, object], half: bool
) -> None:
    quantizer, layers, codes, mask = _made(spec, 4)
    with torch.no_grad():
        together = layers.lean(quantizer, codes, mask, half=half)
        alone = layers.lean(quantizer, codes[:1, :2], None, half=half)
    assert mask[0].tolist() == [True, True, False, False]
    assert torch.equal(together[:1, :16], alone)


def test_inference_follows_weights_that_change() -> None:
    quantizer, layers, codes, mask = _made(BOTTLENECKS[0], 3)
    with torch.no_grad():
        before = layers.lean(quantizer, codes, mask, half=False)
        layers.mixing[0].dense.weight.mul_(2.0)
        after = layers.lean(quantizer, codes, mask, half=False)
        expected = layers(quantizer.decode(codes), mask)
    assert not torch.allclose(before, after, atol=1e-3)
    real = mask.repeat_interleave(8, dim=1)
    torch.testing.assert_close(after[real], expected[real], atol=1e-5, rtol=1e-5)


def _made(spec: dict[str, object], latents: int) -> tuple[Quantizer, Decompressor, Tensor, Tensor]:
    torch.manual_seed(3)
    quantizer = build({"start": "random", **spec}).eval()
    layers = Decompressor(16, 6, 3).eval()
    sizes = quantizer.code_sizes
    codes = torch.stack([torch.randint(size, (3, latents)) for size in sizes], dim=-1)
    lengths = torch.tensor([min(2, latents), latents, 1])
    return quantizer, layers, codes, torch.arange(latents) < lengths[:, None]
