"""A page in a real browser, which may ask for nothing but itself and complain of nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page


@contextmanager
def opened(browser: Browser, file: Path, width: int = 1280, height: int = 900, **context: Any) -> Iterator[Page]:
    """Yield the page of a file, in a window of this size; at the end it has made no other request and no complaint."""
    requests: list[str] = []
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": height}, **context) as made:
        page = made.new_page()
        page.set_default_timeout(20_000)
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(file.as_uri())
        yield page
        assert [url for url in requests if not url.startswith("data:")] == [file.as_uri()]
        assert complaints == []
