"""Repetitions with latency probes beside their streams, and repetitions in which streams stop for a while."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import builders

from rigctl.records import Cell, Direction, Flow, Pair, Probes, Repetition, Series

MS: Final = 1_000_000
EVERY_NS: Final = 20 * MS
PAIR: Final = Pair("pi1", "pi2")


def probes(
    idle_us: Sequence[int | None],
    loaded_us: Sequence[int | None],
    pair: Pair = PAIR,
    direction: Direction = Direction.FORWARD,
) -> Probes:
    """Return probes every 20 ms with these round-trip times: before, and from the start of the streams. None: lost."""
    began_ns = builders.BEGIN_NS - len(idle_us) * EVERY_NS
    times, answered, trips = [], [], []
    count, last_ns = 0, 0
    for number, trip_us in enumerate([*idle_us, *loaded_us]):
        if trip_us is not None:
            count, last_ns = count + 1, trip_us * 1000
        times.append(began_ns + number * EVERY_NS)
        answered.append(count)
        trips.append(last_ns)
    return Probes(pair, direction, builders.BEGIN_NS, Series({"t_ns": times, "answered": answered, "rtt_ns": trips}))


def cell(number: int = 1, **settings: object) -> Cell:
    return builders.cell(number, **({"pairs": (PAIR,), "latency_ms": 20, "duration_s": 2.0} | settings))


def repetition(the_cell: Cell, *found: Probes, mbps: float = 941.0) -> Repetition:
    return replace(builders.repetition(the_cell, [mbps] * len(the_cell.streams)), probes=found)


def stream(number: int = 1, **settings: Any) -> Cell:
    return builders.cell(number, pairs=(PAIR,), duration_s=5.0, **settings)


def stopped(of: Flow, from_ms: int, to_ms: int) -> Flow:
    """Return the flow `of` with a receiver whose bytes do not increase between these times."""
    side = of.receiver
    assert side is not None
    columns = side.series.columns
    within = [from_ms < (at - builders.BEGIN_NS) // MS <= to_ms for at in columns["t_ns"]]
    before = columns["bytes"][within.index(True) - 1]
    kept = [before if silent else count for silent, count in zip(within, columns["bytes"], strict=True)]
    return replace(of, receiver=replace(side, series=Series(columns | {"bytes": kept})))


def with_gap(cell: Cell, from_ms: int, to_ms: int, flows: slice = slice(None), **fields: Any) -> Repetition:
    """Return a repetition in which some flows receive nothing between these times."""
    whole = builders.repetition(cell, [900.0] * len(cell.streams), **fields)
    silent = [stopped(flow, from_ms, to_ms) for flow in whole.flows[flows]]
    return replace(whole, flows=(*silent, *whole.flows[len(silent) :]))
