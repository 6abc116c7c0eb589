"""Gaps in the goodput of streams: which test and pair, when and how long, and whether a link went down meanwhile."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.gaps import LEAST_GAP_S, SLACK_S, Gap, gaps_of
from rigctl.base.units import format_duration
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.report.blocks import Part
from rigctl.report.words.text import listed, plural

MOST_NAMED: Final = 3


def part(view: RunView) -> Part | None:
    """Of streams with their series; `None` where there is no gap, or no series to show one."""
    cells = {cell.number: cell for cell in view.plan.cells}
    found = [gap for repetition in view.repetitions for gap in gaps_of(cells[repetition.cell], repetition)]
    return Part(findings=tuple(_findings(found, several=view.plan.repeat > 1))) if found else None


def _findings(found: Sequence[Gap], *, several: bool) -> Iterator[Finding]:
    """One finding for all gaps; the longest are named."""
    longest = sorted(found, key=lambda gap: -gap.length_s)[:MOST_NAMED]
    if len(found) == 1:
        (gap,) = found
        text = f"Nothing arrived for {_length(gap.length_s)} or longer {_where(gap, several)}."
    else:
        named = listed([f"{_length(gap.length_s)} {_where(gap, several)}" for gap in longest])
        which = "the longest: " if len(found) > len(longest) else ""
        text = f"{len(found)} gaps of {_length(LEAST_GAP_S)} or longer, in which nothing arrived; {which}{named}."
    changes = _carrier_changes(found)
    if changes:
        text += f" Meanwhile the carrier changed {_counts(changes)}: a link went down or came up."
    numbers = {
        "gaps": len(found),
        "longest_gap_s": longest[0].length_s,
        "longest_gap_start_s": longest[0].start_s,
        "carrier_changes": sum(changes.values()) if changes else None,
    }
    remedy = "Check the cable, the switch port and its log." if changes else None
    subject = tests(sorted({gap.cell for gap in found}))
    yield Finding(text, Weight.SUSPECT, Severity.WARNING, subject, numbers, remedy)


def _where(gap: Gap, several: bool) -> str:
    repetition = f", repetition {gap.repetition}" if several else ""
    return f"on {gap.stream} in test {gap.cell}{repetition} (from {gap.start_s:.1f} s on)"


def _length(length_s: float) -> str:
    """In whole tenths of a second, never more than it is: samples are 100 ms apart or more."""
    return format_duration(math.floor(10 * (length_s + SLACK_S)) / 10)


def _carrier_changes(found: Sequence[Gap]) -> dict[str, int]:
    """By node; each repetition counts once, whatever the number of its gaps."""
    known = {(gap.cell, gap.repetition, node): count for gap in found for node, count in gap.carrier_changes}
    summed: dict[str, int] = {}
    for (_, _, node), count in known.items():
        summed[node] = summed.get(node, 0) + count
    return summed


def _counts(changes: dict[str, int]) -> str:
    """`2 times on pi1 and 4 times on pi2`."""
    return listed([f"{plural(count, 'time')} on {node}" for node, count in changes.items()])
