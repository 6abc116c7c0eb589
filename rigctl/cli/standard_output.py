"""Standard output and standard error, whose errors are told from those of files."""

import io
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(Exception):
    """Standard output or standard error cannot be written. No `OSError`: rich and typer would end the process."""

    def __init__(self, name: str, cause: OSError) -> None:
        super().__init__(f"{name} cannot be written: {cause.strerror}")
        self.reader_is_gone = isinstance(cause, BrokenPipeError)


class _Standard(io.FileIO):
    """Standard output or standard error, which raises `OutputError`."""

    def write(self, data: "ReadableBuffer", /) -> int:
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
