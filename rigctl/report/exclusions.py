"""Sentences about the repetitions that are not in the means of a test."""

from collections.abc import Sequence
from typing import Final

from rigctl.analysis.summary import Exclusion
from rigctl.records import Status
from rigctl.report.per_stream import MOST_LISTED
from rigctl.report.text import rate_text

MOST_NAMED: Final = 3


def exclusion_text(excluded: Exclusion) -> str:
    """`Test 3, repetition 2: invalid: start skew … (911, 941 Mbit/s, not counted); measured once more.`"""
    which = f"Test {excluded.test}"
    if excluded.status is None:
        return f"{which} was not measured{' yet' if excluded.running else ''}."
    if excluded.repetition is not None:
        which += f", repetition {excluded.repetition}"
    if excluded.attempt > 1:
        which += ", measured once more"
    said = f"{which}: {excluded.status}: {(excluded.reason or 'no reason was stored').rstrip('.')}"
    if excluded.status is Status.INVALID and any(rate_mbps is not None for rate_mbps in excluded.goodput_mbps):
        said += f" ({_rates(excluded.goodput_mbps)} Mbit/s, not counted)"
    return said + ("; measured once more." if excluded.measured_again else ".")


def _rates(each_mbps: Sequence[float | None]) -> str:
    """Of each pair; of many the lowest to the highest, and the three lowest."""
    if len(each_mbps) <= MOST_LISTED:
        return ", ".join(map(rate_text, each_mbps))
    known = sorted(rate_mbps for rate_mbps in each_mbps if rate_mbps is not None)
    lowest = ", ".join(map(rate_text, known[:MOST_NAMED]))
    return f"{rate_text(known[0])} to {rate_text(known[-1])} on {len(each_mbps)} pairs, the lowest {lowest}"
