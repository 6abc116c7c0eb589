"""`rigctl display` and `rigctl run --display`: the screen of a rig, from any terminal and any user of this machine.

It shows the run in progress, the next that begins, or the latest of the store.
"""

import contextlib
import errno
import getpass
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Annotated, Any, Final, Literal, cast

import typer
from pydantic import Field
from rich.text import Text

from rigctl.analysis.views.over_time import sampled
from rigctl.base.errors import InputError, RigctlError
from rigctl.cli.common import on_standard_error
from rigctl.cli.documents import Model
from rigctl.cli.errors import discard
from rigctl.cli.options import Json, StoreAddress, rig_names
from rigctl.display.folder import Fate, Published, own_folder, published, write
from rigctl.display.layout import screen, waiting
from rigctl.display.state import Column, Results, Said, State, Table, Total
from rigctl.display.terminal import watch
from rigctl.records import RunInfo, RunStatus
from rigctl.report.blocks import Block, Document, HeatMaps
from rigctl.report.blocks import Table as ReportTable
from rigctl.report.document import document
from rigctl.store import Store, open_store

MOST_ROWS: Final = 500
MOST_FINDINGS: Final = 12
_END_S: Final = 3.0


class DisplayRun(Model):
    """A run that was published on this machine since it was started."""

    user: str
    fate: Literal["running", "silent", "died", "ended"] = Field(
        description="silent: nothing for 10 s, its process is stopped or hangs; died: its process is gone."
    )
    state: State


class DisplayDocument(Model):
    """The states that runs publish, the earliest first."""

    version: Literal[1] = 1
    runs: list[DisplayRun]


def display(
    rig: Annotated[
        str | None,
        typer.Argument(metavar="RIG", help="Name of the rig, or id of a run.", autocompletion=rig_names),
    ] = None,
    store: StoreAddress = None,
    as_json: Json = False,
    process: Annotated[int | None, typer.Option("--process", hidden=True)] = None,
) -> None:
    """Show the run in progress on RIG, full screen.

    Without one: the latest table, until a run begins. q leaves.
    """
    if as_json:
        runs = _of_rig(published(), rig)
        print(DisplayDocument.text_of(runs=runs))
        return
    if not sys.stdout.isatty():
        raise InputError("standard output is no terminal. rigctl display --json prints the state once")
    shown = Screen(rig, store, process)
    shown.choose()
    # The stream without `cli.errors`: `watch` takes an error of the terminal for its end.
    if not watch(shown.lines, sys.__stdout__ or sys.stdout, interrupts=process is None):
        discard(1)  # nobody is there to read it
    elif process is not None and shown.going:
        print("The run goes on: rigctl display shows it again, Ctrl-C ends it.", file=sys.stderr)


def _of_rig(runs: Sequence[Published], rig: str | None) -> list[Published]:
    return [each for each in runs if rig is None or rig in {each.state.rig, each.state.run}]


class Screen:
    """Follows a run until it is over, then the next that begins."""

    def __init__(self, rig: str | None, store: str | None, process: int | None) -> None:
        self._rig, self._store, self._process = rig, store, process
        self._parent = os.getppid()
        self._shown: Published | None = None

    @property
    def going(self) -> bool:
        return self._shown is not None and self._shown.going

    def choose(self) -> None:
        """Raise `InputError` if several runs are in progress."""
        going = [each for each in self._candidates() if each.going]
        if len(going) > 1:
            listed = "\n".join(
                f"  {each.state.rig}  {each.state.run or each.state.scenario}  {each.user}" for each in going
            )
            raise InputError(f"several runs are in progress. Name a rig, or the id of a run:\n{listed}")

    def lines(self, width: int, height: int) -> Sequence[Text] | None:
        """Return the screen now, or None if it is over, as the process whose run it shows has ended."""
        if self._process is not None and os.getppid() != self._parent:
            return None
        self._follow()
        if self._shown is not None:
            return screen(self._shown, width, height, time.monotonic())
        return waiting(["No run yet." if self._process is None else "The run begins.", "q leaves"], width, height)

    def _candidates(self) -> list[Published]:
        runs = _of_rig(published(), self._rig)
        return [each for each in runs if self._process in {None, each.state.pid}]

    def _follow(self) -> None:
        """Read the state of the run that is shown; if it is over, choose the run that has begun."""
        found = self._candidates()
        same = next((each for each in found if self._shown is not None and _key(each) == _key(self._shown)), None)
        self._shown = same or self._shown
        if same is not None and same.going:
            return
        going = [each for each in found if each.going]
        if going:
            self._shown = going[0]
        elif self._shown is None and self._process is None:
            ended = [each for each in found if each.state.results is not None]
            known = [*ended, *([self._stored] if self._stored is not None else [])]
            self._shown = max(known, key=lambda each: each.state.began_at, default=None)

    @cached_property
    def _stored(self) -> Published | None:
        """Return the latest run of the store with its table; None if there is no run, or no store."""
        try:
            with open_store(self._store, create=False) as opened:
                info = _latest_of(opened, self._rig)
                if info is None:
                    return None
                made = document(info, opened.repetitions(info.run, series=sampled(info.plan)))
        except RigctlError:
            return None
        return Published(_ended_state(info, results_of(made)), getpass.getuser(), Fate.ENDED)


