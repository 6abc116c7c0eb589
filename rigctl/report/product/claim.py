"""What may be claimed of a product by a run, and why nothing may: docs/decisions/0031-claims.md.

The figure is the slowest repetition of the slowest pair, rounded down to three digits. Of claims on simulated switches
with known levels (tests/support/claim_cases.py) 1 to 3 % are too strong by it, 16 % by the mean.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rigctl.analysis.limits.ceiling import link_rate_bps, path_rate_bps
from rigctl.analysis.rows.cells import Row
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.expectations import checks
from rigctl.base.units import format_rate
from rigctl.model.statistics.comparing import LEAST
from rigctl.records import RunStatus, Status
from rigctl.report.words.text import numbers_text, plural

Tests: TypeAlias = int | Literal["every", "best"]
LEAST_SHARE: Final = 0.97
LEAST_TIME_S: Final = 5.0
"""Of a repetition. A shorter one may miss what happens every few seconds."""
MOST_SPREAD: Final = 0.02
"""Share: how far apart the repetitions of a pair may be."""
_ABOVE: Final = 1.001
"""Efficiency: more than measuring explains."""
OF_PRODUCT: Final = ("line-rate", "path", "loss")
"""Limits that lie between the hosts; others are of the hosts, or of what was requested."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which claim a theme asks for. `least`: share of the ceiling. `virtual`: of a virtual rig, too, named so."""

    tests: Tests = "every"
    least: float = LEAST_SHARE
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the run supports: `mbps` is achieved on each pair, at least; rounded down."""

    mbps: float
    where: str  # on both pairs at once
    share: str  # per cent of the ceiling, rounded down
    link: str  # gigabit Ethernet
    frames: str  # segments of 536 bytes; empty: as an MTU of 1500 has them
    which: str  # in each of 7 tests; empty: there is one
    tests: tuple[int, ...]
    ceiling_mbps: float
    repetitions: int  # of each test, at least
    virtual: bool = False

    @property
    def first(self) -> str:
        return f"{'Virtual rig: ' if self.virtual else ''}{rate_text(self.mbps)}"

    @property
    def rest(self) -> str:
        frames = f" with {self.frames}" if self.frames else ""
        which = f", {self.which}" if self.which else ""
        return f"{self.where}: {self.share} % of what {self.link} allows{frames}{which}"

    @property
    def standing(self) -> str:
        """Return a sentence that places the figure among those of chart and table, which are means."""
        return (
            f"{rate_text(self.mbps)} is the slowest of {self.repetitions} repetitions of the slowest pair, rounded "
            "down; chart and table show means over repetitions."
        )

    def __str__(self) -> str:
        return f"{self.first} {self.rest}"


@dataclass(frozen=True, slots=True)
class NoClaim:
    """Why none is made."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"No claim is made: {'; '.join(self.reasons)}."


@dataclass(frozen=True, slots=True)
class _Figure:
    """What one test supports."""

    test: CellSummary
    mbps: float  # rounded down
    ceiling_mbps: float
    link: str

    @property
    def share(self) -> float:
        return self.mbps / self.ceiling_mbps


def lowest(values: Iterable[Sequence[float]]) -> float | None:
    """Of the repetitions of each pair the slowest, rounded down; `None` where they are too few, or too far apart."""
    pairs = list(values)
    if not pairs or any(len(own) < LEAST or spread(own) > MOST_SPREAD for own in pairs):
        return None
    return three_digits(min(map(min, pairs)))


def spread(values: Sequence[float]) -> float:
    return 1 - min(values) / max(values) if max(values) > 0 else 1.0


def decimals(mbps: float) -> int:
    return 0 if mbps >= 100 else 1 if mbps >= 10 else 2


def three_digits(mbps: float) -> float:
    """Rounded down to three significant digits: more are not the same in another run."""
    return floored(mbps, 2 - math.floor(math.log10(mbps))) if mbps > 0 else 0.0


def rate_text(mbps: float) -> str:
    """Of three digits: `940 Mbit/s`, `9.41 Gbit/s`."""
    return f"{mbps / 1000:.3g} Gbit/s" if mbps >= 1000 else f"{mbps:.{decimals(mbps)}f} Mbit/s"


def floored(mbps: float, digits: int | None = None) -> float:
    """Rounded down to the digits that are printed."""
    factor = 10.0 ** (decimals(mbps) if digits is None else digits)
    return math.floor(mbps * factor + 1e-9) / factor


