"""Decides which claim a run supports about a product, or why it supports none (docs/decisions/0031-claims.md).

The claimed figure is the slowest repetition of the slowest pair, rounded down to three digits. On simulated switches
with known levels (tests/support/claim_cases.py), 1 to 3 % of these claims are too high; of claims on the mean, 16 %.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import checks
from rigctl.base.units import format_rate
from rigctl.base.values import group_by, least, total
from rigctl.findings.text import ceiling_text, decimals, link_name, numbers_text, plural
from rigctl.limits.limit import LIMITS
from rigctl.limits.links import link_rate_bps, path_rate_bps
from rigctl.model.frames import Packet
from rigctl.model.statistics.comparing import LEAST_REPETITIONS
from rigctl.product.theme import ClaimSection
from rigctl.records import RunStatus, Status
from rigctl.results.rows import ExportRow
from rigctl.results.summary import CellSummary, StreamSummary
from rigctl.settings.kinds import TCP, UDP

_LEAST_TIME_S: Final = 5.0
"""Shortest repetition that supports a claim: a shorter one may miss events that occur every few seconds."""
_MOST_SPREAD: Final = 0.02
"""Largest difference between a pair's repetitions, as a share of the fastest."""
_ABOVE: Final = 1.001
"""An efficiency above this means that the ceiling is wrong."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the run supports, such as that each pair achieves at least 940 Mbit/s."""

    figure: str  # with its unit, rounded against the claim: `940 Mbit/s`
    rest: str  # end of the claim: `on both pairs at once: 99.8 % of what gigabit Ethernet allows, in each of 7 tests`
    basis: str  # which of the repetitions the figure is: `the slowest of 4 repetitions of the slowest pair`
    shown: str  # what chart and table show in its place
    limits: str = ""  # sentence on what the link allows
    virtual: bool = False

    @property
    def standing(self) -> str:
        """Return a sentence that explains why the claim is weaker than the figures in chart and table."""
        return f"{self.figure} is {self.basis}; {self.shown}."

    def __str__(self) -> str:
        return f"{'Virtual rig: ' if self.virtual else ''}{self.figure} {self.rest}"


