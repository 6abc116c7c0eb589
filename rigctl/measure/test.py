"""What a test is: settings for both ends of a stream. What a stream is: the flows of one pair in one direction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypedDict

from rigctl.records import Cell, Direction, Pair


class Settings(TypedDict):
    """What a test sets on both ends of every flow; `None`: left to the node (docs/agent-protocol.md)."""

    flows: int
    window: int | None
    mss: int | None
    congestion: str | None
    nodelay: bool | None
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
class Stream:
    """The flows of one pair in one direction of one cell; its number names the endpoint on both agents."""

    endpoint: int
    pair: Pair
    direction: Direction  # FORWARD or REVERSE
    token: str  # 32 hexadecimal digits; data connections that do not open with it are dropped

    @property
    def sender(self) -> str:
        return self.pair.source if self.direction is Direction.FORWARD else self.pair.destination

    @property
    def receiver(self) -> str:
        return self.pair.destination if self.direction is Direction.FORWARD else self.pair.source

    def __str__(self) -> str:
        return f"{self.pair} ({self.direction})" if self.direction is Direction.REVERSE else str(self.pair)


def streams(cell: Cell, new_token: Callable[[], str]) -> tuple[Stream, ...]:
    """One stream per pair and direction of `cell`, numbered from 1; `new_token()` gives 128 random bits."""
    both = (Direction.FORWARD, Direction.REVERSE)
    directions = both if cell.direction is Direction.BOTH else (cell.direction,)
    each = [(pair, direction) for pair in cell.pairs for direction in directions]
    return tuple(Stream(n, pair, direction, new_token()) for n, (pair, direction) in enumerate(each, 1))
