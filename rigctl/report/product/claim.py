"""The claim that a run supports about a product, or the reasons why none is made: docs/decisions/0031-claims.md.

The claimed figure is the slowest repetition of the slowest pair, rounded down to three digits. On simulated switches
with known levels (tests/support/claim_cases.py), 1 to 3 % of these claims are too strong; of claims on the mean, 16 %.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal, TypeAlias

from rigctl.analysis.limits.ceiling import link_rate_bps, path_rate_bps
from rigctl.analysis.rows.cells import Row
from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.expectations import checks
from rigctl.base.units import format_rate
from rigctl.model.statistics.samples import LEAST
from rigctl.records import RunStatus, Status
from rigctl.report.words.text import numbers_text, plural

Tests: TypeAlias = int | Literal["every", "best"]
LEAST_SHARE: Final = 0.97
LEAST_TIME_S: Final = 5.0
"""Shortest repetition: a shorter one may miss what happens every few seconds."""
MOST_SPREAD: Final = 0.02
"""Largest spread of a pair's repetitions, as a share of the fastest."""
_ABOVE: Final = 1.001
"""Efficiency above which the ceiling itself must be wrong."""
OF_PRODUCT: Final = ("line-rate", "path", "loss")
"""Limits that lie between the hosts. All others are of the hosts, or of what was requested."""
_ETHERNET_MBPS: Final = (10, 100, 1000, 2500, 5000, 10_000, 25_000, 40_000, 100_000)


@dataclass(frozen=True, slots=True)
class Asked:
    """The claim that a theme asks for."""

    tests: Tests = "every"
    least: float = LEAST_SHARE  # share of the ceiling
    virtual: bool = False  # make it of a virtual rig, too; the claim then names the rig


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the run supports: each pair achieves at least `mbps`, rounded down."""

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
    def rest(self) -> str:
        """The claim without its figure."""
        frames = f" with {self.frames}" if self.frames else ""
        which = f", {self.which}" if self.which else ""
        return f"{self.where}: {self.share} % of what {self.link} allows{frames}{which}"

    @property
    def standing(self) -> str:
        """A sentence that relates the figure to those of chart and table, which are means."""
        return (
            f"{rate_text(self.mbps)} is the slowest of {self.repetitions} repetitions of the slowest pair, rounded "
            "down; chart and table show means over repetitions."
        )

    def __str__(self) -> str:
        return f"{'Virtual rig: ' if self.virtual else ''}{rate_text(self.mbps)} {self.rest}"


@dataclass(frozen=True, slots=True)
class NoClaim:
    """The reasons why no claim is made."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"No claim is made: {'; '.join(self.reasons)}."


@dataclass(frozen=True, slots=True)
class _Figure:
    """The figure that one test supports."""

    test: CellSummary
    mbps: float  # rounded down
    ceiling_mbps: float

    @property
    def share(self) -> float:
        return self.mbps / self.ceiling_mbps


def lowest(values: Iterable[Sequence[float]]) -> float | None:
    """Return the slowest repetition of all pairs, rounded down; None if they are too few or too far apart."""
    pairs = list(values)
    if not pairs or any(len(own) < LEAST or spread(own) > MOST_SPREAD for own in pairs):
        return None
    return three_digits(min(map(min, pairs)))


def spread(values: Sequence[float]) -> float:
    return 1 - min(values) / max(values) if max(values) > 0 else 1.0


def decimals(mbps: float) -> int:
    """Return how many decimals a rate is printed with."""
    return 0 if mbps >= 100 else 1 if mbps >= 10 else 2


def floored(value: float, digits: int | None = None) -> float:
    """Round down to `digits` decimals; by default to those that a rate in Mbit/s is printed with."""
    factor = 10.0 ** (decimals(value) if digits is None else digits)
    return math.floor(value * factor + 1e-9) / factor


def three_digits(mbps: float) -> float:
    """Round down to three significant digits: more are not the same in another run."""
    return floored(mbps, 2 - math.floor(math.log10(mbps))) if mbps > 0 else 0.0


def rate_text(mbps: float) -> str:
    """Return a rate of three digits: `940 Mbit/s`, `9.41 Gbit/s`."""
    return f"{mbps / 1000:.3g} Gbit/s" if mbps >= 1000 else f"{mbps:.{decimals(mbps)}f} Mbit/s"


def claim(view: RunView, asked: Asked, shown: Sequence[int] | None = None) -> Claim | NoClaim:
    """Return the claim that the tests of a run support, or why there is none. `shown`: only these tests."""
    reasons = list(_against_run(view, asked))
    cells = [cell for cell in view.cells if shown is None or cell.cell.number in shown]
    if isinstance(asked.tests, int):
        cells = [cell for cell in cells if cell.cell.number == asked.tests]
        if not cells:
            reasons.append(f"test {asked.tests} is not in the table")
    if reasons or not cells:
        return NoClaim(tuple(reasons) or ("the run has no tests of streams",))
    rows = _rows(view)
    missed = {check.cell.number for check in checks(view) if not check.met}
    against = {cell.cell.number: list(_against_test(view, cell, rows, missed, asked)) for cell in cells}
    figures = [_figure(cell, rows) for cell in cells if not against[cell.cell.number]]
    if not figures or (asked.tests != "best" and len(figures) < len(cells)):
        return NoClaim(tuple(_merged(against)))
    if asked.tests == "every" and len({round(figure.ceiling_mbps, 1) for figure in figures}) > 1:
        return NoClaim(("the tests have different ceilings; a claim on one of them needs its number in the theme",))
    chosen = (max if asked.tests == "best" else min)(figures, key=attrgetter("share"))
    return _worded(view, chosen, figures if asked.tests == "every" else [chosen], cells, asked)


