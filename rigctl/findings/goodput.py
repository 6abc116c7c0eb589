"""The headline of a run with goodput tests, and reasons for results above the ceiling."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from rigctl.analysis.views.messages import MessageResult
from rigctl.analysis.views.shaping import carried_mbps, messages_carried_mbps, short_excess, short_messages_excess
from rigctl.base.values import divide, group_by, least
from rigctl.findings import Finding, Severity, Statement, Weight, error, good, note, tests, warning
from rigctl.findings.limits import limit_words, link_text
from rigctl.findings.text import (
    MOST_LISTED,
    all_tests,
    how_pairs_differ,
    lower_first,
    mean_mbps,
    numbers_text,
    percent_text,
    rate_decimals,
    span,
    texts_that_vary,
)
from rigctl.findings.window import slowest_with_window, window_formula
from rigctl.limits.limit import BY_WINDOW
from rigctl.records import RunInfo
from rigctl.results.summary import CellSummary
from rigctl.settings import MPTCP

_ALIKE: Final = 0.03  # tests whose goodput differs by at most this share are not ranked
_LONGEST: Final = 36  # characters of a test's settings in a headline, which is one line; longer settings are omitted

NO_FIGURE: Final = error("no-figure", "No test has a result: the flow reports lack values", weight=Weight.ANSWER)
UNMEASURED: Final = "; {trials} could not be measured and did not count as passed"
SEARCH_UNMEASURED: Final = error(
    "search-unmeasured",
    "{which}: no rate was found, because no trial could be measured ({trials}); the notes give the reasons.",
)
SEARCH_NONE: Final = warning(
    "search-none", "{which}: {name} not found; no rate{tried} passed in {trials}{unmeasured}.", weight=Weight.COMPARISON
)
SEARCH: Final = note(
    "search",
    "{which}: {name} is {rate} of payload sent{pairs}, {datagrams_per_s:,.0f} datagrams/s{bursts}{beyond}{unmeasured}.",
    "Repeat the search with burst: {less}; a policer or a small buffer may pass shorter bursts.",
    Weight.COMPARISON,
)
SEARCH_GOAL: Final = note(
    "search-goal",
    "Test {test}, as RFC 9971 has it, per flow: relevant lower bound {lower}, relevant upper bound {upper}, "
    "conditional throughput {arrived}{regular} ({trials}, {time_spent_s:.0f} s).",
    weight=Weight.DETAIL,
)
FILE_THROUGHPUT_OTHER: Final = note(
    "file-throughput-other", "{files} achieves {rate} MB/s{beside}{disks}.", weight=Weight.COMPARISON
)
_CHECK: Final = "Check the cable, the switch port and its log."
GAP: Final = warning("gaps", "Nothing arrived for {length} or longer {where}.{carrier}", _CHECK)
GAPS: Final = warning("gaps", "{gaps} gaps of {length} or longer, in which nothing arrived; {which}.{carrier}", _CHECK)
DIPS: Final = note(
    "goodput-dips",
    "Goodput dips in {tests}{most} ({stream}): to {lowest} Mbit/s, {below_s:.1f} of {length_s:.3g} s below 95 % of its "
    "median ({median}).",
    weight=Weight.COMPARISON,
)
CARRIER_CHANGED: Final = " Meanwhile the carrier changed {counts}: a link went down or came up."
NO_BIN_GAPS: Final = good("bins-without-gaps", "No gaps: every bin of {width} has data.", weight=Weight.DETAIL)
BIN_GAPS: Final = note(
    "bins-with-gaps",
    "In bins of {width}, test {test} ({stream}) has {count}, the longest of {longest_gap_ms:g} ms; nothing arrived in "
    "{pct:.1f} % of its time. The median of the other bins is {plateau_mb:.1f} MB/s, the mean of all {all_mb:.1f}.",
    weight=Weight.COMPARISON,
)
BIN_GAPS_OF_VIRTUAL: Final = replace(
    BIN_GAPS,
    text=f"{BIN_GAPS.text} A virtual link passes 64 KiB in one burst, which may cause gaps as long as 64 KiB take at "
    "line rate.",
)

BINS_DIFFER: Final = warning(
    "bins-differ",
    "The bins of flows do not add up to their bytes in {which}; the largest difference is in test {test} ({stream}): "
    "{binned:,} bytes in bins, {received:,} received. The throughput over time is wrong there.",
    "Measure again: older agents counted at most 4 GiB in a bin.",
    weight=Weight.SUSPECT,
)


class Rates:
    """Formats goodput with the decimals of the results table: of each pair, or the total if a test has many pairs."""

    def __init__(self, cells: Sequence[CellSummary]) -> None:
        self.same = len({len(cell.streams) for cell in cells}) == 1
        self.summed = self.same and any(len(cell.cell.pairs) > MOST_LISTED for cell in cells)
        self._pairs = rate_decimals((one.goodput_mbps, one.ceiling_mbps) for cell in cells for one in cell.streams)
        self._totals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for cell in cells)

    def of(self, cell: CellSummary) -> list[float]:
        """Return the goodput of each measured pair in Mbit/s; only the total if a test has many pairs."""
        each_mbps = [stream.goodput_mbps.mean for stream in cell.streams if stream.goodput_mbps is not None]
        return [_total(cell)] if self.summed else each_mbps

    def ends(self, cell: CellSummary) -> tuple[float, float]:
        """Return the lowest and highest Mbit/s of a test's pairs, or (total, total) if tests have as many pairs."""
        return (_total(cell),) * 2 if self.same else (min(self.of(cell)), max(self.of(cell)))

    def pair(self, mbps: float) -> str:
        """Return the text of a pair's goodput, in Mbit/s without the unit."""
        return f"{mbps:.{self._pairs}f}"

    def least(self, cell: CellSummary) -> str:
        """Return the text of the slowest pair's goodput, or of the total, in Mbit/s without the unit."""
        mbps = min(self.of(cell))
        return f"{mbps:.{self._totals}f}" if self.summed else self.pair(mbps)

    def pairs(self, cells: Sequence[CellSummary]) -> str:
        """Return the range of the pairs' goodput: `925–941`."""
        each = [stream.goodput_mbps.mean for cell in cells for stream in cell.streams if stream.goodput_mbps]
        return span([self.pair(min(each)), self.pair(max(each))])

    def range(self, cells: Sequence[CellSummary], unit: str = " Mbit/s") -> str:
        """Return the range of the tests' goodput: `925–941 Mbit/s`, or of totals `7838–7913 Mbit/s together`."""
        if not self.summed:
            return f"{self.pairs(cells)}{unit}"
        ends = (choose(map(_total, cells)) for choose in (min, max))
        return f"{span(f'{mbps:.{self._totals}f}' for mbps in ends)}{unit} together"

    def stated(self, cells: Sequence[CellSummary]) -> Statement:
        """Return the statement that `range` makes of the tests."""
        decimals = self._totals if self.summed else self._pairs
        text = self.range(cells, "").removesuffix(" together")
        ends = [float(end) for end in text.split("–")]
        return Statement(
            text, cells, lambda cell: all(ends[0] <= round(mbps, decimals) <= ends[-1] for mbps in self.of(cell))
        )


