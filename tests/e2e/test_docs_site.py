"""The documentation as a site: it builds without a warning, asks nobody for anything; its search works from files.

The site is made of docs/, mkdocs.yml, reports/samples/, examples/, CHANGELOG.md and CONTRIBUTING.md, by the packages of
constraints.txt. Where none of them has changed since the last green run, this file need not run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import window
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built anew; mkdocs.yml has `strict`, so that a link which leads nowhere ends it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def page(browser: Browser) -> Page:
    return window(browser, 390, 800)


def test_every_page_of_the_documentation_and_every_schema_is_in_the_site(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert [path for path in sources if not (site / path.with_suffix(".html")).is_file()] == []
    assert (site / "schemas" / "scenario.schema.json").is_file()
    assert (site / "samples" / "gigablox-60s.html").is_file()
    assert list(site.rglob("*.py")) == []
    navigation = (site / "decisions" / "index.html").read_text()
    decisions = [path.with_suffix(".html").name for path in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert [name for name in decisions if f'href="{name}"' not in navigation] == []


@pytest.mark.parametrize("name", ["index.html", "reference/commands.html", "measured/regressions.html"])
def test_a_page_asks_nobody_for_anything_and_fits_a_phone(name: str, site: Path, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(f"error: {error}"))
    page.on("requestfailed", lambda request: asked.append(f"failed: {request.url}"))
    page.goto((site / name).as_uri(), wait_until="networkidle")
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_search_ranks_guides_above_measurements(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    boosts = {entry["location"].partition("#")[0]: entry.get("boost", 1) for entry in entries}
    assert boosts["tutorial.html"] == boosts["how-to/cluster.html"] > boosts["reference/rig.html"] > 1
    assert boosts["measured/limits.html"] == boosts["decisions/index.html"] == 1


def test_the_search_finds_a_word_in_a_site_read_from_files(site: Path, page: Page) -> None:
    page.goto((site / "how-to" / "cluster.html").as_uri())
    page.locator("label[for=__search]").first.click()
    page.locator(".md-search__input").press_sequentially("clock offset")
    found = page.locator(".md-search-result__item a").first
    found.wait_for(state="attached")
    assert "explanation/time.html" in (found.get_attribute("href") or "")
