"""The measurement interval: the time during which all flows ran, to which raw counters are cut.

Agents report cumulative counters with their times; nothing is omitted inside them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rigctl.records import Flow, Series, Side


@dataclass(frozen=True, slots=True)
class CommonWindow:
    """From `start_ns` to `end_ns` every flow ran. `skew_ns` is the spread of the first-byte times."""

    start_ns: int
    end_ns: int
    skew_ns: int

    @property
    def length_s(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9


def common_window(flows: Sequence[Flow], omit_s: float, bulk_ns: int, planned_end_ns: int) -> CommonWindow | None:
    """The window [latest first byte + omit, earliest end] over the *receivers* of `flows`.

    After its first byte every flow waits until `bulk_ns`, so that none bursts before all have begun: that wait is no
    part of the window, which never begins before `bulk_ns` + omit.
    What is still in the queues when the senders stop is not counted: the window ends at `planned_end_ns` at the latest.
    `None` when some flow moved no byte, or when nothing is left after the omitted start.
    """
    firsts: list[int] = []
    lasts: list[int] = []
    for flow in flows:
        side = flow.receiver
        if side is None or side.first_byte_ns is None or side.last_byte_ns is None:
            return None
        firsts.append(side.first_byte_ns)
        lasts.append(side.last_byte_ns)
    if not firsts:
        return None
    start_ns = max(*firsts, bulk_ns) + round(omit_s * 1e9)
    end_ns = min(*lasts, planned_end_ns)
    return CommonWindow(start_ns, end_ns, max(firsts) - min(firsts)) if end_ns > start_ns else None


def bytes_at(side: Side, t_ns: int) -> float:
    """Bytes counted up to `t_ns`: linear between samples, exact at the first and the last byte."""
    if side.first_byte_ns is None or side.last_byte_ns is None or t_ns <= side.first_byte_ns:
        return 0.0
    if t_ns >= side.last_byte_ns:
        return float(side.bytes)
    times, counts = side.series.columns.get("t_ns", []), side.series.columns.get("bytes", [])
    # Samples before the first byte or after the last add nothing to these two.
    low = bisect_right(times, side.first_byte_ns)
    high = bisect_left(times, side.last_byte_ns)
    after = bisect_left(times, t_ns, low, high)
    t0, b0 = (times[after - 1], counts[after - 1]) if after > low else (side.first_byte_ns, 0)
    t1, b1 = (times[after], counts[after]) if after < high else (side.last_byte_ns, side.bytes)
    return b0 + (b1 - b0) * (t_ns - t0) / (t1 - t0) if t1 > t0 else float(b1)


def counter_between(series: Series, name: str, start_ns: int, end_ns: int, total: int | None) -> int | None:
    """How far the counter `name` rose between the last sample up to `start_ns` and the first from `end_ns` on.

    `total`, the value when the flow ended, stands in where no sample is late enough. `None`: the counter is unknown.
    """
    times, counts = series.columns.get("t_ns", []), series.columns.get(name, [])
    if total is None:
        return None
    if not counts:
        return total
    before = bisect_right(times, start_ns) - 1
    after = bisect_left(times, end_ns)
    return (counts[after] if after < len(counts) else total) - (counts[before] if before >= 0 else 0)


def cut(flow: Flow, window: CommonWindow) -> Flow:
    """`flow` with `bytes` (received) and `retransmits` counted within `window` only."""
    received = None
    if flow.receiver is not None:
        received = round(bytes_at(flow.receiver, window.end_ns) - bytes_at(flow.receiver, window.start_ns))
    again = None
    if flow.sender is not None:
        again = counter_between(
            flow.sender.series, "retransmits", window.start_ns, window.end_ns, flow.sender.tcp.retransmits
        )
    return replace(flow, bytes=received, retransmits=again)
