"""The laws that every registered compressor and its table keep; particulars are elsewhere."""

from __future__ import annotations

import copy
import functools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import smalti.embeddings
from smalti.embeddings import (
    CompressedEmbedding,
    Compressor,
    build_compressor,
    build_table,
    compressors,
)
from smalti.errors import ConfigError, DataError, ShapeError, SmaltiError

NAMES = compressors.names()
ROWS, DIM, SPECIAL = 300, 24, (0, 1)
# A row that is not special and that the counts below leave out.
UNSEEN = 250


def vectors() -> Tensor:
    """Rows around a few centres, so that there is something to learn."""
    generator = torch.Generator().manual_seed(1)
    centres = torch.randn(20, DIM, generator=generator)
    near = centres[torch.randint(20, (ROWS,), generator=generator)]
    return 0.5 * near + 0.3 * torch.randn(ROWS, DIM, generator=generator)


def counts() -> Tensor:
    """As in a text: a few rows make up most of it, and a third never occurs."""
    seen = 1000.0 / torch.arange(1, 201)
    return torch.cat([seen.ceil(), torch.zeros(ROWS - 200)])


def example(name: str) -> Compressor:
    return build_compressor(name, **compressors.get(name).example)


def fit(name: str, table: Tensor | None = None, **changed: Any) -> CompressedEmbedding:
    settings: dict[str, Any] = {"counts": counts(), "special": SPECIAL, **changed}
    return example(name).fit(vectors() if table is None else table, **settings).eval()


@functools.cache
def _fitted_once(name: str) -> CompressedEmbedding:
    return fit(name)


def fitted(name: str) -> CompressedEmbedding:
    return copy.deepcopy(_fitted_once(name))


def table_or_refusal(
    make: Callable[[], CompressedEmbedding],
) -> CompressedEmbedding | ConfigError:
    try:
        return make()
    except ConfigError as error:
        return error


def saved_bytes(path: Path) -> int:
    """Bytes of the tensors of a safetensors file, as its header tells."""
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    spans = [entry["data_offsets"] for key, entry in header.items() if key != "__metadata__"]
    return sum(end - start for start, end in spans)


def reloaded(table: CompressedEmbedding, path: Path) -> CompressedEmbedding:
    save_file(table.state_dict(), path)
    twin = build_table(json.loads(json.dumps(table.spec())))
    twin.load_state_dict(load_file(path))
    return twin.eval()


def assert_same_state(one: CompressedEmbedding, other: CompressedEmbedding) -> None:
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def row_error(table: CompressedEmbedding, row: int) -> float:
    return float((table.dense()[row] - vectors()[row]).square().sum())


