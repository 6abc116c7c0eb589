"""Evidence for the rules that name a stream's limit (`rigctl.limits.rules`), and the limit of a test."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import sqrt
from statistics import fmean, median, mode, quantiles
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rigctl.base.values import divide, least, mean_of_all, total
from rigctl.limits.ceilings import LINE_RATE, losses_allow_mbps, reaches, window_allows_bps
from rigctl.limits.hosts import ProcessorUse
from rigctl.limits.kinds import EvidenceKind, Kinds, kinds_of_flows
from rigctl.limits.limit import BY_SHARED_LINK
from rigctl.limits.links import DataPath, Links, LinkShares
from rigctl.limits.rules import Diagnosis, Evidence, diagnose
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.model.window import CommonWindow, sum_over_flows
from rigctl.records import Flow, RunInfo, Side
from rigctl.settings import CONGESTION, WINDOW

_NOT_BY_LOSS: Final = ("bbr", "cdg", "nv", "vegas")
"""Name prefixes of congestion controls that do not halve their window at each loss."""
_INTERVAL_S: Final = 0.1
_LEAST_INTERVALS: Final = 8
"""Least number of intervals from which a variance is computed."""
_SUMMED: Final = 4
"""Number of consecutive intervals in each sum of goodput, for a ratio of variances."""
_LEAST_SUMS: Final = 4
"""Least number of sums without overlap from which a ratio of variances is computed."""
Values = NDArray[np.float64]
Found = dict[str, Any]
"""Values of some fields of an `Evidence` (`rigctl.limits.rules`), by name."""


def of_flows(
    flows: Sequence[Flow],
    goodput_mbps: float | None,
    window: CommonWindow | None = None,
    known_rtt_s: float | None = None,
) -> Found:
    """Return the evidence from the flows of one stream, which together achieved `goodput_mbps` within `window`.

    `known_rtt_s` is the round-trip time to which the links of a virtual rig are shaped.
    """
    senders = [flow.sender for flow in flows if flow.sender is not None]
    seen = Found(goodput_mbps=goodput_mbps)
    if not flows or len(senders) < len(flows):
        return seen
    if any(side.datagrams is not None for side in senders):
        return seen | _datagrams(flows, window)
    disks = Found(
        disk_read=mean_of_all(_disk_share(flow.sender) for flow in flows),
        disk_write=mean_of_all(_disk_share(flow.receiver) for flow in flows),
    )
    if any(side.subflows for side in senders):  # windows, queues and losses of subflows are unknown
        return seen | disks
    rtts = [samples(side, "rtt_us", window) for side in senders]
    seen |= _round_trips(senders, [*chain(*rtts)], known_rtt_s)
    return (
        seen
        | _windows(flows, senders, rtts, seen, window)
        | _losses(flows, senders, seen, window)
        | _marks(flows, senders, rtts, window)
        | disks
    )


def samples(side: Side, name: str, window: CommonWindow | None) -> list[int]:
    """Return the samples of a value, such as "rtt_us", within `window` (all if None). Zeros are left out."""
    columns = side.series.columns
    values, times = columns.get(name, []), columns.get("t_ns", [])
    if window is not None and len(times) == len(values):
        values = values[bisect_left(times, window.start_ns) : bisect_right(times, window.end_ns)]
    return values if min(values, default=1) > 0 else [value for value in values if value > 0]


def _held_us(side: Side) -> int | None:
    """Return for how many microseconds a full receive window or send buffer held back a sender; None if unknown."""
    return total((side.tcp.rwnd_limited_us, side.tcp.sndbuf_limited_us))


def _busy_share(senders: Sequence[Side], held: Callable[[Side], int | None]) -> float | None:
    shares = [waited / side.tcp.busy_us for side in senders if side.tcp.busy_us and (waited := held(side)) is not None]
    return fmean(shares) if shares and len(shares) == len(senders) else None


def _advertised_bytes(sender: Side, window: CommonWindow | None) -> float | None:
    """Return the window in bytes that a receiver advertised (tcpi_snd_wnd): the median over samples of the flow.

    Without samples, return the last value or None. The window is then wide open, as nothing is in flight.
    """
    sampled = samples(sender, "advertised_window", window)
    return median(sampled) if sampled else sender.tcp.advertised_window_bytes


def _windows(
    flows: Sequence[Flow],
    senders: Sequence[Side],
    sampled: Sequence[Sequence[int]],
    seen: Found,
    window: CommonWindow | None,
) -> Found:
    advertised = [_advertised_bytes(side, window) for side in senders]
    most, rtt_min_ms, allowed_mbps = mean_of_all(advertised), seen.get("rtt_min_ms"), None
    if most and rtt_min_ms:
        mss = least(side.tcp.mss for side in senders)
        allowed_mbps = len(flows) * window_allows_bps(most, mss, 1e3 * rtt_min_ms) / 1e6
    shares = []
    for flow, side, rtts, own in zip(flows, senders, sampled, advertised, strict=True):
        bps = flow.bytes * 8 / window.length_s if window and flow.bytes else None
        cwnds = samples(side, "cwnd", window)
        in_flight = bps * median(rtts) / 8e6 if bps and rtts else None
        cwnd = median(cwnds) * side.tcp.mss if cwnds and side.tcp.mss else None
        # The rule on send buffers is for Linux, which charges its bookkeeping to the buffer and reports twice its size.
        sndbuf = side.sndbuf_bytes if side.buffers_doubled else None
        shares.append([in_flight / room if in_flight and room else None for room in (own, sndbuf, cwnd)])
    of_window, of_sndbuf, of_cwnd = (mean_of_all(column) for column in zip(*shares, strict=True))
    return Found(
        window_bytes=most,
        window_share=divide(seen["goodput_mbps"], allowed_mbps),
        sndbuf_bytes=least(side.sndbuf_bytes for side in senders),
        rcvbuf_bytes=least(flow.receiver.rcvbuf_bytes for flow in flows if flow.receiver is not None),
        send_window_bytes=least(side[WINDOW] for side in senders),
        receive_window_bytes=least(flow.receiver[WINDOW] for flow in flows if flow.receiver is not None),
        in_flight_share=of_window,
        in_flight_sndbuf=of_sndbuf,
        in_flight_cwnd=of_cwnd,
        held_share=_busy_share(senders, _held_us),
        sndbuf_share=_busy_share(senders, lambda side: side.tcp.sndbuf_limited_us),
        sending_share=mean_of_all(_sending(side) for side in senders),
    )


def _sending(side: Side) -> float | None:
    """Return the share of time in which a sender had data and waited for no window or buffer; None if unknown."""
    waited_us, elapsed_ns = _held_us(side), side.elapsed_ns
    if side.tcp.busy_us is None or waited_us is None or elapsed_ns is None or elapsed_ns <= 0:
        return None
    return (side.tcp.busy_us - waited_us) * 1e3 / elapsed_ns


def _round_trips(senders: Sequence[Side], sampled: Sequence[int], known_rtt_s: float | None) -> Found:
    rtt_min_us = least(side.tcp.rtt_min_us for side in senders if side.tcp.rtt_min_us)
    last_us = [side.tcp.rtt_us for side in senders if side.tcp.rtt_us]
    rtt_us = median(sampled or last_us) if sampled or last_us else None
    seen = Found(rtt_min_ms=divide(rtt_min_us, 1e3), rtt_ms=divide(rtt_us, 1e3))
    if rtt_min_us is None or rtt_us is None or not sampled:
        return seen
    # The relay of a virtual rig may let one frame pass early, so the least measured round trip may be too short.
    empty_us = max(rtt_min_us, 1e6 * (known_rtt_s or 0.0))
    low_us = quantiles(sampled, n=10, method="inclusive")[0] if len(sampled) > 1 else sampled[0]
    return seen | Found(
        rtt_growth=rtt_us / empty_us,
        rtt_added_ms=(rtt_us - empty_us) / 1e3,
        queue_growth=low_us / empty_us,
        queue_ms=(low_us - empty_us) / 1e3,
    )


def _lost_share(flows: Sequence[Flow], senders: Sequence[Side]) -> float | None:
    """Return the share of segments of payload that were sent again; None if unknown."""
    again = total(flow.retransmits for flow in flows)
    segments = total(divide(flow.bytes, side.tcp.mss) for flow, side in zip(flows, senders, strict=True))
    return 0.0 if again == 0 else divide(again, segments)


def _losses(flows: Sequence[Flow], senders: Sequence[Side], seen: Found, window: CommonWindow | None) -> Found:
    halves = not any((side[CONGESTION] or "bbr").startswith(_NOT_BY_LOSS) for side in senders)
    lost_share, mss = _lost_share(flows, senders), least(side.tcp.mss for side in senders)
    allowed_mbps = losses_allow_mbps(mss, seen.get("rtt_ms"), lost_share)
    found = Found(halves=halves, lost_share=lost_share)
    if allowed_mbps is not None and seen["goodput_mbps"]:
        found["loss_allows"] = allowed_mbps * len(flows) / seen["goodput_mbps"]
    summed = _rates(flows, window)
    if window is None or summed is None:
        return found
    ends, rates = summed
    mean, variance = float(rates.mean()), float(rates.var())
    variation = sqrt(variance) / mean
    lost = _losses_in(senders, ends, window)
    if not lost.sum():
        return found | {"variation": variation}
    clumps = float(lost.var() / lost.mean())
    events = float(lost.sum()) / max(1.0, clumps)
    return found | Found(
        variation=variation,
        unevenness=variation * max(len(flows), events / len(lost)) ** 0.5,
        loss_clumps=clumps,
        loss_events=events,
        variance_ratio=_variance_ratio(rates, mean, variance),
    )


def _marks(
    flows: Sequence[Flow], senders: Sequence[Side], sampled: Sequence[Sequence[int]], window: CommonWindow | None
) -> Found:
    """Return the evidence from congestion marks (ECN).

    A receiver echoes a mark for a whole round trip (RFC 3168). So the sender cuts its window once for all
    echoes of one round trip.
    """
    marked, delivered = (total(getattr(side.tcp, name) for side in senders) for name in ("delivered_ce", "delivered"))
    if marked is None or not delivered:
        return {}
    share = marked / delivered
    in_flight = mean_of_all(
        flow.bytes / window.length_s * median(rtts) / 1e6 / side.tcp.mss
        if window and flow.bytes and rtts and side.tcp.mss
        else None
        for flow, side, rtts in zip(flows, senders, sampled, strict=True)
    )
    if not share or in_flight is None:
        return Found(marked_share=share)
    each_cut = share / max(1.0, in_flight)
    return Found(marked_share=share, marks_allow=sqrt(1.5 / each_cut) / max(1.0, in_flight))


def _variance_ratio(rates: Values, mean: float, variance: float) -> float | None:
    """Return the variance of sums of 4 consecutive rates ÷ its value for independent rates; None for too few rates.

    The ratio is 1 for independent rates, and lower if low rates follow high rates (Lo and MacKinlay 1988).
    """
    if len(rates) < _SUMMED * _LEAST_SUMS:
        return None
    deviations = np.concatenate(([0.0], (rates - mean).cumsum()))
    summed = deviations[_SUMMED:] - deviations[:-_SUMMED]
    return float((summed * summed).mean() / (_SUMMED * (variance or 1.0)) / (1 - _SUMMED / len(rates)))


def _rates(flows: Sequence[Flow], window: CommonWindow | None) -> tuple[Values, Values] | None:
    """Return the ends of consecutive intervals (s) and the goodput in each (bit/s); None for too few samples."""
    sampled = [samples(flow.receiver, "t_ns", window) if flow.receiver else [] for flow in flows]
    if window is None or min(map(len, sampled), default=0) < _LEAST_INTERVALS:
        return None
    summed = sum_over_flows(flows, window, max(_INTERVAL_S, window.length_s / min(map(len, sampled))))
    return summed if summed is not None and len(summed[1]) >= _LEAST_INTERVALS and summed[1].sum() else None


def _losses_in(senders: Sequence[Side], ends: Values, window: CommonWindow) -> Values:
    edges = np.concatenate(([0.0], ends))
    lost = np.zeros(len(ends))
    for side in senders:
        times, counts = (side.series.columns.get(name, []) for name in ("t_ns", "retransmits"))
        if times and len(times) == len(counts):
            at_s = (np.array(times, dtype=np.int64) - window.start_ns) / 1e9
            lost += np.diff(np.interp(edges, at_s, counts))
    return lost


def _datagrams(flows: Sequence[Flow], window: CommonWindow | None) -> Found:
    receivers = [flow.receiver for flow in flows]
    sent = total(flow.sender.datagrams.count if flow.sender and flow.sender.datagrams else None for flow in flows)
    counted = [side.datagrams if side else None for side in receivers]
    came = total(counts.count if counts else None for counts in counted)
    overflow = total(counts.overflow if counts else None for counts in counted)
    rcvbuf = Found(rcvbuf_bytes=least(side.rcvbuf_bytes for side in receivers if side is not None))
    if not sent or not came:
        return rcvbuf
    lost = max(0, sent - came)
    seen = rcvbuf | Found(
        lost_share=lost / sent, overflow_share=overflow / lost if overflow is not None and lost else None
    )
    summed = _rates(flows, window)
    # FreeBSD and Windows do not count what a full receive buffer drops: losses there tell nothing of the path.
    uncounted = lost and overflow is None and any(side and not side.buffers_doubled for side in receivers)
    if summed is None or uncounted:
        return seen
    ends, rates = summed
    size = (total(side.bytes if side else None for side in receivers) or 0) / came
    passed = rates * (ends[1] - ends[0]) / 8 / size
    # If n datagrams are lost independently with probability p, the variance of the losses is n p (1 - p) (binomial).
    at_random = float(passed.mean()) * lost / sent
    evenness = float(passed.var()) / at_random if at_random else None
    return seen | Found(variation=float(rates.std() / rates.mean()), datagram_evenness=evenness)


def _disk_share(side: Side | None) -> float | None:
    if side is None or side.disk is None or side.disk.disk_us is None:
        return None
    return side.disk.disk_us * 1e3 / side.elapsed_ns if side.elapsed_ns and side.elapsed_ns > 0 else None


_LINKS: Final = {
    **dict.fromkeys((PointKind.NIC_OUT, PointKind.PORT_IN), "from"),
    **dict.fromkeys((PointKind.PORT_OUT, PointKind.NIC_IN), "to"),
}
"""Maps kinds of counting points to the first word of the link's name in `Links.of`; other kinds are on the trunk."""


