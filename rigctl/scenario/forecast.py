"""What a cell can reach at most, from the rig file alone: before anything is measured, its assumptions said."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from rigctl.base.units import format_rate
from rigctl.kinds import OWN_AXES
from rigctl.model.latency import baseline_s
from rigctl.model.limits.ceilings import IP_HEADER, TCP_HEADER, ceiling_bps, datagram_ceiling_bps, effective_mss
from rigctl.model.limits.sharing import DataPath, together_mbps, trunk_link
from rigctl.records import MAX_RATE, Cell, Pair, RunPlan
from rigctl.scenario.axes import AXES, AxisValue

_TIMESTAMPS: Final = "net.ipv4.tcp_timestamps"
_SETTINGS: Final[dict[str, Callable[[Cell], AxisValue]]] = {
    "condition": attrgetter("condition"),
    "window": attrgetter("window.bytes"),
    "window_total": attrgetter("window.total_bytes"),
    "mss": attrgetter("tcp.mss"),
    "parallel": attrgetter("parallel"),
    "pairs": lambda cell: len(cell.pairs),
    "size": attrgetter("message_bytes"),
    "iterations": attrgetter("messages.iterations"),
    "rate": attrgetter("datagrams.rate"),
    "burst": attrgetter("datagrams.burst"),
    "transport": attrgetter("transport"),
    "read": attrgetter("file.read"),
    "write": attrgetter("file.write"),
    "busy_poll": attrgetter("messages.busy_poll"),
    "congestion": attrgetter("tcp.congestion"),
    "nodelay": attrgetter("tcp.nodelay"),
    "zerocopy": attrgetter("copying.zerocopy"),
    "copy": attrgetter("copying.copy"),
    "direction": attrgetter("direction"),
    "engine": attrgetter("engine"),
    "latency": attrgetter("latency_ms"),
}
"""Where a cell has the value of an axis."""
_ALWAYS: Final = ("window", "mss", "parallel")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one pair in one cell. None: the rig file does not say the MTU, or the rate."""

    pair: Pair
    mss: int | None  # payload bytes of a full segment, or of a datagram
    ceiling_bps: float | None  # goodput, each direction


def forecasts(cell: Cell, plan: RunPlan, ip_version: int) -> tuple[Forecast, ...]:
    """One forecast per pair: the narrower of its two links rules; TCP timestamps are on where nothing sets them."""
    expected = []
    stamped = timestamps(cell, plan)
    set_mtu = plan.condition_mtu(cell.condition)
    for pair in cell.pairs:
        ends = (plan.links[pair.source], plan.links[pair.destination])
        mtu = set_mtu or _smaller(ends[0].mtu, ends[1].mtu)
        rate_bps = _smaller(ends[0].rate_bps, ends[1].rate_bps)
        if cell.transport == "udp":
            expected.append(Forecast(pair, cell.message_bytes, _datagram_ceiling(cell, rate_bps, mtu, ip_version)))
            continue
        mss = None if mtu is None else effective_mss(mtu, cell.tcp.mss, ip_version, stamped)
        ceiling = None if mtu is None or rate_bps is None else ceiling_bps(rate_bps, mtu, mss, ip_version, stamped)
        expected.append(Forecast(pair, mss, ceiling))
    return tuple(expected)


def timestamps(cell: Cell, plan: RunPlan) -> bool:
    """Whether segments carry TCP timestamps: Linux's default, unless the cell's condition says otherwise."""
    condition = next((condition for condition in plan.conditions if condition.name == cell.condition), None)
    settings = condition.settings if condition is not None else ()
    return not any(setting.name == _TIMESTAMPS and setting.value.strip() == "0" for setting in settings)


def _datagram_ceiling(cell: Cell, rate_bps: int | None, mtu: int | None, ip_version: int) -> float | None:
    if rate_bps is None or mtu is None or cell.message_bytes is None:
        return None
    return datagram_ceiling_bps(rate_bps, mtu, cell.message_bytes, ip_version)


def sum_ceiling_bps(expected: Sequence[Forecast], plan: RunPlan) -> float | None:
    """What the pairs of a cell can have at once, in one direction; `None` where one of their ceilings is not known."""
    rates = {name: link.rate_bps for name, link in plan.links.items()}
    paths = []
    for forecast in expected:
        pair = forecast.pair
        ends = [rates[node] for node in (pair.source, pair.destination)]
        rate_bps = None if None in ends else min(rate for rate in ends if rate is not None)
        ceiling_mbps = None if forecast.ceiling_bps is None else forecast.ceiling_bps / 1e6
        paths.append(DataPath(pair.source, pair.destination, rate_bps, ceiling_mbps))
    mbps = together_mbps(paths, rates, trunk_link(plan))
    return None if mbps is None else mbps * 1e6


