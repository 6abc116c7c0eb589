"""The limit of a stream, named: a table of rules over evidence. The first rule that holds names it.

A rule needs certain evidence; where some of it is not known, the rule is passed over. What it looked at goes into the
verdict, so that a reader can check it. Thresholds and their reasons: docs/decisions/0023.

Sources: window ÷ round trip, in-flight bytes (RFC 9293); Web100's triage by shares of time (Mathis et al., 2003);
pathdiag's model of a path; Flach et al., "An Internet-Wide Analysis of Traffic Policing" (2016), for the token bucket;
Lo and MacKinlay, "Stock Market Prices Do Not Follow Random Walks" (1988), for the ratio of variances.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from statistics import fmean, mode
from types import SimpleNamespace
from typing import Any, Final

LINE_RATE: Final = 0.98
"""From this share of the ceiling, of a shared link or of the requested rate on, that is the limit."""
NEARLY: Final = 0.93
"""From this share of the ceiling on, a queue that stands is that of the line: its drops cost the rest."""
ALL: Final = 1.02
"""What was sent, with the segments lost, is no more than the line carries: they were lost behind it. More than this is
dropped by the queue before the line."""
LARGER_FRAMES: Final = 1.02
"""Larger frames would raise the ceiling by 2 % at least."""
REACHED: Final = 0.9
"""From this share of window ÷ least round trip on, the window is the limit even on a busy node."""
IN_FLIGHT: Final = 0.85
"""From this share of the window on, bytes in flight fill it: the whole segments of a small one, and what is unread."""
COUNTED: Final = 0.1
"""Of its busy time a sender whose window is full waits this long at least, as the kernel counts it: 0.34 to 1."""
FLAT: Final = 1.3
"""Up to this multiple of the least round trip there is no queue that would matter."""
BUFFERED: Final = 0.6
"""From this share of the send buffer on, bytes in flight fill it: Linux charges its bookkeeping to it. More than 1 is
usual: it lets the last write exceed it, by a super-packet of 64 KB."""
OPEN: Final = 0.8
"""Up to this share of a window, or of the congestion window, it is not what holds the flow back."""
HALF: Final = 0.5
"""Half the time or more."""
EXHAUSTED: Final = 0.3
"""A process that is held back this long is what limits, though its peer then waits for a full window."""
THROTTLED: Final = 0.1
"""A process that does not exhaust its quota is not throttled at all; one period in ten may be a coincidence."""
QUEUE_MS: Final = 1.0
"""A queue that stands this long is no batch of segments."""
STEADY: Final = 0.1
"""Goodput over consecutive 0.1 s differs by no more, as a standard deviation: something gives out a constant rate."""
SHORT: Final = 1.1
CONSTANT: Final = 0.02
"""Goodput that is as good as constant: then a queue of a tenth of the round trip will do, as bbr leaves it."""
LOSSY: Final = 0.001
EVEN: Final = 0.2
"""Losses at random leave goodput uneven: by a fifth or more for one flow, less by the square root of their number."""
UNEVEN: Final = 0.3
"""From here on goodput is as uneven as losses at random make it; between the two it may be either."""
TOGETHER: Final = 1.8
"""Losses at random have a variance of about their mean in 0.1 s (Poisson); 1.8 times that is chance in 3 of 1000 tests
of 2.4 s. Those of a bucket that runs empty come together …"""
REGULATED: Final = 0.4
"""… and after more than the mean rate comes less: goodput over 0.4 s varies by less than that of independent 0.1 s …"""
INDEPENDENT: Final = 0.75
"""… while that of flows which lose at random does not: 1 and more, as windows grow slowly. Between the two: unknown."""
EVENTS: Final = 8
"""Of fewer clumps of losses, nobody can say that they came at random."""
EXPLAINED: Final = (0.8, 1.5)
"""Losses at random, one by one, allow what is achieved (Mathis et al.): 0.84 to 1.45 times that was seen."""
MOST_ALLOWED: Final = 2.0
"""Losses that allow more than this multiple of the goodput explain nothing: the rule is a rough one."""
EVEN_DATAGRAMS: Final = 0.4
"""Variance of the datagrams that pass ÷ that of random losses: a constant rate is far below 1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a stream showed, or the mean of its repetitions. Shares are of 1; `None` is unknown."""

    goodput_mbps: float | None = None
    efficiency: float | None = None  # of the ceiling
    asked_share: float | None = None  # of the rate requested
    larger_frames: float | None = None  # ceiling with frames as large as the links' MTU ÷ ceiling
    shared_share: float | None = None  # of a link that other pairs use: what all of them took
    shared_link: str | None = None
    window_bytes: float | None = None  # advertised by the receivers, mean over flows
    window_share: float | None = None  # goodput ÷ what the advertised windows allow in the least round trips
    in_flight_share: float | None = None  # goodput × round trip ÷ advertised window
    in_flight_sndbuf: float | None = None  # … ÷ send buffer
    in_flight_cwnd: float | None = None  # … ÷ congestion window
    held_share: float | None = None  # of its busy time the sender waited for a window or its buffer …
    sndbuf_share: float | None = None  # … for its buffer
    sending_share: float | None = None  # of its time the sender had data and no full window
    rtt_min_ms: float | None = None
    rtt_ms: float | None = None  # the median while it sent
    rtt_growth: float | None = None  # median ÷ least
    queue_growth: float | None = None  # first decile ÷ least: what stands in a queue nearly always
    queue_ms: float | None = None  # first decile - least
    variation: float | None = None  # of goodput over 0.1 s: standard deviation ÷ mean
    lost_share: float | None = None  # of segments, sent again; of datagrams
    loss_allows: float | None = None  # goodput by the rule of Mathis et al. ÷ goodput
    unevenness: float | None = None  # variation × √(flows, or events of loss in 0.1 s where those are more)
    loss_clumps: float | None = None  # variance ÷ mean of the losses in 0.1 s
    loss_events: float | None = None  # clumps, as many as that makes of the losses
    variance_ratio: float | None = None  # of goodput over 0.4 s to that of four independent 0.1 s
    datagram_evenness: float | None = None  # variance of the datagrams that passed in 0.1 s ÷ that of random losses
    overflow_share: float | None = None  # of the datagrams lost: dropped at the receiver's full socket buffer
    sent_share: float | None = None  # of datagrams: what was sent ÷ the rate requested, or the ceiling
    halves: bool | None = None  # the congestion control halves its window at a loss
    quota_sender: float | None = None  # of its time the agent was held back by a quota
    quota_receiver: float | None = None
    disk_read: float | None = None  # of the sender's time
    disk_write: float | None = None  # of the receiver's time
    processors: str | None = None  # `machine`, `sender` or `receiver`; `others`: other programs kept them busy
    busy_pct: float | None = None
    others_pct: float | None = None


class Known(SimpleNamespace):
    """Evidence of which a rule knows what it needs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Names `limit` where `holds`; asked only where all that it `needs` is known."""

    limit: str
    name: str
    needs: tuple[str, ...]
    holds: Callable[["Known"], bool]
    cause: str | None = None  # more than the limit says: "policer"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A limit, the rule that named it and the numbers it looked at."""

    limit: str = "unknown"
    rule: str = "no rule applies"
    cause: str | None = None
    numbers: Mapping[str, float | str | bool | None] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """For a column: `policer: lost_share 0.026, variation 0.012`."""
        values = ", ".join(f"{name} {_number(value)}" for name, value in self.numbers.items() if value is not None)
        return f"{self.rule}: {values}" if values else self.rule


