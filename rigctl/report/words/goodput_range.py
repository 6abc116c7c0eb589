"""The answer of a run of streams or datagrams: the goodput of all tests, or the lowest and the highest."""

from collections.abc import Sequence
from typing import Final

from rigctl.analysis.summary import CellSummary
from rigctl.findings import Finding, Weight, tests
from rigctl.records import RunInfo
from rigctl.report.words.above_ceiling import impossible
from rigctl.report.words.goodput import goodput_text
from rigctl.report.words.missing import fastest_pair
from rigctl.report.words.per_stream import MOST_LISTED
from rigctl.report.words.text import listed, percent_text, plural, rate_text, settings_text, told_apart, varied_text

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


def goodput_answer(info: RunInfo, cells: Sequence[CellSummary]) -> Finding | None:
    """Return the answer; None if no goodput is known, neither of a test nor of a pair."""
    known = sorted((cell for cell in cells if cell.goodput_mbps is not None), key=_total)
    if not known:
        return fastest_pair(cells)
    known = [cell for cell in known if not impossible(info, cell)]
    if not known:
        return None  # that the results are impossible is the answer
    low, high = known[0], known[-1]
    numbers = {
        "goodput_mbps": _total(high),
        "lowest_mbps": _total(low),
        "ceiling_mbps": high.ceiling_mbps,
        "efficiency": high.efficiency,
    }
    if len(known) == 1:
        settings = settings_text(low.cell, told_apart(cell.cell for cell in cells))
        said = goodput_text(info, low)
        text = f"Test {low.cell.number} ({settings}): {said[:1].lower()}{said[1:]}"
        return Finding(text, Weight.ANSWER, subject=tests([low.cell.number]), numbers=numbers)
    if _alike(low, high, known):
        every = "Both tests" if len(known) == 2 else f"All {len(known)} tests"
        which = every if len(known) == len(cells) else f"{plural(len(known), 'test')} measured"
        text = f"{which}: {', '.join(filter(None, (_range(known), _shares(known))))}.{_no_ceiling(info, known)}"
        return Finding(text, Weight.ANSWER, subject=tests(cell.cell.number for cell in known), numbers=numbers)
    asked = [cell.cell for cell in cells]
    least, most = (
        f"{_rates(cell)} (test {cell.cell.number}, {varied_text(cell.cell, asked)}{_detail(cell)})"
        for cell in (low, high)
    )
    text = f"The lowest goodput is {least}, the highest {most}.{_no_ceiling(info, known)}"
    return Finding(text, Weight.ANSWER, subject=tests([low.cell.number, high.cell.number]), numbers=numbers)


def _total(cell: CellSummary) -> float:
    return cell.goodput_mbps.mean if cell.goodput_mbps is not None else 0.0


def _alike(low: CellSummary, high: CellSummary, cells: Sequence[CellSummary]) -> bool:
    """Tell whether no test can be called the fastest: the differences are small, or no larger than the scatter."""
    if len({len(cell.streams) for cell in cells}) > 1:
        return False
    scatter = sum(cell.goodput_mbps.spread or 0.0 for cell in (low, high) if cell.goodput_mbps is not None)
    return _total(high) - _total(low) <= max(ALIKE * _total(high), scatter)


def _by_pair(cell: CellSummary) -> bool:
    return not cell.shared and len(cell.streams) <= MOST_LISTED


def _each(cell: CellSummary) -> list[str]:
    """The goodput of each pair as text, or that of all together where they share a link or are many."""
    if not _by_pair(cell):
        return [rate_text(_total(cell), cell.ceiling_mbps)]
    known = [(stream.goodput_mbps, stream.ceiling_mbps) for stream in cell.streams]
    return [rate_text(rate.mean, ceiling_mbps) for rate, ceiling_mbps in known if rate is not None]


def _rates(cell: CellSummary) -> str:
    """`941 Mbit/s on each pair`, `901 and 909 Mbit/s`, `7913 Mbit/s in all`."""
    texts = _each(cell)
    return f"{listed(texts) if len({*texts}) > 1 else texts[0]} Mbit/s{_of(cell, len({*texts}) == 1)}"


def _of(cell: CellSummary, same: bool) -> str:
    if len(cell.streams) < 2 or (_by_pair(cell) and not same):
        return ""
    return " on each pair" if _by_pair(cell) else " in all"


def _range(cells: Sequence[CellSummary]) -> str:
    """`939 to 941 Mbit/s on each pair`."""
    texts = sorted((text for cell in cells for text in _each(cell)), key=float)
    span = texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
    return f"{span} Mbit/s{_of(cells[0], same=True)}"


def _shares(cells: Sequence[CellSummary]) -> str:
    known = [cell.efficiency for cell in cells if cell.efficiency is not None]
    if len(known) < len(cells):
        return ""
    low, high = percent_text(min(known)), percent_text(max(known))
    return f"{low if low == high else f'{low} to {high}'} % of the ceiling"


def _no_ceiling(info: RunInfo, cells: Sequence[CellSummary]) -> str:
    """Return a sentence on why no test has a ceiling; empty if some have one."""
    if any(cell.ceiling_mbps is not None for cell in cells):
        return ""
    if info.plan.virtual == "loopback":
        return " The links are unshaped, so there is no ceiling."
    return " The ceilings are unknown, as the rates of links are: give them in the rig file."


def _detail(cell: CellSummary) -> str:
    """`: 1.2 % of the ceiling, limited by the window`."""
    limit = _LIMITS.get(cell.limit, f"limited by the {cell.limit}") if cell.limit else ""
    said = ", ".join(filter(None, (_shares([cell]), limit)))
    return f": {said}" if said else ""