@dataclass(frozen=True, slots=True)
class NoClaim:
    """The reasons why a run supports no claim."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"No claim is made: {'; '.join(self.reasons)}."


def lowest(values: Iterable[Sequence[float]]) -> float | None:
    """Return the slowest repetition, rounded down; None if the repetitions of a pair are too few or differ too much."""
    pairs = list(values)
    if not pairs or any(len(own) < LEAST_REPETITIONS or _differ(own) for own in pairs):
        return None
    return three_digits(min(map(min, pairs)))


def _differ(values: Sequence[float]) -> bool:
    """Tell whether the repetitions of a pair differ too much for a claim."""
    return min(values) < (1 - _MOST_SPREAD) * max(values) or max(values) <= 0


def floor_to(value: float, digits: int) -> float:
    """Return the value rounded down to `digits` decimals."""
    factor = 10.0**digits
    return math.floor(value * factor + 1e-9) / factor


def three_digits(mbps: float) -> float:
    """Return the rate rounded down to three significant digits, because further digits vary between runs."""
    return floor_to(mbps, 2 - math.floor(math.log10(mbps))) if mbps > 0 else 0.0


def claimed_rate_text(mbps: float) -> str:
    """Return a rate with three digits and its unit: `940 Mbit/s`, `9.41 Gbit/s`."""
    return f"{mbps / 1000:.3g} Gbit/s" if mbps >= 1000 else f"{mbps:.{decimals(mbps)}f} Mbit/s"


@dataclass(frozen=True, slots=True)
class _Test:
    """A test with the export rows of its pairs in valid repetitions."""

    summary: CellSummary
    rows: Sequence[ExportRow]

    @property
    def number(self) -> int:
        return self.summary.cell.number

    @property
    def mbps(self) -> list[list[float]]:
        """Return the goodput of the repetitions in Mbit/s, as one list per pair and direction."""
        by_pair = group_by(self.rows, itemgetter("source", "destination", "direction"))
        return [[row["goodput_mbps"] for row in own] for own in by_pair.values()]

    @property
    def figure(self) -> float:
        return lowest(self.mbps) or 0.0

    @property
    def ceiling_mbps(self) -> float:
        return max(stream.ceiling_mbps or 0.0 for stream in self.summary.streams)

    @property
    def share(self) -> float:
        return self.figure / self.ceiling_mbps


def claim(view: RunView, asked: ClaimSection, shown: Sequence[int] | None = None) -> Claim | NoClaim:
    """Return the claim that the run supports, or the reasons against a claim. `shown`: numbers of the tests to use."""
    reasons = list(_against_run(view, asked))
    pairs = view.results.pairs
    measured = [row for row in pairs if row["status"] == Status.OK and row["goodput_mbps"] is not None]
    rows = group_by(measured, itemgetter("cell"))
    cells = [cell for cell in view.cells if shown is None or cell.cell.number in shown]
    tests = [_Test(cell, rows.get(cell.cell.number, ())) for cell in cells]
    if isinstance(asked.tests, int):
        tests = [test for test in tests if test.number == asked.tests]
        if not tests:
            reasons.append(f"test {asked.tests}, which the theme chooses for the claim, is not in the table")
    if reasons or not tests:
        return NoClaim(tuple(reasons) or ("the run has no tests that were measured",))
    missed = {check.cell.number for check in checks(view) if not check.met}
    against = {test.number: list(_against_test(view, test, asked, missed=test.number in missed)) for test in tests}
    good = [test for test in tests if not against[test.number]]
    if not good or (asked.tests != "best" and len(good) < len(tests)):
        return NoClaim(tuple(with_tests(against)))
    if asked.tests == "best":
        good = [max(good, key=attrgetter("share"))]
    elif len({round(test.ceiling_mbps, 1) for test in good}) > 1:
        return NoClaim(("the tests have different ceilings: choose one test by its number in the theme",))
    which = ""
    if len(tests) > 1:
        which = f", in {'the best' if asked.tests == 'best' else 'each'} of {len(tests)} tests"
    elif len(view.cells) > 1:
        which = f", in test {tests[0].number} of {len(view.cells)}"
    return _word(view, good, which)


def _against_run(view: RunView, asked: ClaimSection) -> Iterator[str]:
    if {cell.kind for cell in view.plan.cells} not in ({TCP}, {UDP}):
        yield "only runs of TCP streams, of UDP streams, or of ping-pong beside a control support claims"
        return
    yield from against_rig(view, asked)


def against_rig(view: RunView, asked: ClaimSection) -> Iterator[str]:
    """Yield the reasons against a claim that are true of the whole run: it did not end, or its rig is not hardware."""
    if view.info.status is not RunStatus.COMPLETE:
        yield f"the run is {view.info.status}, not complete"
    if view.plan.virtual == "loopback":
        yield "the run was measured on the loopback of one machine, not on a link"
    elif view.plan.virtual is not None and not asked.virtual:
        yield "the run was measured on a virtual rig (`virtual: true` permits a claim that begins with these words)"


def _against_test(view: RunView, test: _Test, asked: ClaimSection, *, missed: bool) -> Iterator[str]:
    summary, cell = test.summary, test.summary.cell
    if left_out := [gone for gone in summary.exclusions if not gone.measured_again]:
        last = left_out[-1]
        reason = f": {last.reason.rstrip('.')}" if last.reason else ""
        texts = {None: "not measured", Status.OK: "not all pairs were measured"}
        yield f"{texts.get(last.status, f'a repetition is {last.status}')}{reason}"
    if summary.counted < LEAST_REPETITIONS:
        yield f"{plural(summary.counted, 'repetition counts', 'repetitions count')}, {LEAST_REPETITIONS} are needed"
    if summary.counted == 0:
        return
    if missed:
        yield "it misses an expectation of the scenario"
    counted_s = cell.sending_s - cell.omit_s
    if counted_s < _LEAST_TIME_S:
        yield f"each repetition measures {counted_s:.3g} s, at least {_LEAST_TIME_S:g} s are needed"
    if cell.kind is UDP:
        yield from _against_losses(test)
    if summary.counted >= LEAST_REPETITIONS and any(map(_differ, test.mbps)):
        yield f"its repetitions differ by more than {100 * _MOST_SPREAD:g} %"
    yield from _against_links(view, summary)
    shares = [row["efficiency"] for row in test.rows if row["efficiency"] is not None]
    if not shares:
        return
    if max(shares) > _ABOVE:
        yield f"{100 * max(shares):.1f} % of what the link allows is impossible: check the link rate in the rig file"
    elif min(shares) < asked.least:
        share, bound = f"{floor_to(100 * min(shares), 1):.1f}", f"{100 * asked.least:g}"
        yield f"it achieves {share} % of what the link allows, the theme requires {bound} % (`least`)"
    if not LIMITS[summary.limit].of_product:
        yield f"its bottleneck is {summary.limit}, not the network"


def _against_losses(test: _Test) -> Iterator[str]:
    lost = total(row["datagrams_lost"] for row in test.rows)
    if lost is None:
        yield "it is not known how many datagrams it lost"
    elif lost:
        yield f"it lost {plural(lost, 'datagram')}"


def _against_links(view: RunView, cell: CellSummary) -> Iterator[str]:
    if any(stream.ceiling_mbps is None for stream in cell.streams):
        yield "the rate of its links is not known: state it in the rig file"
        return
    if cell.shared:
        yield "its pairs share a link"
    if len({path_rate_bps(view.info, stream.stream.ends, cell.cell.parallel) for stream in cell.streams}) > 1:
        yield "its links have different rates"
    nodes = {node for stream in cell.streams for node in stream.stream.ends} if view.plan.virtual is None else ()
    for node in sorted(nodes):
        rate, speed = link_rate_bps(view.info, node), view.info.facts.get(node, {}).get("speed_bps")
        if rate and speed and rate != speed:
            yield f"the link of {node} has {format_rate(rate)} in the rig file, but its interface {format_rate(speed)}"


def with_tests(against: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yield each reason against a claim once, with the tests that it is true of. `against`: reasons by test."""
    for reason in dict.fromkeys(reason for reasons in against.values() for reason in reasons):
        numbers = [number for number, reasons in against.items() if reason in reasons]
        yield f"{numbers_text(numbers)}: {reason}" if len(against) > 1 else reason


