"""Transformers knows smalti's models in either order of imports, and never fails by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import smalti

LOADS = """
model = transformers.AutoModel.from_pretrained({directory!r})
assert type(model.embeddings.word_embeddings).__name__ == "TableEmbedding", model
"""
ORDERS = {
    "smalti first": "import smalti, transformers",
    "transformers first": "import transformers, smalti",
    "after its models": "import transformers.modeling_utils\nimport smalti",
    "the plug-in by itself": "import smalti.hub.plugin, transformers",
    "sentence-transformers between": "import smalti, sentence_transformers, transformers",
    "in another thread": (
        "import threading\n"
        "def work():\n"
        "    import transformers.quantizers.auto\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "import time; time.sleep({pause})\n"
        "import smalti\n"
        "thread.join()\n"
        "import transformers"
    ),
}


def run(code: str, *options: str) -> str:
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def saved(make_model: Callable[..., Any], make_table: Callable[..., Any], tmp_path: Path) -> str:
    model = smalti.replace_table(make_model("bert-encoder"), make_table())
    model.save_pretrained(tmp_path / "small")
    return str(tmp_path / "small")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["smalti first", "transformers first", "after its models"])
def test_a_model_opens_in_either_order_of_imports(saved: str, order: str) -> None:
    code = f"{ORDERS[order]}\nimport transformers\n{LOADS.format(directory=saved)}"
    words = run(code)
    assert "Unknown quantization" not in words
    assert "could not register" not in words


@pytest.mark.slow
@pytest.mark.parametrize("order", ["the plug-in by itself", "sentence-transformers between"])
def test_a_model_opens_whoever_imports_transformers(saved: str, order: str) -> None:
    if order.startswith("sentence"):
        pytest.importorskip("sentence_transformers")
    assert "could not register" not in run(f"{ORDERS[order]}\n{LOADS.format(directory=saved)}")


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.3, 3.0])
def test_a_model_opens_when_transformers_is_imported_in_another_thread(
    saved: str, pause: float
) -> None:
    code = ORDERS["in another thread"].replace("{pause}", str(pause))
    assert "could not register" not in run(f"{code}\n{LOADS.format(directory=saved)}")


def test_importing_smalti_imports_neither_torch_nor_transformers() -> None:
    heavy = "{'torch', 'transformers', 'numpy', 'safetensors'}"
    assert run(f"import sys, smalti, smalti.hub\nassert not {heavy} & sys.modules.keys()") == ""


def test_the_finder_is_there_once_and_finds_nothing_else() -> None:
    code = """
import importlib, sys, smalti
importlib.reload(smalti)
waiting = [f for f in sys.meta_path if type(f).__module__ == "smalti.hub.registration"]
assert len(waiting) == 1
assert waiting[0].find_spec("json", None) is None
import json.tool
"""
    run(code)


@pytest.mark.slow
def test_the_finder_goes_when_its_work_is_done_and_leaves_no_trace() -> None:
    code = """
import inspect, smalti, sys
import importlib.util
# Looking for a module without importing it must not be taken for an import.
importlib.util.find_spec("transformers.quantizers.auto")
from transformers.quantizers import auto
assert "smalti" in auto.AUTO_QUANTIZER_MAPPING
assert "smalti" in auto.AUTO_QUANTIZATION_CONFIG_MAPPING
assert not any(type(f).__module__ == "smalti.hub.registration" for f in sys.meta_path)
assert type(auto.__loader__).__name__ == "SourceFileLoader"
assert auto.__spec__.loader is auto.__loader__
assert "AUTO_QUANTIZER_MAPPING" in inspect.getsource(auto)
import importlib, smalti.hub.plugin
importlib.reload(smalti.hub.plugin)
smalti.hub.registration.ensure_registered()
"""
    run(code)


def test_without_transformers_everything_else_works(tmp_path: Path) -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "transformers":
            raise ModuleNotFoundError("No module named 'transformers'", name="transformers")
sys.meta_path.insert(0, Absent())
import smalti
smalti.build
try:
    smalti.load_model({str(tmp_path)!r})
except smalti.errors.MissingExtraError as error:
    assert "smalti[hf]" in str(error)
else:
    raise AssertionError
try:
    import transformers
except ModuleNotFoundError:
    pass
"""
    run("import smalti.errors\n" + code)


def test_another_transformers_is_imported_with_a_warning(tmp_path: Path) -> None:
    package = tmp_path / "transformers" / "quantizers"
    package.mkdir(parents=True)
    (tmp_path / "transformers" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "auto.py").write_text("READY = True")
    code = f"""
import sys, warnings
sys.path.insert(0, {str(tmp_path)!r})
import smalti
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from transformers.quantizers.auto import READY
assert any("could not register" in str(w.message) for w in caught)
"""
    run(code)
