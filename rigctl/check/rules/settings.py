"""Rules on node settings that a scenario needs: socket buffers, congestion control, Multipath TCP."""

import math
from collections.abc import Iterator
from typing import Final

from rigctl.base.units import digits_text, format_bytes, format_rate
from rigctl.base.values import group_by
from rigctl.conditions.condition import congestion_of
from rigctl.findings import Finding, FindingValue, Severity, about_nodes, connections, window
from rigctl.paths.commands import by_value, find_deviating, find_on, say_in_order
from rigctl.paths.state import NodeState, RigState
from rigctl.settings import CONGESTION, MPTCP, WINDOW
from rigctl.settings.sockets import MPTCP_ENABLED

_LIMITS: Final = (
    ("SO_RCVBUF", "net.core.rmem_max", 1.0),
    ("SO_SNDBUF", "net.core.wmem_max", 1.0),
    ("a socket buffer", "kern.ipc.maxsockbuf", 2048 / 2304),
)
"""Socket options, the sysctls that bound them, and the share of the sysctl's value that a buffer may have. FreeBSD
counts the headers of its buffers (kern/uipc_sockbuf.c: sb_max × MCLBYTES ÷ (MSIZE + MCLBYTES))."""
_AUTOTUNED: Final = (("receive", "net.ipv4.tcp_rmem"), ("send", "net.ipv4.tcp_wmem"))
UNLIKE: Final = 4
"""A node is reported if another node's largest TCP buffer is at least this many times larger."""
_USUAL_MOST: Final = 6 << 20
_DATA_SHARE: Final = 0.5
"""Share of a socket buffer that Linux uses for data (ip-sysctl, tcp_adv_win_scale)."""
_SCALING: Final = "net.ipv4.tcp_window_scaling"
_UNSCALED: Final = 65535
_CONGESTION: Final = "net.ipv4.tcp_congestion_control"
_AVAILABLE: Final = "net.ipv4.tcp_available_congestion_control"


def scaling(state: RigState) -> Iterator[Finding]:
    """Check that TCP window scaling is on; otherwise windows are limited to 65,535 bytes (RFC 7323, 2)."""
    if state.plan is not None and not any(cell.transport == "tcp" for cell in state.cells()):
        return
    for each in state.reached():
        if each.sysctl(_SCALING) == "0" and not _a_condition_sets(state, _SCALING):
            rtt_s = _round_trip_s(state, each.name)
            at_most = ""
            if rtt_s:
                at_most = f": {format_rate(_UNSCALED * 8 / rtt_s)} at a round trip of {digits_text(rtt_s * 1e3)} ms"
            yield find_on(each, window.SCALING_OFF, sysctl=_SCALING, at_most=at_most)


def multipath(state: RigState) -> Iterator[Finding]:
    """Check that nodes of tests with Multipath TCP support it, and have it enabled."""
    for each in state.reached():
        cells = [cell for cell in state.cells() if cell[MPTCP] and each.name in cell.nodes]
        left = [cell.number for cell in cells if MPTCP_ENABLED not in state.settings_of(cell)]
        enabled = each.sysctl(MPTCP_ENABLED)
        if cells and (each.is_freebsd or each.is_windows or (enabled is None and each.facts.get("sysctls"))):
            yield find_on(each, connections.NO_MPTCP, asking=_tests_asking([cell.number for cell in cells]))
        elif left and enabled == "0":
            yield find_on(each, connections.MPTCP_OFF, sysctl=MPTCP_ENABLED, asking=_tests_asking(left))


def windows(state: RigState) -> Iterator[Finding]:
    """Check that no requested window exceeds the sysctl to which its kernel limits socket buffers."""
    for each in state.reached():
        cells = [cell for cell in state.cells() if not cell.resize and each.name in cell.nodes]
        fixed = {cell.number: cell[WINDOW] or 0 for cell in cells}
        for option, sysctl, share in _LIMITS:
            value = _number(each.sysctl(sysctl))
            limit = None if value is None else int(value * share)
            cut = [number for number, window in fixed.items() if limit is not None and window > limit]
            if limit is not None and cut:
                most = max(fixed.values())
                numbers = {"limit_bytes": limit, "wanted_bytes": most}
                words = {"limit": format_bytes(limit), "most": format_bytes(most), "asking": _tests_asking(cut)}
                words |= {"option": option, "sysctl": sysctl, "most_bytes": str(math.ceil(most / share))}
                yield find_on(each, window.WINDOW_CUT, numbers, **words)


def buffers(state: RigState) -> Iterator[Finding]:
    """Check that tcp_rmem and tcp_wmem let autotuned buffers grow to the link's rate × round-trip time."""
    if state.plan is not None and not any(cell.transport == "tcp" and cell[WINDOW] is None for cell in state.cells()):
        return
    good = []
    for each in state.reached():
        small = list(_small_buffers(state, each))
        yield from small
        if not small and _autotuning_limit(each, 0) is not None:
            good.append(each.name)
    yield from say_in_order(window.BUFFERS, good)


