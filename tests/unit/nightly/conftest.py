"""Gives all tests in this folder the local time of Berlin, which has summer time."""

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _berlin() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()
