"""A product's fragment in real pages: it changes nothing of them, and they nothing of it; whole at any width."""

# ruff: noqa: E501 — style sheets

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from browsing import opened, violations, window
from playwright.sync_api import Browser, Page

from rigctl.report.product.content import product
from rigctl.report.product.page import fragment
from rigctl.report.product.theme import Theme, load_theme

ROOM: Final = "<!-- the fragment -->"

_CONTENT: Final = f"""
<header><h1>Shop</h1><nav><a href="#">Home</a> <a href="#">Cart</a></nav></header>
<main id="content"><h2>A product</h2><p class="claim">Buy it. <strong>Now.</strong></p>
<div class="room" style="width: 700px">{ROOM}</div>
<table class="table"><thead><tr><th>Size</th><td>Price</td></tr></thead><tbody><tr><th>S</th><td class="measured">9</td></tr></tbody></table>
<figure><img alt="" width="10" height="10"><figcaption>It</figcaption></figure>
<details open><summary>More</summary><dl><div><dt>a</dt><dd>b</dd></div></dl></details>
<p class="source">Made <span class="good">here</span>.</p><ul><li>one</li></ul><button>Buy</button></main>
"""

RESETS: Final = f"""<!doctype html><html lang="de" dir="ltr"><head><meta charset="utf-8"><meta name="color-scheme" content="dark"><style>
:root {{ color-scheme: dark; --paper: #000; --ink: lime; --accent: red; --line: magenta; --s1: #0d6efd; --text: "Comic Sans MS"; }}
html {{ font-size: 62.5%; -webkit-text-size-adjust: 100%; letter-spacing: .2em; word-spacing: 1em; }}
* {{ margin: 0 !important; padding: 0 !important; border: 0 !important; font: inherit !important; color: #ddd !important;
  background: #101014 !important; text-transform: uppercase !important; line-height: 1 !important; box-sizing: content-box !important; }}
body {{ font-family: serif; text-align: center; visibility: visible; cursor: crosshair; direction: ltr; white-space: pre-line; }}
table {{ display: block !important; table-layout: fixed !important; width: 50px !important; transform: rotate(1deg); }}
#content div, #content table td, #content th {{ display: inline-block !important; float: right !important; opacity: .9 !important; }}
#content div.room {{ display: block !important; float: none !important; opacity: 1 !important; }}
svg, img {{ display: none !important; }} details, summary {{ list-style: none !important; display: flex !important; }}
div > p, strong {{ font-size: 40px !important; text-decoration: underline !important; }}
.claim, .source, .good, .measured, .scroll {{ outline: 3px solid red !important; }}
::selection {{ background: red; }}
</style></head><body>{_CONTENT}</body></html>"""

PLAIN: Final = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"></head><body>{_CONTENT}</body></html>"""

HOSTS: Final = {"resets": RESETS, "plain": PLAIN}


STYLES: Final = """(root) => {
  const seen = [];
  for (const element of root.querySelectorAll("*")) {
    if (element.closest(".rigctl-product")) continue;
    for (const pseudo of [null, "::before", "::marker"]) {
      const style = getComputedStyle(element, pseudo);
      const values = [...style].sort().map((name) => name + ": " + style.getPropertyValue(name));
      seen.push([element.tagName + (pseudo || ""), values]);
    }
  }
  return JSON.stringify(seen);
}"""
AROUND: Final = ("HTML", "BODY", "MAIN", "DIV")
HEIGHTS: Final = ("height", "block-size", "perspective-origin", "transform-origin")
HOST: Final = f"({STYLES})(document)"
INSIDE: Final = """() => {
  const host = document.querySelector(".rigctl-product"), seen = [];
  for (const element of [host, ...host.shadowRoot.querySelectorAll("*")]) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    seen.push([element.tagName, Math.round(box.width), Math.round(box.height),
      ...[...style].sort().map((name) => name + ": " + style.getPropertyValue(name))]);
  }
  return JSON.stringify(seen);
}"""


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
    return fragment(product(builders.run(plan), measured, theme))


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
