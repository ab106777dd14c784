"""Translation models as a user trains and uses them; what is killed has a process of its own."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from smalti.cli import main

pytest.importorskip("accelerate")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")
yaml = pytest.importorskip("yaml")

WORDS = ["".join(parts) for parts in product("bdgk", "aeiou")]
# One thread: sums in another order have other last bits.
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as typed, in this process: starting one takes longer than what most do."""
    said, told = io.StringIO(), io.StringIO()
    status = 0
    with (
        mock.patch.object(sys, "argv", ["smalti", *arguments]),
        redirect_stdout(said),
        redirect_stderr(told),
    ):
        try:
            main.run()
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, status, said.getvalue(), told.getvalue())


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """The same in a process of its own, which can be killed."""
    command = [sys.executable, "-m", "smalti", *arguments]
    return subprocess.Popen(command, env=ALONE, stdout=subprocess.DEVNULL)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 6))) for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Aligned files of made-up words, and a config."""
    place = tmp_path_factory.mktemp("pair")
    for name, count, seed in (("train", 200, 1), ("test", 20, 2)):
        lines = sentences(count, seed)
        (place / f"{name}.xx").write_text("".join(f"{line}\n" for line in lines))
        with gzip.open(place / f"{name}.yy.gz", "wt") as file:
            file.write("".join(f"{line.upper()}\n" for line in lines))
    config = {
        "kind": "translation",
        "data": {
            "source": str(place / "train.xx"),
            "target": str(place / "train.yy.gz"),
            "vocabulary": 300,
            "valid_share": 0.05,
        },
        "model": {
            "translator": "autoregressive",
            **{"dim": 16, "depth": 1, "decoder_depth": 1, "heads": 2, "ratio": 2},
        },
        "training": {"steps": 10, "batch_size": 256, "evaluate_every": 10, "checkpoint_every": 3},
        "decoding": {"beam": 2, "length_penalties": [1.0]},
    }
    (place / "small.yaml").write_text(yaml.safe_dump(config))
    return place


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    place = tmp_path_factory.mktemp("runs") / "run"
    done = run("train", str(folder / "small.yaml"), "-o", str(place), "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["finished"]
    assert content["stages"]["translator"]["steps"] == 10
    return place


def test_a_text_is_printed_in_one_line(trained: Path) -> None:
    done = run("translate", str(trained), "ba de gi", "--beam", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    found = json.loads(run("translate", str(trained), "ba de gi", "--beam", "1", "--json").stdout)
    assert found["translations"] == [done.stdout.strip()]


def test_a_file_keeps_its_lines_whatever_they_hold(tmp_path: Path, trained: Path) -> None:
    lines = sentences(1000, seed=3)
    lines[3] = lines[999] = ""
    lines[5], lines[6] = "word " * 10_000, "今日は مرحبا 🙂\u2028x"
    (tmp_path / "in.xx").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = tmp_path / "out.yy"
    done = run(
        *("translate", str(trained), "--file", str(tmp_path / "in.xx"), "-o", str(output)),
        *("--beam", "1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lines"] == 1000
    assert "note: line" in done.stderr
    written = output.read_text(encoding="utf-8").split("\n")
    assert len(written) == 1001
    assert written[3] == written[999] == written[1000] == ""
    single = run("translate", str(trained), lines[998], "--beam", "1")
    assert written[998] == single.stdout.strip()


def test_evaluating_prints_scores_with_signatures(folder: Path, trained: Path) -> None:
    done = run("evaluate", str(trained), "--data", str(folder / "test"), "--timed", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sentences"] == 20
    assert list(found["scores"]) == ["greedy", "beam_2"]
    assert "version:" in found["scores"]["greedy"]["bleu_signature"]
    assert found["latency"]["greedy"]["milliseconds"] > 0
    files = ("--data", str(folder / "test.xx"), "--reference", str(folder / "test.yy.gz"))
    beside = ("--against", str(trained), "--timed", "2")
    assert "times faster than beam 2" in run("evaluate", str(trained), *files, *beside).stdout
    table = run("evaluate", str(trained), *files, "--timed", "0").stdout
    assert "signature, BLEU" in table
    assert f"BLEU {found['scores']['greedy']['bleu']:.2f}" in table


def test_inspecting_says_what_was_trained(trained: Path) -> None:
    found = json.loads(run("inspect", str(trained), "--json").stdout)
    assert found["kind"] == "trained translation model"
    assert found["translator"]["translator"] == "autoregressive"
    assert "autoregressive" in run("inspect", str(trained)).stdout


def test_distilling_writes_a_line_for_each(tmp_path: Path, folder: Path, trained: Path) -> None:
    output = tmp_path / "out.yy"
    done = run(
        *("distill", str(trained), "--source", str(folder / "test.xx"), "-o", str(output)), "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lines"] == 20
    assert len(output.read_text().splitlines()) == 20


def test_spliced_sentences_are_written_a_line_each(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "more.xx"
    done = run("splice", str(folder / "train.xx"), "--lines", "50", "-o", str(output), "--json")
    assert json.loads(done.stdout) == {"file": str(output), "lines": 50, "made_of": 200}
    made = output.read_text().splitlines()
    assert len(set(made) - set((folder / "train.xx").read_text().splitlines())) == 50


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("translate", "RUN"), "a text to translate"),
        (("translate", "RUN", "ba", "--file", "DATA/test.xx"), "a text to translate"),
        (("translate", "RUN", "ba", "-o", "OUT/out"), "-o is for files"),
        (("translate", "RUN", "--file", "OUT/none"), "no file"),
        (("translate", "RUN", "--file", "DATA/test.xx", "-o", "OUT/no/out"), "can't write"),
        (("translate", "RUN", "--file", "DATA/test.xx", "-o", "DATA/test.xx"), "write to another"),
        (("translate", "/nowhere", "ba"), "/nowhere"),
        (("evaluate", "RUN"), "--data"),
        (("evaluate", "RUN", "--data", "DATA/test", "--text", "a.txt"), "translation model"),
        (("evaluate", "RUN", "--data", "DATA/nothing"), "nothing"),
        (
            ("evaluate", "RUN", "--data", "DATA/test.xx", "--reference", "DATA/train.yy.gz"),
            "got 20 in",
        ),
        (("distill", "RUN", "--source", "DATA/none", "-o", "OUT/out"), "none"),
        (("splice", "DATA/none", "--lines", "3", "-o", "OUT/out"), "none"),
        (("splice", "DATA/test.xx", "--lines", "3", "-o", "DATA/test.xx"), "write to another"),
        (("splice", "DATA/test.xx", "--lines", "99999", "-o", "OUT/out"), "ask for fewer"),
        (("sample", "RUN", "-o", "OUT/grid.png"), "trained translation model"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_leaves_nothing(
    tmp_path: Path, folder: Path, trained: Path, arguments: tuple[str, ...], word: str
) -> None:
    places = {"RUN": str(trained), "OUT": str(tmp_path), "DATA": str(folder)}
    filled = []
    for argument in arguments:
        head, slash, tail = argument.partition("/")
        filled.append(places.get(head, head) + slash + tail)
    before = (folder / "test.xx").read_bytes()
    assert word in refused(run(*filled))
    assert list(tmp_path.iterdir()) == []
    assert (folder / "test.xx").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("kind=translations", "kind"),
        ("data.sorce=a", "did you mean data.source?"),
        ("data.valid_source=a.xx", "both valid_source and valid_target"),
        ("model.translator=recurrent", "autoregressive"),
    ],
)
def test_a_bad_config_is_one_line_and_leaves_nothing(
    tmp_path: Path, folder: Path, change: str, word: str
) -> None:
    config = str(folder / "small.yaml")
    assert word in refused(run("train", config, "-o", str(tmp_path / "run"), "--set", change))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_training_that_was_killed_ends_with_the_same_weights(tmp_path: Path, folder: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    options = ["--set=training.steps=60", "--set=averaged_share=0.5"]
    arguments = ["train", str(folder / "small.yaml"), *options]
    with started(*arguments, "-o", str(killed)) as process:
        limit = time.monotonic() + 120
        while not (killed / "translator" / "checkpoints" / "step-00000036").exists():
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < limit
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert "resume" in refused(run(*arguments, "-o", str(killed)))
    assert run(*arguments, "-o", str(killed), "--resume", "--threads=1").returncode == 0
    assert run(*arguments, "-o", str(whole), "--threads=1").returncode == 0
    ours, expected = (
        (place / "model" / "tensors.safetensors").read_bytes() for place in (killed, whole)
    )
    assert ours == expected


@pytest.mark.slow
def test_distilling_that_was_killed_ends_with_the_same_file(
    tmp_path: Path, folder: Path, trained: Path
) -> None:
    source, output, whole = folder / "train.xx", tmp_path / "out.yy", tmp_path / "whole.yy"
    arguments = ["distill", str(trained), "--source", str(source), "--batch-tokens", "20"]
    journal = tmp_path / "out.yy.journal"
    with started(*arguments, "-o", str(output)) as process:
        limit = time.monotonic() + 120
        while not journal.exists() or journal.read_bytes().count(b"\n") < 4:
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < limit
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert not output.exists()
    assert "--resume" in refused(run(*arguments, "-o", str(output)))
    done = json.loads(run(*arguments, "-o", str(output), "--resume", "--json").stdout)
    assert done["found_before"] >= 3
    assert run(*arguments, "-o", str(whole)).returncode == 0
    assert output.read_bytes() == whole.read_bytes()
    assert not journal.exists()


def test_who_rescores_does_so_by_the_length_penalty_that_was_tuned_for_it(trained: Path) -> None:
    from dataclasses import replace

    from smalti.cli.translating import decoding_of
    from smalti.recipes.translation import load_translation_run

    student = load_translation_run(trained)
    teacher = replace(student, decoding=replace(student.decoding, length_penalty=1.75))
    assert decoding_of(student, None, None, 8, rescore_with=teacher).length_penalty == 1.75
    assert decoding_of(student, None, 0.5, 8, rescore_with=teacher).length_penalty == 0.5
    assert decoding_of(student, None, None).length_penalty == student.decoding.length_penalty
