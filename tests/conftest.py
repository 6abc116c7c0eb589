"""Hooks for all tests: ignored signals are reset, a test that times out prints the stacks of its tasks, and the whole
suite fails if it changed a file of the machine.

RIGCTL_ORDER=SEED shuffles the files, and the tests in each file (`make steady`).
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, Protocol

import machine_files
import pytest
from hypothesis import settings

_FILES = pytest.StashKey[machine_files.State]()
_IGNORED_BY_SHELLS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


# An example may take any time on a busy machine. In CI the package's own profile says so, with the same examples each
# time.
if "CI" not in os.environ:
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")


class _Settings(Protocol):
    """The settings that pytest-timeout passes to its hooks."""

    method: str


def pytest_configure() -> None:
    """Handle signals that are ignored, because children inherit it: SIGINT and SIGQUIT after `&`, SIGHUP by nohup.

    A handler that does nothing has the same effect here, but exec(2) resets it to the default action.
    """
    for number in _IGNORED_BY_SHELLS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _nothing)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):  # else this is a process of pytest-xdist
        session.config.stash[_FILES] = machine_files.files_in()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if a file of the machine is not as before: a test writes into its own folder only."""
    before = session.config.stash.get(_FILES, None)
    if before is not None and (changed := machine_files.changes(before, machine_files.files_in())):
        print(f"\na test, or another program, changed files of this machine: {'; '.join(changed)}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("RIGCTL_TORTURE") is None:
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
    if (seed := os.environ.get("RIGCTL_ORDER")) is not None:
        order = random.Random(seed)
        order.shuffle(items)
        files = {path: order.random() for path in sorted({item.path for item in items})}
        items.sort(key=lambda item: files[item.path])


def _nothing(number: int, frame: FrameType | None) -> None:
    pass


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: _Settings) -> Generator[None, object, object]:
    """Print the stacks of asyncio tasks first: pytest-timeout prints only threads, which wait in the event loop."""
    done = yield
    if settings.method == "signal":
        signal.signal(signal.SIGALRM, _after_tasks(item.nodeid, signal.getsignal(signal.SIGALRM)))
    return done


def _after_tasks(test: str, handler: Any) -> Callable[[int, FrameType | None], None]:
    def show(number: int, frame: FrameType | None) -> None:
        try:
            tasks = asyncio.all_tasks()
        except RuntimeError:  # no event loop runs
            tasks = set()
        print(f"\n{test}: its deadline has passed; {len(tasks)} tasks", file=sys.stderr)
        for task in tasks:
            task.print_stack(file=sys.stderr)
        handler(number, frame)

    return show
