"""Rules on settings that a scenario needs: socket buffers, congestion control, disks."""

from collections.abc import Iterator, Mapping
from typing import Final

from rigctl.base.units import format_bytes, format_rate
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import as_root, by_value, found, most_common, node
from rigctl.findings import Finding, Severity
from rigctl.probe.freebsd import AVAILABLE
from rigctl.records import Cell
from rigctl.settings import CONGESTION, READ, WINDOW, WRITE

_LIMITS: Final = (("SO_RCVBUF", "net.core.rmem_max"), ("SO_SNDBUF", "net.core.wmem_max"))
_MOST_SOCKET: Final = "kern.ipc.maxsockbuf"
_USABLE: Final = 8 / 9
"""Usable share of kern.ipc.maxsockbuf: MCLBYTES / (MSIZE + MCLBYTES), from FreeBSD's sbreserve(9)."""
_AUTOTUNED: Final = (("receive", "net.ipv4.tcp_rmem"), ("send", "net.ipv4.tcp_wmem"))
_AUTOTUNED_FREEBSD: Final = (("receive", "net.inet.tcp.recvbuf_max"), ("send", "net.inet.tcp.sendbuf_max"))
UNLIKE: Final = 4
"""Buffers smaller than another node's by this factor are reported."""
_USUAL_MOST: Final = 6 << 20
_SCALING: Final = "net.ipv4.tcp_window_scaling"
_UNSCALED: Final = 65535
_CONGESTION: Final = "net.ipv4.tcp_congestion_control"
_CONGESTION_FREEBSD: Final = "net.inet.tcp.cc.algorithm"
_AVAILABLE: Final = "net.ipv4.tcp_available_congestion_control"


def scaling(seen: Seen) -> Iterator[Finding]:
    """Check TCP window scaling: without it at one end a window has 16 bits (RFC 7323, 2)."""
    if seen.plan is not None and not any(cell.transport == "tcp" for cell in seen.cells()):
        return
    for each in seen.reached():
        if each.sysctl(_SCALING) == "0" and not any(_SCALING in seen.settings_of(cell) for cell in seen.cells()):
            rtt_s = _round_trip_s(seen, each.name)
            at_most = f": {format_rate(_UNSCALED * 8 / rtt_s)} at a round trip of {rtt_s * 1e3:.3g} ms" if rtt_s else ""
            text = f"{_SCALING} is 0: no flow to or from it has more than 64 KiB on the way{at_most}."
            yield found(Severity.WARNING, node(each.name), text, as_root(each, "sysctl", name=_SCALING, value=1))


def windows(seen: Seen) -> Iterator[Finding]:
    """Compare requested windows with net.core.*mem_max, above which the kernel cuts them (socket(7))."""
    for each in seen.reached():
        for option, sysctl, limit in _socket_limits(each):
            cut = [cell for cell in seen.cells() if _fixed(cell) > (limit or 1 << 62) and each.name in cell.nodes]
            if not cut or limit is None:
                continue
            most = max(_fixed(cell) for cell in cut)
            asked = f"{_asking(cut)} up to {format_bytes(most)}"
            text = f"{option} is limited to {format_bytes(limit)} by {sysctl}; {asked}."
            needed = round(most / _USABLE) if each.is_freebsd else most
            remedy = as_root(each, "sysctl", name=sysctl, value=needed)
            numbers = {"limit_bytes": limit, "wanted_bytes": most}
            yield found(Severity.WARNING, node(each.name), text, remedy, numbers)


def _socket_limits(each: NodeSeen) -> Iterator[tuple[str, str, int | None]]:
    if each.is_freebsd:
        most = _number(each, _MOST_SOCKET)
        yield "SO_RCVBUF and SO_SNDBUF", _MOST_SOCKET, None if most is None else int(most * _USABLE)
        return
    for option, sysctl in _LIMITS:
        yield option, sysctl, _number(each, sysctl)


