"""A transformer that sees all positions: masks, contexts that are shared, training's attention."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch import nn

from smalti.errors import ConfigError
from smalti.layers import attending
from smalti.layers import lean as lean_module
from smalti.layers.attending import attend, hiding
from smalti.layers.attention import CausalTransformer
from smalti.layers.positions import Sinusoids
from smalti.layers.transformer import Transformer


def shaken(made: Any) -> Any:
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return made.eval()


def test_a_layer_is_torchs_own_encoder_layer() -> None:
    ours = shaken(Transformer(dim=8, depth=1, heads=2, ratio=3))
    theirs = nn.TransformerEncoderLayer(
        8, 2, 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    ).eval()
    block = ours.layers()[0]
    pairs = {
        theirs.self_attn.in_proj_weight: block.attention.inward.weight,
        theirs.self_attn.in_proj_bias: block.attention.inward.bias,
        theirs.self_attn.out_proj.weight: block.attention.outward.weight,
        theirs.self_attn.out_proj.bias: block.attention.outward.bias,
        theirs.linear1.weight: block.dense.widen.weight,
        theirs.linear1.bias: block.dense.widen.bias,
        theirs.linear2.weight: block.dense.narrow.weight,
        theirs.linear2.bias: block.dense.narrow.bias,
        theirs.norm1.weight: block.attention.norm.weight,
        theirs.norm1.bias: block.attention.norm.bias,
        theirs.norm2.weight: block.dense.norm.weight,
        theirs.norm2.bias: block.dense.norm.bias,
    }
    with torch.no_grad():
        for target, value in pairs.items():
            target.copy_(value)
    x = torch.randn(3, 6, 8)
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    expected = ours.norm(theirs(x, src_key_padding_mask=~mask))
    torch.testing.assert_close(ours(x, mask=mask)[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_padding_is_seen_by_nobody(training: bool) -> None:
    made = shaken(Transformer(dim=8, depth=2, heads=2, context_dim=5)).train(training)
    x, context = torch.randn(2, 6, 8), torch.randn(2, 7, 5)
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    context_mask = torch.arange(7) < torch.tensor([[3], [7]])
    out = made(x, context, mask=mask, context_mask=context_mask)
    for row, (length, reach) in enumerate([(6, 3), (4, 7)]):
        alone = made(x[row : row + 1, :length], context[row : row + 1, :reach])
        torch.testing.assert_close(out[row, :length], alone[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_training_computes_the_same_as_the_fused_kernel(
    causal: bool, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bias = hiding(torch.arange(5) < torch.tensor([[5], [3]])) if masked else None
    found = []
    for most in (0, 256):
        monkeypatch.setattr(attending, "MOST_KEYS_IN_MEMORY", most)
        generator = torch.Generator().manual_seed(1)
        inputs = [torch.randn(2, 3, 5, 4, generator=generator).requires_grad_() for _ in range(3)]
        out = attend(*inputs, causal=causal, bias=bias)
        out.square().sum().backward()
        found.append([out, *(item.grad for item in inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_rows_of_a_cache_may_share_a_context() -> None:
    made = shaken(CausalTransformer(dim=8, depth=2, heads=2, context_dim=6))
    x, context = torch.randn(6, 4, 8), torch.randn(2, 5, 6)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    cache = made.new_cache(6, context, context_mask=mask, length=4)
    steps = torch.cat([made.step(item, cache) for item in x.split(1, dim=1)], dim=1)
    # The first three rows share the first context.
    whole = made(x, context.repeat_interleave(3, 0), context_mask=mask.repeat_interleave(3, 0))
    torch.testing.assert_close(steps, whole, atol=1e-5, rtol=1e-5)


def test_a_cache_follows_rows_and_lets_go_of_others() -> None:
    made = shaken(CausalTransformer(dim=8, depth=2, heads=2, context_dim=6))
    x, context = torch.randn(4, 3, 8), torch.randn(2, 5, 6)
    cache = made.new_cache(4, context)
    for item in x[:, :2].split(1, dim=1):
        made.step(item, cache)
    cache.follow(torch.tensor([1, 1, 3, 2]))
    cache.keep(torch.tensor([2, 3]), torch.tensor([1]))
    made_up = torch.cat([x[[3, 2], :2], x[[0, 1], 2:]], dim=1)
    expected = made(made_up, context[[1, 1]])[:, 2:]
    torch.testing.assert_close(made.step(x[[0, 1], 2:], cache), expected, atol=1e-5, rtol=1e-5)


def test_only_causal_layers_have_a_window() -> None:
    with pytest.raises(ConfigError, match="only causal"):
        Transformer(dim=8, depth=1, heads=2, window=3)
    local = CausalTransformer(dim=8, depth=1, heads=2, window=3)
    with pytest.raises(ConfigError, match="take no mask"):
        local(torch.zeros(1, 4, 8), mask=torch.ones(1, 4, dtype=torch.bool))


def test_sinusoids_are_those_of_the_formula_for_any_length() -> None:
    layer = Sinusoids(6)
    long = layer(1000)
    assert torch.equal(layer(5), long[:5])
    # By hand: the third of three rates is 1 / 10,000, and positions are counted from 0.
    expected = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    torch.testing.assert_close(long[0], expected)
    torch.testing.assert_close(long[900, 2], torch.tensor(0.09).sin())
    torch.testing.assert_close(long[2, 3], torch.tensor(2.0).cos())
    assert not list(layer.state_dict())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_inference_computes_the_same_and_no_row_depends_on_others_or_padding(
    causal: bool, half: bool
) -> None:
    kind = CausalTransformer if causal else Transformer
    made = shaken(kind(dim=32, depth=2, heads=2, context_dim=32))
    x, context = torch.randn(3, 13, 32), torch.randn(3, 21, 32)
    lengths, reaches = [13, 2, 8], [4, 21, 17]
    mask = torch.arange(13) < torch.tensor(lengths)[:, None]
    context_mask = torch.arange(21) < torch.tensor(reaches)[:, None]
    lean = made.lean(half=half)
    with torch.no_grad():
        out = lean.whole(x, context, mask=mask, context_mask=context_mask)
        expected = made(x, context, mask=mask, context_mask=context_mask)
        tolerance = 0.2 if half else 1e-5
        torch.testing.assert_close(out[mask], expected[mask], atol=tolerance, rtol=tolerance)
        for row, (length, reach) in enumerate(zip(lengths, reaches, strict=True)):
            some = slice(row, row + 1)
            alone = lean.whole(x[some, :length], context[some, :reach])
            assert torch.equal(alone[0], out[row, :length])


def test_packed_layers_are_made_anew_when_weights_change_and_are_not_copied() -> None:
    made = shaken(Transformer(dim=8, depth=1, heads=2))
    lean, x = made.lean(), torch.randn(1, 4, 8)
    assert made.lean() is lean
    with torch.no_grad():
        made.norm.bias.add_(1.0)
        torch.testing.assert_close(made.lean().whole(x), made(x), atol=1e-5, rtol=1e-5)
    twin = pickle.loads(pickle.dumps(made))
    with torch.no_grad():
        torch.testing.assert_close(twin.lean().whole(x), made(x), atol=1e-5, rtol=1e-5)
    made.load_state_dict({k: 2 * v for k, v in made.state_dict().items()}, assign=True)
    with torch.no_grad():
        torch.testing.assert_close(made.lean().whole(x), made(x), atol=1e-4, rtol=1e-4)


def test_long_causal_sequences_need_no_table_of_who_sees_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = shaken(CausalTransformer(dim=8, depth=2, heads=2))
    x = torch.randn(2, 37, 8)
    with torch.no_grad():
        expected = made.lean().whole(x)
        monkeypatch.setattr(lean_module, "MOST_CAUSAL_KEYS", 16)
        torch.testing.assert_close(made.lean().whole(x), expected, atol=1e-5, rtol=1e-5)