def evidence(
    efficiency_share: float | None,
    goodput_mbps: float | None = None,
    asked_mbps: float | None = None,
    flows: Sequence[Flow] = (),
    busy: ProcessorUse | None = None,
    window: CommonWindow | None = None,
    known_rtt_s: float | None = None,
    beside: Found | None = None,
    searched: bool = False,
) -> Evidence:
    """Return all evidence on a stream. `goodput_mbps` and `asked_mbps` (requested) are sums over `flows`.

    `beside` has further fields of the evidence. `searched` says that a search, not the user, chose the rate.
    """
    found, named = beside or Found(), busy.limit if busy else None
    asked_share = divide(goodput_mbps, asked_mbps)
    seen = of_flows(flows, goodput_mbps, window, known_rtt_s)
    lost_share = seen.get("lost_share")
    passed = 1.0 - lost_share if lost_share is not None else None
    share = asked_share if asked_mbps else efficiency_share
    return Evidence(
        **seen,
        **found,
        **_kinds(flows, window, busy, efficiency_share, found)._asdict(),
        efficiency=efficiency_share,
        asked_share=None if searched else asked_share,
        sent_share=share / passed if share is not None and passed and seen.get("halves") is None else None,
        processors="others" if named == "unknown" else named,
        busy_pct=busy.highest_pct if busy and busy.is_known else None,
        others_pct=busy.others_pct if busy else None,
        agent_share=busy.agent_share if busy else None,
    )