def claim(view: RunView, asked: Asked, shown: Sequence[int] | None = None) -> Claim | NoClaim:
    """The claim that `view` supports of its tests, of those `shown` where a theme chooses some."""
    reasons = list(_of_run(view, asked))
    cells = [cell for cell in view.cells if shown is None or cell.cell.number in shown]
    if isinstance(asked.tests, int):
        cells = [cell for cell in cells if cell.cell.number == asked.tests]
        if not cells:
            reasons.append(f"test {asked.tests} is not in the table")
    if reasons or not cells:
        return NoClaim(tuple(reasons) or ("the run has no tests of streams",))
    rows = _rows(view)
    missed = {check.cell.number for check in checks(view) if not check.met}
    against = {cell.cell.number: list(_of_test(view, cell, rows, missed, asked)) for cell in cells}
    figures = [_figure(view, cell, rows) for cell in cells if not against[cell.cell.number]]
    if not figures or (asked.tests != "best" and len(figures) < len(cells)):
        return NoClaim(tuple(_merged(against)))
    if len({round(figure.ceiling_mbps, 1) for figure in figures}) > 1 and asked.tests == "every":
        return NoClaim(("the tests have different ceilings; a claim on one of them needs its number in the theme",))
    chosen = max(figures, key=_by_share) if asked.tests == "best" else min(figures, key=_by_share)
    return _worded(view, chosen, figures if asked.tests == "every" else [chosen], cells, asked)


def _by_share(figure: _Figure) -> float:
    return figure.share


def _of_run(view: RunView, asked: Asked) -> Iterator[str]:
    """Against any claim on the run."""
    if view.plan.in_messages or any(cell.kind.section != "streams" for cell in view.plan.cells):
        yield "claims are made on streams of TCP only"
        return
    if view.info.status is not RunStatus.COMPLETE:
        yield f"the run is {view.info.status}, not complete"
    if view.plan.virtual == "loopback":
        yield "it was measured on a machine's loopback, not on a link"
    elif view.plan.virtual is not None and not asked.virtual:
        yield "it was measured on a virtual rig, which says nothing about a product (virtual: true names it so)"


def _of_test(
    view: RunView, cell: CellSummary, rows: Mapping[int, list[Row]], missed: set[int], asked: Asked
) -> Iterator[str]:
    """Against a claim on this test."""
    own = rows.get(cell.cell.number, [])
    left_out = [gone for gone in cell.exclusions if not gone.measured_again]
    if left_out:
        last = left_out[-1]
        reason = f": {last.reason.rstrip('.')}" if last.reason else ""
        what = {None: "not measured", Status.OK: "not all pairs were measured"}
        yield f"{what.get(last.status, f'a repetition is {last.status}')}{reason}"
    if cell.counted < LEAST:
        yield f"{plural(cell.counted, 'repetition counts', 'repetitions count')}, {LEAST} are needed"
    if cell.counted == 0:
        return
    if cell.cell.number in missed:
        yield "it is not what the scenario expects"
    counted_s = cell.cell.duration_s - cell.cell.omit_s
    if counted_s < LEAST_TIME_S:
        yield f"{counted_s:.3g} s of each repetition count, {LEAST_TIME_S:g} s are needed"
    if cell.counted >= LEAST and any(spread(values) > MOST_SPREAD for values in _values(own)):
        yield f"its repetitions differ by more than {100 * MOST_SPREAD:g} %"
    yield from _of_link(view, cell)
    yield from _of_efficiency(cell, own, asked)


def _of_link(view: RunView, cell: CellSummary) -> Iterator[str]:
    if any(stream.ceiling_mbps is None for stream in cell.streams):
        yield "what its links allow is not known: give their rate in the rig file"
        return
    if cell.shared:
        yield "its pairs share a link"
    if len({path_rate_bps(view.info, stream.stream.ends) for stream in cell.streams}) > 1:
        yield "its links have different rates"
    if view.plan.virtual is None:
        for node in sorted({node for stream in cell.streams for node in stream.stream.ends}):
            known, seen = link_rate_bps(view.info, node), view.info.facts.get(node, {}).get("speed_bps")
            if known and seen and known != seen:
                yield (
                    f"the rig file gives {node} a link of {format_rate(known)}, its interface has {format_rate(seen)}"
                )


