"""How close to the ceiling the pairs of a test came, and why some results are above it."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.messages import MessageResult
from rigctl.analysis.views.shaping import carried_mbps, messages_carried_mbps, short_excess, short_messages_excess
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.unknowns import least
from rigctl.records import RunInfo
from rigctl.report.words.metrics import mean, rate_decimals
from rigctl.report.words.text import (
    MOST_LISTED,
    UNKNOWN,
    all_tests,
    ceiling_text,
    listed,
    lower_first,
    numbers_text,
    percent_text,
    plural,
    rate_of_ceiling,
    rate_text,
    settings_text,
    span,
    told_apart,
    varied_texts,
)
from rigctl.settings import MPTCP

ALIKE: Final = 0.03
"""Tests whose goodput differs by no more than this share are not ranked."""
_LIMITS: Final = {
    "line-rate": "at line rate",
    "shared-link": "limited by a shared link",
    "loss": "limited by losses",
    "other-traffic": "limited by other traffic",
    "rate": "as requested",
    "unknown": "",
}


class Rates:
    """Rates as the table of these tests prints them: of each pair, or of all together where a test has many pairs."""

    def __init__(self, cells: Sequence[CellSummary]) -> None:
        self.many = any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)
        self._pairs = rate_decimals((one.goodput_mbps, one.ceiling_mbps) for cell in cells for one in cell.streams)
        self._totals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for cell in cells)

    def of(self, cell: CellSummary) -> list[str]:
        """Return the rate of each pair, or that of all together."""
        if self.many:
            return [f"{_total(cell):.{self._totals}f}"]
        return [self.pair(stream.goodput_mbps.mean) for stream in cell.streams if stream.goodput_mbps is not None]

    def pair(self, mbps: float) -> str:
        """Return the rate of a pair."""
        return f"{mbps:.{self._pairs}f}"

    def words(self, cell: CellSummary) -> str:
        """Return `941 Mbit/s on each pair`, `901 and 909 Mbit/s` or `7913 Mbit/s in all`."""
        texts = self.of(cell)
        return f"{listed(texts) if len({*texts}) > 1 else texts[0]} Mbit/s{self.whose(cell, len({*texts}) == 1)}"

    def whose(self, cell: CellSummary, same: bool) -> str:
        """Return ` on each pair` or ` in all` behind one rate of several pairs."""
        if len(cell.streams) < 2 or not (self.many or same):
            return ""
        return " in all" if self.many else " on each pair"


def goodput_text(info: RunInfo, cell: CellSummary, every: Sequence[CellSummary] = ()) -> str:
    """Return `911 and 941 of 941.5 Mbit/s: 98.4 % of the ceiling.`; `every`: the tests of its table."""
    streams = [stream for stream in cell.streams if stream.goodput_mbps is not None]
    if not streams or cell.goodput_mbps is None:
        return ""
    rates = Rates(every or [cell])
    each_mbps = [stream.goodput_mbps.mean for stream in streams if stream.goodput_mbps is not None]
    ends = span([rates.pair(min(each_mbps)), rates.pair(max(each_mbps))])
    if cell.ceiling_mbps is None:
        return f"{ends if rates.many else listed(rates.of(cell))} Mbit/s. {_no_ceiling(info, [cell])}"
    share = f"{percent_text(cell.efficiency)} % of the ceiling"
    ceilings = {ceiling_text(stream.ceiling_mbps) for stream in streams}
    if len(streams) == 1:
        return f"{' of '.join(rate_of_ceiling(cell.goodput_mbps.mean, cell.ceiling_mbps))} Mbit/s is {share}."
    why = ", which share a link," if cell.shared else ""
    if rates.many:
        return f"The pairs{why} achieve {ends} Mbit/s; together {rates.of(cell)[0]} Mbit/s, {share}."
    of = f" of {next(iter(ceilings))}" if len(ceilings) == 1 and not cell.shared and UNKNOWN not in ceilings else ""
    texts = rates.of(cell)
    achieved = f"{texts[0]}{of} Mbit/s each" if len({*texts}) == 1 else f"{listed(texts)}{of} Mbit/s"
    return f"The pairs{why} achieve {achieved}: {share}."


def goodput_answer(info: RunInfo, cells: Sequence[CellSummary]) -> Finding | None:
    """Return the answer; None if no goodput is known, neither of a test nor of a pair."""
    known = sorted((cell for cell in cells if cell.goodput_mbps is not None), key=_total)
    if not known:
        return _fastest_pair(cells)
    known = [cell for cell in known if not impossible(info, cell)]
    if not known:
        return None  # that the results are impossible is the answer
    rates = Rates(cells)
    alike_counts = len({len(cell.streams) for cell in known}) == 1
    low, high = (known[0], known[-1]) if alike_counts else (min(known, key=_slowest), max(known, key=_quickest))
    numbers = {
        "goodput_mbps": _total(high),
        "lowest_mbps": _total(low),
        "ceiling_mbps": high.ceiling_mbps,
        "efficiency": high.efficiency,
    }
    if len(known) == 1:
        settings = settings_text(low.cell, told_apart(cell.cell for cell in cells))
        text = f"Test {low.cell.number} ({settings}): {lower_first(goodput_text(info, low, cells))}"
        return Finding(text, Weight.ANSWER, subject=tests([low.cell.number]), numbers=numbers)
    without = "" if any(cell.ceiling_mbps is not None for cell in known) else f" {_no_ceiling(info, known)}"
    if alike_counts and _alike(low, high):
        which = all_tests(len(known)) if len(known) == len(cells) else f"{plural(len(known), 'test')} measured"
        text = f"{which}: {', '.join(filter(None, (_range(known, rates), _shares(known))))}.{without}"
        return Finding(text, Weight.ANSWER, subject=tests(cell.cell.number for cell in known), numbers=numbers)
    pairs = told_apart(cell.cell for cell in cells)
    varied = dict(
        zip((cell.cell.number for cell in cells), varied_texts([cell.cell for cell in cells], pairs), strict=True)
    )
    lows, highs = (
        (rates.words(low), rates.words(high))
        if alike_counts
        else (f"{rates.pair(_slowest(low))} Mbit/s", f"{rates.pair(_quickest(high))} Mbit/s")
    )
    least, most = (
        f"{words} (test {cell.cell.number}, "
        f"{varied[cell.cell.number] or settings_text(cell.cell, pairs)}{_detail(cell)})"
        for words, cell in ((lows, low), (highs, high))
    )
    of = "" if alike_counts else " of a pair"
    text = f"The lowest goodput{of} is {least}, the highest {most}.{without}"
    return Finding(text, Weight.ANSWER, subject=tests([low.cell.number, high.cell.number]), numbers=numbers)


def _fastest_pair(cells: Sequence[CellSummary]) -> Finding | None:
    """Return the answer where no test has a result as a whole; None if no pair has one either."""
    pairs = [
        (stream.goodput_mbps.mean, str(stream), cell.cell.number, stream.ceiling_mbps)
        for cell in cells
        for stream in cell.streams
        if stream.goodput_mbps is not None
    ]
    if not pairs:
        return None
    goodput_mbps, name, number, ceiling_mbps = max(pairs, key=lambda pair: pair[0])
    of = "" if ceiling_mbps is None else f" of {rate_text(ceiling_mbps)}"
    text = (
        f"No test was measured on all its pairs; the fastest pair is {name} in test {number}: "
        f"{rate_text(goodput_mbps, ceiling_mbps)}{of} Mbit/s."
    )
    return Finding(text, Weight.ANSWER, Severity.WARNING, tests([number]), {"goodput_mbps": goodput_mbps})


def _total(cell: CellSummary) -> float:
    return mean(cell.goodput_mbps) or 0.0


def _each_mbps(cell: CellSummary) -> list[float]:
    return [stream.goodput_mbps.mean for stream in cell.streams if stream.goodput_mbps is not None]


def _slowest(cell: CellSummary) -> float:
    return min(_each_mbps(cell))


def _quickest(cell: CellSummary) -> float:
    return max(_each_mbps(cell))


def _alike(low: CellSummary, high: CellSummary) -> bool:
    """Tell whether no test can be called the fastest: the differences are small, or no larger than the scatter."""
    scatter = sum(cell.goodput_mbps.spread or 0.0 for cell in (low, high) if cell.goodput_mbps is not None)
    return _total(high) - _total(low) <= max(ALIKE * _total(high), scatter)


def _range(cells: Sequence[CellSummary], rates: Rates) -> str:
    """Return `939 to 941 Mbit/s on each pair`."""
    texts = sorted((text for cell in cells for text in rates.of(cell)), key=float)
    return f"{span([texts[0], texts[-1]])} Mbit/s{rates.whose(cells[0], same=True)}"


def _shares(cells: Sequence[CellSummary]) -> str:
    known = [cell.efficiency for cell in cells if cell.efficiency is not None]
    if len(known) < len(cells):
        return ""
    return f"{span([percent_text(min(known)), percent_text(max(known))])} % of the ceiling"


def _no_ceiling(info: RunInfo, cells: Sequence[CellSummary]) -> str:
    """Return why tests have no ceiling."""
    if any(cell.cell[MPTCP] for cell in cells) and all(link.rate_bps for link in info.plan.links.values()):
        return "Multipath TCP may use several links, so there is no ceiling: the rig file has the rate of one."
    if info.plan.virtual == "loopback":
        return "The links are unshaped, so there is no ceiling."
    if info.plan.imported:
        return f"The ceiling is unknown: {info.plan.scenario_name} does not tell the rate of the links."
    return "The ceiling is unknown, as the rate of a link is: give it in the rig file."


def _detail(cell: CellSummary) -> str:
    """Return `: 1.2 % of the ceiling, limited by the window`."""
    limit = _LIMITS.get(cell.limit, f"limited by the {cell.limit}") if cell.limit else ""
    text = ", ".join(filter(None, (_shares([cell]), limit)))
    return f": {text}" if text else ""


Measured: TypeAlias = CellSummary | MessageResult


class Cause(StrEnum):
    """Reason why a result exceeds its ceiling, as a part of a sentence."""

    SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
    SHORT = "the token buckets of virtual links pass 128 KiB at once, which counts in so short a test"
    UNKNOWN = "the rate in the rig file or a node is wrong. Compare that rate with the link"


def excess_cause(info: RunInfo, measured: Measured) -> Cause:
    """Return why a test exceeds its ceiling."""
    if info.plan.virtual != "namespaces":
        return Cause.UNKNOWN
    if isinstance(measured, MessageResult):
        carried = messages_carried_mbps(info, measured)
        ceiling = None if measured.ceiling_bps is None else measured.ceiling_bps / 1e6
        short = carried is not None and short_messages_excess(info, measured)
    else:
        carried, ceiling = carried_mbps(info, measured), least(stream.ceiling_mbps for stream in measured.streams)
        short = short_excess(info, measured)
    if carried is not None and ceiling is not None and carried > 1.005 * ceiling:
        return Cause.SHAPED
    return Cause.SHORT if short else Cause.UNKNOWN


def impossible(info: RunInfo, cell: CellSummary) -> bool:
    """Tell whether a test is above its ceiling and nothing explains it."""
    return cell.above_ceiling and excess_cause(info, cell) is Cause.UNKNOWN


def excess_note(info: RunInfo, measured: Measured) -> list[str]:
    """Return the note of a row above its ceiling; empty for any other row."""
    if not measured.above_ceiling:
        return []
    cause = excess_cause(info, measured)
    text = str(cause)
    if cause is Cause.SHAPED and isinstance(measured, CellSummary):
        each = " on each pair" if len(measured.streams) > 1 else ""
        text += f", {ceiling_text(carried_mbps(info, measured))} Mbit/s{each}"
    return [f"Test {measured.cell.number}: {percent_text(measured.efficiency)} % of the ceiling: {text}."]


def excess_findings(info: RunInfo, results: Sequence[Measured]) -> Iterator[Finding]:
    """Yield a finding for each cause, with the tests above their ceilings."""
    by_cause = grouped([each for each in results if each.above_ceiling], lambda each: excess_cause(info, each))
    for cause, above in by_cause.items():
        numbers = list(dict.fromkeys(result.cell.number for result in above))
        worst = max(result.efficiency or 0.0 for result in above)
        which = f"{numbers_text(numbers)}{', the highest' if len(numbers) > 1 else ''}"
        text = f"Above the ceiling: {which} at {percent_text(worst)} %: {cause}."
        remedy = "A longer test, or one of more bytes, reduces this." if cause is Cause.SHORT else None
        weight = Weight.IMPOSSIBLE if cause is Cause.UNKNOWN else Weight.SUSPECT
        yield Finding(text, weight, Severity.WARNING, tests(numbers), {"efficiency": worst}, remedy)