def setting(cell: Cell, axis: str) -> AxisValue:
    """The value of an axis in a cell."""
    return _SETTINGS[axis](cell)


def table_axes(plan: RunPlan) -> list[str]:
    """The axes that deserve a column: the page's three, and what varies."""
    datagrams = any(cell.transport == "udp" for cell in plan.cells)
    always = () if plan.in_messages else ("parallel",) if datagrams else _ALWAYS
    shown = [name for name in AXES if name != "pairs" and (name in always or len(_values(plan, name)) > 1)]
    for name in ("size", "rate", "iterations"):
        if any(setting(cell, name) is not None for cell in plan.cells) and name not in shown:
            shown.append(name)
    if any(cell.window.total_bytes is not None for cell in plan.cells) and "window_total" not in shown:
        shown.insert(shown.index("window") + 1, "window_total")
    return shown


def constants(plan: RunPlan) -> list[str]:
    """The other axes that every test sets to one value, as `congestion cubic`."""
    lines = []
    fixed = {name for name in OWN_AXES if not any(name in cell.kind.axes for cell in plan.cells)}
    for axis in (AXES[name] for name in AXES if name not in (*table_axes(plan), "pairs", "condition", *fixed)):
        lines += [f"{axis.name} {axis.text(value)}" for value in _values(plan, axis.name) if value != axis.unset]
    return lines


def total_s(plan: RunPlan) -> float:
    """Seconds of traffic in all, idle baselines included, as far as they are known before: see `bound`."""
    return sum(cell.duration_s + baseline_s(cell) for cell in plan.cells) * plan.repeat


def bound(plan: RunPlan) -> str:
    """How `total_s` is meant: `at least`, `at most`, `about`, or empty where it is exact."""
    noisy = plan.repeat > 1 and (plan.retest is not None or plan.until is not None)
    more = noisy or any(cell.datagrams.rate == MAX_RATE for cell in plan.cells)
    less = any(
        cell.messages.iterations is not None for cell in plan.cells
    )  # messages that are counted need their time, or less
    return "about" if more and less else "at least" if more else "at most" if less else ""


def notes(plan: RunPlan, ip_version: int) -> list[str]:
    """What the ceilings assume, and what of the request cannot go over the wire."""
    if any(cell.transport == "udp" for cell in plan.cells):
        around = "8 bytes of UDP, the IP header and 38 bytes of Ethernet around each datagram"
        return [f"The ceiling is the application's share of the link: IPv{ip_version}, {around}."]
    stamped = [timestamps(cell, plan) for cell in plan.cells]
    options = "no TCP timestamps" if not any(stamped) else "TCP timestamps (12 bytes of every segment)"
    if any(stamped) and not all(stamped):
        options += " but where a condition turns them off"
    ceiling_line = (
        f"The ceiling is the application's share of the link when every frame is full: IPv{ip_version}, {options}, "
        "38 bytes of Ethernet around each packet. Pairs that share a node share its link, each direction for itself."
    )
    used = set(plan.nodes)
    links = [plan.links[node] for node in sorted(used)]
    lines = [ceiling_line] if any(link.rate_bps is not None and link.mtu is not None for link in links) else []
    if any(link.rate_bps is None or link.mtu is None for link in links):
        lines.append("–: the rig file has no rate or MTU for the link.")
    if plan.trunk is not None and plan.trunk.rate_bps is not None:
        one, other = plan.trunk.ends
        lines.append(f"Pairs across the trunk between {one} and {other} share its {format_rate(plan.trunk.rate_bps)}.")
    mtus = [link.mtu for link in links if link.mtu is not None]
    if mtus:
        lines += _mss_notes(plan, min(mtus), ip_version)
    return lines


def _mss_notes(plan: RunPlan, links_mtu: int, ip_version: int) -> list[str]:
    """What an MSS asked for loses to the MTU: the links', or that of the cell's condition."""
    asked: dict[tuple[int, bool], set[int]] = {}
    for cell in plan.cells:
        mtu = plan.condition_mtu(cell.condition) or links_mtu
        if cell.tcp.mss is not None and cell.tcp.mss > mtu - IP_HEADER[ip_version] - TCP_HEADER:
            asked.setdefault((mtu, timestamps(cell, plan)), set()).add(cell.tcp.mss)
    return [
        f"MSS {', '.join(map(str, sorted(large)))} does not fit into MTU {mtu}: "
        f"{effective_mss(mtu, max(large), ip_version, stamped)} will go over the wire."
        for (mtu, stamped), large in sorted(asked.items())
    ]


def _values(plan: RunPlan, axis: str) -> set[AxisValue]:
    return {setting(cell, axis) for cell in plan.cells}


def _smaller(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