def _kinds(
    flows: Sequence[Flow],
    window: CommonWindow | None,
    busy: ProcessorUse | None,
    efficiency: float | None,
    found: Found,
) -> Kinds:
    """Return the kinds of evidence that the nodes of a stream give, and those that they never give.

    Only agents read processors and counters, in the report of a node: what a report lacks, the node never gives.
    """
    if busy is None or not flows:
        return Kinds()
    subflows = any(side is not None and side.subflows for flow in flows for side in (flow.sender, flow.receiver))
    gives, lacks = frozenset[EvidenceKind](), frozenset[EvidenceKind]()
    if window is not None and not subflows and all(flow.sender is not None for flow in flows):
        sampled = all(flow.receiver and flow.receiver.series.columns.get("t_ns") for flow in flows)
        gives, lacks = kinds_of_flows(flows, sampled=busy.by_agents or sampled)
    processors = frozenset({EvidenceKind.PROCESSORS})
    if not busy.polls:  # while agents poll, busy processors are no evidence
        gives, lacks = (gives | processors, lacks) if busy.by_agents else (gives, lacks | processors)
    if None in (found.get("quota_sender"), found.get("quota_receiver")):
        lacks |= {EvidenceKind.QUOTAS}
    if efficiency is not None and found.get("other_share") is None:
        lacks |= {EvidenceKind.COUNTERS}
    return Kinds(gives, lacks)


