"""Rules on settings that a scenario needs: socket buffers, congestion control, disks."""

import math
from collections.abc import Iterator
from typing import Final

from rigctl.base.units import format_bytes, format_rate
from rigctl.check.records import NodeState, RigState
from rigctl.check.rules.findings import by_value, error, finding_on, fine, nodes_of, unlike, warning
from rigctl.findings import Finding, Number, Severity
from rigctl.settings import CONGESTION, MPTCP, READ, WINDOW, WRITE
from rigctl.settings.sockets import MPTCP_ENABLED

_LIMITS: Final = (("SO_RCVBUF", "net.core.rmem_max"), ("SO_SNDBUF", "net.core.wmem_max"))
_AUTOTUNED: Final = (("receive", "net.ipv4.tcp_rmem"), ("send", "net.ipv4.tcp_wmem"))
UNLIKE: Final = 4
"""Buffers smaller than another node's by this factor are reported."""
_USUAL_MOST: Final = 6 << 20
_DATA_SHARE: Final = 0.5
"""Share of a buffer that Linux counts as data (ip-sysctl, tcp_adv_win_scale)."""
_SCALING: Final = "net.ipv4.tcp_window_scaling"
_UNSCALED: Final = 65535
_CONGESTION: Final = "net.ipv4.tcp_congestion_control"
_AVAILABLE: Final = "net.ipv4.tcp_available_congestion_control"


def scaling(state: RigState) -> Iterator[Finding]:
    """Check TCP window scaling: without it at one end a window has 16 bits (RFC 7323, 2)."""
    if state.plan is not None and not any(cell.transport == "tcp" for cell in state.cells()):
        return
    for each in state.reached():
        if each.sysctl(_SCALING) == "0" and not _sets(state, _SCALING):
            rtt_s = _round_trip_s(state, each.name)
            at_most = f": {format_rate(_UNSCALED * 8 / rtt_s)} at a round trip of {rtt_s * 1e3:.3g} ms" if rtt_s else ""
            text = f"{_SCALING} is 0: no flow to or from it has more than 64 KiB on the way{at_most}."
            yield warning(each, text, _set(_SCALING, 1))


def multipath(state: RigState) -> Iterator[Finding]:
    """Check that the nodes of tests with Multipath TCP have it, and have it switched on."""
    for each in state.reached():
        cells = [cell for cell in state.cells() if cell[MPTCP] and each.name in cell.nodes]
        left = [cell.number for cell in cells if MPTCP_ENABLED not in state.settings_of(cell)]
        enabled = each.sysctl(MPTCP_ENABLED)
        if cells and (each.is_freebsd or (enabled is None and each.facts.get("sysctls"))):
            text = f"its kernel has no Multipath TCP, and {_asking([cell.number for cell in cells])} it."
            yield error(each, text, "Leave mptcp out, or use Linux from 5.6 on with CONFIG_MPTCP.")
        elif left and enabled == "0":
            text = f"{MPTCP_ENABLED} is 0, and {_asking(left)} Multipath TCP: connections will fall back to TCP."
            yield warning(each, text, _set(MPTCP_ENABLED, 1))


def windows(state: RigState) -> Iterator[Finding]:
    """Compare requested windows with net.core.*mem_max, above which the kernel cuts them (socket(7))."""
    for each in state.reached():
        fixed = {
            cell.number: cell[WINDOW] or 0 for cell in state.cells() if not cell.resize and each.name in cell.nodes
        }
        for option, sysctl in _LIMITS:
            limit = _number(each.sysctl(sysctl))
            cut = [number for number, window in fixed.items() if limit is not None and window > limit]
            if limit is not None and cut:
                most = max(fixed.values())
                text = f"{option} is limited to {format_bytes(limit)} by {sysctl}; {_asking(cut)} up to "
                remedy = _set(sysctl, most)
                yield warning(each, f"{text}{format_bytes(most)}.", remedy, limit_bytes=limit, wanted_bytes=most)


def buffers(state: RigState) -> Iterator[Finding]:
    """Compare tcp_rmem and tcp_wmem, the bounds of autotuning, with rate × round trip of the paths."""
    if state.plan is not None and not any(cell.transport == "tcp" and cell[WINDOW] is None for cell in state.cells()):
        return
    good = []
    for each in state.reached():
        small = list(_small_buffers(state, each))
        yield from small
        if not small and _most(each, 0) is not None:
            good.append(each.name)
    yield from fine(good, "socket buffers may grow to what the links need.")


def _small_buffers(state: RigState, each: NodeState) -> Iterator[Finding]:
    rtt_s, rate_bps = _round_trip_s(state, each.name), state.rate_bps(each.name)
    for number, (way, sysctl) in enumerate(_AUTOTUNED):
        most = _most(each, number)
        if most is None or _sets(state, sysctl):
            continue
        usual = max([_most(other, number) or 0 for other in state.reached()])
        left_bps = most * _DATA_SHARE * 8 / rtt_s if rtt_s else None
        numbers: dict[str, Number] = {"most_bytes": most, "rtt_us": rtt_s and round(rtt_s * 1e6)}
        limit = f"{way} buffers grow to {format_bytes(most)} at most ({sysctl})"
        if rtt_s and left_bps and rate_bps and left_bps < rate_bps:
            text = f"{limit}: at a round trip of {rtt_s * 1e3:.3g} ms one flow gets about {format_rate(left_bps)}."
            needed = 1 << math.ceil(rate_bps * rtt_s / 8 / _DATA_SHARE).bit_length()
            numbers["one_flow_mbps"] = round(left_bps / 1e6, 1)
        elif most * UNLIKE <= usual:
            text = f"{limit}, of another node to {format_bytes(usual)}: a flow may be limited under load."
            needed = usual
        else:
            continue
        values = [*(each.sysctl(sysctl) or "4096 131072").split()[:2], str(max(needed, _USUAL_MOST))]
        yield warning(each, text, _set(sysctl, f"'{' '.join(values)}'"), **numbers)


