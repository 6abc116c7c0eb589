"""File transfers: all of it arrives, nothing of it stays, and disks that cannot be used are told."""

import os
from pathlib import Path

import pytest
from lab import eventually
from talk import Report, Start, Talk, report_of, settings, started

SIZE = 3_000_001
PLACES = ["disk=0", "disk=1"]


@pytest.fixture
def folder() -> str:
    """On a disk: where tests keep their files may be in memory."""
    return "/var/tmp"


def joined(receiver: Talk, sender: Talk, read: str, write: str, flows: int = 1, size: int = SIZE) -> None:
    """Flows with a file of their own at each end that has a disk."""
    common = settings(flows=flows, wait_ms=10_000, extra=f"test=file size={size}")
    listening = receiver.ask(f"listen endpoint=1 address=127.0.0.1 {common} {write}")
    assert listening["ok"], listening
    port = listening["port"]
    connected = sender.ask(f"connect endpoint=1 address=127.0.0.1 bind=127.0.0.1 port={port} {common} {read}")
    assert connected["ok"], connected
    assert receiver.ask("ready endpoint=1")["ok"]


def ended(receiver: Talk, sender: Talk) -> tuple[Report, Report]:
    for agent in (receiver, sender):
        assert agent.event("ended", 30)["error"] is None
    return report_of(sender), report_of(receiver)


@pytest.mark.parametrize("write", PLACES)
@pytest.mark.parametrize("read", PLACES)
def test_all_of_a_file_arrives(start: Start, folder: str, read: str, write: str) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, f"{read} folder={folder}", f"{write} folder={folder}", flows=2)
    started([receiver, sender], 20_000)
    sent, came = ended(receiver, sender)
    for flow in range(2):
        there, here = sent.totals[flow], came.totals[flow]
        assert there["bytes"] == here["bytes"] == SIZE
        # The sender's time ends with the receiver's word; one clock on one machine.
        assert there["last_byte_ns"] > here["last_byte_ns"]
        assert (there["disk_us"] is None) == (read == "disk=0")
        assert (here["disk_us"] is None) == (here["sync_us"] is None) == (write == "disk=0")
        assert there["sync_us"] is None


def test_files_have_no_name_and_are_gone_with_the_agent(start: Start, folder: str) -> None:
    before = set(Path(folder).iterdir())
    receiver, sender = start(), start()
    joined(receiver, sender, f"disk=1 folder={folder}", f"disk=1 folder={folder}", size=50_000_000)
    assert set(Path(folder).iterdir()) == before
    links = [entry.readlink() for entry in Path(f"/proc/{sender.process.pid}/fd").iterdir()]
    assert any(str(link).endswith("(deleted)") for link in links)
    started([receiver, sender], 20_000)
    sender.process.kill()
    eventually(lambda: sender.process.poll() is not None)
    assert receiver.event("ended", 20)["error"] in (None, "ECONNRESET")
    assert set(Path(folder).iterdir()) == before


def test_a_transfer_that_is_not_over_in_time_ends_short(start: Start) -> None:
    receiver, sender = start(), start()
    joined(receiver, sender, "disk=0", "disk=0", size=2**40)
    started([receiver, sender], 200)
    sent, came = ended(receiver, sender)
    assert 0 < sent.totals[0]["bytes"] == came.totals[0]["bytes"] < 2**40


def test_a_disk_without_room_is_told(start: Start, folder: str) -> None:
    receiver, sender = start(), start()
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    common = settings(wait_ms=10_000, extra=f"test=file size={min(2**40, free * 2)} disk=1 folder={folder}")
    port = receiver.ask(f"listen endpoint=1 address=127.0.0.1 {common}")["port"]
    # It is not filled here to see: closing the endpoint ends the making of the file at once.
    sender.send(f"connect endpoint=1 address=127.0.0.1 bind=127.0.0.1 port={port} {common}")
    eventually(lambda: bool(sender.ask("ping")["ok"]))
    assert sender.ask("close endpoint=1")["ok"]
    assert os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > free / 2