def goodput_findings(info: RunInfo, cells: Sequence[CellSummary], also: str = "") -> Iterator[Finding]:
    """Yield the headline with `also` appended, and why there is no ceiling; nothing if all results are `impossible`."""
    rates, measured = Rates(cells), [cell for cell in cells if cell.goodput_mbps is not None]
    known = [cell for cell in measured if not impossible(info, cell)]
    if not measured:
        yield from _fastest_pair(cells, rates)
    if not known:
        return
    low, high = min(known, key=lambda cell: rates.ends(cell)[0]), max(known, key=lambda cell: rates.ends(cell)[1])
    text, brief, statements = _by_window(known, cells, rates) or _headline(known, cells, rates, (low, high))
    rated = [cell.efficiency for cell in known if cell.efficiency is not None]
    numbers = {
        "goodput_mbps": _total(high),
        "lowest_mbps": _total(low),
        "ceiling_mbps": high.ceiling_mbps,
        "efficiency": high.efficiency,
        "tests": len(known),
        "at_line_rate": sum(cell.at_line_rate for cell in known),
        "lowest_efficiency": min(rated, default=None),
    }
    subject = tests(cell.cell.number for cell in known)
    yield Finding(
        "goodput",
        f"{text}{also}",
        Weight.ANSWER,
        subject=subject,
        numbers=numbers,
        brief=brief,
        statements=tuple(statements),
    )
    if not rated:
        yield Finding("no-ceiling", _why_no_ceiling(info, known), Weight.DETAIL)


