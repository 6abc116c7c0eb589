"""Generated runs with known truth, which hold the answers of reports to account: `made(kind, seed)` for each kind.

The rules behind answers were tuned on the stored runs of `tests/golden`. `PROVED` was chosen before and looked at
afterwards.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate, permutations
from typing import Any, Final

import builders
import das2
import message_runs
from meshes import mesh_run

from rigctl.model.frames import datagram_wire_bytes
from rigctl.records import Cell, Datagrams, Flow, Link, Pair, Repetition, Retest, RunInfo, Series, Side
from rigctl.settings import MAX, WINDOW_TOTAL

PROVED: Final = range(100, 110)
"""Seeds of the generated runs that proved the rules: ten of each kind."""
CEILING_MBPS: Final = 941.48


@dataclass(frozen=True)
class Made:
    """A generated run, and what is true of it by construction."""

    info: RunInfo
    measured: list[Repetition]
    truth: dict[str, Any] = field(default_factory=dict)


def made(kind: str, seed: int) -> Made:
    return KINDS[kind](random.Random(f"{kind} {seed}"))


def streams(chance: random.Random) -> Made:
    """Return a run of tests of two pairs at 99.6, 97, 94.5 or 60 % of the ceiling; some tests dip for some seconds."""
    cells = [
        builders.cell(number, window_bytes=8192 * 2**number, duration_s=chance.choice([5.0, 10.0]))
        for number in range(1, chance.randint(3, 8))
    ]
    levels = [chance.choice([0.996, 0.996, 0.996, 0.97, 0.945, 0.6]) for _ in cells]
    dipped = {
        cell.number: (chance.uniform(0.6, 0.9), chance.uniform(0.5, 1.5)) for cell in cells if chance.random() < 0.25
    }
    repeat = chance.choice([1, 1, 4])
    measured = []
    for number in range(1, repeat + 1):
        for cell, level in zip(cells, levels, strict=True):
            speeds = [CEILING_MBPS * level * (1 - abs(chance.gauss(0, 0.0006))) for _ in cell.streams]
            one = builders.repetition(cell, speeds, number=number)
            dip = dipped.get(cell.number, (1.0, 0.0))
            measured.append(replace(one, flows=tuple(_dipping(flow, *dip) for flow in one.flows)))
    full = {cell.number for cell, level in zip(cells, levels, strict=True) if level > 0.98}
    return Made(builders.run(builders.plan(cells, repeat=repeat)), measured, {"full": full, "dipped": dipped})


def _dipping(flow: Flow, depth: float, lasting_s: float) -> Flow:
    """Return the flow with its goodput at `depth` of its level for a while, and as many bytes in all.

    Its round trips are long: a queue before the link is never empty.
    """

    def changed(side: Side | None) -> Side | None:
        if side is None:
            return None
        counts = side.series.columns["bytes"]
        steps = [after - before for before, after in zip([0, *counts], counts, strict=False)]
        low = range(10, 10 + round(lasting_s * 10))
        shape = [step * (depth if at in low else 1.0) for at, step in enumerate(steps)]
        scale = sum(steps) / sum(shape)
        sampled = side.series.columns | {"bytes": list(map(round, accumulate(step * scale for step in shape)))}
        if "rtt_us" in sampled:
            sampled["rtt_us"] = [4000] * len(counts)
        return replace(side, series=Series(sampled))

    return replace(flow, sender=changed(flow.sender), receiver=changed(flow.receiver))


def datagrams(chance: random.Random) -> Made:
    """Return a run of UDP tests: at 100 Mbit/s without loss, and of each size one that shows a limit.

    The limit is the wire's, the senders', losses at a switch, or a virtual link that carries more than a wire.
    """
    sizes = sorted(chance.sample([64, 128, 256, 512, 1024, 1472], chance.randint(1, 4)), reverse=True)
    cells, rates, limits = list[Cell](), dict[int, tuple[float, float]](), dict[int, str]()
    pairs = builders.PAIRS[: chance.randint(1, 2)]
    for size in sizes:
        wire_mbps = 1000 * size / datagram_wire_bytes(size, 1500)
        limit = chance.choice(["wire", "wire", "sender", "losses", "above"])
        sent, share = {
            "wire": (chance.uniform(0.992, 0.999), 1.0),
            "sender": (chance.uniform(0.5, 0.9), 1.0),
            "losses": (chance.uniform(0.95, 0.99), chance.uniform(0.8, 0.97)),
            "above": (chance.uniform(1.02, 1.12), 1.0),
        }[limit]
        limits[size] = limit
        for rate, mbps, came in ((10**8, min(100.0, wire_mbps), 1.0), (MAX, wire_mbps * sent, share)):
            number = len(cells) + 1
            cells.append(
                builders.cell(number, test="udp", transport="udp", pairs=pairs, message_bytes=size, duration_s=1.0)
            )
            cells[-1] = builders.asking(cells[-1], window_bytes=None, mss=None, rate=rate)
            rates[number] = mbps, came
    links = dict.fromkeys((name for pair in pairs for name in (pair.source, pair.destination)), Link(10**9, 1500))
    info = builders.run(builders.plan(cells, links=links), facts={})
    measured = [
        replace(
            builders.repetition(cell, [1.0] * len(pairs)),
            flows=tuple(_datagrams(cell, pair, *rates[cell.number], chance) for pair in pairs),
        )
        for cell in cells
    ]
    return Made(info, measured, {"limits": limits})


def _datagrams(cell: Cell, pair: Pair, mbps: float, share: float, chance: random.Random) -> Flow:
    size = cell.message_bytes or 1
    sent = round(mbps * 1e6 / 8 / size * (1 - abs(chance.gauss(0, 0.0005))))
    came = round(sent * share)
    begin, end = builders.BEGIN_NS, builders.BEGIN_NS + 10**9
    counts = Datagrams(came, highest=sent, duplicates=0, reordered=0, overflow=0, jitter_ns=2000)
    sender = Side(sent * size, begin, end, datagrams=Datagrams(sent, refused=0))
    receiver = Side(came * size, begin, end, datagrams=counts)
    return Flow(pair, cell.direction, 1, sender, receiver, bytes=came * size)


SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


def blast(chance: random.Random) -> Made:
    """Return a blast run whose throughput rises with size to 96 to 99.5 % of the ceiling; some rows are too low."""
    top, half = chance.uniform(0.975, 0.995), chance.choice([0.3, 0.6, 2.0, 8.0, 30.0])
    noise, sizes = chance.choice([0.001, 0.003]), SIZES[:: chance.choice([1, 1, 2])]
    clean = {size: top * size / (size + half) for size in sizes}
    outliers = {size: chance.uniform(0.03, 0.08) for size in chance.sample(sizes, chance.choice([0, 1, 1]))}
    rows = []
    for size in sizes:
        share = clean[size] * (1 - outliers.get(size, 0.0)) * (1 + chance.gauss(0, noise))
        elapsed = size * 10_000 / (min(share, 1.0) * 11_768_531)
        rows.append((size, 10_000, [elapsed * (1 + chance.gauss(0, 0.001)) for _ in range(5)]))
    return Made(*message_runs.measured("blast", rows), truth={"clean": clean, "outliers": outliers})


def pingpong(chance: random.Random) -> Made:
    """Return a ping-pong run of which some sizes were measured again, and then took longer or shorter."""
    sizes = SIZES[:: chance.choice([1, 2, 3])]
    base_us, again = chance.uniform(40, 150), chance.sample(sizes, chance.randint(0, 3))
    if chance.random() < 0.5:
        again = [sizes[0], *again[1:]]
    rows, factor = [], {size: chance.uniform(0.7, 1.5) for size in again}
    for size in sizes:
        trip_s = (base_us + 0.16 * size) / 1e6
        times = [200 * trip_s * (1 + abs(chance.gauss(0, 0.01))) for _ in range(5)]
        times += [200 * trip_s * factor[size] * (1 + abs(chance.gauss(0, 0.05))) for _ in range(15 * (size in factor))]
        rows.append((size, 200, times))
    info, measured = message_runs.measured("pingpong", rows)
    return Made(replace(info, plan=replace(info.plan, retest=Retest(0.05, 15))), measured, {"again": {*again}})


def mesh(chance: random.Random) -> Made:
    """Return a mesh in which a node is slow (20 to 60 %), or behind the others (7 to 13 %), or none is.

    Or one pair is slow in one direction.
    """
    nodes = tuple(f"n{number}" for number in range(1, chance.randint(4, 8)))
    fault, node = chance.choice(["none", "behind", "behind", "slow", "pair"]), chance.choice(nodes)
    role, noise = chance.choice(["sending", "receiving"]), chance.choice([0.002, 0.005])
    lost = {"behind": chance.uniform(0.07, 0.13), "slow": chance.uniform(0.2, 0.6)}.get(fault, 0.0)
    ends = list(permutations(nodes, 2))
    one = chance.choice(ends)
    rates = {}
    for pair in ends:
        level = 1 - lost * (pair[role == "receiving"] == node)
        level *= chance.uniform(0.3, 0.7) if fault == "pair" and pair == one else 1.0
        rates[pair] = 9400 * level * (1 - abs(chance.gauss(0, noise)))
    truth = {"fault": fault, "node": node, "role": role, "share": lost, "pair": one}
    return Made(*mesh_run(rates, nodes), truth=truth)


def trunk(chance: random.Random) -> Made:
    """Return a run of pairs, flows and windows through a trunk that some settings do not fill."""
    conditions = (das2.OFF, das2.ON)[: chance.randint(1, 2)]
    windows, flows = das2.WINDOWS[: chance.randint(1, 2)], (1, 2, 4)[: chance.randint(2, 3)]
    pairs = chance.choice([(1, 4, 8, 12), (1, 4, 8, 10, 12)])
    trunk_mbps = chance.choice([7500.0, 7500.0, 3800.0, 20_000.0])
    columns = [(condition.name, window, count) for condition in conditions for window in windows for count in flows]
    low = {key: chance.uniform(0.15, 0.85) for key in columns if chance.random() < 0.25}
    if len(low) == len(columns):
        low = {}

    def goodput(cell: Cell, mtu: int) -> float:
        key = (cell.condition, cell[WINDOW_TOTAL], cell.parallel)
        return min(940.0 * len(cell.pairs), trunk_mbps) * low.get(key, 1.0)  # type: ignore[arg-type]

    rate_bps = 8 * 10**9 if trunk_mbps == 7500 else None
    shape = das2.Shape(rate_bps, noise=0.003, goodput_mbps=goodput)
    run = das2.run(conditions, shape, windows=windows, flows=flows, pairs=pairs)
    return Made(*run, truth={"low": low, "columns": columns, "trunk_mbps": trunk_mbps, "pairs": pairs})


KINDS: Final[dict[str, Callable[[random.Random], Made]]] = {
    "streams": streams,
    "datagrams": datagrams,
    "blast": blast,
    "pingpong": pingpong,
    "mesh": mesh,
    "trunk": trunk,
}
