"""Forecast the highest goodput of each test from rates and MTU in the rig file, and state the assumptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rigctl.base.units import format_rate
from rigctl.base.values import least_of_all
from rigctl.limits.ceilings import ceiling_bps, datagram_ceiling_bps
from rigctl.limits.links import DataPath, Links, trunk_between, trunk_link
from rigctl.model.frames import IP_HEADER, TCP_HEADER, effective_mss
from rigctl.records import Cell, Pair, RunPlan
from rigctl.records.plan import streams_of
from rigctl.settings import (
    CONDITION,
    ITERATIONS,
    MPTCP,
    MSS,
    PARALLEL,
    RATE,
    SETTINGS,
    SIZE,
    WINDOW,
    WINDOW_TOTAL,
    Direction,
    Setting,
)

_TIMESTAMPS: Final = "net.ipv4.tcp_timestamps"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast for a pair. A field is None if the rig file lacks an MTU or rate, or MPTCP may use more links."""

    pair: Pair
    mss: int | None  # payload bytes of a full segment or a datagram
    ceiling_bps: float | None  # highest goodput in each direction


def all_forecasts(plan: RunPlan) -> list[tuple[Forecast, ...]]:
    """Return the forecasts of each test. Tests that differ in nothing that matters for them share their forecasts."""
    known: dict[tuple[object, ...], tuple[Forecast, ...]] = {}
    found = []
    for cell in plan.cells:
        key = (cell.pairs, cell.condition, cell.transport, cell.message_bytes, cell[MSS], cell[MPTCP])
        if key not in known:
            known[key] = forecasts(cell, plan, plan.ip_version)
        found.append(known[key])
    return found


def forecasts(cell: Cell, plan: RunPlan, ip_version: int) -> tuple[Forecast, ...]:
    """Return a forecast for each pair, by the slowest rate of its links and trunk, and the smaller MTU of its links."""
    expected = []
    stamped = timestamps(cell, plan)
    set_mtu = plan.condition_mtu(cell.condition)
    for pair in cell.pairs:
        ends = (plan.links[pair.source], plan.links[pair.destination])
        mtu = set_mtu or least_of_all(end.mtu for end in ends)
        rate_bps = least_of_all(end.rate_bps for end in ends)
        trunk = trunk_between(plan, (pair.source, pair.destination))
        if trunk is not None and rate_bps is not None:
            rate_bps = min(rate_bps, trunk.rate_bps)
        mss, ceiling = cell.message_bytes if cell.transport == "udp" else None, None
        if mtu is not None and cell.transport == "udp":
            if rate_bps is not None and mss is not None:
                ceiling = datagram_ceiling_bps(rate_bps, mtu, mss, ip_version)
        elif mtu is not None and not cell[MPTCP]:
            mss = effective_mss(mtu, cell[MSS], ip_version, stamped)
            ceiling = None if rate_bps is None else ceiling_bps(rate_bps, mtu, mss, ip_version, stamped)
        expected.append(Forecast(pair, mss, ceiling))
    return tuple(expected)


def timestamps(cell: Cell, plan: RunPlan) -> bool:
    """Tell whether segments carry TCP timestamps: true unless the test's condition turns them off."""
    condition = next((condition for condition in plan.conditions if condition.name == cell.condition), None)
    settings = condition.settings if condition is not None else ()
    return not any(setting.name == _TIMESTAMPS and setting.value.strip() == "0" for setting in settings)


def sum_ceiling_bps(expected: Sequence[Forecast], direction: Direction, plan: RunPlan) -> float | None:
    """Return the highest total goodput of a test's pairs, in bit/s; None if a ceiling is unknown.

    With both directions it is the sum of all streams, as the goodput of a test is.
    """
    rates = {name: link.rate_bps for name, link in plan.links.items()}
    paths = []
    for forecast in expected:
        ceiling_mbps = None if forecast.ceiling_bps is None else forecast.ceiling_bps / 1e6
        for stream in streams_of([forecast.pair], direction):
            rate_bps = least_of_all(rates[node] for node in stream.ends)
            paths.append(DataPath(*stream.ends, rate_bps, ceiling_mbps))
    mbps = Links(rates, trunk_link(plan)).together_mbps(paths)
    return None if mbps is None else mbps * 1e6


