"""Fixtures of the end-to-end tests: users of the command line, real and replayed runs, and a browser."""

import os
import shlex
import shutil
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import Browser, sync_playwright
from processes import program
from real_runs import Make, Real, RealRun, real_runs
from user import User, kept_up

if TYPE_CHECKING:
    from browsing import Pages

QUIETLY: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
"""Arguments with which Chromium makes no network requests of its own."""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    made = User(tmp_path)
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    made = User(tmp_path_factory.mktemp("host"))
    with kept_up(made):
        yield made


@pytest.fixture
def guest(tmp_path: Path, host: User) -> User:
    """Return a user who shares the rig of `host`. Tests with this user must not change the rig."""
    return User(tmp_path, host)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of pytest share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def real(shared: Path) -> Real:
    """Return a function that returns the real runs of a maker by name. They are made once, and only read."""

    @cache
    def made(make: Make, host: User | None = None) -> dict[str, RealRun]:
        return real_runs(shared / "real", make, host)

    return made


@pytest.fixture
def replayed(tmp_path: Path) -> Iterator[User]:
    """Yield a user whose runs are replayed without nodes and traffic. `replay.says` sets what they return."""
    with User(tmp_path).replaying() as made:
        yield made


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Chromium of low priority, because other tests measure meanwhile. As root it would set nice -8 itself."""
    installed = shutil.which("chromium")
    assert installed, "chromium is not installed (apt-get install chromium)"
    words = ["nice", "-n", "5", installed]
    if os.geteuid() == 0:
        words = ["setpriv", "--inh-caps=-sys_nice", "--bounding-set=-sys_nice", *words]
    return program(tmp_path_factory.mktemp("browser") / "chromium", f'exec {shlex.join(words)} "$@"')


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=list(QUIETLY))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def page_of(shared: Path) -> "Pages":
    """Return the pages of runs of every kind, which are written at first use."""
    from browsing import Pages  # imports all printers

    return Pages(shared / "pages")
