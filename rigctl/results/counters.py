"""Compare counted with expected octets, for each repetition and the whole run; compute rates at switch ports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from rigctl.base.values import group_by, most
from rigctl.limits.links import link_mtu, link_rate_bps, vlan_tags
from rigctl.model.counters.balance import Framing, Reconciliation, other_traffic, reconcile, sort_points, sum_balances
from rigctl.model.counters.losses import Attribution, attribute
from rigctl.model.counters.points import (
    CountingPoint,
    Crossing,
    PathKnowledge,
    PointKind,
    Wiring,
    counts,
    nic_counted,
    port_counted,
    traffic_of,
)
from rigctl.model.counters.rises import (
    PortCount,
    PortDirection,
    Traffic,
    add_counts,
    join_series,
    octets_at,
    refresh_seconds,
    stretches,
)
from rigctl.records import Cell, PortSeries, Repetition, RepetitionHead, RunInfo, RunPlan
from rigctl.results.condensed import CounterTotals, PointTotals, RunCounters

TRUNK: Final = "trunk"
_TOTALS: Final = (PointKind.TRUNK_OUT, PointKind.TRUNK_IN, PointKind.PORT_IN, PointKind.PORT_OUT)
"""Kinds of counting points; all points of one kind together see all data of a run. The preferred kind is first."""
_USUAL_MTU: Final = 1500
_Passed: TypeAlias = tuple[Repetition, Traffic, Crossing]
"""A repetition, the times of its traffic, and what its flows sent past a counting point."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Counted against expected octets in one repetition: at each interface and switch port (`points`), and in `total`.

    `total` covers the trunk (`where` is "trunk"), or the switch ports of all senders or receivers ("ports"). It is
    None if some data passed only ports that were not read. `others` has the traffic that is not rigctl's, in Mbit/s.
    """

    repetition: Repetition
    traffic_s: float
    points: dict[CountingPoint, Reconciliation]
    where: str
    total: Reconciliation | None
    lost: tuple[Attribution, ...]
    others: dict[CountingPoint, float]
    wiring: Wiring

    def others_on(self, sender: str, receiver: str) -> dict[CountingPoint, float]:
        """Return the other traffic in Mbit/s at each counting point on the path from `sender` to `receiver`."""
        return {point: self.others[point] for point in self.wiring.path(sender, receiver) if point in self.others}


class Balances:
    """Counted against expected octets in a run: for each repetition, and over all repetitions."""

    def __init__(self, info: RunInfo, repetitions: Iterable[Repetition]) -> None:
        self._wiring, self._cells = Wiring(info.plan.ports, info.plan.trunk), _by_number(info.plan)
        self._mtu = most(link_mtu(info, node) for node in info.plan.links) or _USUAL_MTU
        tags = {
            (port.switch, port.name): vlan_tags(info, port.node) for port in info.plan.ports if port.node is not None
        }
        self._framing = Framing(info.ip_version, info.plan.virtual is not None, tags)
        repetitions = tuple(repetitions)
        self._ports_read = any(repetition.counters for repetition in repetitions)
        in_time = sorted(_merge_classes(info.plan, repetitions), key=lambda repetition: repetition.started_at)
        timed = [(repetition, traffic_of(repetition.flows)) for repetition in in_time]
        self._timed = [(repetition, traffic) for repetition, traffic in timed if traffic is not None]
        links_bps = {port.node: link_rate_bps(info, port.node) for port in info.plan.ports if port.node is not None}
        self._known = PathKnowledge(links_bps, _refreshes(info, in_time, [traffic for _, traffic in self._timed]))

    @cached_property
    def each(self) -> tuple[Balance, ...]:
        """Return the balance (counted against expected octets) of each repetition with flow reports, by time."""
        before = [None, *(traffic[1] for _, traffic in self._timed)]
        return tuple(
            self._balance(repetition, traffic, quiet_ns if quiet_ns is not None and quiet_ns <= traffic[0] else None)
            for (repetition, traffic), quiet_ns in zip(self._timed, before, strict=False)
            if not _elsewhere(repetition)
        )

    def of(self, repetition: Repetition) -> Balance | None:
        """Return the balance (counted against expected octets) of a repetition; None without flow reports."""
        return self._by_key.get(key_of_first_class(self._cells[repetition.cell], repetition))

    @cached_property
    def _by_key(self) -> dict[tuple[int, int, int], Balance]:
        return {balance.repetition.key: balance for balance in self.each}

    def _balance(self, repetition: Repetition, traffic: Traffic, quiet_since_ns: int | None) -> Balance:
        crossings, framing = self._crossings[repetition.key], self._framing
        known = replace(self._known, quiet_since_ns=quiet_since_ns)
        counted = counts(repetition, traffic, self._wiring, crossings, known)
        traffic_s = (traffic[1] - traffic[0]) / 1e9
        points = {
            point: reconcile(point, crossings, counted, traffic_s, framing) for point in sort_points(crossings, counted)
        }
        lost = tuple(attribute(repetition.flows, self._wiring, counted, points))
        others = other_traffic(repetition, traffic, self._wiring, crossings, counted, points, framing, self._mtu)
        where, total = _total(crossings, points)
        return Balance(repetition, traffic_s, points, where, total, lost, others, self._wiring)

    def condensed(self) -> RunCounters:
        """Return what is kept of the balances."""
        each = tuple(
            CounterTotals(
                key=balance.repetition.key,
                traffic_s=balance.traffic_s,
                where=balance.where,
                total=balance.total,
                lost=balance.lost,
                differs=any(point.flagged for point in balance.points.values()),
            )
            for balance in self.each
        )
        whole = tuple(
            PointTotals(point, balance, counted.drops, counted.damaged)
            for point, (balance, counted) in self.whole().items()
        )
        return RunCounters(each, whole, self._ports_read)

    def whole(self) -> dict[CountingPoint, tuple[Reconciliation, PortCount]]:
        """Return for each point the balance (counted against expected octets) of the whole run, and all its counts."""
        passed: dict[CountingPoint, list[_Passed]] = {}
        if any(_elsewhere(repetition) for repetition, _ in self._timed):
            return {}
        for repetition, traffic in self._timed:
            for point, crossing in self._crossings[repetition.key].items():
                passed.setdefault(point, []).append((repetition, traffic, crossing))
        crossings: dict[CountingPoint, Crossing] = {}
        counted: dict[CountingPoint, PortCount] = {}
        traffic_s: dict[CountingPoint, float] = {}
        for point, every in passed.items():
            parts = list(self._of_port(point, every) if point.ports else _of_nic(point, every))
            used = [one for own, _ in parts for one in own]
            if parts:
                counted[point] = add_counts((part for _, part in parts), sum)
                crossings[point] = Crossing.sum([crossing for _, _, crossing in used])
                traffic_s[point] = sum(end - start for _, (start, end), _ in used) / 1e9
        return {
            point: (reconcile(point, crossings, counted, traffic_s[point], self._framing), counted[point])
            for point in sort_points(crossings, counted)
        }

    @cached_property
    def _crossings(self) -> dict[tuple[int, int, int], dict[CountingPoint, Crossing]]:
        return {repetition.key: self._wiring.crossings(repetition.flows) for repetition, _ in self._timed}

    def _of_port(self, point: CountingPoint, every: Sequence[_Passed]) -> Iterator[tuple[list[_Passed], PortCount]]:
        """Yield groups of consecutive repetitions, each with what the ports of `point` counted during the group."""
        series = [_readings(repetition, point.owner, point.ports) for repetition, _, _ in every]
        for places in stretches(series):
            used = [every[at] for at in places]
            parts = [join_series(own) for own in zip(*(series[at] for at in places), strict=True)]
            traffic = (used[0][1][0], used[-1][1][1])
            yield used, port_counted(parts, point, traffic, self._wiring, self._known)


def _elsewhere(repetition: Repetition) -> bool:
    """Tell whether Multipath TCP subflows may have bypassed the counting points that the rig file names."""
    return any(side is not None and side.subflows for flow in repetition.flows for side in (flow.sender, flow.receiver))


def key_of_first_class(cell: Cell, repetition: RepetitionHead) -> tuple[int, int, int]:
    """Return (test, repetition, attempt) of the first traffic class: a key that all classes measured together share."""
    return (cell.first, *repetition.key[1:])


def _by_number(plan: RunPlan) -> dict[int, Cell]:
    return {cell.number: cell for cell in plan.cells}


def _merge_classes(plan: RunPlan, repetitions: Iterable[Repetition]) -> list[Repetition]:
    """Return repetitions with the flows and probes of all traffic classes merged: counters do not separate classes.

    Drop a repetition whose first class is missing: the counters include the payload of that class.
    """
    cells = _by_number(plan)
    found = group_by(repetitions, lambda repetition: key_of_first_class(cells[repetition.cell], repetition))
    return [
        replace(
            own[0],
            flows=tuple(flow for repetition in own for flow in repetition.flows),
            nodes=tuple({usage.node: usage for one in reversed(own) for usage in reversed(one.nodes)}.values())[::-1],
            probes=tuple(probes for repetition in own for probes in repetition.probes),
        )
        if len(own) > 1
        else own[0]
        for key, own in found.items()
        if own[0].key == key
    ]


def _of_nic(point: CountingPoint, every: Sequence[_Passed]) -> Iterator[tuple[list[_Passed], PortCount]]:
    for one in every:
        nic = next((usage.nic for usage in one[0].nodes if usage.node == point.owner), None)
        if nic is not None:
            yield [one], nic_counted(nic, point.direction)


def _readings(repetition: Repetition, switch: str, ports: Sequence[str]) -> list[PortSeries]:
    series = [own for own in repetition.counters if own.switch == switch and own.port in ports]
    return series if len(series) == len(ports) else []


def _refreshes(info: RunInfo, repetitions: Sequence[Repetition], traffics: Sequence[Traffic]) -> dict[str, float]:
    """Return the time in s between refreshes of the counters of each switch, as seen in the run at one of its ports."""
    found: dict[str, float | None] = {}
    # One port stands for its switch: the trunk port, which is the busiest, else the first port that was read.
    for port in sorted(info.plan.ports, key=lambda port: port.peer is None):
        read = [own for repetition in repetitions if (own := _readings(repetition, port.switch, [port.name]))]
        if read and port.switch not in found:
            whole = [join_series([read[at][0] for at in places]) for places in stretches(read)]
            found[port.switch] = most(refresh_seconds(own, way, traffics) for own in whole for way in PortDirection)
    return {switch: seen_s for switch, seen_s in found.items() if seen_s is not None}


def _total(
    crossings: Mapping[CountingPoint, Crossing], points: Mapping[CountingPoint, Reconciliation]
) -> tuple[str, Reconciliation | None]:
    """Return where all data were counted ("trunk" or "ports"), and the balance there; ("", None) if nowhere."""
    with_data = [point for point, crossing in crossings.items() if crossing.payload != 0]
    for kind in _TOTALS:
        chosen = [point for point in with_data if point.kind is kind]
        if chosen and all(point in points for point in chosen):
            return TRUNK if kind.is_trunk else "ports", sum_balances([points[point] for point in chosen])
    return "", None


def trunk_total(balance: Balance | None) -> dict[str, float | None]:
    """Return the values of a test's export columns on trunk counters; None if unknown."""
    total = balance.total if balance is not None else None
    trunk = total if balance is not None and balance.where == TRUNK else None
    return {
        "trunk_octets": None if trunk is None else trunk.counted,
        "trunk_expected_octets": None if trunk is None else trunk.expected,
        "counters_difference_pct": None if total is None else total.difference_pct,
    }


