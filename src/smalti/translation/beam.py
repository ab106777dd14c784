"""Beam search: the likeliest few beginnings are followed at the same time.

Reference:
    Sutskever, Vinyals, Le, "Sequence to Sequence Learning with Neural Networks", NeurIPS 2014,
    arXiv:1409.3215, section 3.2.

Differs from the paper:
    Finished hypotheses are compared by their log-probability over a power of their length. A
    sentence is done when as many are finished as there are beams, or when nothing that grows
    can become better than the best that is finished. With one beam it is greedy search.
"""

from __future__ import annotations

import torch
from torch import Tensor

from smalti.translation.greedy import CARRIED
from smalti.translation.ids import EOS
from smalti.translation.walks import Walk


class _Sentence:
    """The hypotheses of one sentence.

    Args:
        number: Its place in the batch.
        limit: How many tokens it has at most.
        beam: How many hypotheses are followed.
        penalty: The power of the length.
    """

    def __init__(self, number: int, limit: int, beam: int, penalty: float) -> None:
        self.number, self.limit, self.beam, self.penalty = number, limit, beam, penalty
        self.growing: list[list[int]] = [[] for _ in range(beam)]
        self.finished: list[tuple[float, list[int]]] = []
        self.done = limit == 0

    def grow(self, scores: list[float], choices: list[tuple[int, int]]) -> list[int]:
        """Take the best continuations, likeliest first; which of them go on.

        Args:
            scores: Log-probabilities of whole hypotheses.
            choices: For each of them the hypothesis that it continues, and the token.
        """
        length = len(self.growing[0]) + 1
        kept: list[int] = []
        for rank, (parent, token) in enumerate(choices):
            if token != EOS:
                kept.append(rank)
            elif rank < self.beam:
                self._finish(scores[rank], self.growing[parent], length)
            if len(kept) == self.beam:
                break
        self.growing = [
            [*self.growing[parent], token] for parent, token in (choices[k] for k in kept)
        ]
        if length == self.limit:
            for rank, tokens in zip(kept, self.growing, strict=True):
                self._finish(scores[rank], tokens, length)
        self.done = (
            length == self.limit
            or len(self.finished) >= self.beam
            # A log-probability only falls, and no length divides by more than the longest.
            or self._best_score() >= scores[kept[0]] / (self.limit + 1) ** self.penalty
        )
        return kept

    def best(self) -> list[int]:
        """The tokens of the best hypothesis that is finished."""
        return max(self.finished, key=lambda pair: pair[0])[1] if self.finished else []

    def _best_score(self) -> float:
        return max((score for score, _ in self.finished), default=float("-inf"))

    def _finish(self, score: float, tokens: list[int], length: int) -> None:
        self.finished.append((score / length**self.penalty, tokens))


def beam_search(walk: Walk, limits: list[int], beam: int, penalty: float) -> list[list[int]]:
    """The tokens of the best hypothesis of each sentence, without EOS.

    Args:
        walk: ``beam`` rows a sentence.
        limits: How many tokens each sentence has at most.
        beam: How many hypotheses are followed.
        penalty: The power of the length that log-probabilities are divided by.
    """
    every = [_Sentence(number, limit, beam, penalty) for number, limit in enumerate(limits)]
    sentences, ids = list(every), walk.begin()
    # At first all hypotheses of a sentence are the same, so one of them counts.
    totals = torch.full((len(limits), beam), float("-inf"), device=ids.device)
    totals[:, 0] = 0.0
    while not all(sentence.done for sentence in sentences):
        scores, parents, tokens = _best_continuations(walk.step(ids), totals)
        kept = [_grown(*row) for row in zip(sentences, scores, parents, tokens, strict=True)]
        stays = [place for place, sentence in enumerate(sentences) if not sentence.done]
        if len(stays) > (1 - CARRIED) * len(sentences):
            stays = list(range(len(sentences)))
        elif stays:
            _keep(walk, stays, beam)
        rows, next_ids, next_totals = [], [], []
        for place, old in enumerate(stays):
            for rank in kept[old]:
                rows.append(place * beam + parents[old][rank])
                next_ids.append(tokens[old][rank])
                next_totals.append(scores[old][rank])
        sentences = [sentences[place] for place in stays]
        if rows != list(range(len(rows))):
            walk.follow(torch.tensor(rows, device=ids.device))
        ids = torch.tensor(next_ids, device=ids.device)
        totals = torch.tensor(next_totals, device=ids.device).view(-1, beam)
    return [sentence.best() for sentence in every]


def _best_continuations(
    logits: Tensor, totals: Tensor
) -> tuple[list[list[float]], list[list[int]], list[list[int]]]:
    """Scores, parents and tokens of the best continuations of each sentence.

    Twice as many as beams: at worst all hypotheses of a sentence end here.
    """
    sentences, beam = totals.shape
    words = logits.shape[1]
    logs = logits.log_softmax(dim=-1).add_(totals.view(-1, 1)).view(sentences, beam * words)
    scores, places = logs.topk(2 * beam, dim=1)
    found: tuple[list[list[float]], list[list[int]], list[list[int]]] = (
        scores.tolist(),
        (places // words).tolist(),
        (places % words).tolist(),
    )
    return found


def _grown(
    sentence: _Sentence, scores: list[float], parents: list[int], tokens: list[int]
) -> list[int]:
    """The ranks that go on; a sentence that is done goes on with whatever is likeliest."""
    if sentence.done:
        return list(range(sentence.beam))
    return sentence.grow(scores, list(zip(parents, tokens, strict=True)))


def _keep(walk: Walk, sentences: list[int], beam: int) -> None:
    rows = [place * beam + row for place in sentences for row in range(beam)]
    walk.keep(torch.tensor(rows), torch.tensor(sentences))