def _against_run(view: RunView, asked: Asked) -> Iterator[str]:
    if view.plan.in_messages or any(cell.kind.section != "streams" for cell in view.plan.cells):
        yield "claims are made on streams of TCP only"
        return
    if view.info.status is not RunStatus.COMPLETE:
        yield f"the run is {view.info.status}, not complete"
    if view.plan.virtual == "loopback":
        yield "it was measured on a machine's loopback, not on a link"
    elif view.plan.virtual is not None and not asked.virtual:
        yield "it was measured on a virtual rig, which says nothing about a product (virtual: true names it so)"


def _against_test(
    view: RunView, cell: CellSummary, rows: Mapping[int, list[Row]], missed: set[int], asked: Asked
) -> Iterator[str]:
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
    yield from _against_links(view, cell)
    yield from _against_efficiency(cell, own, asked)


def _against_links(view: RunView, cell: CellSummary) -> Iterator[str]:
    if any(stream.ceiling_mbps is None for stream in cell.streams):
        yield "what its links allow is not known: give their rate in the rig file"
        return
    if cell.shared:
        yield "its pairs share a link"
    if len({path_rate_bps(view.info, stream.stream.ends) for stream in cell.streams}) > 1:
        yield "its links have different rates"
    if view.plan.virtual is not None:
        return
    for node in sorted({node for stream in cell.streams for node in stream.stream.ends}):
        known, seen = link_rate_bps(view.info, node), view.info.facts.get(node, {}).get("speed_bps")
        if known and seen and known != seen:
            yield f"the rig file gives {node} a link of {format_rate(known)}, its interface has {format_rate(seen)}"


def _against_efficiency(cell: CellSummary, own: Sequence[Row], asked: Asked) -> Iterator[str]:
    shares = [row["efficiency"] for row in own if row["efficiency"] is not None]
    if not shares:
        return
    if max(shares) > _ABOVE:
        yield f"{100 * max(shares):.1f} % of what the link allows is not possible: the rig file or a node is wrong"
    elif min(shares) < asked.least:
        share, bound = f"{floored(100 * min(shares), 1):.1f}", f"{100 * asked.least:g}"
        yield f"{share} % of what the link allows is less than the claim's bound of {bound} %"
    if cell.limit not in OF_PRODUCT:
        yield f"it is limited by {cell.limit}, not by the line"


def _merged(against: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yield each reason once, with the tests that it applies to."""
    for reason in dict.fromkeys(reason for reasons in against.values() for reason in reasons):
        numbers = [number for number, reasons in against.items() if reason in reasons]
        yield f"{numbers_text(numbers)}: {reason}" if len(against) > 1 else reason


def _rows(view: RunView) -> dict[int, list[Row]]:
    """Return, by test, the rows of pairs of the repetitions that count."""
    rows: dict[int, list[Row]] = {}
    for row in view.frames.derived.pairs:
        if row["status"] == Status.OK and row["goodput_mbps"] is not None:
            rows.setdefault(row["cell"], []).append(row)
    return rows


def _values(own: Sequence[Row]) -> list[list[float]]:
    values: dict[tuple[str, ...], list[float]] = {}
    for row in own:
        values.setdefault((row["source"], row["destination"], row["direction"]), []).append(row["goodput_mbps"])
    return list(values.values())


def _figure(cell: CellSummary, rows: Mapping[int, list[Row]]) -> _Figure:
    mbps = lowest(_values(rows[cell.cell.number]))
    if mbps is None:
        raise AssertionError("a test without a figure has a reason")
    return _Figure(cell, mbps, max(stream.ceiling_mbps or 0.0 for stream in cell.streams))


def _worded(view: RunView, chosen: _Figure, of: Sequence[_Figure], cells: Sequence[CellSummary], asked: Asked) -> Claim:
    tests = [figure.test for figure in of]
    mss = min(stream.mss_effective or 0 for stream in chosen.test.streams)
    return Claim(
        mbps=chosen.mbps,
        where=_where(min(tests, key=lambda cell: len(cell.streams))),
        share=f"{floored(100 * chosen.share, 1):.1f}",
        link=_ethernet(path_rate_bps(view.info, chosen.test.streams[0].stream.ends) or 0),
        frames="" if 1420 <= mss <= 1460 else f"segments of {mss} bytes",
        which=_which(view, cells, asked),
        tests=tuple(cell.cell.number for cell in tests),
        ceiling_mbps=chosen.ceiling_mbps,
        repetitions=min(cell.counted for cell in tests),
        virtual=view.plan.virtual is not None,
    )


def _which(view: RunView, cells: Sequence[CellSummary], asked: Asked) -> str:
    if len(cells) == 1:
        return f"in test {cells[0].cell.number} of {len(view.cells)}" if len(view.cells) > 1 else ""
    return f"in {'the best' if asked.tests == 'best' else 'each'} of {len(cells)} tests"


def _where(cell: CellSummary) -> str:
    pairs = len(cell.cell.pairs)
    where = {1: "between two ports", 2: "on both pairs at once"}.get(pairs, f"on each of {pairs} pairs at once")
    if len(cell.streams) > pairs:
        return where.removesuffix(" at once") + ", in both directions at once"
    return where


def _ethernet(rate_bps: int) -> str:
    mbps = rate_bps // 10**6
    if mbps not in _ETHERNET_MBPS or rate_bps % 10**6:
        return f"a link of {format_rate(rate_bps)}"
    if mbps < 1000:
        return f"{mbps}-megabit Ethernet"
    return "gigabit Ethernet" if mbps == 1000 else f"{mbps / 1000:g}-gigabit Ethernet"
