"""The rules that name the limit of a stream from its evidence: the first rule that holds names the limit.

A rule is skipped if evidence that the rule needs is unknown. The verdict keeps the values that the rule used, so that
a reader can check them. Reasons: docs/decisions/0023.

Sources: window ÷ round trip, in-flight bytes (RFC 9293); Web100's triage by shares of time (Mathis et al., 2003);
pathdiag's model of a path; Flach et al., "An Internet-Wide Analysis of Traffic Policing" (2016), for the token bucket;
Lo and MacKinlay, "Stock Market Prices Do Not Follow Random Walks" (1988), for the ratio of variances.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, mode
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, TypeAlias

from rigctl.limits.ceilings import LINE_RATE, above_ceiling, reaches


class Evidence(NamedTuple):
    """Evidence on one stream, or the mean over its repetitions. A share is between 0 and 1; None if unknown."""

    goodput_mbps: float | None = None
    efficiency: float | None = None  # goodput ÷ ceiling
    asked_share: float | None = None  # goodput ÷ requested rate
    larger_frames: float | None = None  # ceiling with frames of the larger MTU of both ends ÷ ceiling
    shared_share: float | None = None  # share of a link that all pairs on this link took together
    shared_link: str | None = None
    beside_classes: bool | None = None  # True if other traffic classes were measured meanwhile
    other_share: float | None = None  # share of a link on the path that other traffic took, at least
    other_mbps: float | None = None  # rate of the other traffic that `other_counter` counted
    other_link: str | None = None
    other_counter: str | None = None  # node and interface, or switch port, that counted the other traffic
    link_share: float | None = None  # share of a link that the run and other traffic took together
    clamped_mss: float | None = None  # the MSS, if it is smaller than the MTUs of both ends allow
    window_bytes: float | None = None  # advertised window: the median over samples of each flow, mean over flows
    window_share: float | None = None  # goodput ÷ (flows × whole segments of `window_bytes` ÷ `rtt_min_ms`)
    sndbuf_bytes: float | None = None  # smallest send buffer that the kernel granted a flow
    rcvbuf_bytes: float | None = None  # smallest receive buffer
    send_window_bytes: float | None = None  # smallest window for which the send buffers have room
    receive_window_bytes: float | None = None  # smallest window for which the receive buffers have room
    in_flight_share: float | None = None  # goodput × round-trip time ÷ advertised window
    in_flight_sndbuf: float | None = None  # goodput × round-trip time ÷ send buffer
    in_flight_cwnd: float | None = None  # goodput × round-trip time ÷ congestion window
    held_share: float | None = None  # share of its busy time that the sender waited for window or buffer
    sndbuf_share: float | None = None  # share of its busy time that the sender waited for its send buffer
    sending_share: float | None = None  # share of time in which the sender had data and waited for no window or buffer
    rtt_min_ms: float | None = None  # least round-trip time that TCP measured on a flow, as the figure `rtt_min_us`
    rtt_ms: float | None = None  # median round-trip time while the stream sent; without samples that at the end
    # A queue is measured against the least round-trip time, or the delay of a virtual link if this is longer.
    rtt_growth: float | None = None  # median ÷ least round-trip time
    rtt_added_ms: float | None = None  # median - least round-trip time
    queue_growth: float | None = None  # first decile ÷ least round-trip time; above 1 if a queue nearly always stands
    queue_ms: float | None = None  # first decile of the round-trip time - least
    variation: float | None = None  # standard deviation ÷ mean of the goodput in bins of 0.1 s
    lost_share: float | None = None  # share of segments retransmitted, or of datagrams lost
    loss_allows: float | None = None  # goodput that losses allow (Mathis et al.) ÷ goodput
    marked_share: float | None = None  # share of segments acknowledged with the echo of a congestion mark (ECN)
    marks_allow: float | None = None  # goodput that marks allow (Mathis et al.) ÷ goodput
    unevenness: float | None = None  # variation × √n; n: number of flows, or of loss events in 0.1 s if larger
    loss_clumps: float | None = None  # variance ÷ mean of the losses in bins of 0.1 s; about 1 for random losses
    loss_events: float | None = None  # number of losses ÷ loss_clumps: about the number of clumps
    variance_ratio: float | None = None  # variance of goodput over 0.4 s ÷ its value if bins of 0.1 s were independent
    datagram_evenness: float | None = None  # variance of datagrams passed in 0.1 s ÷ its value if losses were random
    overflow_share: float | None = None  # share of lost datagrams dropped at the receiver's full socket buffer
    sent_share: float | None = None  # rate of sent datagrams ÷ requested rate, or ÷ ceiling if no rate was requested
    halves: bool | None = None  # True if the congestion control halves its window at a loss
    quota_sender: float | None = None  # share of time in which a CPU quota held back the sender's agent
    quota_receiver: float | None = None
    disk_read: float | None = None  # share of the sender's time that reading the disk took
    disk_write: float | None = None  # share of the receiver's time that writing the disk took
    processors: str | None = None  # busy with the run: `machine`, `sender` or `receiver`; with other programs: `others`
    busy_pct: float | None = None
    others_pct: float | None = None
    agent_share: float | None = None  # CPU time of the busier agent ÷ (elapsed time × its threads)


_LEAST: Final = frozenset({"rtt_min_ms", "sndbuf_bytes", "rcvbuf_bytes", "send_window_bytes", "receive_window_bytes"})


def pool_evidence(several: Sequence[Evidence]) -> Evidence:
    """Return the evidence over repetitions: the mean of each number, the most frequent value of each text or flag.

    Of what is a least value in one repetition (`_LEAST`), the least is kept.
    """
    pooled: dict[str, Any] = {}
    for name, values in zip(Evidence._fields, zip(*several, strict=True), strict=True):
        known = [value for value in values if value is not None]
        if known:
            combine = min if name in _LEAST else mode if isinstance(known[0], str | bool) else fmean
            pooled[name] = combine(known)
    return Evidence(**pooled)


_NEARLY: Final = 0.93  # from this share of the ceiling on, a standing queue is at the link, and its drops cost the rest
ALL: Final = 1.02  # goodput and lost data are at most this share of a link's ceiling if the link carried both
OTHERS: Final = 0.05  # least share of a link that is other traffic; retransmits and tunnel headers take less
# A link that seems fuller has a wrong rate or counter. Run and other traffic may exceed 1 together: other traffic is
# averaged over the whole repetition, the traffic of the run over the measurement interval.
_MOST_FULL: Final = 1.25
_BESIDE: Final = 0.8  # with other traffic, from this load of a link on, a full link, a shaper and losses look alike
_LARGER_FRAMES: Final = 1.02  # larger frames are advised if they raise the ceiling by at least 2 %

_HELD: Final = 1.1  # above this share of the requested rate, the rate is not the limit; short tests reach 1.05

_REACHED: Final = 0.9  # at this share of (window ÷ least round-trip time), the window is the limit even on a busy node
_IN_FLIGHT: Final = 0.85  # bytes in flight fill a window from this share on; segments are whole, some data are unread
_COUNTED: Final = 0.1  # a sender with a full window waits at least this share of its busy time; measured: 0.34 to 1
# Bytes in flight fill a send buffer from this share on, because Linux charges its bookkeeping to the buffer. Shares
# above 1 are usual, because the last write may exceed the buffer by a super-packet of 64 KB.
_BUFFERED: Final = 0.6
_OPEN: Final = 0.8  # up to this share in flight, a window or congestion window does not hold the flow back
_HALF: Final = 0.5

_EXHAUSTED: Final = 0.3  # an agent that a quota holds back for this share of time is the limit, even if its peer waits
_THROTTLED: Final = 0.1  # a quota that holds back an agent for a smaller share of time may be chance
_LITTLE_CPU: Final = 0.1  # an agent that needs only this share of a processor gets it although other programs run

_FLAT: Final = 1.3  # up to this multiple of the least round-trip time, no queue matters
_QUEUE_MS: Final = 1.0  # round trips that stay longer by this many ms show a queue, not only a batch of segments
_STEADY: Final = 0.1  # up to this `variation`, goodput is constant, as behind a shaper
_SHORT: Final = 1.1  # from this `queue_growth` on, a queue stands if goodput is _CONSTANT; bbr keeps queues so short
_CONSTANT: Final = 0.02  # up to this `variation`, a shaper is the limit even with a short queue or a full window
# A standing queue of 5 ms and three times the least round-trip time proves that its link is always busy. Then goodput
# may vary, as at the start of a short test, and losses are not the limit.
_DEEP_MS, _DEEP_GROWTH = 5.0, 3.0

_LOSSY: Final = 0.001
_EVEN: Final = 0.2  # random losses make the goodput of one flow vary by 20 %, of n flows by 20 % ÷ √n
_UNEVEN: Final = 0.3  # from this `unevenness` on, losses are surely random; between _EVEN and _UNEVEN, they may be
# Counted in bins of 0.1 s, random losses have a variance of about their mean (Poisson); by chance, it is at least 1.8
# times the mean in 3 of 1000 tests of 2.4 s. A token bucket that runs empty makes losses come in clumps.
_TOGETHER: Final = 1.8
_REGULATED: Final = 0.4  # up to this `variance_ratio`, a token bucket regulates goodput
_INDEPENDENT: Final = 0.75  # from this `variance_ratio` on, losses are random: a window grows slowly after a loss
_EVENTS: Final = 8  # with fewer clumps of losses, no one can tell whether the losses are random
_EXPLAINED: Final = (0.8, 1.5)  # goodput that random losses allow (Mathis et al.) ÷ goodput: 0.84 to 1.45 measured
_LEAST_ALLOWED: Final = 0.3  # below this `loss_allows`, losses did not cut the window
_LEAST_ALONE: Final = 0.5  # as _LEAST_ALLOWED, for a test too short to show clumps: each loss cuts the window
_MOST_ALLOWED: Final = 2.0  # above this `loss_allows`, losses do not explain the goodput
_EVEN_DATAGRAMS: Final = 0.4  # up to this `datagram_evenness`, datagrams pass at a constant rate; random losses give 1


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that can limit a test: name, phrase for headlines, meaning, and whether it is a fault of the rig."""

    word: str
    phrase: str
    meaning: str = ""
    is_fault: bool = False