class _Headline(NamedTuple):
    text: str
    brief: str
    statements: Sequence[Statement]


def _headline(
    known: Sequence[CellSummary], cells: Sequence[CellSummary], rates: Rates, ends: tuple[CellSummary, CellSummary]
) -> _Headline:
    """Return the headline if windows are not the limit: `Line rate in all 7 tests (…)`."""
    full, (low, high), goodput = [cell for cell in known if cell.at_line_rate], ends, rates.range(known)
    limit = limit_words(low) if len({cell.limit for cell in known}) == 1 else ""
    at_once, which = _at_once(known), _in_tests(known, cells)
    where = f"{at_once}{',' if at_once and which else ''}{which}"
    if full:
        return _line_rate(known, cells, rates, where)
    brief = ", ".join(filter(None, [goodput, limit]))
    if not _are_alike(low, high, rates):
        text = f"{_result(low, cells, rates, ' Mbit/s')}, up to {_result(high, cells, rates)}"
        least, most = (rates.stated([cell]) for cell in (low, high))
        above = Statement("", known, lambda cell: rates.ends(low)[0] <= rates.ends(cell)[0])
        below = Statement("up to", known, lambda cell: rates.ends(cell)[1] <= rates.ends(high)[1])
        return _Headline(text, brief, [least, most, above, below])
    shares = ", ".join(filter(None, [_shares(known), limit]))
    link = known[0].verdict.numbers.get("shared_link")
    if limit and isinstance(link, str) and at_once:
        each = f", {rates.pairs(known)} each" if rates.summed else " each"
        text = f"{len(known[0].streams)} pairs fill {link_text(link)}{which}: {goodput}{each} ({_shares(known)})"
        fill = Statement("fill", known, lambda cell: cell.limit == known[0].limit)
        return _Headline(text, f"{link.split()[0]} full, {goodput}", [rates.stated(known), fill])
    return _Headline(f"{goodput}{where}{shares and ': '}{shares}", brief, [rates.stated(known)])


def _line_rate(known: Sequence[CellSummary], cells: Sequence[CellSummary], rates: Rates, where: str) -> _Headline:
    """Return the headline of a run with tests at line rate, which names the other tests."""
    full, others = ([cell for cell in known if cell.at_line_rate is own] for own in (True, False))
    holds: Callable[[CellSummary], bool] = attrgetter("at_line_rate")
    if not others:
        text, goodput = f"Line rate{where}", rates.range(known)
        return _Headline(
            f"{text} ({goodput})", f"{goodput}, line rate", [Statement(text, known, holds, known), rates.stated(known)]
        )
    at_once = _at_once(known)
    text = f"Line rate{at_once}{',' if at_once else ''} in {len(full)} of {len(known)} tests"
    rest = _result(others[0], cells, rates)
    if len(others) > 1:
        limits = {limit_words(cell) for cell in others}
        why = limits.pop() if len(limits) == 1 else ""
        rest = f"{rates.range(others, '')} in {numbers_text([cell.cell.number for cell in others])}{why and f', {why}'}"
    statements = [Statement(text, full, holds, known), rates.stated(full), rates.stated(others)]
    brief = f"{rates.range(known)}, {len(full)} at line rate"
    return _Headline(f"{text} ({rates.range(full)}); {rest}", brief, statements)


