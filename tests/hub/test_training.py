"""Models with a compressed table learn, with Trainer and without."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import smalti
from smalti.hub import load_model

Make = Callable[..., Any]


def batches() -> list[dict[str, torch.Tensor]]:
    """Sequences that go on and on from a random start: 5 6 7 8 ..."""
    generator = torch.Generator().manual_seed(11)
    starts = torch.randint(3, 90, (64,), generator=generator)
    return [
        {"input_ids": start + torch.arange(8), "labels": start + torch.arange(8)}
        for start in starts
    ]


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_trainer_lowers_the_loss_and_the_codebooks_learn(
    name: str, make_model: Make, make_table: Make, tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    model = smalti.replace_table(make_model(name), make_table())
    table = model.get_input_embeddings().table
    codes, codebooks = table.codes.clone(), table.codebooks.detach().clone()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "run"),
        max_steps=20,
        learning_rate=1e-2,
        per_device_train_batch_size=16,
        logging_steps=1,
        save_steps=20,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=batches())
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 20
    assert sum(losses[-3:]) < 0.8 * sum(losses[:3])
    assert torch.equal(table.codes, codes)
    assert (table.codebooks - codebooks).abs().max() > 1e-3
    # What the trainer saved on its way is what it has now.
    again = load_model(tmp_path / "run" / "checkpoint-20")
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    with torch.no_grad():
        assert torch.equal(again(**inputs).logits, model.eval()(**inputs).logits)


def test_a_loaded_model_trains_as_the_one_that_was_saved(
    make_model: Make, make_table: Make, make_inputs: Make, tmp_path: Path
) -> None:
    model = smalti.replace_table(make_model("t5"), make_table())
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    inputs = make_inputs(model)
    labels = inputs.pop("decoder_input_ids")
    gradients = []
    for one in (model, again):
        one(**inputs, labels=labels).loss.backward()
        gradients.append(one.get_input_embeddings().table.codebooks.grad)
        assert one.get_input_embeddings().table.codebooks.requires_grad
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0


def test_a_tied_tables_gradient_is_that_of_the_dense_model(
    make_model: Make, make_table: Make, make_inputs: Make
) -> None:
    table = make_table()
    dense = make_model("gpt2")
    dense.get_input_embeddings().weight.data.copy_(table.dense())
    small = smalti.replace_table(copy.deepcopy(dense), table)
    inputs = make_inputs(dense)
    for model in (dense, small):
        model(**inputs, labels=inputs["input_ids"]).loss.backward()
    rows = dense.get_input_embeddings().weight.grad
    # By the chain rule: a codeword's gradient is the sum over the rows that have its code.
    codes = table.take_codes(torch.arange(101))
    expected = torch.zeros(8, 1, 17, 4)
    for part in range(8):
        expected[part, 0].index_add_(0, codes[:, part], rows[:, 4 * part : 4 * part + 4])
    torch.testing.assert_close(table.codebooks.grad, expected, atol=1e-5, rtol=1e-3)


def test_gradient_checkpointing_and_input_gradients_work(
    make_model: Make, make_table: Make, make_inputs: Make
) -> None:
    model = smalti.replace_table(make_model("llama"), make_table()).train()
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    inputs = make_inputs(model)
    model(**inputs, labels=inputs["input_ids"]).loss.backward()
    assert model.get_input_embeddings().table.codebooks.grad.abs().sum() > 0


@pytest.mark.slow
def test_a_model_compiles_without_a_break(
    make_model: Make, make_table: Make, make_inputs: Make
) -> None:
    model = smalti.replace_table(make_model("bert"), make_table())
    inputs = make_inputs(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(**inputs).logits, model(**inputs).logits)


def test_a_device_map_is_taken(make_model: Make, make_table: Make, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    model = smalti.replace_table(make_model("llama"), make_table())
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, device_map="cpu")
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert torch.equal(again(ids).logits, model(ids).logits)
