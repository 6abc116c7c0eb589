"""The buffer of a port, from bursts of frames that come to it faster than its link carries them (RFC 9004, RFC 8239).

What came to a port and has not left it is in its buffer. While a burst of N frames comes, in the time from its first
frame to its last, the port passes on some; N less these were in the buffer at its end, which is N × (1 - drain ÷
arrival). So a burst without loss shows the least size of the buffer, and a burst that lost frames, as it filled the
buffer, the size: the frames that arrived at the receiver less those that the port passed on while the burst came.

Several senders need not begin and end together. Then only the time counts in which they together are faster than the
port drains; what comes before it and after it passes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Final

from rigctl.base.values import group_by
from rigctl.records import Cell, Flow, Side
from rigctl.settings import INTERVAL, LENGTH
from rigctl.settings.traffic import MAX_BURST, MAX_INTERVAL_MS

_LEAST_MS: Final = 100
_TIMES: Final = 2
"""A port has so many times as long as its link needs for a burst: what it dropped of the burst it need not send."""
_LEAST_BURSTS: Final = 5
"""Bursts of a trial in a search, at least."""
_MOSTLY: Final = 0.9
"""Share of the time of a burst for which senders that do not begin and end together must fill the port."""
_CLEARLY: Final = 1.02
"""Bursts without loss must have come by so much faster than the port drains, beyond the error of both rates."""


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst of all senders to a port: frames sent and received, and the times from the first to the last in ns.

    A time is None if it is unknown, or if there were fewer than two frames. `begin_ns` is when the first came, on the
    controller's clock, `over_ns` the time in which frames came faster than the port drains, `over` how many came in
    this time, `busy_ns` the time in which they came about as fast or faster; None if they never came faster.
    """

    sent: int
    received: int
    came_ns: float | None
    left_ns: float | None
    begin_ns: float | None = None
    over_ns: float | None = None
    over: float | None = None
    busy_ns: float | None = None

    @property
    def lossy(self) -> bool:
        return self.received < self.sent


@dataclass(frozen=True, slots=True)
class PortBursts:
    """The bursts to the port of one receiver. Rates are in frames/s, sizes of the buffer in frames; None if unknown.

    `full` is the size that the bursts with loss filled, `least` the part that those without loss needed, `passed` what
    the port passed on while a burst came.
    """

    bursts: tuple[Burst, ...]
    flows: int = 1
    arrival: float | None = None
    drain: float | None = None
    full: float | None = None
    least: float | None = None
    passed: float | None = None

    @property
    def longest(self) -> float | None:
        """Return the frames of the longest burst that the buffer holds, by those with loss; None if unknown."""
        if self.full is None or self.arrival is None or self.drain is None or self.arrival <= self.drain:
            return None
        return self.full / (1 - self.drain / self.arrival)

    @property
    def lossless(self) -> int:
        return sum(not burst.lossy for burst in self.bursts)


def drained_ms(cell: Cell) -> int:
    """Return the time between two bursts in ms, in which the ports surely drain."""
    length = cell[LENGTH]
    if cell[INTERVAL] is not None:
        return cell[INTERVAL] or 0
    frames = (length if isinstance(length, int) else 1) * _flows_at_once(cell)
    return min(MAX_INTERVAL_MS, max(_LEAST_MS, math.ceil(_TIMES * frames * (cell.frame_ns or 0) / 1e6)))


def longest_in_time(cell: Cell) -> int:
    """Return the length of the longest bursts of which a test can send a few, each with time to drain; at least 1."""
    each_ns = _TIMES * (cell.frame_ns or 0) * _flows_at_once(cell)
    most_ms = min(MAX_INTERVAL_MS, 1000 * cell.sending_s / _LEAST_BURSTS)
    return max(1, int(most_ms * 1e6 / each_ns)) if each_ns and cell[INTERVAL] is None else MAX_BURST


def _flows_at_once(cell: Cell) -> int:
    """Return how many flows send to one receiver at once."""
    together = Counter(stream.receiver for stream in cell.streams)
    return cell.parallel * max(together.values())


