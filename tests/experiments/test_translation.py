"""Arms of translation: what they take from a teacher, and how one teacher serves them all."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

from smalti.errors import ConfigError
from smalti.experiments import Arm, Result, Table, run_table, table_named
from smalti.experiments.kinds.teachers import DISTILLED, teacher_of
from smalti.experiments.kinds.translation import TEACHERS
from smalti.experiments.tables.captions import TEACHER
from smalti.recipes.configs import read_config
from smalti.recipes.run_directories import FOLDER, weights_digest
from smalti.recipes.translation import TranslationConfig, load_translation_run
from smalti.training import as_settings

ROOT = Path(__file__).parent.parent.parent
TABLE = table_named("translation-bottlenecks")
# Four translators are trained first.
pytestmark = pytest.mark.slow
FILES = ("multi30k/val.en", "multi30k/test_2016_flickr.en")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, public: Callable[[str], Path]) -> Path:
    """Where everything of this file is run."""
    for name in FILES:
        public(name)
    return tmp_path_factory.mktemp("translation")


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Result]:
    """Tiny results of some arms, by name."""
    arms = ("autoregressive", "hard EM", "hard EM, not distilled", "plain parallel")
    some = replace(TABLE, arms=tuple(TABLE.arm(name) for name in arms), claims=())
    made = run_table(some, "tiny", folder / "results", folder / "work")
    return {result.arm: result for result in made}


@pytest.fixture(scope="module")
def teacher(results: dict[str, Result], folder: Path) -> Path:
    """The directory of the one teacher that was trained for them."""
    assert results
    (model,) = (folder / "work" / TEACHERS).glob(f"*/{FOLDER}")
    return model.parent


def test_the_teacher_of_the_tables_is_that_of_the_config_file() -> None:
    shipped = read_config(ROOT / "configs" / "translation-autoregressive-multi30k.yaml")
    assert as_settings(TranslationConfig, TEACHER) == shipped


def test_one_teacher_serves_all_arms(results: dict[str, Result], teacher: Path) -> None:
    digest = weights_digest(load_translation_run(teacher).translator)
    assert {result.details["teacher"]["weights"] for result in results.values()} == {digest}
    texts = hashlib.sha256((teacher / DISTILLED).read_bytes()).hexdigest()
    learned = {name: result.details["teacher"]["distilled"] for name, result in results.items()}
    assert learned == {
        "autoregressive": None,
        "plain parallel": texts,
        "hard EM": texts,
        "hard EM, not distilled": None,
    }


def test_latent_arms_have_bounds_and_codes_and_the_teacher_has_beams(
    results: dict[str, Result],
) -> None:
    latent, teacher = results["hard EM"].metrics, results["autoregressive"].metrics
    assert {"teacher_forced_bleu", "shuffled_bleu"} <= latent.keys()
    size = results["hard EM"].spec["model"]["quantizer"]["codebook_size"]
    assert latent["codes_in_use"] == pytest.approx(size * latent["used_share"])
    assert "beam_bleu" in teacher
    assert "beam_bleu" not in latent
    assert "codes_in_use" not in teacher.keys() | results["plain parallel"].metrics.keys()


def test_a_speedup_is_against_the_teacher_as_timed_by_turns(results: dict[str, Result]) -> None:
    found = results["plain parallel"].timings
    assert found["speedup"] == pytest.approx(found["teacher_latency_ms"] / found["latency_ms"])
    over_beam = found["teacher_beam_latency_ms"] / found["latency_ms"]
    assert found["speedup_over_beam"] == pytest.approx(over_beam)
    longer = found["teacher_long_latency_ms"] / found["long_latency_ms"]
    assert found["long_speedup"] == pytest.approx(longer)


def test_distillation_changes_what_is_learned(results: dict[str, Result]) -> None:
    with_texts, without = results["hard EM"], results["hard EM, not distilled"]
    assert with_texts.metrics["valid_loss"] != without.metrics["valid_loss"]


def test_the_same_seed_gives_the_same_numbers(results: dict[str, Result], folder: Path) -> None:
    (again,) = run_table(TABLE, "tiny", folder / "again", folder / "work", "hard EM")
    assert again.metrics == pytest.approx(dict(results["hard EM"].metrics), rel=1e-3)


def test_a_run_that_was_trained_elsewhere_is_taken_if_its_settings_are_the_same(
    teacher: Path, tmp_path: Path
) -> None:
    known = load_translation_run(teacher)
    shutil.copytree(teacher / FOLDER, tmp_path / "by hand" / FOLDER)
    found = teacher_of(known.config, tmp_path)
    assert found.place == tmp_path / "by hand"
    # With another seed it is another teacher, which is trained.
    other = teacher_of(known.config.with_seed(5), tmp_path)
    assert other.place != found.place
    assert weights_digest(other.run.translator) != weights_digest(known.translator)


def test_an_interrupted_teacher_goes_on(teacher: Path, tmp_path: Path) -> None:
    # As if it was killed after the last step, before the model was written.
    copy = tmp_path / teacher.name
    shutil.copytree(teacher, copy, ignore=lambda *_: [FOLDER, DISTILLED])
    known = load_translation_run(teacher)
    found = teacher_of(known.config, tmp_path)
    assert found.place == copy
    assert weights_digest(found.run.translator) == weights_digest(known.translator)


def test_arms_of_another_width_start_from_a_teacher_as_wide(teacher: Path, tmp_path: Path) -> None:
    arm = Arm(
        "narrow",
        {
            **TABLE.arm("hard EM").settings,
            "model.dim": 16,
            "teacher.weights": {"dim": 16, "share": 0.5},
        },
    )
    narrow = replace(TABLE, arms=(arm,), claims=())
    teachers = tmp_path / "work" / TEACHERS
    shutil.copytree(teacher, teachers / "known")
    (result,) = run_table(narrow, "tiny", tmp_path / "results", tmp_path / "work")
    (other,) = (place for place in teachers.glob(f"*/{FOLDER}") if place.parent.name != "known")
    config, known = load_translation_run(other.parent).config, load_translation_run(teacher).config
    assert (config.model["dim"], known.model["dim"]) == (16, 32)
    assert (config.training.steps, known.training.steps) == (2, 4)
    # Texts and times are those of the teacher that all arms have.
    assert result.details["teacher"]["config"] == known.model_dump(mode="json")
    assert not (other.parent / DISTILLED).exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": None, "teacher": None}, "expected a model, or a teacher"),
        ({"data.source": "multi30k/test_2016_flickr.en"}, "the same source"),
    ],
)
def test_arms_that_make_no_sense_are_refused(
    settings: dict[str, Any], message: str, teacher: Path, tmp_path: Path
) -> None:
    arm = Arm("odd", {**TABLE.arm("hard EM").settings, **settings})
    odd: Table = replace(TABLE, arms=(arm,), claims=())
    with pytest.raises(ConfigError, match=message):
        run_table(odd, "tiny", tmp_path, teacher.parent.parent)