def port_octets(balance: Balance | None, sender: str, receiver: str) -> dict[str, int | None]:
    """Return a pair's export columns on its two switch ports: octets in the data's direction; None if unknown."""
    path = balance.wiring.path(sender, receiver) if balance is not None else ()
    counted = {point.kind: balance.points[point].counted for point in path if balance and point in balance.points}
    return {
        "source_port_octets": counted.get(PointKind.PORT_IN),
        "destination_port_octets": counted.get(PointKind.PORT_OUT),
    }


class PortRate(NamedTuple):
    """A line of a chart: times in s after the start of the measurement interval, and rates of payload and headers."""

    name: str
    t_s: list[float]
    mbps: list[float]


def port_rates(plan: RunPlan, repetition: Repetition, most_points: int) -> list[PortRate]:
    """Return rates over time from switch counters: one line per direction of the trunk, else one for all ports.

    Successive readings are merged if a line would have more than `most_points` points.
    """
    series = {(port.switch, port.port): port for port in repetition.counters}
    crossings = Wiring(plan.ports, plan.trunk).crossings(repetition.flows)
    for kind in _TOTALS:
        points = [point for point, crossing in crossings.items() if crossing.payload != 0 and point.kind is kind]
        if not points or any((point.owner, port) not in series for point in points for port in point.ports):
            continue
        names = {f"trunk, {point} {point.direction}": [point] for point in points}
        lines = [
            _line(name, [(series[point.owner, port], point.direction) for point in own for port in point.ports],
                  repetition.window_ns, most_points)
            for name, own in (names if kind.is_trunk else {"switch ports, sum": points}).items()
        ]  # fmt: skip
        return [line for line in lines if line is not None]
    return []


def _line(
    name: str,
    ports: Sequence[tuple[PortSeries, PortDirection]],
    window_ns: tuple[int, int] | None,
    most_points: int,
) -> PortRate | None:
    """Return the total rate of ports at the reading times of the first port; None if a port was not read."""
    risen = [known for series, direction in ports if (known := octets_at(series, direction)) is not None]
    if window_ns is None or len(risen) < len(ports):
        return None
    edges = [t_ns for t_ns in risen[0][0] if window_ns[0] <= t_ns <= window_ns[1]]
    step = -(-(len(edges) - 1) // most_points)
    if step < 1:
        return None
    chosen_s = (np.array([*edges[:-1:step], edges[-1]]) - window_ns[0]) / 1e9
    octets = sum(
        np.interp(chosen_s, (np.array(times, dtype=np.int64) - window_ns[0]) / 1e9, counted) for times, counted in risen
    )
    mbps = np.diff(octets) * 8e-6 / np.diff(chosen_s)
    return PortRate(name, ((chosen_s[1:] + chosen_s[:-1]) / 2).tolist(), mbps.tolist())
