"""Two runs of one rig at once, as users: the second waits for its turn, or gives up in time."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import eventually
from user import User

SCENARIO = """
title: waiting
rig: gigablox
pairs: [pi1 -> pi2]
duration: {duration}
max_skew: 1s
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, host: User) -> User:
    return User(tmp_path_factory.mktemp("wait"), host)


def scenario(user: User, name: str, duration: str) -> Path:
    path = user.folder / f"{name}.yaml"
    path.write_text(SCENARIO.format(duration=duration))
    return path


def test_a_run_gives_up_in_time_or_waits_for_another_and_shows_who_is_ahead(user: User) -> None:
    with holding(user) as first:
        waits_briefly = ("run", str(scenario(user, "second", "1s")), "--wait", "1s", "--no-report", "--quiet")
        out = user.rigctl(*waits_briefly, code=3)
        assert out.startswith("rigctl: pi1: in use by ")
        assert "waited for 1 s. Wait longer (--wait), or end it" in out
        assert len(out.splitlines()) == 1
        second = user.start("run", str(scenario(user, "second", "500ms")), "--wait", "1m", "--no-report")
        assert second.stderr is not None
        said = second.stderr.readline()
        first.terminate()
        _, errors = second.communicate(timeout=60)
    assert re.match(r"pi1 is in use by \S+ pid \d+, since .*; nobody ahead in the queue; waiting at most 1m 00s", said)
    assert second.returncode == 0
    assert errors.startswith("test 1/1: 1 pair")


@contextmanager
def holding(user: User) -> Iterator["subprocess.Popen[str]"]:
    """A run that has the rig."""
    first = user.start("run", str(scenario(user, "first", "60s")), "--no-report")
    try:
        eventually(lambda: len(user.agents()) >= 2)
        yield first
    finally:
        first.terminate()
        first.communicate(timeout=30)


@pytest.mark.parametrize("wrong", ["soon", "-1m", "2000h"])
def test_a_wrong_time_to_wait_touches_nothing(user: User, wrong: str) -> None:
    assert "rigctl: --wait" in user.rigctl("run", "gigablox", f"--wait={wrong}", code=2)
