"""The state that a run publishes while it measures, and the files that hold it; `rigctl display --json` prints it.

A thread writes the files, so the run never waits for one. They lie in memory (/dev/shm), in a folder that only its user
can write to, and are replaced by rename(2): nobody reads half a file. The file of a killed controller is recognised by
its process. Any user of the machine can write such a file: a state is checked when it is read, and its texts are cut
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

from rigctl.base.processes import process
from rigctl.base.texts import printable

MOST_TEXT: Final = 600
MOST_HISTORY: Final = 120
MOST_MESSAGES: Final = 20
MOST_ROWS: Final = 100

Shown = Annotated[str, AfterValidator(lambda text: printable(text[:MOST_TEXT]))]
Mbps = Annotated[float, Field(ge=0, le=1e9)]
Seconds = Annotated[float, Field(ge=0, le=1e10)]
Count = Annotated[int, Field(ge=0, le=10**9)]


class Part(BaseModel):
    """A part of a state; fields that a later rigctl added are skipped."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Stream(Part):
    """A pair in one direction, in the test that is measured or was measured last."""

    name: Shown
    ceiling_mbps: Mbps | None = Field(None, description="As rigctl plan shows it; null: not known.")
    now_mbps: Mbps | None = Field(None, description="As its receiver counted it last.")
    history_mbps: tuple[Mbps, ...] = Field((), description="Of this repetition, four a second, the latest last.")
    measured_mbps: Mbps | None = Field(None, description="Goodput of the repetition that was finished last.")


class CurrentTest(Part):
    """The test that is measured, or was measured last."""

    number: Count
    settings: Shown
    repetition: Count
    repetitions: Count | None = Field(description="null: beyond the plan.")
    attempt: Count
    duration_s: Seconds
    gone_s: Seconds = Field(description="Since it began, its preparation included.")
    running: bool
    live: bool = Field(description="false: its engine, or its kind, reports no figures before its end.")


class Said(Part):
    """A message of the run."""

    level: Literal["ok", "note", "warning", "error"]
    text: Shown


class State(Part):
    """A run, as it was when it was written."""

    version: Literal[1] = 1
    pid: Annotated[int, Field(gt=0, lt=2**31)] = Field(description="Of the process that measures.")
    started: Annotated[int, Field(ge=0)] = Field(description="Field 22 of /proc/PID/stat.")
    rig: Shown
    scenario: Shown
    title: Shown
    run: Shown | None = Field(None, description="null: not stored yet.")
    began_at: float = Field(description="Unix time, as written_at.")
    written_at: float
    clock_s: Seconds = Field(description="CLOCK_MONOTONIC when it was written.")
    phase: Literal["preparing", "measuring", "ended"]
    outcome: Literal["complete", "partial", "interrupted", "failed"] | None = None
    tests: Count
    done: Count = Field(description="Repetitions that were measured …")
    total: Count = Field(description="… of those that are planned.")
    left_s: Seconds | None = Field(None, description="null: not known.")
    left_at_most: bool = False
    test: CurrentTest | None = None
    streams: tuple[Stream, ...] = ()
    messages: tuple[Said, ...] = Field((), description="The latest last.")
    head: Shown = Field("", description="The names of the columns of `rows`.")
    rows: tuple[Said, ...] = Field((), description="A line for each repetition; the one that is measured comes last.")
    results: tuple[Shown, ...] = Field((), description="After the run: the lines of `rigctl show`, 78 columns wide.")


PLACE: Final = "/dev/shm"  # noqa: S108 — anyone may write there: hence the looks at owner and mode
VARIABLE: Final = "RIGCTL_DISPLAY_FOLDER"
"""A folder to use instead; for several users one that all may write to (sticky)."""
SILENT_S: Final = 10.0
_PREFIX: Final = "rigctl-runs-"
_MOST_BYTES: Final = 1_000_000
MOST_RUNS: Final = 64
"""State files of one user that are read: one user must not slow down the screen of all others."""
_KEPT_S: Final = 60.0
INTERVAL_S: Final = 0.5
SIGN_OF_LIFE_S: Final = 2.0
_log = logging.getLogger(__name__)


