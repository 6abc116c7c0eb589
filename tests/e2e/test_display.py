"""The rig's screen, in real terminals: during a run, resized, lost, and from another user."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import builders
import pytest
from processes import end, eventually
from user import User, ended

from rigctl.base.processes import process
from rigctl.store import open_store


class Terminal:
    """A window of tmux."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout

    def screen(self) -> list[str]:
        return self.tmux("capture-pane", "-p").splitlines()

    def shows(self, seen: Callable[[str], bool], deadline_s: float = 60) -> str:
        """The screen, once `seen` holds for it."""
        until_s = time.monotonic() + deadline_s
        while time.monotonic() < until_s:
            text = "\n".join(self.screen())
            if seen(text):
                return text
            time.sleep(0.1)
        raise AssertionError(f"not shown within {deadline_s:g} s:\n{text}")

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def process(self) -> int:
        """What runs in it."""
        return int(self.tmux("display-message", "-p", "#{pane_pid}"))


@contextmanager
def terminal(
    folder: Path, command: Sequence[str], environment: Mapping[str, str], columns: int = 100, rows: int = 30
) -> Iterator[Terminal]:
    """`command` in a terminal of its own; the server ends with the block, at the latest."""
    found = Terminal(folder / f"tmux-{columns}x{rows}")
    given = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    size = ["-x", str(columns), "-y", str(rows)]
    kept = [";", "set-option", "-g", "remain-on-exit", "on"]  # what a command said at its end stays to be read
    found.tmux("new-session", "-d", "-c", str(folder), *size, *given, "--", *command, *kept)
    try:
        yield found
    finally:
        subprocess.run(["tmux", "-S", str(found._socket), "kill-server"], capture_output=True, timeout=20, check=False)


RIGCTL = (sys.executable, "-m", "rigctl")
NOBODY = 65534
BIG = "██"
SCENARIO = """\
title: Two pairs
rig: gigablox
pairs: [pi1 -> pi2, pi3 -> pi4]
duration: {duration_s}s
max_skew: 1s
matrix:
  parallel: [1, 2]
"""


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Whose runs publish themselves where every user may look, and nobody else's do."""
    with tempfile.TemporaryDirectory(prefix="rigctl-display-") as folder:
        Path(folder).chmod(0o1777)
        someone = User(tmp_path)
        someone.environment["RIGCTL_DISPLAY_FOLDER"] = folder
        yield someone


def changed(user: User) -> dict[str, str]:
    return {name: value for name, value in user.environment.items() if os.environ.get(name) != value}


def test_a_run_has_its_screen_and_outlives_its_terminal(user: User) -> None:
    scenario = user.scenario(SCENARIO.format(duration_s=4))
    command = [*RIGCTL, "run", scenario, "--display", "--no-report"]
    assert json.loads(user.rigctl("display", "--json")) == {"version": 1, "runs": []}
    with terminal(user.folder, [*RIGCTL, "display", "gigablox"], changed(user), 80, 24) as other:
        other.shows(lambda text: "No run yet" in text)
        with terminal(user.folder, command, changed(user)) as own:
            during = own.shows(lambda text: "Mbit/s now" in text)
            assert during.count(BIG) > 20
            assert "test 1 of 2" in during
            pid = own.process()
            seen_by_another(user)
            other.shows(lambda text: "pi3 → pi4" in text)
            resized(own)
            own.tmux("kill-server")
        other.shows(lambda text: "of each pair" in text and "complete" in text)
        other.press("q")
    eventually(lambda: process(pid) is None)
    (listed,) = json.loads(user.rigctl("runs", "--json"))["runs"]
    assert listed["status"] == "complete"


def resized(own: Terminal) -> None:
    own.resize(60, 20)
    small = own.shows(lambda text: "left" in text and len(text.splitlines()) <= 20)
    assert max(map(len, small.splitlines())) <= 60


def seen_by_another(user: User) -> None:
    """What another user of the machine gets to know."""
    if os.geteuid() != 0:
        return
    said = ended(("display", "--json"), user.folder, user.environment, uid=NOBODY)
    (shown,) = json.loads(said.stdout)["runs"]
    assert (shown["user"], shown["fate"], shown["state"]["phase"]) == ("root", "running", "measuring")
    assert [stream["name"] for stream in shown["state"]["streams"]] == ["pi1 → pi2", "pi3 → pi4"]
    assert "store.db" not in json.dumps(shown)


def test_a_killed_run_has_died_and_the_latest_table_of_the_store_is_shown(user: User) -> None:
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        builders.put(store, *builders.gigablox())
    with terminal(user.folder, [*RIGCTL, "display"], changed(user)) as idle:
        idle.shows(lambda text: "of each pair" in text and "no run in progress" in text)
        scenario = user.scenario(SCENARIO.format(duration_s=20))
        killed = user.start("run", scenario, "--quiet", "--no-report")
        try:
            idle.shows(lambda text: "Mbit/s now" in text)
            killed.kill()
            killed.communicate(timeout=10)
            idle.shows(lambda text: f"process {killed.pid} is gone" in text)
        finally:
            end(killed)
    (shown,) = json.loads(user.rigctl("display", "--json"))["runs"]
    assert shown["fate"] == "died"
    eventually(lambda: not user.processes())


def test_without_a_terminal_there_is_no_screen(user: User) -> None:
    user.scenario(SCENARIO.format(duration_s=1))
    assert "--json" in user.rigctl("display", code=2)
    assert "is no terminal" in user.rigctl("run", "s.yaml", "--display", code=2)
