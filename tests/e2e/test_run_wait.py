"""Two runs of one rig at once, as users: the second waits for its turn, or gives up in time."""

import json
import os
import re
import signal

from processes import eventually
from user import User

ENDLESS = "rig: gigablox\npairs: [pi1 -> pi2]\nduration: 1h\n"
BRIEF = "rig: gigablox\ntest: pingpong\npairs: [pi1 -> pi2]\nduration: 60s\nmatrix: {size: 1K, iterations: 100}\n"


def test_a_run_gives_up_in_time_or_waits_for_another_and_shows_who_is_ahead(guest: User) -> None:
    for name, text in (("first.yaml", ENDLESS), ("second.yaml", BRIEF)):
        (guest.folder / name).write_text(text)
    guest.environment["RIGCTL_DISPLAY_FOLDER"] = str(guest.folder)
    with guest.running("run", "first.yaml", "--no-report") as first:
        eventually(lambda: shows_traffic(guest))
        out = guest.rigctl("run", "second.yaml", "--wait", "1s", "--no-report", "--quiet", code=3)
        assert out.startswith("rigctl: pi1: in use by ")
        assert "waited for 1 s. Wait longer (--wait), or end it" in out
        assert len(out.splitlines()) == 1
        with guest.running("run", "second.yaml", "--wait", "1h", "--no-report") as second:
            (said,) = eventually(lambda: second.messages().splitlines())
            os.kill(first.pid, signal.SIGTERM)
            assert first.ended().returncode == 130
            done = second.ended()
    ahead = rf"pi1 is in use by \S+ pid {first.pid}, since .*; nobody ahead in the queue; waiting at most 1h 00m"
    assert re.match(ahead, said)
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().splitlines()[1].split()[0] == "Test"


def shows_traffic(user: User) -> bool:
    """Whether a run shows a present speed: its receiver has counted twice."""
    runs = json.loads(user.rigctl("display", "--json"))["runs"]
    return any(stream["now_mbps"] is not None for run in runs for stream in run["state"]["streams"])


def test_a_wrong_time_to_wait_touches_nothing(replayed: User) -> None:
    for wrong in ("soon", "-1m", "2000h"):
        assert "rigctl: --wait" in replayed.rigctl("run", "gigablox", f"--wait={wrong}", code=2)
    assert replayed.replay.began == []
    assert not (replayed.folder / "store.db").exists()
