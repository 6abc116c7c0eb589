"""The balance of octets of each repetition and of the whole run, from what is stored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from rigctl.analysis.ceiling import ip_version, link_rate_bps
from rigctl.model.counters.balance import Framing, Reconciliation, reconcile_all
from rigctl.model.counters.losses import Attribution, attribute
from rigctl.model.counters.places import (
    Counted,
    Crossing,
    Known,
    Place,
    Spot,
    Wiring,
    counts,
    nic_counted,
    port_counted,
    traffic_of,
)
from rigctl.model.counters.rises import Traffic, Way, goes_on, joined, refresh_seconds, stretches
from rigctl.model.unknowns import total
from rigctl.records import NicCounters, PortSeries, Repetition, RunInfo

TRUNK: Final = "trunk"


@dataclass(frozen=True, slots=True)
class Total:
    """What the trunk carried of a repetition's data, or, without a trunk, the ports of all senders together."""

    where: str  # "trunk" or "ports"
    expected: int | None
    counted: int | None
    difference_pct: float | None
    flagged: bool
    coarse: bool
    why: str | None
    again: int = 0  # octets of payload sent again


@dataclass(frozen=True, slots=True)
class Balance:
    """One repetition. `total` is `None` where no port that carries all of the data was read."""

    repetition: Repetition
    traffic_s: float
    places: dict[Place, Reconciliation]
    total: Total | None
    lost: tuple[Attribution, ...]
    ports: dict[tuple[Spot, str], int | None]  # octets counted at the port of a node


