"""The page in a real browser: Chromium opens it, nothing is asked for, nothing complained of, all of it is readable."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from browsing import COMPARISON, Pages, opened, violations
from documents import document
from playwright.sync_api import Browser

from rigctl.findings import Finding, Severity, Weight
from rigctl.report.printers.html import write_page

AXE: Final = (("matrix", "dark"), ("soak", "light"), ("datagrams", "light"), (COMPARISON, "light"))
"""Pages that together with that of streams (test_chart_readings.py) have each element and class of all kinds of pages.

Contrasts in charts: test_palette.py.
"""
TABLED: Final = ("streams", "ping-pong", "blast", "datagrams", "files", "bins", "counters", COMPARISON)
RIGHT: Final = "cells => Math.max(...cells.map((cell) => cell.getBoundingClientRect().right))"


@pytest.mark.parametrize(("name", "scheme"), AXE)
def test_axe_finds_no_violation_on_a_page_of_any_kind(browser: Browser, page_of: Pages, name: str, scheme: Any) -> None:
    with opened(browser, page_of(name), bypass_csp=True, scheme=scheme) as page:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        assert violations(page) == ""


def test_axe_finds_no_violation_on_the_page_of_a_mesh_on_a_phone(browser: Browser) -> None:
    sample = Path(__file__).parents[2] / "reports" / "samples" / "10gbe-mesh.html"
    with opened(browser, sample, 390, 844, bypass_csp=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert violations(page) == ""


@pytest.mark.parametrize("name", TABLED)
def test_on_a_phone_the_first_table_needs_no_scrolling_sideways(browser: Browser, page_of: Pages, name: str) -> None:
    with opened(browser, page_of(name), 390, 844) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        first = page.locator(".result .scroll").first
        assert first.evaluate("box => box.scrollWidth <= box.clientWidth")
        cells = first.locator("th:visible, td:visible")
        assert cells.evaluate_all(RIGHT) <= 390
        few, folded = cells.count(), page.locator(".result details.narrow summary")
        if folded.count():
            folded.first.click()
            assert cells.count() > few  # all columns, to be scrolled sideways


def test_the_first_screen_has_the_answer_what_fell_short_and_the_picture(browser: Browser, tmp_path: Path) -> None:
    info, measured = builders.gigablox()
    made = document(info, measured)
    short = [
        Finding("expectation-not-met", f"Not as expected: {number}.", Weight.EXPECTED, Severity.ERROR)
        for number in range(3)
    ]
    path = tmp_path / "short.html"
    write_page(replace(made, findings=(made.findings[0], *short, *made.findings[1:])), path)
    with opened(browser, path, height=800) as page:
        for seen_first in (".lead", ".short li:last-child", "figure", ".result h2"):
            box = page.locator(seen_first).first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 800, seen_first


def test_a_page_asks_for_nothing_leads_to_each_section_and_holds_the_data(browser: Browser, page_of: Pages) -> None:
    with opened(browser, page_of("streams")) as page:
        page.wait_for_load_state("networkidle")
        assert page.title() == builders.plan().title
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        page.locator(".contents.wide a", has_text="Reproduce").click()
        assert page.locator(":target h2").inner_text() == "Reproduce"
        data = page.evaluate("JSON.parse(document.getElementById('rigctl-data').textContent)")
        assert data["run"] in page.locator(".meta").inner_text()
        assert len(data["pairs"]["rows"]) == 16  # seven tests of two pairs, one of them twice


def test_print_shows_all_of_the_table_and_the_folded_parts(browser: Browser, page_of: Pages) -> None:
    # 182 mm, an A4 page less its margins, at 96 dots per inch.
    with opened(browser, page_of("streams"), 688, 1000, scheme="dark") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("document.querySelector('.results').scrollWidth") <= 688
        assert page.locator("details pre").first.bounding_box() is not None
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_title_that_is_a_script_is_shown_and_not_run(browser: Browser, tmp_path: Path) -> None:
    _, measured = builders.gigablox()
    title = "<script>document.title = 'broken in'</script>"
    path = tmp_path / "nasty.html"
    write_page(document(builders.run(builders.plan(title=title)), measured), path)
    with opened(browser, path) as page:
        assert page.title() == title
        assert page.locator("h1").inner_text() == title


@pytest.mark.parametrize(
    ("name", "most"), [("matrix", 3000), ("soak", 3200), ("ping-pong", 3500), (COMPARISON, 30_000)]
)
def test_a_large_page_is_as_wide_as_the_window_and_not_endless(
    browser: Browser, page_of: Pages, name: str, most: int
) -> None:
    with opened(browser, page_of(name)) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 1280
        assert page.evaluate("document.documentElement.scrollHeight") <= most
        cut = "all => all.filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1).length"
        assert page.locator(".scroll").evaluate_all(cut) == 0
