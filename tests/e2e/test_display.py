"""The rig's screen, in real terminals: during a run, resized, lost, and from another user."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import builders
import pytest
from processes import DEADLINE_S, end, eventually
from user import User, ended

from rigctl.base.processes import process
from rigctl.store import open_store


class Terminal:
    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, *words: str) -> str:
        try:
            return eventually(lambda: text if all(word in (text := self.screen()) for word in words) else "")
        except AssertionError:
            raise AssertionError(f"{words} not shown:\n{self.screen()}") from None


@contextmanager
def terminal(user: User, *words: str, columns: int = 100, rows: int = 30) -> Iterator[Terminal]:
    """`rigctl` with these words in a terminal of its own; the server ends with the block, at the latest."""
    found = Terminal(user.folder / f"tmux-{columns}x{rows}")
    changed = {name: value for name, value in user.environment.items() if os.environ.get(name) != value}
    given = [word for name, value in changed.items() for word in ("-e", f"{name}={value}")]
    size = ["-x", str(columns), "-y", str(rows)]
    kept = [";", "set-option", "-g", "remain-on-exit", "on"]  # what a command said at its end stays to be read
    command = [sys.executable, "-m", "rigctl", *words, *kept]
    found.tmux("new-session", "-d", "-c", str(user.folder), *size, *given, "--", *command)
    try:
        yield found
    finally:
        with suppress(subprocess.CalledProcessError):  # it may have ended
            found.tmux("kill-server")


SCENARIO = "rig: gigablox\npairs: [pi1 -> pi2, pi3 -> pi4]\nduration: 4s\nmatrix: {parallel: [1, 2]}\n"


@pytest.fixture
def user(replayed: User) -> Iterator[User]:
    """Whose runs publish themselves where every user may look, and nobody else's do. Their second test is held."""
    with tempfile.TemporaryDirectory(prefix="rigctl-display-") as folder:
        Path(folder).chmod(0o1777)
        replayed.environment["RIGCTL_DISPLAY_FOLDER"] = folder
        replayed.replay.says(held=["2"])
        replayed.scenario(SCENARIO)
        yield replayed


def test_a_run_has_its_screen_and_outlives_its_terminal(user: User) -> None:
    assert json.loads(user.rigctl("display", "--json")) == {"version": 1, "runs": []}
    with terminal(user, "display", "gigablox", columns=80, rows=24) as other:
        other.shows("No run yet")
        with terminal(user, "run", "s.yaml", "--display", "--no-report") as own:
            own.shows("Mbit/s now", "test 2 of 2")
            eventually(lambda: own.screen().count("██") > 20)
            pid = int(own.tmux("display-message", "-p", "#{pane_pid}"))
            seen_by_another(user)
            other.shows("pi3 → pi4", "test 2 of 2")
            own.tmux("resize-window", "-x", "60", "-y", "20")
            eventually(lambda: is_small(own.screen().splitlines()), "a screen of 60 by 20")
            own.tmux("kill-server")
        user.replay.release()
        other.shows("pi1→pi2", "complete")
        other.tmux("send-keys", "q")
    eventually(lambda: process(pid) is None)
    (listed,) = json.loads(user.rigctl("runs", "--json"))["runs"]
    assert (listed["status"], listed["measured"]) == ("complete", {"ok": 2})


def is_small(lines: list[str]) -> bool:
    return any("left" in line for line in lines) and len(lines) <= 20 and max(map(len, lines)) <= 60


def seen_by_another(user: User) -> None:
    if os.geteuid() != 0:
        return

    def shown() -> dict[str, Any]:
        said = ended(("display", "--json"), user.folder, user.environment, uid=65534)  # nobody
        (run,) = json.loads(said.stdout)["runs"]
        assert (run["user"], run["state"]["phase"]) == ("root", "measuring")
        return run if run["fate"] == "running" else {}

    run = eventually(shown)
    streams = [(stream["name"], stream["now_mbps"]) for stream in run["state"]["streams"]]
    assert streams == [("pi1 → pi2", 900), ("pi3 → pi4", 900)]
    assert "store.db" not in json.dumps(run)


def test_a_killed_run_has_died_and_the_latest_table_of_the_store_is_shown(user: User) -> None:
    with open_store(user.environment["RIGCTL_STORE"]) as store:
        builders.put(store, *builders.gigablox())
    with terminal(user, "display") as idle:
        idle.shows("of 941.5", "no run in progress")
        killed = user.start("run", "s.yaml", "--quiet", "--no-report")
        try:
            idle.shows("Mbit/s now")
            killed.kill()
            killed.communicate(timeout=DEADLINE_S)
            idle.shows(f"process {killed.pid} is gone")
        finally:
            end(killed)
    (shown,) = json.loads(user.rigctl("display", "--json"))["runs"]
    assert shown["fate"] == "died"


def test_without_a_terminal_there_is_no_screen(user: User) -> None:
    assert "--json" in user.rigctl("display", code=2)
    assert "is no terminal" in user.rigctl("run", "s.yaml", "--display", code=2)
    assert user.replay.began == []
