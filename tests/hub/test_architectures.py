"""Seven architectures with a compressed table: replaced, saved, opened again, exported."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors import safe_open

import smalti
from smalti.embeddings import CodedTable, Integer
from smalti.hub import find_group, load_model

TIED = ["bert", "gpt2", "llama", "gemma3", "t5", "marian", "mbart"]
ALL = [*TIED, "llama-untied", "marian-unshared", "bert-classifier"]
GENERATIVE = ["gpt2", "llama", "llama-untied", "gemma3", "t5", "marian", "mbart"]
OPENERS = {
    "bert": transformers.AutoModelForMaskedLM,
    "bert-classifier": transformers.AutoModelForSequenceClassification,
    **dict.fromkeys(["gpt2", "llama", "llama-untied", "gemma3"], transformers.AutoModelForCausalLM),
    **dict.fromkeys(
        ["t5", "marian", "marian-unshared", "mbart"], transformers.AutoModelForSeq2SeqLM
    ),
}
Make = Callable[..., Any]


def stored(directory: Path) -> dict[str, torch.Tensor]:
    found = {}
    for file in directory.glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            found.update({name: tensors.get_tensor(name) for name in tensors.keys()})  # noqa: SIM118
    return found


@torch.no_grad()
def answer(model: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    return model(**inputs).logits


@pytest.fixture(params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def model(name: str, make_model: Make, make_table: Make) -> Any:
    """A model with a compressed table."""
    return smalti.replace_table(make_model(name), make_table())


def test_a_replaced_table_answers_as_the_dense_model_with_that_table(
    name: str, make_model: Make, make_table: Make, make_inputs: Make
) -> None:
    dense, table = make_model(name), make_table()
    dense.get_input_embeddings().weight.data.copy_(table.dense())
    compressed = smalti.replace_table(make_model(name), table)
    inputs = make_inputs(dense)
    torch.testing.assert_close(
        answer(compressed, inputs), answer(dense, inputs), atol=1e-4, rtol=1e-4
    )


def test_the_ordinary_loader_gives_the_same_bits(
    name: str, model: Any, make_inputs: Make, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    again, report = OPENERS[name].from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert type(again) is type(model)
    inputs = make_inputs(model)
    assert torch.equal(answer(again, inputs), answer(model, inputs))
    table = again.get_input_embeddings().table
    assert all(p.dtype == torch.float32 for p in table.parameters())
    assert table.codes.dtype == torch.uint8


def test_codes_are_stored_once_and_no_dense_table_is(
    name: str, model: Any, make_model: Make, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    tensors = stored(tmp_path)
    assert sum(key.endswith("codes") for key in tensors) == 1
    table = model.get_input_embeddings().table
    mine = {key: tensor for key, tensor in tensors.items() if ".table." in f".{key}"}
    assert sum(tensor.nbytes for tensor in mine.values()) == table.size().total
    # What has the table's shape and is not tied to it stays, as the dense model has it.
    original = make_model(name)
    original.save_pretrained(tmp_path / "dense")
    shared = {f"{place}.weight" for place in find_group(original).names}
    left = {k for k, t in stored(tmp_path / "dense").items() if tuple(t.shape) == (101, 32)}
    assert {k for k, t in tensors.items() if tuple(t.shape) == (101, 32)} == left - shared


def test_a_loaded_model_is_saved_as_it_was(model: Any, make_inputs: Make, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "one")
    type(model).from_pretrained(tmp_path / "one").save_pretrained(tmp_path / "two")
    one, two = stored(tmp_path / "one"), stored(tmp_path / "two")
    assert len(one) == len(two)
    for key in (key for key in one if ".table." in key):
        assert one[key].dtype == two[key].dtype
        assert torch.equal(one[key], two[key])
    inputs = make_inputs(model)
    again = type(model).from_pretrained(tmp_path / "two")
    assert torch.equal(answer(again, inputs), answer(model, inputs))


def test_many_small_files_open_as_one(
    name: str, model: Any, make_inputs: Make, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path, max_shard_size="20kB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    inputs = make_inputs(model)
    again = OPENERS[name].from_pretrained(tmp_path)
    assert torch.equal(answer(again, inputs), answer(model, inputs))


def test_copies_and_pickles_answer_alike_and_share_nothing(model: Any, make_inputs: Make) -> None:
    inputs = make_inputs(model)
    expected = answer(model, inputs)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(answer(twin, inputs), expected)
        with torch.no_grad():
            twin.get_input_embeddings().table.codebooks.zero_()
        assert not torch.equal(answer(twin, inputs), expected)
        assert torch.equal(answer(model, inputs), expected)


def test_in_bfloat16_all_is_as_in_the_dense_model_but_the_codes(
    name: str, model: Any, make_model: Make, make_inputs: Make, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    make_model(name).save_pretrained(tmp_path / "dense")
    inputs = make_inputs(model)
    half = {"dtype": torch.bfloat16}
    loaded = OPENERS[name].from_pretrained(tmp_path, **half)
    # Some models keep some parameters in float32.
    dense = dict(OPENERS[name].from_pretrained(tmp_path / "dense", **half).named_parameters())
    types = {key: parameter.dtype for key, parameter in loaded.named_parameters()}
    assert types == {k: dense[k].dtype if k in dense else torch.bfloat16 for k in types}
    cast = OPENERS[name].from_pretrained(tmp_path).to(torch.bfloat16)
    for one in (loaded, cast):
        assert one.get_input_embeddings()(inputs["input_ids"]).dtype == torch.bfloat16
        assert one.get_input_embeddings().table.codes.dtype == torch.uint8
        assert answer(one, inputs).dtype == torch.bfloat16
    # Not their answers: models also keep buffers in float32 when they are loaded so.
    vectors = [one.get_input_embeddings()(inputs["input_ids"]) for one in (loaded, cast)]
    assert torch.equal(*vectors)


@pytest.mark.parametrize("name", TIED)
def test_a_tied_head_scores_with_the_table(model: Any, make_table: Make) -> None:
    hidden = torch.randn(3, 32, generator=torch.Generator().manual_seed(1))
    head = model.get_output_embeddings()
    expected = hidden.double() @ make_table().dense().double().T
    if head.bias is not None:
        expected += head.bias.double()
    torch.testing.assert_close(head(hidden).double(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", GENERATIVE)
def test_a_loaded_model_generates_what_the_saved_one_does(
    name: str, model: Any, make_inputs: Make, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    again = OPENERS[name].from_pretrained(tmp_path)
    inputs = make_inputs(model)
    inputs.pop("decoder_input_ids", None)
    settings: dict[str, Any] = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    texts = [m.generate(**inputs, **settings, pad_token_id=1) for m in (model, again)]
    assert texts[0].shape[1] >= 6
    assert torch.equal(*texts)


def test_a_dequantized_model_is_the_dense_one_with_its_ties(
    name: str, model: Any, make_model: Make, make_table: Make, make_inputs: Make, tmp_path: Path
) -> None:
    dense = make_model(name)
    dense.get_input_embeddings().weight.data.copy_(make_table().dense())
    again = model.dequantize()
    assert torch.equal(again.get_input_embeddings().weight, make_table().dense())
    assert find_group(again).names == find_group(dense).names
    assert type(again.get_input_embeddings()) is type(dense.get_input_embeddings())
    assert again.all_tied_weights_keys == dense.all_tied_weights_keys
    assert again._tied_weights_keys == dense._tied_weights_keys
    inputs = make_inputs(dense)
    assert torch.equal(answer(again, inputs), answer(dense, inputs))
    again.save_pretrained(tmp_path / "again")
    dense.save_pretrained(tmp_path / "dense")
    assert stored(tmp_path / "again").keys() == stored(tmp_path / "dense").keys()
    smalti.replace_table(again, make_table())


WITHOUT_SMALTI = """
import sys, torch, transformers
for name, class_name in zip(sys.argv[1::2], sys.argv[2::2]):
    kind = getattr(transformers, class_name)
    model, report = kind.from_pretrained(f"{name}/dense", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    with torch.no_grad():
        logits = model(**torch.load(f"{name}/inputs")).logits
    torch.save((logits, model.get_input_embeddings().weight.data), f"{name}/outputs")
assert not any(module.split(".")[0] == "smalti" for module in sys.modules)
"""


@pytest.mark.slow
def test_exports_open_where_smalti_is_not_imported(
    make_model: Make, make_inputs: Make, make_table: Make, tmp_path: Path
) -> None:
    arguments, expected = [], {}
    for name in ALL:
        place = tmp_path / name
        model = smalti.replace_table(make_model(name), make_table())
        smalti.save_model(model, None, place / "small")
        smalti.export_model(place / "small", place / "dense")
        assert "quantization_config" not in (place / "dense" / "config.json").read_text()
        inputs = make_inputs(model)
        torch.save(inputs, place / "inputs")
        arguments += [name, type(model).__name__]
        expected[name] = answer(model, inputs)
    command = [sys.executable, "-c", WITHOUT_SMALTI, *arguments]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300)
    for name in ALL:
        logits, weight = torch.load(tmp_path / name / "outputs")
        assert torch.equal(weight, make_table().dense())
        torch.testing.assert_close(logits, expected[name], atol=1e-5, rtol=1e-5)


def test_a_checked_load_gives_the_same_bits(model: Any, make_inputs: Make, tmp_path: Path) -> None:
    smalti.save_model(model, None, tmp_path / "small")
    again = load_model(tmp_path / "small")
    assert type(again) is type(model)
    assert not again.training
    inputs = make_inputs(model)
    assert torch.equal(answer(again, inputs), answer(model, inputs))


@pytest.mark.parametrize("name", ["bert"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_checkpoint_opens_as_other_classes_of_its_family(
    model: Any, make_inputs: Make, tmp_path: Path, dtype: torch.dtype
) -> None:
    model.save_pretrained(tmp_path)
    model = type(model).from_pretrained(tmp_path).to(dtype)
    inputs = make_inputs(model)
    with torch.no_grad():
        expected = model.bert(**inputs).last_hidden_state
    encoder = transformers.AutoModel.from_pretrained(tmp_path, dtype=dtype)
    classifier = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path, dtype=dtype
    )
    for bert in (encoder, classifier.bert):
        assert {p.dtype for p in bert.parameters()} == {dtype}
        with torch.no_grad():
            assert torch.equal(bert(**inputs).last_hidden_state, expected)


@pytest.mark.parametrize("name", ["bert"])
def test_a_part_of_a_model_can_be_saved_by_itself(
    model: Any, make_inputs: Make, tmp_path: Path
) -> None:
    model.bert.save_pretrained(tmp_path)
    again = transformers.AutoModel.from_pretrained(tmp_path)
    inputs = make_inputs(model)
    with torch.no_grad():
        expected = model.bert(**inputs).last_hidden_state
        assert torch.equal(again(**inputs).last_hidden_state, expected)


@pytest.mark.parametrize("name", ["bert-encoder"])
def test_an_encoders_checkpoint_opens_with_a_tied_head(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    masked = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path)
    hidden = torch.randn(3, 32)
    head = masked.get_output_embeddings()
    expected = hidden @ model.get_input_embeddings().weight.T + head.bias
    torch.testing.assert_close(head(hidden), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_head_that_differs_from_the_table_stays_as_it_is(
    name: str, make_model: Make, make_table: Make, make_inputs: Make, tmp_path: Path
) -> None:
    model = make_model(name)
    head = model.get_output_embeddings()
    head.weight = torch.nn.Parameter(torch.randn(101, 32))
    smalti.replace_table(model, make_table())
    assert model.get_output_embeddings() is head
    model.save_pretrained(tmp_path)
    again = OPENERS[name].from_pretrained(tmp_path)
    inputs = make_inputs(model)
    assert torch.equal(answer(again, inputs), answer(model, inputs))


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_compressing_while_loading_fits_the_checkpoints_table(
    name: str, make_model: Make, make_inputs: Make, tmp_path: Path
) -> None:
    make_model(name).save_pretrained(tmp_path / "dense")
    config = smalti.SmaltiConfig(compressor={"compressor": "integer", "bits": 8})
    model = OPENERS[name].from_pretrained(tmp_path / "dense", quantization_config=config)
    expected = Integer(bits=8).fit(make_model(name).get_input_embeddings().weight)
    assert torch.equal(model.get_input_embeddings().weight, expected.dense())
    model.save_pretrained(tmp_path / "small")
    again = OPENERS[name].from_pretrained(tmp_path / "small")
    inputs = make_inputs(model)
    assert torch.equal(answer(again, inputs), answer(model, inputs))


def test_weight_can_be_read_with_and_without_gradients_and_not_set(
    make_model: Make, make_table: Make
) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    for module in (model.get_input_embeddings(), model.get_output_embeddings()):
        assert torch.equal(module.weight, make_table().dense())
        module.weight.sum().backward()
        assert module.held.codebooks.grad.abs().sum() > 0
        module.held.codebooks.grad = None
        with torch.no_grad():
            assert torch.equal(module.weight, make_table().dense())
        with pytest.raises((AttributeError, KeyError)):
            module.weight = torch.nn.Parameter(torch.zeros(101, 32))


def test_tying_again_changes_nothing(make_model: Make, make_table: Make, make_inputs: Make) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    inputs = make_inputs(model)
    before = answer(model, inputs)
    model.tie_weights()
    assert torch.equal(answer(model, inputs), before)
    assert model.cls.predictions.decoder.bias is model.cls.predictions.bias


def test_a_vocabulary_cannot_be_resized(make_model: Make, make_table: Make) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    with pytest.raises(TypeError, match="not an instance of"):
        model.resize_token_embeddings(200)


def test_a_loaded_models_config_can_be_used_to_load_again(
    make_model: Make, make_table: Make, tmp_path: Path
) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, config=model.config)
    assert isinstance(again.get_input_embeddings().table, CodedTable)