def _key(each: Published) -> tuple[str, int, int]:
    return each.user, each.state.pid, each.state.started


def _latest_of(opened: Store, rig: str | None) -> RunInfo | None:
    ids = opened.run_ids()
    if rig is None or rig in ids:
        return opened.run(rig) if ids else None
    return next((info for info in reversed(opened.runs()) if info.plan.rig_name == rig), None)


def _ended_state(info: RunInfo, results: Results) -> State:
    return State(
        pid=os.getpid(),
        started=0,
        rig=info.plan.rig_name,
        scenario=info.plan.scenario_name,
        title=info.plan.title,
        run=info.run,
        began_at=info.started_at,
        written_at=info.ended_at or info.started_at,
        clock_s=time.monotonic(),
        phase="ended",
        outcome=None if info.status is RunStatus.RUNNING else cast("Any", str(info.status)),
        tests=len(info.plan.cells),
        done=0,
        total=0,
        results=results,
    )


@contextmanager
def displayed() -> Iterator["subprocess.Popen[bytes]"]:
    """Show a screen on standard error during the block. A hangup does not end the run from here on.

    Yield its process, which ends when somebody leaves the screen, or its terminal is gone.
    """
    if not sys.stderr.isatty():
        raise InputError("--display: standard error is no terminal. Attach one later: rigctl display")
    if on_standard_error():
        raise InputError("--display: the log goes to standard error, too. Name a file for it: --log-file FILE")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    command = [sys.executable, "-m", "rigctl", "display", "--process", str(os.getpid())]
    drawing = subprocess.Popen(command, stdout=sys.stderr.fileno())
    try:
        yield drawing
    finally:
        drawing.terminate()
        try:
            drawing.wait(_END_S)
        except subprocess.TimeoutExpired:
            drawing.kill()
            drawing.wait()
        for descriptor in (1, 2):
            if _lost(descriptor):
                discard(descriptor)  # nothing more is printed on a lost terminal


def publish_results(made: Document) -> None:
    """Publish the results of this process's run for everyone who looks on."""
    own = [each.state for each in published() if each.state.pid == os.getpid()]
    folder = own_folder()
    if own and folder is not None:
        with contextlib.suppress(OSError):
            write(folder, own[-1].model_copy(update={"results": results_of(made)}))


def _lost(descriptor: int) -> bool:
    """Tell whether the terminal behind this descriptor has hung up; another kind of file gives ENOTTY."""
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False


def results_of(document: Document) -> Results:
    """Return what the screen shows after a run."""
    several = len(document.results) > 1
    tables = [
        table
        for section in document.results
        for block in section.blocks
        for table in _tables(section.title if several else "", block)
    ]
    findings = [
        Said(level=finding.level.value, text=" ".join(filter(None, (finding.text, finding.remedy))))
        for finding in document.findings[: MOST_FINDINGS + 1]
    ]
    answer = findings[0].text if findings else None
    return Results(answer=answer, totals=tuple(_totals(document)), findings=tuple(findings[1:]), tables=tuple(tables))


def _totals(document: Document) -> Iterator[Total]:
    """Yield the totals in the first column of measured rates of the first table that has one."""
    blocks = (block for section in document.results for block in section.blocks if isinstance(block, ReportTable))
    for block in blocks:
        rates = [at for at, each in enumerate(block.columns) if each.unit == "Mbit/s" and each.group == "measured"]
        if not rates:
            continue
        for row in block.rows[:MOST_ROWS]:
            value = row.entries[rates[0]].value
            parts = value if isinstance(value, tuple) else (value,)
            known = [part for part in parts if isinstance(part, int | float)]
            if row.test is not None and known and len(known) == len(parts):
                yield Total(test=row.test, goodput_mbps=sum(known))
        return


def _tables(title: str, block: Block) -> Iterator[Table]:
    if isinstance(block, ReportTable):
        shown = [*block.rows[:MOST_ROWS], *((block.total,) if block.total else ())]
        yield Table(
            title=title,
            columns=tuple(Column(title=each.title, unit=each.unit, words=each.words) for each in block.columns),
            rows=tuple(tuple(entry.text for entry in row.entries) for row in shown),
        )
    if isinstance(block, HeatMaps):
        for heat_map in block.maps:
            rows = heat_map.rows[:MOST_ROWS]
            yield Table(
                title=", ".join(filter(None, (title, heat_map.title, block.unit))),
                columns=tuple(Column(title=each) for each in (heat_map.corner, *heat_map.columns)),
                rows=tuple((label, *(field.text for field in fields)) for label, fields in rows),
            )