@dataclass(frozen=True, slots=True)
class _Rows:
    """The bursts at one end of a flow: datagrams of each, when the first came or left, and the time to the last."""

    counts: Sequence[int]
    firsts_ns: Sequence[int]
    spans_ns: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a burst that one flow sent: frames, and the times of the first and the last."""

    frames: int
    first_ns: float
    last_ns: float

    @property
    def rate(self) -> float:
        return (self.frames - 1) / (self.last_ns - self.first_ns)

    def within(self, begin_ns: float, end_ns: float) -> float:
        """Return how many of the frames, which are equally far apart, came in this time."""
        shared_ns = max(0.0, min(end_ns, self.last_ns) - max(begin_ns, self.first_ns))
        return self.frames * shared_ns / (self.last_ns - self.first_ns)


def port_bursts(flows: Sequence[Flow], size: int, wire_bits: int, links_bps: Mapping[str, int | None]) -> PortBursts:
    """Return the bursts of all flows to one receiver. `size`: payload of a datagram; `wire_bits`: bits of its frame.

    Rates of links bound what is measured: a kernel may pass frames to its card faster than the card sends them, and a
    shaper may let a few frames pass at once.
    """
    ends = [(_rows(flow.sender, size), _rows(flow.receiver, size)) for flow in flows]
    known = [(sent, came) for sent, came in ends if sent is not None and came is not None]
    if not flows or len(known) < len(flows):
        return PortBursts((), len(flows))
    lengths = [max(sent.counts, default=0) for sent, _ in known]
    whole = [
        number
        for number in range(min(len(sent.counts) for sent, _ in known))
        if all(0 < length == sent.counts[number] for (sent, _), length in zip(known, lengths, strict=True))
    ]
    senders = [flow.stream.sender for flow in flows]
    parts = [_parts([sent for sent, _ in known], number, senders, wire_bits, links_bps) for number in whole]
    receiver_bps = links_bps.get(flows[0].stream.receiver)
    bursts = [
        _burst(own, [came for _, came in known], number, sum(lengths), wire_bits, receiver_bps)
        for own, number in zip(parts, whole, strict=True)
    ]
    return _judged(bursts, parts, len(flows), receiver_bps / wire_bits / 1e9 if receiver_bps else None)


def overlap(ports: Sequence[PortBursts]) -> float | None:
    """Return in which share of the shortest burst bursts came to all ports at once; the median. None of one port."""
    if len(ports) < 2:
        return None
    return _middle(_shared(own) for burst in ports[0].bursts if (own := list(_at_the_time_of(burst, ports))))


def _at_the_time_of(burst: Burst, ports: Sequence[PortBursts]) -> Iterator[tuple[float, float]]:
    """Yield begin and end of the burst to each port that began closest to `burst`; nothing if a time is unknown."""
    timed = [
        [(one.begin_ns, one.begin_ns + one.came_ns) for one in port.bursts if one.begin_ns is not None and one.came_ns]
        for port in ports
    ]
    begin_ns = burst.begin_ns
    if begin_ns is not None and all(timed):
        yield from (min(own, key=lambda ends: abs(ends[0] - begin_ns)) for own in timed)


def _shared(spans: Sequence[tuple[float, float]]) -> float:
    shared_ns = min(end for _, end in spans) - max(begin for begin, _ in spans)
    return max(0.0, shared_ns) / min(end - begin for begin, end in spans)


def _rows(side: Side | None, size: int) -> _Rows | None:
    columns = side.series.columns if side is not None else {}
    if not {"t_ns", "bytes", "span_ns"} <= columns.keys():
        return None
    totals = [count // size for count in columns["bytes"]]
    return _Rows([after - before for before, after in pairwise([0, *totals])], columns["t_ns"], columns["span_ns"])


def _parts(
    sent: Sequence[_Rows], number: int, senders: Sequence[str], wire_bits: int, links_bps: Mapping[str, int | None]
) -> list[_Part] | None:
    """Return what each flow sent of a burst, not faster than its sender's link; None if a time is unknown."""
    if any(rows.counts[number] < 2 or rows.spans_ns[number] <= 0 for rows in sent):
        return None
    parts = []
    for sender, own in group_by(zip(senders, sent, strict=True), lambda each: each[0]).items():
        rows = [one for _, one in own]
        first_ns = min(one.firsts_ns[number] for one in rows)
        took_ns = max(one.firsts_ns[number] + one.spans_ns[number] for one in rows) - first_ns
        slower = max(1.0, _link_ns(sum(one.counts[number] for one in rows), wire_bits, links_bps.get(sender)) / took_ns)
        for one in rows:
            begin_ns = first_ns + (one.firsts_ns[number] - first_ns) * slower
            parts.append(_Part(one.counts[number], begin_ns, begin_ns + one.spans_ns[number] * slower))
    return parts


