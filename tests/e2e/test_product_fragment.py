"""A product's fragment in real pages: it changes nothing of them, and they nothing of it; whole at any width."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import builders
import hosts
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from rigctl.report.product.content import product
from rigctl.report.product.page import fragment
from rigctl.report.product.theme import Theme, load_theme

ARGUMENTS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
STYLES: Final = """(root) => {
  const seen = [];
  for (const element of root.querySelectorAll("*")) {
    if (element.closest(".rigctl-product") || element.matches("script[type='application/ld+json']")) continue;
    for (const pseudo of [null, "::before", "::marker"]) {
      const style = getComputedStyle(element, pseudo);
      const values = [...style].sort().map((name) => name + ": " + style.getPropertyValue(name));
      seen.push([element.tagName + (pseudo || ""), values]);
    }
  }
  return seen;
}"""
AROUND: Final = ("HTML", "BODY", "MAIN", "DIV")
HEIGHTS: Final = ("height", "block-size", "perspective-origin", "transform-origin")
HOST: Final = f"({STYLES})(document)"
INSIDE: Final = """() => {
  const host = document.querySelector(".rigctl-product"), seen = [];
  for (const element of [host, ...host.shadowRoot.querySelectorAll("*")]) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    // Custom properties of the page exist inside, but nothing there reads them.
    seen.push([element.tagName, Math.round(box.width), Math.round(box.height),
      ...[...style].filter((name) => !name.startsWith("--bs-")).sort()
      .map((name) => name + ": " + style.getPropertyValue(name))]);
  }
  return seen;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pasted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The fragment of a run on hardware, with a logo and a claim."""
    folder = tmp_path_factory.mktemp("theme")
    (folder / "logo.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 1"><path d="M0 0h3v1z"/></svg>'
    )
    (folder / "t.yaml").write_text(
        "name: GigaBlox\nmaker: <b>BotBlox</b>\nlogo: logo.svg\nurl: https://shop.example/g\nwords: {notes: Four.}\n"
    )
    return fragment_of(load_theme(folder / "t.yaml"))


def fragment_of(theme: Theme) -> str:
    cells = builders.gigablox_cells()
    plan = builders.plan(cells, virtual=None, repeat=4)
    measured = [
        builders.repetition(cell, (940.8, 941.2), (0, 3), number=number) for cell in cells for number in (1, 2, 3, 4)
    ]
    return fragment(product(builders.run(plan), measured, theme))


def opened(browser: Browser, text: str, width: int = 1280, **context: Any) -> Page:
    page = browser.new_context(viewport={"width": width, "height": 900}, **context).new_page()
    page.route("**/*", lambda route: route.abort() if route.request.url.startswith("http") else route.continue_())
    page.set_content(text)
    return page


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_the_page_looks_the_same_with_and_without_it(browser: Browser, pasted: str, name: str) -> None:
    """Every computed style of every element, but how high those are that the fragment is in."""
    page = hosts.HOSTS[name].replace(hosts.ROOM, '<div class="rigctl-product"></div>')
    before, after = (
        opened(browser, text).evaluate(HOST) for text in (page, hosts.HOSTS[name].replace(hosts.ROOM, pasted))
    )
    assert [tag for tag, _ in before] == [tag for tag, _ in after]
    changed = {
        (tag, ours, theirs)
        for (tag, old), (_, new) in zip(before, after, strict=True)
        for ours, theirs in zip(old, new, strict=True)
        if ours != theirs and not (tag in AROUND and ours.startswith(HEIGHTS))
    }
    assert len(before) > 50
    assert changed == set()


def test_it_looks_the_same_in_unlike_pages(browser: Browser, pasted: str) -> None:
    """Every computed style of every element of it, and its size."""
    seen = [opened(browser, page.replace(hosts.ROOM, pasted)).evaluate(INSIDE) for page in hosts.HOSTS.values()]
    assert len(seen[0]) == len(seen[1]) > 100
    differing = {
        (ours[0], mine, its)
        for ours, theirs in zip(*seen, strict=True)
        for mine, its in zip(ours[1:], theirs[1:], strict=True)
        if mine != its
    }
    assert differing == set()


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, pasted: str, width: int) -> None:
    page = opened(browser, f'<!doctype html><meta name="viewport" content="width=device-width">{pasted}', width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = page.evaluate(
        "(() => { const box = document.querySelector('.rigctl-product').shadowRoot.querySelector('.scroll');"
        " return box.scrollWidth - box.clientWidth; })()"
    )
    assert cut == 0


def test_the_conditions_are_one_click_away(browser: Browser, pasted: str) -> None:
    page = opened(browser, f"<!doctype html>{pasted}")
    text = page.locator("dd", has_text="The slowest of 4 repetitions of the slowest pair")
    assert not text.is_visible()
    page.get_by_text("How this was measured").click()
    assert text.is_visible()
    assert page.get_by_text("segments of 1448 bytes went over the wire").is_visible()


def test_axe_finds_nothing(browser: Browser, pasted: str) -> None:
    page = opened(browser, f'<!doctype html><html lang="en"><title>A</title><main><h1>A</h1>{pasted}</main>')
    page.get_by_text("How this was measured").click()
    found = Axe().run(page)
    assert [violation["id"] for violation in found.response["violations"]] == []


def test_what_users_wrote_is_text(browser: Browser) -> None:
    evil = '</script></template></style><script>document.title = "evil"</script>'
    theme = replace(Theme(evil), maker=evil, columns=(("Test", evil),))
    page = opened(browser, f"<!doctype html><title>fine</title>{fragment_of(theme)}")
    assert page.title() == "fine"
    linked = json.loads(page.locator("script[type='application/ld+json']").inner_text())
    assert linked["about"]["name"] == evil


def test_it_asks_for_nothing(browser: Browser, pasted: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<!doctype html>{pasted}")
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path / 'page.html'}")
    assert [url for url in asked if not url.startswith("data:")] == [f"file://{tmp_path / 'page.html'}"]