def _result(cell: CellSummary, cells: Sequence[CellSummary], rates: Rates, unit: str = "") -> str:
    """Return a test's result in words: `887–905 in test 1 (window 8 KiB, limited by losses)`."""
    every = [each.cell for each in cells]
    varied = dict(zip((each.number for each in every), texts_that_vary(every, how_pairs_differ(every)), strict=True))
    why = ", ".join(filter(None, [varied[cell.cell.number], "" if cell.at_line_rate else limit_words(cell)]))
    return f"{rates.range([cell], unit)} in test {cell.cell.number}{f' ({why})' if 0 < len(why) <= _LONGEST else ''}"


def _by_window(known: Sequence[CellSummary], cells: Sequence[CellSummary], rates: Rates) -> _Headline | None:
    """Return the headline if a known window limits most tests; else None."""
    bound = [cell for cell in known if cell.limit == BY_WINDOW.word]
    slowest = slowest_with_window(bound)
    if slowest is None or 2 * len(bound) <= len(known):
        return None
    rest = [cell for cell in known if cell.limit != BY_WINDOW.word]
    which = f" in {len(bound)} of {len(known)} tests" if rest else _in_tests(known, cells)
    best = max(rest, key=rates.ends, default=None)
    more = f"; {_result(best, cells, rates)}" if best else ""
    text = f"The window is the limit{which}"
    limit = Statement(text, bound, lambda cell: cell.limit == BY_WINDOW.word, known)
    measured = rates.stated([slowest])
    text = f"{text}: {window_formula(slowest)}, {measured.text} measured{more}"
    return _Headline(text, f"window limits, {rates.range(bound)}", [limit, measured])


def _at_once(cells: Sequence[CellSummary]) -> str:
    """Return how streams ran: ` on both pairs at once`, ` in both directions at once`; empty if tests differ."""
    (pairs, streams), *others = {(len(cell.cell.pairs), len(cell.streams)) for cell in cells}
    if others or streams == 1:
        return ""
    if pairs == 1:
        return " in both directions at once"
    return f" on {'both' if pairs == 2 else f'all {pairs}'} pairs at once"


def _in_tests(known: Sequence[CellSummary], cells: Sequence[CellSummary]) -> str:
    """Return which tests have a result: ` in all 7 tests`, ` in test 3`; empty for a run with one test."""
    if len(cells) == 1:
        return ""
    if len(known) == 1:
        return f" in test {known[0].cell.number}"
    if len(known) < sum(cell.goodput_mbps is not None for cell in cells):
        return f" in {len(known)} of {len(cells)} tests"
    return f" in {lower_first(all_tests(len(known)))}{' measured' if len(known) < len(cells) else ''}"


def _fastest_pair(cells: Sequence[CellSummary], rates: Rates) -> Iterator[Finding]:
    """Yield the headline of a run in which no test measured all its pairs: the fastest pair, if any was measured."""
    pairs = [(max(own), cell) for cell in cells if not rates.summed and (own := rates.of(cell))]
    if not pairs:
        return
    goodput_mbps, cell = max(pairs, key=lambda pair: pair[0])
    name = next(str(one) for one in cell.streams if one.goodput_mbps and one.goodput_mbps.mean == goodput_mbps)
    rate = f"{rates.pair(goodput_mbps)} Mbit/s"
    yield Finding(
        "goodput-in-part",
        f"{rate} on {name} in test {cell.cell.number}, the fastest pair; no test was measured on all its pairs",
        Weight.ANSWER,
        Severity.WARNING,
        tests([cell.cell.number]),
        {"goodput_mbps": goodput_mbps},
        brief=f"{rate} on the fastest pair",
        statements=(Statement(rate, [mbps for mbps, _ in pairs], lambda mbps: mbps <= goodput_mbps),),
    )


