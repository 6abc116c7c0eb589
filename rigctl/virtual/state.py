"""The folder of a virtual rig that is up: who holds it, ports, keys, its log; and what a killed rigctl leaves of it.

The folder lies in the user's runtime folder (or /tmp/rigctl-UID, or the user's home), readable by nobody else.
`state.json` is written last, so a folder with it is complete. The rig does not need the folder: without it the rig
cannot be reached, but ends cleanly.

Namespaces, interfaces and the processes in them are never left: the kernel ends them with their holder.
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
"""A folder without a state is a start under way. One that is older than this was killed."""
_STARTED_S: Final = 0.1
"""Time from fork(2) to execve(2), on a busy machine too."""


@dataclass(frozen=True, slots=True)
class State:
    """A rig that was started. The process `starter` keeps its namespaces; on a loopback rig that is the holder."""

    folder: Path
    name: str
    key: str  # Layout.key
    source: str | None  # the rig file
    holder: Process
    starter: Process
    ports: dict[str, int]  # SSH ports by node
    stays: bool
    snmp_port: int | None = None  # SNMP port on 127.0.0.1; None: no switch answers
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
        """Send SIGKILL to those of holder and starter that are left."""
        for part in (self.starter, self.holder):
            if part.alive:
                _kill(part.pid)


def read(folder: Path) -> State | None:
    """Return the state in a folder; None if it is not complete (yet)."""
    try:
        raw = json.loads((folder / _STATE).read_text())
        raw["holder"], raw["starter"] = Process(**raw["holder"]), Process(**raw["starter"])
        return State(folder=folder, **{name: raw[name] for name in State.__slots__ if name in raw})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def base() -> Path:
    """Return the folder of all states, made if it is missing. Raise `RigError` if somebody else could write to it.

    If another user has taken its name in /tmp, the folder is in the user's home.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _is_own(Path(runtime)):
        places = [Path(runtime) / "rigctl"]
    else:
        places = [TMP / f"rigctl-{os.geteuid()}", user_state_path("rigctl", appauthor=False) / "virtual"]
    for folder in places:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Anyone may write to /tmp: hence the look at owner and mode.
            if _is_own(folder) and not stat.S_IMODE(folder.lstat().st_mode) & 0o077:
                return folder
    refused = " and ".join(map(str, places))
    raise RigError(f"{refused}: not a folder that only you can use. Remove it, or set XDG_RUNTIME_DIR.")


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def states() -> list[State]:
    """Return all complete states, up or not."""
    return [state for folder in sorted(base().iterdir()) if (state := read(folder)) is not None]


def standing(key: str) -> State | None:
    """Return the rig of that definition that `rig up` left up, if any."""
    return next((state for state in states() if state.key == key and state.stays and state.up), None)


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for `folder`."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def new_folder(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base()))


def remove(folder: Path) -> None:
    # The state first: a folder half removed must not look like a rig.
    (folder / _STATE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[str]:
    """Remove what is left of rigs that are gone, and return the names of their folders.

    Every command on a rig begins with this. Where only one of holder and starter is left, the rig is gone.
    """
    swept: list[str] = []
    for folder in base().iterdir():
        state = read(folder)
        gone = _is_abandoned(folder) if state is None else not state.up
        if gone and folder.is_dir():
            if state is not None:
                state.kill()
            kill_commands(folder.name)
            remove(folder)
            swept.append(folder.name)
    return swept


def _is_abandoned(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > _STARTING_S
    except OSError:
        return False  # another command was quicker


def kill_commands(tag: str) -> None:
    """Send SIGKILL to every command of a rig, whatever its session. A rig without namespaces needs it.

    Twice: a command that was just being started shows its rig a moment later.
    """
    for wait_s in (0.0, _STARTED_S):
        time.sleep(wait_s)
        for pid in _commands_of(tag):
            _kill(pid)


def _commands_of(tag: str) -> Iterator[int]:
    """Yield the running commands of the rig with that tag, as their environment tells (`RIGCTL_RIG`)."""
    mark = f"RIGCTL_RIG={tag}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
