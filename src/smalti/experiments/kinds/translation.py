"""Translation models, with a teacher or without, trained and measured on unseen sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, PositiveInt

from smalti.data import AlignedTexts, read_aligned
from smalti.errors import ConfigError, require
from smalti.experiments.kinds.base import Kind, Measured, kinds, shared_place
from smalti.experiments.kinds.teachers import Teacher, teacher_of
from smalti.layers.modes import one_thread
from smalti.recipes.translation import (
    TranslationConfig,
    TranslationEvaluation,
    TranslationRun,
    evaluate_translation_run,
    find_pair,
    load_translation_run,
    train_translation_run,
)
from smalti.recipes.translation.evaluating import SHUFFLED, TEACHER_FORCED
from smalti.recipes.translation.latency import JOINED, latencies
from smalti.recipes.translation.running import STAGE
from smalti.training import Settings, as_settings, read_journal
from smalti.translation import Decoding

# Beside the folders of the tables: what was trained once for all of them.
TEACHERS = "teachers"
# Before the names of what the teacher takes, timed by turns with the arm.
THEIRS = "teacher_"
# Before those of beam search.
BEAM = "beam_"
# At the end of the name of a row whose translations a teacher chose.
RESCORED = "rescored"
# What is how many times faster than what of the teacher's.
SPEEDUPS = (
    ("speedup", "latency_ms", "latency_ms"),
    ("speedup_over_beam", "latency_ms", f"{BEAM}latency_ms"),
    ("long_speedup", "long_latency_ms", "long_latency_ms"),
)


class OtherTeacher(Settings):
    """A teacher like another one, for arms of another width.

    Args:
        dim: Its width.
        share: Of the other's steps.
    """

    dim: PositiveInt
    share: float = Field(default=1.0, gt=0, le=1)

    def like(self, config: TranslationConfig) -> TranslationConfig:
        """How it is trained."""
        steps = config.training.steps
        require(steps is not None, "expected a teacher whose training has steps, got epochs")
        assert steps is not None  # required above
        training = config.training.model_copy(update={"steps": math.ceil(self.share * steps)})
        model = {**config.model, "dim": self.dim}
        return config.model_copy(update={"model": model, "training": training})


class TeacherSettings(Settings):
    """What an arm has from a teacher.

    Args:
        config: How the teacher is trained; its seed is its own, whatever the arm's.
        weights: Whether the arm starts from the teacher's vocabulary and weights, or from
            those of another teacher.
        texts: Whether it learns what the teacher makes of the sources, in the place of what
            people wrote.
    """

    config: TranslationConfig
    weights: bool | OtherTeacher = True
    texts: bool = True


class UnseenSettings(Settings):
    """What an arm is measured by.

    Args:
        data: The common beginning of the names of two files, such as
            ``multi30k:test_2016_flickr``.
        sentences: How many of them; None for all.
        timed: On how many translating is timed.
        lengths: From how many lengths the teacher chooses, for a figure of its own; one for none.
    """

    data: str
    sentences: PositiveInt | None = None
    timed: PositiveInt = 100
    lengths: PositiveInt = 1


@kinds.register("translation")
class Translation(Kind):
    """Settings are those of ``TranslationConfig``, and ``unseen`` and ``teacher``.

    Without a model it is the teacher that is measured. None in the settings of a model, or of
    its quantizer, leaves them to their defaults: so an arm drops what the base says.
    """

    together: ClassVar[bool] = True

    def measure(self, settings: dict[str, Any], seed: int, place: Path) -> Measured:
        """Train by a config, measure the test sentences with one thread."""
        unseen = as_settings(UnseenSettings, settings.pop("unseen"))
        given = settings.pop("teacher", None)
        lessons = None if given is None else as_settings(TeacherSettings, given)
        teacher = None
        if lessons is not None:
            teacher = teacher_of(lessons.config, shared_place(place, TEACHERS))
        if settings["model"] is None:
            require(teacher is not None, "expected a model, or a teacher to measure; got neither")
            assert teacher is not None  # required above
            run, spent, curve = teacher.run, dict[str, float](), list[dict[str, Any]]()
        else:
            if lessons is not None and teacher is not None:
                _take(settings, lessons, teacher)
            settings["model"] = _without_none(settings["model"])
            config = as_settings(TranslationConfig, {"kind": "translation", **settings})
            config = config.with_seed(seed)
            run, spent, curve = _trained(config, place)
        pairs = _pairs(run, unseen)
        with one_thread():
            found = _evaluated(run, pairs, unseen.lengths, teacher)
            times = _times(run, teacher, pairs.source, unseen.timed)
        metrics = {
            **_scores(found),
            **_latents(found),
            **_size(run, found),
            **{f"valid_{name}": value for name, value in run.figures[STAGE].items()},
        }
        return Measured(
            # A run that went astray may end in numbers that are none.
            {name: value for name, value in metrics.items() if math.isfinite(value)},
            {
                "evaluation": found.as_dict(),
                "curve": curve,
                "teacher": None if teacher is None else teacher.given_to(run),
            },
            {**times, **spent},
        )


def _take(settings: dict[str, Any], lessons: TeacherSettings, teacher: Teacher) -> None:
    """Put what an arm has from its teacher into its settings."""
    if isinstance(lessons.weights, OtherTeacher):
        # Teachers lie side by side.
        start = teacher_of(lessons.weights.like(lessons.config), teacher.place.parent)
        settings["start_from"] = str(start.place)
    elif lessons.weights:
        settings["start_from"] = str(teacher.place)
    if lessons.texts:
        require(
            settings["data"]["source"] == lessons.config.data.source,
            "expected teacher and arm to read the same source, got "
            f"{lessons.config.data.source} and {settings['data']['source']}",
        )
        settings["data"]["distilled"] = str(teacher.distilled())


def _without_none(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_none(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if value is not None
    }


def _trained(
    config: TranslationConfig, place: Path
) -> tuple[TranslationRun, dict[str, float], list[dict[str, Any]]]:
    """The model, what training took, and the evaluations on the way."""
    outcome = train_translation_run(config, place, resume=any(place.iterdir()))
    if not outcome.finished:
        raise ConfigError("stopped before the end; the same command goes on")
    curve = [
        {"step": line["step"], **line["metrics"]}
        for line in read_journal(place / STAGE)
        if line["kind"] == "evaluate"
    ]
    seconds = outcome.stages[STAGE].seconds
    return load_translation_run(place), {"training_seconds": seconds}, curve


def _pairs(run: TranslationRun, unseen: UnseenSettings) -> AlignedTexts:
    pairs = read_aligned(*find_pair(unseen.data, None, run.config.data))
    many = unseen.sentences
    return replace(pairs, source=pairs.source[:many], target=pairs.target[:many])


def _evaluated(
    run: TranslationRun, pairs: AlignedTexts, lengths: int, teacher: Teacher | None
) -> TranslationEvaluation:
    if lengths == 1 or teacher is None:
        return evaluate_translation_run(run, pairs, timed=0)
    options = replace(run.decoding, lengths=lengths)
    return evaluate_translation_run(run, pairs, options, rescore_with=teacher.run, timed=0)


def _scores(found: TranslationEvaluation) -> dict[str, float]:
    """The first way of translating is the plain one: greedy, or from predicted latents."""
    plain, *others = found.scores
    rescored = [name for name in others if name.endswith(RESCORED)]
    made = {f"{RESCORED}_bleu": found.scores[name].bleu for name in rescored} | {
        "bleu": found.scores[plain].bleu,
        "chrf": found.scores[plain].chrf,
        "length_ratio": found.scores[plain].length_ratio,
    }
    for beam in (name for name in others if name not in rescored):
        made |= {f"{BEAM}bleu": found.scores[beam].bleu, f"{BEAM}chrf": found.scores[beam].chrf}
    return made


def _latents(found: TranslationEvaluation) -> dict[str, float]:
    if found.codes is None:
        return {}
    books = found.codes["codebooks"]
    return {
        "teacher_forced_bleu": found.bounds[TEACHER_FORCED].bleu,
        "shuffled_bleu": found.bounds[SHUFFLED].bleu,
        "codes_in_use": float(sum(book["in_use"] for book in books)),
        "used_share": found.codes["used_share"],
        "entropy_bits": sum(book["entropy_bits"] for book in books),
    }


def _times(
    run: TranslationRun, teacher: Teacher | None, texts: Sequence[str], timed: int
) -> dict[str, float]:
    """Of a model and its teacher by turns, so that a busy machine does not decide a speedup."""
    ways = _ways(run)
    if teacher is not None:
        ways |= {f"{THEIRS}{name}": way for name, way in _ways(teacher.run).items()}
    made: dict[str, float] = {}
    for name, latency in latencies(ways, texts, timed).items():
        made[f"{name}latency_ms"] = latency.milliseconds
        made[f"{name}sentences_per_second"] = latency.sentences_per_second
        if JOINED in latency.long_milliseconds:
            made[f"{name}long_latency_ms"] = latency.long_milliseconds[JOINED]
    for speedup, ours, theirs in SPEEDUPS:
        if THEIRS + theirs in made and ours in made:
            made[speedup] = made[THEIRS + theirs] / made[ours]
    return made


def _ways(run: TranslationRun) -> dict[str, tuple[TranslationRun, Decoding]]:
    """The plain way of translating, and beam search where a model has it."""
    plain = replace(run.decoding, beam=1)
    ways = {"": (run, plain)}
    return ways if run.decoding == plain else {**ways, BEAM: (run, run.decoding)}


def _size(run: TranslationRun, found: TranslationEvaluation) -> dict[str, float]:
    # An output layer of its own is no table to look up in.
    read = [table for use, table in found.tables.items() if use != "output"]
    saved = float(sum(table.saved for table in read))
    return {
        "table_bytes": saved,
        "table_ratio": sum(table.full for table in read) / saved,
        "parameters": float(sum(one.numel() for one in run.translator.parameters())),
    }