def _number(value: float | str | bool) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _buffered(seen: Known) -> bool:
    others_open = seen.in_flight_cwnd <= OPEN and seen.in_flight_share <= OPEN
    return bool(others_open and seen.in_flight_sndbuf >= BUFFERED)


def _filled(seen: Known) -> bool:
    """The window is full, and the kernel has counted some of that time."""
    return bool(seen.in_flight_share >= IN_FLIGHT and (seen.held_share is None or seen.held_share >= COUNTED))


def _nearby(seen: Known) -> bool:
    """Round trips so short that they vary by multiples, as hosts take them up; but no queue."""
    return bool(seen.rtt_ms - seen.rtt_min_ms < QUEUE_MS)


def _drained(seen: Known) -> bool:
    """Less than half of the window stands in a queue: else something is slower than what the window allows."""
    grown = seen.rtt_growth is not None and seen.rtt_growth * HALF >= 1
    return seen.window_share is None or bool(seen.window_share >= HALF or not grown)


def _standing(seen: Known) -> bool:
    return bool(seen.queue_ms >= QUEUE_MS and seen.queue_growth >= FLAT)


def _queued(seen: Known) -> bool:
    """A queue stands at a place that gives out a constant rate."""
    short = seen.queue_ms >= QUEUE_MS and seen.queue_growth >= SHORT and seen.variation <= CONSTANT
    steady = _standing(seen) and seen.variation <= STEADY
    return bool((short or steady) and (seen.efficiency or 0.0) < NEARLY)