def _round_trip_s(state: RigState, name: str) -> float | None:
    """Return the longest round trip of its paths in seconds; of both directions of a pair the shorter counts."""
    shortest: dict[frozenset[str], int] = {}
    for path in state.paths:
        if path.rtt_us and name in path.ends:
            ends = frozenset(path.ends)
            shortest[ends] = min(path.rtt_us, shortest.get(ends, path.rtt_us))
    return max(shortest.values()) / 1e6 if shortest else None


def congestion(state: RigState) -> Iterator[Finding]:
    """Check that the requested congestion controls are available, and that all nodes have the same default."""
    for each in state.reached():
        there = (each.sysctl(_AVAILABLE) or "").split()
        wanted = [
            (name, cell.number) for cell in state.cells() if each.name in cell.nodes and (name := cell[CONGESTION])
        ]
        for name in sorted({name for name, _ in wanted} if there else ()):
            asking = _asking([number for other, number in wanted if other == name])
            allowed = (each.facts.get("allowed_congestion") or name).split()
            if name not in there:
                text = f"congestion control {name} is not loaded, and {asking} it; there are {', '.join(there)}."
                loadable = each.around is not None and name in each.around.loadable
                # Linux loads it when root's agent asks for it.
                level = Severity.NOTE if loadable and each.as_root else Severity.ERROR
                yield finding_on(level, each, text, f"On the node, as root: modprobe tcp_{name}")
            elif name not in allowed and each.as_root is False:
                text = f"only root may use congestion control {name}, and {asking} it."
                names = " ".join([*allowed, name])
                remedy = f"On the node, as root: sysctl -w net.ipv4.tcp_allowed_congestion_control='{names}'"
                yield error(each, text, remedy)
    defaults = {each.name: own for each in state.reached() if (own := each.sysctl(_CONGESTION))}
    if len(set(defaults.values())) == 1:
        yield from fine(defaults, f"congestion control {next(iter(defaults.values()))} by default.")
    elif defaults and (state.plan is None or any(cell[CONGESTION] is None for cell in state.cells())):
        remedy = "Set congestion in the scenario, or give the nodes the same default."
        text = f"the default congestion controls differ, {by_value(defaults)}."
        yield from unlike(defaults, state.nodes, warning(nodes_of(defaults), text, remedy), _unlike)


def _unlike(each: NodeState, usual: str, others: str) -> Finding:
    text = f"the default congestion control is {each.sysctl(_CONGESTION)}, of {others}."
    change = _set(_CONGESTION, usual)
    return warning(each, text, f"{change}; or set congestion in the scenario.")


def disks(state: RigState) -> Iterator[Finding]:
    """Check that folders of file transfers exist, on a disk with room for the files of all flows."""
    needs: dict[str, int] = {}
    for cell in state.cells():
        if cell.folder and "disk" in (cell[READ], cell[WRITE]):
            needs[cell.folder] = max(needs.get(cell.folder, 0), (cell.message_bytes or 0) * cell.parallel)
    for each in state.reached():
        for disk in each.around.disks if each.around is not None else ():
            need = needs.get(disk.folder, 0)
            if disk.free_bytes is None:
                yield error(each, f"there is no folder {disk.folder}.", f"On the node: mkdir -p {disk.folder}")
            elif disk.in_memory:
                yield error(each, f"{disk.folder} is in memory, not on a disk.", "Name another folder in the scenario.")
            elif disk.free_bytes < need:
                text = f"{disk.folder} has {disk.free_bytes / 1e6:,.0f} MB free, the files take {need / 1e6:,.0f} MB."
                remedy = "Free some space, or name another folder."
                yield error(each, text, remedy, free_bytes=disk.free_bytes, wanted_bytes=need)


def _sets(state: RigState, sysctl: str) -> bool:
    """Tell whether the condition of a test sets it."""
    return any(sysctl in state.settings_of(cell) for cell in state.cells())


def _set(sysctl: str, value: object) -> str:
    return f"On the node, as root: sysctl -w {sysctl}={value}"


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 16 else None


def _most(each: NodeState, number: int) -> int | None:
    """Return the largest buffer for receiving (0) or sending (1), in bytes."""
    values = (each.sysctl(_AUTOTUNED[number][1]) or "").split()
    return _number(values[-1]) if len(values) == 3 else None


def _asking(numbers: list[int]) -> str:
    """Return `test 2 asks for` or `tests 1, 2 ask for`."""
    if len(numbers) == 1:
        return f"test {numbers[0]} asks for"
    named = numbers if len(numbers) <= 6 else [*numbers[:5], f"{len(numbers) - 5} more"]
    return f"tests {', '.join(map(str, named))} ask for"
