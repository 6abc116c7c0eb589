"""The findings of a run of streams: the answer, what was granted, line rate, retransmits, and what went wrong."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.findings import RUN, Finding, Severity, Weight, tests
from rigctl.model.limits.rules import NEARLY
from rigctl.model.limits.shares import LINE_RATE, reaches
from rigctl.records import RunInfo
from rigctl.report.sections.streams.words import lost_share, mss_cause, mss_text, window_text
from rigctl.report.words.above_ceiling import excess_findings
from rigctl.report.words.bottlenecks import bottleneck_findings
from rigctl.report.words.goodput_range import goodput_answer
from rigctl.report.words.missing import excluded_findings
from rigctl.report.words.text import listed, numbers_text, percent_text, plural
from rigctl.settings import CONGESTION, MSS, RATE

MOST_WINDOWS: Final = 3
"""Windows that were not granted as requested, reported one by one."""
FEW_RETRANSMITS: Final = 10
"""Fewer, of less than 0.01 % of the segments, are no finding."""
PROBE_RTT_S: Final = 10.0
"""bbr measures the round trip anew about so often (tcp_bbr.c: bbr_min_rtt_win_sec)."""


def stream_findings(view: RunView) -> Iterator[Finding]:
    """All of them, in no particular order but that of equal weights."""
    info, cells = view.info, view.cells
    if not view.meshes and (answer := goodput_answer(info, cells)):
        yield answer
    yield from _mss(info, cells)
    yield from _line_rate(cells)
    yield from _retransmits(info, cells)
    yield from bottleneck_findings(cells)
    yield from _windows(info, cells)
    yield from _congestion(cells)
    yield from excess_findings(info, cells)
    yield from excluded_findings(cells)


def _mss(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """That one MSS went over the wire in all tests; else each distinct reason for an MSS once, with its tests."""
    counted = [cell for cell in cells if cell.counted]
    effective = {stream.mss_effective for cell in counted for stream in cell.streams}
    if len(effective) == 1 and None not in effective and len({cell.cell[MSS] for cell in counted}) > 1:
        mss = next(iter(effective))
        causes = _mss_causes(info, counted)
        why = f" ({'; '.join(causes)})" if causes else ""
        text = f"MSS {mss} went over the wire in every test: the MSS requested made no difference{why}."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, numbers={"mss_effective": mss})
        return
    reasons: dict[str, list[int]] = {}
    for cell in counted:
        if cell.cell[MSS] is not None and (said := mss_text(info, cell)):
            reasons.setdefault(said, []).append(cell.cell.number)
    for said, numbers in reasons.items():
        where = "" if len(reasons) == 1 else f"{numbers_text(numbers).capitalize()}: "
        yield Finding(f"{where}{said}", Weight.GRANTED, subject=tests(numbers))


def _mss_causes(info: RunInfo, cells: Sequence[CellSummary]) -> list[str]:
    """`8960: the MTU is 1500`, each requested MSS and cause once."""
    found = [
        (asked, mss_cause(info, asked, stream))
        for cell in cells
        if (asked := cell.cell[MSS]) is not None
        for stream in cell.streams
    ]
    return list(dict.fromkeys(f"{asked}: {cause}" for asked, cause in found if cause))


def _line_rate(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """How many tests reach line rate. A test above its ceiling says nothing of the line."""
    known = [cell for cell in cells if cell.efficiency is not None and not cell.above_ceiling]
    known = [cell for cell in known if not isinstance(cell.cell[RATE], int)]
    if len(known) < 2:
        return
    below = [cell for cell in known if not reaches(cell.efficiency or 0.0, LINE_RATE)]
    between = any(cell.limit == "line-rate" for cell in below)
    short = [cell for cell in below if cell.limit != "line-rate"]
    reached = len(known) - len(short)
    more = f", or {100 * NEARLY:g} % with a queue that is never empty" if between else ""
    worst = min(short or known, key=lambda cell: cell.efficiency or 0.0)
    count = "All" if not short else "None" if reached == 0 else str(reached)
    text = (
        f"{count} of {plural(len(known), 'test')} reach line rate ({100 * LINE_RATE:g} % of the ceiling or "
        f"more{more}); the slowest{' of the others' if between and short else ''}, test {worst.cell.number}, has "
        f"{percent_text(worst.efficiency)} %."
    )
    level = Severity.OK if reached == len(known) else Severity.NOTE
    lowest = min(cell.efficiency or 0.0 for cell in known)
    numbers = {"tests": len(known), "at_line_rate": reached, "lowest_efficiency": lowest}
    yield Finding(text, Weight.COMPARISON, level, tests([worst.cell.number]), numbers)


def _retransmits(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """The retransmits of all tests together; none about a few of very many segments."""
    known = [cell for cell in cells if cell.retransmits is not None]
    if not known:
        return
    total = sum(cell.retransmits or 0.0 for cell in known)
    share = lost_share(known)
    if total == 0:
        text = "No retransmits in the measurement interval of any test."
        yield Finding(text, Weight.DETAIL, Severity.OK, numbers={"retransmits": 0})
        return
    if total < FEW_RETRANSMITS and share.startswith("1 in "):
        return
    several = ", the mean of the repetitions" if info.plan.repeat > 1 else ""
    count = f"{max(1, round(total))}{f', {share}' if share else ''}{several}"
    text = f"Retransmits in all measurement intervals together: {count}."
    yield Finding(text, Weight.LOSS, numbers={"retransmits": total})


def _windows(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    reasons: dict[str, list[int]] = {}
    for cell in cells:
        if cell.counted and not cell.cell.resize and (said := window_text(info, cell)):
            reasons.setdefault(said, []).append(cell.cell.number)
    for said, numbers in list(reasons.items())[:MOST_WINDOWS]:
        yield Finding(said, Weight.GRANTED, Severity.WARNING, tests(numbers))
    more = len(reasons) - MOST_WINDOWS
    if more > 0:
        text = f"{plural(more, 'more window was', 'more windows were')} not granted as requested; the table has them."
        yield Finding(text, Weight.GRANTED, Severity.WARNING)


def _congestion(cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Which congestion control ran where none was requested; of bbr why goodput dips."""
    unasked = [cell for cell in cells if cell.counted and cell.cell[CONGESTION] is None]
    names = sorted({stream.congestion for cell in unasked for stream in cell.streams if stream.congestion})
    if names:
        used = f"default, {names[0]}, was" if len(names) == 1 else f"defaults, {listed(names)}, were"
        text = f"No congestion control was requested; the nodes' {used} used."
        remedy = "Set `congestion:` to compare with results from elsewhere."
        of_all = all(cell.cell[CONGESTION] is None for cell in cells)
        subject = RUN if of_all else tests(cell.cell.number for cell in unasked)
        yield Finding(text, Weight.DETAIL, subject=subject, remedy=remedy)
    probing = [
        cell.cell.number
        for cell in cells
        if cell.counted
        and cell.cell.duration_s >= PROBE_RTT_S
        and any((stream.congestion or "").startswith("bbr") for stream in cell.streams)
    ]
    if probing:
        text = (
            f"Dips of goodput about every 10 s are expected with bbr ({numbers_text(probing)}): it lowers its window "
            "for about 0.2 s to measure the round trip (PROBE_RTT)."
        )
        yield Finding(text, Weight.DETAIL, subject=tests(probing), remedy="cubic has no such dips.")
    other = [
        cell.cell.number
        for cell in cells
        if cell.cell[CONGESTION] is not None
        and any(stream.congestion not in (None, cell.cell[CONGESTION]) for stream in cell.streams)
    ]
    if other:
        text = f"Another congestion control ran than was requested: {numbers_text(other)}."
        remedy = "Load its kernel module on the senders."
        yield Finding(text, Weight.GRANTED, Severity.WARNING, tests(other), remedy=remedy)