def _link_ns(frames: int, wire_bits: int, rate_bps: int | None) -> float:
    """Return the least time from the first of some frames to the last on a link; 0 if its rate is unknown."""
    return (frames - 1) * wire_bits * 1e9 / rate_bps if rate_bps else 0.0


def _burst(
    parts: Sequence[_Part] | None,
    received: Sequence[_Rows],
    number: int,
    sent: int,
    wire_bits: int,
    receiver_bps: int | None,
) -> Burst:
    came = [rows for rows in received if number < len(rows.counts) and rows.counts[number] > 0]
    count = sum(rows.counts[number] for rows in came)
    left_ns: float = 0.0
    if count > 1:
        first_ns = min(rows.firsts_ns[number] for rows in came)
        left_ns = max(rows.firsts_ns[number] + rows.spans_ns[number] for rows in came) - first_ns
    begin_ns = min(part.first_ns for part in parts) if parts else None
    came_ns = max(part.last_ns for part in parts) - begin_ns if parts and begin_ns is not None else None
    slowest_ns = _link_ns(count, wire_bits, receiver_bps)
    return Burst(sent, count, came_ns, max(left_ns, slowest_ns) if left_ns > 0 else None, begin_ns)


def _judged(
    bursts: Sequence[Burst], parts: Sequence[Sequence[_Part] | None], flows: int, link: float | None
) -> PortBursts:
    """Return the bursts with what follows from them. `link`: frames per ns that the link of the receiver carries."""
    lossy = [burst for burst in bursts if burst.lossy]
    drain = _middle((burst.received - 1) / burst.left_ns for burst in lossy or bursts if burst.left_ns)
    over = _with_overloads(bursts, parts, drain)
    shares = (burst.busy_ns / burst.came_ns for burst in over if burst.busy_ns is not None and burst.came_ns)
    if (_middle(shares) or 1.0) < _MOSTLY:  # the port did not drain all the time at its full rate
        drain = link
        over = _with_overloads(bursts, parts, drain)
    arrival = _middle((burst.over - flows) / burst.over_ns for burst in over if burst.over_ns and burst.over)
    slow = _middle((burst.sent - 1) / burst.came_ns for burst in over if burst.came_ns)
    arrival = slow if arrival is None else arrival
    if drain is None or arrival is None:
        return PortBursts(over, flows, _per_s(arrival), _per_s(drain))
    full = _middle(burst.received - burst.sent + _stored(burst, drain) for burst in over if burst.lossy and burst.over)
    least = _middle(_stored(burst, drain) for burst in over if not burst.lossy and burst.over)
    return PortBursts(
        over,
        flows,
        _per_s(arrival),
        _per_s(drain),
        full if full is not None and full > 0 else None,
        least if least is not None and least > 0 and arrival > _CLEARLY * drain else None,
        _middle(drain * burst.over_ns for burst in over if burst.over_ns),
    )


def _with_overloads(
    bursts: Sequence[Burst], parts: Sequence[Sequence[_Part] | None], drain: float | None
) -> tuple[Burst, ...]:
    return tuple(
        burst if own is None or drain is None else _with_overload(burst, own, drain)
        for burst, own in zip(bursts, parts, strict=True)
    )


def _with_overload(burst: Burst, parts: Sequence[_Part], drain: float) -> Burst:
    """Return a burst with the time in which its frames came faster than `drain`, in frames per ns."""
    moments = sorted({moment for part in parts for moment in (part.first_ns, part.last_ns)})
    rates = [
        (begin, end, sum(part.rate for part in parts if part.first_ns <= begin and part.last_ns >= end))
        for begin, end in pairwise(moments)
    ]
    full = [(begin, end) for begin, end, rate in rates if rate > drain]
    if not full:
        return burst
    busy_ns = sum(end - begin for begin, end, rate in rates if rate > _MOSTLY * drain)
    begin_ns, end_ns = full[0][0], full[-1][1]
    over = sum(part.within(begin_ns, end_ns) for part in parts)
    return replace(burst, over_ns=end_ns - begin_ns, over=over, busy_ns=busy_ns)


def _stored(burst: Burst, drain: float) -> float:
    """Return how many frames of a burst had to be in the buffer at the end of the overload, if none was lost."""
    return (burst.over or 0.0) - drain * (burst.over_ns or 0.0)


def _middle(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


def _per_s(per_ns: float | None) -> float | None:
    return None if per_ns is None else per_ns * 1e9
