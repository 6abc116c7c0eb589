"""`rigctl run --display`: the screen of this run, drawn by a process of its own, so that no terminal disturbs it."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rigctl.base.errors import InputError
from rigctl.cli.common import on_standard_error
from rigctl.cli.display.results import results_of
from rigctl.cli.errors import discard
from rigctl.display.folder import own_folder, published, write
from rigctl.report.blocks import Document

_END_S: Final = 3.0


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
    screen = subprocess.Popen(command, stdout=sys.stderr.fileno())
    try:
        yield screen
    finally:
        screen.terminate()
        try:
            screen.wait(_END_S)
        except subprocess.TimeoutExpired:
            screen.kill()
            screen.wait()
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
