"""Parts of words, learned from the texts of two languages together, as numbers.

Parts are built from bytes, so that there is no text without them and none comes back changed
but for its spaces and its Unicode form (NFC).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Self

from smalti.errors import ArtifactError, MissingExtraError, require

# Their numbers are their places: models rely on them.
SPECIAL = ("<pad>", "<eos>", "<unknown>", "<begin>")
PAD, EOS, UNKNOWN, BEGIN = range(len(SPECIAL))
SMALLEST_VOCABULARY = len(SPECIAL) + 256


class Subwords:
    """A vocabulary of parts of words for both languages.

    Args:
        content: What ``to_json`` gave.
    """

    def __init__(self, content: str) -> None:
        try:
            inner: Any = _library().Tokenizer.from_str(content)
        except MissingExtraError:
            raise
        except Exception as error:
            # The library raises nothing narrower.
            raise ArtifactError(f"a saved tokenizer can't be read: {error}") from error
        known = [inner.token_to_id(word) for word in SPECIAL]
        require(
            known == list(range(len(SPECIAL))),
            f"expected a tokenizer whose first tokens are {', '.join(SPECIAL)}",
            ArtifactError,
        )
        # Someone who writes <eos> in a text means these letters.
        inner.encode_special_tokens = True
        self._inner = inner

    @classmethod
    def fit(cls, texts: Iterable[str], vocabulary: int) -> Self:
        """Learn which parts of words are frequent, by byte-pair encoding.

        Args:
            texts: Of all languages that the vocabulary is for.
            vocabulary: How many parts there are to be, the special ones included; few texts
                give fewer.
        """
        require(
            vocabulary >= SMALLEST_VOCABULARY,
            f"expected a vocabulary of at least {SMALLEST_VOCABULARY}, the number of bytes and "
            f"special tokens, got {vocabulary}",
        )
        library = _library()
        inner = library.Tokenizer(library.models.BPE())
        inner.normalizer = library.normalizers.NFC()
        inner.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
        inner.decoder = library.decoders.ByteLevel()
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(library.pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        inner.train_from_iterator(texts, trainer)
        return cls(inner.to_str())

    def __len__(self) -> int:
        size: int = self._inner.get_vocab_size()
        return size

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of each text, with the mark of its end behind them."""
        found = self._inner.encode_batch_fast(list(texts), add_special_tokens=False)
        return [[*encoding.ids, EOS] for encoding in found]

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts of numbers, each in one line; special ones are left out."""
        texts = self._inner.decode_batch([list(ids) for ids in tokens], skip_special_tokens=True)
        # Bytes that are no letters together may hold breaks of lines.
        return [" ".join(text.split()) for text in texts]

    def token(self, number: int) -> str:
        """A number's part of a word, as the vocabulary writes it."""
        token: str = self._inner.id_to_token(number)
        return token

    def to_json(self) -> str:
        """All that is needed to make it again."""
        text: str = self._inner.to_str()
        return text

    def fingerprint(self) -> str:
        """The SHA-256 of what it does."""
        content = json.dumps(json.loads(self.to_json()), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _library() -> Any:
    try:
        return import_module("tokenizers")
    except ImportError as error:
        raise MissingExtraError(
            f"translation needs the package tokenizers: pip install 'smalti[translation]' ({error})"
        ) from error
