"""Small random BERT models with a vocabulary of their own, for trials that take seconds."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch

from smalti.hub.library import Model, transformers_library

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def small_tokenizer(texts: Iterable[str], rows: int) -> Any:
    """A tokenizer of at most ``rows`` parts of words, learned from texts, in BERT's manner."""
    tokenizers = import_module("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=rows, special_tokens=list(SPECIAL), show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, SPECIAL.index(word)) for word in ("[CLS]", "[SEP]")],
    )
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": word for name, word in zip(names, SPECIAL, strict=True)}
    return transformers_library().PreTrainedTokenizerFast(
        tokenizer_object=inner,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **special,
    )


def small_encoder(rows: int, dim: int, layers: int = 1, *, longest: int = 128, seed: int) -> Model:
    """A random BERT whose table has ``rows`` vectors of width ``dim``."""
    library = transformers_library()
    config = library.BertConfig(
        vocab_size=rows,
        hidden_size=dim,
        intermediate_size=2 * dim,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=longest,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return library.BertModel(config).eval()
