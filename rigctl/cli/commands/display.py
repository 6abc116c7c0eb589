"""Show the run in progress on RIG, full screen.

If no run is in progress, show the latest table until a run begins. The key q ends the display.
"""

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from rigctl.base.errors import InputError, RigctlError
from rigctl.cli.errors import discard
from rigctl.cli.options import Json, StoreAddress, complete_rig, is_stderr_logged
from rigctl.cli.output import Versioned
from rigctl.cli.stored_runs import read_view
from rigctl.display.layout import draw_latest, draw_screen
from rigctl.display.live_run import LiveRunFile, make_own_folder, read_live_runs, write_live_run
from rigctl.display.terminal import watch
from rigctl.records import RunInfo
from rigctl.report.blocks import Document
from rigctl.report.document import document
from rigctl.report.printers.terminal import print_document
from rigctl.store import Store, open_store


class DisplayDocument(Versioned):
    """State and results of the runs that this machine measures or has measured, the earliest first."""

    runs: list[LiveRunFile]


def show_display(
    rig: Annotated[
        str | None, typer.Argument(metavar="RIG", help="Name of the rig, or id of a run.", autocompletion=complete_rig)
    ] = None,
    store: StoreAddress = None,
    as_json: Json = False,
    process: Annotated[int | None, typer.Option("--process", hidden=True)] = None,
) -> None:
    if as_json:
        print(DisplayDocument.text_of(runs=_of_rig(read_live_runs(), rig)))
        return
    if not sys.stdout.isatty():
        raise InputError("standard output is no terminal. To print the state of the runs once: rigctl display --json")
    shown = Screen(rig, store, process)
    # `watch` needs the original stream, which raises `OSError`, not `OutputError`, if the terminal is gone.
    if not watch(shown.lines, sys.__stdout__ or sys.stdout, interrupts=process is None):
        discard(1)  # the terminal is gone
    elif process is not None and shown.is_going:
        print("The run goes on. To show it again: rigctl display. To end it: Ctrl-C.", file=sys.stderr)


def _of_rig(runs: Sequence[LiveRunFile], rig: str | None) -> list[LiveRunFile]:
    return [run for run in runs if rig is None or rig in {run.state.rig, run.state.run}]


class Screen:
    """Shows a run until the run has ended, then the next run that begins."""

    def __init__(self, rig: str | None, store: str | None, process: int | None) -> None:
        self._rig, self._store, self._process = rig, store, process
        self._parent = os.getppid()
        self._shown: LiveRunFile | None = None

    @property
    def is_going(self) -> bool:
        return self._shown is not None and self._shown.is_going

    def lines(self, width: int, height: int) -> Sequence[Text] | None:
        """Return the lines to draw, or None if the process that measures (the parent of this process) has ended."""
        if self._process is not None and os.getppid() != self._parent:
            return None
        self._follow()
        now_s = time.monotonic()
        if self._shown is not None:
            return draw_screen(self._shown, width, height, now_s)
        stored = self._stored if self._process is None else ("The run begins.",)
        return draw_latest(stored or ("No run yet.",), width, height, now_s)

    def _follow(self) -> None:
        """Read the state of the shown run again. If the run has ended, show a run in progress instead."""
        runs = [run for run in _of_rig(read_live_runs(), self._rig) if self._process in {None, run.state.pid}]
        same = next((run for run in runs if self._shown is not None and _key(run) == _key(self._shown)), None)
        self._shown = same or self._shown
        if same is not None and same.is_going:
            return
        if going := [run for run in runs if run.is_going]:
            self._shown = going[0]
        elif self._shown is None and self._process is None:
            self._shown = next((run for run in reversed(runs) if run.state.results), None)

    @cached_property
    def _stored(self) -> tuple[str, ...]:
        """Return the result lines of the latest stored run; empty if there is no run or no store."""
        with contextlib.suppress(RigctlError), open_store(self._store, create=False) as opened:
            info = _latest_of(opened, self._rig)
            if info is not None:
                return _result_lines(document(read_view(opened, info.run)))
        return ()


def _key(run: LiveRunFile) -> tuple[str, int, int]:
    return run.user, run.state.pid, run.state.started


def _latest_of(opened: Store, rig: str | None) -> RunInfo | None:
    ids = opened.run_ids()
    if rig is None or rig in ids:
        return opened.run(rig) if ids else None
    return next((info for info in reversed(opened.runs()) if info.plan.rig_name == rig), None)


@contextmanager
def show_screen() -> Iterator["subprocess.Popen[bytes]"]:
    """Show the run full screen during the block; yield the process that draws. Ignore SIGHUP from now on."""
    if not sys.stderr.isatty():
        raise InputError("--display: standard error is no terminal. In a terminal, `rigctl display` shows the run")
    if is_stderr_logged():
        raise InputError("--display: the log goes to standard error, too. Name a file for it: --log-file FILE")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    command = [sys.executable, "-m", "rigctl", "display", "--process", str(os.getpid())]
    drawing = subprocess.Popen(command, stdout=sys.stderr.fileno())
    try:
        yield drawing
    finally:
        drawing.terminate()
        try:
            drawing.wait(3)
        except subprocess.TimeoutExpired:
            drawing.kill()
            drawing.wait()
        for descriptor in (1, 2):
            if _is_lost(descriptor):
                discard(descriptor)  # later writes to the lost terminal would fail


def publish_results(report: Document) -> None:
    """Write the lines of a report into the file from which `rigctl display` reads the run of this process."""
    own = [run.state for run in read_live_runs() if run.state.pid == os.getpid()]
    folder = make_own_folder()
    if own and folder is not None:
        with contextlib.suppress(OSError):
            write_live_run(folder, own[-1].model_copy(update={"results": _result_lines(report)}))


def _is_lost(descriptor: int) -> bool:
    """Tell whether the descriptor is of a terminal that has hung up (EIO); a pipe or a file gives ENOTTY."""
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        return bool(error.args[0] == errno.EIO)
    return False


def _result_lines(report: Document) -> tuple[str, ...]:
    """Return the lines that `rigctl show` prints for this report, at most 78 characters wide."""
    console = Console(file=io.StringIO(), width=78, color_system=None, highlight=False)
    with console.capture() as printed:
        print_document(report, console)
    return tuple(line.rstrip() for line in printed.get().splitlines())
