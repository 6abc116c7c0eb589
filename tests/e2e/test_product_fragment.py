"""A product's fragment in real pages: it changes nothing of them, and they nothing of it; whole at any width."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from browsing import opened, violations, window
from playwright.sync_api import Browser, Page

from rigctl.analysis.run_view import RunView
from rigctl.product.content import product
from rigctl.product.page import fragment
from rigctl.product.theme import Theme, load_theme

ROOM: Final = "<!-- the fragment -->"

_SHOP: Final = {path.name: path.read_text() for path in Path(__file__).with_name("shop").iterdir()}
HOSTS: Final = {
    name: _SHOP[f"{name}.html"].replace("<!-- the content -->", _SHOP["content.html"]) for name in ("resets", "plain")
}
AROUND: Final = ("HTML", "BODY", "MAIN", "DIV")
HEIGHTS: Final = ("height", "block-size", "perspective-origin", "transform-origin")
HOST: Final = f"({_SHOP['styles.js']})(document)"
INSIDE: Final = _SHOP["inside.js"]


@pytest.fixture(scope="module")
def pasted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The fragment of a run on hardware, with a logo and a claim."""
    folder = tmp_path_factory.mktemp("theme")
    logo = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3 1"><path d="M0 0h3v1z"/></svg>'
    (folder / "logo.svg").write_text(logo)
    named = "name: GigaBlox\nmaker: <b>BotBlox</b>\nlogo: logo.svg\n"
    (folder / "t.yaml").write_text(f"{named}url: https://shop.example/g\nwords: {{notes: Four.}}\n")
    return fragment_of(load_theme(folder / "t.yaml"))


def fragment_of(theme: Theme) -> str:
    plan = builders.plan(virtual=None, repeat=4)
    each = [(cell, number) for cell in plan.cells for number in (1, 2, 3, 4)]
    measured = [builders.repetition(cell, (940.8, 941.2), (0, 3), number) for cell, number in each]
    return fragment(product(RunView.in_memory(builders.run(plan), measured), theme))


def shown(browser: Browser, text: str, width: int = 1280) -> Page:
    page = window(browser, width)
    page.set_content(text)
    return page


def styles(browser: Browser, text: str, script: str) -> Any:
    """Return what `script` finds on a page: of each element, its computed styles."""
    return json.loads(shown(browser, text).evaluate(script))  # as one text: a tenth of the time that lists take


@pytest.mark.parametrize("name", HOSTS)
def test_the_page_looks_the_same_with_and_without_it(browser: Browser, pasted: str, name: str) -> None:
    """Every computed style of every element, but how high those are that the fragment is in."""
    page = HOSTS[name].replace(ROOM, '<div class="rigctl-product"></div>')
    before, after = (styles(browser, text, HOST) for text in (page, HOSTS[name].replace(ROOM, pasted)))
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
    seen = [styles(browser, page.replace(ROOM, pasted), INSIDE) for page in HOSTS.values()]
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
    page = shown(browser, f'<!doctype html><meta name="viewport" content="width=device-width">{pasted}', width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator(".rigctl-product .scroll").first  # also inside of the fragment's own tree
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_it_asks_for_nothing_and_the_conditions_are_one_click_away(
    browser: Browser, pasted: str, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><html lang="en"><title>A</title><main><h1>A</h1>{pasted}</main>')
    with opened(browser, file) as page:
        page.wait_for_load_state("networkidle")
        text = page.locator("dd", has_text="The slowest of 4 repetitions of the slowest pair")
        assert not text.is_visible()
        page.get_by_text("How this was measured").click()
        assert text.is_visible()
        assert page.get_by_text("segments of 1448 bytes went over the wire").is_visible()
        assert violations(page) == ""


def test_what_users_wrote_is_text(browser: Browser) -> None:
    evil = '</script></template></style><script>document.title = "evil"</script>'
    theme = replace(Theme(evil), maker=evil, columns=(("Test", evil),))
    page = shown(browser, f"<!doctype html><title>fine</title>{fragment_of(theme)}")
    assert page.title() == "fine"
    assert page.get_by_role("heading", level=2).inner_text() == f"{evil} {evil}"
