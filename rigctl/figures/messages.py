"""Figures of tests that count messages: ping-pong, blast and file. Their values are None in other tests."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from rigctl.base.values import divide, least, mean, mean_of_all, most, total
from rigctl.figures.figure import ComparedAs, Figure, FlowGroup, combine_streams
from rigctl.model.latency import LEAST_TIMES, Buckets, middle_ns, percentile_of_due_ns
from rigctl.records import RequestCounts
from rigctl.settings.setting import ONLY_FLOWS

_MESSAGES: Final = ("pingpong", "blast", "file", "connect", "requests", "burst", "multicast")
_TRIPS: Final = ("pingpong",)


@dataclass(frozen=True, slots=True)
class MessageTimes:
    """A histogram of times with the exact shortest and longest, and how many requests have no answer."""

    buckets: Buckets
    least_ns: int | None = None
    most_ns: int | None = None
    unanswered: int = 0
    mean_ns: float | None = None  # of those with an answer

    @property
    def answered(self) -> int:
        return sum(count for _, count in self.buckets)

    @property
    def count(self) -> int:
        """Return the number of times, with the requests that have no answer."""
        return self.answered + self.unanswered

    def time_ns(self, bucket: int) -> float:
        """Return the time that stands for a bucket: its middle, within the shortest and the longest time."""
        time_ns = middle_ns(bucket) if self.most_ns is None else min(middle_ns(bucket), self.most_ns)
        return time_ns if self.least_ns is None else max(time_ns, self.least_ns)

    def percentile_ns(self, percent: float) -> float | None:
        """Return a percentile over all; None without a time, or if a request without an answer has this rank."""
        return percentile_of_due_ns(self.buckets, self.unanswered, percent, self.least_ns, self.most_ns)


def times_of(group: FlowGroup) -> MessageTimes | None:
    """Return the times of a pair or test; None if its kind has none, or if nothing was timed."""
    if not group.cell.kind.timed:
        return None
    sides = [side.round_trips for side in group.senders]
    timed = [trips for trips in sides if trips is not None and trips.count and trips.sum_ns is not None]
    if not timed or not group.trips:
        return None
    counts = [counts for side in group.senders if (counts := side.counted(RequestCounts)) is not None]
    missing = sum(each.unanswered + each.unsent for each in counts)
    return MessageTimes(
        group.trips,
        least(trips.min_ns for trips in timed),
        most(trips.max_ns for trips in timed),
        missing,
        sum(trips.sum_ns or 0 for trips in timed) / sum(trips.count for trips in timed),
    )


TimeOf: TypeAlias = Callable[[MessageTimes], float | None]


def time_us(of: TimeOf, kinds: Collection[str]) -> Callable[[FlowGroup], float | None]:
    """Return a function for a time in µs, which `of` gives in ns, of the tests of these kinds; None for others."""

    def value(group: FlowGroup) -> float | None:
        times = times_of(group) if group.cell.test in kinds else None
        return None if times is None else divide(of(times), 1e3)

    return value


def percentile(percent: float) -> TimeOf:
    """Return a function for a percentile in ns, however few times there are."""
    return lambda times: times.percentile_ns(percent)


def percentile_of_enough(percent: float) -> TimeOf:
    """Return a function for a percentile in ns; None if fewer than ten times are longer (`LEAST_TIMES`)."""
    return lambda times: times.percentile_ns(percent) if times.count >= LEAST_TIMES.get(percent, 1) else None


def _count(group: FlowGroup) -> int | None:
    size = group.cell.message_bytes
    if size is None or not group.cell.in_messages or not group.senders:
        return None
    return sum(side.bytes for side in group.senders) // size


def _time_taken_s(group: FlowGroup) -> float | None:
    return None if _count(group) is None else divide(most(side.elapsed_ns for side in group.senders), 1e9)


def _bytes_per_s(group: FlowGroup) -> float | None:
    count, elapsed_s = _count(group), _time_taken_s(group)
    if not group.cell.kind.transfers:
        return None
    return count * (group.cell.message_bytes or 0) / elapsed_s if count is not None and elapsed_s else None


def _disk_share(group: FlowGroup, *, reading: bool) -> float | None:
    """Return the share of elapsed time in which the disks read, or wrote, the files; None if unknown."""
    if not group.cell.kind.files:
        return None
    took_us = [1e6 * (side.elapsed_ns / 1e9) for side in group.senders if side.elapsed_ns is not None]
    disks = [side.disk for side in (group.senders if reading else group.receivers) if side.disk is not None]
    disk_us = [disk.disk_us for disk in disks if disk.disk_us is not None]
    return sum(disk_us) / sum(took_us) if disk_us and len(disk_us) == len(took_us) and sum(took_us) else None


def _sync_s(group: FlowGroup) -> float | None:
    if not group.cell.kind.files or not group.senders:
        return None
    return divide(mean(side.disk.sync_us if side.disk else None for side in group.receivers), 1e6)


def _trips(
    name: str,
    meaning: str,
    of: TimeOf,
    alias: str = "",
    compared: ComparedAs | None = None,
) -> Figure[float]:
    name = f"app_rtt_{name}_us"
    return Figure(
        name=name,
        unit="us",
        levels=ONLY_FLOWS,
        meaning=meaning,
        digits=3,
        compute=time_us(of, _TRIPS),
        over_streams=mean_of_all,
        kinds=_TRIPS,
        alias=alias,
        watched=bool(alias),
        compared=compared,
    )


ELAPSED: Final = Figure(
    name="elapsed_s",
    unit="s",
    levels=ONLY_FLOWS,
    meaning="time from the sender's first send to the last answer or acknowledgement",
    digits=6,
    compute=_time_taken_s,
    kinds=_MESSAGES,
)
THROUGHPUT: Final = Figure(
    name="throughput_bytes_per_s",
    unit="B/s",
    levels=ONLY_FLOWS,
    meaning="bytes of all messages in one direction ÷ elapsed_s",
    digits=1,
    compute=_bytes_per_s,
    over_streams=total,
    kinds=("pingpong", "blast", "file"),
    higher_is_better=True,
    watched=True,
    compared=ComparedAs(
        lambda cell: cell.kind.name in ("blast", "file"),
        "throughput",
        "throughput",
        "MB/s",
        scale=1e-6,
    ),
)
READ_SHARE: Final = Figure(
    name="read_share",
    unit="",
    levels=ONLY_FLOWS,
    meaning="share of elapsed_s that the sender spent in reading the file",
    digits=4,
    compute=lambda group: _disk_share(group, reading=True),
)
WRITE_SHARE: Final = Figure(
    name="write_share",
    unit="",
    levels=ONLY_FLOWS,
    meaning="share of elapsed_s that the receiver spent in writing the file",
    digits=4,
    compute=lambda group: _disk_share(group, reading=False),
)
SYNC: Final = Figure(
    name="sync_s",
    unit="s",
    levels=ONLY_FLOWS,
    meaning="time from the acknowledgement until the file was safe on the receiver's disk",
    digits=6,
    compute=_sync_s,
)
# Runs are compared by the mean: a percentile is rounded to a histogram bucket, which is some percent wide.
ROUND_TRIP: Final = _trips(
    "mean",
    "mean round-trip time of a message",
    lambda times: times.mean_ns,
    compared=ComparedAs(lambda cell: cell.kind.round_trips, "mean round trip", "round trip", "µs"),
)
ROUND_TRIP_MIN: Final = _trips("min", "shortest round-trip time of a message", lambda times: times.least_ns)
ROUND_TRIP_P50: Final = _trips("p50", "median round-trip time of a message", percentile(50), "rtt_p50")
ROUND_TRIP_P90: Final = _trips("p90", "90th percentile of messages' round-trip time", percentile(90))
ROUND_TRIP_P99: Final = _trips("p99", "99th percentile of messages' round-trip time", percentile(99), "rtt_p99")
ROUND_TRIP_P999: Final = _trips("p999", "99.9th percentile of messages' round-trip time", percentile(99.9))
ROUND_TRIP_MAX: Final = _trips("max", "longest round-trip time of a message", lambda times: times.most_ns)
ROUND_TRIPS: Final = (
    ROUND_TRIP,
    ROUND_TRIP_MIN,
    ROUND_TRIP_P50,
    ROUND_TRIP_P90,
    ROUND_TRIP_P99,
    ROUND_TRIP_P999,
    ROUND_TRIP_MAX,
)
"""Figures of the round-trip times of messages."""
MESSAGE_FIGURES: Final = (
    Figure(
        name="messages",
        unit="",
        levels=ONLY_FLOWS,
        meaning="messages sent; in tests pingpong and requests, those answered; in connect, connections completed; in "
        "burst, datagrams",
        compute=_count,
    ),
    ELAPSED,
    THROUGHPUT,
    READ_SHARE,
    WRITE_SHARE,
    SYNC,
    *ROUND_TRIPS,
)
"""Figures of tests that count messages, in the order of the column table."""


def over_flows(figure: Figure[float], flows: Iterable[FlowGroup]) -> float | None:
    """Return the value of a figure, combined from its values for the single `flows`; None if one is unknown."""
    return combine_streams(figure, (figure.of(flow) for flow in flows))