_LEAST: Final = frozenset({"rtt_min_ms", "sndbuf_bytes", "rcvbuf_bytes", "send_window_bytes", "receive_window_bytes"})


def pool_evidence(several: Sequence[Evidence]) -> Evidence:
    """Return the evidence over repetitions: the mean of each number, the most frequent value of each text or flag.

    Of what is a least value in one repetition (`_LEAST`), the least is kept. A kind is given if one repetition gave it.
    """
    if len(several) == 1:
        return several[0]
    pooled: dict[str, Any] = {}
    for name, values in zip(Evidence._fields, zip(*several, strict=True), strict=True):
        known = [value for value in values if value is not None]
        if name in ("gives", "lacks"):
            pooled[name] = frozenset[EvidenceKind]().union(*values)
        elif known:
            combine = min if name in _LEAST else mode if isinstance(known[0], str | bool) else fmean
            pooled[name] = combine(known)
    pooled["lacks"] -= pooled["gives"]
    return Evidence(**pooled)


def combine(verdicts: Iterable[tuple[Diagnosis, float]], whole: Diagnosis | None = None) -> Diagnosis:
    """Return the verdict on a test from `verdicts` on its streams, each with the Mbit/s below the stream's ceiling.

    `whole`, the verdict on all streams together, is given if the streams fill their links. If the limits differ,
    a shared link or else `whole` is the limit; unknown if a stream lacks evidence, as its link may be a shared one.
    Without `whole`, the stream furthest below its ceiling decides.
    """
    given = list(verdicts)
    if whole is not None and len({verdict.limit for verdict, _ in given}) > 1:
        missing = next((verdict for verdict, _ in given if verdict.missing), whole)
        return next((verdict for verdict, _ in given if verdict.limit == BY_SHARED_LINK.word), missing)
    return max(given, key=lambda pair: pair[1])[0] if given else Diagnosis()


