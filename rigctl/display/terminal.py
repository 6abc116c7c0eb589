"""Draws on a terminal's alternate screen until a key is pressed, the terminal is lost or the source ends.

The terminal's size is read before each frame. A hangup (SIGHUP, or a lost terminal) ends drawing without a message.
"""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, Final

from rich.console import Console, Group
from rich.text import Text

_LEAVING: Final = frozenset(b"qQ\x1b\x03")


class _HangupError(Exception):
    """The terminal has hung up."""


def watch(lines: Callable[[int, int], Sequence[Text] | None], file: IO[str], *, interrupts: bool = True) -> bool:
    """Draw the result of `lines(width, height)` until it is None, `q` is pressed, or the terminal is lost.

    Return True if the terminal still exists. Without `interrupts`, this process ignores Ctrl-C.
    """
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
    console = Console(file=file, force_terminal=True, highlight=False, legacy_windows=False, _environ=environment)
    with _signals(interrupts), contextlib.suppress(_HangupError, OSError):
        with contextlib.suppress(KeyboardInterrupt), _keys() as keys, console.screen() as drawn:
            before: object = None
            left = False
            while not left:
                columns, rows = os.get_terminal_size(file.fileno())
                frame = lines(columns or 80, rows or 24)
                if frame is None:
                    break
                now = [(line.plain, line.style, line.spans) for line in frame]
                if now != before:
                    drawn.update(Group(*frame))
                    before = now
                left = _is_leave_key_pressed(keys)
        return True
    return False


def _is_leave_key_pressed(keys: int | None) -> bool:
    """Wait for a quarter of a second. Return True if a key that leaves the screen was pressed."""
    ready, _, _ = select.select([keys] if keys is not None else [], [], [], 0.25)
    if not ready or keys is None:
        return False
    if not (typed := os.read(keys, 64)):
        raise _HangupError
    return bool(_LEAVING & set(typed)) and (typed[:1] != b"\x1b" or len(typed) == 1)  # arrow keys begin with ESC too


@contextmanager
def _keys() -> Iterator[int | None]:
    """Read keys immediately, without echo. Yield their descriptor, or None if standard input is no terminal."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (termios.error, OSError, ValueError, AttributeError):
        yield None
        return
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _signals(interrupts: bool) -> Iterator[None]:
    def gone(_: int, __: FrameType | None) -> None:
        raise _HangupError

    signal.signal(signal.SIGHUP, gone)
    signal.signal(signal.SIGTERM, gone)
    signal.signal(signal.SIGINT, signal.default_int_handler if interrupts else signal.SIG_IGN)
    try:
        yield
    finally:
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the process is about to end; a late signal must not disturb its end