def table_axes(plan: RunPlan) -> list[Setting[Any]]:
    """Return the settings with a column in `rigctl plan`: window, MSS, parallel, and settings that vary."""
    datagrams = any(cell.transport == "udp" for cell in plan.cells)
    always = () if plan.in_messages else (PARALLEL,) if datagrams else (WINDOW, MSS, PARALLEL)
    values = {axis: {cell[axis] for cell in plan.cells} for axis in SETTINGS.values()}
    shown = [axis for axis in SETTINGS.values() if axis in always or len(values[axis]) > 1]
    counted: tuple[Setting[Any], ...] = (SIZE, RATE, ITERATIONS)
    shown += [axis for axis in counted if axis not in shown and values[axis] - {None}]
    if values[WINDOW_TOTAL] - {None} and WINDOW_TOTAL not in shown:
        shown.insert(shown.index(WINDOW) + 1, WINDOW_TOTAL)
    return shown


def constants(plan: RunPlan, axes: Sequence[Setting[Any]]) -> list[str]:
    """Return the settings outside the columns `axes`, as `congestion cubic`; they are the same in all tests."""
    kinds, first = {cell.kind for cell in plan.cells}, plan.cells[0]
    return [
        f"{axis.name} {axis.text(first[axis])}"
        for axis in SETTINGS.values()
        if axis not in axes and axis is not CONDITION and any(map(axis.takes, kinds)) and first[axis] != axis.unset
    ]


def notes(plan: RunPlan, ip_version: int) -> list[str]:
    """Return sentences on what the ceilings assume, and on each requested MSS that does not fit the MTU."""
    shared = ["Classes share the links of their pair; each ceiling is that of a class alone on the links."]
    shared = shared if any(cell.traffic_class is not None for cell in plan.cells) else []
    if any(cell.transport == "udp" for cell in plan.cells):
        around = "8 bytes of UDP, the IP header and 38 bytes of Ethernet around each datagram"
        return [f"The ceiling is the application's share of the link: IPv{ip_version}, {around}.", *shared]
    stamped = [timestamps(cell, plan) for cell in plan.cells]
    options = "no TCP timestamps" if not any(stamped) else "TCP timestamps (12 bytes of every segment)"
    if any(stamped) and not all(stamped):
        options += " but where a condition turns them off"
    ceiling_line = (
        f"The ceiling is the application's share of the link when every frame is full: IPv{ip_version}, {options}, "
        "38 bytes of Ethernet around each packet. Pairs that share a node share its link, separately in each direction."
    )
    links = [plan.links[node] for node in sorted(set(plan.nodes))]
    known = any(link.rate_bps is not None and link.mtu is not None for link in links)
    lines = [ceiling_line, *shared] if known else []
    if any(link.rate_bps is None or link.mtu is None for link in links):
        lines.append("–: the rig file has no rate or MTU for the link.")
    if any(cell[MPTCP] for cell in plan.cells):
        lines.append("–: MPTCP may use more links than those of the rig file.")
    if plan.trunk is not None and plan.trunk.rate_bps is not None:
        one, other = plan.trunk.ends
        lines.append(f"Pairs across the trunk between {one} and {other} share its {format_rate(plan.trunk.rate_bps)}.")
    mtus = [link.mtu for link in links if link.mtu is not None]
    if mtus:
        lines += _mss_notes(plan, min(mtus), ip_version)
    return lines


def _mss_notes(plan: RunPlan, links_mtu: int, ip_version: int) -> list[str]:
    asked: dict[tuple[int, bool], set[int]] = {}
    for cell in plan.cells:
        mtu = plan.condition_mtu(cell.condition) or links_mtu
        mss = cell[MSS]
        if mss is not None and mss > mtu - IP_HEADER[ip_version] - TCP_HEADER:
            asked.setdefault((mtu, timestamps(cell, plan)), set()).add(mss)
    return [
        f"MSS {', '.join(map(str, sorted(large)))} does not fit into MTU {mtu}: "
        f"segments will carry {effective_mss(mtu, max(large), ip_version, stamped)} bytes."
        for (mtu, stamped), large in sorted(asked.items())
    ]
