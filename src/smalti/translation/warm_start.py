"""A model that begins where a trained autoregressive one ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from smalti.errors import require

if TYPE_CHECKING:
    from smalti.layers.transformer import Transformer
    from smalti.translation.autoregressive import Autoregressive
    from smalti.translation.encoding import SourceEncoder
    from smalti.translation.tables import WordTables


def start_from(
    teacher: Autoregressive,
    words: WordTables,
    encoder: SourceEncoder,
    writers: Sequence[Transformer],
) -> None:
    """Copy a teacher's tables, its encoder, and its decoder's layers.

    Args:
        teacher: The trained model.
        words: Tables; those of another kind or size stay as they are.
        encoder: Of the same size.
        writers: Layers of the same width, each started by the decoder's; further ones stay.
    """
    for name, ours in words.named_children():
        theirs = dict(teacher.words.named_children()).get(name)
        if theirs is None or type(theirs) is not type(ours):
            continue
        if _shapes(theirs) == _shapes(ours):
            ours.load_state_dict(theirs.state_dict())
    _copy(teacher.encoder, encoder, "encoder")
    for writer in writers:
        for theirs, ours in zip(teacher.decoder.blocks, writer.blocks, strict=False):
            _copy(theirs, ours, "layers")
        if writer.depth == teacher.decoder_depth:
            _copy(teacher.decoder.norm, writer.norm, "norm")


def _copy(theirs: nn.Module, ours: nn.Module, what: str) -> None:
    require(
        _shapes(theirs) == _shapes(ours),
        f"can't start from this teacher: its {what} are of another kind or size; train a teacher "
        "with the same dim, depth, heads and ratio",
    )
    ours.load_state_dict(theirs.state_dict())


def _shapes(part: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in part.state_dict().items()}
