"""The folder in which a virtual rig that is up keeps what its users need: who holds it, ports, keys, its log.

It lies in the user's runtime folder (or /tmp/rigctl-UID, or the user's home), readable by nobody else; `state.json` is
written last, so a folder with it is complete. The rig does not need the folder: a lost one costs the way to the rig,
not its clean end.
"""

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from rigctl.base.errors import RigError
from rigctl.base.processes import Process

TMP: Final = Path("/tmp")  # noqa: S108
_STATE: Final = "state.json"


@dataclass(frozen=True, slots=True)
class State:
    """A rig that was started. `starter` is what the namespaces hang on; on a loopback rig the holder itself."""

    folder: Path
    name: str
    key: str  # Layout.key
    source: str | None  # the rig file
    holder: Process
    starter: Process
    ports: dict[str, int]  # SSH, by node
    stays: bool
    snmp_port: int | None = None  # on 127.0.0.1; None: no switch answers
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


def read(folder: Path) -> State | None:
    """The state in a folder; None where it is not complete (yet). What a later rigctl may have added is skipped.

    What an earlier one did not know yet is left at its default.
    """
    try:
        raw = json.loads((folder / _STATE).read_text())
        raw["holder"], raw["starter"] = Process(**raw["holder"]), Process(**raw["starter"])
        known = {name: raw[name] for name in State.__slots__ if name != "folder" and name in raw}
        return State(folder=folder, **known)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def base() -> Path:
    """Return the folder of all states, made if it is missing. Raises `RigError` where somebody else could write to it.

    Where another user has taken its name in /tmp, it is in the user's home.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and _own(Path(runtime)):
        places = [Path(runtime) / "rigctl"]
    else:
        places = [TMP / f"rigctl-{os.geteuid()}", user_state_path("rigctl", appauthor=False) / "virtual"]
    for folder in places:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Anyone may write to /tmp: hence the look at owner and mode.
            if _own(folder) and not stat.S_IMODE(folder.lstat().st_mode) & 0o077:
                return folder
    refused = " and ".join(map(str, places))
    raise RigError(f"{refused}: not a folder that only you can use. Remove it, or set XDG_RUNTIME_DIR.")


def states() -> Iterator[State]:
    """All complete states, up or not."""
    for folder in sorted(base().iterdir()):
        state = read(folder)
        if state is not None:
            yield state


def standing(key: str) -> State | None:
    """The rig of that definition that `rig up` left up, if any."""
    return next((state for state in states() if state.key == key and state.stays and state.up), None)


def new_folder(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base()))


def remove(folder: Path) -> None:
    # The descriptor first: a folder half removed must not look like a rig.
    (folder / _STATE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _own(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
