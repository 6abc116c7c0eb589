"""Realistic records for tests of store and report: the seven tests of the GigaBlox page, with its numbers; and rigs.

The samples are made from the totals with a fixed seed, so that their sum in the common window is the total.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.model.window import CommonWindow, cut_to_window
from rigctl.records import (
    REQUESTED,
    Cell,
    Datagrams,
    Direction,
    Flow,
    Link,
    NodeUsage,
    Pair,
    Repetition,
    RunInfo,
    RunPlan,
    RunStatus,
    Series,
    Side,
    Status,
    TcpInfo,
)
from rigctl.records.flat import GRANTED, GROUPS
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.settings import CONGESTION, MSS, NODELAY, WINDOW, Settings
from rigctl.store import Store

PAIRS: Final = (Pair("pi1", "pi2"), Pair("pi3", "pi4"))
STARTED_AT: Final = 1_795_211_101.25  # 2026-11-20 21:45:01 UTC
BEGIN_NS: Final = 5_000_000_000_000

# The page's table, in its order: window (KiB), MSS, parallel flows, Mbit/s of both pairs, retransmits of both pairs.
GIGABLOX: Final = (
    (64, 1460, 1, (911, 941), (135, 0)),
    (64, 1460, 5, (919, 940), (0, 0)),
    (64, 8960, 1, (906, 921), (83, 0)),
    (200, 1460, 1, (901, 909), (1, 7)),
    (64, 8960, 5, (941, 940), (0, 0)),
    (200, 8960, 1, (940, 909), (0, 9)),
    (200, 8960, 5, (936, 936), (0, 31)),
)


def cell(number: int = 1, **settings: Any) -> Cell:
    """Return a TCP test of 10 s with both pairs; `settings` replaces settings and fields."""
    base = Cell(number, "tcp", PAIRS, 10.0, 0.0, 1, settings=Settings({WINDOW: 65536, MSS: 1460}))
    return asking(base, **settings)


def asking(the_cell: Cell, **settings: Any) -> Cell:
    """Return `the_cell` with other `settings`, by their stored names such as `mss` and `window_bytes`, and fields."""
    asked = {REQUESTED[name]: settings.pop(name) for name in list(settings) if name in REQUESTED}
    return replace(the_cell, settings=settings.pop("settings", the_cell.settings) | asked, **settings)


def counting(the_side: Side, **counted: Any) -> Side:
    """Return `the_side` with other values; nested values by their stored names, such as `mss` and `busy_us`."""
    granted = {GRANTED[name]: counted.pop(name) for name in list(counted) if name in GRANTED}
    tcp = {name: counted.pop(name) for name in GROUPS["tcp"] if name in counted}
    return replace(the_side, tcp=replace(the_side.tcp, **tcp), granted=the_side.granted | granted, **counted)


def changing(
    flow: Flow, sender: dict[str, Any] | None = None, receiver: dict[str, Any] | None = None, **fields: Any
) -> Flow:
    """Return `flow` with other `fields`, and other values of its sides, named as in `counting`."""
    for name, side, changes in (("sender", flow.sender, sender), ("receiver", flow.receiver, receiver)):
        if changes is not None:
            assert side is not None
            fields[name] = counting(side, **changes)
    return replace(flow, **fields)


def changing_flows(one: Repetition, **changes: Any) -> Repetition:
    """Return a repetition with each of its flows changed by `changing`."""
    return replace(one, flows=tuple(changing(flow, **changes) for flow in one.flows))


def using(one: Repetition, usage: Mapping[str, Mapping[str, Any]]) -> Repetition:
    """Return a repetition with other fields of `NodeUsage`, by node."""
    return replace(one, nodes=tuple(replace(node, **usage.get(node.node, {})) for node in one.nodes))


def gigablox_cells(duration_s: float = 10.0) -> tuple[Cell, ...]:
    return tuple(
        cell(n, window_bytes=window * 1024, mss=mss, parallel=parallel, duration_s=duration_s)
        for n, (window, mss, parallel, _, _) in enumerate(GIGABLOX, 1)
    )


def plan(cells: Sequence[Cell] | None = None, **fields: Any) -> RunPlan:
    """Return a plan over gigabit links with an MTU of 1500; `fields` replaces fields of the plan."""
    made = tuple(cells) if cells is not None else gigablox_cells()
    nodes = sorted({name for one in made for pair in one.pairs for name in (pair.source, pair.destination)})
    base = RunPlan(
        title="GigaBlox: seven tests, two pairs at once",
        notes="The table of the product page, measured again.",
        scenario_name="gigablox",
        scenario_yaml="title: GigaBlox\nrig: gigablox\n# the page's table\npairs: [pi1 -> pi2, pi3 -> pi4]\n",
        rig_name="gigablox",
        rig_yaml="virtual: namespaces\nswitch: GigaBlox\n",
        overrides=(),
        repeat=1,
        cells=made,
        links={name: Link(10**9, 1500) for name in nodes},
        virtual="namespaces",
    )
    return replace(base, **fields)


def facts(**known: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kernel": "Linux 6.6.31+rpt-rpi-v8 aarch64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "cpu_model": "Cortex-A72",
        "cpus": 4,
        "governor": "ondemand",
        "driver": "bcmgenet",
        "interface": "eth0",
        "speed_bps": 10**9,
        "mtu": 1500,
        "mac": "dc:a6:32:00:00:01",
        "boot_id": "00000000-0000-0000-0000-000000000001",
        "addresses": ["192.168.7.1"],
        "data_address": "192.168.7.1",
        "virtual": False,
        "throttled": [],
        "notes": [],
        "offloads": {"tso": True, "gso": True, "gro": True},
        "sysctls": {"net.core.rmem_max": "212992", "net.core.wmem_max": "212992", "net.ipv4.tcp_timestamps": "1"},
    }
    return base | known


def run(the_plan: RunPlan | None = None, **fields: Any) -> RunInfo:
    made = the_plan or plan()
    base = RunInfo(
        run="20261120-214501-3f9a",
        plan=made,
        status=RunStatus.COMPLETE,
        started_at=STARTED_AT,
        ended_at=STARTED_AT + 74.5,
        versions={"rigctl": "0.1.0", "python": "3.11.2", "protocol": "1", "agent": "9f2c" * 16},
        facts={node: facts() for node in made.links},
    )
    return replace(base, **fields)


@cache
def _shape(seed: int, steps: int, retransmits: int) -> tuple[list[int], list[float]]:
    """Return the 100-ms steps in which a flow loses segments, and each step's bytes as a share of the mean."""
    noise = random.Random(seed)
    lost = sorted(noise.randrange(1, steps) for _ in range(retransmits))
    return lost, [1 + noise.gauss(0, 0.004) for _ in range(steps)]


