"""Keeps a folder per virtual rig with its processes, ports, keys and log; removes the folders of ended rigs.

The folder lies in the user's runtime folder (or /tmp/rigctl-UID, or the user's home), readable only by that user.
`state.json` is written last, so a folder with this file is complete. If the folder is lost, the rig cannot be reached,
but ends cleanly. The kernel ends namespaces, interfaces and processes with the holder.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from rigctl.base.errors import RigError
from rigctl.base.processes import Process

TMP: Final = Path("/tmp")  # noqa: S108
_STATE: Final = "state.json"
_STARTING_S: Final = 60.0
"""A folder without state.json belongs to a rig that is starting; if it is older than this, its start was killed."""


@dataclass(frozen=True, slots=True)
class State:
    """A started rig. `starter` is the process of `unshare`; without namespaces, it is the same as `holder`."""

    folder: Path
    name: str
    key: str  # name and hash of the rig's layout (`Layout.key`)
    source: str | None  # path of the rig file, if known
    holder: Process
    starter: Process
    ports: dict[str, int]  # SSH ports by node
    stays: bool
    snmp_port: int | None = None  # SNMP port at 127.0.0.1; None: no switch answers SNMP
    community: str | None = field(default=None, repr=False)

    @property
    def up(self) -> bool:
        return self.holder.alive and self.starter.alive

    @property
    def client_key(self) -> Path:
        return self.folder / "key"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def write(self) -> None:
        raw = asdict(self)
        del raw["folder"]
        written = self.folder / f"{_STATE}.new"
        written.touch(mode=0o600)
        written.write_text(json.dumps(raw, indent=1))
        written.replace(self.folder / _STATE)

    def kill(self) -> None:
        """Send SIGKILL to the processes `starter` and `holder`, if they still run."""
        for part in (self.starter, self.holder):
            if part.alive:
                _kill(part.pid)


def read(folder: Path) -> State | None:
    """Return the state from a folder, or None if state.json is missing or malformed."""
    try:
        raw = json.loads((folder / _STATE).read_text())
        raw["holder"], raw["starter"] = Process(**raw["holder"]), Process(**raw["starter"])
        return State(folder=folder, **{name: raw[name] for name in State.__slots__ if name in raw})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def base() -> Path:
    """Return the parent of all rigs' folders, made if missing. Raise `RigError` if another user could write to it."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_own(Path(runtime)):
        places = [Path(runtime) / "rigctl"]
    else:
        places = [TMP / f"rigctl-{os.geteuid()}", user_state_path("rigctl", appauthor=False) / "virtual"]
    for folder in places:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Anyone may write to /tmp, so owner and mode are checked.
            if _is_own(folder) and not stat.S_IMODE(folder.lstat().st_mode) & 0o077:
                return folder
    refused = " and ".join(map(str, places))
    raise RigError(f"{refused}: not a folder that only you can use. Remove it, or set XDG_RUNTIME_DIR.")


def _is_own(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        status = folder.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def states() -> list[State]:
    """Return the states of all rigs, running or not."""
    return [state for folder in sorted(base().iterdir()) if (state := read(folder)) is not None]


def find_running(key: str) -> State | None:
    """Return the state of a running rig with this `Layout.key` that `rig up` started, or None."""
    return next((state for state in states() if state.key == key and state.stays and state.up), None)


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Hold a lock of `folder` during the block; wait for processes that hold it. Yield nothing."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def new_folder(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base()))


def remove_leftovers(folder: Path) -> None:
    # Remove the state first, so that a folder that is only partly removed does not look like a rig.
    (folder / _STATE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[str]:
    """Kill the commands and remove the folders of rigs whose holder or starter has ended. Return the folders' names."""
    swept: list[str] = []
    for folder in base().iterdir():
        state = read(folder)
        gone = _is_abandoned(folder) if state is None else not state.up
        if gone and folder.is_dir():
            if state is not None:
                state.kill()
            kill_commands(folder.name)
            remove_leftovers(folder)
            swept.append(folder.name)
    return swept


def _is_abandoned(folder: Path) -> bool:
    with contextlib.suppress(OSError):  # another command removed the folder first
        return time.time() - folder.stat().st_mtime > _STARTING_S
    return False


def kill_commands(tag: str) -> None:
    """Send SIGKILL to every command of a rig, in any session. A rig with namespaces does not need this."""
    # Search twice, because a command that is just starting gets the tag at execve(2), less than 0.1 s after fork(2).
    for wait_s in (0.0, 0.1):
        time.sleep(wait_s)
        for pid in _commands_of(tag):
            _kill(pid)


def _commands_of(tag: str) -> Iterator[int]:
    mark = f"RIGCTL_RIG={tag}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
