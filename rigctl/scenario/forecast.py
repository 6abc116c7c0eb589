"""What a cell can reach at most, from the rig file alone: before anything is measured, its assumptions said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.model.ceilings import IP_HEADER, TCP_HEADER, ceiling_bps, effective_mss
from rigctl.records import Cell, Link, Pair, RunPlan
from rigctl.scenario.axes import AXES, AxisValue

_ALWAYS: Final = ("window", "mss", "parallel")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one pair in one cell. None: the rig file does not say the MTU, or the rate."""

    pair: Pair
    mss: int | None  # payload bytes of a full segment
    ceiling_bps: float | None  # goodput, each direction


def forecasts(cell: Cell, links: Mapping[str, Link], ip_version: int) -> tuple[Forecast, ...]:
    """One forecast per pair: the narrower of its two links rules, TCP timestamps are on (Linux's default)."""
    expected = []
    for pair in cell.pairs:
        ends = (links[pair.source], links[pair.destination])
        mtu = _smaller(ends[0].mtu, ends[1].mtu)
        rate_bps = _smaller(ends[0].rate_bps, ends[1].rate_bps)
        mss = None if mtu is None else effective_mss(mtu, cell.mss, ip_version)
        ceiling = None if mtu is None or rate_bps is None else ceiling_bps(rate_bps, mtu, mss, ip_version)
        expected.append(Forecast(pair, mss, ceiling))
    return tuple(expected)


def setting(cell: Cell, axis: str) -> AxisValue:
    """The value of an axis in a cell."""
    value: AxisValue = getattr(cell, "window_bytes" if axis == "window" else axis)
    return value


def table_axes(plan: RunPlan) -> list[str]:
    """The axes that deserve a column: the page's three, and what varies."""
    return [name for name in AXES if name in _ALWAYS or len(_values(plan, name)) > 1]


def constants(plan: RunPlan) -> list[str]:
    """The other axes that every cell sets to one value, as `congestion cubic`."""
    lines = []
    for axis in (AXES[name] for name in AXES if name not in table_axes(plan)):
        lines += [f"{axis.name} {axis.text(value)}" for value in _values(plan, axis.name) if value != axis.unset]
    return lines


def total_s(plan: RunPlan) -> float:
    """Seconds of traffic in all."""
    return sum(cell.duration_s for cell in plan.cells) * plan.repeat


def notes(plan: RunPlan, ip_version: int) -> list[str]:
    """What the ceilings assume, and what of the request cannot go over the wire."""
    ceiling_line = (
        f"The ceiling is the application's share of the link when every frame is full: IPv{ip_version}, TCP timestamps "
        "(12 bytes of every segment), 38 bytes of Ethernet around each packet. Pairs that share a node share its link."
    )
    used = {node for cell in plan.cells for pair in cell.pairs for node in (pair.source, pair.destination)}
    links = [plan.links[node] for node in sorted(used)]
    lines = [ceiling_line] if any(link.rate_bps is not None and link.mtu is not None for link in links) else []
    if any(link.rate_bps is None or link.mtu is None for link in links):
        lines.append("–: the rig file does not say the link's rate or MTU.")
    mtus = [link.mtu for link in links if link.mtu is not None]
    if mtus:
        fits = min(mtus) - IP_HEADER[ip_version] - TCP_HEADER
        large = sorted({cell.mss for cell in plan.cells if cell.mss is not None and cell.mss > fits})
        if large:
            asked = ", ".join(map(str, large))
            sent = effective_mss(min(mtus), large[-1], ip_version)
            lines.append(f"MSS {asked} does not fit into MTU {min(mtus)}: {sent} will go over the wire.")
    return lines


def _values(plan: RunPlan, axis: str) -> set[AxisValue]:
    return {setting(cell, axis) for cell in plan.cells}


def _smaller(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