def _word(view: RunView, tests: Sequence[_Test], which: str) -> Claim:
    worst = min(tests, key=attrgetter("share"))
    streams = worst.summary.streams
    frames = _datagrams(view, worst) if worst.summary.cell.kind is UDP else _segments(streams)
    share = f"{floor_to(100 * worst.share, 1):.1f}"
    rate_bps = path_rate_bps(view.info, streams[0].stream.ends, worst.summary.cell.parallel) or 0
    link = link_name(rate_bps)
    where = _where(min((test.summary for test in tests), key=lambda cell: len(cell.streams)))
    repetitions = min(test.summary.counted for test in tests)
    return Claim(
        figure=claimed_rate_text(worst.figure),
        rest=f"{where}: {share} % of what {link} allows{frames}{which}",
        basis=f"the slowest of {repetitions} repetitions of the slowest pair, rounded down",
        shown="chart and table show means over repetitions",
        limits=f"For its frames {link} allows {ceiling_text(worst.ceiling_mbps)} Mbit/s of application data.",
        virtual=view.plan.virtual is not None,
    )


def _segments(streams: Sequence[StreamSummary]) -> str:
    mss = min(stream.mss_effective or 0 for stream in streams)
    return "" if 1420 <= mss <= 1460 else f" with segments of {mss} bytes"  # usual with an MTU of 1500


def _datagrams(view: RunView, test: _Test) -> str:
    """Return the size of the datagrams, how many frames of them pass in a second, and that none was lost."""
    size, mtu = test.summary.cell.message_bytes or 0, least(stream.mtu for stream in test.summary.streams)
    per_s = ""
    if mtu is not None and 0 < size <= Packet("udp", view.plan.ip_version).largest_payload(mtu):
        per_s = f", {three_digits(test.figure * 1e6 / 8 / size):,.0f} frames/s"
    return f" with datagrams of {size} bytes{per_s}, none lost"


def _where(cell: CellSummary) -> str:
    pairs = len(cell.cell.pairs)
    where = {1: "between two ports", 2: "on both pairs"}.get(pairs, f"on each of {pairs} pairs")
    both = len(cell.streams) > pairs
    return f"{where}{', in both directions' if both else ''}{' at once' if both or pairs > 1 else ''}"
