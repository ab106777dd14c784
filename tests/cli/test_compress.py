"""``smalti compress`` and ``smalti tune table``, in this process, as a new user types them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import smalti
from smalti.data import count_tokens, read_texts
from smalti.embeddings import compressors

from .conftest import Done

transformers = pytest.importorskip("transformers")
DENSE = 400 * 24 * 4
QUICK = ("--method", "product", "--set", "num_codebooks=6", "--set", "codebook_size=16")


@pytest.fixture(autouse=True)
def interrupts_are_heeded() -> Iterator[None]:
    """A test run in the background of a shell starts with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def encoder(small_model: Callable[[str], Path]) -> Path:
    return small_model("encoder")


@pytest.fixture
def data(tmp_path: Path, sentences: list[str], short_file: Path, trained_tokenizer: Any) -> Path:
    """A directory of inputs, good and bad."""
    folder = tmp_path / "data"
    folder.mkdir()
    counts = count_tokens(read_texts(short_file), trained_tokenizer, 400)
    counts.save(folder / "counts.json")
    content = json.loads((folder / "counts.json").read_text())
    (folder / "cut.json").write_text(json.dumps(content)[:300])
    (folder / "zero.json").write_text(json.dumps({**content, "counts": [0] * 400, "tokens": 0}))
    (folder / "other.json").write_text(json.dumps({**content, "tokenizer": "of another"}))
    (folder / "empty.txt").write_text("")
    (folder / "blank.txt").write_text("\n \n")
    (folder / "binary.txt").write_bytes(bytes(range(256)))
    (folder / "latin.txt").write_bytes("caf\u00e9\n".encode("latin-1"))
    (folder / "one.txt").write_text(sentences[0])
    (folder / "columns.csv").write_text("id,text\n" + "\n".join(f"1,{s}" for s in sentences[:20]))
    pairs = [f"{sentences[n]}\t{sentences[n + 9]}\t{n % 7 / 2}" for n in range(30)]
    (folder / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]))
    classes = [f"{sentences[n]}\t{n % 3}" for n in range(30)]
    (folder / "classes.tsv").write_text("\n".join(["text\tlabel", *classes]))
    (folder / "foreign").mkdir()
    (folder / "foreign" / "letter.txt").write_text("Dear reader,")
    return folder


def nothing_here() -> bool:
    return list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("name", compressors.names())
