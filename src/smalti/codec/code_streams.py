"""Grids of codes as a stream of symbols: level by level, place by place, all grids at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from smalti.codec.frequencies import frequencies
from smalti.codec.symbols import Stream, SymbolReader, SymbolWriter
from smalti.errors import ShapeError, require
from smalti.priors import LevelsPrior, Stepper


@torch.no_grad()
def write_codes(prior: LevelsPrior, codes: Sequence[Tensor]) -> Stream:
    """Code grids under a prior.

    Args:
        prior: Of all levels.
        codes: Grids ``(count, height, width, num_codebooks)``, a level each, top first.
    """
    members = prior.members()
    require(
        len(codes) == len(members),
        f"expected grids of {len(members)} levels, top first, got {len(codes)}",
        ShapeError,
    )
    writer = SymbolWriter()
    for number, member in enumerate(members):
        own = [grid.to(member.here.device) for grid in codes[: number + 1]]
        stepper = member.stepper(len(own[-1]), own[:-1])
        for column in _columns(own[-1], stepper):
            counts = frequencies(stepper.probabilities().cpu().numpy())
            # The stepper refuses what is out of range before the coder sees it.
            stepper.push(column)
            writer.put(column.cpu().numpy(), counts)
    return writer.finish()


@torch.no_grad()
def read_codes(
    prior: LevelsPrior, count: int, stream: Stream, where: str = "the stream of codes"
) -> tuple[Tensor, ...]:
    """The grids that :func:`write_codes` coded, a level each, top first.

    Args:
        prior: The same as in writing.
        count: How many grids a level has.
        stream: What was written.
        where: What the stream is, for messages.
    """
    reader = SymbolReader(stream, where)
    grids: list[Tensor] = []
    for member in prior.members():
        device = member.here.device
        stepper = member.stepper(count, grids)
        columns: list[Tensor] = []
        while not stepper.done:
            counts = frequencies(stepper.probabilities().cpu().numpy())
            column = torch.from_numpy(reader.take(counts)).to(device, torch.int64)
            stepper.push(column)
            columns.append(column)
        level = member.level
        grids.append(torch.stack(columns, dim=1).view(count, *level.grid, level.num_codebooks))
    reader.finish()
    return tuple(grids)


def _columns(codes: Tensor, stepper: Stepper) -> tuple[Tensor, ...]:
    """The codes ``(count,)`` of each place, in the order of the walk."""
    level = stepper.level
    wanted = (stepper.count, *level.grid, level.num_codebooks)
    require(
        tuple(codes.shape) == wanted,
        f"expected codes {wanted}, got {tuple(codes.shape)}",
        ShapeError,
    )
    return codes.flatten(1).unbind(dim=1)