def _dropped(seen: Known) -> bool:
    """Losses that cost goodput, before the line is full."""
    return bool(seen.lost_share >= LOSSY and seen.sending_share >= HALF and (seen.efficiency or 0.0) < NEARLY)


def _explained(seen: Known) -> bool:
    """Losses one by one, of which the goodput follows; of bbr it does not, which does not make them a policer's."""
    least, most = EXPLAINED
    follows = not seen.halves or seen.loss_allows is None or least <= seen.loss_allows <= most
    return bool(follows and seen.loss_clumps < TOGETHER)


def _even(seen: Known) -> bool:
    """A constant rate, and losses that do not explain it."""
    return bool(seen.unevenness <= EVEN and not _explained(seen))


def _regulated(seen: Known) -> bool:
    """A rate that is constant in the mean: a bucket that runs empty, and fills while the flows are silent."""
    return bool(seen.loss_clumps >= TOGETHER and seen.variance_ratio <= REGULATED)


def _at_random(seen: Known) -> bool:
    """Nothing says that the losses are a policer's, as far as is known."""
    if seen.unevenness is None or seen.loss_clumps is None or (seen.efficiency or 0.0) >= NEARLY:
        return True
    independent = (seen.variance_ratio or 0.0) >= INDEPENDENT and (seen.loss_events or 0.0) >= EVENTS
    if seen.loss_clumps < TOGETHER:
        return bool(seen.unevenness > EVEN or (seen.halves and independent and _explained(seen)))
    return bool(seen.unevenness >= UNEVEN and independent)


def _throttled(seen: Known, least: float) -> bool:
    return bool(seen.quota_sender >= max(least, seen.quota_receiver or 0.0))


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "mtu",
        "line rate with small frames",
        ("efficiency", "larger_frames"),
        lambda seen: seen.efficiency >= LINE_RATE and seen.larger_frames >= LARGER_FRAMES,
    ),
    Rule("line-rate", "line rate", ("efficiency",), lambda seen: seen.efficiency >= LINE_RATE),
    Rule(
        "loss",
        "line rate but for losses",
        ("efficiency", "lost_share", "halves"),
        lambda seen: seen.lost_share >= 1 - LINE_RATE and LINE_RATE <= seen.efficiency * (1 + seen.lost_share) <= ALL,
    ),
    Rule(
        "line-rate",
        "line rate between losses",
        ("efficiency", "queue_ms", "queue_growth"),
        lambda seen: seen.efficiency >= NEARLY and _standing(seen),
    ),
    Rule("rate", "requested rate", ("asked_share",), lambda seen: seen.asked_share >= LINE_RATE),
    Rule("sender", "quota", ("quota_sender",), lambda seen: _throttled(seen, EXHAUSTED), "quota"),
    Rule("receiver", "quota", ("quota_receiver",), lambda seen: seen.quota_receiver >= EXHAUSTED, "quota"),
    Rule(
        "window",
        "window ÷ round trip",
        ("window_share", "held_share", "goodput_mbps"),
        lambda seen: seen.window_share >= REACHED and seen.held_share >= HALF,
        "receive",
    ),
    Rule(
        "window",
        "window in flight",
        ("in_flight_share", "rtt_growth", "window_bytes"),
        lambda seen: _filled(seen) and seen.rtt_growth <= FLAT,
        "receive",
    ),
    Rule(
        "window",
        "send buffer in flight",
        ("in_flight_sndbuf", "in_flight_cwnd", "in_flight_share", "rtt_growth"),
        lambda seen: _buffered(seen) and seen.rtt_growth <= FLAT,
        "send",
    ),
    Rule(
        "shared-link",
        "shared link full",
        ("shared_share", "shared_link"),
        lambda seen: seen.shared_share >= LINE_RATE,
    ),
    Rule("sender", "quota", ("quota_sender",), lambda seen: _throttled(seen, THROTTLED), "quota"),
    Rule("receiver", "quota", ("quota_receiver",), lambda seen: seen.quota_receiver >= THROTTLED, "quota"),
    Rule("machine", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "machine"),
    Rule("sender", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "sender"),
    Rule("receiver", "processors", ("processors", "busy_pct"), lambda seen: seen.processors == "receiver"),
    Rule("disk", "reading", ("disk_read",), lambda seen: seen.disk_read >= max(HALF, seen.disk_write or 0.0), "read"),
    Rule("disk", "writing", ("disk_write",), lambda seen: seen.disk_write >= HALF, "write"),
    Rule("path", "shaper", ("queue_ms", "queue_growth", "variation"), _queued, "shaper"),
    Rule("unknown", "other programs", ("processors", "others_pct"), lambda seen: seen.processors == "others", "others"),
    Rule(
        "window",
        "window in flight nearby",
        ("in_flight_share", "rtt_ms", "rtt_min_ms", "window_bytes"),
        lambda seen: _filled(seen) and _nearby(seen) and _drained(seen),
        "receive",
    ),
    Rule(
        "window",
        "send buffer in flight nearby",
        ("in_flight_sndbuf", "in_flight_cwnd", "in_flight_share", "rtt_ms", "rtt_min_ms"),
        lambda seen: _buffered(seen) and _nearby(seen),
        "send",
    ),
    Rule(
        "window",
        "waiting for the window",
        ("held_share",),
        lambda seen: seen.held_share >= HALF and (_drained(seen) or (seen.sndbuf_share or 0.0) >= HALF),
        "receive",
    ),
    Rule(
        "path",
        "policer",
        ("lost_share", "sending_share", "loss_clumps", "unevenness"),
        lambda seen: _dropped(seen) and _even(seen),
        "policer",
    ),
    Rule(
        "path",
        "policer",
        ("lost_share", "sending_share", "loss_clumps", "variance_ratio"),
        lambda seen: _dropped(seen) and _regulated(seen),
        "policer",
    ),
    Rule(
        "loss",
        "losses",
        ("lost_share", "loss_allows", "sending_share", "halves"),
        lambda seen: (
            seen.halves
            and seen.lost_share > 0
            and seen.sending_share >= HALF
            and seen.loss_allows <= MOST_ALLOWED
            and _at_random(seen)
        ),
    ),
    Rule(
        "loss",
        "losses that stop bbr",
        ("lost_share", "sending_share", "halves"),
        lambda seen: (
            not seen.halves and seen.lost_share >= 1 - LINE_RATE and seen.sending_share >= HALF and _at_random(seen)
        ),
    ),
    Rule(
        "receiver",
        "receive buffer full",
        ("overflow_share", "lost_share"),
        lambda seen: seen.overflow_share >= HALF and seen.lost_share >= 1 - LINE_RATE,
    ),
    Rule(
        "path",
        "constant rate of datagrams",
        ("datagram_evenness", "lost_share"),
        lambda seen: seen.datagram_evenness <= EVEN_DATAGRAMS and seen.lost_share >= 1 - LINE_RATE,
        "policer",
    ),
    Rule("loss", "datagrams lost", ("datagram_evenness", "lost_share"), lambda seen: seen.lost_share >= 1 - LINE_RATE),
    Rule(
        "path",
        "slow interface",
        ("sent_share", "lost_share", "variation"),
        lambda seen: seen.sent_share < LINE_RATE and seen.lost_share < LOSSY and seen.variation <= STEADY / 2,
        "shaper",
    ),
)


