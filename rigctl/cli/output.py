"""Where output goes: standard output, whose errors are told from those of files; pages, refused before anything is
measured where they could not be written, never outside their folder."""

import io
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import Buffer

from rigctl.errors import InputError
from rigctl.texts import file_name

if TYPE_CHECKING:
    from rigctl.records import RunInfo

_ENDINGS: Final = (".html", ".htm")


class OutputError(Exception):
    """Standard output or standard error cannot be written. No `OSError`: rich and typer would end the process."""

    def __init__(self, name: str, cause: OSError) -> None:
        super().__init__(f"{name} cannot be written: {cause.strerror}")
        self.reader_is_gone = isinstance(cause, BrokenPipeError)


class _Standard(io.FileIO):
    """Standard output or standard error, which raises `OutputError`."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError("standard output" if self.fileno() == 1 else "standard error", error) from error


def tell_output_errors() -> None:
    """Let standard output and standard error raise `OutputError`, which no other file raises."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):  # else it is closed
            raw = io.BufferedWriter(_Standard(descriptor, "w", closefd=False))
            setattr(
                sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
            )


def page_of(info: "RunInfo", page: Path | None) -> Path:
    """`page`, or SCENARIO-RUN.html in the working folder; a name from a foreign store becomes a plain file name."""
    return page or Path(f"{file_name(info.plan.scenario_name)}-{file_name(info.run)}.html")


def check_page(page: Path | None) -> None:
    """Refuse a place where no report can be written; None: a file of its own name here. Raises `InputError`."""
    shown = "the working folder" if page is None else str(page)
    try:
        target = (page or Path("rigctl.html")).resolve()
        if target.is_dir():
            raise InputError(f"{shown}: is a folder. Name a file in it, as {target / 'report.html'}")
        if target.exists() and not target.is_file():
            return  # a device or pipe
        if target.suffix.lower() not in _ENDINGS:
            raise InputError(f"{shown}: the report is HTML. Name a file that ends with .html")
        probe = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
        probe.touch(exist_ok=False)
        probe.unlink()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{shown}: the report cannot be written there: {reason}. Name another place, or give --no-report to run"
        ) from error
