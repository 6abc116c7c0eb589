"""Fixture that sets the time zone of the process for one test."""

import time
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def local_time() -> Iterator[Callable[[str], None]]:
    """Return a function that makes a zone, such as `Europe/Berlin`, the local time of the test."""
    with pytest.MonkeyPatch.context() as patched:

        def move(zone: str) -> None:
            patched.setenv("TZ", zone)
            time.tzset()

        yield move
    time.tzset()
