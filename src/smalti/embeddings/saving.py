"""A compressed table by itself and its directory, with the tokens of its rows if they are known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smalti.artifacts import TENSORS, read_artifact, write_artifact
from smalti.embeddings.base import CompressedEmbedding, build_table
from smalti.embeddings.coded import CodedTable
from smalti.errors import ArtifactError, ConfigError, ShapeError, SmaltiError, require

KIND = "embedding table"
PREFIX, TOKENS, LENGTHS = "table.", "tokens", "token_lengths"


class SavedTable(NamedTuple):
    """What a directory held."""

    table: CompressedEmbedding
    tokens: list[str] | None
    """What each row stands for, where that was saved."""
    origin: str


def save_table(
    table: CompressedEmbedding,
    directory: str | Path,
    tokens: Sequence[str] | None = None,
    origin: str = "",
) -> None:
    """Write a table to a directory: its settings, its numbers, their checksums.

    Args:
        table: What a compressor made.
        directory: Where to; an older artifact there is replaced, anything else is not.
        tokens: What each row stands for.
        origin: Where it comes from, in free words.
    """
    if not isinstance(table, CompressedEmbedding):
        raise ConfigError(f"expected a compressed table to save, got {type(table).__name__}")
    tensors = {f"{PREFIX}{name}": tensor for name, tensor in table.state_dict().items()}
    if tokens is not None:
        require(
            len(tokens) == table.rows,
            f"expected a token for each of {table.rows} rows, got {len(tokens)}",
            ShapeError,
        )
        parts = [token.encode("utf-8", "surrogatepass") for token in tokens]
        tensors[TOKENS] = torch.from_numpy(np.frombuffer(b"".join(parts), np.uint8).copy())
        tensors[LENGTHS] = torch.tensor([len(part) for part in parts], dtype=torch.int32)
    write_artifact(directory, KIND, table.spec(), tensors, origin)


def load_table(directory: str | Path) -> SavedTable:
    """Read a table that :func:`save_table` wrote, after checking it.

    Raises:
        ArtifactError: The directory is damaged, foreign or of another version.
    """
    artifact = read_artifact(directory, KIND)
    file = Path(directory) / TENSORS
    try:
        table = build_table(artifact.spec)
    except SmaltiError as error:
        raise ArtifactError(f"{directory} can't be built: {error}") from error
    own = {
        name.removeprefix(PREFIX): tensor
        for name, tensor in artifact.tensors.items()
        if name.startswith(PREFIX)
    }
    try:
        table.load_state_dict(own)
        _check(table)
    except (SmaltiError, RuntimeError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise ArtifactError(f"{file} does not fit its settings: {reason}") from error
    tokens = None
    if TOKENS in artifact.tensors:
        tokens = _tokens(artifact.tensors[TOKENS], artifact.tensors[LENGTHS])
    return SavedTable(table.eval(), tokens, artifact.origin)


@torch.no_grad()
def _check(table: CompressedEmbedding) -> None:
    """Look at every code; a code beyond its codebook would read what is not its own."""
    for part in table.modules():
        if isinstance(part, CodedTable):
            for ids in torch.arange(part.rows).split(1 << 16):
                highest = int(part.take_codes(ids).max())
                require(
                    highest < part.codebook_size,
                    f"expected codes below {part.codebook_size}, got {highest}",
                    ArtifactError,
                )


def _tokens(joined: Tensor, lengths: Tensor) -> list[str]:
    text, ends = joined.numpy().tobytes(), lengths.cumsum(0).tolist()
    return [
        text[end - length : end].decode("utf-8", "surrogatepass")
        for length, end in zip(lengths.tolist(), ends, strict=True)
    ]
