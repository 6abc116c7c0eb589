"""Hooks for all tests: ignored signals are reset, and a test that times out prints the stacks of its tasks.

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

import pytest

_IGNORED_BY_SHELLS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


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
