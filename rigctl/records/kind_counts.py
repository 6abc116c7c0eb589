"""Counts that only one kind of test has: one record per kind, used by the agent's report, the store and the figures.

A record's field names are the keys of the agent's line and of the store. To add counts, add a record and list it in
`KIND_COUNTS`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from pydantic import Field

MOST_COUNTED: Final = 2**62 - 1
"""Largest count. A time of this size in ns (146 years) still fits 64 bits after conversion to another clock."""
Tally: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=MOST_COUNTED)]
ErrorName: TypeAlias = Annotated[str, Field(pattern="^E[A-Z0-9]{1,15}$")]  # of an errno value, as ETIMEDOUT
_MOST_FAILURES: Final = 8


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Base of the records: what one side of a flow counted."""


@dataclass(frozen=True, slots=True)
class Connections(KindCounts):
    """Counts of the connections that a sender opened one after the other; the bytes of its side are those completed."""

    failed: Annotated[tuple[tuple[ErrorName, Tally], ...], Field(max_length=_MOST_FAILURES)]  # by the errno value
    late: Tally | None  # with a rate: how many began more than 1 ms after their time
    retransmits: Tally  # segments sent again, SYNs among them (tcpi_total_retrans)
    unserved: Tally | None = None  # how many were established, and then had no answer within 5 s (ETIMEDOUT)


def connect_failures(counts: Iterable[Connections]) -> Counter[str]:
    """Return how many connections failed, by the name of the errno value."""
    found = Counter[str]()
    for each in counts:
        for name, count in each.failed:
            found[name] += count
    return found


@dataclass(frozen=True, slots=True)
class RequestCounts(KindCounts):
    """Counts of the requests that a sender was to begin at equal intervals; the bytes of its side are those answered.

    The sender's lateness is the time from that at which a request was to begin until the sender's thread came to it.
    """

    late: Tally  # how many the thread came to more than 1 ms after their time
    late_max_ns: Tally
    late_sum_ns: Tally  # over all requests that were begun
    held: Tally  # how many then waited for more than 1 ms, as the socket took no more bytes
    in_flight_max: Tally  # most that were begun and not answered at a time
    unanswered: Tally  # begun, and not answered within 2 s after the end
    unsent: Tally  # due before the end, and not begun within these 2 s


@dataclass(frozen=True, slots=True)
class MulticastCounts(KindCounts):
    """Counts of a receiver of a multicast test; its datagrams are those from the first after its join to its leave.

    Times count from the start of the test; None: it did not come to that. Without the rights to watch the interface,
    what is counted there is None too. Numbers by version are of version 1, 2 and 3, of IGMP or of MLD.
    """

    group: Annotated[str, Field(pattern="^[0-9a-f.:]{2,45}$")]
    joins: Annotated[bool, Field(strict=True)]
    joined_ns: Tally | None
    first_ns: Tally | None  # when the first datagram arrived
    last_ns: Tally | None
    left_ns: Tally | None
    ended_ns: Tally  # when the sender was to end
    first_number: Tally | None  # sequence number of the first datagram that arrived
    before: Tally | None  # datagrams that came to the interface before the join; without a join, all
    before_first_ns: Tally | None
    before_last_ns: Tally | None
    after: Tally | None  # datagrams that came after the leave
    after_last_ns: Tally | None
    queries: tuple[Tally, Tally, Tally] | None  # general queries that arrived, by version
    group_queries: Tally | None  # queries for this group, as after a leave
    query_first_ns: Tally | None
    query_last_ns: Tally | None
    response_ns: Tally | None  # the time that the last general query allows for reports
    querier: Annotated[str, Field(pattern="^[0-9a-f.:]{2,45}$")] | None
    reports: tuple[Tally, Tally, Tally] | None  # reports that the receiver sent, by version
    before_gap_ns: Tally | None = None  # longest time between two datagrams of `before`


@dataclass(frozen=True, slots=True)
class GroupSent(KindCounts):
    """Datagrams that the sender of a multicast test had sent at a receiver's join and leave, by its samples."""

    joined: Tally | None  # datagrams sent before the join, or a few more
    left: Tally | None  # datagrams sent before the leave, or a few less
    until_ns: Tally  # when the last one was sent, after the start of the test


KIND_COUNTS: Final[Mapping[str, type[KindCounts]]] = {
    "connections": Connections,
    "requests": RequestCounts,
    "multicast": MulticastCounts,
    "group_sent": GroupSent,
}
"""Maps the key of the counts in the agent's report and in the store to their record."""
