"""Runs with tests of messages (ping-pong and blast), with the numbers of the nettest pages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import builders
from builders import bucket_of

from rigctl.analysis.views.messages import MessageResult, message_results
from rigctl.records import Cell, Flow, Link, Pair, Repetition, RoundTrips, RunInfo, RunPlan, Side, Status, TcpInfo
from rigctl.settings import ITERATIONS, Settings

Rows: TypeAlias = Sequence[tuple[int, int, Sequence[float]]]
"""Message size in bytes, iterations and elapsed times in seconds of each test."""
PAIR = Pair("dublin", "cork")
# Two rows of the ping-pong table and two rows of the blast table on the nettest page.
PING = [(1, 100_000, (14.19, 14.18, 14.12, 14.23, 14.14)), (2048, 1000, (11.57, 10.02, 10.02, 10.02, 10.02))]
BLAST = [(1, 1_000_000, (1.70, 1.69, 1.69, 1.69, 1.69)), (98304, 100_000, (835.75, 835.81, 835.69, 835.76, 835.70))]


def side(size: int, iterations: int, elapsed_s: float, trips: bool) -> Side:
    elapsed_ns = round(elapsed_s * 1e9)
    each_ns = elapsed_ns // iterations
    timed: dict[str, Any] = {
        "round_trips": RoundTrips(iterations, elapsed_ns, each_ns, each_ns),
        "histogram": ((bucket_of(each_ns), iterations),),
    }
    base = Side(size * iterations, 10**12, 10**12 + elapsed_ns, tcp=TcpInfo(mss=1448, pmtu=1500, timestamps=True))
    return replace(base, **timed) if trips else base


def measured(test: str, rows: Rows) -> tuple[RunInfo, list[Repetition]]:
    cells = tuple(
        Cell(number, test, (PAIR,), 60.0, 0.0, 1, message_bytes=size, settings=Settings({ITERATIONS: iterations}))
        for number, (size, iterations, _) in enumerate(rows, 1)
    )
    links = dict.fromkeys(("dublin", "cork"), Link(10**8, 1500))
    plan: RunPlan = replace(builders.plan(cells), links=links, repeat=5, virtual=None)
    repetitions = [
        Repetition(
            cell.number, nth, 1, Status.OK, None, 0.0, 1.0,
            flows=(Flow(PAIR, cell.direction, 1, side(size, iterations, elapsed_s, test == "pingpong"), None),),
        )
        for cell, (size, iterations, elapsed) in zip(cells, rows, strict=True)
        for nth, elapsed_s in enumerate(elapsed, 1)
    ]  # fmt: skip
    return replace(builders.run(plan), facts={}), repetitions


def results(test: str, rows: Rows) -> list[MessageResult]:
    return message_results(*measured(test, rows))


def changed(result: MessageResult, **sender: Any) -> MessageResult:
    """Return the result with other values for its senders."""
    flows = [builders.changing(flow, sender=sender) for flow in result.group.flows]
    return replace(result, group=replace(result.group, flows=flows))
