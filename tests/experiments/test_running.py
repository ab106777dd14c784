"""Finished work is skipped, settings decide what is finished, results can be run again."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from typer.testing import CliRunner

from smalti.cli.main import app
from smalti.errors import ArtifactError, ConfigError
from smalti.experiments import (
    Arm,
    Table,
    known_tables,
    missing,
    run_all,
    run_table,
    table_named,
)
from smalti.experiments.results import read_results, result_path
from smalti.experiments.table import Scale, nested

TABLE = table_named("depthwise-codes")
ARM = TABLE.arms[0]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "results", tmp_path / "work"


def test_an_arm_states_only_what_differs() -> None:
    settings = TABLE.settings(ARM, "tiny")
    # From the base, the scale and the arm.
    assert settings["model"]["autoencoder"] == "convolutional"
    assert settings["data"]["source"] == "digits"
    assert settings["model"]["quantizer"]["quantizer"] == "depthwise"


def test_a_value_takes_its_place_whole() -> None:
    made = nested([{"model.quantizer": {"a": 1, "b": 2}}, {"model.quantizer": {"a": 3}}])
    assert made == {"model": {"quantizer": {"a": 3}}}


def test_finished_work_is_skipped_and_the_same_seed_gives_the_same_numbers(
    folders: tuple[Path, Path],
) -> None:
    results, work = folders
    (first,) = run_table(TABLE, "tiny", results, work, ARM.name)
    assert run_table(TABLE, "tiny", results, work, ARM.name) == []
    assert [arm.name for arm, _ in missing(TABLE, "tiny", results)] == [TABLE.arms[1].name]
    result_path(results, TABLE, ARM, "tiny", 0).unlink()
    (again,) = run_table(TABLE, "tiny", results, work, ARM.name)
    assert {"mse", "distortion", "entropy_bits"} <= again.metrics.keys()
    assert again.metrics == pytest.approx(dict(first.metrics), rel=1e-3)
    assert first.source_hash
    assert first.versions["torch"]
    assert not any(work.rglob("*.safetensors"))


def test_a_first_run_does_not_look_for_checkpoints(
    folders: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    run_table(TABLE, "tiny", *folders, ARM.name)
    assert "checkpoint" not in capfd.readouterr().err


def test_an_arm_that_stands_in_two_tables_runs_once(folders: tuple[Path, Path]) -> None:
    results, work = folders
    (first,) = run_table(TABLE, "tiny", results, work, ARM.name)
    shutil.rmtree(work)
    other = dataclasses.replace(TABLE, name="other", arms=(Arm("same", ARM.settings),), claims=())
    (again,) = run_table(other, "tiny", results, work)
    assert (again.table, again.arm) == ("other", "same")
    assert (again.metrics, again.seconds) == (first.metrics, first.seconds)
    assert not any(work.iterdir())
    # With another seed it is another question.
    (new,) = run_table(other, "tiny", results, work, seed=3)
    assert new.metrics["mse"] != first.metrics["mse"]


def test_an_arm_that_another_process_is_at_is_left_to_it(folders: tuple[Path, Path]) -> None:
    results, work = folders
    told: list[str] = []
    name = f"depthwise-5-x-64.0.{TABLE.spec_hash(ARM, 'tiny')}"
    (work / TABLE.name / "tiny").mkdir(parents=True)
    with FileLock(work / TABLE.name / "tiny" / f"{name}.lock"):
        assert run_table(TABLE, "tiny", results, work, ARM.name, tell=told.append) == []
    assert told[-1] == "depthwise-codes: another process is at depthwise 5 x 64, seed 0"
    assert len(run_table(TABLE, "tiny", results, work, ARM.name)) == 1
    assert not [path for path in work.rglob("*") if path.is_file()]


def test_all_tables_have_their_first_seed_before_any_has_its_second(
    folders: tuple[Path, Path],
) -> None:
    one = dataclasses.replace(TABLE, arms=(ARM,), claims=(), seeds={"tiny": 2})
    long = dataclasses.replace(one, name="long", minutes={"tiny": 9.0})
    other = {**TABLE.base, "model.likelihood": "square_error"}
    short = dataclasses.replace(one, name="short", minutes={"tiny": 1.0}, base=other)
    lost = dataclasses.replace(one, name="lost", base={**TABLE.base, "data.source": "nowhere.npz"})
    lost = dataclasses.replace(lost, scales={"tiny": {"training.steps": 1}})
    told: list[str] = []
    lacking = run_all([long, lost, short], "tiny", *folders, tell=told.append)
    ran = [line.split(",")[0] for line in told if not line.startswith("lost")]
    assert ran == ["short", "long", "short", "long"]
    assert list(lacking) == ["lost"]
    assert "nowhere.npz" in lacking["lost"]
    assert run_all([long, short], "tiny", *folders, tell=told.append) == {}
    assert len(told) == 5


@pytest.mark.parametrize("asked", [("--arm", ARM.name), ("--seed", "1")])
def test_what_is_only_shown_is_shown_whole(asked: tuple[str, str]) -> None:
    answer = CliRunner().invoke(app, ["reproduce", TABLE.name, "--show", *asked])
    assert isinstance(answer.exception, ConfigError)


def test_a_seed_is_a_number_that_all_libraries_take() -> None:
    answer = CliRunner().invoke(app, ["reproduce", TABLE.name, "--seed", str(10**20)])
    assert answer.exit_code == 2
    assert "seed" in answer.stderr


def test_arms_and_seeds_are_for_one_table() -> None:
    for extra in (["--arm", "x"], ["--seed", "1"], ["--show"], ["--list"]):
        answer = CliRunner().invoke(app, ["reproduce", "--all", *extra])
        assert isinstance(answer.exception, ConfigError)


def test_a_result_holds_all_settings_of_its_arm(folders: tuple[Path, Path]) -> None:
    (result,) = run_table(TABLE, "tiny", *folders, ARM.name)
    assert result.spec == {"kind": TABLE.kind, **TABLE.settings(ARM, "tiny")}


def test_a_result_of_other_settings_does_not_count(folders: tuple[Path, Path]) -> None:
    results, work = folders
    run_table(TABLE, "tiny", results, work, ARM.name)
    changed = dataclasses.replace(TABLE, base={**TABLE.base, "training.clip_norm": 1.0})
    assert (ARM, 0) in missing(changed, "tiny", results)
    assert read_results(results, changed, "tiny") == {}


def test_a_result_of_another_version_is_refused(folders: tuple[Path, Path]) -> None:
    results, work = folders
    run_table(TABLE, "tiny", results, work, ARM.name)
    path = result_path(results, TABLE, ARM, "tiny", 0)
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(ArtifactError, match="another version"):
        missing(TABLE, "tiny", results)
    path.write_text("{")
    with pytest.raises(ArtifactError, match="not a result"):
        missing(TABLE, "tiny", results)
    # What is wrong with one table does not stop another.
    other = dataclasses.replace(TABLE, name="other")
    assert len(run_table(other, "tiny", results, work, ARM.name)) == 1


def test_folders_are_tried_before_the_work(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, work = folders
    file = results.parent / "file"
    file.touch()
    monkeypatch.setattr("smalti.experiments.running._measured", pytest.fail)
    for asked in [(file / "results", work), (results, file / "work")]:
        with pytest.raises(ArtifactError, match="can't write into"):
            run_table(TABLE, "tiny", *asked, ARM.name)
    answer = CliRunner().invoke(app, ["reproduce", "--list", "--results", str(file)])
    assert isinstance(answer.exception, ConfigError)
    assert "is a file" in str(answer.exception)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="depthwise-ablation"):
        table_named("depthwise-ablatoin")
    with pytest.raises(ConfigError, match="repeated 5 x 64"):
        TABLE.arm("nobody")
    answer = CliRunner().invoke(app, ["reproduce"])
    assert isinstance(answer.exception, ConfigError)


def test_a_name_that_is_nearly_right_gets_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"did you mean em-images\?"):
        table_named("em-image")
    with pytest.raises(ConfigError, match=r"did you mean repeated 5 x 64\?"):
        table_named("depthwise-ablation").arm("repeated 5x64")


def test_claims_name_arms_and_metrics_that_exist() -> None:
    for table in known_tables():
        for claim in table.claims:
            assert claim.decided_by or claim.untestable, f"{table.name}: nothing decides"
            assert {table.arm(name).name for name in claim.arms()} == claim.arms()


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_the_arms_of_a_scale_decide_its_claims(scale: Scale) -> None:
    for table in known_tables():
        there = {arm.name for arm in table.arms_at(scale)}
        for claim in table.claims_at(scale):
            assert claim.arms() <= there, (table.name, claim.sentence)


@pytest.mark.parametrize("scale", ["tiny", "laptop", "paper"])
def test_coded_word_tables_have_parts_of_equal_width(scale: Scale) -> None:
    for table in known_tables():
        for arm in table.arms_at(scale):
            settings = table.settings(arm, scale)
            embedding = settings.get("embedding") or {}
            for spec in [embedding] if "compressor" in embedding else embedding.values():
                dim = settings.get("dim") or settings["model"]["dim"]
                assert dim % spec["num_codebooks"] == 0, (table.name, arm.name)


def test_a_table_that_cannot_be_tested_says_so(folders: tuple[Path, Path]) -> None:
    table = Table("x", "p", "w", "t", "images", (Arm("a"),), (), untestable="no such data")
    with pytest.raises(ConfigError, match="no such data"):
        run_table(table, "tiny", *folders)


@pytest.mark.parametrize(("asked", "threads"), [([], 1), (["--threads", "2"], 2)])
def test_one_thread_where_nothing_is_said_so_that_a_result_can_be_made_again(
    folders: tuple[Path, Path], asked: list[str], threads: int
) -> None:
    before = torch.get_num_threads()
    results, work = folders
    places = ["--results", str(results), "--work", str(work)]
    try:
        run = CliRunner().invoke(
            app, ["reproduce", "dpq-sizes", "--scale", "tiny", *places, *asked]
        )
    finally:
        torch.set_num_threads(before)
    assert run.exit_code == 0, run.output
    (path, *_) = sorted(results.rglob("*.json"))
    assert json.loads(path.read_text())["machine"]["threads"] == threads
