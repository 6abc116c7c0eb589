"""The state that a run publishes while it measures, and its files; `rigctl display --json` prints this state.

A thread writes the files, so the run never waits for a file. They lie in memory (/dev/shm), in a folder that only its
user can write to, and are replaced by rename(2). So nobody reads half a file. A killed controller is detected by its
process id. Any user of the machine can write such a file, so a state is checked on reading, and its texts are shortened
and made printable.
"""

import contextlib
import logging
import os
import pwd
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rigctl.base.files import read_regular
from rigctl.base.processes import is_hidden, process
from rigctl.base.texts import printable

_MOST_TEXT: Final = 600
MOST_HISTORY: Final = 120
MOST_MESSAGES: Final = 20
MOST_LIVE_ROWS: Final = 100

_Shown = Annotated[str, AfterValidator(lambda text: printable(text[:_MOST_TEXT]))]
_Mbps = Annotated[float, Field(ge=0, le=1e9)]
_Seconds = Annotated[float, Field(ge=0, le=1e10)]
_Count = Annotated[int, Field(ge=0, le=10**9)]


class LivePart(BaseModel):
    """Base class of the records of a run's state. Unknown fields, which a later rigctl may write, are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class LiveStream(LivePart):
    """Goodput of one direction of a pair, in the current or the latest test."""

    name: _Shown
    ceiling_mbps: _Mbps | None = Field(None, description="Highest goodput that the link allows; null: not known.")
    now_mbps: _Mbps | None = Field(None, description="Goodput in the last quarter of a second; null: not known.")
    history_mbps: tuple[_Mbps, ...] = Field((), description="Goodput every 250 ms of the repetition, latest last.")
    measured_mbps: _Mbps | None = Field(None, description="Goodput of the last finished repetition; null: none.")


class LiveTest(LivePart):
    """The test that runs now, or the latest test."""

    number: _Count
    settings: _Shown
    repetition: _Count
    repetitions: _Count | None = Field(description="Planned repetitions; null: this repetition is an additional one.")
    attempt: _Count
    duration_s: _Seconds
    gone_s: _Seconds = Field(description="Time since the repetition began, preparation included.")
    running: bool
    live: bool = Field(description="false: the engine (iperf3) reports nothing before a repetition ends.")


class LiveLine(LivePart):
    """A message of the run, or a row of its table of results."""

    level: Literal["ok", "note", "warning", "error"]
    text: _Shown


class LiveRun(LivePart):
    """The state of a run in progress, as `rigctl display` and `display --json` show it."""

    version: Literal[1] = 1
    pid: Annotated[int, Field(gt=0, lt=2**31)] = Field(description="Process that measures.")
    started: Annotated[int, Field(ge=0)] = Field(description="Start time of this process: field 22 of /proc/PID/stat.")
    rig: _Shown
    scenario: _Shown
    title: _Shown
    run: _Shown | None = Field(None, description="Id of the run; null: not stored yet.")
    began_at: float = Field(description="Start of the run, in Unix time.")
    written_at: float = Field(description="Time of this state, in Unix time.")
    clock_s: _Seconds = Field(description="Time of this state, by CLOCK_MONOTONIC.")
    phase: Literal["preparing", "measuring", "ended"]
    outcome: Literal["complete", "partial", "interrupted", "failed"] | None = None
    tests: _Count
    done: _Count = Field(description="Measured repetitions.")
    total: _Count = Field(description="Planned repetitions.")
    left_s: _Seconds | None = Field(None, description="null: not known.")
    left_at_most: bool = False
    test: LiveTest | None = None
    streams: tuple[LiveStream, ...] = ()
    messages: tuple[LiveLine, ...] = Field((), description="The latest last.")
    head: _Shown = Field("", description="Names of the columns of `rows`.")
    rows: tuple[LiveLine, ...] = Field((), description="A line for each repetition; the current repetition comes last.")
    results: tuple[_Shown, ...] = Field((), description="After the run: the lines of `rigctl show`, 78 columns wide.")


_PLACE: Final = "/dev/shm"  # noqa: S108 — others may write here, so owner and mode are checked
FOLDER_VARIABLE: Final = "RIGCTL_DISPLAY_FOLDER"
"""Environment variable: another folder for the files. Users who share the folder all need write access (sticky)."""
SILENT_S: Final = 10.0
_PREFIX: Final = "rigctl-runs-"
_MOST_BYTES: Final = 1_000_000
MOST_RUNS: Final = 64
"""Most state files that are read per user, so that one user cannot slow down the screens of others."""
_INTERVAL_S: Final = 0.5
_SIGN_OF_LIFE_S: Final = 2.0
_log = logging.getLogger(__name__)


class LiveStatus(StrEnum):
    """State of the process that measures a run."""

    RUNNING = "running"
    SILENT = "silent"  # the process lives but has not written for a while: stopped, or hanging
    DIED = "died"  # the process is gone without a final state
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class LiveRunFile:
    """A published state. `user` owns the file, so nobody can publish under another name."""

    state: LiveRun
    user: str
    fate: LiveStatus

    @property
    def is_going(self) -> bool:
        return self.fate in {LiveStatus.RUNNING, LiveStatus.SILENT}


def _place() -> Path:
    return Path(os.environ.get(FOLDER_VARIABLE) or _PLACE)


def _owner(folder: Path) -> int | None:
    """Return the owner's user id, or None if `folder` is no folder or others can write to it."""
    status = folder.lstat()
    return status.st_uid if stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o022 else None


