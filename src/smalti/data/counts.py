"""How often each row of a model's table is used: token counts of a text."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smalti.data.tokens import encode, fingerprint
from smalti.errors import DataError, require
from smalti.progress import progress_bar

FORMAT = "smalti token counts"
FORMAT_VERSION = 1
FOREIGN = "they come from another model's tokenizer"


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """Token counts and where they come from.

    Args:
        counts: ``(rows,)`` int64, how often each row of the table is used.
        texts: How many texts were counted.
        sources: Where the texts come from, in words.
        tokenizer: The fingerprint of the tokenizer's vocabulary.
    """

    counts: Tensor
    texts: int
    sources: tuple[str, ...]
    tokenizer: str

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return len(self.counts)

    @property
    def tokens(self) -> int:
        """How many tokens were counted."""
        return int(self.counts.sum())

    @property
    def occurring(self) -> int:
        """How many different tokens occur."""
        return int((self.counts > 0).sum())

    def for_rows(self, rows: int) -> TokenCounts:
        """The same counts for a table of so many rows; rows without a token count zero."""
        require(
            not bool((self.counts[rows:] > 0).any()),
            f"the counts have tokens beyond the table's {rows} rows: {FOREIGN}",
            DataError,
        )
        counts = torch.zeros(rows, dtype=torch.int64)
        shared = min(rows, self.rows)
        counts[:shared] = self.counts[:shared]
        return TokenCounts(counts, self.texts, self.sources, self.tokenizer)

    def save(self, path: str | Path) -> None:
        """Write a JSON file; an older one at that place is replaced in one step."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "tokenizer": self.tokenizer,
            "texts": self.texts,
            "tokens": self.tokens,
            "sources": list(self.sources),
            "counts": self.counts.tolist(),
        }
        path = Path(path)
        draft = path.with_name(f".smalti-{secrets.token_hex(8)}")
        try:
            draft.write_text(json.dumps(content) + "\n", encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise DataError(f"can't write {path}: {error}") from error
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path, tokenizer: Any, rows: int | None = None) -> TokenCounts:
        """Read a file that ``save`` wrote, made with this very tokenizer.

        Args:
            path: The file.
            tokenizer: The model's.
            rows: Rows of the model's table, if it may have others than when it was counted.
        """
        loaded = _parsed(Path(path))
        require(
            loaded.tokenizer == fingerprint(tokenizer),
            f"the counts in {path} were made with another tokenizer; count the texts again",
            DataError,
        )
        return loaded if rows is None else loaded.for_rows(rows)


def count_tokens(
    texts: Iterable[str],
    tokenizer: Any,
    rows: int,
    *,
    sources: Sequence[str] = (),
    progress: bool | None = None,
) -> TokenCounts:
    """Count the tokens of texts as the model sees them.

    Tokens that are added around a text count, padding does not, and long texts are not cut.

    Args:
        texts: Read as a stream; memory does not grow with it.
        tokenizer: Of transformers, or of tokenizers.
        rows: Rows of the model's table.
        sources: Where the texts come from, in words.
        progress: Whether to draw a bar on stderr; None does so on a terminal.
    """
    counts = np.zeros(rows, np.int64)
    seen = 0
    with progress_bar("counting", "tokens", shown=progress) as advance:
        for batch in encode(texts, tokenizer):
            seen += len(batch.lengths)
            highest = int(batch.ids.max(initial=0))
            require(
                highest < rows,
                f"expected tokens below the table's {rows} rows, got {highest}: {FOREIGN}",
                DataError,
            )
            counts += np.bincount(batch.ids, minlength=rows)
            advance(len(batch.ids))
    require(seen > 0, "expected at least one text to count tokens of, got none", DataError)
    return TokenCounts(torch.from_numpy(counts), seen, tuple(sources), fingerprint(tokenizer))


def _parsed(path: Path) -> TokenCounts:
    require(path.is_file(), f"there is no file {path}", DataError)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        require(
            isinstance(content, dict) and content.get("format") == FORMAT,
            f"{path} does not hold token counts; make such a file by counting texts",
            DataError,
        )
        require(
            content["format_version"] == FORMAT_VERSION,
            f"{path} has format version {content['format_version']}, this smalti reads "
            f"{FORMAT_VERSION}; count the texts again",
            DataError,
        )
        counts = torch.tensor(content["counts"], dtype=torch.int64)
        sources = tuple(str(source) for source in content["sources"])
        loaded = TokenCounts(counts, int(content["texts"]), sources, str(content["tokenizer"]))
        sound = counts.dim() == 1 and bool((counts >= 0).all())
        require(
            sound and loaded.tokens == content["tokens"],
            f"{path} is damaged: its counts do not add up to its tokens; count the texts again",
            DataError,
        )
    except OSError as error:
        raise DataError(f"can't read {path}: {error}") from error
    except (KeyError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        raise DataError(f"{path} is damaged: {error}; count the texts again") from error
    return loaded