def sides(
    the_cell: Cell, mbps: float, retransmits: int = 0, start_ns: int = BEGIN_NS, seed: int = 1, **sender_fields: Any
) -> tuple[Side, Side]:
    """Return sender and receiver of a flow that runs at `mbps` for the test's duration, sampled every 100 ms."""
    steps = round(the_cell.duration_s * 10)
    lost, shape = _shape(seed, steps, retransmits)
    scale = mbps * 1e6 / 8 * the_cell.duration_s / sum(shape)
    times = [start_ns + step * 100_000_000 for step in range(1, steps + 1)]
    counts = list(map(round, accumulate(share * scale for share in shape)))
    again = [sum(1 for at in lost if at <= step) for step in range(1, steps + 1)]
    granted = 2 * (the_cell[WINDOW] or 0)
    path = TcpInfo(mss=1448, rcv_mss=1448, advmss=1460, pmtu=1500, timestamps=True)
    tuned = Settings({CONGESTION: "cubic", NODELAY: False})
    buffers: dict[str, Any] = {"sndbuf_bytes": granted or 425984, "rcvbuf_bytes": granted or 425984}
    sampled = {"t_ns": times, "bytes": counts}
    info = replace(path, rtt_us=620 + seed, rtt_min_us=180, cwnd=45, advertised_window_bytes=65536)
    info = replace(info, retransmits=retransmits, retransmitted_bytes=retransmits * 1448, sndbuf_limited_us=0)
    info = replace(info, busy_us=round(the_cell.duration_s * 1e6), rwnd_limited_us=12_000)
    series = sampled | {"retransmits": again, "rtt_us": [620] * steps, "cwnd": [45] * steps, "mss": [1448] * steps}
    sender = Side(counts[-1], start_ns, times[-1], **buffers, tcp=info, granted=tuned, series=Series(series))
    receiver = Side(counts[-1], start_ns, times[-1], **buffers, tcp=path, granted=tuned, series=Series(sampled))
    return counting(sender, **sender_fields), receiver