class Balances:
    """The balances of a run's repetitions, and of the run as a whole."""

    def __init__(self, info: RunInfo, repetitions: Iterable[Repetition]) -> None:
        self._wiring = Wiring(info.plan.ports, info.plan.trunk)
        self._framing = Framing(ip_version(info), info.plan.virtual is not None)
        in_order = sorted(repetitions, key=lambda one: one.started_at)
        self._timed = [(one, traffic_of(one.flows)) for one in in_order]
        nodes = {port.node for port in info.plan.ports if port.node is not None}
        self._node_of: dict[tuple[str, tuple[str, ...]], str | None] = {
            (port.switch, (port.name,)): port.node for port in info.plan.ports
        }
        self._known = Known({node: link_rate_bps(info, node) for node in nodes}, self._refreshes(info))

    @cached_property
    def each(self) -> tuple[Balance, ...]:
        """The balance of every repetition whose flows were reported, in the order of time."""
        return tuple(self._balances())

    def of(self, repetition: Repetition) -> Balance | None:
        """The balance of one repetition; `None` where its flows were not reported."""
        return self._by_key.get(_key(repetition))

    @cached_property
    def _by_key(self) -> dict[tuple[int, int, int], Balance]:
        return {_key(one.repetition): one for one in self.each}

    def _balances(self) -> Iterator[Balance]:
        before_ns: int | None = None
        for repetition, traffic in self._timed:
            if traffic is None:
                continue
            quiet_since_ns = before_ns if before_ns is not None and before_ns <= traffic[0] else None
            known = replace(self._known, quiet_since_ns=quiet_since_ns)
            yield self._balance(repetition, traffic, self._crossings[_key(repetition)], known)
            before_ns = traffic[1]

    def whole(self) -> dict[Place, tuple[Reconciliation, Counted]]:
        """Every place over the whole run: from the first reading before a byte to the last one after."""
        crossings: dict[Place, Crossing] = {}
        counted: dict[Place, Counted] = {}
        traffic_ns: dict[Place, int] = {}
        passing = self._passing()
        for place, used in passing.items():
            parts = list(self._port_parts(place, used) if place.ports else self._nic_parts(place, used))
            if parts:
                counted[place] = _sum([part for part, _, _ in parts])
                crossings[place] = sum((crossing for _, crossing, _ in parts), Crossing())
                traffic_ns[place] = sum(length for _, _, length in parts)
        found: dict[Place, tuple[Reconciliation, Counted]] = {}
        for place in reconcile_all(crossings, counted, (0, 1), self._framing):
            # Each with its own time: what a reading may lack is in seconds.
            pair = {one: counted[one] for one in (place, place.opposite) if one in counted}
            balance = reconcile_all(crossings, pair, (0, traffic_ns[place]), self._framing)[place]
            found[place] = (balance, counted[place])
        return found

    @cached_property
    def _crossings(self) -> dict[tuple[int, int, int], dict[Place, Crossing]]:
        return {_key(one): self._wiring.crossings(one.flows) for one, traffic in self._timed if traffic is not None}

    def _balance(
        self, repetition: Repetition, traffic: Traffic, crossings: dict[Place, Crossing], known: Known
    ) -> Balance:
        counted = counts(repetition, self._wiring, known, crossings)
        places = reconcile_all(crossings, counted, traffic, self._framing)
        lost = attribute(repetition.flows, self._wiring, counted, places)
        total = total_of(crossings, places)
        ports = {
            (place.spot, node): balance.counted
            for place, balance in places.items()
            if (node := self._node_of.get((place.owner, place.ports))) is not None
        }
        return Balance(repetition, (traffic[1] - traffic[0]) / 1e9, places, total, tuple(lost), ports)

    def _passing(self) -> dict[Place, list[tuple[Repetition, Traffic, Crossing]]]:
        found: dict[Place, list[tuple[Repetition, Traffic, Crossing]]] = {}
        for repetition, traffic in self._timed:
            if traffic is not None:
                for place, crossing in self._crossings[_key(repetition)].items():
                    found.setdefault(place, []).append((repetition, traffic, crossing))
        return found

    def _port_parts(
        self, place: Place, used: Sequence[tuple[Repetition, Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        """What a port counted over repetitions that follow each other, what passed then, and for how long."""
        chunk: list[tuple[list[PortSeries], Traffic, Crossing]] = []
        for repetition, traffic, crossing in used:
            series = [one for one in repetition.counters if one.switch == place.owner and one.port in place.ports]
            if len(series) < len(place.ports) or not all(one.columns.get("t_ns") for one in series):
                yield from self._chunk_counted(place, chunk)
                chunk = []
                continue
            if chunk and not all(goes_on(*ends) for ends in zip(chunk[-1][0], series, strict=True)):
                yield from self._chunk_counted(place, chunk)
                chunk = []
            chunk.append((series, traffic, crossing))
        yield from self._chunk_counted(place, chunk)

    def _chunk_counted(
        self, place: Place, chunk: Sequence[tuple[list[PortSeries], Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        if not chunk:
            return
        series = [joined([parts[at] for parts, _, _ in chunk]) for at in range(len(place.ports))]
        traffic = (chunk[0][1][0], chunk[-1][1][1])
        counted = port_counted(series, place, traffic, self._wiring.rate_bps(place, self._known.links_bps), self._known)
        length_ns = sum(end - start for _, (start, end), _ in chunk)
        yield counted, sum((crossing for _, _, crossing in chunk), Crossing()), length_ns

    def _nic_parts(
        self, place: Place, used: Sequence[tuple[Repetition, Traffic, Crossing]]
    ) -> Iterator[tuple[Counted, Crossing, int]]:
        for repetition, traffic, crossing in used:
            nic = _nic(repetition, place.owner)
            if nic is not None:
                yield nic_counted(nic, place.way), crossing, traffic[1] - traffic[0]

    def _refreshes(self, info: RunInfo) -> dict[str, float]:
        """How often each switch refreshes its counters, seen over the whole run at one of its ports."""
        traffics = [traffic for _, traffic in self._timed if traffic is not None]
        found: dict[str, float] = {}
        looked_at: set[str] = set()
        # One port tells for its switch: the trunk's, which is the busiest, or the first that was read.
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
                for way in Way:
                    seen_s = refresh_seconds(stretch, way, traffics)
                    if seen_s is not None:
                        found[port.switch] = max(seen_s, found.get(port.switch, 0.0))
        return found


def total_of(crossings: dict[Place, Crossing], places: dict[Place, Reconciliation]) -> Total | None:
    """The trunk's, or else the ports' of the senders; those of the receivers where the senders' were not read."""
    with_data = [place for place, crossing in crossings.items() if crossing.payload != 0]
    for where, spots in (
        (TRUNK, (Spot.TRUNK_OUT,)),
        (TRUNK, (Spot.TRUNK_IN,)),
        ("ports", (Spot.PORT_IN,)),
        ("ports", (Spot.PORT_OUT,)),
    ):
        chosen = [place for place in with_data if place.spot in spots]
        known = [places[place] for place in chosen if place in places]
        if chosen and len(known) == len(chosen):
            return _total(where, known)
    return None


def trunk_total(balance: Balance | None) -> dict[str, float | None]:
    """The columns of a cell (rigctl.columns)."""
    total = balance.total if balance is not None else None
    trunk = total if total is not None and total.where == TRUNK else None
    return {
        "trunk_octets": None if trunk is None else trunk.counted,
        "trunk_expected_octets": None if trunk is None else trunk.expected,
        "counters_difference_pct": None if total is None else total.difference_pct,
    }


def port_octets(balance: Balance | None, sender: str, receiver: str) -> dict[str, int | None]:
    """The columns of a pair: what its ends' switch ports counted of the data's direction."""
    ports = balance.ports if balance is not None else {}
    return {
        "source_port_octets": ports.get((Spot.PORT_IN, sender)),
        "destination_port_octets": ports.get((Spot.PORT_OUT, receiver)),
    }


def _total(where: str, parts: Sequence[Reconciliation]) -> Total:
    expected, counted = [one.expected for one in parts], [one.counted for one in parts]
    sent = sum(value for value in expected if value is not None) if None not in expected else None
    seen = sum(value for value in counted if value is not None) if None not in counted else None
    coarse = any(one.coarse for one in parts)
    known = sent and seen is not None and not coarse
    return Total(
        where,
        sent,
        seen,
        100 * (seen - sent) / sent if known and sent and seen is not None else None,
        any(one.flagged for one in parts),
        coarse,
        next((one.why for one in parts if one.flagged), next((one.why for one in parts if one.why), None)),
        sum(one.again for one in parts),
    )


def _key(repetition: Repetition) -> tuple[int, int, int]:
    return repetition.cell, repetition.repetition, repetition.attempt


def _nic(repetition: Repetition, node: str) -> NicCounters | None:
    return next((usage.nic for usage in repetition.nodes if usage.node == node), None)


def _sum(parts: Sequence[Counted]) -> Counted:
    """Several times of one place together; unknown where one of them is."""
    if len(parts) == 1:
        return parts[0]

    return Counted(
        total([one.octets for one in parts]),
        total([one.packets for one in parts]),
        total([one.drops for one in parts]),
        total([one.damaged for one in parts]),
        max((one.refresh_s for one in parts if one.refresh_s is not None), default=None),
        sum(one.missing_s for one in parts),
        sum(one.extra_s for one in parts),
        next((one.why for one in parts if one.why is not None), None),
    )
