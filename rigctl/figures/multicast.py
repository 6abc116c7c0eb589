"""Figures of multicast tests: what each receiver got and how fast it joined and left, and what reached other nodes."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from rigctl.base.values import divide, join_texts, mean, most, total
from rigctl.figures.figure import ComparedAs, Figure, FlowGroup
from rigctl.records import Flow, GroupSent, MulticastCounts
from rigctl.settings.setting import ONLY_FLOWS

_KIND: Final = ("multicast",)
_SILENT_NS: Final = 100_000_000
_LEAST_SENT: Final = 3
"""Fewest datagrams sent before a join from which their absence at a node tells something about the switch."""


def memberships(group: FlowGroup) -> list[MulticastCounts]:
    """Return what the receivers of a multicast test counted of the group, in each repetition."""
    return [own for flow in group.flows if (own := flow.membership) is not None]


def _each_ns(flow: Flow) -> float:
    """Return the mean time between two datagrams that were sent; 0 if unknown."""
    sent, own = flow.sender.datagrams if flow.sender is not None else None, flow.membership
    return own.ended_ns / sent.count if own is not None and sent is not None and sent.count else 0.0


def quiet_ns(flow: Flow) -> float:
    """Return the time without a datagram after which a stream has stopped: 100 ms, or three datagrams."""
    return max(_SILENT_NS, 3 * _each_ns(flow))


def sent_until_ns(flow: Flow) -> int | None:
    """Return when the sender sent its last datagram, after the start; None if unknown."""
    then, own = flow.sender.counted(GroupSent) if flow.sender is not None else None, flow.membership
    return None if then is None or own is None else min(then.until_ns, own.ended_ns)


def _mbps(flow: Flow) -> float | None:
    side, own = flow.receiver, flow.membership
    if side is None or own is None or not own.joins:
        return None
    return 0.0 if not side.bytes else divide(side.bytes * 8e3, side.elapsed_ns)


def _join_us(flow: Flow) -> float | None:
    own = flow.membership
    return (
        None if own is None or own.first_ns is None or own.joined_ns is None else (own.first_ns - own.joined_ns) / 1e3
    )


def is_stopped(flow: Flow) -> bool | None:
    """Tell whether the stream stopped at a node that left the group, before the sender ended; None if unknown."""
    own = flow.membership
    until_ns = sent_until_ns(flow)
    if own is None or own.left_ns is None or own.after is None or until_ns is None:
        return None
    return until_ns - (own.after_last_ns or own.left_ns) > quiet_ns(flow)


def _leave_us(flow: Flow) -> float | None:
    """Return the time from the leave to the last datagram; None if they came until the end, or if it is unknown."""
    own = flow.membership
    if own is None or own.left_ns is None or not is_stopped(flow):
        return None
    return ((own.after_last_ns or own.left_ns) - own.left_ns) / 1e3


def _silent_us(flow: Flow) -> float | None:
    """Return how long a receiver got nothing before its leave, while the sender sent; 0 if it sent next to nothing."""
    own, then = flow.membership, flow.sender.counted(GroupSent) if flow.sender is not None else None
    came = flow.receiver.datagrams if flow.receiver is not None else None
    if own is None or own.left_ns is None or own.last_ns is None or then is None or then.left is None or came is None:
        return None
    # A sender that is late sends nothing, and a full queue holds datagrams back: both must be long.
    silent_ns, missing = own.left_ns - own.last_ns, then.left - (came.highest or 0)
    return silent_ns / 1e3 if min(silent_ns, missing * _each_ns(flow)) > quiet_ns(flow) else 0.0


def membership_ns(flow: Flow) -> int | None:
    """Return the time from a receiver's join to its leave; None if unknown."""
    own = flow.membership
    return None if own is None or own.joined_ns is None or own.left_ns is None else own.left_ns - own.joined_ns


def _outside_pct(group: FlowGroup) -> float | None:
    """Return the share of the datagrams, sent while a node had not joined, that reached it all the same."""
    came: list[int | None] = []
    sent: list[float | None] = []
    for flow in group.flows:
        own, side = flow.membership, flow.sender
        if own is None or own.before is None or side is None or side.datagrams is None or not own.ended_ns:
            return None
        came.append(own.before)
        # The number of the first datagram that a receiver got is how many were sent before.
        joined_ns = own.ended_ns if own.joined_ns is None else own.joined_ns
        sent.append(own.first_number or side.datagrams.count * joined_ns / own.ended_ns)
    if (total(sent) or 0) < _LEAST_SENT:
        return None
    share = divide(total(came), total(sent))
    return None if share is None else min(100.0, 100 * share)