def flows(
    the_cell: Cell, speeds: Sequence[float], retransmits: Sequence[int] | None = None, **sender_fields: Any
) -> tuple[Flow, ...]:
    """Return the flows of a test. `speeds` (Mbit/s) and `retransmits` are per stream and divided among its flows."""
    made = []
    for at, stream in enumerate(the_cell.streams):
        each, more = divmod(retransmits[at] if retransmits else 0, the_cell.parallel)
        for number in range(1, the_cell.parallel + 1):
            again, mbps = each + more * (number == 1), speeds[at] / the_cell.parallel
            sender, receiver = sides(the_cell, mbps, again, seed=10 * at + number, **sender_fields)
            made.append(Flow(stream.pair, stream.direction, number, sender, receiver))
    window = CommonWindow(BEGIN_NS, BEGIN_NS + round(the_cell.duration_s * 1e9), 0)
    return tuple(cut_to_window(flow, window) for flow in made)


def repetition(
    the_cell: Cell,
    speeds: Sequence[float] = (911, 941),
    retransmits: Sequence[int] | None = None,
    number: int = 1,
    sender: dict[str, Any] | None = None,
    **fields: Any,
) -> Repetition:
    """Return a measured repetition; `sender` replaces fields of every sender's side, `fields` those of the record."""
    nodes = sorted({name for pair in the_cell.pairs for name in (pair.source, pair.destination)})
    span_us = round(the_cell.duration_s * 1e6)
    base = Repetition(
        cell=the_cell.number,
        repetition=number,
        attempt=1,
        status=Status.OK,
        reason=None,
        started_at=STARTED_AT + 10.2 * the_cell.number,
        wall_s=the_cell.duration_s + 0.2,
        window_start_ns=BEGIN_NS,
        window_end_ns=BEGIN_NS + round(the_cell.duration_s * 1e9),
        start_skew_us=112.4,
        clock_error_us=61.0,
        flows=fields.pop("flows") if "flows" in fields else flows(the_cell, speeds, retransmits, **(sender or {})),
        nodes=tuple(NodeUsage(node, span_us, span_us // 5, span_us, 4, None) for node in nodes),
    )
    return replace(base, **fields)


def failed(the_cell: Cell, reason: str = "pi4: connection refused", **fields: Any) -> Repetition:
    return replace(Repetition(the_cell.number, 1, 1, Status.FAILED, reason, STARTED_AT, 5.1), **fields)


def gigablox(duration_s: float = 10.0, **planned: Any) -> tuple[RunInfo, list[Repetition]]:
    return run(plan(gigablox_cells(duration_s), **planned)), list(_gigablox(duration_s))


@cache
def _gigablox(duration_s: float) -> tuple[Repetition, ...]:
    cells = gigablox_cells(duration_s)
    return tuple(repetition(one, row[3], row[4]) for one, row in zip(cells, GIGABLOX, strict=True))


def datagram_flow(sent: int, came: int, number: int = 1, *, refused: int = 0, **counts: Any) -> Flow:
    """Return a flow of 1 s with datagrams of 1250 bytes from a to b; `counts` are the receiver's counts."""
    begin, end = BEGIN_NS, BEGIN_NS + 10**9
    received = Datagrams(came, **{"highest": sent} | counts)
    sender = Side(sent * 1250, begin, end, datagrams=Datagrams(sent, refused=refused))
    receiver = Side(came * 1250, begin, end, datagrams=received)
    return Flow(Pair("a", "b"), Direction.FORWARD, number, sender, receiver, bytes=came * 1250)


TOP_NS: Final = 2**40 - 1


def put(store: Store, info: RunInfo, measured: Sequence[Repetition], began_at: float = 0, **given: Any) -> str:
    """Store a run that was complete after a minute. Return the run's id."""
    at = began_at or info.started_at
    made = store.begin(info.plan, info.versions, info.facts, at, **given)
    for each in measured:
        store.add(made, each)
    store.finish(made, RunStatus.COMPLETE, at + 60)
    return made


def bucket_of(value_ns: int) -> int:
    """Return the agent's histogram bucket for a time, the inverse of `rigctl.model.latency`."""
    value = min(max(value_ns, 0), TOP_NS)
    shift = max(0, value.bit_length() - 8)
    return 128 * shift + (value >> shift)


def rig_from(folder: Path, text: str, sets: Sequence[str] = ()) -> Rig:
    path = folder / "r.yaml"
    path.write_text(text)
    return load_rig(str(path), sets=sets)


def message(folder: Path, text: str, sets: Sequence[str] = ()) -> str:
    import pytest  # imported here, because commands that tests start do not need it: 0.2 s

    with pytest.raises(InputError) as caught:
        rig_from(folder, text, sets)
    return str(caught.value).replace(f"{folder}/", "")
