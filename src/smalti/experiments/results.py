"""What an arm gave with a seed: one JSON file each, with all that is needed to run it again."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

import smalti
from smalti.artifacts import versions, write_file
from smalti.errors import ArtifactError, require
from smalti.experiments.table import Arm, Scale, Table

FORMAT = 2
# Whose versions change numbers.
PACKAGES = ("transformers", "tokenizers", "sacrebleu")


@dataclass(frozen=True)
class Result:
    """One arm, one scale, one seed.

    Args:
        table: Its table.
        arm: Its name.
        scale: How large it was run.
        seed: Of everything random.
        spec: All settings.
        spec_hash: Of the kind and the settings.
        source_hash: Of the source that ran; where interrupted work went on with another
            source, of each, joined by a plus.
        metrics: What was measured; the same seed on the same machine gives the same.
        timings: What took how long, and what follows from it.
        details: Figures over training and the like, for pictures.
        seconds: Of the run, with those of interrupted attempts that it went on from.
        machine: Processor, threads, system.
        versions: Of the packages that matter.
    """

    # A file that was edited by hand is read with care.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, allow_inf_nan=False, revalidate_instances="always"
    )

    table: str
    arm: str
    scale: Scale
    seed: int
    spec: Mapping[str, Any]
    spec_hash: str
    source_hash: str
    metrics: Mapping[str, float]
    timings: Mapping[str, float]
    details: Mapping[str, Any]
    seconds: float
    machine: Mapping[str, Any]
    versions: Mapping[str, str]


def result_path(folder: Path, table: Table, arm: Arm, scale: Scale, seed: int) -> Path:
    """Where a result lies."""
    return folder / table.name / scale / f"{file_name(arm.name)}.{seed}.json"


def file_name(name: str) -> str:
    """A name without what file systems do not like."""
    kept = [letter if letter.isalnum() or letter in ".+-" else "-" for letter in name]
    return "".join(kept).strip("-")


def write_result(folder: Path, table: Table, arm: Arm, result: Result) -> Path:
    """Write a result whole or not at all."""
    path = result_path(folder, table, arm, result.scale, result.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format": FORMAT, **asdict(result)}
    write_file(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")
    return path


def read_result(path: Path) -> Result:
    """A result that was written by this version's format."""
    try:
        content = json.loads(path.read_text())
        version = content.pop("format")
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path} is not a result: {error}; remove it") from error
    require(
        version == FORMAT,
        f"{path} is a result of another version (format {version}, this one reads {FORMAT}); "
        "remove it to run it again",
        ArtifactError,
    )
    try:
        return TypeAdapter(Result).validate_python(Result(**content))
    except (TypeError, ValidationError) as error:
        raise ArtifactError(f"{path} is not a whole result: {error}; remove it") from error


def read_results(
    folder: Path, table: Table, scale: Scale, arms: Iterable[Arm] | None = None
) -> dict[str, list[Result]]:
    """All results of a table that belong to its declaration, by arm.

    Results of other settings are left out: they answer another question.
    """
    found: dict[str, list[Result]] = {}
    for arm in table.arms_at(scale) if arms is None else arms:
        for path in sorted((folder / table.name / scale).glob(f"{file_name(arm.name)}.*.json")):
            result = read_result(path)
            if result.spec_hash == table.spec_hash(arm, scale) and result.arm == arm.name:
                require(
                    path == result_path(folder, table, arm, scale, result.seed),
                    f"{path} has another name than a result of seed {result.seed}; remove it",
                    ArtifactError,
                )
                found.setdefault(arm.name, []).append(result)
    return found


def measurements(found: Mapping[str, list[Result]]) -> dict[str, dict[str, dict[int, float]]]:
    """By arm, metric and seed."""
    made: dict[str, dict[str, dict[int, float]]] = {}
    for arm, results in found.items():
        own = made.setdefault(arm, {})
        for result in results:
            for name, value in {**result.metrics, **result.timings}.items():
                own.setdefault(name, {})[result.seed] = value
    return made


@cache
def source_hash() -> str:
    """Of all files of the package: a result names the code that made it."""
    digest = hashlib.sha256()
    root = Path(smalti.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def machine() -> dict[str, Any]:
    """What the seconds depend on."""
    import torch  # noqa: PLC0415  results are read without torch

    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.is_file():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed() -> dict[str, str]:
    """The versions of the packages that are installed and matter."""
    return versions(*(name for name in PACKAGES if importlib.util.find_spec(name) is not None))
