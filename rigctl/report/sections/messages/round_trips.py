"""Round trips that are not of one kind: waits of 40 and 200 ms, two peaks; with the counters that show why, if any do.

Linux delays an acknowledgement by 40 ms at first (TCP_DELACK_MIN), and waits 200 ms at least before it sends again what
was not acknowledged (TCP_RTO_MIN, RFC 6298).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.model.histogram import count_between, peaks_ns
from rigctl.report.sections.messages.table import Messages
from rigctl.report.text import listed, plural
from rigctl.units import format_bytes

_MS: Final = 1e6
DELAYED_MS: Final = (36.0, 50.0)
TIMEOUT_MS: Final = (190.0, 260.0)
USUAL_SHARE: Final = 0.5
"""Waits are worth a word where the usual round trip is below this share of them."""


def trip_words(results: Sequence[Messages]) -> list[str]:
    """What is said of such round trips; nothing of a blast."""
    return [*_wait_words(results), *_peak_words(results)]


def _wait_words(results: Sequence[Messages]) -> Iterator[str]:
    for one in results:
        usual_us = one.rtt_us(50)
        if usual_us is None:
            continue
        for (low_ms, high_ms), name in ((DELAYED_MS, "40 ms"), (TIMEOUT_MS, "200 ms")):
            count = count_between(one.trips, low_ms * _MS, high_ms * _MS)
            if count and usual_us * 1e3 < USUAL_SHARE * low_ms * _MS:
                trips = f"{plural(count, 'round trip')} of size {format_bytes(one.size)}"
                yield f"{trips} took about {name}: {_why(one, name)}."


def _why(one: Messages, name: str) -> str:
    if name == "200 ms" and one.again:
        return f"{plural(one.again, 'segment')} were sent again, after TCP's least timeout"
    if name == "40 ms" and one.again == 0 and one.nodelay is False:
        return (
            "no segment was sent again, and TCP_NODELAY was off, so that the end of a message may wait for a delayed "
            "acknowledgement; nodelay: true would show it"
        )
    return "why is not known"


def _peak_words(results: Sequence[Messages]) -> Iterator[str]:
    """One sentence for all sizes: where their peaks are, and what is not known of them."""
    found = [(one, peaks) for one in results if len(peaks := peaks_ns(one.trips)) > 1]
    if not found:
        return
    sizes = [format_bytes(one.size) for one, _ in found]
    low, high = ([peaks[at] / 1000 for _, peaks in found] for at in (0, -1))
    several = len(found) > 1
    lowest, highest = _range(low), _range(high)
    yield (
        f"Round trips of size{'s' if several else ''} {listed(sizes)} gather around two times, about {lowest} and "
        f"{highest} µs: why is not known. busy_poll: true would tell whether it is a sleeping processor that wakes."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"