def test_every_method_makes_a_model_that_opens(
    name: str, command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    settings = [
        part
        for key, value in compressors.get(name).example.items()
        for part in ("--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    ]
    arguments = ["compress", encoder, "--text", short_file, "--method", name, *settings]
    done = command(*arguments, "-o", "small", "--json")
    assert done.status == 0, done.err
    told = json.loads(done.out)
    model = smalti.load_model("small")
    table = model.get_input_embeddings().table
    assert told["bytes"] == told["sizes"]["total"] == table.size().total
    assert told["directory"] == str(Path("small").resolve())
    with torch.no_grad():
        assert model(torch.tensor([[2, 50, 3]]))[0].isfinite().all()


def test_what_is_told_to_people(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    done = command("compress", encoder, "--text", text_file, "--size", "20%", "-o", "small")
    assert done.status == 0, done.err
    for words in ("bytes", "float32_bytes", "times_smaller", "output_cosine", "drop_percent"):
        assert words in done.out
    assert f"note: text: {text_file}" in done.err
    assert "Traceback" not in done.err
    card = Path("small/README.md").read_text(encoding="utf-8")
    assert "output cosine" in card


def test_json_is_all_there_is_on_stdout(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    arguments = ("--text", text_file, "--size", "20%", "--json")
    for line in (
        ("compress", encoder, *arguments, "-o", "small"),
        ("compress", encoder, *arguments, "--dry-run"),
        ("tune", "table", encoder, *arguments),
        ("tune", "table", encoder, *arguments, "--dry-run"),
    ):
        done = command(*line)
        assert done.status == 0, done.err
        told = json.loads(done.out, parse_constant=refuse)
        assert told["notes"] == [f"text: {text_file}"]


@pytest.mark.parametrize("how", [("50%",), ("100",), ("0.5", "int8"), ("20", "float16")])
def test_rows_are_kept_by_share_or_by_number(
    how: tuple[str, ...], command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    kept = ("--kept", how[1]) if len(how) > 1 else ()
    arguments = ("--text", short_file, "--keep", how[0], *kept, *QUICK)
    assert command("compress", encoder, *arguments, "-o", "small").status == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    counts = count_tokens(read_texts(short_file), tokenizer, 400).counts
    occurring = int((counts > 0).sum())
    many = int(how[0]) if how[0].isdecimal() else -(-occurring // 2)
    order = sorted(range(400), key=lambda row: (-int(counts[row]), row))
    table = smalti.load_model("small").get_input_embeddings().table
    assert set(table.kept_ids().tolist()) == {0, 1, 2, 3, 4, *order[:many]}
    kind = {"int8": "integer"}.get(how[1] if len(how) > 1 else "", "full")
    assert table.spec()["kept"]["table"] == kind


def test_kept_rows_and_a_size_go_together(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    arguments = ("--text", short_file, "--keep", "20", "--kept", "int8", "--size", "30%")
    done = command("compress", encoder, *arguments, "-o", "small", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["bytes"] <= 0.3 * DENSE


def test_a_nested_method_is_given_as_json(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    rest = {"compressor": "partial", "keep": 30, "kept": "int4", "rest": {"compressor": "unknown"}}
    done = command(
        *("compress", encoder, "--text", short_file, "--method", "partial"),
        *("--set", "keep=10", "--set", "kept=float16", "--set", f"rest={json.dumps(rest)}"),
        *("-o", "small", "--json"),
    )
    assert done.status == 0, done.err
    expected = "10 rows float16, rest 30 rows integer(bits=4), rest unknown()"
    assert json.loads(done.out)["table"] == expected


def test_the_seed_decides_and_threads_are_heeded(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    for name, seed in (("one", "3"), ("same", "3"), ("other", "4")):
        arguments = ("--text", short_file, *QUICK, "--seed", seed, "--threads", "1")
        assert command("compress", encoder, *arguments, "-o", name).status == 0
        assert torch.get_num_threads() == 1
    one, same, other = (
        smalti.load_model(name).get_input_embeddings().table.dense()
        for name in ("one", "same", "other")
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_counts_stand_in_for_a_text_and_that_is_said_aloud(
    command: Callable[..., Done], encoder: Path, data: Path
) -> None:
    arguments = ("--counts", data / "counts.json", "--method", "integer", "-o", "small")
    done = command("compress", encoder, *arguments)
    assert done.status == 0, done.err
    assert "note: no text was given" in done.err
    assert "the counts given" in done.err


@pytest.mark.slow
def test_without_any_text_word_frequencies_are_used_and_that_is_said_aloud(
    command: Callable[..., Done], encoder: Path
) -> None:
    pytest.importorskip("wordfreq")
    done = command("compress", encoder, "--method", "integer", "-o", "small")
    assert done.status == 0, done.err
    assert "note: no text was given" in done.err
    assert "wordfreq" in done.err


def test_a_text_of_one_line_is_enough_and_said_to_be_few(
    command: Callable[..., Done], small_model: Callable[[str], Path], data: Path
) -> None:
    for kind in ("encoder", "causal"):
        done = command(
            *("compress", small_model(kind), "--text", data / "one.txt", "--size", "30%"),
            *("-o", kind, "--json"),
        )
        assert done.status == 0, done.err
        assert "only 1 texts" in done.err
        assert 0.9 < json.loads(done.out)["output_cosine"] <= 1.001


@pytest.mark.parametrize(
    ("kind", "labels"), [("classifier", "classes.tsv"), ("encoder", "pairs.tsv")]
)
def test_labels_are_a_score_before_and_after(
    kind: str,
    labels: str,
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    short_file: Path,
    data: Path,
) -> None:
    arguments = ("--text", short_file, "--labelled", data / labels, *QUICK, "-o", "small")
    told = json.loads(command("compress", small_model(kind), *arguments, "--json").out)
    before, after = told["original_score"], told["score"]
    assert told["drop_percent"] == pytest.approx(100 * (before - after) / abs(before), abs=0.1)


def test_a_dry_run_writes_nothing(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    done = command("compress", encoder, "--text", text_file, "--size", "20%", "--dry-run")
    assert done.status == 0, done.err
    assert "embeddings.word_embeddings" in done.out
    assert "bytes" in done.out
    assert command("tune", "table", encoder, "--text", text_file, "--dry-run").status == 0
    assert nothing_here()


def test_an_older_result_is_replaced_and_a_foreign_one_only_on_demand(
    command: Callable[..., Done], encoder: Path, short_file: Path, data: Path
) -> None:
    arguments = ("compress", encoder, "--text", short_file, *QUICK)
    for _ in range(2):
        assert command(*arguments, "-o", "small").status == 0
    done = command(*arguments, "-o", data / "foreign")
    assert done.status == 2
    assert "holds something else" in done.err
    assert (data / "foreign" / "letter.txt").read_text() == "Dear reader,"
    assert command(*arguments, "-o", data / "foreign", "--overwrite").status == 0
    assert not (data / "foreign" / "letter.txt").exists()
    assert smalti.load_model(data / "foreign") is not None


def test_what_is_read_is_never_overwritten(
    command: Callable[..., Done], encoder: Path, data: Path
) -> None:
    shutil.copytree(encoder, "models/encoder")
    arguments = ("compress", "models/encoder", *QUICK, "--overwrite")
    text = ("--text", data / "one.txt")
    for output in ("models/encoder", "models", ".", data):
        done = command(*arguments, *text, "-o", output)
        assert done.status == 2
        assert "would remove" in done.err
    assert Path("models/encoder/model.safetensors").is_file()
    assert (data / "one.txt").is_file()


BAD = [
    ("{vit} --text {short}", "ViTModel"),
    ("no-such-model --text {short}", "no-such-model"),
    ("./no-such-model --text {short}", "no such file or directory"),
    ("{data}/foreign --text {short}", "foreign"),
    ("{encoder} --text {data}/none.txt", "there is no file"),
    ("{encoder} --text {data}/empty.txt", "is empty"),
    ("{encoder} --text {data}/blank.txt", "holds no texts"),
    ("{encoder} --text {data}/binary.txt", "a binary file"),
    ("{encoder} --text {data}/latin.txt", "UTF-8"),
    ("{encoder} --text {data}/foreign", "is a directory"),
    ("{encoder} --text {data}/columns.csv --column words", "its columns are: id, text"),
    ("{encoder} --counts {data}/none.json", "there is no file"),
    ("{encoder} --counts {data}/cut.json", "is damaged"),
    ("{encoder} --counts {data}/zero.json", "all zero"),
    ("{encoder} --counts {data}/other.json", "another tokenizer"),
    ("{encoder} --counts {data}/one.txt", "damaged"),
    ("{encoder} --text {short} --labelled {data}/none.tsv", "there is no file"),
    ("{encoder} --text {short} --labelled {data}/classes.tsv", "scored pairs"),
    ("{classifier} --text {short} --labelled {data}/pairs.tsv", "expected classes"),
    ("{encoder} --text {short} --size 0.01%", "allow a larger size"),
    ("{encoder} --text {short} --size 0%", "such as 4%"),
    ("{encoder} --text {short} --size abc", "such as 4%"),
    ("{encoder} --text {short} --size 150%", "such as 4%"),
    ("{encoder} --text {short} --size=-4%", "such as 4%"),
    ("{encoder} --text {short} --size 4", "such as 4%"),
    ("{encoder} --text {short} --max-drop 200%", "such as 4%"),
    ("{encoder} --text {short} --max-drop 1e-9%", "the closest"),
    ("{encoder} --text {short} --size 4% --max-drop 1%", "not both"),
    ("{encoder} --text {short} --method product --max-drop 1%", "a largest drop"),
    ("{encoder} --text {short} --keep 10 --max-drop 1%", "a largest drop"),
    ("{encoder} --text {short} --method nothing", "the known ones are"),
    ("{encoder} --text {short} --method nothing --size 4%", "the known ones are"),
    ("{encoder} --text {short} --method product --set bits=4", "it has: num_codebooks"),
    ("{encoder} --text {short} --method product --set num_codebooks", "key=value"),
    ("{encoder} --text {short} --method product --set num_codebooks=x", "whole number"),
    ("{encoder} --text {short} --method product --set num_codebooks=7", "divide the width 24"),
    ("{encoder} --text {short} --method product --set num_codebooks=12 --size 4%", "larger size"),
    ("{encoder} --text {short} --method low_rank", "rank"),
    ("{encoder} --text {short} --method full --size 50%", "give its settings"),
    ("{encoder} --text {short} --set bits=4", "need a method"),
    ("{encoder} --text {short} --method sparse --keep 20 --set neighbours=50", "fewer neighbours"),
    ("{encoder} --text {short} --keep 5000", "leaves nothing to code"),
    ("{encoder} --text {short} --keep 0", "keep must be"),
    ("{encoder} --text {short} --keep many", "a number of rows such as 1000"),
    ("{encoder} --text {short} --kept int8", "say also how many"),
    ("{encoder} --text {short} --keep 20 --kept int3", "float16"),
    ("{encoder} --text {short} --method partial --set 'rest={{compressor:product}}'", "known ones"),
    ("{encoder} --text {short} --method partial --set 'rest={{\"bits\":4}}'", "compressor"),
    ("{encoder} --text {short} -o {short}", "holds something else"),
    ("{encoder} --text {short} -o {short}/small", "can't write"),
    ("{encoder} --text {short} -o {long}", "can't write"),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_a_mistake_is_one_line_and_status_2_and_leaves_nothing(
    line: str,
    words: str,
    command: Callable[..., Done],
    small_model: Callable[[str], Path],
    short_file: Path,
    data: Path,
) -> None:
    known = {kind: small_model(kind) for kind in ("encoder", "classifier", "vit")}
    typed = shlex.split(line.format(**known, short=short_file, data=data, long="x" * 300))
    done = command("compress", *typed, *(() if "-o" in typed else ("-o", "deep/small")))
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("smalti: ")
    assert words in done.err
    assert nothing_here()


@pytest.mark.parametrize(
    "wrong", [("--threads", "0"), ("--seed", "x"), ("--seed", "-1"), ("--seed", "9" * 30)]
)
def test_options_out_of_range_are_usage_errors(
    wrong: tuple[str, str], command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    done = command("compress", encoder, "--text", short_file, *wrong, "-o", "small")
    assert done.status == 2
    assert wrong[0] in done.err
    assert "Traceback" not in done.err
    assert nothing_here()


def test_a_place_to_save_is_asked_for(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    done = command("compress", encoder, "--text", short_file)
    assert done.status == 2
    assert "-o DIR" in done.err


def test_a_model_that_is_compressed_already_is_refused(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    command("compress", encoder, "--text", short_file, *QUICK, "-o", "small")
    done = command("compress", "small", "--text", short_file, *QUICK, "-o", "smaller")
    assert done.status == 2
    assert "smalti export" in done.err
    assert not Path("smaller").exists()


def test_a_model_without_a_tokenizer_is_refused(
    command: Callable[..., Done], encoder: Path, short_file: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(encoder, bare, ignore=shutil.ignore_patterns("tokenizer*"))
    done = command("compress", bare, "--text", short_file, *QUICK, "-o", "small")
    assert done.status == 2
    assert "tokenizer" in done.err
    assert nothing_here()


@pytest.mark.parametrize("damage", [lambda _: b"\xff" * 64, lambda raw: raw[:-500], lambda _: b""])
def test_damaged_weights_are_one_line(
    damage: Callable[[bytes], bytes],
    command: Callable[..., Done],
    encoder: Path,
    short_file: Path,
    tmp_path: Path,
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(encoder, damaged)
    weights = damaged / "model.safetensors"
    weights.write_bytes(damage(weights.read_bytes()))
    done = command("compress", damaged, "--text", short_file, *QUICK, "-o", "small")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "damaged" in done.err
    assert nothing_here()


@pytest.mark.parametrize("most", [100, 8000, 20_000])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    most: int, command: Callable[..., Done], encoder: Path, short_file: Path, small_disk: Any
) -> None:
    with small_disk(most):
        done = command("compress", encoder, "--text", short_file, *QUICK, "-o", "deep/small")
    assert done.status == 2
    assert "can't write" in done.err
    assert done.err.splitlines()[-1].startswith("smalti: ")
    assert "Traceback" not in done.err
    assert nothing_here()


def test_a_full_disk_leaves_an_older_result_as_it_is(
    command: Callable[..., Done], encoder: Path, short_file: Path, small_disk: Any
) -> None:
    arguments = ("compress", encoder, "--text", short_file, "-o", "small")
    assert command(*arguments, *QUICK).status == 0
    before = Path("small/model.safetensors").read_bytes()
    with small_disk(8000):
        assert command(*arguments, "--method", "integer").status == 2
    assert Path("small/model.safetensors").read_bytes() == before
    assert [path.name for path in Path.cwd().iterdir()] == ["small"]


def test_interrupted_work_leaves_nothing(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    # More steps than anyone waits for.
    endless = ("--method", "compositional", "--set", "num_codebooks=6", "--set", "steps=100000000")
    done = command("compress", encoder, "--text", short_file, *endless, "-o", "deep/small")
    assert done.status == 130
    assert "Traceback" not in done.err
    assert nothing_here()


def test_an_interrupted_save_leaves_all_or_nothing(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    here, watching = Path.cwd(), threading.Event()

    def interrupt() -> None:
        while not watching.is_set():
            if any(here.glob(".smalti-*/config.json")):
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.0005)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        done = command("compress", encoder, "--text", short_file, *QUICK, "-o", "small")
    finally:
        watching.set()
        watcher.join()
    assert "Traceback" not in done.err
    left = [path.name for path in here.iterdir()]
    if done.status == 0 or left:
        assert left == ["small"]
        assert smalti.load_model("small") is not None
    else:
        assert done.status == 130


def test_tuning_prints_and_saves_the_frontier(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    done = command("tune", "table", encoder, "--text", text_file, "--size", "20%")
    assert done.status == 0, done.err
    saved = json.loads(Path("frontier.json").read_text(encoding="utf-8"))
    assert saved["model"] == str(encoder)
    assert saved["best"]["bytes"] <= 0.2 * DENSE
    assert saved["frontier"]
    marked = [line for line in done.out.splitlines() if line.startswith("*  ")]
    assert len(marked) == len(saved["frontier"])
    assert f"best: {saved['best']['table']}" in done.out
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["frontier.html", "frontier.json"]


def test_the_command_that_tuning_names_makes_the_table(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    arguments = ("--text", text_file, "--size", "6%", "-o", "tried.json", "--seed", "1")
    done = command("tune", "table", encoder, *arguments)
    best = json.loads(Path("tried.json").read_text(encoding="utf-8"))["best"]
    assert best["taught"]
    (line,) = [line for line in done.out.splitlines() if line.startswith("to make it: smalti ")]
    typed = shlex.split(line.removeprefix("to make it: smalti "))
    made = command(*typed[:-1], "small", "--json")
    assert made.status == 0, made.err
    told = json.loads(made.out)
    assert told["bytes"] == best["bytes"]
    assert told["table"] == best["table"]
    assert told["drop_percent"] == pytest.approx(best["drop_percent"], rel=0.2)


@pytest.mark.parametrize("output", ["none/frontier.json", "folder"])
def test_a_file_that_can_not_be_written_is_found_before_the_work(
    output: str, command: Callable[..., Done], short_file: Path
) -> None:
    Path("folder").mkdir()
    # There is no such model either: the file is looked at first.
    done = command("tune", "table", "./no-model", "--text", short_file, "-o", output)
    assert done.status == 2
    assert "can't write the file" in done.err
    assert [path.name for path in Path.cwd().iterdir()] == ["folder"]


@pytest.mark.parametrize("most", [100, 4000])
def test_a_full_disk_leaves_no_half_frontier(
    most: int, command: Callable[..., Done], encoder: Path, short_file: Path, small_disk: Any
) -> None:
    older = '{"trials": []}'
    Path("frontier.json").write_text(older)
    with small_disk(most):
        done = command("tune", "table", encoder, "--text", short_file, "--size", "20%")
    assert done.status == 2
    assert "can't write" in done.err
    assert Path("frontier.json").read_text() == older


@pytest.mark.parametrize("content", ["my only copy", "{}", "[1]"])
def test_tuning_replaces_no_file_but_a_frontier(
    content: str, command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    Path("mine.txt").write_text(content)
    arguments = ("tune", "table", encoder, "--text", short_file, "--size", "20%")
    done = command(*arguments, "-o", "mine.txt")
    assert (done.status, Path("mine.txt").read_text()) == (2, content)
    assert "mine.txt holds something else" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [("101 2023 2003 102 7\n" * 40, "token ids"), ("\u4e00\u4e8c \u4e09\n" * 40, "unknown to")],
)
def test_a_text_that_says_nothing_about_the_rows_is_refused(
    text: str, words: str, command: Callable[..., Done], encoder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "strange.txt"
    file.write_text(text, encoding="utf-8")
    done = command("compress", encoder, "--text", file, "--size", "20%", "-o", "deep/small")
    assert done.status == 2
    assert words in done.err
    assert not Path("deep").exists()


def test_a_size_that_nothing_fits_leaves_no_journal(
    command: Callable[..., Done], encoder: Path, short_file: Path
) -> None:
    done = command("tune", "table", encoder, "--text", short_file, "--size", "0.01%")
    assert done.status == 2
    assert "allow a larger size" in done.err
    assert nothing_here()


@pytest.mark.slow
def test_an_interrupted_tuning_is_taken_up_again(
    command: Callable[..., Done], encoder: Path, text_file: Path
) -> None:
    here, done_once = Path.cwd(), threading.Event()

    def interrupt() -> None:
        journal = here / ".frontier.json.journal"
        while not done_once.is_set():
            # The line of what it is about, and of two trials.
            if journal.exists() and journal.read_bytes().count(b"\n") > 2:
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.0005)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    arguments = ("tune", "table", encoder, "--text", text_file, "--size", "20%")
    try:
        assert command(*arguments).status == 130
    finally:
        done_once.set()
        watcher.join()
    lines = (here / ".frontier.json.journal").read_text().splitlines()
    made_before = [json.loads(line)["seconds"] for line in lines[1:]]
    assert command(*arguments).status == 0
    seconds = [
        trial["seconds"] for trial in json.loads(Path("frontier.json").read_text())["trials"]
    ]
    assert [round(some, 1) for some in made_before] == seconds[: len(made_before)]
    assert sorted(path.name for path in here.iterdir()) == ["frontier.html", "frontier.json"]


def test_every_option_has_help(command: Callable[..., Done]) -> None:
    for line in (("compress",), ("tune", "table"), ("tune",)):
        done = command(*line, "--help")
        assert done.status == 0
        assert "Example" in done.out or line == ("tune",)
    shown = command("compress", "--help").out
    for option in ("--size", "--max-drop", "--keep", "--kept", "--set", "--teach", "--overwrite"):
        assert option in shown
