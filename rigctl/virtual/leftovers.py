"""What a killed rigctl may leave: state folders of rigs that are gone, and on a loopback rig a command or two.

Namespaces, interfaces and the processes in them need no care: they end with their holder, by the kernel.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rigctl.virtual.state import State, base, read, remove

STARTING_S: Final = 60.0
"""A folder without a state is a start under way, or one that was killed: older than this it is the latter."""
STARTED_S: Final = 0.1
"""From fork(2) to execve(2), on a busy machine too."""


def sweep() -> list[str]:
    """Remove what is left of rigs that are no more; give their folders' names. Every command on a rig begins so."""
    swept: list[str] = []
    for folder in base().iterdir():
        state = read(folder)
        gone = _abandoned(folder) if state is None else not state.up
        if gone and folder.is_dir():
            if state is not None:
                _kill(state)
            kill_commands(folder.name)
            remove(folder)
            swept.append(folder.name)
    return swept


def kill_commands(tag: str) -> None:
    """SIGKILL for every command of a rig, whatever session it is in. Without namespaces nobody else does that.

    Twice: one that was just being started shows whose it is a moment later.
    """
    for wait_s in (0.0, STARTED_S):
        time.sleep(wait_s)
        for pid in commands_of(tag):
            _kill_pid(pid)


def commands_of(tag: str) -> Iterator[int]:
    """Commands of the rig with that tag that are still there, as their environment tells (`RIGCTL_RIG`)."""
    mark = f"RIGCTL_RIG={tag}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _abandoned(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > STARTING_S
    except OSError:
        return False  # another command was quicker


def _kill(state: State) -> None:
    """Where only one of holder and starter is left, the rig is no more: neither may stay."""
    for part in (state.holder, state.starter):
        if part.alive:
            _kill_pid(part.pid)


def _kill_pid(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
