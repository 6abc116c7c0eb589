"""Errors of a command: one message on standard error, and an exit code (docs/reference/results.md)."""

import codecs
import contextlib
import functools
import io
import os
import signal
import sys
import textwrap
import traceback
import unicodedata
from collections.abc import Callable, Iterable
from shutil import get_terminal_size
from types import FrameType
from typing import TYPE_CHECKING, Final

import typer
from typer.exceptions import TyperException

from rigctl.base.errors import InputError, InterruptError, RigctlError, RigError
from rigctl.base.processes import limit_met
from rigctl.base.texts import printable_lines
from rigctl.cli.options import is_stderr_logged, log_error

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(Exception):
    """Standard output or standard error cannot be written. Not an `OSError`: rich and typer would exit at once."""

    def __init__(self, name: str, cause: OSError) -> None:
        super().__init__(f"{name} cannot be written: {cause.strerror}")


class _Standard(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # The reader has ended, as in `rigctl regress | head -1`. The command goes on: its exit code is its result.
            discard(self.fileno())
            return memoryview(data).nbytes
        except OSError as error:
            raise OutputError("standard output" if self.fileno() == 1 else "standard error", error) from error


_PLAIN_SIGNS: Final = "rigctl-plain-signs"
_PLAIN: Final = str.maketrans("–—−→←↑↓“”‘’…·•≥≤≈×÷µ²³¹", "---><^v\"\"''.**><~x/u231")
"""Signs of rigctl's own texts and a sign for each that every terminal has, so that tables keep their widths."""


def _in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks; a handler of `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end].translate(_PLAIN)
    plain = (sign if sign.isascii() else unicodedata.normalize("NFKD", sign)[0] for sign in lacking)
    return "".join(sign if sign.isascii() else "?" for sign in plain), error.end


def raise_output_errors() -> None:
    """Replace standard output and standard error by streams that raise `OutputError`, but not for signs they lack."""
    codecs.register_error(_PLAIN_SIGNS, _in_plain_signs)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # sys.stdout is None if it was closed at the start
            raw = io.BufferedWriter(_Standard(descriptor, "w", closefd=False))
            errors = _PLAIN_SIGNS if stream.errors in ("strict", "backslashreplace") else stream.errors
            text = io.TextIOWrapper(raw, stream.encoding, errors, line_buffering=stream.line_buffering)
            setattr(sys, name, text)


def discard(descriptor: int) -> None:
    """Redirect standard output (1) or standard error (2) to /dev/null."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def flush_output() -> None:
    """Write buffered output; drop what cannot be written, because a failed flush at exit would change the exit code."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            if stream is not None:  # sys.stdout is None if it was closed at the start
                stream.flush()
        except OutputError:
            discard(descriptor)


def end_by(signals: Iterable[int], message: str) -> None:
    """Raise `InterruptError` with this message whenever one of these signals arrives."""

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        raise InterruptError(message)

    for number in signals:
        signal.signal(number, interrupted)


def exit_code_of(error: BaseException) -> int:
    """Print the message of an error and return its exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return InterruptError.exit_code
    if isinstance(error, TyperException):
        # A usage error. Most of typer's exceptions have a method `show`, but their base class lacks it.
        error.message = error.message.removeprefix("Value error, ")
        show: Callable[[], None] = getattr(error, "show", functools.partial(print_error, RigctlError(str(error))))
        with contextlib.suppress(OutputError):
            show()
        return InputError.exit_code
    if isinstance(error, OutputError):
        discard(1)
    known = _as_rigctl_error(error)
    print_error(known, error)
    return known.exit_code


def _as_rigctl_error(error: BaseException) -> RigctlError:
    if isinstance(error, RigctlError):
        return error
    if isinstance(error, OutputError):
        return RigError(str(error))
    if (limit := limit_met(error)) is not None:
        return RigError(limit)
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        if error.filename is not None:
            return RigError(f"{error.filename}: {reason}")
        return RigError(f"{reason}: the operating system refused a request of rigctl; --debug shows which")
    what = " ".join(str(error).split())[:300]
    return RigError(f"internal error: {type(error).__name__}: {what}. Please report it, with the output of --debug")


def print_error(error: RigctlError, cause: BaseException | None = None) -> None:
    """Print one message on standard error; with --debug the traceback of its cause."""
    log_error(error)
    if os.environ.get("RIGCTL_DEBUG"):
        traceback.print_exception(cause or error)
    elif not is_stderr_logged():
        # The message may quote control characters from nodes, switches and files.
        text = f"rigctl: {printable_lines(str(error))}"
        if sys.stderr.isatty():  # break lines at blanks only, so that paths and commands stay whole
            wrap = textwrap.TextWrapper(get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
            text = "\n".join(map(wrap.fill, text.splitlines()))
        with contextlib.suppress(OutputError):
            print(text, file=sys.stderr)
