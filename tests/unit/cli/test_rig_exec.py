"""`rigctl rig exec`: standard input goes to the command until one of both ends."""

import asyncio
import os
import threading
from typing import Any

import pytest

from rigctl.cli.commands import rig


class Full:
    """A command that never takes what is written to it."""

    def write(self, data: bytes) -> None:
        assert data

    async def drain(self) -> None:
        await asyncio.Event().wait()


def test_a_command_that_ends_before_its_input_leaves_no_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    reading, writing = os.pipe()

    async def ended(process: Any) -> None:
        feeding = asyncio.create_task(rig._feed(process))
        # The command holds a piece, the queue four, the thread waits with one, and the last is in the pipe.
        await asyncio.to_thread(os.write, writing, b"x" * 7 * rig._CHUNK)
        feeding.cancel()
        await asyncio.wait({feeding})

    with os.fdopen(reading) as given, os.fdopen(writing, "wb", buffering=0):
        monkeypatch.setattr("sys.stdin", given)
        asyncio.run(ended(Full()))
        for thread in threading.enumerate():
            if thread.name.endswith("(read)"):
                thread.join()
    assert raised == []
