"""Two runs of one rig at once, as users: the second waits for its turn, or gives up in time."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from processes import DEADLINE_S, end, eventually
from user import User

SCENARIO = "title: waiting\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: 500ms\nmax_skew: 1s\n"


@contextmanager
def running(user: User, *words: str) -> Iterator["subprocess.Popen[str]"]:
    process = user.start("run", "s.yaml", "--no-report", *words)
    try:
        yield process
    finally:
        end(process, politely_for_s=DEADLINE_S)
        process.communicate(timeout=DEADLINE_S)


def streams(user: User) -> list[dict[str, Any]]:
    """The present figures of the run that is shown to everybody."""
    (run,) = json.loads(user.rigctl("display", "--json"))["runs"]
    shown: list[dict[str, Any]] = run["state"]["streams"]
    return shown


def told(process: "subprocess.Popen[str]") -> str:
    """The next line of its messages."""
    assert process.stderr is not None
    return process.stderr.readline()


def test_a_run_gives_up_in_time_or_waits_for_another_and_shows_who_is_ahead(guest: User) -> None:
    guest.scenario(SCENARIO)
    guest.environment["RIGCTL_DISPLAY_FOLDER"] = str(guest.folder)
    with running(guest, "--duration", "1h") as first:
        assert told(first).startswith("test 1/1: 1 pair")
        eventually(lambda: [each["now_mbps"] is not None for each in streams(guest)] == [True])
        out = guest.rigctl("run", "s.yaml", "--wait", "1s", "--no-report", "--quiet", code=3)
        assert out.startswith("rigctl: pi1: in use by ")
        assert "waited for 1 s. Wait longer (--wait), or end it" in out
        assert len(out.splitlines()) == 1
        with running(guest, "--wait", "1h") as second:
            said = told(second)
            first.terminate()
            _, errors = second.communicate(timeout=DEADLINE_S)
    ahead = rf"pi1 is in use by \S+ pid {first.pid}, since .*; nobody ahead in the queue; waiting at most 1h 00m"
    assert re.match(ahead, said)
    assert second.returncode == 0
    assert errors.startswith("test 1/1: 1 pair")


def test_a_wrong_time_to_wait_touches_nothing(replayed: User) -> None:
    for wrong in ("soon", "-1m", "2000h"):
        assert "rigctl: --wait" in replayed.rigctl("run", "gigablox", f"--wait={wrong}", code=2)
    assert replayed.replay.began == []
    assert not (replayed.folder / "store.db").exists()
