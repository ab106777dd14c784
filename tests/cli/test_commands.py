"""The command line as a user types it, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import smalti
from smalti.autoencoders import autoencoders
from smalti.autoencoders.likelihoods import likelihoods
from smalti.cli.main import app
from smalti.embeddings import compressors
from smalti.priors import priors
from smalti.quantizers import Product, quantizers
from smalti.registry import Registry
from smalti.translation import translators


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smalti", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def here(*arguments: str) -> str:
    """What a command prints, in this process, which is quicker."""
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def in_line(process: int | str) -> float:
    """For how many seconds a process could have run while others had all processors.

    What else runs on the machine must not decide over how long a command takes. Zero where the
    system does not tell.
    """
    told = Path(f"/proc/{process}/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def test_help_answers_in_less_than_half_a_second() -> None:
    times = []
    for _ in range(3):
        start, stood = time.perf_counter(), in_line("self")
        with subprocess.Popen(
            [sys.executable, "-m", "smalti", "--help"], stdout=subprocess.DEVNULL
        ) as command:
            # It is still there to be asked when it has ended.
            os.waitid(os.P_PID, command.pid, os.WEXITED | os.WNOWAIT)
            times.append(time.perf_counter() - start - in_line(command.pid))
        times[-1] -= in_line("self") - stood
        assert command.returncode == 0
    assert min(times) < 0.5


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, smalti, smalti.cli.main; assert 'torch' not in sys.modules; print('light')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "light\n"


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout == f"smalti {smalti.__version__}\n"


@pytest.mark.parametrize(
    ("family", "members"),
    [
        ("quantizers", quantizers),
        ("compressors", compressors),
        ("autoencoders", autoencoders),
        ("likelihoods", likelihoods),
        ("priors", priors),
        ("translators", translators),
    ],
)
def test_listing_names_every_member_of_a_family(family: str, members: Registry[Any]) -> None:
    listed = json.loads(here("list", family, "--json"))
    assert [entry["name"] for entry in listed] == members.names()
    assert all(entry["what"] and entry["settings"] is not None for entry in listed)
    table = here("list", family)
    assert all(name in table for name in members.names())


def test_inspecting_describes_a_saved_layer(tmp_path: Path) -> None:
    layer = Product(8, 2, 16).start_from(torch.randn(50, 8))
    smalti.save(layer, tmp_path / "layer")
    described = json.loads(run("inspect", str(tmp_path / "layer"), "--json").stdout)
    assert described["quantizer"] == "product"
    assert described["code_sizes"] == [16, 16]
    assert described["bits_per_vector"] == 8
    assert "product" in run("inspect", str(tmp_path / "layer")).stdout


@pytest.mark.parametrize(
    "arguments",
    [("list", "nothing"), ("inspect", "/nowhere"), ("inspect", "."), ("unknown",), ("list",)],
)
def test_bad_input_is_one_message_and_status_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_artifact_is_one_line_on_stderr(tmp_path: Path) -> None:
    smalti.save(Product(8, 2, 16), tmp_path / "layer")
    (tmp_path / "layer" / "tensors.safetensors").write_bytes(b"")
    done = run("inspect", str(tmp_path / "layer"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "tensors.safetensors is damaged" in done.stderr
