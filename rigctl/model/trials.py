"""Describe how the highest load that passes is searched for: one `Searched` record per setting with the value `max`.

A trial is a repetition at one load. Loads have the unit of the searched setting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil
from statistics import fmean, geometric_mean
from typing import Any, Final

from rigctl.base.values import divide, group_by, least, most, total
from rigctl.model.bursts import longest_in_time, port_bursts
from rigctl.model.frames import Packet
from rigctl.model.latency import LEAST_TIMES, merge_histograms, percentile_of_due_ns
from rigctl.records import Cell, Flow, Repetition, RequestCounts, RunPlan, Status, by_stream
from rigctl.settings import LENGTH, MAX, PER_SECOND, RATE, Setting
from rigctl.settings.traffic import MAX_BURST, MOST_PER_SECOND

_STEADY: Final = 0.99
"""A trial counts at the rate that was sent if the senders sent less than this share of the rate asked for."""


_MOST_LATE: Final = 0.01
"""A trial decides nothing if the sender itself came late to more than this share of the requests."""

_ANSWERED_WITHIN_US: Final = 2e6
"""The agent waits for so long after the end of the test: a request without an answer took longer."""


class Reason(StrEnum):
    """Why a trial did not pass."""

    LOSS = "loss"  # more datagrams were lost than is allowed
    SLOW = "slow"  # requests took longer than is allowed
    UNANSWERED = "unanswered"  # requests had no answer
    UNSENT = "unsent"  # the connection took no more requests
    SOCKET_FULL = "socket full"  # the socket of a receiver was full: the trial says nothing about the port
    LATE = "late"  # the sender itself was late: the trial says nothing about the network


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a search: the load that was asked for and sent, whether it passed, and what was measured.

    `asked` is None if the senders had no limit. `passed` is None for a trial that decides nothing.
    """

    number: int  # number of the repetition that is this trial
    asked: int | None
    sent: float | None  # None if unknown: then the trial has not passed
    load: float | None = None  # the load at which the trial counts: that asked for, or that sent; None if unknown
    passed: bool | None = None
    reason: Reason | None = None
    arrived: float | None = None
    loss: float | None = None  # share of what was sent
    burst: int | None = None  # most datagrams that a sender sent in one burst; None if unlimited or unknown
    lasted_s: float | None = None  # from the first byte sent to the last, of the slowest flow
    p99_us: float | None = None  # of requests, of the slowest pair; None for fewer than 1,000 or if lost
    longest_us: float | None = None  # longest time of an answered request
    missing: int | None = None  # requests without an answer, those included that were not sent
    late: float | None = None  # share of the requests to which the sender came late, of the pair with the largest

    @property
    def undecided(self) -> bool:
        """Tell whether the trial was measured and decides nothing."""
        return self.passed is None and self.sent is not None


def _middle(low: float, high: float) -> float:
    return fmean((low, high))


@dataclass(frozen=True)
class Searched:
    """A setting whose highest passing value is searched for, and how a repetition becomes a trial of the search."""

    setting: Setting[Any]
    trial: Callable[[RunPlan, Cell, Repetition], Trial]
    least: int  # lowest load that is tried
    most: int | None = None  # highest load that is tried; None: no bound
    most_of: Callable[[Cell], int | None] | None = None  # computes `most` for a test; None: the same for all tests
    first: Callable[[Cell], int | None] = lambda _: None  # load of the first trial; None: as high as the senders can
    growth: float = 2.0  # next load ÷ last load, as long as all trials pass, or all fail
    between: Callable[[float, float], float] = _middle  # next load, between the highest passed and the lowest failed
    precision: float = 0.0  # the search ends when these are within this share, or differ by 1
    near: bool = False  # True: what arrived in a failed trial is about the highest load that passes

    def close_enough(self, low: float, high: float) -> bool:
        """Tell whether no load between a passed and a failed one needs to be tried."""
        return high - low <= max(self.precision * high, 1.0)


def _datagram_counts(repetition: Repetition) -> tuple[int, int] | None:
    """Return how many datagrams all flows together sent and received; None if a count is unknown."""
    sent, arrived = (
        total(side.datagrams.count if side is not None and side.datagrams is not None else None for side in sides)
        for sides in ([flow.sender for flow in repetition.flows], [flow.receiver for flow in repetition.flows])
    )
    return None if sent is None or arrived is None else (sent, arrived)


