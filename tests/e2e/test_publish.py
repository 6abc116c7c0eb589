"""A site as its readers have it: opened from the disk without a network; and what is left of publishers that die."""

import json
import os
import re
import signal
from pathlib import Path

import jsonschema
import pytest
from atom import dead
from axe_playwright_python.sync_playwright import Axe
from browsing import opened
from playwright.sync_api import Browser
from processes import end, eventually, mounted
from sites import put_night, weeks
from user import User

from rigctl.site.folder import OWN
from rigctl.store import open_store

DOCS = Path(__file__).parents[2] / "docs" / "schemas"
COURSE = "scenarios/nightly@lab.html"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Someone with three weeks of nights of two scenarios, published."""
    made = User(tmp_path_factory.mktemp("user"))
    with open_store(made.environment["RIGCTL_STORE"]) as store:
        weeks(store, scenarios=("nightly", "other"))
    said = json.loads(made.rigctl("publish", "site", "--title", "Our lab", "--json"))
    jsonschema.validate(said, json.loads((DOCS / "publish.schema.json").read_text()))
    return made


def test_a_page_asks_for_nothing(browser: Browser, user: User) -> None:
    site = user.folder / "site"
    for path in (site / "index.html", site / COURSE, min((site / "runs").iterdir())):
        with opened(browser, path, offline=True) as page:
            page.wait_for_load_state("networkidle")


@pytest.mark.parametrize(("name", "scheme"), [("index.html", "light"), (COURSE, "light"), (COURSE, "dark")])
def test_axe_finds_nothing(browser: Browser, user: User, name: str, scheme: str) -> None:
    with opened(browser, user.folder / "site" / name, color_scheme=scheme, bypass_csp=True) as page:
        found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_the_cursor_stands_at_the_same_night_in_all_trends(browser: Browser, user: User) -> None:
    with opened(browser, user.folder / "site" / COURSE) as page:
        charts = page.locator("svg[data-axis]")
        assert charts.count() > 1
        charts.first.hover()
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", page.locator(".reading b").inner_text())
        assert page.locator(".cursor").count() == charts.count()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_its_screen(browser: Browser, user: User, width: int) -> None:
    for name in ("index.html", COURSE):
        with opened(browser, user.folder / "site" / name, width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_a_publisher_that_is_killed_leaves_nothing_that_the_next_one_does_not_mend(user: User) -> None:
    site = user.folder / "killed"
    was_killed = _killed_when_staged(user, site, 12)
    assert not was_killed or [path.name for path in site.iterdir()] == [OWN] or dead(site, "index.html") == []
    user.rigctl("publish", "killed")
    assert dead(site) == []
    assert not (site / OWN / "stage").exists()
    assert pages(site) == pages(user.folder / "site")


def _killed_when_staged(user: User, site: Path, files: int) -> bool:
    """Publish, and kill it once it has made these many pages; whether it was still at work."""
    publisher = user.start("publish", site.name)
    stage = site / OWN / "stage"
    try:
        eventually(lambda: len(list(stage.rglob("*.html"))) >= files or publisher.poll() is not None)
        os.killpg(publisher.pid, signal.SIGKILL)
    finally:
        end(publisher)
    return publisher.returncode == -signal.SIGKILL


def test_two_publishers_at_once_make_one_site(user: User) -> None:
    publishers = [user.start("publish", "both") for _ in range(2)]
    try:
        said = [publisher.communicate(timeout=90) for publisher in publishers]
    finally:
        for publisher in publishers:
            end(publisher)
    assert [publisher.returncode for publisher in publishers] == [0, 0], said
    assert dead(user.folder / "both") == []
    assert pages(user.folder / "both") == pages(user.folder / "site")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_leaves_the_old_site(tmp_path: Path) -> None:
    user = User(tmp_path)
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        weeks(store, range(2))
        with mounted(tmp_path / "small", "size=2m") as small:
            user.rigctl("publish", "small/site")
            before = {path: path.read_bytes() for path in (small / "site").rglob("*.html")}
            with (small / "filler").open("wb") as filler:
                while filler.write(bytes(4096)) and _room(small) > 16 * 1024:
                    filler.flush()
            put_night(store, 3)
            said = user.rigctl("publish", "small/site", code=2)
            assert "No space left on device: the site is as it was" in said
            assert len(said.splitlines()) == 1
            assert {path: path.read_bytes() for path in (small / "site").rglob("*.html")} == before
            (small / "filler").unlink()
            user.rigctl("publish", "small/site")
            assert dead(small / "site") == []


def _room(path: Path) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def pages(site: Path) -> dict[str, bytes]:
    """The pages of runs and scenarios."""
    found = (path for path in site.rglob("*.html") if path.parent != site)
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in found}