def _small_buffers(state: RigState, each: NodeState) -> Iterator[Finding]:
    rtt_s, rate_bps = _round_trip_s(state, each.name), state.rate_bps(each.name)
    for number, (way, sysctl) in enumerate(_AUTOTUNED):
        most = _autotuning_limit(each, number)
        if most is None or _a_condition_sets(state, sysctl):
            continue
        usual = max([_autotuning_limit(other, number) or 0 for other in state.reached()])
        left_bps = most * _DATA_SHARE * 8 / rtt_s if rtt_s else None
        numbers: dict[str, FindingValue] = {"most_bytes": most, "rtt_us": rtt_s and round(rtt_s * 1e6)}
        words: dict[str, object] = {"way": way, "most": format_bytes(most), "sysctl": sysctl}
        if rtt_s and left_bps and rate_bps and left_bps < rate_bps:
            sentence = window.BUFFERS_SMALL
            words |= {"rtt_ms": digits_text(rtt_s * 1e3), "rate": format_rate(left_bps)}
            needed = 1 << math.ceil(rate_bps * rtt_s / 8 / _DATA_SHARE).bit_length()
            numbers["one_flow_mbps"] = round(left_bps / 1e6, 1)
        elif most * UNLIKE <= usual:
            sentence, words = window.BUFFERS_UNLIKE, words | {"usual": format_bytes(usual)}
            needed = usual
        else:
            continue
        values = [*(each.sysctl(sysctl) or "4096 131072").split()[:2], str(max(needed, _USUAL_MOST))]
        yield find_on(each, sentence, numbers, values=" ".join(values), **words)


def _round_trip_s(state: RigState, name: str) -> float | None:
    """Return the longest round-trip time to a peer in s (the shorter of both directions counts); None if unknown."""
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
        for name, asking in sorted(_congestions_asked(state, each.name).items() if there else ()):
            allowed = (each.facts.get("allowed_congestion") or name).split()
            if name not in there:
                loadable = each.around is not None and name in each.around.loadable
                # Linux loads the module when an agent that runs as root sets this congestion control.
                level = Severity.NOTE if loadable and each.as_root else Severity.ERROR
                missing = connections.CONGESTION_MISSING.at(level)
                yield find_on(each, missing, name=name, asking=asking, known=", ".join(there))
            elif name not in allowed and each.as_root is False:
                names = " ".join([*allowed, name])
                yield find_on(each, connections.CONGESTION_FORBIDDEN, name=name, asking=asking, names=names)
    defaults = {each.name: own for each in state.reached() if (own := each.sysctl(_CONGESTION))}
    if len(set(defaults.values())) == 1:
        yield from say_in_order(connections.SAME_CONGESTION, defaults, name=next(iter(defaults.values())))
    elif defaults and (state.plan is None or any(cell[CONGESTION] is None for cell in state.cells())):
        differ = connections.CONGESTIONS_DIFFER.say(about_nodes(defaults), values=by_value(defaults))
        yield from find_deviating(defaults, state.nodes, differ, _unlike)


def _congestions_asked(state: RigState, name: str) -> dict[str, str]:
    """Map each congestion control to the words for what asks for it at a node: tests, or a condition of all nodes."""
    named = ((one.name, congestion_of(one)) for one in state.conditions())
    asked = {own: f"condition {name} asks for" for name, own in named if own is not None}
    cells = [cell for cell in state.cells() if name in cell.nodes and cell[CONGESTION]]
    by_name = group_by(cells, lambda cell: str(cell[CONGESTION]))
    return asked | {own: _tests_asking([cell.number for cell in same]) for own, same in by_name.items()}


def _unlike(each: NodeState, usual: str, others: str) -> Finding:
    return find_on(each, connections.CONGESTION_UNLIKE, name=each.sysctl(_CONGESTION), others=others, usual=usual)


def _a_condition_sets(state: RigState, sysctl: str) -> bool:
    return any(sysctl in state.settings_of(cell) for cell in state.cells())


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 16 else None


def _autotuning_limit(each: NodeState, number: int) -> int | None:
    """Return the limit of autotuning for receive buffers (0) or send buffers (1) in bytes; None if unknown."""
    values = (each.sysctl(_AUTOTUNED[number][1]) or "").split()
    return _number(values[-1]) if len(values) == 3 else None


def _tests_asking(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"test {numbers[0]} asks for"
    named = numbers if len(numbers) <= 6 else [*numbers[:5], f"{len(numbers) - 5} more"]
    return f"tests {', '.join(map(str, named))} ask for"