LIMITS: Final[Mapping[str, Limit]] = {
    limit.word: limit
    for limit in (
        Limit("line-rate", "at line rate"),
        Limit("shared-link", "limited by a shared link"),
        Limit("other-traffic", "limited by other traffic", "traffic outside the run on the path", is_fault=True),
        Limit("path", "limited by the path", "a shaper or policer on the way", is_fault=True),
        Limit("window", "limited by the window"),
        Limit("loss", "limited by losses"),
        Limit("sender", "limited by the sender", "its processors or CPU quota", is_fault=True),
        Limit("receiver", "limited by the receiver", "its processors, CPU quota or socket buffer", is_fault=True),
        Limit("machine", "limited by processors", "the processors that all nodes of a virtual rig share"),
        Limit("disk", "limited by the disk", is_fault=True),
        Limit("rate", "as requested", "the requested rate was achieved"),
        Limit("mtu", "limited by the mtu", "frames smaller than the links allow", is_fault=True),
        Limit("unknown", ""),
    )
}
"""All limits by their word, in the order in which pages explain them. A new limit also needs a rule in `RULES`."""

KnownEvidence: TypeAlias = SimpleNamespace
"""Evidence as rules read it: without type hints, because no value that a rule needs is None."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule names `limit` if `holds` returns True. It is skipped if a field of `Evidence` in `needs` is None."""

    limit: str
    name: str
    needs: tuple[str, ...]
    holds: Callable[[KnownEvidence], bool]
    cause: str | None = None  # detail of the limit, such as "policer"


