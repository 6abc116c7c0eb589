"""What a test is: settings for both ends of a stream. What a channel is: a stream while it is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypedDict

from rigctl.records import Cell, Stream


class Settings(TypedDict):
    """What a test sets on both ends of every flow; `None`: left to the node (docs/reference/agent-protocol.md)."""

    flows: int
    window: int | None
    mss: int | None
    congestion: str | None
    nodelay: bool | None
    zerocopy: bool | None
    copy: bool | None
    transport: str | None
    test: str | None
    size: int | None
    busy: bool | None
    disk: bool | None
    folder: str | None


class Test(Protocol):
    """A module with these functions is a test."""

    def settings(self, cell: Cell, *, sender: bool = False) -> Settings:
        """The settings of the agent's `listen` order for `cell`; with `sender` of its `connect`."""
        ...


@dataclass(frozen=True, slots=True)
class Channel:
    """A stream while it is measured: its number names the endpoint on both agents."""

    endpoint: int
    stream: Stream
    token: str  # 32 hexadecimal digits; data connections that do not open with it are dropped

    @property
    def sender(self) -> str:
        return self.stream.sender

    @property
    def receiver(self) -> str:
        return self.stream.receiver


def channels(cell: Cell, new_token: Callable[[], str]) -> tuple[Channel, ...]:
    """One channel per stream of `cell`, numbered from 1; `new_token()` gives 128 random bits."""
    return tuple(Channel(number, stream, new_token()) for number, stream in enumerate(cell.streams, 1))
