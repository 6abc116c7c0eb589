"""File transfers: all of it arrives, nothing of it stays, and disks that cannot be used are reported."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from processes import eventually
from talk import Start, Talk, arrived, connecting, flowing, joined, listening, ran, reports, started

SIZE = 3_000_001
PLACES = ["disk=0", "disk=1"]


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder on a disk: where tests keep their files may be in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield made


@pytest.mark.windows
@pytest.mark.parametrize("write", PLACES)
@pytest.mark.parametrize("read", PLACES)
def test_all_of_a_file_arrives(start: Start, folder: str, read: str, write: str) -> None:
    disks: dict[str, Any] = {"connect": f"{read} folder={folder}", "listen": f"{write} folder={folder}"}
    came, sent = ran(start, flows=2, extra=f"test=file size={SIZE}", **disks)
    for flow in range(2):
        there, here = sent.totals[flow], came.totals[flow]
        assert there["bytes"] == here["bytes"] == SIZE
        # One clock on one machine: the sender's time ends with the receiver's acknowledgement.
        assert there["last_byte_ns"] > here["last_byte_ns"]
        assert (there["disk_us"] is None) == (read == "disk=0")
        assert (here["disk_us"] is None) == (here["sync_us"] is None) == (write == "disk=0")
        assert there["sync_us"] is None


def test_files_have_no_name_and_are_gone_with_the_agent(receiver: Talk, sender: Talk, folder: str) -> None:
    joined(receiver, sender, extra=f"test=file size=50000000 disk=1 folder={folder}")
    links = [entry.readlink() for entry in Path(f"/proc/{sender.process.pid}/fd").iterdir()]
    assert any(str(link).startswith(folder) and str(link).endswith("(deleted)") for link in links)
    assert not any(Path(folder).iterdir())
    started(receiver, sender)
    sender.process.kill()
    assert receiver.event("ended")["error"] in (None, "ECONNRESET")
    assert not any(Path(folder).iterdir())


def test_a_transfer_that_is_not_over_in_time_ends_short(clock: FakeClock) -> None:
    receiver, sender, port = flowing(clock.start, "", 1000, clock.now_ns, extra=f"test=file size={2**40} disk=0")
    arrived(sender, port, SIZE)
    clock.advance(1)
    came, sent = reports(receiver, sender)
    assert SIZE <= sent.totals[0]["bytes"] == came.totals[0]["bytes"] < 2**40


def written(agent: Talk) -> int:
    words = Path(f"/proc/{agent.process.pid}/io").read_text().split()
    return int(words[words.index("wchar:") + 1])


@pytest.mark.windows
def test_closing_ends_the_making_of_a_file(receiver: Talk, sender: Talk, folder: str) -> None:
    """The file would fill the disk."""
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    extra = f"test=file size={min(2**40, free * 2)} disk=1 folder={folder}"
    number = sender.send(connecting(listening(receiver, extra=extra), extra=extra))
    eventually(lambda: written(sender) > SIZE)
    closing = sender.send("close endpoint=1")
    assert sender.answer(number)[-1]["error"] == "ECONNABORTED"
    assert sender.answer(closing)[-1]["ok"]
    assert written(sender) < free
