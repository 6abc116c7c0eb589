"""Sentences about the repetitions that are not in the means of a test."""

from statistics import median
from typing import Final

from rigctl.analysis.summary import Exclusion
from rigctl.records import Status
from rigctl.report.words.per_stream import MOST_LISTED
from rigctl.report.words.text import rate_text, sentence

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
    if excluded.status is Status.OK:
        return f"{which}: {(excluded.reason or '').rstrip('.')}."
    said = f"{which}: {excluded.status}: {(excluded.reason or 'no reason was stored').rstrip('.')}"
    if excluded.status is Status.INVALID and any(rate_mbps is not None for rate_mbps in excluded.goodput_mbps):
        said += f" ({_rates(excluded)}, not counted)"
    if not excluded.measured_again:
        return sentence(said)
    return f"{said} Measured once more." if said.endswith("?") else f"{said}; measured once more."


def _rates(excluded: Exclusion) -> str:
    """Of each pair; of many the lowest, median and highest, and the three lowest by name."""
    each_mbps = excluded.goodput_mbps
    if len(each_mbps) <= MOST_LISTED:
        return ", ".join(map(rate_text, each_mbps)) + " Mbit/s"
    names = excluded.streams or ("",) * len(each_mbps)
    known = sorted((mbps, name) for mbps, name in zip(each_mbps, names, strict=True) if mbps is not None)
    low, middle, high = (rate_text(mbps) for mbps in (known[0][0], median(mbps for mbps, _ in known), known[-1][0]))
    said = f"{low} to {high} Mbit/s on {len(each_mbps)} pairs, median {middle}"
    if low == high:
        said = f"{low} Mbit/s on each of {len(each_mbps)} pairs"
    slowest = ", ".join(f"{name} {rate_text(mbps)}" for mbps, name in known[:MOST_NAMED])
    return said + (f"; the slowest: {slowest}" if low != high and excluded.streams else "")
