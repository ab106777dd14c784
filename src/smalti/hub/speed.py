"""How long a model takes beside another, on a machine that may be busy with other things."""

from __future__ import annotations

from time import perf_counter

import torch
from torch import Tensor

from smalti.errors import require
from smalti.hub.batching import limit_of
from smalti.hub.library import Model
from smalti.hub.outputs import call


def speed(
    model: Model,
    against: Model,
    *,
    batch: int = 32,
    length: int = 64,
    rounds: int = 9,
    seed: int = 0,
) -> dict[str, float]:
    """The time of a forward pass as a ratio, below 1 where ``model`` is the faster one.

    The two take turns, and the best time of each counts: what else the machine does can only
    make a pass slower, and where a pass takes milliseconds it may hit one model in most rounds.

    Args:
        model: The model.
        against: What it is compared with, such as its original.
        batch: Sequences of a batch.
        length: Tokens of a sequence; fewer where a model takes fewer.
        rounds: How often each is run, after a first time that does not count.
        seed: Chooses the tokens.
    """
    require(rounds > 0, f"rounds must be > 0, got {rounds}")
    limits = [limit_of(one, None) for one in (model, against)]
    length = min([length, *filter(None, limits)])
    rows = min(one.get_input_embeddings().num_embeddings for one in (model, against))
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(rows, (batch, length), generator=generator)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids
    times = [
        (_seconds(model, inputs), _seconds(against, inputs))
        if number % 2
        else (_seconds(against, inputs), _seconds(model, inputs))[::-1]
        for number in range(rounds + 1)
    ][1:]
    mine, other = (min(passes) for passes in zip(*times, strict=True))
    return {
        "ratio": mine / other,
        "seconds": mine,
        "seconds_against": other,
        "batch": batch,
        "length": length,
        "rounds": rounds,
    }


@torch.inference_mode()
def _seconds(model: Model, inputs: dict[str, Tensor]) -> float:
    start = perf_counter()
    call(model, inputs, model.device)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    return perf_counter() - start
