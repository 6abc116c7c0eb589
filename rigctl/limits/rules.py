"""The rules that name the limit of a stream from its evidence: the first rule that holds names the limit.

A rule is true, false or unknown. It is false as soon as one clause whose evidence is known fails. If an earlier rule
on another limit is unknown, for evidence that the nodes could have given, the limit is unknown. A rule on evidence
that a node never gives is skipped, and the verdict says so. The verdict keeps the values that its rule used, so that a
reader can check them. Reasons: docs/decisions/0023.

Sources: window ÷ round trip, in-flight bytes (RFC 9293); Web100's triage by shares of time (Mathis et al., 2003);
pathdiag's model of a path; Flach et al., "An Internet-Wide Analysis of Traffic Policing" (2016), for the token bucket;
Lo and MacKinlay, "Stock Market Prices Do Not Follow Random Walks" (1988), for the ratio of variances.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from rigctl.base.units import digits_text
from rigctl.limits.ceilings import LINE_RATE, above_ceiling, reaches
from rigctl.limits.clauses import (
    Clause,
    KnownEvidence,
    above,
    at_least,
    at_most,
    below,
    is_set,
    known,
    needing,
    reaching,
)
from rigctl.limits.kinds import KINDS_OF, SAMPLED, EvidenceKind


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
    pause_frames: float | None = None  # pause frames that the sender's card received, or its switch port sent
    pause_allows: float | None = None  # share of time that these frames can have stopped the sender, at most
    paused_by: str | None = None  # ports that sent them
    processors: str | None = None  # busy with the run: `machine`, `sender` or `receiver`; with other programs: `others`
    busy_pct: float | None = None  # how busy the run kept the busiest processor of its nodes
    others_pct: float | None = None
    agent_share: float | None = None  # CPU time of the busier agent ÷ (elapsed time × its threads)
    # Kinds of evidence that the nodes give: a field of these kinds may be unknown.
    gives: frozenset[EvidenceKind] = frozenset()
    # Kinds that a node never gives. The fields of all other kinds do not apply.
    lacks: frozenset[EvidenceKind] = frozenset()

    def could_give(self, fields: Iterable[str]) -> bool:
        """Tell whether the nodes could have given all of `fields`, which are None."""
        return all((kinds := KINDS_OF.get(name)) is not None and kinds <= self.gives for name in fields)

    def lacking(self, fields: Iterable[str]) -> frozenset[EvidenceKind]:
        """Return the kinds of evidence of `fields` that a node never gives."""
        return frozenset(kind for name in fields for kind in KINDS_OF.get(name, ()) if kind in self.lacks)


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
_LONGER: Final = 2.0  # from this `queue_growth` on, data wait longer in the sender's queue than on the path
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


class Truth(Enum):
    """The outcome of a rule. A rule is skipped if it needs evidence that a node never gives, or that does not apply."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule names `limit` if all clauses of `when` hold."""

    limit: str
    name: str
    when: tuple[Clause, ...]
    cause: str | None = None  # detail of the limit, such as "policer"
    shows: tuple[str, ...] = ()  # fields that the verdict keeps, if not all that the rule needs

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the fields of `Evidence` without which the rule is not true."""
        return tuple(dict.fromkeys(name for clause in self.when for name in clause.fields))


def _busy_with(whose: str) -> Clause:
    """Return a clause that holds if the run keeps the processors of `whose` (such as `sender`) busy."""
    return Clause(("busy_pct",), lambda seen: bool(seen.processors == whose))


@needing("efficiency")
def _impossible_goodput(seen: KnownEvidence) -> bool:
    return above_ceiling(seen.efficiency)


@needing("efficiency", "lost_share")
def _full_but_for_losses(seen: KnownEvidence) -> bool:
    """Tell whether goodput and lost data fill the link."""
    return bool(LINE_RATE <= seen.efficiency * (1 + seen.lost_share) <= ALL)


@needing()
def _link_not_full(seen: KnownEvidence) -> bool:
    """Tell whether no link is nearly full with this stream, with all pairs on a link, or with other traffic."""
    return not any(reaches(share or 0.0, _NEARLY) for share in (seen.efficiency, seen.shared_share, seen.link_share))


@needing()
def _rest_of_link_free(seen: KnownEvidence) -> bool:
    """Tell whether no other traffic classes of the test take the rest of the link."""
    return not (seen.beside_classes and reaches(seen.shared_share or 0.0, LINE_RATE))


@needing("quota_sender")
def _sender_held_more(seen: KnownEvidence) -> bool:
    """Tell whether a quota holds back the sender's agent at least as long as the receiver's."""
    return bool(seen.quota_sender >= (seen.quota_receiver or 0.0))


@needing("disk_read")
def _reads_more(seen: KnownEvidence) -> bool:
    """Tell whether reading takes at least as long as writing."""
    return bool(seen.disk_read >= (seen.disk_write or 0.0))


@needing()
def _waited(seen: KnownEvidence) -> bool:
    """Tell whether senders waited for a full window; True if the kernel does not report that."""
    return seen.held_share is None or bool(seen.held_share >= _COUNTED)


_WINDOW_FILLED: Final = (at_least("in_flight_share", _IN_FLIGHT), _waited)


@needing()
def _window_drained(seen: KnownEvidence) -> bool:
    """Tell whether less than half of the window stands in a queue. If more does, the window is not the limit."""
    grown = seen.rtt_growth is not None and seen.rtt_growth * _HALF >= 1
    return seen.window_share is None or bool(seen.window_share >= _HALF or not grown)


@needing()
def _window_drained_or_buffer_full(seen: KnownEvidence) -> bool:
    return _window_drained.check(seen) or bool((seen.sndbuf_share or 0.0) >= _HALF)


@needing("queue_ms", "queue_growth", "variation")
def _steady_behind_queue(seen: KnownEvidence) -> bool:
    """Tell whether goodput is as constant as that of a shaper. Behind a short queue, it must be nearly equal."""
    short = seen.queue_growth >= _SHORT and seen.variation <= _CONSTANT
    # A full window may be the limit while hosts answer late, unless the rate is as constant as a shaper's.
    windowed = seen.in_flight_share is not None and all(clause.check(seen) for clause in _WINDOW_FILLED)
    return bool(short or (seen.queue_growth >= _FLAT and seen.variation <= (_CONSTANT if windowed else _STEADY)))


@needing()
def _far_below_line(seen: KnownEvidence) -> bool:
    """Tell whether goodput varies little and is far below the link's rate, and no other program delays an agent.

    Near the link's rate, or if other programs delay an agent, a queue may be the link's own.
    """
    even = seen.variation is None or seen.variation <= _UNEVEN
    far = all((share or 0.0) <= _OPEN for share in (seen.efficiency, seen.shared_share, seen.link_share))
    kept = seen.processors == "others" and (seen.agent_share is None or seen.agent_share > _LITTLE_CPU)
    return bool(even and far and not kept)


@needing()
def _no_deep_queue(seen: KnownEvidence) -> bool:
    """Tell whether round-trip times prove no queue that is never empty."""
    return (
        seen.queue_ms is None
        or seen.queue_growth is None
        or not (seen.queue_ms >= _DEEP_MS and seen.queue_growth >= _DEEP_GROWTH)
    )


@needing("loss_clumps")
def _not_explained_by_losses(seen: KnownEvidence) -> bool:
    return not _explained_by_losses(seen)


def _explained_by_losses(seen: KnownEvidence) -> bool:
    """Tell whether random single losses explain the goodput. For bbr only the distribution of losses counts."""
    least, most = _EXPLAINED
    follows = not seen.halves or seen.loss_allows is None or least <= seen.loss_allows <= most
    return bool(follows and seen.loss_clumps < _TOGETHER)


@needing()
def _losses_random(seen: KnownEvidence) -> bool:
    """Tell whether losses look random: no known evidence points to a policer."""
    if seen.unevenness is None or seen.loss_clumps is None or not _link_not_full.check(seen):
        return True
    independent = (seen.variance_ratio or 0.0) >= _INDEPENDENT and (seen.loss_events or 0.0) >= _EVENTS
    if seen.loss_clumps < _TOGETHER:
        return bool(seen.unevenness > _EVEN or (seen.halves and independent and _explained_by_losses(seen)))
    return bool(seen.unevenness >= _UNEVEN and independent)


@needing("loss_allows")
def _losses_cut_more_than_marks(seen: KnownEvidence) -> bool:
    return seen.marks_allow is None or bool(seen.marks_allow >= seen.loss_allows)


@needing("marks_allow")
def _marks_cut_more_than_losses(seen: KnownEvidence) -> bool:
    return seen.loss_allows is None or bool(seen.marks_allow <= seen.loss_allows)


@needing("loss_allows")
def _far_above_losses(seen: KnownEvidence) -> bool:
    """Tell whether goodput is far above what losses allow (Mathis et al.), if each clump cuts the window once."""
    if seen.loss_clumps is None:
        return bool(seen.loss_allows < _LEAST_ALONE)
    return bool(seen.loss_allows * max(1.0, seen.loss_clumps) ** 0.5 < _LEAST_ALLOWED)


@needing("loss_allows")
def _not_far_above_losses(seen: KnownEvidence) -> bool:
    return not _far_above_losses.check(seen)


@needing("halves")
def _does_not_halve(seen: KnownEvidence) -> bool:
    return not seen.halves


@needing("pause_allows")
def _paused_long_enough(seen: KnownEvidence) -> bool:
    """Tell whether pause frames can have stopped the sender for as long as it did not send.

    A frame asks for a time that it does not tell counters, and another frame may end it.
    """
    achieved = seen.asked_share if seen.asked_share is not None else seen.efficiency
    return achieved is not None and bool(seen.pause_allows >= 1 - achieved)


_PAUSED: Final = (above("pause_frames", 0.0), known("paused_by"), _paused_long_enough, _link_not_full)
_QUEUE: Final = (at_least("queue_ms", _QUEUE_MS), at_least("queue_growth", _FLAT))
_LONG_QUEUE: Final = (at_least("queue_ms", _QUEUE_MS), at_least("queue_growth", _LONGER))
_SMALL_FRAMES: Final = (reaching("efficiency", LINE_RATE), at_least("larger_frames", _LARGER_FRAMES))
_OTHER_COUNTER: Final = known("other_mbps", "other_link", "other_counter")
_LINK_POSSIBLE: Final = at_most("link_share", _MOST_FULL)
_BUFFER_IN_FLIGHT: Final = (
    at_least("in_flight_sndbuf", _BUFFERED),
    at_most("in_flight_cwnd", _OPEN),
    at_most("in_flight_share", _OPEN),
)
_HAS_DATA: Final = at_least("sending_share", _HALF)
_MANY_DROPS: Final = at_least("lost_share", 1 - LINE_RATE)
_CUT_BY_LOSSES: Final = (
    above("lost_share", 0.0),
    at_most("loss_allows", _MOST_ALLOWED),
    _HAS_DATA,
    is_set("halves"),
    _losses_cut_more_than_marks,
    _no_deep_queue,
    _not_far_above_losses,
    _losses_random,
)
_COSTLY_LOSSES: Final = (at_least("lost_share", _LOSSY), _HAS_DATA, _link_not_full)

RULES: Final[tuple[Rule, ...]] = (
    Rule("unknown", "above the ceiling", (_impossible_goodput,), "above"),
    Rule("mtu", "line rate with a clamped MSS", (*_SMALL_FRAMES, known("clamped_mss")), "clamp"),
    Rule("mtu", "line rate with small frames", _SMALL_FRAMES),
    Rule("line-rate", "line rate", (reaching("efficiency", LINE_RATE),)),
    Rule("loss", "line rate but for losses", (_full_but_for_losses, _MANY_DROPS, known("halves"))),
    Rule("line-rate", "line rate between losses", (reaching("efficiency", _NEARLY), *_QUEUE, _rest_of_link_free)),
    Rule("rate", "requested rate", (reaching("asked_share", LINE_RATE), at_most("asked_share", _HELD))),
    Rule("sender", "quota", (at_least("quota_sender", _EXHAUSTED), _sender_held_more), "quota"),
    Rule("receiver", "quota", (at_least("quota_receiver", _EXHAUSTED),), "quota"),
    Rule(
        "window",
        "window ÷ round trip",
        (at_least("window_share", _REACHED), at_least("held_share", _HALF)),
        "receive",
    ),
    Rule(
        "window",
        "window in flight",
        (*_WINDOW_FILLED, at_most("rtt_growth", _FLAT), known("window_bytes")),
        "receive",
    ),
    Rule("window", "send buffer in flight", (*_BUFFER_IN_FLIGHT, at_most("rtt_growth", _FLAT)), "send"),
    Rule("shared-link", "shared link full", (reaching("shared_share", LINE_RATE), known("shared_link"))),
    Rule(
        "shared-link",
        "shared link full between losses",
        (reaching("shared_share", _NEARLY), known("shared_link"), *_QUEUE),
    ),
    Rule(
        "other-traffic",
        "link full with other traffic",
        (at_least("other_share", OTHERS), at_least("link_share", _NEARLY), _LINK_POSSIBLE, _OTHER_COUNTER),
    ),
    Rule("paused", "pause frames behind a queue", (*_PAUSED, *_LONG_QUEUE)),
    Rule(
        "paused", "pause frames hold datagrams", (*_PAUSED, below("sent_share", LINE_RATE), below("lost_share", _LOSSY))
    ),
    Rule("sender", "quota", (at_least("quota_sender", _THROTTLED), _sender_held_more), "quota"),
    Rule("receiver", "quota", (at_least("quota_receiver", _THROTTLED),), "quota"),
    Rule("machine", "processors", (_busy_with("machine"),), shows=("processors", "busy_pct")),
    Rule("sender", "processors", (_busy_with("sender"),), shows=("processors", "busy_pct")),
    Rule("receiver", "processors", (_busy_with("receiver"),), shows=("processors", "busy_pct")),
    Rule("disk", "reading", (at_least("disk_read", _HALF), _reads_more), "read"),
    Rule("disk", "writing", (at_least("disk_write", _HALF),), "write"),
    Rule(
        "unknown",
        "beside other traffic",
        (at_least("other_share", OTHERS), at_least("link_share", _BESIDE), _LINK_POSSIBLE, _OTHER_COUNTER),
        "traffic",
    ),
    Rule(
        "path",
        "shaper",
        (
            at_least("queue_ms", _QUEUE_MS),
            at_least("queue_growth", _SHORT),
            at_most("variation", _STEADY),
            _steady_behind_queue,
            _link_not_full,
        ),
        "shaper",
    ),
    Rule(
        "path",
        "shaper",
        (at_least("queue_ms", _DEEP_MS), at_least("queue_growth", _DEEP_GROWTH), _HAS_DATA, _far_below_line),
        "shaper",
    ),
    Rule(
        "loss",
        "losses",
        (
            *_CUT_BY_LOSSES,
            at_least("loss_allows", _EXPLAINED[0]),
            at_most("agent_share", _LITTLE_CPU),
            known("loss_clumps"),
        ),
    ),
    Rule(
        "unknown",
        "other programs",
        (_busy_with("others"), known("others_pct")),
        "others",
        shows=("processors", "others_pct"),
    ),
    Rule(
        "window",
        "window in flight nearby",
        (*_WINDOW_FILLED, below("rtt_added_ms", _QUEUE_MS), known("window_bytes"), _window_drained),
        "receive",
    ),
    Rule("window", "send buffer in flight nearby", (*_BUFFER_IN_FLIGHT, below("rtt_added_ms", _QUEUE_MS)), "send"),
    Rule(
        "window",
        "waiting for the window",
        (at_least("held_share", _HALF), _window_drained_or_buffer_full),
        "receive",
    ),
    Rule(
        "path",
        "marks",
        (
            above("marked_share", 0.0),
            at_most("marks_allow", _MOST_ALLOWED),
            _HAS_DATA,
            is_set("halves"),
            _marks_cut_more_than_losses,
            _link_not_full,
        ),
        "marks",
    ),
    Rule(
        "path",
        "policer",
        (*_COSTLY_LOSSES, _not_explained_by_losses, at_most("unevenness", _EVEN)),
        "policer",
    ),
    Rule(
        "path",
        "policer",
        (*_COSTLY_LOSSES, at_least("loss_clumps", _TOGETHER), at_most("variance_ratio", _REGULATED)),
        "policer",
    ),
    Rule("loss", "losses", _CUT_BY_LOSSES),
    Rule("loss", "losses that stop bbr", (_MANY_DROPS, _HAS_DATA, _does_not_halve, _losses_random)),
    Rule("receiver", "receive buffer full", (at_least("overflow_share", _HALF), _MANY_DROPS)),
    Rule(
        "path",
        "constant rate of datagrams",
        (at_most("datagram_evenness", _EVEN_DATAGRAMS), _MANY_DROPS),
        "policer",
    ),
    Rule("loss", "datagrams lost", (known("datagram_evenness"), _MANY_DROPS)),
    Rule(
        "path",
        "slow interface",
        (below("sent_share", LINE_RATE), below("lost_share", _LOSSY), at_most("variation", _STEADY / 2)),
        "shaper",
    ),
    Rule(
        "unknown",
        "losses do not explain it",
        (at_least("lost_share", _LOSSY), _far_above_losses, _HAS_DATA, is_set("halves")),
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
    lacks: tuple[
        EvidenceKind, ...
    ] = ()  # kinds of evidence that a node never gives, and without which rules were skipped
    missing: tuple[EvidenceKind, ...] = ()  # kinds of evidence without which the limit is unknown
    may_be: tuple[str, ...] = ()  # limits that rules may name if this evidence were known

    @property
    def detail(self) -> str:
        """Return the text of the column `limit_detail`, as `policer: lost_share 0.026, variation 0.012`."""
        values = ", ".join(f"{name} {_number(value)}" for name, value in self.numbers.items() if value is not None)
        skipped = f"not reported: {', '.join(self.lacks)}" if self.lacks else ""
        told = "; ".join(filter(None, (values, skipped)))
        return f"{self.rule}: {told}" if told else self.rule


def _number(value: float | str | bool) -> str:
    return digits_text(value) if isinstance(value, float) else str(value)


def _truth(rule: Rule, known_values: KnownEvidence, missing: Collection[str], seen: Evidence) -> Truth:
    lacking = []
    for clause in rule.when:
        unknown = [name for name in clause.fields if name in missing]
        if not unknown and not clause.check(known_values):
            return Truth.FALSE
        lacking += unknown
    if not lacking:
        return Truth.TRUE
    return Truth.UNKNOWN if seen.could_give(lacking) else Truth.SKIPPED


def diagnose(seen: Evidence) -> Diagnosis:
    """Return the verdict of the first rule in `RULES` that holds; "unknown" if no rule holds, or if an earlier may."""
    values = seen._asdict()
    known_values, missing = KnownEvidence(**values), {name for name, value in values.items() if value is None}
    undecided: list[Rule] = []
    lacks: dict[EvidenceKind, None] = {}
    for rule in RULES:
        truth = _truth(rule, known_values, missing, seen)
        if truth is Truth.TRUE:
            if rule.limit != "unknown" and any(other.limit != rule.limit for other in undecided):
                break
            numbers = {name: values[name] for name in rule.shows or rule.needs}
            numbers["goodput_mbps"] = seen.goodput_mbps
            return Diagnosis(rule.limit, rule.name, rule.cause, numbers, tuple(lacks))
        if truth is Truth.UNKNOWN:
            undecided.append(rule)
        elif truth is Truth.SKIPPED:
            lacks |= dict.fromkeys(sorted(seen.lacking(missing.intersection(rule.needs))))
    numbers = {"goodput_mbps": seen.goodput_mbps, "efficiency": seen.efficiency}
    if not undecided:
        return Diagnosis(numbers=numbers, lacks=tuple(lacks))
    needed = {kind for rule in undecided for name in missing.intersection(rule.needs) for kind in KINDS_OF[name]}
    unread = tuple(sorted(needed & SAMPLED))
    may_be = tuple(dict.fromkeys(rule.limit for rule in undecided if rule.limit != "unknown"))
    name = f"unknown without {', '.join(unread)}"
    return Diagnosis("unknown", name, "missing", numbers, tuple(lacks), unread, may_be)
