"""A site as its readers have it: opened from the disk without a network; and what is left of publishers that die."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from atom import dead
from browsing import opened, violations
from playwright.sync_api import Browser
from processes import DEADLINE_S, mounted
from sites import put_night, weeks
from user import User, begun

from rigctl.site.folder import OWN

DOCS = Path(__file__).parents[2] / "docs" / "schemas"
COURSE = "scenarios/nightly@lab.html"
DYING = """
import os, signal, sys
from rigctl.cli.app import exit_code

called, left = sys.argv[1], int(sys.argv[2])
call = getattr(os, called)

def counted(*words, **named):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return call(*words, **named)

setattr(os, called, counted)
exit_code(["publish", sys.argv[3]])
"""
"""A publisher that is killed when it calls a function of the operating system for the n-th time."""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Someone with three weeks of nights of a scenario and three nights of another, published."""
    made = User(tmp_path_factory.mktemp("user"))
    with made.store(create=True) as store:
        weeks(store)
        weeks(store, range(3), ["other"])
    said = json.loads(made.rigctl("publish", "site", "--title", "Our lab", "--json"))
    jsonschema.validate(said, json.loads((DOCS / "publish.schema.json").read_text()))
    return made


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Someone with eight nights, published."""
    made = User(tmp_path_factory.mktemp("newcomer"))
    with made.store(create=True) as store:
        weeks(store, range(8))
    made.rigctl("publish", "site")
    return made


@pytest.mark.parametrize("name", ["index.html", COURSE])
def test_a_page_asks_for_nothing_fits_its_screen_and_axe_finds_nothing(browser: Browser, user: User, name: str) -> None:
    with opened(browser, user.folder / "site" / name, bypass_csp=True, offline=True) as page:
        page.wait_for_load_state("networkidle")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page, "dark") == ""


def test_the_cursor_stands_at_the_same_run_in_all_trends(browser: Browser, user: User) -> None:
    with opened(browser, user.folder / "site" / COURSE) as page:
        charts = page.locator("svg[data-axis]")
        assert charts.count() > 1
        charts.first.hover()
        assert page.locator(".reading b").inner_text().strip().isdecimal()
        assert page.locator(".cursor").count() == charts.count()


def test_a_publisher_that_is_killed_leaves_nothing_that_the_next_one_does_not_mend(newcomer: User) -> None:
    site = newcomer.folder / "killed"
    killed(newcomer, site, "fsync", 6)  # while it makes pages
    assert [path.name for path in site.iterdir()] == [OWN]
    assert (site / OWN / "stage").exists()
    killed(newcomer, site, "replace", 5)  # while it puts them in their places
    assert not (site / "index.html").exists()
    assert 0 < len(pages(site)) < len(pages(newcomer.folder / "site"))
    newcomer.rigctl("publish", "killed")
    assert dead(site) == []
    assert not (site / OWN / "stage").exists()
    assert pages(site) == pages(newcomer.folder / "site")


def killed(user: User, site: Path, called: str, times: int) -> None:
    command = [sys.executable, "-c", DYING, called, str(times), site.name]
    done = subprocess.run(command, cwd=user.folder, env=user.environment, timeout=DEADLINE_S, check=False)
    assert done.returncode == -signal.SIGKILL


def test_two_publishers_at_once_make_one_site(newcomer: User) -> None:
    said = [[newcomer.folder / f"{name}{number}" for name in ("out", "errors")] for number in range(2)]
    publishers = [begun(("publish", "both"), newcomer.folder, newcomer.environment, each) for each in said]
    try:
        for publisher in publishers:
            publisher.join(DEADLINE_S)
    finally:
        for publisher in publishers:
            publisher.kill()
    assert [publisher.exitcode for publisher in publishers] == [0, 0], [errors.read_text() for _, errors in said]
    assert dead(newcomer.folder / "both") == []
    assert pages(newcomer.folder / "both") == pages(newcomer.folder / "site")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_leaves_the_old_site(tmp_path: Path) -> None:
    user = User(tmp_path)
    with user.store(create=True) as store:
        weeks(store, range(2))
        with mounted(tmp_path / "small", "size=2m") as small:
            user.rigctl("publish", "small/site")
            before = {path: path.read_bytes() for path in (small / "site").rglob("*.html")}
            with (small / "filler").open("wb") as filler:
                while filler.write(bytes(4096)) and shutil.disk_usage(small).free > 16 * 1024:
                    filler.flush()
            put_night(store, 3)
            said = user.rigctl("publish", "small/site", code=2)
            assert "No space left on device: the site is unchanged" in said
            assert len(said.splitlines()) == 1
            assert {path: path.read_bytes() for path in (small / "site").rglob("*.html")} == before
            (small / "filler").unlink()
            user.rigctl("publish", "small/site")
            assert dead(small / "site") == []


def pages(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.glob("*s/*.html")}
