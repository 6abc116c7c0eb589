"""Someone at a terminal, for every test here that needs one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from user import User


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    made = User(tmp_path)
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)