_NAMES: Final = tuple(item.name for item in fields(Evidence))
_values_of: Final = attrgetter(*_NAMES)
_WORDS: Final = (str, bool)


def judged(seen: Evidence) -> Verdict:
    """The verdict of the first rule that holds."""
    values = dict(zip(_NAMES, _values_of(seen), strict=True))
    known, unknown = Known(**values), {name for name, value in values.items() if value is None}
    for rule in RULES:
        if unknown.isdisjoint(rule.needs) and rule.holds(known):
            numbers = {name: values[name] for name in rule.needs}
            return Verdict(rule.limit, rule.name, rule.cause, {**numbers, "goodput_mbps": seen.goodput_mbps})
    return Verdict(numbers={"goodput_mbps": seen.goodput_mbps, "efficiency": seen.efficiency})


def pooled(several: Sequence[Evidence]) -> Evidence:
    """The mean of numbers over repetitions, and the word that most of them have."""
    means: list[Any] = []
    for values in zip(*map(_values_of, several), strict=True):
        known = [value for value in values if value is not None]
        means.append((mode if isinstance(known[0], _WORDS) else fmean)(known) if known else None)
    return Evidence(*means)


def together(verdicts: Iterable[tuple[Verdict, float]], whole: Verdict | None = None) -> Verdict:
    """The verdict of a test from those of its streams, each with what it falls short of its ceiling.

    `whole` is that of all of them as one, where their links are full together. Where streams differ, it is the limit
    of the one that falls furthest short.
    """
    given = list(verdicts)
    limits = {verdict.limit for verdict, _ in given}
    if whole is not None and len(limits) > 1:
        return next((verdict for verdict, _ in given if verdict.limit == "shared-link"), whole)
    return max(given, key=lambda pair: pair[1])[0] if given else Verdict()
