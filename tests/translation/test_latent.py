"""The translator through latents: what it learns, its bounds, and that all ways agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from smalti.embeddings import build_compressor
from smalti.errors import ConfigError
from smalti.quantizers import VectorQuantizer
from smalti.translation import Autoregressive, Decoding, Latent
from smalti.translation.ids import EOS, PAD

if TYPE_CHECKING:
    from conftest import Language

VECTOR = {"quantizer": "vector", "codebook_size": 32}
QUANTIZERS: dict[str, dict[str, Any]] = {
    "vector": VECTOR,
    "soft_em": {"quantizer": "soft_em", "codebook_size": 32, "samples": 3},
    "product": {"quantizer": "product", "num_codebooks": 2, "codebook_size": 8},
    "gumbel": {"quantizer": "gumbel", "codebook_size": 32},
    "semantic_hash": {"quantizer": "semantic_hash", "bits": 5},
}


def small(vocabulary: int = 40, **settings: Any) -> Latent:
    torch.manual_seed(1)
    defaults: dict[str, Any] = {
        "quantizer": VECTOR,
        "compressions": 2,
        "dim": 32,
        "depth": 1,
        "decoder_depth": 2,
        "predictor_depth": 2,
        "heads": 2,
        "ratio": 2,
        "dropout": 0.0,
    }
    return Latent(vocabulary, **{**defaults, **settings})


def shares_right(model: Latent, language: Language) -> dict[str, float]:
    """Which share is right with latents of the target, of another target, and predicted."""
    source, target = language.pairs(200, seed=10_000)
    expected = [language.translated(row[row > EOS].tolist()) for row in source]
    found = {
        "own": model.reconstruct(source, target),
        "other": model.reconstruct(source, target, latents_of=target.roll(1, 0)),
        "predicted": model.translate(source),
    }
    return {
        name: sum(one == two for one, two in zip(rows, expected, strict=True)) / len(expected)
        for name, rows in found.items()
    }


@pytest.fixture(scope="module", params=["causal", "bidirectional"])
def model(request: pytest.FixtureRequest, language: Language, teacher: Autoregressive) -> Latent:
    made = small(decoder=request.param)
    made.start_from_teacher(teacher)
    language.teach(made, 120)
    return made


@pytest.mark.slow
def test_true_latents_bound_it_from_above_and_others_from_below(
    model: Latent, language: Language
) -> None:
    found = shares_right(model, language)
    assert found["own"] > 0.8
    assert found["other"] < 0.1
    assert 0.15 < found["predicted"] <= found["own"]


@pytest.mark.slow
def test_a_cache_changes_nothing(model: Latent, source: Tensor) -> None:
    assert model.translate(source) == model.translate(source, Decoding(cached=False))


@pytest.mark.slow
@pytest.mark.parametrize("half", [True, False])
def test_a_sentence_alone_is_translated_as_in_a_batch(
    half: bool, model: Latent, source: Tensor
) -> None:
    options = Decoding(half=half)
    alone = [model.translate(row[row != PAD][None], options)[0] for row in source]
    assert model.translate(source, options) == alone


@pytest.mark.slow
def test_samples_that_a_teacher_chooses_from_are_as_good_or_better(
    model: Latent, language: Language, teacher: Autoregressive, source: Tensor
) -> None:
    options = Decoding(samples=8)
    one = language.share_right(model.translate)
    best = language.share_right(lambda x: model.translate(x, options, rescore_with=teacher))
    assert best >= one
    alone = model.translate(
        source[:1, : int((source[0] != PAD).sum())], options, rescore_with=teacher
    )
    assert alone == model.translate(source, options, rescore_with=teacher)[:1]


@pytest.mark.parametrize("name", QUANTIZERS)
def test_any_quantizer_is_a_bottleneck(name: str, language: Language) -> None:
    model = small(quantizer=QUANTIZERS[name], latent_dim=16)
    source, target = language.pairs(16, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss, metrics = model.loss(source, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(metrics["token_nats"]))
    assert losses[-1] < losses[0]
    latents = model.latents_of(source, target)
    assert latents.codes.shape == (16, latents.mask.shape[1], model.quantizer.num_codebooks)
    # By hand: as many latents as whole or begun groups of four tokens, the end included.
    lengths = (target != PAD).sum(dim=1)
    assert latents.mask.sum(dim=1).tolist() == [-(-int(length) // 4) for length in lengths]
    assert latents.lengths == lengths.tolist()
    assert len(model.translate(source)) == 16


def test_the_predictor_sees_no_later_latent_and_the_codes_do_not_see_the_source() -> None:
    model = small().eval()
    latents = torch.randn(1, 5, 32, requires_grad=True)
    encoded = model.encoder(model.words, torch.tensor([[7, 8, 9, EOS]]))
    logits = model.predictor(latents, encoded)
    for place in range(5):
        (gradient,) = torch.autograd.grad(
            logits[0, place].square().sum(), latents, retain_graph=True, materialize_grads=True
        )
        reached = {int(other) for other in gradient[0].abs().sum(dim=-1).nonzero()}
        assert reached == set(range(place))
    target = torch.tensor([[7, 8, 9, 10, 11, EOS]])
    codes = [model.latents_of(source, target).codes for source in (target, target + 1 - 1)]
    assert torch.equal(*codes)
    attending = small(compressor_attends=True)
    assert any("cross" in name for name, _ in attending.bottleneck.named_parameters())
    assert not any("cross" in name for name, _ in model.bottleneck.named_parameters())


def test_latents_of_a_target_do_not_depend_on_its_padding() -> None:
    model = small().eval()
    short = torch.tensor([[7, 8, 9, 10, EOS]])
    long = torch.tensor([[7, 8, 9, 10, EOS, PAD, PAD, PAD, PAD], [*range(7, 15), EOS]])
    alone = model.latents_of(short, short)
    together = model.latents_of(long, long)
    assert torch.equal(alone.codes[0], together.codes[0, :2])
    assert together.mask.tolist() == [[True, True, False], [True, True, True]]


def test_known_tokens_fade_from_the_decoder_and_guesses_come() -> None:
    model = small(gold_until=0.5, guesses=0.4)
    assert model._warm_up(0.0) == (1.0, 0.0)
    assert model._warm_up(0.25) == (0.5, 0.0)
    assert model._warm_up(0.5) == (0.0, 0.0)
    # By hand: half of the way from the end of the warm-up to the end of training.
    assert model._warm_up(0.75) == pytest.approx((0.0, 0.2))
    assert small(gold_until=0.0)._warm_up(0.0) == (0.0, 0.0)


def test_the_predictor_reaches_the_compressor_only_on_request(language: Language) -> None:
    source, target = language.pairs(8, seed=1)
    for flag in (False, True):
        model = small(prior_regularises_encoder=flag, gold_until=0.0)
        encoded = model.encoder(model.words, source)
        target = model._rounded_up(target)
        mask = (target != PAD)[:, ::4]
        out, labels = model.bottleneck(model._compressed(encoded, target), mask)
        model.predictor.nats(model._predicted(out, encoded), labels).sum().backward()
        gradient = model.bottleneck.compressor.outward.weight.grad
        assert (gradient is not None) == flag


def test_the_end_is_learned_as_the_number_of_tokens_of_the_last_latent() -> None:
    model = small()
    logits = torch.randn(2, 3, 32 + 1 + 4)
    codes = torch.zeros(2, 3, 1, dtype=torch.int64)
    real = torch.arange(12) < torch.tensor([[6], [12]])
    found = model.predictor.end_nats(logits, codes, real)
    logs = logits[..., 32:].log_softmax(dim=-1)
    # By hand: six tokens are one whole latent and two tokens, twelve are three whole ones.
    expected = -torch.stack([logs[0, 0, 0], logs[0, 1, 2], logs[1, 0, 0], logs[1, 1, 0]])
    torch.testing.assert_close(found[[0, 0, 1, 1], [0, 1, 0, 1]], expected)
    torch.testing.assert_close(found[1, 2], -logs[1, 2, 4])


def test_frozen_codes_stay_while_the_rest_learns(language: Language) -> None:
    model = small()
    source, target = language.pairs(16, seed=1)
    model.loss(source, target)[0].backward()
    model.freeze_codes()
    before = model.latents_of(source, target).codes
    words = model.predictor.head.weight.detach().clone()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-2)
    model.train()
    for _ in range(5):
        optimizer.zero_grad()
        model.loss(source, target)[0].backward()
        optimizer.step()
    assert torch.equal(model.latents_of(source, target).codes, before)
    assert not torch.equal(model.predictor.head.weight, words)


def test_assignments_need_soft_em_and_are_means_over_its_samples(language: Language) -> None:
    with pytest.raises(ConfigError, match="only soft_em"):
        small(predictor_labels="assignments")
    model = small(quantizer=QUANTIZERS["soft_em"], predictor_labels="assignments")
    source, target = language.pairs(8, seed=1)
    target = model._rounded_up(target)
    encoded = model.encoder(model.words, source)
    mask = (target != PAD)[:, ::4]
    out, labels = model.bottleneck(model._compressed(encoded, target), mask)
    assert labels.shape == (*out.codes.shape, 3)
    logits = model._predicted(out, encoded)
    # Independently: cross-entropy against the histogram of the samples.
    shares = torch.nn.functional.one_hot(labels[:, :, 0], 32).float().mean(dim=2)
    logs = model.predictor.by_codebook(logits)[0].log_softmax(dim=-1)
    torch.testing.assert_close(model.predictor.nats(logits, labels), -(shares * logs).sum(dim=-1))


def test_a_teacher_of_another_size_is_refused(teacher: Autoregressive) -> None:
    with pytest.raises(ConfigError, match="can't start from this teacher"):
        small(dim=16).start_from_teacher(teacher)


def test_a_warm_start_leaves_tables_of_another_kind(teacher: Autoregressive) -> None:
    table = build_compressor("low_rank", rank=4).start(40, 32)
    model = small(tables={"shared": table})
    before = {name: value.clone() for name, value in table.state_dict().items()}
    model.start_from_teacher(teacher)
    for name, value in table.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_warm_start_copies_the_teacher(teacher: Autoregressive) -> None:
    model = small(predictor_depth=1)
    model.start_from_teacher(teacher)
    theirs = teacher.decoder.blocks[1].dense.widen.weight
    assert torch.equal(model.writer.layers.blocks[1].dense.widen.weight, theirs)
    first = teacher.decoder.blocks[0].dense.widen.weight
    assert torch.equal(model.predictor.layers.blocks[0].dense.widen.weight, first)
    assert torch.equal(model.words.shared.weight, teacher.words.shared.weight)


def test_bottlenecks_that_can_not_be_predicted_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 65536"):
        small(quantizer={"quantizer": "semantic_hash", "bits": 20})
    with pytest.raises(ConfigError, match="width"):
        small(quantizer=VectorQuantizer(dim=8, codebook_size=4))
    with pytest.raises(ConfigError, match="none"):
        small(quantizer="identity")
    with pytest.raises(ConfigError, match="rescore_with"):
        small().translate(torch.tensor([[7, EOS]]), Decoding(samples=2))
