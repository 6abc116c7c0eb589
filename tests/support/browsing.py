"""Opens pages in a real browser; a page may request no other file, and may report no error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from axe_playwright_python.sync_playwright import Axe
from documents import document
from playwright.sync_api import Browser, Page
from processes import DEADLINE_S
from real_runs import locked

from rigctl.report.comparison import comparison_document
from rigctl.report.printers.html import write_page

Scheme: TypeAlias = Literal["light", "dark"]
COMPARISON: Final = "comparison"
_ALIKE: Final = """() => {
  const kind = (element) => element.tagName + element.getAttribute("class") + [...element.children].map(kind);
  for (const parent of document.querySelectorAll("tbody, svg g, ul")) {
    const seen = {};
    for (const child of [...parent.children]) {
      const own = kind(child);
      if ((seen[own] = 1 + (seen[own] || 0)) > 2) child.remove();
    }
  }
}"""
"""Script that keeps only two of the rows, marks and entries with the same elements and classes, to save time."""


class Pages:
    """The pages of runs of every kind. Each page is written once for all workers of pytest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def __call__(self, name: str) -> Path:
        """Return the file of the page of a run in `pages.RUNS`, or of the comparison, by name."""
        import pages  # here, because the import takes a second

        path = self._folder / f"{name}.html"
        with locked(self._folder / f"{name}.lock"):
            if not path.exists():
                compared = name == COMPARISON
                made = comparison_document(pages.comparison()) if compared else document(*pages.RUNS[name]())
                write_page(made, path)  # atomic, by a rename
        return path


_windows: Final[dict[tuple[Browser, str], Page]] = {}


def window(browser: Browser, width: int = 1280, height: int = 900, scheme: Scheme = "light", **context: Any) -> Page:
    """Return an empty page of this size, without animated scrolling. Pages are reused; a new one takes a second."""
    key = (browser, repr(sorted(context.items())))
    page = _windows.get(key)
    if page is None:
        page = _windows[key] = browser.new_context(**context).new_page()
        page.set_default_timeout(DEADLINE_S * 1000)
    page.mouse.move(0, 0)
    page.goto("about:blank")
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media="null", color_scheme=scheme, reduced_motion="reduce")
    return page


@contextmanager
def opened(browser: Browser, file: Path, width: int = 1280, height: int = 900, **context: Any) -> Iterator[Page]:
    """Yield the page of a file in a window of this size. Fail at the end if it requested other files or had errors."""
    requests: list[str] = []
    complaints: list[str] = []
    page = window(browser, width, height, **context)
    heard: dict[Any, Callable[[Any], None]] = {
        "request": lambda request: requests.append(request.url),
        "console": lambda message: complaints.append(message.text),
        "pageerror": lambda error: complaints.append(str(error)),
    }
    for event, hear in heard.items():
        page.on(event, hear)
    try:
        page.goto(file.as_uri())
        yield page
    finally:
        for event, hear in heard.items():
            page.remove_listener(event, hear)
    assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
    assert complaints == []


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((folded) => folded.open = true)")


def violations(page: Page, *schemes: Scheme) -> str:
    """Return axe's report on accessibility of a page with all details unfolded; "" without violations.

    For `schemes`, only colour contrasts are checked, because colour schemes do not differ otherwise.
    """
    unfold(page)
    page.evaluate(_ALIKE)
    found = [Axe().run(page, options={"resultTypes": ["violations"]})]
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        found.append(Axe().run(page, options={"resultTypes": ["violations"], "runOnly": ["color-contrast"]}))
    return "".join(each.generate_report() for each in found if each.violations_count)
