"""Sentences about the repetitions that are not in the means of a test."""

from rigctl.analysis.summary import Exclusion
from rigctl.records import Status
from rigctl.report.text import rate_text


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
        said += f" ({', '.join(rate_text(rate_mbps) for rate_mbps in excluded.goodput_mbps)} Mbit/s, not counted)"
    return said + ("; measured once more." if excluded.measured_again else ".")
