"""A plausible DAS-2 run as records: a fixed total window per pair, 1 to 10 flows, 1 to 12 pairs, a shared trunk.

The noise has a fixed seed, so the run is always the same. A test's goodput is the least of the limits by links, windows
(one window per round trip) and trunk, divided evenly among the pairs, with noise.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import builders
import numpy as np

from rigctl.limits.ceilings import ceiling_bps
from rigctl.model.frames import effective_mss
from rigctl.records import (
    Cell,
    Condition,
    Direction,
    Flow,
    HostSetting,
    Link,
    NodeUsage,
    Pair,
    Port,
    Repetition,
    RunInfo,
    RunPlan,
    Series,
    Side,
    TcpInfo,
    Trunk,
)
from rigctl.settings import CONGESTION, NODELAY, WINDOW, WINDOW_TOTAL, Settings

PAIRS: Final = tuple(Pair(f"n{at:02}", f"n{at + 12:02}") for at in range(1, 13))
WINDOWS: Final = (32 * 1024, 64 * 1024, 128 * 1024, 256 * 1024)
NODES: Final = tuple(sorted(name for pair in PAIRS for name in (pair.source, pair.destination)))
SWITCHES: Final = ("force10", "cisco")
RTT_S: Final = 0.0008
"""Round-trip time with a full queue: 64 KiB per 0.8 ms are 655 Mbit/s; 128 KiB exceed the link's rate."""

MTU: Final = HostSetting("mtu", "1500")
OFF: Final = Condition("resize-off", (MTU, HostSetting("sysctl", "0", "net.ipv4.tcp_moderate_rcvbuf")))
ON: Final = Condition("resize-on", (MTU,), resize=True)
JUMBO: Final = Condition("resize-on-8192", (HostSetting("mtu", "8192"),), resize=True)


@dataclass(frozen=True)
class Shape:
    """Properties of the generated network. `goodput_mbps` replaces the model of a test's total goodput."""

    trunk_bps: int | None = 8 * 10**9
    noise: float = 0.004
    goodput_mbps: Callable[[Cell, int], float] | None = None


