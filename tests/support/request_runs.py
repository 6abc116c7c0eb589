"""Runs with tests of requests, whose times and counts are given, for tests of their figures and of their report."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import builders
from builders import BEGIN_NS, bucket_of

from rigctl.model.latency import merge_histograms
from rigctl.records import (
    Cell,
    Flow,
    Link,
    Pair,
    Repetition,
    RequestCounts,
    RoundTrips,
    RunInfo,
    Side,
    Status,
    TcpInfo,
)
from rigctl.settings import ITERATIONS, PER_SECOND, REPLY, Settings

PAIR: Final = Pair("n1", "n2")
S: Final = 10**9
NONE: Final = RequestCounts(0, 0, 0, 0, 1, 0, 0)


def cell(
    number: int = 1, per_second: int | str = 1000, parallel: int = 1, duration_s: float = 10.0, **fields: Any
) -> Cell:
    settings = Settings({PER_SECOND: per_second, REPLY: fields.pop("reply", 200)})
    settings |= {ITERATIONS: fields.pop("iterations", None)}
    base = Cell(number, "requests", (PAIR,), duration_s, 0.0, parallel, message_bytes=100, settings=settings)
    return replace(base, **fields)


def side(times_us: Sequence[float], took_s: float, size: int = 100, **counted: int) -> Side:
    """Return a sender whose requests took these times, its last reply `took_s` after its first request."""
    times = [round(1e3 * time_us) for time_us in times_us]
    trips = RoundTrips(len(times), sum(times), min(times, default=None), max(times, default=None))
    return Side(
        size * len(times),
        BEGIN_NS,
        BEGIN_NS + round(took_s * S) if times else None,
        tcp=TcpInfo(mss=1448, pmtu=1500, timestamps=True),
        round_trips=trips,
        histogram=merge_histograms([((bucket_of(time), 1),) for time in times]),
        kind_counts=replace(NONE, **counted),
    )


def flow(sender: Side, number: int = 1, received: int | None = None) -> Flow:
    came = Side(sender.bytes if received is None else received, BEGIN_NS, sender.last_byte_ns)
    return Flow(PAIR, builders.cell().direction, number, sender, came)


def repetition(the_cell: Cell, *flows: Flow, number: int = 1) -> Repetition:
    return Repetition(the_cell.number, number, 1, Status.OK, None, 0.0, 1.0, flows=flows)


def run(*cells: Cell) -> RunInfo:
    plan = replace(builders.plan(cells), links=dict.fromkeys(("n1", "n2"), Link(S, 1500)), virtual=None)
    return replace(builders.run(plan), facts={})


def rising(count: int, step_us: float = 1.0) -> Iterator[float]:
    """Yield times of 1 step, 2 steps and so on: the percentile p of them is p % of the last."""
    return (step_us * number for number in range(1, count + 1))
