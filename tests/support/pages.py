"""Runs of every kind of test as records, for the tests that look at whole pages."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import builders
import compared_runs
import das2
import message_runs
from histograms import bucket_of
from switched import Paper

from rigctl.analysis.nights.comparison import Comparison, compared
from rigctl.records import (
    Bins,
    Capture,
    Cell,
    Datagrams,
    Direction,
    DiskTimes,
    Flow,
    Link,
    Pair,
    Repetition,
    Retest,
    RunInfo,
    Side,
    Status,
)
from rigctl.settings import ITERATIONS, RATE, READ, WRITE, Settings

Run: TypeAlias = tuple[RunInfo, list[Repetition]]
PAIR: Final = Pair("pi1", "pi2")
SECOND: Final = 10**9


def streams() -> Run:
    """The seven tests, one repetition of them invalid and measured once more."""
    info, measured = builders.gigablox()
    bad = builders.repetition(info.plan.cells[2], (700, 710), status=Status.INVALID, reason="start skew 14.0 ms")
    again = builders.repetition(info.plan.cells[2], (906, 921), (83, 0), attempt=2)
    return info, [*measured[:2], bad, again, *measured[3:]]


def matrix() -> Run:
    """36 tests under each of two conditions, a field of them not measured: every part of the large one."""
    return _one_not_measured(
        *das2.run((das2.OFF, das2.ON), windows=das2.WINDOWS[:2], flows=(1, 2, 10), pairs=range(1, 7))
    )


def large_matrix() -> Run:
    """480 tests under each of two conditions, a field of them not measured."""
    return _one_not_measured(*das2.run((das2.OFF, das2.ON)))


def _one_not_measured(info: RunInfo, measured: list[Repetition]) -> Run:
    return info, [builders.failed(info.plan.cells[7]), *measured[:7], *measured[8:]]


def soak() -> Run:
    """One test of half an hour with twelve pairs."""
    return das2.run(windows=(131072,), flows=(1,), pairs=(12,), duration_s=1800.0, samples=1800)


def ping_pong() -> Run:
    """Two sizes; the first varied and was measured three times more."""
    rows = [(1, 100, (1.0, 2.0, 1.0, 1.0, 1.0)), (2048, 100, (3.0, 3.0, 3.0, 3.0, 3.0))]
    info, measured = message_runs.measured("pingpong", rows)
    kept = [made for made in measured if made.cell == 1 or made.repetition <= 2]
    return replace(info, plan=replace(info.plan, repeat=2, retest=Retest(0.05, 3))), kept


def blast() -> Run:
    return message_runs.measured("blast", message_runs.BLAST)


def comparison() -> Comparison:
    """Two runs of 24 tests each, of which 23 are the same: one worse, one better, one invalid; a kernel has changed."""
    tests = compared_runs.cells(25)
    skewed = builders.repetition(tests[8], (90.0,), status=Status.INVALID, reason="start skew 14 ms, at most 10 ms")
    after = compared_runs.view(
        tests[1:],
        seed=2,
        factors={7: 0.9, 12: 1.05, 15: 0.99},
        without={9: skewed},
        plan={"scenario_yaml": "title: other\n"},
        run="20261121-214501-77aa",
        tags={"firmware": "1.2.4"},
        facts={node: builders.facts(kernel="Linux 6.7") for node in ("hub", *(f"n{n:02}" for n in range(1, 26)))},
    )
    return compared(compared_runs.view(tests[:-1]), after)


def datagrams() -> Run:
    """Two offered loads; the second loses some."""
    rates = ((10**8, 10_000), (10**9, 89_000))
    cells = tuple(
        Cell(number, "udp", (PAIR,), 1.0, 0.0, 1, transport="udp", message_bytes=1250, settings=Settings({RATE: rate}))
        for number, (rate, _) in enumerate(rates, 1)
    )
    measured = []
    for cell, (rate, received) in zip(cells, rates, strict=True):
        sent = rate // 8 // 1250
        lost = ((bucket_of(7), (sent - received) // 7),) if sent > received else ()
        here = Datagrams(received, highest=sent, duplicates=0, reordered=0, overflow=0, jitter_ns=5000, jitter_max_ns=9)
        sender = Side(sent * 1250, SECOND, 2 * SECOND, datagrams=Datagrams(sent, refused=0))
        receiver = Side(received * 1250, SECOND, 2 * SECOND, histogram=lost, datagrams=here)
        flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver, bytes=received * 1250)
        one = Repetition(cell.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,))
        measured.append(replace(one, window_start_ns=SECOND, window_end_ns=2 * SECOND))
    return builders.run(builders.plan(cells)), measured


def files() -> Run:
    """100 MiB from disk to disk, and from memory to memory."""
    cells = tuple(
        replace(
            Cell(number, "file", (PAIR,), 60.0, 0.0, 1, message_bytes=100 * 2**20),
            settings=Settings({ITERATIONS: 1, READ: where, WRITE: where}),
            folder="/var/tmp",
        )
        for number, where in enumerate(("disk", "memory"), 1)
    )
    measured = []
    for cell in cells:
        on_disk = cell[READ] == "disk"
        times = (1, 1 + (2 if on_disk else 1) * SECOND)
        sender = Side(100 * 2**20, *times, disk=DiskTimes(600_000 if on_disk else None))
        receiver = Side(100 * 2**20, *times, disk=DiskTimes(200_000, 50_000) if on_disk else None)
        flow = Flow(PAIR, Direction.FORWARD, 1, sender, receiver)
        measured.append(Repetition(cell.number, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,)))
    links = dict.fromkeys((PAIR.source, PAIR.destination), Link(10**9, 1500))
    return builders.run(builders.plan(cells, links=links)), measured


def bins() -> Run:
    """A second in bins of 500 µs with gaps, captured at its sender."""
    cell = builders.cell(pairs=(PAIR,), duration_s=1.0, bin_us=500)
    measured = builders.repetition(cell, (400.0,))
    values = tuple(50_000 if number % 10 < 6 else 0 for number in range(2000))
    flows = []
    for flow in measured.flows:
        assert flow.receiver is not None
        binned = replace(flow.receiver, bins=Bins(measured.window_start_ns or 0, 500, values))
        flows.append(replace(flow, receiver=binned))
    capture = Capture("pi1", PAIR, Direction.FORWARD, "r-pi1.pcap", 900, 0, False, 3, 3)
    return builders.run(builders.plan([cell])), [replace(measured, flows=tuple(flows), captures=(capture,))]


def counters() -> Run:
    """One test beside the counters of two switches and of all interfaces."""
    paper = Paper()
    return paper.run(), [paper.repetition()]


RUNS: Final[dict[str, Callable[[], Run]]] = {
    "streams": streams,
    "matrix": matrix,
    "soak": soak,
    "ping-pong": ping_pong,
    "blast": blast,
    "datagrams": datagrams,
    "files": files,
    "bins": bins,
    "counters": counters,
}