def cells(
    conditions: Sequence[Condition] = (OFF,),
    windows: Sequence[int | None] = WINDOWS,
    flows: Sequence[int] = tuple(range(1, 11)),
    pairs: Sequence[int] = tuple(range(1, 13)),
    duration_s: float = 10.0,
) -> tuple[Cell, ...]:
    """Return the tests in the order of a scenario with these axes, by default 480 per condition."""
    points = [(c, w, f, p) for c in conditions for w in windows for f in flows for p in pairs]
    return tuple(
        builders.cell(
            number,
            pairs=PAIRS[:count],
            duration_s=duration_s,
            parallel=parallel,
            condition=condition.name,
            settings=Settings({WINDOW: None if window is None else window // parallel, WINDOW_TOTAL: window}),
            resize=condition.resize,
        )
        for number, (condition, window, parallel, count) in enumerate(points, 1)
    )


def plan(the_cells: Sequence[Cell], conditions: Sequence[Condition] = (OFF,), **fields: Any) -> RunPlan:
    ports = tuple(Port(SWITCHES[0], f"g0/{at}", node=pair.source) for at, pair in enumerate(PAIRS, 1))
    ports += tuple(Port(SWITCHES[1], f"g1/{at}", node=pair.destination) for at, pair in enumerate(PAIRS, 1))
    ports += tuple(Port(here, "te0/49", peer=there) for here, there in (SWITCHES, SWITCHES[::-1]))
    base = builders.plan(
        the_cells,
        title="DAS-2: node pairs, flows and windows through a trunk",
        notes="",
        scenario_name="das2",
        scenario_yaml="title: DAS-2\nrig: das2\n",
        rig_name="das2",
        rig_yaml="virtual: namespaces\n",
        links={name: Link(10**9, 1500, SWITCHES[int(name[1:]) > 12]) for name in NODES},
        conditions=tuple(conditions),
        ports=ports,
        trunk=Trunk(SWITCHES, 8 * 10**9),
    )
    return replace(base, **fields)


def sum_mbps(cell: Cell, mtu: int, shape: Shape) -> float:
    if shape.goodput_mbps is not None:
        return shape.goodput_mbps(cell, mtu)
    payload = ceiling_bps(1.0, mtu, None)
    a_pair = 10**9 * payload
    if (window := cell[WINDOW_TOTAL]) is not None and not cell.resize:
        a_pair = min(a_pair, window * 8 / RTT_S)
    total = a_pair * len(cell.pairs)
    return (total if shape.trunk_bps is None else min(total, shape.trunk_bps * payload)) / 1e6


def repetition(
    cell: Cell, mtu: int = 1500, shape: Shape | None = None, samples: int = 0, number: int = 1
) -> Repetition:
    """Return a measured repetition of a test, with this number of samples per flow (100: every 100 ms for 10 s)."""
    shape = shape or Shape()
    noise = random.Random(f"{cell.number} {number}")
    # Noise only lowers the goodput, so that no test exceeds its ceiling.
    each = sum_mbps(cell, mtu, shape) * (1 - abs(noise.gauss(0, shape.noise))) / len(cell.pairs)
    shares = [1 + noise.gauss(0, 0.02) for _ in cell.pairs]
    speeds = [each * share * len(shares) / sum(shares) / cell.parallel for share in shares]
    made = [
        _flow(cell, pair, flow, speed, mtu, samples, noise)
        for pair, speed in zip(cell.pairs, speeds, strict=True)
        for flow in range(1, cell.parallel + 1)
    ]
    span_us = round(cell.duration_s * 1e6)
    return builders.repetition(
        cell,
        number=number,
        started_at=builders.STARTED_AT + (cell.duration_s + 0.4) * cell.number,
        start_skew_us=240.0,
        goodput_median_bps=each * 1e6 * len(cell.pairs) * 1.001,
        flows=tuple(made),
        nodes=tuple(NodeUsage(node, span_us, span_us // 6, span_us // 2, 2) for node in sorted(cell.nodes)),
    )


def _flow(cell: Cell, pair: Pair, number: int, mbps: float, mtu: int, samples: int, noise: random.Random) -> Flow:
    total, again = round(mbps * 1e6 / 8 * cell.duration_s), noise.randrange(4)
    end_ns = builders.BEGIN_NS + round(cell.duration_s * 1e9)
    sent, received = _series(cell, total, again, samples, noise)
    granted = 2 * (cell[WINDOW] or 87380)
    mss = effective_mss(mtu, None)
    path = TcpInfo(mss=mss, rcv_mss=mss, advmss=mss + 12, pmtu=mtu, timestamps=True)
    tuned = Settings({CONGESTION: "cubic", NODELAY: False})
    info = replace(
        path, rtt_us=800, rtt_min_us=120, retransmits=again, cwnd=22,
        retransmitted_bytes=again * mss, busy_us=round(cell.duration_s * 1e6), rwnd_limited_us=9000,
        sndbuf_limited_us=0, segs_out=total // mss + again, segs_in=total // mss // 2,
    )  # fmt: skip
    sender = Side(total, builders.BEGIN_NS, end_ns, granted, granted, info, granted=tuned, series=sent)
    receiver = Side(total, builders.BEGIN_NS, end_ns, granted, granted, path, granted=tuned, series=received)
    return Flow(pair, Direction.FORWARD, number, sender, receiver, total, again)


def _series(cell: Cell, total: int, again: int, samples: int, noise: random.Random) -> tuple[Series, Series]:
    if not samples:
        return Series(), Series()
    shares = np.random.default_rng(noise.randrange(2**31)).normal(1.0, 0.03, samples).cumsum()
    counts: list[int] = np.rint(shares / shares[-1] * total).astype(int).tolist()
    step_ns = round(cell.duration_s * 1e9 / samples)
    times = [builders.BEGIN_NS + at * step_ns for at in range(1, samples + 1)]
    sampled = {"t_ns": times, "bytes": counts}
    constant = {"retransmits": again, "rtt_us": 800, "cwnd": 22, "mss": 1448}
    return Series(sampled | {name: [value] * samples for name, value in constant.items()}), Series(sampled)


def run(
    conditions: Sequence[Condition] = (OFF,), shape: Shape | None = None, samples: int = 0, repeat: int = 1, **axes: Any
) -> tuple[RunInfo, list[Repetition]]:
    """Return a run in which every test is measured `repeat` times; `axes` are parameters of `cells`."""
    made = cells(conditions, **axes)
    the_plan = replace(plan(made, conditions), repeat=repeat)
    if shape is not None:
        trunk = Trunk(SWITCHES, shape.trunk_bps) if shape.trunk_bps is not None else None
        the_plan = replace(the_plan, trunk=trunk)
    mtus = {each.name: int(one.value) for each in conditions for one in each.settings if one.kind == "mtu"}
    measured = [
        repetition(one, mtus[one.condition or ""], shape, samples, number)
        for number in range(1, repeat + 1)
        for one in made
    ]
    facts = {node: builders.facts(driver="veth") for node in NODES}
    return replace(builders.run(the_plan), facts=facts, ended_at=builders.STARTED_AT + 10.4 * len(made)), measured