def buffers(seen: Seen) -> Iterator[Finding]:
    """Compare tcp_rmem and tcp_wmem, the bounds of autotuning, with rate × round trip of the paths."""
    if seen.plan is not None and not any(_autotuned(cell) for cell in seen.cells()):
        return
    good = []
    for each in seen.reached():
        small = list(_small_buffers(seen, each))
        yield from small
        if not small and _most(each, 0) is not None:
            good.append(each.name)
    if good:
        yield found(Severity.OK, node(*good), "socket buffers may grow to what the links need.")


def _small_buffers(seen: Seen, each: NodeSeen) -> Iterator[Finding]:
    rtt_s, rate_bps = _round_trip_s(seen, each.name), seen.rate_bps(each.name)
    for number, (way, sysctl) in enumerate(_autotuned_by(each)):
        most = _most(each, number)
        if most is None or any(sysctl in seen.settings_of(cell) for cell in seen.cells()):
            continue
        usual = max([_most(other, number) or 0 for other in seen.reached()])
        # Linux counts half of a buffer as data (ip-sysctl, tcp_adv_win_scale); FreeBSD counts data only.
        share = 1.0 if each.is_freebsd else 0.5
        left_bps = most * share * 8 / rtt_s if rtt_s else None
        numbers: dict[str, float | None] = {"most_bytes": most, "rtt_us": rtt_s and round(rtt_s * 1e6)}
        limit = f"{way} buffers grow to {format_bytes(most)} at most ({sysctl})"
        if rtt_s and left_bps and rate_bps and left_bps < rate_bps:
            text = f"{limit}: at a round trip of {rtt_s * 1e3:.3g} ms one flow gets about {format_rate(left_bps)}."
            needed = 1 << (rate_bps * rtt_s / 8 / share).__ceil__().bit_length()
            numbers["one_flow_mbps"] = round(left_bps / 1e6, 1)
        elif most * UNLIKE <= usual:
            text = f"{limit}, of another node to {format_bytes(usual)}: a flow may be limited under load."
            needed = usual
        else:
            continue
        values = str(max(needed, _USUAL_MOST))
        if not each.is_freebsd:
            values = f"'{' '.join([*(each.sysctl(sysctl) or '4096 131072').split()[:2], values])}'"
        remedy = as_root(each, "sysctl", name=sysctl, value=values)
        yield found(Severity.WARNING, node(each.name), text, remedy, numbers={**numbers})


def _round_trip_s(seen: Seen, name: str) -> float | None:
    """Return the longest round trip of its paths in seconds; of both directions of a pair the shorter counts."""
    shortest: dict[frozenset[str], int] = {}
    for path in seen.paths:
        if path.rtt_us and name in (path.source, path.destination):
            ends = frozenset((path.source, path.destination))
            shortest[ends] = min(path.rtt_us, shortest.get(ends, path.rtt_us))
    return max(shortest.values()) / 1e6 if shortest else None


def congestion(seen: Seen) -> Iterator[Finding]:
    """Check that the requested congestion controls are available, and that all nodes have the same default."""
    for each in seen.reached():
        there = (each.sysctl(AVAILABLE if each.is_freebsd else _AVAILABLE) or "").split()
        asked = {name for cell in seen.cells() if (name := cell[CONGESTION]) is not None}
        for name in sorted(asked if there else ()):
            cells = [cell for cell in seen.cells() if cell[CONGESTION] == name and each.name in cell.nodes]
            allowed = (each.facts.get("allowed_congestion") or name).split()
            if cells and name not in there:
                yield _unavailable(each, name, there, _asking(cells))
            elif cells and name not in allowed and each.as_root is False:
                text = f"only root may use congestion control {name}, and {_asking(cells)} it."
                names = " ".join([*allowed, name])
                remedy = f"On the node, as root: sysctl -w net.ipv4.tcp_allowed_congestion_control='{names}'"
                yield found(Severity.ERROR, node(each.name), text, remedy)
    defaults = {each.name: own for each in seen.reached() if (own := each.sysctl(_default_by(each)))}
    if len(set(defaults.values())) == 1:
        yield found(Severity.OK, node(*defaults), f"congestion control {next(iter(defaults.values()))} by default.")
    elif defaults and (seen.plan is None or any(cell[CONGESTION] is None for cell in seen.cells())):
        yield from _unlike(seen, defaults)


