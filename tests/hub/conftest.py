"""Tiny random models of seven architectures, and random tables for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
import transformers

from smalti.embeddings import CodedTable

transformers.utils.logging.disable_progress_bar()

ROWS, DIM = 101, 32
SMALL = {"vocab_size": ROWS, "hidden_size": DIM, "num_hidden_layers": 2, "num_attention_heads": 2}
SMALL_DECODER = {**SMALL, "intermediate_size": 37, "num_key_value_heads": 2, "head_dim": 16}
SEQ2SEQ = {
    "vocab_size": ROWS,
    "d_model": DIM,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 40,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "scale_embedding": True,
}


def config_of(name: str) -> Any:
    """The configuration of a tiny model."""
    bert = {**SMALL, "intermediate_size": 37, "max_position_embeddings": 40}
    t5 = {"vocab_size": ROWS, "d_model": DIM, "d_kv": 16, "d_ff": 37, "num_layers": 1}
    kind, settings = {
        "bert": ("Bert", bert),
        "bert-encoder": ("Bert", bert),
        "bert-classifier": ("Bert", bert),
        "gpt2": ("GPT2", {"vocab_size": ROWS, "n_embd": DIM, "n_layer": 2, "n_head": 2}),
        "llama": ("Llama", {**SMALL_DECODER, "tie_word_embeddings": True}),
        "llama-untied": ("Llama", {**SMALL_DECODER, "tie_word_embeddings": False}),
        "gemma3": ("Gemma3Text", {**SMALL_DECODER, "sliding_window": 8}),
        "t5": ("T5", {**t5, "num_heads": 2, "decoder_start_token_id": 0}),
        "marian": ("Marian", SEQ2SEQ),
        "marian-unshared": (
            "Marian",
            {**SEQ2SEQ, "share_encoder_decoder_embeddings": False, "decoder_vocab_size": ROWS},
        ),
        "mbart": ("MBart", {**SEQ2SEQ, "forced_eos_token_id": None}),
    }[name]
    return getattr(transformers, f"{kind}Config")(**settings)


CLASSES = {
    "bert": "BertForMaskedLM",
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "llama-untied": "LlamaForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "t5": "T5ForConditionalGeneration",
    "marian": "MarianMTModel",
    "marian-unshared": "MarianMTModel",
    "mbart": "MBartForConditionalGeneration",
    "bert-encoder": "BertModel",
    "bert-classifier": "BertForSequenceClassification",
}


@pytest.fixture
def make_model() -> Callable[[str], Any]:
    """Makes a tiny random model by its name."""

    def make(name: str) -> Any:
        torch.manual_seed(3)
        model = getattr(transformers, CLASSES[name])(config_of(name))
        for parameter in model.parameters():
            # Biases start at zero, where a lost one would not be noticed.
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, mean=1.0, std=0.1)
        return model.eval()

    return make


@pytest.fixture
def make_table() -> Callable[..., CodedTable]:
    """Makes a table of random codes: 8 parts of 17 codewords, so 5 bits a code."""

    def make(rows: int = ROWS, dim: int = DIM, seed: int = 0) -> CodedTable:
        generator = torch.Generator().manual_seed(seed)
        codes = torch.randint(17, (rows, 8), generator=generator)
        codebooks = torch.randn(8, 1, 17, dim // 8, generator=generator) * 0.3
        return CodedTable.holding(codes, codebooks)

    return make


@pytest.fixture
def make_inputs() -> Callable[[Any], dict[str, torch.Tensor]]:
    """Makes what a model takes: two sequences of seven ids."""

    def make(model: Any) -> dict[str, torch.Tensor]:
        ids = torch.randint(3, ROWS, (2, 7), generator=torch.Generator().manual_seed(5))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = ids.flip(1)
        return inputs

    return make
