"""Charts of a page in a real browser: values by mouse, touch and keys, one cursor for all charts, series that hide."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pages
import pytest
from browsing import Pages, opened, unfold, violations, window
from playwright.sync_api import Browser, Locator, Page

from rigctl.base.resources import templates

MOST_BYTES: Final = 6 * 1024
DRAWN: Final = "svg => [svg.dataset.axis, svg.querySelector('.cursor path').getAttribute('d')]"
"""Returns the axis of a chart, and the line of its cursor."""
PHONE: Final[dict[str, Any]] = {"width": 390, "height": 844}


@contextmanager
def unfolded(browser: Browser, report: Path, **context: Any) -> Iterator[Page]:
    with opened(browser, report, **context) as page:
        unfold(page)
        yield page


def charts(page: Page) -> Locator:
    return page.locator("svg[data-axis]")


def middle(chart: Locator) -> tuple[float, float]:
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 3


def reading(page: Page) -> list[str]:
    shown = page.locator(".reading")
    return [" ".join(line.split()) for line in shown.locator("b, p").all_inner_texts()] if shown.is_visible() else []


def told(chart: Locator, name: str, at: int, panel: int = 0) -> tuple[str, str]:
    """The position and the value of point `at` of a series, as the page holds them."""
    own = chart.locator("[data-panel]").nth(panel)
    x = own.locator("[data-x]").first.get_attribute("data-x") or ""
    y = own.locator(f'[data-name="{name}"][data-y]').get_attribute("data-y") or ""
    return x.split(" ")[at], y.split(" ")[at]


def test_the_mouse_reads_each_series_and_the_cursor_stands_in_all_charts(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams")) as page:
        first = charts(page).first
        page.mouse.move(*middle(first))
        lines = reading(page)
        assert re.fullmatch(r"[0-9.]+ seconds", lines[0])
        xs = (first.locator("[data-x]").first.get_attribute("data-x") or "").split(" ")
        at = xs.index(lines[0].split()[0])
        for name, panel in product(("pi1 → pi2", "pi3 → pi4"), (0, 1)):
            assert f"{name} {told(first, name, at, panel)[1]}" in lines
        assert lines[1] == "Mbit/s"
        assert "retransmits" in lines
        assert page.locator(".cursor").count() == charts(page).count() > 1
        places = page.locator(".cursor").evaluate_all("all => all.map((one) => one.firstChild.getAttribute('d'))")
        assert len({place.split("v")[0] for place in places}) == 1  # tests of the same length: the same place in each
        page.mouse.move(5, 5)
        assert reading(page) == []
        assert page.locator(".cursor").count() == 0


def test_a_finger_reads_a_chart_and_a_touch_elsewhere_ends_it(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams"), **PHONE, has_touch=True, is_mobile=True) as page:
        page.touchscreen.tap(*middle(charts(page).nth(1)))
        assert reading(page)[1] == "Mbit/s"
        box = page.locator(".reading").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        heading = page.locator("h2").first
        heading.scroll_into_view_if_needed()
        heading.tap()
        assert reading(page) == []


def test_arrow_keys_read_point_by_point(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams")) as page:
        chart = charts(page).first
        chart.locator("xpath=ancestor::figure").focus()
        assert reading(page) == []
        for key, at in (("Right", 0), ("Right", 1), ("End", -1), ("Right", -1), ("Left", -2), ("Home", 0)):
            page.keyboard.press(key if key in ("End", "Home") else f"Arrow{key}")
            x, value = told(chart, "pi1 → pi2", at)
            assert reading(page)[0] == f"{x} seconds", key
            assert f"pi1 → pi2 {value}" in reading(page)
        assert page.locator('.reading[role="status"]').count() == 1
        page.keyboard.press("Escape")
        assert reading(page) == []
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Tab")
        assert reading(page) == []


def test_a_key_of_the_legend_hides_its_series_and_paper_has_all(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams")) as page:
        over_time = page.locator("#goodput-over-time")
        key = over_time.get_by_role("button", name="pi1 → pi2")
        own = over_time.locator('svg [data-name="pi1 → pi2"]')
        assert own.first.is_visible()
        key.click()
        assert key.get_attribute("aria-pressed") == "false"
        assert not any(own.nth(number).is_visible() for number in range(own.count()))
        page.mouse.move(*middle(charts(page).first))
        assert any(line.startswith("pi3 → pi4 ") for line in reading(page))
        assert not any(line.startswith("pi1 → pi2 ") for line in reading(page))
        page.emulate_media(media="print")
        assert own.first.is_visible()
        assert not page.locator(".reading").is_visible()
        assert not page.locator(".cursor").first.is_visible()
        page.emulate_media(media="screen")
        key.focus()
        page.keyboard.press("Enter")
        assert key.get_attribute("aria-pressed") == "true"
        assert own.first.is_visible()
        page.get_by_role("button", name="ceiling of a pair").click()
        assert not page.locator('svg [data-name="ceiling of a pair"]').first.is_visible()


def test_axe_finds_no_violation_while_a_chart_is_read(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams"), bypass_csp=True) as page:
        page.get_by_role("button", name="pi1 → pi2").last.click()
        page.mouse.move(*middle(charts(page).first))
        assert violations(page, "dark") == ""
        assert reading(page)


def test_the_policy_allows_this_script_and_no_other(browser: Browser, page_of: Pages, tmp_path: Path) -> None:
    assert len((templates() / "charts.js").read_bytes()) <= MOST_BYTES
    text = page_of("streams").read_text("utf-8")
    assert text.count("<script>") == 1
    other = tmp_path / "other.html"
    other.write_text(text.replace("<script>", "<script>document.title = 'ran';", 1), encoding="utf-8")
    page = window(browser)
    page.goto(other.as_uri())
    assert page.title() != "ran"
    assert page.locator(".reading").count() == 0


def test_without_its_script_a_page_is_whole(browser: Browser, page_of: Pages) -> None:
    with unfolded(browser, page_of("streams"), java_script_enabled=False) as page:
        assert page.locator("figure svg path").count() > 10
        assert page.get_by_role("button").count() == 0


@pytest.mark.parametrize("name", [name for name in pages.RUNS if name != "counters"])
def test_the_values_of_every_chart_lie_where_they_are_drawn(browser: Browser, page_of: Pages, name: str) -> None:
    with unfolded(browser, page_of(name)) as page:
        for number in range(charts(page).count()):
            chart = charts(page).nth(number)
            chart.locator("xpath=ancestor::figure").focus()
            page.keyboard.press("End")
            axis, line = chart.evaluate(DRAWN)
            assert reading(page), name
            left, (*_, place, size) = float(line.removeprefix("M").split()[0]), json.loads(axis)
            assert place - 0.1 <= left <= place + size + 0.1
