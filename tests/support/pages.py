"""Runs with every kind of test as records, for tests of whole pages."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import builders
import compared_runs
import das2
from documents import document
from switched import Paper

from rigctl.analysis.nights.comparison import RunComparison, compare_runs
from rigctl.base import resources
from rigctl.cli.app import exit_code
from rigctl.records import Bins, Capture, Direction, Pair, Repetition, RunInfo, Status
from rigctl.report.printers.html import page
from rigctl.store import open_store

Run: TypeAlias = tuple[RunInfo, list[Repetition]]
PAIR: Final = Pair("pi1", "pi2")
GOLDEN: Final = Path(__file__).parents[1] / "golden" / "runs"
STORED: Final = sorted(path.stem for path in GOLDEN.glob("*.rigctl") if path.stem != "nights")
"""Names of the stored runs, one of each kind."""
PLANS: Final = sorted({path.stem for path in resources.scenarios().glob("*.yaml")} - {"das2"})
"""Bundled scenarios without `das2`, whose plan has 3 MB; `das2-quick` has the same settings."""


@cache
def streams() -> Run:
    info, measured = builders.gigablox()
    bad = builders.repetition(info.plan.cells[2], (700, 710), status=Status.INVALID, reason="start skew 14.0 ms")
    again = builders.repetition(info.plan.cells[2], (906, 921), (83, 0), attempt=2)
    return info, [*measured[:2], bad, again, *measured[3:]]


@cache
def matrix() -> Run:
    """Return a run with a large matrix: 36 tests under each of two conditions, of which one failed."""
    axes: dict[str, Any] = {"windows": das2.WINDOWS[:2], "flows": (1, 2, 10), "pairs": range(1, 7)}
    info, measured = das2.run((das2.OFF, das2.ON), **axes)
    return info, [builders.failed(info.plan.cells[7]), *measured[:7], *measured[8:]]


@cache
def soak() -> Run:
    return das2.run(windows=(131072,), flows=(1,), pairs=(12,), duration_s=1800.0, samples=1800)


@cache
def stored(name: str) -> Run:
    with TemporaryDirectory() as folder:
        address = f"{folder}/store.db"
        with redirect_stdout(io.StringIO()):
            assert exit_code(["import", str(GOLDEN / f"{name}.rigctl"), "--store", address]) == 0
        with open_store(address) as store:
            info = store.run()
            return info, store.repetitions(info.run)


def comparison() -> RunComparison:
    """Return a comparison of two runs with 23 common tests: one worse, one better, one invalid, and another kernel."""
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
    return compare_runs(compared_runs.view(tests[:-1]), after)


def bins() -> Run:
    """Return a run of 1 s with bins of 500 µs, with gaps, and a capture at the sender."""
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
    """Return a run of one test with counters of two switches and of all network cards."""
    paper = Paper()
    return paper.run(), [paper.repetition()]


@cache
def page_of(name: str) -> str:
    return page(document(*RUNS[name]()))


RUNS: Final[dict[str, Callable[[], Run]]] = {
    "streams": streams,
    "matrix": matrix,
    "soak": soak,
    "ping-pong": partial(stored, "pingpong"),
    **{name: partial(stored, name) for name in ("blast", "datagrams", "files")},
    "bins": bins,
    "counters": counters,
}
