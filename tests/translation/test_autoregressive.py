"""The autoregressive translator: what it learns, and that every way to decode is the same."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from smalti.errors import ConfigError, DataError, ShapeError
from smalti.translation import Autoregressive, Decoding
from smalti.translation.beam import beam_search
from smalti.translation.ids import BEGIN, EOS, PAD
from smalti.translation.walks import CachedWalk

if TYPE_CHECKING:
    from conftest import Language

WAYS = {"greedy": Decoding(), "beam": Decoding(beam=4), "long": Decoding(beam=3, length_penalty=2)}


def tiny(**settings: Any) -> Autoregressive:
    torch.manual_seed(4)
    made = Autoregressive(
        **{
            "vocabulary": 7,
            "dim": 8,
            "depth": 1,
            "decoder_depth": 1,
            "heads": 2,
            "dropout": 0.0,
            **settings,
        }
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape))
    return made.eval()


def test_it_learns_a_small_language(teacher: Autoregressive, language: Language) -> None:
    greedy = language.share_right(teacher.translate)
    beam = language.share_right(lambda source: teacher.translate(source, Decoding(beam=4)))
    assert greedy > 0.6
    assert beam >= greedy


@pytest.mark.parametrize("way", WAYS)
def test_a_cache_changes_nothing(way: str, teacher: Autoregressive, source: Tensor) -> None:
    options = WAYS[way]
    uncached = Decoding(**{**options.__dict__, "cached": False})
    assert teacher.translate(source, options) == teacher.translate(source, uncached)


@pytest.mark.parametrize("way", WAYS)
def test_a_sentence_alone_is_translated_as_in_a_batch(
    way: str, teacher: Autoregressive, source: Tensor
) -> None:
    together = teacher.translate(source, WAYS[way])
    alone = [teacher.translate(row[row != PAD][None], WAYS[way])[0] for row in source]
    assert together == alone


def test_one_beam_is_greedy_search(teacher: Autoregressive, source: Tensor) -> None:
    with torch.inference_mode():
        encoded = teacher.encoder(teacher.words, source)
        limits = [Decoding().longest(length) for length in encoded.lengths()]
        walk = CachedWalk(teacher, encoded, 1, max(limits))
        found = beam_search(walk, limits, 1, 0.7)
    assert found == teacher.translate(source)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.5])
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_translations(penalty: float) -> None:
    model = tiny()
    source = torch.tensor([[4, 5, 6, EOS]])
    options = Decoding(beam=400, length_penalty=penalty, max_ratio=0.0, max_extra=3)
    # All that can be written in three tokens: those that end, and those that are cut off.
    every = [
        [*words, EOS]
        for length in range(3)
        for words in itertools.product([i for i in range(7) if i != EOS], repeat=length)
    ]
    every += [list(words) for words in itertools.product(range(7), repeat=3) if EOS not in words]
    best, best_score = None, float("-inf")
    with torch.no_grad():
        encoded = model.encoder(model.words, source)
        for words in every:
            before = torch.tensor([[BEGIN, *words[:-1]]])
            logs = model.words.logits(model.decode(encoded, before)).log_softmax(-1)[0]
            total = sum(float(logs[place, word]) for place, word in enumerate(words))
            score = total / len(words) ** penalty
            if score > best_score:
                best, best_score = words, score
    assert best is not None
    expected = [word for word in best if word not in {PAD, EOS, BEGIN}]
    assert model.translate(source, options) == [expected]


def test_scores_are_the_sums_of_token_log_probabilities(
    teacher: Autoregressive, language: Language
) -> None:
    source, target = language.pairs(5, seed=3)
    expected = []
    for row in range(5):
        own = target[row][target[row] != PAD][None]
        before = torch.cat([torch.tensor([[BEGIN]]), own[:, :-1]], dim=1)
        encoded = teacher.encoder(teacher.words, source[row : row + 1])
        logits = teacher.words.logits(teacher.decode(encoded, before))[0]
        expected.append(-functional.cross_entropy(logits, own[0], reduction="sum"))
    torch.testing.assert_close(teacher.score(source, target), torch.stack(expected))


def test_the_loss_is_a_mean_over_tokens_and_padding_counts_for_nothing() -> None:
    model = tiny(label_smoothing=0.0)
    source, target = torch.tensor([[4, 5, EOS]]), torch.tensor([[6, 4, 5, EOS]])
    loss, metrics = model.loss(source, target)
    torch.testing.assert_close(loss, -model.score(source, target)[0] / 4)
    torch.testing.assert_close(metrics["token_nats"], loss.detach())
    wider = model.loss(functional.pad(source, (0, 3)), functional.pad(target, (0, 2)))[0]
    torch.testing.assert_close(wider, loss)


def test_no_translation_is_longer_than_the_limit(teacher: Autoregressive, source: Tensor) -> None:
    options = Decoding(max_ratio=0.5, max_extra=1)
    for way in (options, Decoding(beam=3, max_ratio=0.5, max_extra=1)):
        found = teacher.translate(source, way)
        lengths = (source != PAD).sum(dim=1).tolist()
        assert all(len(one) <= length // 2 + 1 for one, length in zip(found, lengths, strict=True))


def test_repeated_tokens_are_left_out_on_request(teacher: Autoregressive) -> None:
    source = torch.tensor([[5, 5, 5, 6, EOS]])
    assert teacher.translate(source) == [[22, 21, 21, 21]]
    assert teacher.translate(source, Decoding(clean_repeats=True)) == [[22, 21]]


def test_untied_tables_are_three(teacher: Autoregressive) -> None:
    names = {name.split(".")[1] for name in tiny(tied=False).state_dict() if "words" in name}
    assert names == {"source", "target", "output"}
    tied = {name.split(".")[1] for name in teacher.state_dict() if "words" in name}
    assert tied == {"shared"}
    with pytest.raises(ConfigError, match="there is no table source"):
        tiny(tables={"source": torch.nn.Embedding(7, 8)})


def test_a_model_in_training_translates_without_dropout_and_goes_on_training() -> None:
    model = tiny(dropout=0.5)
    expected = model.translate(torch.tensor([[4, 5, EOS]]))
    model.train()
    assert model.translate(torch.tensor([[4, 5, EOS]])) == expected
    assert all(part.training for part in model.modules())


def test_ids_that_can_not_be_are_refused(teacher: Autoregressive) -> None:
    good = torch.tensor([[4, EOS]])
    with pytest.raises(DataError, match="another vocabulary"):
        teacher.translate(torch.tensor([[teacher.vocabulary, EOS]]))
    with pytest.raises(DataError, match="padding alone"):
        teacher.translate(torch.tensor([[4, EOS], [PAD, PAD]]))
    with pytest.raises(ShapeError, match="expected source ids"):
        teacher.translate(good.float())
    with pytest.raises(ShapeError, match="as many targets"):
        teacher.loss(good, good.repeat(2, 1))
    with pytest.raises(ConfigError, match="beam"):
        Decoding(beam=0)
