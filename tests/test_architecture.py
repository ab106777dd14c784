"""The house stands: imports go one way, files stay small, names say something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "smalti"
# From the ground up; a room may import from floors below its own, and from itself.
FLOORS = [
    {"errors"},
    {"registry", "progress", "together"},
    {"specs"},
    {"artifacts"},
    {"layers", "codes", "training", "data"},
    {"quantizers"},
    {"embeddings", "autoencoders", "priors", "translation"},
    {"recipes"},
    {"codec", "hub", "analysis"},
    {"report"},
    {"experiments"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(path for path in SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms_imported_by(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [node.module or ""]
            if node.module == "smalti":
                names = [f"smalti.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("smalti.")}
    return found & LEVEL.keys()


def test_the_rules_cover_the_whole_tree() -> None:
    assert len(FILES) > 30
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms <= LEVEL.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    for other in rooms_imported_by(path) - {room}:
        assert LEVEL[other] < LEVEL[room], f"{room} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_small_and_named_for_what_they_hold(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300
    assert path.stem not in {"utils", "helpers", "common", "misc", "other"}
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} says nothing of itself"


METHODS = [
    path
    for path in sorted((SOURCE / "quantizers").glob("*.py"))
    if "@quantizers.register(" in path.read_text()
]


@pytest.mark.parametrize("path", METHODS, ids=lambda path: path.stem)
def test_a_methods_file_says_where_it_comes_from_and_how_it_differs(path: Path) -> None:
    if path.stem in {"identity", "channels_first"}:
        return
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert "Reference:" in text
    assert "Differs from the paper:" in text


def test_every_method_has_tests_of_its_own() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests" / "quantizers").glob("*.py"))
    for path in METHODS:
        for name in re.findall(r"register\(.*\)\nclass (\w+)\(", path.read_text()):
            assert name in tests, f"{name} is tested nowhere in tests/quantizers"