def _unlike(seen: Seen, defaults: Mapping[str, str]) -> Iterator[Finding]:
    """Report the nodes with another default than most; if none is the usual one, all nodes at once."""
    usual = most_common(defaults)
    if usual is None:
        text = f"the default congestion controls differ, {by_value(defaults)}."
        remedy = "Set congestion in the scenario, or give the nodes the same default."
        yield found(Severity.WARNING, node(*defaults), text, remedy)
    others = list(defaults.values()).count(usual or "")
    for name, own in defaults.items() if usual is not None else ():
        if own != usual:
            text = f"the default congestion control is {own}, of {others} other nodes {usual}."
            change = as_root(seen.nodes[name], "sysctl", name=_default_by(seen.nodes[name]), value=usual)
            yield found(Severity.WARNING, node(name), text, f"{change}; or set congestion in the scenario.")


def _unavailable(each: NodeSeen, name: str, there: list[str], asking: str) -> Finding:
    text = f"congestion control {name} is not loaded, and {asking} it; there are {', '.join(there)}."
    remedy = as_root(each, "module", name=name)
    loadable = each.around is not None and name in each.around.loadable
    # Linux loads it when root's agent asks for it.
    level = Severity.NOTE if loadable and each.as_root and not each.is_freebsd else Severity.ERROR
    return found(level, node(each.name), text, remedy)


def disks(seen: Seen) -> Iterator[Finding]:
    """Check that folders of file transfers exist, on a disk with room for the files of all flows."""
    needs: dict[str, int] = {}
    for cell in seen.cells():
        if cell.folder and "disk" in (cell[READ], cell[WRITE]):
            size = (cell.message_bytes or 0) * cell.parallel
            needs[cell.folder] = max(needs.get(cell.folder, 0), size)
    for each in seen.reached():
        for disk in each.around.disks if each.around is not None else ():
            name, need = node(each.name), needs.get(disk.folder, 0)
            if disk.free_bytes is None:
                yield found(
                    Severity.ERROR, name, f"there is no folder {disk.folder}.", f"On the node: mkdir -p {disk.folder}"
                )
            elif disk.in_memory:
                text = f"{disk.folder} is in memory, not on a disk."
                yield found(Severity.ERROR, name, text, "Name another folder in the scenario.")
            elif disk.free_bytes < need:
                text = f"{disk.folder} has {disk.free_bytes / 1e6:,.0f} MB free, the files take {need / 1e6:,.0f} MB."
                numbers = {"free_bytes": disk.free_bytes, "wanted_bytes": need}
                yield found(Severity.ERROR, name, text, "Free some space, or name another folder.", numbers=numbers)


def _number(each: NodeSeen, sysctl: str) -> int | None:
    value = each.sysctl(sysctl) or ""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None


def _default_by(each: NodeSeen) -> str:
    return _CONGESTION_FREEBSD if each.is_freebsd else _CONGESTION


def _autotuned_by(each: NodeSeen) -> tuple[tuple[str, str], ...]:
    return _AUTOTUNED_FREEBSD if each.is_freebsd else _AUTOTUNED


def _most(each: NodeSeen, number: int) -> int | None:
    """Return the largest buffer for receiving (0) or sending (1), in bytes."""
    _, sysctl = _autotuned_by(each)[number]
    if each.is_freebsd:
        return _number(each, sysctl)
    values = (each.sysctl(sysctl) or "").split()
    return int(values[2]) if len(values) == 3 and values[2].isascii() and values[2].isdigit() else None


def _fixed(cell: Cell) -> int:
    """Return the window that is set by socket option, or 0."""
    return 0 if cell.resize else cell[WINDOW] or 0


def _autotuned(cell: Cell) -> bool:
    return cell.transport == "tcp" and cell[WINDOW] is None


def _asking(cells: list[Cell]) -> str:
    """Return `test 2 asks for` or `tests 1, 2 ask for`."""
    numbers = [str(cell.number) for cell in cells]
    shown = numbers if len(numbers) <= 6 else [*numbers[:5], f"{len(numbers) - 5} more"]
    return f"tests {', '.join(shown)} ask for" if len(numbers) > 1 else f"test {numbers[0]} asks for"
