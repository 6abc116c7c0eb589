"""The evidence on a stream that the rules of the limit look at."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from statistics import fmean, mode
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence on one stream, or the mean over its repetitions. Shares are of 1; None is unknown."""

    goodput_mbps: float | None = None
    efficiency: float | None = None  # of the ceiling
    asked_share: float | None = None  # of the rate requested
    larger_frames: float | None = None  # ceiling with frames as large as the links' MTU ÷ ceiling
    shared_share: float | None = None  # of a link shared with other pairs: what all of them took
    shared_link: str | None = None
    beside_classes: bool | None = None  # other classes of traffic were measured at the same time
    other_share: float | None = None  # of a link on the path: the least that other traffic took
    other_mbps: float | None = None  # the same, on the wire
    other_link: str | None = None
    other_counter: str | None = None  # what counted it
    link_share: float | None = None  # of that link: what the run and others took together
    clamped_mss: float | None = None  # the MSS if it is smaller than both ends' MTUs explain
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
    marked_share: float | None = None  # of segments: acknowledged with the echo of a mark of congestion (ECN)
    marks_allow: float | None = None  # goodput by the same rule, with one cut in each round trip with marks, ÷ goodput
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
    agent_share: float | None = None  # of what the agents' threads could have used: the busier end


NAMES: Final = tuple(item.name for item in fields(Evidence))
values_of: Final = attrgetter(*NAMES)
_WORDS: Final = (str, bool)


def pooled(several: Sequence[Evidence]) -> Evidence:
    """Return the mean of each number over repetitions, and the most frequent value of each word."""
    means: list[Any] = []
    for values in zip(*map(values_of, several), strict=True):
        known = [value for value in values if value is not None]
        means.append((mode if isinstance(known[0], _WORDS) else fmean)(known) if known else None)
    return Evidence(*means)