def _datagram_trial(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial:
    """Return a repetition as a trial of a rate of UDP, in bit/s per flow: it passes if its loss is within `max_loss`.

    The results are None if the repetition was not measured.
    """
    asked = repetition.load
    unknown = Trial(repetition.repetition, asked, None, load=asked)
    counts, size = _datagram_counts(repetition), cell.message_bytes
    if counts is None or size is None or repetition.status not in (Status.OK, Status.INVALID):
        return unknown
    times = [flow.sender.elapsed_ns or 0 for flow in repetition.flows if flow.sender is not None]
    if min(times) <= 0:
        return unknown
    each = size * 8e9 / max(times) / len(times)
    sent_bps, loss = counts[0] * each, (counts[0] - counts[1]) / counts[0] if counts[0] else None
    return Trial(
        repetition.repetition,
        asked,
        sent_bps,
        load=round(sent_bps) if asked is None or sent_bps < _STEADY * asked else asked,
        passed=None if loss is None else loss <= plan.max_loss,
        reason=Reason.LOSS if loss is not None and loss > plan.max_loss else None,
        arrived=counts[1] * each,
        loss=loss,
        burst=most(flow.sender.datagrams.burst for flow in repetition.flows if flow.sender and flow.sender.datagrams),
        lasted_s=max(times) / 1e9,
    )


@dataclass(frozen=True, slots=True)
class _Requests:
    """Counts and times of the requests of a pair."""

    answered: int
    unanswered: int
    unsent: int
    late: int
    late_max_us: float
    p99_us: float | None
    longest_us: float | None

    @property
    def begun(self) -> int:
        return self.answered + self.unanswered

    @property
    def missing(self) -> int:
        return self.unanswered + self.unsent


def _requests(cell: Cell, flows: Sequence[Flow]) -> _Requests | None:
    """Return what became of the requests of a pair; None if the report of a flow is missing."""
    sides = [flow.sender for flow in flows if flow.sender is not None]
    counts = [own for side in sides if (own := side.counted(RequestCounts)) is not None]
    if len(counts) < cell.parallel or not cell.message_bytes:
        return None
    unanswered, unsent = sum(one.unanswered for one in counts), sum(one.unsent for one in counts)
    trips = [side.round_trips for side in sides if side.round_trips is not None]
    bounds_ns = least(one.min_ns for one in trips), most(one.max_ns for one in trips)
    times = merge_histograms(side.histogram for side in sides)
    answered = sum(side.bytes for side in sides) // cell.message_bytes
    p99_ns = percentile_of_due_ns(times, unanswered + unsent, 99, *bounds_ns)
    return _Requests(
        answered=answered,
        unanswered=unanswered,
        unsent=unsent,
        late=sum(one.late for one in counts),
        late_max_us=max(one.late_max_ns for one in counts) / 1e3,
        p99_us=divide(p99_ns, 1e3) if answered + unanswered + unsent >= LEAST_TIMES[99] else None,
        longest_us=divide(bounds_ns[1], 1e3),
    )


def _request_trial(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial:
    """Return a repetition as a trial of requests per second of each pair.

    It passes if the 99th percentile of each pair is within `max_latency` and all requests were answered. Of fewer than
    1,000 requests, which have no such percentile, the longest must be within it.

    It decides nothing if a sender itself was late, unless the times are too long without its lateness, too: where
    requests are served in turn, lateness adds at most its longest time to any of them.
    """
    asked, by_pair = repetition.load, by_stream(repetition.flows)
    known = [found for stream in cell.streams if (found := _requests(cell, by_pair.get(stream, ()))) is not None]
    measured = len(known) == len(cell.streams) and repetition.status in (Status.OK, Status.INVALID)
    if not measured or asked is None or plan.max_latency_s is None:
        return Trial(repetition.repetition, asked, None, load=asked)
    p99s_us, longest_us = [own.p99_us for own in known], most(own.longest_us for own in known)
    late = max(own.late / max(1, own.begun) for own in known)
    time_us = longest_us if None in p99s_us else most(p99s_us)
    behind_us = max(own.late_max_us for own in known) if late > _MOST_LATE else 0.0
    reasons = {
        Reason.UNSENT: any(own.unsent for own in known) and behind_us < _ANSWERED_WITHIN_US,
        Reason.UNANSWERED: any(own.unanswered for own in known) and behind_us < _ANSWERED_WITHIN_US,
        Reason.SLOW: time_us is not None and time_us > 1e6 * plan.max_latency_s + behind_us,
        Reason.LATE: late > _MOST_LATE,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return Trial(
        repetition.repetition,
        asked,
        asked * min(own.begun / max(1, own.begun + own.unsent) for own in known),
        load=asked,
        passed=None if reason is Reason.LATE else reason is None,
        reason=reason,
        p99_us=None if None in p99s_us else most(p99s_us),
        longest_us=longest_us,
        lasted_s=divide(most(flow.sender.elapsed_ns for flow in repetition.flows if flow.sender), 1e9),
        missing=sum(own.missing for own in known),
        late=late,
    )


def max_latency_us(plan: RunPlan, cell: Cell) -> int | None:
    """Return the longest 99th percentile with which a trial of the test passes; None if it searches for no requests."""
    if cell[PER_SECOND] != MAX or plan.max_latency_s is None:
        return None
    return round(1e6 * plan.max_latency_s)


def _least_with_p99(cell: Cell) -> int:
    """Return the lowest number of requests per second from which a trial has a 99th percentile."""
    return min(MOST_PER_SECOND, ceil(LEAST_TIMES[99] / cell.sending_s))


RATE_OF_DATAGRAMS: Final = Searched(RATE, _datagram_trial, least=1000, precision=0.01)
RATE_OF_REQUESTS: Final = Searched(
    PER_SECOND,
    _request_trial,
    least=1,
    most=MOST_PER_SECOND,
    first=_least_with_p99,
    growth=4.0,
    between=lambda low, high: geometric_mean((low, high)),
    precision=0.02,
)


def _burst_trial(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial:
    """Return a repetition as a trial of a length of bursts: it passes if no datagram of any burst was lost.

    What a full socket of a receiver drops says nothing of the port: such a trial does not pass. `arrived` is the length
    that its bursts with loss make likely.
    """
    asked, size = repetition.load, cell.message_bytes or 1
    unknown = Trial(repetition.repetition, asked, None, load=asked)
    if repetition.status is not Status.OK:
        return unknown
    bits = 8 * Packet("udp", plan.ip_version).wire_bytes(size)
    by_receiver = group_by(repetition.flows, lambda flow: flow.stream.receiver).values()
    ports = [(port_bursts(own, size, bits, {}), len(own)) for own in by_receiver]
    bursts = [burst for port, _ in ports for burst in port.bursts]
    if not bursts or not all(port.bursts for port, _ in ports):
        return unknown
    sent, received = sum(burst.sent for burst in bursts), sum(burst.received for burst in bursts)
    sides = [flow.receiver for flow in repetition.flows if flow.receiver is not None]
    full = any(side.datagrams.overflow for side in sides if side.datagrams is not None)
    likely = least(divide(port.longest, flows) for port, flows in ports)
    return Trial(
        repetition.repetition,
        asked,
        asked,
        load=asked,
        passed=sent == received and not full,
        reason=Reason.SOCKET_FULL if full else None,
        arrived=likely,
        loss=(sent - received) / sent,
    )


_FIRST_LENGTH: Final = 64
LENGTH_OF_BURSTS: Final = Searched(
    LENGTH,
    _burst_trial,
    least=1,
    most=MAX_BURST,
    most_of=lambda cell: min(MAX_BURST, longest_in_time(cell)),
    first=lambda cell: min(_FIRST_LENGTH, longest_in_time(cell)),
    growth=4.0,
    near=True,
)
SEARCHED: Final = (RATE_OF_DATAGRAMS, RATE_OF_REQUESTS, LENGTH_OF_BURSTS)


def searched_setting(row: Cell | Mapping[Any, Any]) -> Searched | None:
    """Return which setting of a test (or of a row of the matrix) is searched for; None for a test without a search."""
    found = next((each for each in SEARCHED if row[each.setting] == MAX), None)
    if found is None or found.most_of is None or not isinstance(row, Cell):
        return found
    return replace(found, most=found.most_of(row))


def at_load(cell: Cell, load: int | None) -> Cell:
    """Return the test as a trial measures it, with `load` as value of its searched setting; None: without a limit.

    A test without a search is returned unchanged.
    """
    searched = searched_setting(cell)
    if searched is None:
        return cell
    return replace(cell, settings=cell.settings | {searched.setting: load})


def trial_of(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial | None:
    """Return a repetition as a trial; None if the test is not searched."""
    searched = searched_setting(cell)
    return None if searched is None else searched.trial(plan, cell, repetition)
