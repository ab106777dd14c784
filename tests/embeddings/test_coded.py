"""The table of codes: decoded as NumPy decodes it, whatever its shape, and never stale."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from smalti.embeddings import CodedTable, Product
from smalti.embeddings.coded import FEW, as_stored, gathered, int8_steps
from smalti.errors import ConfigError, DataError

ROWS = 70


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def made_of(
    parts: int,
    stages: int,
    size: int,
    *,
    width: int = 4,
    shared: bool = False,
    rotated: bool = False,
    precision: str = "float32",
) -> tuple[CodedTable, np.ndarray]:
    """A table, and its rows decoded with NumPy in float64."""
    generator = torch.Generator().manual_seed(size)
    codes = torch.randint(size, (ROWS, parts * stages), generator=generator)
    codes[0], codes[1] = 0, size - 1
    books = normal(1 if shared else parts, stages, size, width)
    rotation = torch.linalg.qr(normal(parts * width, parts * width, seed=1))[0] if rotated else None
    table = CodedTable.holding(codes, books, rotation, parts=parts, precision=precision)
    kept = as_numpy(books, precision)
    expected = np.zeros((ROWS, parts, width))
    for part in range(parts):
        for stage in range(stages):
            book = kept[0 if shared else part, stage]
            expected[:, part] += book[codes[:, part * stages + stage].numpy()]
    rows = expected.reshape(ROWS, parts * width)
    if rotation is not None:
        turn = rotation if precision == "float32" else rotation.half()
        rows = rows @ turn.double().numpy()
    return table.eval(), rows


def as_numpy(books: Tensor, precision: str) -> np.ndarray:
    """Codebooks as they are kept: rounded to float16, or to 127 steps either way."""
    values = books.double().numpy()
    if precision == "float16":
        return values.astype(np.float16).astype(np.float64)
    if precision == "int8":
        steps = np.abs(values).max(axis=(-2, -1), keepdims=True) / 127
        return np.round(values / steps) * steps
    return values


def decoded_by_hand(table: CodedTable) -> Tensor:
    """The rows of one stage of codes, from the parameters as they are now."""
    books = table.codebooks.detach()[:, 0]
    books = books.half().float() if books.dtype == torch.float32 else books
    codes = table.take_codes(torch.arange(table.rows))
    return torch.cat([book[code] for book, code in zip(books, codes.T, strict=True)], dim=1)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    "shape",
    [
        {"parts": 1, "stages": 1},
        {"parts": 6, "stages": 1},
        {"parts": 1, "stages": 5},
        {"parts": 3, "stages": 2},
        {"parts": 3, "stages": 1, "shared": True},
        {"parts": 3, "stages": 2, "shared": True},
        {"parts": 2, "stages": 2, "rotated": True},
        {"parts": 4, "stages": 1, "rotated": True, "shared": True},
        {"parts": 5, "stages": 1, "width": 1},
        {"parts": 2, "stages": 1, "width": 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [2, 5, 256])
def test_rows_are_sums_of_codewords(size: int, shape: dict[str, Any], precision: str) -> None:
    table, expected = made_of(size=size, precision=precision, **shape)
    np.testing.assert_allclose(table.dense().numpy(), expected, atol=3e-5)
    ids = torch.tensor([[5, 1, 0], [69, 1, 44]])
    np.testing.assert_allclose(table(ids).detach().numpy(), expected[ids.numpy()], atol=3e-5)
    for count in (1, FEW, FEW + 1, 60):
        hidden = normal(count, table.dim, seed=2)
        scores = hidden.double().numpy() @ expected.T
        np.testing.assert_allclose(table.logits(hidden).detach().numpy(), scores, atol=3e-4)
        with torch.no_grad():
            np.testing.assert_allclose(table.logits(hidden).numpy(), scores, atol=3e-4)


@pytest.mark.parametrize("size", [2, 3, 5, 17, 129, 256, 257, 300, 4096])
def test_codebooks_of_any_size_work(size: int) -> None:
    table, expected = made_of(parts=3, stages=2, size=size)
    np.testing.assert_allclose(table.dense().numpy(), expected, atol=1e-5)
    hidden = normal(3, table.dim, seed=2)
    scores = hidden.double().numpy() @ expected.T
    np.testing.assert_allclose(table.logits(hidden).detach().numpy(), scores, atol=1e-4)
    bits = int(np.ceil(np.log2(size)))
    assert table.size().codes == int(np.ceil(ROWS * 6 * bits / 8))


def test_codes_come_back() -> None:
    codes = torch.randint(300, (ROWS, 6), generator=torch.Generator().manual_seed(0))
    table = CodedTable.holding(codes, normal(3, 2, 300, 4))
    ids = torch.tensor([3, 69, 3, 0])
    assert torch.equal(table.take_codes(ids), codes[ids])


def test_shared_codebooks_are_stored_once() -> None:
    one, _ = made_of(parts=3, stages=2, size=16, shared=True)
    other, _ = made_of(parts=3, stages=2, size=16)
    assert 3 * one.size().codebooks == other.size().codebooks == 3 * 2 * 16 * 4 * 4
    assert one.size().codes == other.size().codes


def test_whole_number_codebooks_take_a_byte_a_number_and_a_step_a_codebook() -> None:
    table, _ = made_of(parts=3, stages=2, size=16, precision="int8")
    state = table.state_dict()
    assert state["codebooks"].dtype == torch.int8
    assert state["codebooks"].abs().amax(dim=(-2, -1)).eq(127).all()
    assert table.size().codebooks == 3 * 2 * 16 * 4 + 3 * 2 * 4


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_codebooks_are_rounded_to_what_is_stored(precision: str) -> None:
    books = normal(3, 2, 16, 4) * torch.tensor([1e-3, 1.0, 40.0]).view(3, 1, 1, 1)
    found = as_stored(books, precision)
    np.testing.assert_allclose(found.numpy(), as_numpy(books, precision), rtol=1e-6)
    assert torch.equal(as_stored(torch.zeros(1, 1, 2, 4), precision), torch.zeros(1, 1, 2, 4))
    assert int8_steps(books).shape == (3, 2, 1, 1)


def test_every_codebook_learns_by_the_rows_that_use_it() -> None:
    table, _ = made_of(parts=2, stages=1, size=5)
    table(torch.tensor([3, 3, 8])).sum().backward()
    gradient = table.codebooks.grad
    assert gradient is not None
    codes = table.take_codes(torch.arange(ROWS))
    expected = torch.zeros(2, 1, 5, 4)
    for row in (3, 3, 8):
        for part in range(2):
            expected[part, 0, codes[row, part]] += 1.0
    assert torch.equal(gradient, expected)


@pytest.mark.parametrize("places", [(40,), (8, 5), (1,)])
@pytest.mark.parametrize("width", range(1, 17))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_codewords_are_gathered_bit_for_bit(
    dtype: torch.dtype, width: int, places: tuple[int, ...]
) -> None:
    codewords = normal(30, width).to(dtype)
    codewords[3], codewords[4], codewords[5] = torch.nan, torch.inf, -0.0
    for kind in (torch.int32, torch.int64):
        some = torch.randint(30, places, generator=torch.Generator().manual_seed(1)).to(kind)
        expected = functional.embedding(some, codewords)
        with torch.no_grad():
            found = gathered(codewords, some)
        assert found.dtype == dtype
        assert found.shape == expected.shape
        assert torch.equal(found.nan_to_num(nan=99.0), expected.nan_to_num(nan=99.0))


@pytest.mark.parametrize(
    "width",
    [3, 4],
)
def test_no_ids_give_no_vectors_also_without_gradients(width: int) -> None:
    table, _ = made_of(parts=3, stages=1, size=16, width=width)
    with torch.no_grad():
        assert table(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 3 * width)


# Ways in which the codewords of a table change while it is in use.


def step(optimizer: type[torch.optim.Optimizer], **settings: Any) -> Callable[[CodedTable], None]:
    def change(table: CodedTable) -> None:
        learning = optimizer(table.parameters(), lr=0.1, **settings)  # type: ignore[call-arg]
        table(torch.arange(ROWS)).square().sum().backward()
        learning.step()

    return change


def load_other(table: CodedTable, assign: bool = False) -> None:
    other = Product(3, 16).fit(normal(ROWS, 12, seed=9))
    table.load_state_dict(other.state_dict(), assign=assign)


@torch.no_grad()
def edit_in_place(table: CodedTable) -> None:
    table.codebooks[0, 0, :4] += 1.0


@torch.inference_mode()
def edit_in_inference(table: CodedTable) -> None:
    table.codebooks.mul_(2.0)


def replace_parameter(table: CodedTable) -> None:
    table.codebooks = torch.nn.Parameter(2.0 * table.codebooks.detach())


def replace_data(table: CodedTable) -> None:
    table.codebooks.data = 2.0 * table.codebooks.data


def edit_data(table: CodedTable) -> None:
    """As classes that average weights do when they put the average into a model."""
    table.codebooks.data.copy_(2.0 * table.codebooks.data)


def edit_numpy(table: CodedTable) -> None:
    table.codebooks.detach().numpy()[:] *= 2.0


def there_and_back(table: CodedTable) -> None:
    """Rounds to bfloat16; the memory that is freed is likely to be taken again."""
    table.to(torch.bfloat16).to(torch.float32)


CHANGES: dict[str, Callable[[CodedTable], Any]] = {
    "a step": step(torch.optim.SGD),
    "a step of Adam": step(torch.optim.Adam),
    "a step of many at once": step(torch.optim.AdamW, foreach=True),
    "a fused step": step(torch.optim.SGD, fused=True),
    "a fused step of AdamW": step(torch.optim.AdamW, fused=True),
    "loading": load_other,
    "loading by assignment": lambda table: load_other(table, assign=True),
    "an edit": edit_in_place,
    "an edit in inference mode": edit_in_inference,
    "another parameter": replace_parameter,
    "other data": replace_data,
    "an edit of the data": edit_data,
    "an edit through NumPy": edit_numpy,
    "bfloat16": lambda table: table.to(torch.bfloat16),
    "bfloat16 and back": there_and_back,
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", CHANGES)
def test_codewords_that_changed_are_used_at_once(name: str, training: bool, mode: Any) -> None:
    table = Product(3, 16).fit(normal(ROWS, 12)).train(training)
    assert isinstance(table, CodedTable)
    ids = torch.arange(ROWS)
    with mode():
        before = table(ids)
        assert torch.equal(before, table(ids))
    CHANGES[name](table)
    with mode():
        after = table(ids)
    assert not torch.equal(before.float(), after.float())
    assert torch.equal(after, decoded_by_hand(table))
    assert torch.equal(table.dense(), after)


@pytest.mark.parametrize(
    "change",
    [step(torch.optim.AdamW, fused=True), edit_data, edit_numpy],
    ids=["a fused step", "data", "numpy"],
)
def test_evaluation_begins_with_the_codewords_that_training_left(
    change: Callable[[CodedTable], None],
) -> None:
    table = Product(3, 16).fit(normal(ROWS, 12)).eval()
    assert isinstance(table, CodedTable)
    table.dense()
    table.train()
    change(table)
    assert torch.equal(table.eval().dense(), decoded_by_hand(table))


def test_a_table_made_in_inference_mode_can_be_loaded_into_again() -> None:
    ids = torch.arange(ROWS)
    with torch.inference_mode():
        table = CodedTable(ROWS, 12, 3, 1, 16)
        for seed in (1, 2):
            other = Product(3, 16).fit(normal(ROWS, 12, seed=seed))
            table.load_state_dict(other.state_dict())
            assert torch.equal(table(ids), other.dense())


def test_other_parameters_can_be_lent_to_a_table() -> None:
    table, _ = made_of(parts=3, stages=1, size=16)
    ids = torch.arange(ROWS)
    with torch.no_grad():
        plain = table(ids)
        for factor in (2.0, 4.0, 8.0):
            lent = {"codebooks": factor * table.codebooks}
            assert torch.equal(torch.func.functional_call(table, lent, (ids,)), factor * plain)
        assert torch.equal(table(ids), plain)


def test_a_copy_does_not_use_the_originals_codewords() -> None:
    table, _ = made_of(parts=3, stages=1, size=16)
    before = table.dense()
    twin = copy.deepcopy(table)
    with torch.no_grad():
        twin.codebooks.zero_()
    assert twin.dense().eq(0).all()
    assert torch.equal(table.dense(), before)


def test_gradients_are_there_after_a_lookup_without_them() -> None:
    table, _ = made_of(parts=3, stages=2, size=16)
    with torch.no_grad():
        table(torch.arange(ROWS))
    assert table(torch.arange(ROWS)).requires_grad
    assert table.logits(normal(2, 12)).requires_grad


def test_logits_pass_gradients_to_codebooks_for_few_and_many() -> None:
    table, _ = made_of(parts=3, stages=2, size=16, rotated=True)
    hidden = normal(FEW + 4, 12, seed=2)
    back = normal(FEW + 4, ROWS, seed=3)
    found = []
    for some in ([slice(None)], [slice(0, 10), slice(10, None)]):
        table.zero_grad()
        for piece in some:
            (table.logits(hidden[piece]) * back[piece]).sum().backward()
        gradient = table.codebooks.grad
        assert gradient is not None
        found.append(gradient.clone())
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=1e-4)


def test_codes_beyond_the_codebook_are_refused() -> None:
    with pytest.raises(DataError, match=r"in 0\.\.15, got"):
        CodedTable.holding(torch.full((4, 2), 16), normal(2, 1, 16, 4))


@pytest.mark.parametrize(
    "bad",
    [
        {"parts": 5},
        {"parts": 0},
        {"stages": 0},
        {"codebook_size": 1},
        {"shared": 1},
        {"precision": "int4"},
    ],
)
def test_impossible_shapes_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"rows": 9, "dim": 12, "parts": 3, "stages": 1, "codebook_size": 16}
    with pytest.raises(ConfigError):
        CodedTable(**{**good, **bad})