def _of_efficiency(cell: CellSummary, own: Sequence[Row], asked: Asked) -> Iterator[str]:
    shares = [row["efficiency"] for row in own if row["efficiency"] is not None]
    if not shares:
        return
    if max(shares) > _ABOVE:
        yield f"{100 * max(shares):.1f} % of what the link allows is not possible: the rig file or a node is wrong"
    elif min(shares) < asked.least:
        share, bound = _down(100 * min(shares)), f"{100 * asked.least:g} %"
        yield f"{share} % of what the link allows is less than the claim's bound of {bound}"
    if cell.limit not in OF_PRODUCT:
        yield f"it is limited by {cell.limit}, not by the line"


def _rows(view: RunView) -> dict[int, list[Row]]:
    """Of each test, a row for each pair, direction and repetition that counts."""
    rows: dict[int, list[Row]] = {}
    for row in view.frames.derived.pairs:
        if row["status"] == Status.OK and row["goodput_mbps"] is not None:
            rows.setdefault(row["cell"], []).append(row)
    return rows


def _values(own: Sequence[Row]) -> list[list[float]]:
    """By pair and direction."""
    values: dict[tuple[str, ...], list[float]] = {}
    for row in own:
        values.setdefault((row["source"], row["destination"], row["direction"]), []).append(row["goodput_mbps"])
    return list(values.values())


def _figure(view: RunView, cell: CellSummary, rows: Mapping[int, list[Row]]) -> _Figure:
    mbps = lowest(_values(rows[cell.cell.number]))
    ceiling = max(stream.ceiling_mbps or 0.0 for stream in cell.streams)
    if mbps is None:
        raise AssertionError("a test without a figure has a reason")
    return _Figure(cell, mbps, ceiling, _ethernet(path_rate_bps(view.info, cell.streams[0].stream.ends) or 0))


_ETHERNET: Final = {
    10**7: "10-megabit Ethernet",
    10**8: "100-megabit Ethernet",
    10**9: "gigabit Ethernet",
    25 * 10**8: "2.5-gigabit Ethernet",
    5 * 10**9: "5-gigabit Ethernet",
    10**10: "10-gigabit Ethernet",
    25 * 10**9: "25-gigabit Ethernet",
    40 * 10**9: "40-gigabit Ethernet",
    100 * 10**9: "100-gigabit Ethernet",
}


def _ethernet(rate_bps: int) -> str:
    return _ETHERNET.get(rate_bps, f"a link of {format_rate(rate_bps)}")


def _frames(cell: CellSummary) -> str:
    """What they carry, where that is not what an MTU of 1500 lets them."""
    mss = min(stream.mss_effective or 0 for stream in cell.streams)
    return "" if 1420 <= mss <= 1460 else f"segments of {mss} bytes"


def _worded(
    view: RunView,
    chosen: _Figure,
    of: Sequence[_Figure],
    cells: Sequence[CellSummary],
    asked: Asked,
) -> Claim:
    count, several = len(cells), len(view.cells)
    which = {"every": f"in each of {count} tests", "best": f"in the best of {count} tests"}.get(str(asked.tests), "")
    if isinstance(asked.tests, int):
        which = f"in test {asked.tests} of {several}" if several > 1 else ""
    elif count == 1:
        which = f"in test {cells[0].cell.number} of {several}" if several > 1 else ""
    tests = [figure.test for figure in of]
    return Claim(
        mbps=chosen.mbps,
        where=_where(min(tests, key=lambda cell: len(cell.streams))),
        share=_down(100 * chosen.share),
        link=chosen.link,
        frames=_frames(chosen.test),
        which=which,
        tests=tuple(cell.cell.number for cell in tests),
        ceiling_mbps=chosen.ceiling_mbps,
        repetitions=min(cell.counted for cell in tests),
        virtual=view.plan.virtual is not None,
    )


def _where(cell: CellSummary) -> str:
    pairs = len(cell.cell.pairs)
    where = {1: "between two ports", 2: "on both pairs at once"}.get(pairs, f"on each of {pairs} pairs at once")
    if len(cell.streams) > pairs:
        return where.removesuffix(" at once") + ", in both directions at once"
    return where


def _down(percent: float) -> str:
    return f"{floored(percent, 1):.1f}"


def _merged(against: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Each reason once, with its tests."""
    by_reason: dict[str, list[int]] = {}
    for number, reasons in against.items():
        for reason in reasons:
            by_reason.setdefault(reason, []).append(number)
    for reason, numbers in by_reason.items():
        yield f"{numbers_text(numbers)}: {reason}" if len(against) > 1 else reason
