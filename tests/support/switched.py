"""A simulated rig with one or two switches, for unit tests: flows, and the counters of every port on their path.

A test injects losses at a step of the path; all counters behind that step are then lower.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import builders

from rigctl.records import (
    Cell,
    Direction,
    Flow,
    NicCounters,
    NodeUsage,
    Pair,
    Port,
    PortSeries,
    Repetition,
    RunInfo,
    RunPlan,
    Series,
    Side,
    TcpInfo,
    Trunk,
)

HEADER: Final = 66  # Ethernet 14, IPv4 20, TCP 20, timestamps 12
BEGIN_NS: Final = builders.BEGIN_NS
SECOND: Final = 1_000_000_000
STEPS: Final = ("queue", "cable in", "switch in", "trunk", "switch out", "cable out")


@dataclass
class Paper:
    """A simulated rig. `losses`: lost segments by pair and step of `STEPS`. `poll_s`, `cache_s`: of all switches."""

    pairs: tuple[Pair, ...] = (Pair("n1", "n3"), Pair("n2", "n4"))
    trunk: bool = True
    mbps: float = 900.0
    duration_s: float = 10.0
    losses: dict[tuple[int, str], int] = field(default_factory=dict)
    needless: int = 0  # retransmitted segments per pair that had arrived before
    foreign_octets: dict[tuple[str, str], int] = field(default_factory=dict)  # by port and column
    discards: dict[tuple[str, str], int] = field(default_factory=dict)
    nics: bool = True
    nic_drops: dict[str, dict[str, int]] = field(default_factory=dict)
    poll_s: float = 1.0
    cache_s: float = 0.0
    phase_s: float = 0.0
    check_bytes: int = 0  # 4 if a switch counts the frame check sequence
    number: int = 1
    start_ns: int = BEGIN_NS

    @property
    def ports(self) -> tuple[Port, ...]:
        senders = dict.fromkeys(pair.source for pair in self.pairs)
        nodes = [*senders, *dict.fromkeys(pair.destination for pair in self.pairs)]
        if not self.trunk:
            return tuple(Port("a", f"p{node[1:]}", node=node) for node in nodes)
        own = tuple(Port("a" if node in senders else "b", f"p{node[1:]}", node=node) for node in nodes)
        return (*own, Port("a", "up", peer="b"), Port("b", "up", peer="a"))

    @property
    def cell(self) -> Cell:
        return Cell(self.number, "tcp", self.pairs, self.duration_s, 0.0, 1)

    def plan(self, **fields: Any) -> RunPlan:
        trunk = Trunk(("a", "b"), 8 * 10**9) if self.trunk else None
        base = builders.plan([self.cell], ports=self.ports, trunk=trunk, scenario_name="das2", title="DAS-2")
        return replace(base, **fields)

    def run(self, **fields: Any) -> RunInfo:
        return builders.run(self.plan(**fields))

    @property
    def segments(self) -> int:
        """Return the number of full segments of one pair, without retransmissions."""
        return round(self.mbps * 1e6 / 8 * self.duration_s / 1448)

    def sent_again(self, pair: int) -> int:
        return sum(number for (at, _), number in self.losses.items() if at == pair) + self.needless

    def past(self, pair: int, step: str) -> int:
        """Return the number of segments of a pair that passed `step`, including retransmissions."""
        gone = sum(self.losses.get((pair, name), 0) for name in STEPS[: STEPS.index(step) + 1])
        return self.segments + self.sent_again(pair) - gone

    def flows(self) -> tuple[Flow, ...]:
        made = []
        end_ns = self.start_ns + round(self.duration_s * SECOND)
        for at, pair in enumerate(self.pairs):
            again, acks = self.sent_again(at), self.segments // 2
            payload = self.segments * 1448
            counts = {"segs_out": self.segments + again + 3, "segs_in": acks}
            sent_again = {"retransmits": again, "retransmitted_bytes": again * 1448}
            info = TcpInfo(mss=1448, pmtu=1500, timestamps=True, **counts, **sent_again)
            sender = Side(payload, self.start_ns, end_ns, tcp=info)
            times = [self.start_ns + (end_ns - self.start_ns) * step // 100 for step in range(101)]
            sampled = Series({"t_ns": times, "bytes": [payload * step // 100 for step in range(101)]})
            path = TcpInfo(timestamps=True, segs_out=acks + 2)
            receiver = Side(payload, self.start_ns, end_ns, tcp=path, series=sampled)
            made.append(Flow(pair, Direction.FORWARD, 1, sender, receiver, bytes=payload, retransmits=again))
        return tuple(made)

    def _totals(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """Return octets and packets by switch, port and direction (`in` or `out`)."""
        found: dict[tuple[str, str, str], tuple[int, int]] = {}

        def add(key: tuple[str, str, str], segments: int, acks: int) -> None:
            octets, packets = found.get(key, (0, 0))
            size = (HEADER + self.check_bytes) * (segments + acks) + 1448 * segments
            found[key] = (octets + size, packets + segments + acks)

        there = "b" if self.trunk else "a"
        for at, pair in enumerate(self.pairs):
            acks = self.segments // 2
            add(("a", f"p{pair.source[1:]}", "in"), self.past(at, "cable in"), 0)
            add(("a", f"p{pair.source[1:]}", "out"), 0, acks)
            add((there, f"p{pair.destination[1:]}", "out"), self.past(at, "switch out"), 0)
            add((there, f"p{pair.destination[1:]}", "in"), 0, acks)
            if self.trunk:
                add(("a", "up", "out"), self.past(at, "switch in"), 0)
                add(("a", "up", "in"), 0, acks)
                add(("b", "up", "in"), self.past(at, "trunk"), 0)
                add(("b", "up", "out"), 0, acks)
        return found

    def counters(self) -> tuple[PortSeries, ...]:
        totals = self._totals()
        return tuple(self._series(port.switch, port.name, totals) for port in self.ports)

    def _series(self, switch: str, port: str, totals: dict[tuple[str, str, str], tuple[int, int]]) -> PortSeries:
        before_s, after_s = 0.2, 0.1
        times = [-before_s]
        while times[-1] + self.poll_s < self.duration_s + after_s:
            times.append(times[-1] + self.poll_s)
        times.append(self.duration_s + after_s)
        columns: dict[str, list[int]] = {"t_ns": [self.start_ns + round(at * SECOND) for at in times]}
        for way in ("in", "out"):
            octets, packets = totals[switch, port, way]
            octets += self.foreign_octets.get((port, way), 0)
            every = {"octets": octets, "packets": packets, "discards": self.discards.get((port, way), 0), "errors": 0}
            for name, total in every.items():
                columns[f"{way}_{name}"] = [10_000 + round(total * self._share(at)) for at in times]
        columns["discontinuity"] = [0] * len(times)
        return PortSeries(switch, port, "snmp", columns)

    def _share(self, at_s: float) -> float:
        """Return the share of the traffic that a reading at `at_s` shows, which is as of the switch's last refresh."""
        if self.cache_s:
            at_s -= (at_s + self.phase_s) % self.cache_s
        return min(1.0, max(0.0, at_s / self.duration_s))

    def usages(self) -> tuple[NodeUsage, ...]:
        made = []
        for at, pair in enumerate(self.pairs):
            sent, acks, got = self.past(at, "queue"), self.segments // 2, self.past(at, "cable out")
            made.append(self._usage(pair.source, sent * (1448 + HEADER), sent, acks * HEADER, acks))
            made.append(self._usage(pair.destination, acks * HEADER, acks, got * (1448 + HEADER), got))
        return tuple(made)

    def _usage(self, node: str, tx_bytes: int, tx_packets: int, rx_bytes: int, rx_packets: int) -> NodeUsage:
        span_us = round(self.duration_s * 1e6)
        nic = NicCounters(rx_bytes, rx_packets, 0, 0, tx_bytes, tx_packets, 0, 0, 0)
        nic = replace(nic, **self.nic_drops.get(node, {}))
        return NodeUsage(node, span_us, span_us // 5, span_us, 4, None, nic=nic if self.nics else None)

    def repetition(self, **fields: Any) -> Repetition:
        base = builders.repetition(
            self.cell,
            [self.mbps] * len(self.pairs),
            flows=self.flows(),
            nodes=self.usages(),
            counters=self.counters(),
            window_start_ns=self.start_ns,
            window_end_ns=self.start_ns + round(self.duration_s * SECOND),
        )
        return replace(base, **fields)


def several(count: int, paper: Paper, gap_s: float = 0.5) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of `count` tests, one after the other; port counters continue from test to test."""
    papers = [
        replace(paper, number=at + 1, start_ns=paper.start_ns + round(at * (paper.duration_s + gap_s) * SECOND))
        for at in range(count)
    ]
    one = papers[0].repetition()
    repetitions = []
    for at, each in enumerate(papers):
        counters = []
        for series, first in zip(each.repetition().counters, one.counters, strict=True):
            columns = dict(series.columns)
            for name in columns.keys() - {"t_ns", "discontinuity"}:
                risen = at * (first.columns[name][-1] - first.columns[name][0])
                columns[name] = [value + risen for value in columns[name]]
            counters.append(replace(series, columns=columns))
        repetitions.append(each.repetition(counters=tuple(counters)))
    return builders.run(replace(paper.plan(), cells=tuple(each.cell for each in papers))), repetitions
