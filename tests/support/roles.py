"""Runs of traffic classes with pairs and times of their own, for unit tests: UDP streams that lose what a test says.

Four nodes at one switch, 10 Mbit/s each: `free` sends from a to b and `congested` from a to d for 20 s, `load` from c
to d between 5 s and 15 s, and `witness` a little from d to b.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import builders
import numpy as np

from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Flow,
    Link,
    NicCounters,
    NodeUsage,
    Pair,
    Repetition,
    RunInfo,
    Series,
    Side,
    Status,
)
from rigctl.settings import RATE, Settings

RATE_BPS: Final = 10_000_000
SIZE: Final = 1472
CEILING_BPS: Final = RATE_BPS * SIZE / 1538
DURATION_S: Final = 20.0
BEGIN_NS: Final = builders.BEGIN_NS
_STEP_S: Final = 0.1


@dataclass(frozen=True)
class Role:
    """A class: its pair, the share of the ceiling that it asks for, its times, and the loss in each phase."""

    pair: tuple[str, str]
    share: float
    start_s: float = 0.0
    stop_s: float | None = None
    lost: float = 0.0  # share of the datagrams that is lost while the load does not send
    lost_beside: float = 0.0  # share that is lost while the load sends (5 s to 15 s)
    sent_beside: float = 1.0  # share of its datagrams that the sender can send while the load sends


FREE: Final = Role(("a", "b"), 0.45)
CONGESTED: Final = Role(("a", "d"), 0.45, lost_beside=0.3)
WITNESS: Final = Role(("d", "b"), 0.05)
LOAD: Final = Role(("c", "d"), 0.95, 5.0, 15.0, lost_beside=0.3)
ROLES: Final = {"free": FREE, "congested": CONGESTED, "witness": WITNESS, "load": LOAD}


@dataclass(frozen=True)
class Lab:
    """A run of `roles`. `dropped` has the frames that a node's own queue dropped; nodes in `blind` have no counters."""

    roles: Mapping[str, Role] = field(default_factory=lambda: dict(ROLES))
    dropped: Mapping[str, int] = field(default_factory=dict)
    blind: tuple[str, ...] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> tuple[RunInfo, list[Repetition]]:
        cells = tuple(_cell(number, name, role) for number, (name, role) in enumerate(self.roles.items(), 1))
        nodes = sorted({node for role in self.roles.values() for node in role.pair})
        planned = {"links": {node: Link(RATE_BPS, 1500) for node in nodes}, "virtual": None} | dict(self.plan)
        flows = [_flow(role) for role in self.roles.values()]
        measured = [
            Repetition(
                cell=cell.number,
                repetition=1,
                attempt=1,
                status=Status.OK,
                reason=None,
                started_at=builders.STARTED_AT,
                wall_s=21.0,
                window_start_ns=BEGIN_NS + round(role.start_s * 1e9),
                window_end_ns=BEGIN_NS + round((role.stop_s or DURATION_S) * 1e9),
                start_skew_us=100.0,
                flows=(flow,),
                nodes=tuple(self._usage(node, flows) for node in role.pair),
            )
            for cell, role, flow in zip(cells, self.roles.values(), flows, strict=True)
        ]
        return builders.run(builders.plan(cells, **planned)), measured

    def _usage(self, node: str, flows: list[Flow]) -> NodeUsage:
        sides = [flow.sender for flow in flows if flow.sender is not None and flow.stream.sender == node]
        sent = sum(side.datagrams.count for side in sides if side.datagrams is not None)
        nic = NicCounters(
            tx_bytes=sent * (SIZE + 42), tx_packets=sent, tx_dropped=0, queue_drops=self.dropped.get(node, 0)
        )
        return NodeUsage(node, span_us=20_000_000, nic=None if node in self.blind else nic)


def _cell(number: int, name: str, role: Role) -> Cell:
    return Cell(
        number,
        "udp",
        (Pair(*role.pair),),
        DURATION_S,
        0.0,
        1,
        transport="udp",
        message_bytes=SIZE,
        settings=Settings({RATE: int(role.share * CEILING_BPS)}),
        traffic_class=name,
        group=1,
        start_s=role.start_s,
        stop_s=role.stop_s,
    )


def _flow(role: Role) -> Flow:
    stop_s = role.stop_s or DURATION_S
    times_s = np.arange(role.start_s, stop_s + _STEP_S / 2, _STEP_S)
    middles = (times_s[1:] + times_s[:-1]) / 2
    beside = (middles > 5.0) & (middles < 15.0)
    sent_each = role.share * CEILING_BPS / 8 / SIZE * _STEP_S * np.where(beside, role.sent_beside, 1.0)
    came_each = sent_each * (1 - np.where(beside, role.lost_beside, role.lost))
    sent, came = (
        np.concatenate(([0], np.rint(np.cumsum(each)))).astype(int).tolist() for each in (sent_each, came_each)
    )
    t_ns = [BEGIN_NS + round(t_s * 1e9) for t_s in times_s.tolist()]
    ends = (t_ns[0], t_ns[-1])
    sender = Side(
        sent[-1] * SIZE,
        *ends,
        datagrams=Datagrams(sent[-1], refused=0),
        series=Series({"t_ns": t_ns, "bytes": [count * SIZE for count in sent]}),
    )
    receiver = Side(
        came[-1] * SIZE,
        *ends,
        datagrams=Datagrams(came[-1], highest=sent[-1], overflow=0),
        series=Series({"t_ns": t_ns, "bytes": [count * SIZE for count in came], "highest": sent}),
    )
    return Flow(Pair(*role.pair), Direction.FORWARD, 1, sender, receiver, bytes=came[-1] * SIZE)
