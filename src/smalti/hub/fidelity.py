"""How closely a changed model does what its original does, without any labels.

Sentence vectors are compared by their cosines and by whether texts keep their neighbours;
language models by their hidden states and by what they expect at each position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings.neighbours import nearest_others, shared_neighbours
from smalti.errors import ShapeError, require
from smalti.hub.batching import Batches
from smalti.hub.library import Model
from smalti.hub.outputs import TokenModel, TokenOutputs

NEIGHBOURS = 10
# Of the tokens of a text, the share that masked models have to guess, as in their training.
MASKED = 0.15


def vector_fidelity(original: Tensor, changed: Tensor) -> dict[str, float | None]:
    """How close vectors ``(texts, dim)`` are to the original ones.

    Returns:
        ``mean_cosine``; ``cosine_percentile_5``, which one text in twenty does not reach; and
        ``same_neighbours``, the share of each text's ten nearest texts that stay the same (None
        with so few texts that it would say nothing).
    """
    require(
        original.shape == changed.shape and original.dim() == 2 and len(original) > 0,
        f"expected vectors of the same texts and width, got {tuple(original.shape)} and "
        f"{tuple(changed.shape)}",
        ShapeError,
    )
    cosines = functional.cosine_similarity(original.double(), changed.double(), dim=1)
    many = len(original) > 2 * NEIGHBOURS
    return {
        "mean_cosine": float(cosines.mean()),
        "cosine_percentile_5": _low(cosines),
        "same_neighbours": neighbour_overlap(original, changed) if many else None,
    }


def neighbour_overlap(original: Tensor, changed: Tensor, neighbours: int = NEIGHBOURS) -> float:
    """The share of each text's nearest texts, by cosine, that are nearest after the change too."""
    require(
        0 < neighbours < len(original),
        f"expected more texts than neighbours, got {len(original)} and {neighbours}",
    )
    rows = torch.arange(len(original))
    before, _ = nearest_others(original, rows, neighbours)
    after, _ = nearest_others(changed, rows, neighbours)
    return shared_neighbours(before, after).double().mean().item()


def class_fidelity(original: Tensor, changed: Tensor) -> dict[str, float]:
    """How often two classifiers' scores ``(texts, classes)`` choose the same class."""
    same = original.argmax(dim=1) == changed.argmax(dim=1)
    return {"same_class": float(same.double().mean())}


def token_fidelity(
    original: Model,
    changed: Model,
    made: Batches,
    *,
    mask_id: int | None = None,
    special: Sequence[int] = (),
    seed: int = 0,
    progress: bool | None = None,
) -> dict[str, float]:
    """How close a language model is to its original at every position of some texts.

    Args:
        original: A causal or masked language model.
        changed: Another one with the same vocabulary.
        made: The texts.
        mask_id: The token that hides a token, for masked models: some tokens of each text
            are hidden, and only what is expected in their place is compared.
        special: Tokens that are never hidden.
        seed: Chooses the tokens that are hidden.
        progress: Whether to draw a bar on stderr; None does so on a terminal.

    Returns:
        ``mean_cosine`` and ``cosine_percentile_5`` (which one position in twenty does not
        reach) of the last hidden states; ``divergence``, Kullback and Leibler's, of the expected
        tokens from the original's, in nats; ``same_token``, the share of positions with the same
        likeliest token; and how many ``positions`` the last two are of.
    """
    models = TokenModel(original), TokenModel(changed)
    generator = torch.Generator().manual_seed(seed)
    cosines, divergences, same = [], [], []
    for inputs in made.watched("comparing", progress):
        where = compared = inputs["attention_mask"].bool()
        if mask_id is not None:
            compared = _hidden(inputs["input_ids"], where, special, generator)
            ids = inputs["input_ids"].masked_fill(compared, mask_id)
            inputs = {**inputs, "input_ids": ids}  # noqa: PLW2901  (what the models are asked)
        with torch.inference_mode():
            before, after = models[0](inputs), models[1](inputs)
            one, other = before.hidden[where].double(), after.hidden[where].double()
            cosines.append(functional.cosine_similarity(one, other, dim=1).cpu())
            for divergence, agrees in _expectations(before, after, compared):
                divergences.append(divergence.cpu())
                same.append(agrees.cpu())
    joined = torch.cat(cosines)
    return {
        "mean_cosine": float(joined.mean()),
        "cosine_percentile_5": _low(joined),
        "divergence": float(torch.cat(divergences).mean()),
        "same_token": float(torch.cat(same).double().mean()),
        "positions": sum(map(len, same)),
    }


def _hidden(
    ids: Tensor, where: Tensor, special: Sequence[int], generator: torch.Generator
) -> Tensor:
    """Which tokens to hide: some that are not special, and the middle one of each text."""
    chosen = torch.rand(where.shape, generator=generator) < MASKED
    chosen &= where & ~torch.isin(ids, torch.tensor(list(special), dtype=torch.int64))
    chosen[torch.arange(len(where)), where.sum(dim=1) // 2] = True
    return chosen & where


def _expectations(
    before: TokenOutputs, after: TokenOutputs, where: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Divergence and agreement at each position, some positions at a time."""
    require(
        before.rows == after.rows,
        f"expected models with the same vocabulary, got {before.rows} and {after.rows} tokens",
        ShapeError,
    )
    for one, other in zip(before.scores(where), after.scores(where), strict=True):
        agrees = one.argmax(dim=1) == other.argmax(dim=1)
        log_one, log_other = one.log_softmax(dim=1), other.log_softmax(dim=1)
        parts = functional.kl_div(log_other, log_one, reduction="none", log_target=True)
        yield parts.sum(dim=1, dtype=torch.float64), agrees


def _low(values: Tensor) -> float:
    """The value that one in twenty does not reach; ``torch.quantile`` refuses many values."""
    return float(values.kthvalue((len(values) - 1) // 20 + 1).values)
