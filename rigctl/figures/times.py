"""The times of messages: round trips of ping-pong, the time to connect, or the time of a request.

They are one histogram over all flows and repetitions: histograms can be merged, percentiles cannot.
"""

from dataclasses import dataclass

from rigctl.base.values import least, most
from rigctl.figures.figure import FlowGroup
from rigctl.model.latency import Buckets, middle_ns, percentile_of_due_ns
from rigctl.records import RequestCounts


@dataclass(frozen=True, slots=True)
class MessageTimes:
    """A histogram of times with the exact shortest and longest, and how many requests have no answer."""

    buckets: Buckets
    least_ns: int | None = None
    most_ns: int | None = None
    unanswered: int = 0

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
    kind = group.cell.kind
    if not (kind.round_trips or kind.connects or kind.scheduled):
        return None
    timed = [side.round_trips for side in group.senders if side.round_trips is not None and side.round_trips.count]
    if not timed or not group.trips:
        return None
    counts = [counts for side in group.senders if (counts := side.counted(RequestCounts)) is not None]
    missing = sum(each.unanswered + each.unsent for each in counts)
    ends = least(trips.min_ns for trips in timed), most(trips.max_ns for trips in timed)
    return MessageTimes(group.trips, *ends, unanswered=missing)
