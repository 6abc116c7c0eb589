"""The interface of all transports that reach a node (`ssh`, `srun`, or `local` for a process of this machine).

A transport opens a `Connection` to a node; a connection starts commands; a `Channel` is one command while it runs.
If the connection is lost, the streams of a channel raise `ConnectionError` with the reason.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended. Both None: it has not, or nobody knows."""

    exit_code: int | None
    signal: str | None  # that ended it, as "KILL"


class Source(Protocol):
    """Bytes that come from a command."""

    async def read(self, most: int, /) -> bytes:
        """Return up to `most` bytes as they come; b"" at the end."""
        ...


class Sink(Protocol):
    """Bytes that go to a command."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None:
        """Wait until more may be written."""
        ...

    def write_eof(self) -> None: ...


class Channel(Protocol):
    """One command on a node, in the user's shell, without a terminal."""

    @property
    def stdin(self) -> Sink: ...

    @property
    def stdout(self) -> Source: ...

    @property
    def stderr(self) -> Source: ...

    async def ended(self) -> None:
        """Wait until it has ended, or its connection has."""
        ...

    @property
    def ending(self) -> Ending:
        """Return how the command ended, as far as it is known now."""
        ...

    async def stop(self) -> None:
        """Ask it to end, where it has not ended, and let go of it. Takes about a second at most; never fails."""
        ...


class Connection(Protocol):
    """A way to one node; whoever opened it closes it."""

    @property
    def what(self) -> str:
        """Name the connection in messages about its loss: "SSH connection"."""
        ...

    async def start(self, command: str) -> Channel:
        """Start `command` in the user's shell on the node. Raise `NodeError` if that fails."""
        ...