def _is_at_line_rate(seen: KnownEvidence) -> bool:
    return reaches(seen.efficiency, LINE_RATE)


def _is_as_requested(seen: KnownEvidence) -> bool:
    return reaches(seen.asked_share, LINE_RATE) and bool(seen.asked_share <= _HELD)


def _small_frames(seen: KnownEvidence) -> bool:
    return _is_at_line_rate(seen) and bool(seen.larger_frames >= _LARGER_FRAMES)


def _is_link_full(seen: KnownEvidence) -> bool:
    """Tell whether a link is nearly full with this stream, with all pairs on a link, or with other traffic."""
    return any(reaches(share or 0.0, _NEARLY) for share in (seen.efficiency, seen.shared_share, seen.link_share))


def _has_other_traffic(seen: KnownEvidence, least: float) -> bool:
    """Tell whether there is other traffic that, with the run's, takes at least the share `least` of the link."""
    return bool(seen.other_share >= OTHERS and least <= seen.link_share <= _MOST_FULL)


def _is_buffered(seen: KnownEvidence) -> bool:
    others_open = seen.in_flight_cwnd <= _OPEN and seen.in_flight_share <= _OPEN
    return bool(others_open and seen.in_flight_sndbuf >= _BUFFERED)


def _is_filled(seen: KnownEvidence) -> bool:
    """Tell whether bytes in flight fill the window, and whether senders waited for it, if the kernel reports that."""
    return bool(seen.in_flight_share >= _IN_FLIGHT and (seen.held_share is None or seen.held_share >= _COUNTED))