def _total(cell: CellSummary) -> float:
    return mean_mbps(cell.goodput_mbps) or 0.0


def _are_alike(low: CellSummary, high: CellSummary, rates: Rates) -> bool:
    """Tell whether tests are too similar to rank: they differ by at most 3 %, or no more than their repetitions do."""
    scatter = sum(cell.goodput_mbps.spread or 0.0 for cell in (low, high) if cell.goodput_mbps is not None)
    least, most = rates.ends(low)[0], rates.ends(high)[1]
    return low is high or most - least <= max(_ALIKE * most, scatter)


def _shares(cells: Sequence[CellSummary]) -> str:
    known = [cell.efficiency for cell in cells if cell.efficiency is not None]
    if len(known) < len(cells):
        return ""
    return f"{span([percent_text(min(known)), percent_text(max(known))])} % of the ceiling"


def _why_no_ceiling(info: RunInfo, cells: Sequence[CellSummary]) -> str:
    if any(cell.cell[MPTCP] for cell in cells) and all(link.rate_bps for link in info.plan.links.values()):
        return "There is no ceiling: Multipath TCP may use several links, and the rig file has the rate of one."
    if info.plan.virtual == "loopback":
        return "The links are unshaped, so there is no ceiling."
    if info.plan.imported:
        return f"The ceiling is unknown: {info.plan.scenario_name} does not tell the rate of the links."
    return "The ceiling is unknown, because the rate of a link is unknown: give the rate in the rig file."


CeilingResult: TypeAlias = CellSummary | MessageResult


class Cause(StrEnum):
    """Reason why a result exceeds its ceiling, as a part of a sentence."""

    SHAPED = "virtual links are shaped for full frames and carry more with smaller frames"
    SHORT = "the token buckets of virtual links pass 128 KiB at once, which matters in so short a test"
    UNKNOWN = "the rate of a link is wrong in the rig file or as a node reports it. Compare the rate with the real link"


def excess_cause(info: RunInfo, measured: CeilingResult) -> Cause:
    """Return the reason why a test exceeds its ceiling."""
    if info.plan.virtual != "namespaces":
        return Cause.UNKNOWN
    if isinstance(measured, MessageResult):
        carried = messages_carried_mbps(info, measured)
        ceiling = divide(measured.ceiling_bps, 1e6)
        short = carried is not None and short_messages_excess(measured)
    else:
        carried = carried_mbps(info, measured)
        ceiling = least(stream.ceiling_mbps for stream in measured.streams)
        short = short_excess(measured)
    if carried is not None and ceiling is not None and carried > 1.005 * ceiling:
        return Cause.SHAPED
    return Cause.SHORT if short else Cause.UNKNOWN


def impossible(info: RunInfo, cell: CellSummary) -> bool:
    """Tell whether goodput exceeds the ceiling and virtual links are not the cause: a link rate must be wrong."""
    return cell.above_ceiling and excess_cause(info, cell) is Cause.UNKNOWN


def excess_findings(info: RunInfo, results: Sequence[CeilingResult]) -> Iterator[Finding]:
    """Yield a finding for each reason why tests exceed their ceilings."""
    by_cause = group_by([each for each in results if each.above_ceiling], lambda each: excess_cause(info, each))
    for cause, above in by_cause.items():
        numbers = list(dict.fromkeys(result.cell.number for result in above))
        worst = max(result.efficiency or 0.0 for result in above)
        which = f"{numbers_text(numbers)}{', the highest' if len(numbers) > 1 else ''}"
        text = f"Above the ceiling: {which} at {percent_text(worst)} %: {cause}."
        remedy = "A longer test, or a test with more bytes, reduces the excess." if cause is Cause.SHORT else None
        weight = Weight.IMPOSSIBLE if cause is Cause.UNKNOWN else Weight.SUSPECT
        brief = f"above the ceiling, {percent_text(worst)} %"
        yield Finding(
            "above-ceiling", text, weight, Severity.WARNING, tests(numbers), {"efficiency": worst}, remedy, brief
        )
