"""Chooses which tests of a scenario a check rehearses: a few that together ask every node for all that it may refuse.

Settings that no kernel refuses (window, MSS, DSCP, sizes, rates) do not count: of tests that differ in them only, one
stands for all. Each node then has to be asked for every setting that it may refuse, as sender and as receiver.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from rigctl.base.values import group_by
from rigctl.records import Cell
from rigctl.settings import BUSY_POLL, CONGESTION, MPTCP, PLACEMENT, READ, WRITE, ZEROCOPY, Setting

_REFUSABLE: Final[tuple[Setting[Any], ...]] = (PLACEMENT, MPTCP, CONGESTION, ZEROCOPY, BUSY_POLL)
"""Settings of sockets and threads that a node may refuse."""

Ask: TypeAlias = tuple[str, bool, str, object]
"""A demand of a test on a node: the node's name, True if the node sends, what is asked for, and its value."""


@dataclass(frozen=True)
class Preparation:
    """A test that can be rehearsed: its traffic classes are prepared together. It may stand for other tests."""

    cells: tuple[Cell, ...]

    @cached_property
    def asks(self) -> frozenset[Ask]:
        return frozenset(ask for cell in self.cells for ask in _asks_of(cell))

    @cached_property
    def ways(self) -> frozenset[tuple[str, str]]:
        """Senders and receivers of the test's streams."""
        return frozenset(stream.ends for cell in self.cells for stream in cell.streams)

    @property
    def is_plain(self) -> bool:
        """Tell whether the test needs no host settings."""
        return all(cell.condition is None for cell in self.cells)

    @property
    def flows(self) -> int:
        return sum(len(cell.streams) * cell.parallel for cell in self.cells)

    @cached_property
    def load(self) -> dict[str, int]:
        """Map each node to the number of flows that it opens."""
        found: dict[str, int] = {}
        for cell in self.cells:
            for name in (name for stream in cell.streams for name in stream.ends):
                found[name] = found.get(name, 0) + cell.parallel + (cell.latency_ms is not None)
        return found

    def of_node(self, name: str, *, sends: bool) -> frozenset[Ask]:
        return frozenset(ask for ask in self.asks if ask[:2] == (name, sends))


def preparations_of(cells: Iterable[Cell]) -> list[Preparation]:
    """Return the tests as preparations; the traffic classes of a test are one preparation."""
    return [Preparation(tuple(own)) for own in group_by(cells, lambda cell: cell.first).values()]


def choose_preparations(preparations: Sequence[Preparation]) -> list[Preparation]:
    """Return a few preparations that together ask each node for all that it may refuse, also for the most flows.

    Preparations without a condition are preferred, and have the most flows of their own: a condition may allow more.
    """
    folded = [max(own, key=lambda preparation: preparation.flows) for own in group_by(preparations, _fold_key).values()]
    heaviest = {
        plain: _heaviest(preparation for preparation in folded if preparation.is_plain >= plain)
        for plain in (False, True)
    }
    wanted = {id(preparation): preparation.asks.union(_heaviest_of(preparation, heaviest)) for preparation in folded}
    left = frozenset[Ask]().union(*wanted.values())
    chosen: list[Preparation] = []
    while left:
        best = max(
            folded,
            key=lambda preparation: (len(wanted[id(preparation)] & left), preparation.is_plain, preparation.flows),
        )
        chosen.append(best)
        left -= wanted[id(best)]
    return chosen


def _heaviest(preparations: Iterable[Preparation]) -> dict[str, int]:
    """Map each node to the most flows that it opens in a preparation."""
    most: dict[str, int] = {}
    for name, flows in (item for preparation in preparations for item in preparation.load.items()):
        most[name] = max(flows, most.get(name, 0))
    return most


def _heaviest_of(preparation: Preparation, heaviest: Mapping[bool, Mapping[str, int]]) -> Iterator[Ask]:
    """Yield what only the most flows of a node ask for, of all preparations and of those without a condition."""
    for plain in (False, True) if preparation.is_plain else (False,):
        yield from (
            (name, plain, "flows", flows) for name, flows in preparation.load.items() if flows == heaviest[plain][name]
        )


def _fold_key(preparation: Preparation) -> tuple[object, ...]:
    each = ((cell.pairs, cell.direction, cell.latency_ms is None, *_refusable(cell)) for cell in preparation.cells)
    return preparation.is_plain, *each


def _refusable(cell: Cell) -> tuple[object, ...]:
    """Return the values of a test that a node may refuse."""
    files = (cell[READ], cell[WRITE], cell.folder) if cell.kind.files else ()
    return (cell.test, cell.transport, *files, *(cell[setting] for setting in _REFUSABLE))


def _asks_of(cell: Cell) -> Iterator[Ask]:
    for sends in (True, False):
        asked: list[tuple[str, object]] = [("kind", f"{cell.test} {cell.transport}")]
        for setting in _REFUSABLE:
            value, order = cell[setting], setting.order
            if order is not None and order.ends.has(sender=sends):
                asked.append((setting.name, value if order.of_end is None else order.of_end(value, sends)))
        if cell.kind.files and cell[READ if sends else WRITE] == "disk":
            asked.append(("folder", cell.folder))
        for name in {stream.ends[0 if sends else 1] for stream in cell.streams}:
            yield from ((name, sends, *each) for each in asked)