def _has_no_queue(seen: KnownEvidence) -> bool:
    """Tell whether no queue stands: the median round trip is less than 1 ms longer than the least."""
    return bool(seen.rtt_added_ms < _QUEUE_MS)


def _is_drained(seen: KnownEvidence) -> bool:
    """Tell whether less than half of the window stands in a queue. If more does, the window is not the limit."""
    grown = seen.rtt_growth is not None and seen.rtt_growth * _HALF >= 1
    return seen.window_share is None or bool(seen.window_share >= _HALF or not grown)


def _has_queue(seen: KnownEvidence) -> bool:
    return bool(seen.queue_ms >= _QUEUE_MS and seen.queue_growth >= _FLAT)


def _rest_taken(seen: KnownEvidence) -> bool:
    """Tell whether other traffic classes of the test take the rest of the link."""
    return bool(seen.beside_classes) and reaches(seen.shared_share or 0.0, LINE_RATE)


def _has_deep_queue(seen: KnownEvidence) -> bool:
    """Tell whether the round-trip times prove a queue that is never empty."""
    known = seen.queue_ms is not None and seen.queue_growth is not None
    return known and bool(seen.queue_ms >= _DEEP_MS and seen.queue_growth >= _DEEP_GROWTH)


def _never_empty(seen: KnownEvidence) -> bool:
    """Tell whether the path has a deep queue far below the link's rate, while the sender waits for no window.

    Goodput may vary. Near the link's rate, or if other programs delay an agent, the queue may be the link's own.
    """
    even = seen.variation is None or seen.variation <= _UNEVEN
    far = all((share or 0.0) <= _OPEN for share in (seen.efficiency, seen.shared_share, seen.link_share))
    kept = seen.processors == "others" and (seen.agent_share is None or seen.agent_share > _LITTLE_CPU)
    return bool(_has_deep_queue(seen) and even and far and not kept and seen.sending_share >= _HALF)


def _is_queued(seen: KnownEvidence) -> bool:
    """Tell whether a queue stands and goodput is constant, as at a shaper, while no link is full."""
    short = seen.queue_ms >= _QUEUE_MS and seen.queue_growth >= _SHORT and seen.variation <= _CONSTANT
    # A full window may be the limit while hosts answer late, unless the rate is as constant as a shaper's.
    windowed = seen.in_flight_share is not None and _is_filled(seen)
    steady = _has_queue(seen) and seen.variation <= (_CONSTANT if windowed else _STEADY)
    return bool((short or steady) and not _is_link_full(seen))