class Fate(StrEnum):
    """State of the process that published."""

    RUNNING = "running"
    SILENT = "silent"  # its process lives, but has written nothing for a while: stopped, or hanging
    DIED = "died"  # its process is gone, and it never wrote an end
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Published:
    """A state that was read. `user` owns the file: nobody can publish in another user's name."""

    state: State
    user: str
    fate: Fate

    @property
    def going(self) -> bool:
        return self.fate in {Fate.RUNNING, Fate.SILENT}


def _place() -> Path:
    return Path(os.environ.get(VARIABLE) or PLACE)


def _owned(folder: Path) -> int | None:
    """Return the owner of `folder`, or None if it is no folder, or others can write to it."""
    status = folder.lstat()
    return status.st_uid if stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o022 else None


def own_folder() -> Path | None:
    """Return this user's folder, creating it if needed; None if that fails, or others can write to it."""
    folder = _place() / f"{_PREFIX}{os.geteuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o755, exist_ok=True)
        return folder if _owned(folder) == os.geteuid() else None
    return None


def tidy(folder: Path) -> None:
    """Remove the files of runs that ended or died at least a minute ago; others may still read newer files."""
    for path in (*folder.glob("*.json"), *folder.glob(".*.new")):
        with contextlib.suppress(OSError, ValueError):
            if time.time() - path.stat().st_mtime > _KEPT_S and process(int(path.stem.removeprefix("."))) is None:
                path.unlink()


def write(folder: Path, state: State) -> None:
    """Replace the file of this state. Raises `OSError`."""
    fresh = folder / f".{state.pid}.new"
    fresh.write_text(state.model_dump_json())
    fresh.chmod(0o644)  # whatever the umask
    fresh.replace(path_of(folder, state.pid))


def path_of(folder: Path, pid: int) -> Path:
    return folder / f"{pid}.json"


def published() -> list[Published]:
    """Return the readable states of all users, the earliest run first."""
    runs = [run for folder in _place().glob(f"{_PREFIX}*") for run in _runs(folder)]
    return sorted(runs, key=lambda run: run.state.began_at)


def _runs(folder: Path) -> Iterator[Published]:
    with contextlib.suppress(OSError):
        owner = _owned(folder)
        if owner is None or folder.name != f"{_PREFIX}{owner}":
            return
        for path in sorted(islice(folder.glob("[0-9]*.json"), MOST_RUNS)):
            state = _read(path, owner)
            if state is not None:
                yield Published(state, _user(owner), _fate(state))


def _read(path: Path, owner: int) -> State | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 — it is open already
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
                return None
            state = State.model_validate_json(file.read(_MOST_BYTES))
    except (OSError, ValidationError):
        return None
    return state if path.name == f"{state.pid}.json" else None


def _fate(state: State) -> Fate:
    if state.phase == "ended":
        return Fate.ENDED
    now = process(state.pid)
    gone = not _hidden(state.pid) if now is None else now.started != state.started
    if gone:
        return Fate.DIED
    return Fate.RUNNING if time.monotonic() - state.clock_s < SILENT_S else Fate.SILENT


def _hidden(pid: int) -> bool:
    """Tell whether /proc hides a process of another user (hidepid, proc(5))."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@contextmanager
def publishing(snapshot: Callable[[], State]) -> Iterator[Callable[[], None]]:
    """Publish snapshots during the block, soon after a change and now and then as a sign of life.

    Yield the function to call when the state has changed. The last state is written at the end of the block.
    """
    folder = own_folder()
    if folder is None:
        _log.info("rigctl display cannot show this run: no folder for its state")
        yield lambda: None
        return
    changed, over = threading.Event(), threading.Event()

    def work() -> None:
        try:
            tidy(folder)
            while not over.is_set():
                changed.clear()
                write(folder, snapshot())
                over.wait(INTERVAL_S)
                changed.wait(SIGN_OF_LIFE_S - INTERVAL_S)
            write(folder, snapshot())
        except OSError as error:
            _log.info("rigctl display cannot show this run: %s", error)

    thread = threading.Thread(target=work, name="rigctl-display", daemon=True)
    thread.start()
    try:
        yield changed.set
    finally:
        over.set()
        changed.set()
        thread.join(SIGN_OF_LIFE_S)  # a file system that hangs must not delay the run
