"""Runs with multicast tests, whose counts are given, for tests of their figures and of their report."""

from dataclasses import replace
from typing import Any, Final

import builders
from builders import BEGIN_NS

from rigctl.records import (
    Cell,
    Datagrams,
    Flow,
    GroupSent,
    Link,
    MulticastCounts,
    Pair,
    Repetition,
    RunInfo,
    Side,
    Status,
)
from rigctl.settings import JOIN, LEAVE, RATE, UNJOINED, Direction, Settings

S: Final = 10**9
MS: Final = 10**6
PER_S: Final = 1000
"""Datagrams that the sender sends in a second, from the start to the end after 10 s."""
SIZE: Final = 1000
ENDED_S: Final = 10
PAIRS: Final = tuple(Pair("a", node) for node in "bcd")
UNKNOWN: Final[dict[str, Any]] = {
    "before": None,
    "after": None,
    "queries": None,
    "group_queries": None,
    "reports": None,
}
"""Counts of an agent without the rights to watch."""


def cell(unjoined: int = 1, number: int = 1, **fields: Any) -> Cell:
    settings = Settings({UNJOINED: unjoined, JOIN: 1000, LEAVE: 4000, RATE: PER_S * SIZE * 8})
    base = Cell(number, "multicast", PAIRS, ENDED_S, 0.0, 1, transport="udp", message_bytes=SIZE, settings=settings)
    return replace(base, **fields)


def sender(joined_s: float | None, left_s: float | None, sent: int = ENDED_S * PER_S) -> Side:
    joined, left = (None if time_s is None else min(sent, round(time_s * PER_S)) for time_s in (joined_s, left_s))
    return Side(
        sent * SIZE,
        BEGIN_NS,
        BEGIN_NS + ENDED_S * S,
        datagrams=Datagrams(sent),
        kind_counts=GroupSent(joined, left, ENDED_S * S),
    )


def watcher(node: str = "d", came: int = 0, first_s: float = 0.0, last_s: float = ENDED_S, **counts: Any) -> Flow:
    """Return the flow of a node that did not join, which got so many datagrams between two times."""
    times = {"before_first_ns": round(first_s * S), "before_last_ns": round(last_s * S)} if came else {}
    own = _counts(joins=False, **{"before": came} | times | counts)
    return Flow(Pair("a", node), Direction.FORWARD, 1, sender(None, None), Side(0, None, None, kind_counts=own))


def receiver(
    node: str = "b",
    join_ms: float = 10.0,
    leave_ms: float | None = 2000.0,
    lost: int = 0,
    silent_s: float = 0.0,
    queued_s: float = 0.0,
    before: int = 0,
    nothing: bool = False,
    **counts: Any,
) -> Flow:
    """Return the flow of a receiver that joined after 1 s and left after 6 s; `leave_ms` None: it came to the end.

    The stream stops `silent_s` before the leave, or a queue holds its last `queued_s` back.
    """
    joined_s, left_s = 1.0, 6.0
    first_s, last_s = joined_s + join_ms / 1e3, left_s - silent_s
    first, highest = round(first_s * PER_S), round((last_s - queued_s) * PER_S)
    after_s = ENDED_S if leave_ms is None else left_s + leave_ms / 1e3
    times: dict[str, Any] = {"joined_ns": round(joined_s * S), "left_ns": round(left_s * S)}
    if not nothing:
        times |= {"first_ns": round(first_s * S), "last_ns": round(last_s * S), "first_number": first}
        times |= {"after": round((after_s - left_s) * PER_S), "after_last_ns": round(after_s * S)}
    own = _counts(joins=True, **{"before": before} | times | counts)
    came = 0 if nothing else highest - first - lost
    datagrams = Datagrams(
        came, duplicates=0, reordered=0, highest=0 if nothing else highest, overflow=0, jitter_ns=5000
    )
    first_ns, last_ns = (None if nothing else BEGIN_NS + round(time_s * S) for time_s in (first_s, last_s))
    side = Side(came * SIZE, first_ns, last_ns, datagrams=datagrams, kind_counts=own)
    return Flow(Pair("a", node), Direction.FORWARD, 1, sender(joined_s, left_s), side)


def _counts(**given: Any) -> MulticastCounts:
    none: dict[str, Any] = dict.fromkeys(MulticastCounts.__slots__)
    known: dict[str, Any] = {
        "group": "239.255.0.7",
        "ended_ns": ENDED_S * S,
        "before": 0,
        "after": 0,
        "queries": (0, 0, 0),
    }
    known |= {"group_queries": 0, "reports": (0, 2, 0)}
    return MulticastCounts(**none | known | given)


def queried(at_s: float, response_s: float = 10.0) -> dict[str, Any]:
    """Return the counts of a node that a querier asked at this time."""
    times = {"query_first_ns": round(at_s * S), "query_last_ns": round(at_s * S), "response_ns": round(response_s * S)}
    return {**times, "queries": (0, 1, 0), "querier": "10.0.0.254"}


def repetition(the_cell: Cell, *flows: Flow, number: int = 1) -> Repetition:
    return Repetition(the_cell.number, number, 1, Status.OK, None, 0.0, 1.0, flows=flows)


def run(*cells: Cell) -> RunInfo:
    plan = replace(builders.plan(cells), links=dict.fromkeys("abcd", Link(S, 1500)), virtual=None)
    return replace(builders.run(plan), facts={})
