"""The interface of all transports that reach a node (`ssh`, `openssh`, `srun`, `local` or `netns`).

A transport opens a `Connection` to a node; a connection starts commands; a `Channel` is one command while it runs.
If the connection is lost, the streams of a channel raise `ConnectionError` with the reason.
"""

from dataclasses import dataclass
from typing import Final, Protocol

_CODED: Final = str.maketrans("\n!'\\", "\x01\x02\x03\x04")
_DECODING: Final = """exec sh -c 'eval "shift; $(printf %s "$1" | tr "\\1\\2\\3\\4" "\\12\\41\\47\\134")"' sh '{}'"""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended. Both fields are None if it still runs, or if the connection did not tell."""

    exit_code: int | None
    signal: str | None  # name of the signal that ended the command, such as "KILL"


class Source(Protocol):
    """Stream of bytes from a command: standard output or standard error."""

    async def read(self, most: int, /) -> bytes:
        """Return up to `most` bytes as soon as some arrive; b"" at the end."""


class Sink(Protocol):
    """Stream of bytes to a command: standard input."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None:
        """Wait until the write buffer has room again."""

    def write_eof(self) -> None: ...


class Channel(Protocol):
    """One command on a node, in the user's shell, without a terminal."""

    @property
    def stdin(self) -> Sink: ...

    @property
    def stdout(self) -> Source: ...

    @property
    def stderr(self) -> Source: ...

    async def wait_end(self) -> None:
        """Wait until the command has ended, or the connection is lost."""

    @property
    def ending(self) -> Ending:
        """Return how the command ended, as far as the connection has told."""

    async def stop(self) -> None:
        """End the command if it still runs, and close the channel within about a second. Never raise."""


class Connection(Protocol):
    """A connection to one node. Whoever opened the connection closes it."""

    @property
    def what(self) -> str:
        """Return the connection's name for messages about its loss, such as "SSH connection"."""

    async def start(self, command: str) -> Channel:
        """Start `command` in the user's shell on the node. Raise `NodeError` if that fails."""


def for_any_shell(command: str) -> str:
    """Return a POSIX shell command in a form that any login shell passes to `sh` unchanged.

    Within single quotes, csh accepts no line break and no exclamation mark; fish turns two backslashes into one.
    """
    misread = any(each in command for each in ("\n", "!", "\\\\"))
    return _DECODING.format(command.translate(_CODED)) if misread else command
