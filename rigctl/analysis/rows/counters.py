"""The balance of octets of each repetition and of the whole run, and the rates that switches counted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from rigctl.analysis.limits.ceiling import link_mtu, link_rate_bps
from rigctl.model.counters.balance import Framing, Reconciliation, reconcile_all
from rigctl.model.counters.losses import Attribution, attribute
from rigctl.model.counters.others import OtherTraffic, other_traffic
from rigctl.model.counters.points import (
    Counted,
    CountingPoint,
    Crossing,
    Known,
    PointKind,
    Wiring,
    counts,
    nic_counted,
    port_counted,
    traffic_of,
)
from rigctl.model.counters.rises import (
    PortDirection,
    Traffic,
    goes_on,
    joined,
    mean_bps,
    rates,
    refresh_seconds,
    stretches,
    together,
)
from rigctl.model.unknowns import most, total
from rigctl.records import PortSeries, Repetition, RunInfo, RunPlan

TRUNK: Final = "trunk"
TOTALS: Final = (PointKind.TRUNK_OUT, PointKind.TRUNK_IN, PointKind.PORT_IN, PointKind.PORT_OUT)
"""Kinds of points that carry all data, the best first."""
_USUAL_MTU: Final = 1500


@dataclass(frozen=True, slots=True)
class Total:
    """The balance of the trunk in one repetition or, without a trunk, of the ports of all senders together."""

    where: str  # "trunk" or "ports"
    expected: int | None
    counted: int | None
    difference_pct: float | None
    flagged: bool
    coarse: bool
    why: str | None
    retransmitted: int = 0  # octets of payload


@dataclass(frozen=True, slots=True)
class Balance:
    """The balance of one repetition. `total` is None if no port that carries all of the data was read."""

    repetition: Repetition
    traffic_s: float
    points: dict[CountingPoint, Reconciliation]
    total: Total | None
    lost: tuple[Attribution, ...]
    ports: dict[tuple[PointKind, str], int | None]  # octets counted at the port of a node
    others: dict[CountingPoint, OtherTraffic]
    wiring: Wiring

    def others_on(self, sender: str, receiver: str) -> list[OtherTraffic]:
        """Return the other traffic on the path from `sender` to `receiver`, wherever it was counted."""
        return [self.others[point] for point in self.wiring.path(sender, receiver) if point in self.others]


class Balances:
    """The balances of a run's repetitions, and of the run as a whole."""

    def __init__(self, info: RunInfo, repetitions: Iterable[Repetition]) -> None:
        self._wiring = Wiring(info.plan.ports, info.plan.trunk)
        self._mtu = most(link_mtu(info, node) for node in info.plan.links) or _USUAL_MTU
        self._framing = Framing(info.ip_version, info.plan.virtual is not None)
        in_order = sorted(repetitions, key=lambda repetition: repetition.started_at)
        self._timed = [(repetition, traffic_of(repetition.flows)) for repetition in in_order]
        nodes = {port.node for port in info.plan.ports if port.node is not None}
        self._node_of: dict[tuple[str, tuple[str, ...]], str | None] = {
            (port.switch, (port.name,)): port.node for port in info.plan.ports
        }
        self._known = Known({node: link_rate_bps(info, node) for node in nodes}, self._refreshes(info))

    @cached_property
    def each(self) -> tuple[Balance, ...]:
        """Return the balance of every repetition whose flows were reported, in the order of time."""
        return tuple(self._balances())

    def of(self, repetition: Repetition) -> Balance | None:
        """Return the balance of one repetition; None if its flows were not reported."""
        return self._by_key.get(repetition.key)

    @cached_property
    def _by_key(self) -> dict[tuple[int, int, int], Balance]:
        return {balance.repetition.key: balance for balance in self.each}

    def _balances(self) -> Iterator[Balance]:
        before_ns: int | None = None
        for repetition, traffic in self._timed:
            if traffic is None:
                continue
            quiet_since_ns = before_ns if before_ns is not None and before_ns <= traffic[0] else None
            known = replace(self._known, quiet_since_ns=quiet_since_ns)
            yield self._balance(repetition, traffic, self._crossings[repetition.key], known)
            before_ns = traffic[1]

    def whole(self) -> dict[CountingPoint, tuple[Reconciliation, Counted]]:
        """Return every counting point over the whole run, from the first reading before a byte to the last one."""
        crossings: dict[CountingPoint, Crossing] = {}
        counted: dict[CountingPoint, Counted] = {}
        traffic_ns: dict[CountingPoint, int] = {}
        passing = self._passing()
        for point, used in passing.items():
            parts = list(self._port_parts(point, used) if point.ports else self._nic_parts(point, used))
            if parts:
                counted[point] = _sum([part for part, _, _ in parts])
                crossings[point] = sum((crossing for _, crossing, _ in parts), Crossing())
                traffic_ns[point] = sum(length for _, _, length in parts)
        found: dict[CountingPoint, tuple[Reconciliation, Counted]] = {}
        for point in reconcile_all(crossings, counted, (0, 1), self._framing):
            # Each point has its own time, as what a reading may lack is given in seconds.
            pair = {direction: counted[direction] for direction in (point, point.opposite) if direction in counted}
            balance = reconcile_all(crossings, pair, (0, traffic_ns[point]), self._framing)[point]
            found[point] = (balance, counted[point])
        return found

    @cached_property
    def _crossings(self) -> dict[tuple[int, int, int], dict[CountingPoint, Crossing]]:
        return {
            repetition.key: self._wiring.crossings(repetition.flows)
            for repetition, traffic in self._timed
            if traffic is not None
        }

    def _balance(
        self, repetition: Repetition, traffic: Traffic, crossings: dict[CountingPoint, Crossing], known: Known
    ) -> Balance:
        counted = counts(repetition, self._wiring, known, crossings)
        points = reconcile_all(crossings, counted, traffic, self._framing)
        lost = attribute(repetition.flows, self._wiring, counted, points)
        total = total_of(crossings, points)
        ports = {
            (point.kind, node): balance.counted
            for point, balance in points.items()
            if (node := self._node_of.get((point.owner, point.ports))) is not None
        }
        others = other_traffic(repetition, traffic, self._wiring, crossings, counted, points, self._framing, self._mtu)
        return Balance(
            repetition, (traffic[1] - traffic[0]) / 1e9, points, total, tuple(lost), ports, others, self._wiring
        )

    def _passing(self) -> dict[CountingPoint, list[tuple[Repetition, Traffic, Crossing]]]:
        found: dict[CountingPoint, list[tuple[Repetition, Traffic, Crossing]]] = {}
        for repetition, traffic in self._timed:
            if traffic is not None:
                for point, crossing in self._crossings[repetition.key].items():
                    found.setdefault(point, []).append((repetition, traffic, crossing))
        return found

    def _port_parts(
        self, point: CountingPoint, used: Sequence[tuple[Repetition, Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        """Yield what a port counted over consecutive repetitions, what passed then, and for how long (ns)."""
        chunk: list[tuple[list[PortSeries], Traffic, Crossing]] = []
        for repetition, traffic, crossing in used:
            series = [port for port in repetition.counters if port.switch == point.owner and port.port in point.ports]
            if len(series) < len(point.ports) or not all(port.columns.get("t_ns") for port in series):
                yield from self._chunk_counted(point, chunk)
                chunk = []
                continue
            if chunk and not all(goes_on(*ends) for ends in zip(chunk[-1][0], series, strict=True)):
                yield from self._chunk_counted(point, chunk)
                chunk = []
            chunk.append((series, traffic, crossing))
        yield from self._chunk_counted(point, chunk)

    def _chunk_counted(
        self, point: CountingPoint, chunk: Sequence[tuple[list[PortSeries], Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        if not chunk:
            return
        series = [joined([parts[at] for parts, _, _ in chunk]) for at in range(len(point.ports))]
        traffic = (chunk[0][1][0], chunk[-1][1][1])
        counted = port_counted(series, point, traffic, self._wiring.rate_bps(point, self._known.links_bps), self._known)
        length_ns = sum(end - start for _, (start, end), _ in chunk)
        yield counted, sum((crossing for _, _, crossing in chunk), Crossing()), length_ns

    def _nic_parts(
        self, point: CountingPoint, used: Sequence[tuple[Repetition, Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        for repetition, traffic, crossing in used:
            nic = next((usage.nic for usage in repetition.nodes if usage.node == point.owner), None)
            if nic is not None:
                yield nic_counted(nic, point.direction), crossing, traffic[1] - traffic[0]

    def _refreshes(self, info: RunInfo) -> dict[str, float]:
        """Return the time between refreshes of each switch's counters, seen over the whole run at one of its ports."""
        traffics = [traffic for _, traffic in self._timed if traffic is not None]
        found: dict[str, float] = {}
        looked_at: set[str] = set()
        # One port represents its switch: the trunk's, which is the busiest, or the first that was read.
        for port in sorted(info.plan.ports, key=lambda port: port.peer is None):
            if port.switch in looked_at:
                continue
            parts = [
                series
                for repetition, _ in self._timed
                for series in repetition.counters
                if (series.switch, series.port) == (port.switch, port.name)
            ]
            if not parts:
                continue
            looked_at.add(port.switch)
            for stretch in stretches(parts):
                for direction in PortDirection:
                    seen_s = refresh_seconds(stretch, direction, traffics)
                    if seen_s is not None:
                        found[port.switch] = max(seen_s, found.get(port.switch, 0.0))
        return found


def total_of(crossings: dict[CountingPoint, Crossing], points: dict[CountingPoint, Reconciliation]) -> Total | None:
    """Return the total of the trunk, else of the senders' ports, else of the receivers' ports, whichever was read."""
    with_data = [point for point, crossing in crossings.items() if crossing.payload != 0]
    for kind in TOTALS:
        chosen = [point for point in with_data if point.kind is kind]
        known = [points[point] for point in chosen if point in points]
        if chosen and len(known) == len(chosen):
            return _total(TRUNK if kind.is_trunk else "ports", known)
    return None


def trunk_total(balance: Balance | None) -> dict[str, float | None]:
    """Return the columns of a cell (rigctl.columns)."""
    total = balance.total if balance is not None else None
    trunk = total if total is not None and total.where == TRUNK else None
    return {
        "trunk_octets": None if trunk is None else trunk.counted,
        "trunk_expected_octets": None if trunk is None else trunk.expected,
        "counters_difference_pct": None if total is None else total.difference_pct,
    }


def port_octets(balance: Balance | None, sender: str, receiver: str) -> dict[str, int | None]:
    """Return the columns of a pair: what the switch ports of its ends counted in the data's direction."""
    ports = balance.ports if balance is not None else {}
    return {
        "source_port_octets": ports.get((PointKind.PORT_IN, sender)),
        "destination_port_octets": ports.get((PointKind.PORT_OUT, receiver)),
    }


def _total(where: str, parts: Sequence[Reconciliation]) -> Total:
    sent, seen = total(part.expected for part in parts), total(part.counted for part in parts)
    coarse = any(part.coarse for part in parts)
    return Total(
        where,
        sent,
        seen,
        100 * (seen - sent) / sent if sent and seen is not None and not coarse else None,
        any(part.flagged for part in parts),
        coarse,
        next((part.why for part in parts if part.flagged), next((part.why for part in parts if part.why), None)),
        sum(part.retransmitted for part in parts),
    )


def _sum(parts: Sequence[Counted]) -> Counted:
    """Return the sum of several counts of one point; unknown if one of them is."""
    return Counted(
        total(part.octets for part in parts),
        total(part.packets for part in parts),
        total(part.drops for part in parts),
        total(part.damaged for part in parts),
        most(part.refresh_s for part in parts),
        sum(part.missing_s for part in parts),
        sum(part.extra_s for part in parts),
        next((part.why for part in parts if part.why is not None), None),
    )


class PortRate(NamedTuple):
    """A line of a chart: seconds from the start of the measurement interval, Mbit/s with headers."""

    name: str
    t_s: list[float]
    mbps: list[float]


def port_rates(plan: RunPlan, repetition: Repetition, most_points: int) -> list[PortRate]:
    """Return the counters' rate over time: one line per direction of the trunk, or one for all senders' ports.

    Neighbouring readings are joined if a line has more than `most_points`.
    """
    if repetition.window_ns is None:
        return []
    series = {(port.switch, port.port): port for port in repetition.counters}
    crossings = Wiring(plan.ports, plan.trunk).crossings(repetition.flows)
    data = [point for point, crossing in crossings.items() if crossing.payload != 0]
    for kind in TOTALS:
        points = [point for point in data if point.kind is kind]
        if not points or any((point.owner, port) not in series for point in points for port in point.ports):
            continue
        groups = (
            [(f"trunk, {point} {point.direction}", [point]) for point in points]
            if kind.is_trunk
            else [("switch ports, sum", points)]
        )
        lines = [_line(name, own, series, repetition.window_ns, most_points) for name, own in groups]
        return [line for line in lines if line is not None]
    return []


def _line(
    name: str,
    points: Sequence[CountingPoint],
    series: dict[tuple[str, str], PortSeries],
    window_ns: tuple[int, int],
    most_points: int,
) -> PortRate | None:
    """Return the sum of several ports' rates, in the first one's intervals that lie within the measurement interval."""
    every = [rates(series[point.owner, port], point.direction) for point in points for port in point.ports]
    start_ns, end_ns = window_ns
    if not every or not all(every):
        return None
    inside = together(
        [interval for interval in every[0] if start_ns <= interval.start_ns and interval.end_ns <= end_ns], most_points
    )
    if not inside:
        return None
    summed = [
        (interval, sum(mean_bps(other, interval.start_ns, interval.end_ns) for other in every)) for interval in inside
    ]
    return PortRate(
        name,
        [((interval.start_ns + interval.end_ns) / 2 - start_ns) / 1e9 for interval, _ in summed],
        [bps / 1e6 for _, bps in summed],
    )