def _is_held_by_losses(seen: KnownEvidence) -> bool:
    """Tell whether losses cost goodput while no link is full."""
    return bool(seen.lost_share >= _LOSSY and seen.sending_share >= _HALF and not _is_link_full(seen))


def _is_explained_by_losses(seen: KnownEvidence) -> bool:
    """Tell whether random single losses explain the goodput. For bbr only the distribution of losses counts."""
    least, most = _EXPLAINED
    follows = not seen.halves or seen.loss_allows is None or least <= seen.loss_allows <= most
    return bool(follows and seen.loss_clumps < _TOGETHER)


def _is_policed(seen: KnownEvidence) -> bool:
    """Tell whether losses cost goodput, goodput is constant and random losses do not explain it: a policer."""
    return bool(_is_held_by_losses(seen) and seen.unevenness <= _EVEN and not _is_explained_by_losses(seen))


def _is_regulated_by_losses(seen: KnownEvidence) -> bool:
    """Tell whether losses come in clumps and keep the mean goodput constant, as a policer's token bucket does."""
    return bool(_is_held_by_losses(seen) and seen.loss_clumps >= _TOGETHER and seen.variance_ratio <= _REGULATED)


def _is_random(seen: KnownEvidence) -> bool:
    """Tell whether losses look random: no known evidence points to a policer."""
    if seen.unevenness is None or seen.loss_clumps is None or _is_link_full(seen):
        return True
    independent = (seen.variance_ratio or 0.0) >= _INDEPENDENT and (seen.loss_events or 0.0) >= _EVENTS
    if seen.loss_clumps < _TOGETHER:
        return bool(seen.unevenness > _EVEN or (seen.halves and independent and _is_explained_by_losses(seen)))
    return bool(seen.unevenness >= _UNEVEN and independent)


def _lossy(seen: KnownEvidence) -> bool:
    """Tell whether losses, more than congestion marks, cut the window and allow about the goodput achieved."""
    cut = seen.halves and seen.lost_share > 0 and seen.sending_share >= _HALF and not _has_deep_queue(seen)
    if seen.marks_allow is not None and seen.marks_allow < seen.loss_allows:
        return False
    return bool(cut and not _is_above_losses(seen) and seen.loss_allows <= _MOST_ALLOWED and _is_random(seen))


def _is_above_losses(seen: KnownEvidence) -> bool:
    """Tell whether goodput is far above what losses allow (Mathis et al.), if each clump cuts the window once."""
    if seen.loss_clumps is None:
        return bool(seen.loss_allows < _LEAST_ALONE)
    return bool(seen.loss_allows * max(1.0, seen.loss_clumps) ** 0.5 < _LEAST_ALLOWED)


def _is_held_by_marks(seen: KnownEvidence) -> bool:
    """Tell whether congestion marks, more than losses, cut the window and allow about the goodput achieved."""
    cut = seen.halves and seen.sending_share >= _HALF and not _is_link_full(seen)
    more = seen.loss_allows is None or seen.marks_allow <= seen.loss_allows
    return bool(cut and more and seen.marks_allow <= _MOST_ALLOWED)


def _is_throttled(seen: KnownEvidence, least: float) -> bool:
    return bool(seen.quota_sender >= max(least, seen.quota_receiver or 0.0))


def _has_many_drops(seen: KnownEvidence) -> bool:
    return bool(seen.lost_share >= 1 - LINE_RATE)


_STANDING: Final = ("queue_ms", "queue_growth")
_OTHERS: Final = ("other_share", "link_share", "other_mbps", "other_link", "other_counter")
_LOSSES: Final = ("lost_share", "loss_allows", "sending_share", "halves")

