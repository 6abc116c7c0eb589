"""Fixture that sets the local time of all tests in this folder."""

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _berlin() -> Iterator[None]:
    """Make the time of Berlin, which has summer time, the local time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()