def make_own_folder() -> Path | None:
    """Return this user's folder, created if missing; None if that fails or if others can write to it."""
    folder = _place() / f"{_PREFIX}{os.geteuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o755, exist_ok=True)
        return folder if _owner(folder) == os.geteuid() else None
    return None


def remove_old_files(folder: Path) -> None:
    """Remove the files of runs that ended or died at least a minute ago; newer files may still be read."""
    for path in (*folder.glob("*.json"), *folder.glob(".*.new")):
        with contextlib.suppress(OSError, ValueError):
            if time.time() - path.stat().st_mtime > 60 and process(int(path.stem.removeprefix("."))) is None:
                path.unlink()


def write_live_run(folder: Path, state: LiveRun) -> None:
    """Replace the file of this state. Raise `OSError` if that fails."""
    fresh = folder / f".{state.pid}.new"
    fresh.write_text(state.model_dump_json())
    fresh.chmod(0o644)  # give every user read access, whatever the umask
    fresh.replace(state_path(folder, state.pid))


def state_path(folder: Path, pid: int) -> Path:
    return folder / f"{pid}.json"


def read_live_runs() -> list[LiveRunFile]:
    """Return the readable states of all users, earliest run first."""
    runs = [run for folder in _place().glob(f"{_PREFIX}*") for run in _runs(folder)]
    return sorted(runs, key=lambda run: run.state.began_at)


def _runs(folder: Path) -> Iterator[LiveRunFile]:
    with contextlib.suppress(OSError):
        owner = _owner(folder)
        if owner is None or folder.name != f"{_PREFIX}{owner}":
            return
        for path in sorted(islice(folder.glob("[0-9]*.json"), MOST_RUNS)):
            if (state := _read(path)) is not None:
                yield LiveRunFile(state, _user(owner), _fate(state))


def _read(path: Path) -> LiveRun | None:
    try:
        state = LiveRun.model_validate_json(read_regular(path, _MOST_BYTES))
    except (OSError, ValidationError):
        return None
    return state if path.name == f"{state.pid}.json" else None


def _fate(state: LiveRun) -> LiveStatus:
    if state.phase == "ended":
        return LiveStatus.ENDED
    now = process(state.pid)
    gone = not is_hidden(state.pid) if now is None else now.started != state.started
    if gone:
        return LiveStatus.DIED
    return LiveStatus.RUNNING if time.monotonic() - state.clock_s < SILENT_S else LiveStatus.SILENT


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


@contextmanager
def publish_live_run(snapshot: Callable[[], LiveRun]) -> Iterator[Callable[[], None]]:
    """Publish snapshots during the block, periodically and soon after each call of the function that is yielded."""
    folder = make_own_folder()
    if folder is None:
        _log.info("rigctl display cannot show this run: %s has no folder that only this user can write to", _place())
        yield lambda: None
        return
    changed, over = threading.Event(), threading.Event()

    def work() -> None:
        try:
            remove_old_files(folder)
            while not over.is_set():
                changed.clear()
                write_live_run(folder, snapshot())
                over.wait(_INTERVAL_S)
                changed.wait(_SIGN_OF_LIFE_S - _INTERVAL_S)
            write_live_run(folder, snapshot())
        except OSError as error:
            _log.info("rigctl display cannot show this run: %s", error)

    thread = threading.Thread(target=work, name="rigctl-display", daemon=True)
    thread.start()
    try:
        yield changed.set
    finally:
        over.set()
        changed.set()
        thread.join(_SIGN_OF_LIFE_S)  # a hanging file system must not delay the run
