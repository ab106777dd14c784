"""The page as a reader meets it: in headless Chromium, from a file, offline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from smalti.report import Report, TableSubject, make_report, report_table, write_page

pytestmark = pytest.mark.slow  # A browser is started.


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, subject: TableSubject) -> Path:
    return write_page(report_table(subject), tmp_path_factory.mktemp("page") / "report.html")


def open_page(browser: Any, page: Path) -> None:
    browser.get_log("browser")
    browser.get(page.as_uri())


def typed(browser: Any, text: str) -> str:
    """What the page answers to a token."""
    box = browser.find_element("id", "search")
    box.clear()
    box.send_keys(text)
    return str(browser.find_element("id", "answer").text)


def test_the_first_screen_tells_what_was_gained_and_lost(browser: Any, page: Path) -> None:
    open_page(browser, page)
    assert "kept a cosine of 0.9876" in browser.find_element("css selector", "h1").text
    numbers = browser.find_elements("css selector", ".big dd")
    assert [number.text for number in numbers][1] == "0.9876"
    assert len(numbers) == 3
    bottom = max(number.rect["y"] + number.rect["height"] for number in numbers)
    assert bottom < browser.execute_script("return window.innerHeight")


def test_figures_are_drawn_and_tell_their_numbers(browser: Any, page: Path) -> None:
    open_page(browser, page)
    figures = browser.find_elements("css selector", "figure svg")
    assert len(figures) >= 6
    assert all(figure.size["height"] > 20 for figure in figures)
    heat = browser.find_element("css selector", ".heat .cells")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", heat)
    chains = pytest.importorskip("selenium.webdriver").ActionChains(browser)
    chains.move_to_element(heat).perform()
    tip = browser.find_element("id", "tip")
    assert tip.is_displayed()
    # The middle of 6 x 16 cells is where four meet.
    assert re.match(r"codebook [23], codeword [78]\n\d+ times chosen", tip.text)
    bar = browser.find_element("css selector", "rect.bar[data-tip]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", bar)
    chains.move_to_element(bar).perform()
    assert "bytes" in tip.text


def test_a_token_typed_into_the_box_is_answered(browser: Any, page: Path) -> None:
    open_page(browser, page)
    answer = typed(browser, "guitar")
    assert answer.startswith("Ġguitar")
    assert "stored as 6 codes of 16" in answer
    for part in ("Share most codes", "Neighbours before", "Neighbours after"):
        assert part in answer
    assert len(browser.find_elements("css selector", ".tiles span")) == 6
    # A word of the answer leads on.
    word = browser.find_elements("css selector", "#answer li .word")[0]
    following = word.text
    word.click()
    assert browser.find_element("css selector", "#answer h4").text == following
    assert typed(browser, "no such token at all") == ""


def test_the_answer_is_what_the_table_holds(
    browser: Any, page: Path, subject: TableSubject
) -> None:
    import torch

    from smalti.analysis import find_neighbours
    from smalti.embeddings.tiers import tiers

    open_page(browser, page)
    typed(browser, "word100")
    row = list(subject.tokens).index("word100")
    coded = tiers(subject.table)[1]
    codes = coded.codes()
    own = codes[int((coded.ids == row).nonzero())]
    shown = [tile.text for tile in browser.find_elements("css selector", ".tiles span")]
    assert shown == [str(code) for code in own.tolist()]
    shared = (codes == own).sum(dim=1)
    shared[coded.ids == row] = -1
    told = browser.find_element("css selector", ".three > div:first-child li b").text
    assert told == f"{int(shared.max())} of 6"
    assert subject.original is not None
    found = find_neighbours(subject.original, subject.table.dense(), torch.tensor([row]))
    lists = browser.find_elements("css selector", ".three > div")
    words = [
        [word.text for word in part.find_elements("css selector", ".word")] for part in lists[1:]
    ]
    from smalti.report.words import all_visible

    names = all_visible(subject.tokens, 400)
    assert words[0] == [" ".join(names[row].split()) for row in found.before[0].tolist()]
    assert words[1] == [" ".join(names[row].split()) for row in found.after[0].tolist()]


@pytest.mark.parametrize("text", ["<script", "nul", "onerror", "xxxxxxx", "202e", "half", "{{ 7"])
def test_hostile_tokens_are_shown_and_never_run(browser: Any, page: Path, text: str) -> None:
    open_page(browser, page)
    assert typed(browser, text)
    for match in browser.find_elements("css selector", "#matches .word")[:3]:
        match.click()
        break
    assert browser.execute_script("return window.harmed === undefined")
    assert browser.execute_script("return document.querySelectorAll('script').length") == 2
    assert browser.execute_script("return document.querySelectorAll('img[src=x]').length") == 0
    assert browser.get_log("browser") == []


def test_nothing_is_wider_than_a_phone_in_either_scheme(browser: Any, page: Path) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        backgrounds = set()
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            open_page(browser, page)
            assert browser.execute_script("return document.documentElement.scrollWidth") == 390
            colour = "return getComputedStyle(document.body).backgroundColor"
            backgrounds.add(browser.execute_script(colour))
        assert len(backgrounds) == 2
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_levels_of_an_image_run_can_be_switched(
    browser: Any, tmp_path: Path, trained: Path
) -> None:
    made: Report = make_report(trained)
    open_page(browser, write_page(made, tmp_path / "run.html"))
    buttons = browser.find_elements("css selector", ".levels button")
    assert [button.text for button in buttons] == ["all codes", "top alone", "bottom alone"]
    shown = "return document.querySelector('.pair span:not([hidden])').dataset.layer"
    assert browser.execute_script(shown) == "0"
    buttons[1].click()
    assert browser.execute_script(shown) == "1"
    note = browser.find_element("css selector", "[data-note]:not([hidden])").text
    assert note.startswith("top alone")
    assert browser.get_log("browser") == []