def limit_of_test(streams: Iterable[tuple[Evidence, Diagnosis]], efficiency_share: float | None) -> Diagnosis:
    """Return the limit of a test from its streams. `efficiency_share` is goodput ÷ ceiling of all streams together."""
    seen = []
    for own, verdict in streams:
        ceiling_mbps = own.goodput_mbps / own.efficiency if own.goodput_mbps and own.efficiency else 0.0
        seen.append((verdict, ceiling_mbps - (own.goodput_mbps or 0.0) if ceiling_mbps else 0.0))
    full = efficiency_share is not None and reaches(efficiency_share, LINE_RATE)
    whole = diagnose(Evidence(efficiency=efficiency_share)) if full and len(seen) > 1 else None
    return combine(seen, whole)


def other_traffic_found(
    info: RunInfo, path: DataPath, counted: Mapping[CountingPoint, float], links: Links, taken: LinkShares
) -> Found:
    """Return the evidence for the link of `path` that is fullest with other traffic; empty if no link has a counter.

    `counted` has the other traffic in Mbit/s at each interface or switch port. `taken` has the run's share of links.
    """
    best = Found()
    for link, rate_bps in links.of(path):
        kind = link.partition(" ")[0]
        own = {point: mbps for point, mbps in counted.items() if _LINKS.get(point.kind, "trunk") == kind}
        run_share = total(taken.get(link, (None,)))
        if not own or not rate_bps or run_share is None:
            continue
        point = max(own, key=lambda point: own[point])
        share = own[point] * 1e6 / rate_bps
        interface = None if point.ports else info.facts.get(point.owner, {}).get("interface")
        # The run alone may fill a link, so the link counts only if its counter shows other traffic.
        if not best or (share > 0 and share + run_share > best["link_share"]):
            best = Found(
                other_share=share,
                other_mbps=own[point],
                other_link=link,
                other_counter=f"{point.owner} {interface}" if interface else str(point),
                link_share=share + run_share,
            )
    return best