def _each(of: Callable[[Flow], float | None]) -> Callable[[FlowGroup], list[float | None]]:
    return lambda group: [of(flow) for flow in group.flows]


def _time(name: str, meaning: str, of: Callable[[Flow], float | None]) -> Figure[float]:
    return Figure(
        name=name,
        unit="us",
        levels=ONLY_FLOWS,
        meaning=meaning,
        digits=1,
        compute=lambda group: most(_each(of)(group)),
        over_streams=most,
        kinds=_KIND,
    )


_ByVersion: TypeAlias = Callable[[MulticastCounts], Iterable[int] | None]


def _versions(of: _ByVersion, group: FlowGroup) -> str | None:
    """Return the versions with a count, as `IGMPv2`; None if there is none, or if they are unknown."""
    found = [
        f"{'MLD' if ':' in own.group else 'IGMP'}v{version}"
        for own in memberships(group)
        for version, count in enumerate(of(own) or (), 1)
        if count
    ]
    return join_texts(found)


def _text(name: str, meaning: str, of: _ByVersion) -> Figure[str]:
    return Figure(
        name=name,
        unit="",
        levels=ONLY_FLOWS,
        meaning=meaning,
        compute=lambda group: _versions(of, group),
        is_text=True,
    )


def _sum(name: str, meaning: str, of: Callable[[MulticastCounts], int | None]) -> Figure[int]:
    return Figure(
        name=name,
        unit="",
        levels=ONLY_FLOWS,
        meaning=meaning,
        compute=lambda group: total(map(of, memberships(group))),
        kinds=_KIND,
    )


RECEIVED_MBPS: Final = Figure(
    name="received_mbps",
    unit="Mbit/s",
    levels=ONLY_FLOWS,
    meaning="multicast: payload that a receiver got ÷ the time from its first datagram to its last",
    digits=1,
    compute=lambda group: mean(_each(_mbps)(group)),
    kinds=_KIND,
    higher_is_better=True,
    compared=ComparedAs(lambda cell: cell.kind.multicast, "received rate", "received", "Mbit/s"),
)
JOIN_TIME: Final = _time("join_us", "longest time from IP_ADD_MEMBERSHIP to a receiver's first datagram", _join_us)
LEAVE_TIME: Final = _time(
    "leave_us",
    "longest time from IP_DROP_MEMBERSHIP to the last datagram at the interface; empty if they came until the end, or "
    "without the rights to watch",
    _leave_us,
)
SILENCE: Final = _time(
    "silent_us",
    "longest time from a receiver's last datagram to its leave, if the sender sent for more than 100 ms of it; else 0",
    _silent_us,
)
OUTSIDE: Final = _sum(
    "outside_datagrams",
    "datagrams of the group that reached a node before its join, or that did not join; empty without rights to watch",
    lambda own: own.before,
)
OUTSIDE_PCT: Final = Figure(
    name="outside_pct",
    unit="%",
    levels=ONLY_FLOWS,
    meaning="outside_datagrams as a share of those sent meanwhile",
    digits=2,
    compute=_outside_pct,
    kinds=_KIND,
)
QUERIES: Final = _sum(
    "group_queries",
    "general queries of a querier (IGMP, MLD) that reached a node, and its queries for the group",
    lambda own: None if own.queries is None or own.group_queries is None else sum(own.queries) + own.group_queries,
)
QUERIED: Final = _text("query_version", "versions of the general queries that reached a node", lambda own: own.queries)
REPORTED: Final = _text("report_version", "versions of the reports with which a node joined", lambda own: own.reports)
MULTICAST_FIGURES: Final = (
    RECEIVED_MBPS,
    JOIN_TIME,
    LEAVE_TIME,
    SILENCE,
    OUTSIDE,
    OUTSIDE_PCT,
    QUERIES,
    QUERIED,
    REPORTED,
)
"""Figures of multicast tests, in the order of the column table."""