def test_the_registry_holds_the_whole_family() -> None:
    assert {"full", "integer", "low_rank", "partial", "sparse", "unknown"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_can_be_imported_from_the_package(name: str) -> None:
    kind = compressors.get(name)
    assert getattr(smalti.embeddings, kind.__name__) is kind


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_ids_of_any_shape_become_vectors(name: str, shape: tuple[int, ...]) -> None:
    table = fitted(name)
    for dtype in (torch.int64, torch.int32):
        out = table(torch.full(shape, 7, dtype=dtype))
        assert out.shape == (*shape, DIM)
        assert out.dtype == torch.float32
        assert out.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_a_row_has_the_same_bits_in_any_company(name: str) -> None:
    table = fitted(name)
    dense = table.dense()
    assert dense.shape == (ROWS, DIM)
    assert not dense.requires_grad
    generator = torch.Generator().manual_seed(2)
    for count in (1, 2, 3, 7, 16, 64, 1000):
        ids = torch.randint(ROWS, (count,), generator=generator)
        assert torch.equal(table(ids), dense[ids])
        with torch.no_grad():
            assert torch.equal(table(ids), dense[ids])
    with torch.inference_mode():
        assert torch.equal(table(torch.arange(ROWS)), dense)


@pytest.mark.parametrize("name", NAMES)
def test_looking_up_gives_a_copy_that_may_be_written_into(name: str) -> None:
    table = fitted(name)
    dense = table.dense()
    with torch.no_grad():
        table(torch.tensor([3, 3, 250])).add_(1.0)
        table.logits(torch.ones(2, DIM)).add_(1.0)
    assert torch.equal(table.dense(), dense)


@pytest.mark.parametrize("lead", [(1,), (3,), (100,), (2, 5), (0,), ()])
@pytest.mark.parametrize("name", NAMES)
def test_logits_are_products_with_the_rows(name: str, lead: tuple[int, ...]) -> None:
    table = fitted(name)
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(*lead, DIM, generator=generator).requires_grad_()
    logits = table.logits(hidden)
    torch.testing.assert_close(logits, hidden @ table.dense().T, atol=1e-4, rtol=0)
    back = torch.randn(logits.shape, generator=generator)
    (logits * back).sum().backward()
    assert hidden.grad is not None
    torch.testing.assert_close(hidden.grad, back @ table.dense(), atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_size_is_that_of_the_saved_tensors(name: str, tmp_path: Path) -> None:
    table = fitted(name)
    save_file(table.state_dict(), tmp_path / "table.safetensors")
    size = table.size()
    assert size.total == saved_bytes(tmp_path / "table.safetensors")
    assert size.total == size.codes + size.codebooks + size.kept + size.other
    assert size.as_dict()["total"] == size.total


@pytest.mark.parametrize("name", NAMES)
def test_the_size_is_known_before_fitting(name: str) -> None:
    expected = example(name).expected_size(ROWS, DIM, counts=counts(), special=SPECIAL)
    assert expected == fitted(name).size()


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_table_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    table = fitted(name)
    twin = reloaded(table, tmp_path / "table.safetensors")
    assert twin.spec() == table.spec()
    assert torch.equal(twin.dense(), table.dense())
    assert_same_state(twin, table)


@pytest.mark.parametrize("name", NAMES)
def test_a_table_can_be_built_without_memory_and_filled_later(name: str) -> None:
    """Loaders of large models build on the meta device first."""
    table = fitted(name)
    with torch.device("meta"):
        empty = build_table(table.spec())
    assert all(tensor.is_meta for tensor in empty.state_dict().values())
    twin = copy.deepcopy(empty).to_empty(device="cpu").eval()
    twin.load_state_dict(table.state_dict())
    assert torch.equal(twin.dense(), table.dense())
    # Tensors may also be put in place as they are in the file, half precision included.
    empty.eval().load_state_dict(table.state_dict(), assign=True)
    assert torch.equal(empty.dense(), table.dense())


@pytest.mark.parametrize("name", NAMES)
def test_settings_survive_json(name: str) -> None:
    compressor = example(name)
    spec = json.loads(json.dumps(compressor.spec()))
    twin = build_compressor(spec)
    assert twin == compressor
    assert hash(twin) == hash(compressor)
    assert twin.spec() == compressor.spec()
    assert repr(twin) == repr(compressor)
    assert repr(twin).startswith(type(compressor).__name__ + "(")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_table(name: str) -> None:
    one, other = (fit(name, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert_same_state(one, other)
    assert_same_state(fit(name), fitted(name))


@pytest.mark.parametrize("name", NAMES)
def test_fitting_changes_neither_the_table_nor_the_settings(name: str) -> None:
    compressor, table = example(name), vectors()
    before = compressor.spec()
    made = compressor.fit(table, counts=counts(), special=SPECIAL)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(1.0)
    assert torch.equal(table, vectors())
    assert compressor.spec() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_used_all_the_time_is_not_coded_worse(name: str) -> None:
    weighted = counts()
    weighted[UNSEEN] = 1e9
    table = fit(name, counts=weighted)
    assert (table.rows, table.dim) == (ROWS, DIM)
    assert row_error(table, UNSEEN) <= 1.05 * row_error(fitted(name), UNSEEN) + 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_counts_may_be_left_out_where_a_method_can_do_without(name: str) -> None:
    made = table_or_refusal(lambda: fit(name, counts=None))
    if isinstance(made, ConfigError):
        assert "counts" in str(made)
    else:
        assert made.dense().shape == (ROWS, DIM)


@pytest.mark.parametrize("name", NAMES)
def test_zero_rows_and_equal_rows_do_no_harm(name: str) -> None:
    table = vectors()
    table[[5, 220]] = 0.0
    table[[6, 7, 8, 221, 222]] = table[9].clone()
    assert fit(name, table).dense().isfinite().all()
    assert fit(name, torch.zeros(ROWS, DIM)).dense().abs().max() < 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_tables_of_other_types_of_number_are_taken(name: str, dtype: torch.dtype) -> None:
    given = vectors().to(dtype)
    table = fit(name, given)
    assert table.dense().dtype == torch.float32
    assert_same_state(table, fit(name, given.to(torch.float32)))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_follow_the_type_that_the_model_is_cast_to(name: str) -> None:
    table = fitted(name)
    before = table.dense()
    table.to(torch.bfloat16)
    out = table(torch.tensor([[3, 250]]))
    assert out.dtype == torch.bfloat16
    assert torch.equal(table.dense()[[3, 250]], out[0])
    torch.testing.assert_close(table.dense().float(), before, atol=0.1, rtol=0.1)
    hidden = torch.ones(2, DIM, dtype=torch.bfloat16)
    assert table.logits(hidden).dtype == torch.bfloat16
    table.to(torch.float32)
    assert table(torch.tensor([3])).dtype == torch.float32


@pytest.mark.parametrize("way", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("name", NAMES)
def test_a_copy_is_equal_and_independent(name: str, way: Any) -> None:
    table = fitted(name)
    twin = way(table)
    dense = table.dense()
    assert torch.equal(twin.dense(), dense)
    with torch.no_grad():
        for tensor in (*table.parameters(), *table.buffers()):
            tensor.zero_()
    assert torch.equal(twin.dense(), dense)


@pytest.mark.parametrize("name", NAMES)
def test_looking_up_compiles_to_one_graph(name: str) -> None:
    table = fitted(name)
    ids = torch.tensor([[0, 7, 250], [299, 3, 40]])
    torch._dynamo.reset()
    compiled = torch.compile(table, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(ids), table(ids), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_looking_up_exports_for_any_number_of_ids(name: str) -> None:
    table = fitted(name)
    ids = torch.randint(ROWS, (9, 3), generator=torch.Generator().manual_seed(4))
    any_number = ({0: torch.export.Dim.DYNAMIC},)
    program = torch.export.export(table, (ids[:4],), dynamic_shapes=any_number)
    for some in (ids[:4], ids):
        torch.testing.assert_close(program.module()(some), table(some), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    "bad",
    [vectors()[0], vectors()[None], vectors().long(), torch.zeros(0, DIM), [[1.0, 2.0]]],
    ids=["one row", "three axes", "whole numbers", "no rows", "a list"],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_table_is_refused(name: str, bad: Any) -> None:
    with pytest.raises(ShapeError, match=r"expected a floating-point table \(rows, dim\), got"):
        example(name).fit(bad)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_not_finite_are_named(name: str, bad: float) -> None:
    table = vectors()
    table[17, 3] = bad
    with pytest.raises(DataError, match="row 17"):
        fit(name, table)


@pytest.mark.parametrize("name", NAMES)
def test_counts_that_can_not_be_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match="one count a row"):
        fit(name, counts=counts()[:-1])
    for bad in (-counts(), torch.zeros(ROWS), counts() * torch.nan):
        with pytest.raises(DataError, match="counts"):
            fit(name, counts=bad)
    with pytest.raises(ConfigError, match="special rows"):
        fit(name, special=[ROWS])


@pytest.mark.parametrize("name", NAMES)
def test_ids_that_can_not_be_are_refused(name: str) -> None:
    table = fitted(name)
    for bad in (-1, ROWS):
        with pytest.raises(IndexError, match=rf"0\.\.{ROWS - 1}"):
            table(torch.tensor([3, bad]))
    for dtype in (torch.float32, torch.bool):
        with pytest.raises(ShapeError, match="whole numbers"):
            table(torch.zeros(3, dtype=dtype))
    with pytest.raises(ShapeError, match=rf"\(\.\.\., {DIM}\), got \(2, {DIM + 1}\)"):
        table.logits(torch.zeros(2, DIM + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_table_learns_and_stays_what_is_saved(name: str, tmp_path: Path) -> None:
    """All that can learn gets a gradient; after a step the saved file still gives equal bits."""
    table = fitted(name)
    parameters = [it for it in table.parameters() if it.requires_grad]
    assert parameters
    before = table.dense()
    goal = torch.randn(ROWS, DIM, generator=torch.Generator().manual_seed(6))
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    (table(torch.arange(ROWS)) * goal).sum().backward()
    for parameter in parameters:
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().sum() > 0
    optimizer.step()
    assert not torch.equal(table.dense(), before)
    assert torch.equal(reloaded(table, tmp_path / "table.safetensors").dense(), table.dense())


@pytest.mark.parametrize("name", NAMES)
def test_a_method_starts_untrained_or_says_that_it_can_not(name: str) -> None:
    torch.manual_seed(0)
    table = table_or_refusal(lambda: example(name).start(ROWS, DIM))
    if isinstance(table, ConfigError):
        assert "start" in str(table) or "fit" in str(table)
        return
    assert (table.rows, table.dim) == (ROWS, DIM)
    out = table.train()(torch.arange(64).view(8, 8))
    assert out.shape == (8, 8, DIM)
    assert out.std() > 0
    out.square().sum().backward()
    learned = [it.grad for it in table.parameters() if it.grad is not None]
    assert any(gradient.abs().sum() > 0 for gradient in learned)
    table.eval()
    assert torch.equal(table(torch.arange(ROWS)), table.dense())


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_setting_is_named(name: str) -> None:
    with pytest.raises(SmaltiError, match="no_such_setting"):
        build_compressor(name, **compressors.get(name).example, no_such_setting=1)
