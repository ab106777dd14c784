"""A small table with a hostile vocabulary, and a browser where the machine has one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from smalti.embeddings import build_compressor
from smalti.report import TableSubject

HOSTILE = [
    "<script>window.harmed = 1</script>",
    "</script><script>window.harmed = 2</script>",
    "<img src=x onerror='window.harmed = 3'>",
    '"\'` onmouseover=window.harmed=4 x="',
    "\u202egnorw\u202c\u2066\u200f",
    "nul\x00nul",
    "line\u2028break\u2029",
    "{{ 7 * 7 }}{% raw %}",
    "]]><!--",
    "\ud800half",
    "x" * 10_000,
    "",
]
WORDS = ["monday", "tuesday", "Ġguitar", "##piano", "▁zwölf", "日本", "🙂"]


@pytest.fixture(scope="session")
def subject() -> TableSubject:
    """400 rows, some kept, the rest coded; the first tokens are hostile."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(20, 24, generator=generator)
    original = centres[torch.arange(400) % 20] + 0.5 * torch.randn(400, 24, generator=generator)
    counts = 1000 // torch.arange(1, 401)
    rest = {"compressor": "product", "num_codebooks": 6, "codebook_size": 16}
    method = build_compressor("partial", keep=5, kept="int8", rest=rest)
    tokens = [*HOSTILE, *WORDS, *(f"word{number}" for number in range(400))][:400]
    return TableSubject(
        name="</title><script>window.harmed = 5</script>",
        table=method.fit(original, counts=counts),
        original=original,
        tokens=tokens,
        counts=counts,
        figures={"output_cosine": 0.9876},
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; skips where there is none, and fetches nothing."""
    selenium = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    chromium = chromium or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(
            "the browser test needs Chromium and its driver: apt-get install chromium "
            "chromium-driver"
        )
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    opened = selenium.Chrome(options=options, service=service)
    yield opened
    opened.quit()
