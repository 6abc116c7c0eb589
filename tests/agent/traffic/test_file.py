"""File transfers: all of it arrives, nothing of it stays, and disks that cannot be used are reported."""

import os
from pathlib import Path

import pytest
from processes import eventually
from talk import Start, connecting, joined, listening, ran, report_of, started

SIZE = 3_000_001
PLACES = ["disk=0", "disk=1"]


@pytest.fixture
def folder() -> str:
    """On a disk: where tests keep their files may be in memory."""
    return "/var/tmp"


@pytest.mark.parametrize("write", PLACES)
@pytest.mark.parametrize("read", PLACES)
def test_all_of_a_file_arrives(start: Start, folder: str, read: str, write: str) -> None:
    disks = {"connect": f"{read} folder={folder}", "listen": f"{write} folder={folder}"}
    receiver, sender = ran(start, 20_000, flows=2, wait_ms=10_000, extra=f"test=file size={SIZE}", **disks)
    sent, came = report_of(sender), report_of(receiver)
    for flow in range(2):
        there, here = sent.totals[flow], came.totals[flow]
        assert there["bytes"] == here["bytes"] == SIZE
        # One clock on one machine: the sender's time ends with the receiver's acknowledgement.
        assert there["last_byte_ns"] > here["last_byte_ns"]
        assert (there["disk_us"] is None) == (read == "disk=0")
        assert (here["disk_us"] is None) == (here["sync_us"] is None) == (write == "disk=0")
        assert there["sync_us"] is None


def test_files_have_no_name_and_are_gone_with_the_agent(start: Start, folder: str) -> None:
    before = set(Path(folder).iterdir())
    receiver, sender = start(), start()
    joined(receiver, sender, wait_ms=10_000, extra=f"test=file size=50000000 disk=1 folder={folder}")
    assert set(Path(folder).iterdir()) == before
    links = [entry.readlink() for entry in Path(f"/proc/{sender.process.pid}/fd").iterdir()]
    assert any(str(link).endswith("(deleted)") for link in links)
    started([receiver, sender], 20_000)
    sender.process.kill()
    eventually(lambda: sender.process.poll() is not None)
    assert receiver.event("ended", 20)["error"] in (None, "ECONNRESET")
    assert set(Path(folder).iterdir()) == before


def test_a_transfer_that_is_not_over_in_time_ends_short(start: Start) -> None:
    receiver, sender = ran(start, 200, extra=f"test=file size={2**40} disk=0")
    sent, came = report_of(sender), report_of(receiver)
    assert 0 < sent.totals[0]["bytes"] == came.totals[0]["bytes"] < 2**40


def test_a_disk_without_room_is_told(start: Start, folder: str) -> None:
    receiver, sender = start(), start()
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    extra = f"test=file size={min(2**40, free * 2)} disk=1 folder={folder}"
    # The disk is not filled here: closing the endpoint ends the making of the file at once.
    sender.send(connecting(listening(receiver, extra=extra), wait_ms=10_000, extra=extra))
    eventually(lambda: bool(sender.ask("ping")["ok"]))
    assert sender.ask("close endpoint=1")["ok"]
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > free / 2