RULES: Final[tuple[Rule, ...]] = (
    Rule("unknown", "above the ceiling", ("efficiency",), lambda seen: above_ceiling(seen.efficiency), "above"),
    Rule("mtu", "line rate with a clamped MSS", ("efficiency", "larger_frames", "clamped_mss"), _small_frames, "clamp"),
    Rule("mtu", "line rate with small frames", ("efficiency", "larger_frames"), _small_frames),
    Rule("line-rate", "line rate", ("efficiency",), _is_at_line_rate),
    Rule(
        "loss",
        "line rate but for losses",
        ("efficiency", "lost_share", "halves"),
        lambda seen: _has_many_drops(seen) and LINE_RATE <= seen.efficiency * (1 + seen.lost_share) <= ALL,
    ),
    Rule(
        "line-rate",
        "line rate between losses",
        ("efficiency", *_STANDING),
        lambda seen: reaches(seen.efficiency, _NEARLY) and _has_queue(seen) and not _rest_taken(seen),
    ),
    Rule("rate", "requested rate", ("asked_share",), _is_as_requested),
    Rule("sender", "quota", ("quota_sender",), lambda seen: _is_throttled(seen, _EXHAUSTED), "quota"),
    Rule("receiver", "quota", ("quota_receiver",), lambda seen: seen.quota_receiver >= _EXHAUSTED, "quota"),
    Rule(
        "window",
        "window ÷ round trip",
        ("window_share", "held_share", "goodput_mbps"),
        lambda seen: seen.window_share >= _REACHED and seen.held_share >= _HALF,
        "receive",
    ),
    Rule(
        "window",
        "window in flight",
        ("in_flight_share", "rtt_growth", "window_bytes"),
        lambda seen: _is_filled(seen) and seen.rtt_growth <= _FLAT,
        "receive",
    ),
    Rule(
        "window",
        "send buffer in flight",
        ("in_flight_sndbuf", "in_flight_cwnd", "in_flight_share", "rtt_growth"),
        lambda seen: _is_buffered(seen) and seen.rtt_growth <= _FLAT,
        "send",
    ),
    Rule(
        "shared-link",
        "shared link full",
        ("shared_share", "shared_link"),
        lambda seen: reaches(seen.shared_share, LINE_RATE),
    ),
    Rule(
        "shared-link",
        "shared link full between losses",
        ("shared_share", "shared_link", *_STANDING),
        lambda seen: reaches(seen.shared_share, _NEARLY) and _has_queue(seen),
    ),
    Rule("other-traffic", "link full with other traffic", _OTHERS, lambda seen: _has_other_traffic(seen, _NEARLY)),
    Rule("sender", "quota", ("quota_sender",), lambda seen: _is_throttled(seen, _THROTTLED), "quota"),
    Rule("receiver", "quota", ("quota_receiver",), lambda seen: seen.quota_receiver >= _THROTTLED, "quota"),
    Rule("machine", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "machine"),
    Rule("sender", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "sender"),
    Rule("receiver", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "receiver"),
    Rule("disk", "reading", ("disk_read",), lambda seen: seen.disk_read >= max(_HALF, seen.disk_write or 0.0), "read"),
    Rule("disk", "writing", ("disk_write",), lambda seen: seen.disk_write >= _HALF, "write"),
    Rule("unknown", "beside other traffic", _OTHERS, lambda seen: _has_other_traffic(seen, _BESIDE), "traffic"),
    Rule("path", "shaper", (*_STANDING, "variation"), _is_queued, "shaper"),
    Rule("path", "shaper", (*_STANDING, "sending_share"), _never_empty, "shaper"),
    Rule(
        "loss",
        "losses",
        (*_LOSSES, "agent_share", "loss_clumps"),
        lambda seen: seen.agent_share <= _LITTLE_CPU and seen.loss_allows >= _EXPLAINED[0] and _lossy(seen),
    ),
    Rule("unknown", "other programs", ("processors", "others_pct"), lambda seen: seen.processors == "others", "others"),
    Rule(
        "window",
        "window in flight nearby",
        ("in_flight_share", "rtt_added_ms", "window_bytes"),
        lambda seen: _is_filled(seen) and _has_no_queue(seen) and _is_drained(seen),
        "receive",
    ),
    Rule(
        "window",
        "send buffer in flight nearby",
        ("in_flight_sndbuf", "in_flight_cwnd", "in_flight_share", "rtt_added_ms"),
        lambda seen: _is_buffered(seen) and _has_no_queue(seen),
        "send",
    ),
    Rule(
        "window",
        "waiting for the window",
        ("held_share",),
        lambda seen: seen.held_share >= _HALF and (_is_drained(seen) or (seen.sndbuf_share or 0.0) >= _HALF),
        "receive",
    ),
    Rule("path", "marks", ("marked_share", "marks_allow", "sending_share", "halves"), _is_held_by_marks, "marks"),
    Rule("path", "policer", ("lost_share", "sending_share", "loss_clumps", "unevenness"), _is_policed, "policer"),
    Rule(
        "path",
        "policer",
        ("lost_share", "sending_share", "loss_clumps", "variance_ratio"),
        _is_regulated_by_losses,
        "policer",
    ),
    Rule("loss", "losses", _LOSSES, _lossy),
    Rule(
        "loss",
        "losses that stop bbr",
        ("lost_share", "sending_share", "halves"),
        lambda seen: not seen.halves and _has_many_drops(seen) and seen.sending_share >= _HALF and _is_random(seen),
    ),
    Rule(
        "receiver",
        "receive buffer full",
        ("overflow_share", "lost_share"),
        lambda seen: seen.overflow_share >= _HALF and _has_many_drops(seen),
    ),
    Rule(
        "path",
        "constant rate of datagrams",
        ("datagram_evenness", "lost_share"),
        lambda seen: seen.datagram_evenness <= _EVEN_DATAGRAMS and _has_many_drops(seen),
        "policer",
    ),
    Rule("loss", "datagrams lost", ("datagram_evenness", "lost_share"), _has_many_drops),
    Rule(
        "path",
        "slow interface",
        ("sent_share", "lost_share", "variation"),
        lambda seen: seen.sent_share < LINE_RATE and seen.lost_share < _LOSSY and seen.variation <= _STEADY / 2,
        "shaper",
    ),
    Rule(
        "unknown",
        "losses do not explain it",
        _LOSSES,
        lambda seen: (
            seen.halves and seen.lost_share >= _LOSSY and seen.sending_share >= _HALF and _is_above_losses(seen)
        ),
        "refuted",
    ),
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict on a stream: its limit, the rule that named the limit, and the values that the rule used."""

    limit: str = "unknown"
    rule: str = "no rule applies"
    cause: str | None = None
    numbers: Mapping[str, float | str | bool | None] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """Return the text of the column `limit_detail`, as `policer: lost_share 0.026, variation 0.012`."""
        values = ", ".join(f"{name} {_number(value)}" for name, value in self.numbers.items() if value is not None)
        return f"{self.rule}: {values}" if values else self.rule


def _number(value: float | str | bool) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def diagnose(seen: Evidence) -> Diagnosis:
    """Return the verdict of the first rule in `RULES` that holds; "unknown" if no rule holds."""
    values = seen._asdict()
    known, unknown = KnownEvidence(**values), {name for name, value in values.items() if value is None}
    for rule in RULES:
        if unknown.isdisjoint(rule.needs) and rule.holds(known):
            numbers = {name: values[name] for name in rule.needs}
            return Diagnosis(rule.limit, rule.name, rule.cause, {**numbers, "goodput_mbps": seen.goodput_mbps})
    return Diagnosis(numbers={"goodput_mbps": seen.goodput_mbps, "efficiency": seen.efficiency})


def combine(verdicts: Iterable[tuple[Diagnosis, float]], whole: Diagnosis | None = None) -> Diagnosis:
    """Return the verdict on a test from `verdicts` on its streams, each with the Mbit/s below the stream's ceiling.

    `whole`, the verdict on all streams together, is given if the streams fill their links. If the limits differ,
    a shared link or else `whole` is the limit. Without `whole`, the stream furthest below its ceiling decides.
    """
    given = list(verdicts)
    if whole is not None and len({verdict.limit for verdict, _ in given}) > 1:
        return next((verdict for verdict, _ in given if verdict.limit == "shared-link"), whole)
    return max(given, key=lambda pair: pair[1])[0] if given else Diagnosis()
