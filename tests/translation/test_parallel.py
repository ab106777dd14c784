"""The plain parallel translator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from smalti.errors import ConfigError
from smalti.translation import Autoregressive, Decoding, Parallel
from smalti.translation.ids import EOS, PAD

if TYPE_CHECKING:
    from conftest import Language


def small(**settings: int) -> Parallel:
    torch.manual_seed(1)
    return Parallel(40, dim=32, depth=1, decoder_depth=2, heads=2, ratio=2, dropout=0.0, **settings)


@pytest.fixture(scope="module")
def model(language: Language, teacher: Autoregressive) -> Parallel:
    made = small()
    made.start_from_teacher(teacher)
    language.teach(made, 120)
    return made


@pytest.mark.slow
def test_it_learns_and_a_teacher_finds_better_lengths(
    model: Parallel, language: Language, teacher: Autoregressive
) -> None:
    one = language.share_right(model.translate)
    options = Decoding(lengths=3)
    best = language.share_right(lambda x: model.translate(x, options, rescore_with=teacher))
    assert one > 0.1
    assert best >= one


@pytest.mark.slow
@pytest.mark.parametrize("half", [True, False])
def test_a_sentence_alone_is_translated_as_in_a_batch(
    half: bool, model: Parallel, source: Tensor
) -> None:
    options = Decoding(half=half)
    alone = [model.translate(row[row != PAD][None], options)[0] for row in source]
    assert model.translate(source, options) == alone


def test_source_tokens_are_copied_evenly() -> None:
    model = small()
    source = torch.tensor([[7, 8, EOS], [9, EOS, PAD]])
    encoded = model.encoder(model.words, source)
    x, mask = model._copied(source, encoded, torch.tensor([6, 1]))
    # By hand: six places over three tokens; the middle of one place over two tokens.
    expected = torch.tensor([[7, 7, 8, 8, EOS, EOS], [EOS, 9, 9, 9, 9, 9]])
    torch.testing.assert_close(x[0], model.words.read("source", expected[0]))
    torch.testing.assert_close(x[1, :1], model.words.read("source", expected[1, :1]))
    assert mask.tolist() == [[True] * 6, [True] + [False] * 5]


def test_several_lengths_need_someone_to_choose() -> None:
    with pytest.raises(ConfigError, match="rescore_with"):
        small().translate(torch.tensor([[7, EOS]]), Decoding(lengths=2))


def test_a_length_that_differs_too_much_counts_as_the_farthest() -> None:
    model = small(most_difference=1)
    source, target = torch.tensor([[7, EOS]]), torch.tensor([[7, 8, 9, 10, 11, EOS]])
    loss, metrics = model.loss(source, target)
    assert torch.isfinite(loss)
    assert set(metrics) == {"token_nats", "length_nats"}
    with pytest.raises(ConfigError, match="can't tell how likely"):
        model.score(source, target)
