"""Round trips that are not of one kind: waits of 40 and 200 ms, two peaks; with the counters that show why, if any do.

Linux delays an acknowledgement by 40 ms at first (TCP_DELACK_MIN), and waits 200 ms at least before it sends again what
was not acknowledged (TCP_RTO_MIN, RFC 6298).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import format_bytes
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.histogram import count_between, peaks_ns
from rigctl.report.words.text import plural
from rigctl.settings import BUSY_POLL

_MS: Final = 1e6
DELAYED_MS: Final = (36.0, 50.0)
TIMEOUT_MS: Final = (190.0, 260.0)
USUAL_SHARE: Final = 0.5
"""Waits are reported where the usual round trip is below this share of them."""


def round_trip_findings(results: Sequence[MessageResult]) -> list[Finding]:
    """What is reported of such round trips; nothing of a blast."""
    return [*_waits(results), *_peaks(results)]


def _waits(results: Sequence[MessageResult]) -> Iterator[Finding]:
    for result in results:
        usual_us = result.rtt_us(50)
        if usual_us is None:
            continue
        for (low_ms, high_ms), name in ((DELAYED_MS, "40 ms"), (TIMEOUT_MS, "200 ms")):
            count = count_between(result.round_trips, low_ms * _MS, high_ms * _MS)
            if count and usual_us * 1e3 < USUAL_SHARE * low_ms * _MS:
                trips = f"{plural(count, 'round trip')} of size {format_bytes(result.size)}"
                cause, remedy = _cause(result, name)
                text = f"Test {result.cell.number}: {trips} took about {name}: {cause}."
                subject = tests([result.cell.number])
                yield Finding(text, Weight.SUSPECT, Severity.WARNING, subject, {"round_trips": count}, remedy)


def _cause(result: MessageResult, name: str) -> tuple[str, str | None]:
    if name == "200 ms" and result.retransmits:
        return f"{plural(result.retransmits, 'retransmit')} after TCP's least timeout", None
    if name == "40 ms" and result.retransmits == 0 and result.nodelay is False:
        cause = (
            "no retransmits, and TCP_NODELAY was off, so that the end of a message may wait for a delayed "
            "acknowledgement"
        )
        return cause, "nodelay: true would show it."
    return "the cause is unknown", None


def _peaks(results: Sequence[MessageResult]) -> Iterator[Finding]:
    """One finding for all sizes: where their peaks are, and what is not known of them."""
    found = [(result, peaks) for result in results if len(peaks := peaks_ns(result.round_trips)) > 1]
    if not found:
        return
    low, high = ([peaks[end] / 1000 for _, peaks in found] for end in (0, -1))
    count = plural(len(found), "test")
    text = f"Round trips gather around two times in {count}, about {_range(low)} and {_range(high)}."
    polled = any(result.cell[BUSY_POLL] is not None or not BUSY_POLL.takes(result.cell.kind) for result in results)
    remedy = None if polled else "busy_poll: true would show whether a processor that wakes up is the cause."
    yield Finding(text, Weight.DETAIL, subject=tests(result.cell.number for result, _ in found), remedy=remedy)


def _range(values_us: Sequence[float]) -> str:
    """`18 µs`, `71 to 85 µs`, `11 to 16 ms`."""
    factor, unit = (1e-3, "ms") if max(values_us) >= 1000 else (1.0, "µs")
    low, high = (f"{float(f'{value * factor:.2g}'):g}" for value in (min(values_us), max(values_us)))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
