"""Cells for the limits that earlier rules named wrongly: other traffic, full shared links, short tests, clamped MSS.

`named` tunes the rules. `held_out` has other parameters; it was committed before the rules were changed, and is
measured and judged once, at the end. `@far` in a command stands for the data address of that node.
"""

import random
from dataclasses import replace
from typing import Any, Final

from limit_cells import ALONE, Case, datagrams, drop, rig, scenario, tbf

SECONDS: Final = 30
"""Other traffic ends by itself: no longer than a cell takes."""
FRAMES: Final = 1514 / 1538
"""A token bucket does not count preamble, gap and check sequence."""


def udp_beside(sender: str, receiver: str, mbps: float, size: int = 1448) -> tuple[tuple[str, str], ...]:
    """Datagrams of another program from `sender` to `receiver`, all the time."""
    sends = f"iperf3 -c @{receiver} -p 7777 -u -b {mbps:g}M -l {size} -t {SECONDS}"
    return _beside(sender, receiver, sends)


def tcp_beside(sender: str, receiver: str, congestion: str = "cubic") -> tuple[tuple[str, str], ...]:
    """A TCP stream of another program from `sender` to `receiver`, all the time."""
    return _beside(sender, receiver, f"iperf3 -c @{receiver} -p 7777 -C {congestion} -t {SECONDS}")


def _beside(sender: str, receiver: str, sends: str) -> tuple[tuple[str, str], ...]:
    quiet = "</dev/null >/dev/null 2>&1 &"
    listens = f"timeout {SECONDS + 5} iperf3 -s -p 7777 {quiet} sleep 0.5"
    # On a busy machine the server may listen late.
    again = f"for _ in 1 2 3 4 5 6; do {sends} && break; sleep 0.5; done"
    return (receiver, listens), (sender, f"timeout {SECONDS + 5} sh -c '{again}' {quiet} sleep 1.2")


def clamp(mss: int) -> tuple[str, str]:
    """Change the MSS that a SYN-ACK carries, as a router's TCPMSS rule does."""
    hook = "type filter hook ingress device eth0 priority 0;"
    rule = f"tcp flags syn tcp option maxseg size set {mss}"
    return "near", f"printf 'table netdev clamp {{ chain some {{ {hook}\\n{rule}\\n}}\\n}}\\n' | nft -f -"


def unscaled(node: str) -> tuple[tuple[str, str], ...]:
    return ((node, "sysctl -w net.ipv4.tcp_window_scaling=0"),)


def named(seed: int) -> list[Case]:
    """Cells to tune by."""
    made = [
        _other("udp 40 of 100 in", udp_beside("third", "far", 40), 100, scenario(1, "cubic")),
        _other("udp 40 of 100 in", udp_beside("third", "far", 40), 100, scenario(4, "bbr")),
        _other("tcp in, of 100", tcp_beside("third", "far"), 100, scenario(2, "cubic")),
        _other("tcp in, of 300", tcp_beside("third", "far", "reno"), 300, scenario(1, "reno")),
        _other("udp 30 of 100 out", udp_beside("near", "third", 30), 100, scenario(1, "cubic")),
        _other("tcp out, of 200", tcp_beside("near", "third"), 200, scenario(2, "cubic")),
        _other("udp 40 of 100 in", udp_beside("third", "far", 40), 100, datagrams(80_000_000)),
        _other("udp 40 of 100 in, 300 bytes", udp_beside("third", "far", 40, 300), 100, scenario(1, "reno")),
        _other("udp 60 of 200 in, 5 ms", udp_beside("third", "far", 60), 200, scenario(2, "cubic"), 5),
        Case(
            "window",
            "udp beside a window",
            "16K, 5 ms, udp 20 of 100",
            _three(100, 5),
            scenario(1, "cubic", 2.5, window="16K"),
            udp_beside("third", "far", 20),
        ),
        Case(
            "line-rate",
            "udp the other way",
            "far to third, 50 of 100",
            _three(100),
            scenario(1, "cubic"),
            udp_beside("far", "third", 50),
        ),
        Case(
            "path",
            "udp beside a shaper",
            "tbf 30M at near, udp 10 of 100",
            _three(100),
            scenario(1, "cubic"),
            (*udp_beside("third", "far", 10), ("near", tbf(30, 30))),
        ),
        *(
            _shared(share, rate, pairs, flows, congestion)
            for share, rate, pairs, flows, congestion in (
                (0.96, 100, ("near -> far", "third -> far"), 1, "cubic"),
                (0.95, 200, ("near -> far", "third -> far"), 2, "reno"),
                (0.97, 100, ("near -> far", "near -> third"), 1, "cubic"),
            )
        ),
        _short(300, 20, None, 1, "cubic"),
        _short(70, 100, None, 1, "cubic"),
        _short(150, 15, 2, 2, "reno"),
        _short(300, 20, None, 2, "bbr"),
        _clamped(1000, 200, 1, "cubic"),
        _clamped(900, 100, 4, "reno"),
        _small(980, 100),
        _unscaled(20, "far", 1, "cubic"),
        _unscaled(12, "near", 2, "reno"),
        _low_loss(0.01, 20, 1, "cubic", 0),
        _low_loss(0.01, 20, 1, "cubic", 3),
        _low_loss(0.02, 10, 1, "reno", 3),
    ]
    random.Random(seed).shuffle(made)
    return made


def held_out(seed: int) -> list[Case]:
    """Cells to prove by: the same kinds with other parameters."""
    made = [
        _other("udp 25 of 80 in", udp_beside("third", "far", 25), 80, scenario(2, "cubic")),
        _other("udp 150 of 250 in", udp_beside("third", "far", 150), 250, scenario(1, "bbr")),
        _other("udp 55 of 120 out", udp_beside("near", "third", 55), 120, scenario(4, "reno")),
        _other("tcp in, of 150", tcp_beside("third", "far"), 150, scenario(1, "reno")),
        _other("tcp in, of 400", tcp_beside("third", "far", "bbr"), 400, scenario(4, "cubic")),
        _other("tcp out, of 90", tcp_beside("near", "third", "reno"), 90, scenario(1, "cubic")),
        _other("udp 60 of 150 in", udp_beside("third", "far", 60), 150, datagrams(120_000_000)),
        _other("udp 50 of 150 in, 600 bytes", udp_beside("third", "far", 50, 600), 150, scenario(1, "cubic")),
        _other("udp 30 of 100 in, 10 ms", udp_beside("third", "far", 30), 100, scenario(4, "reno"), 10),
        Case(
            "window",
            "udp beside a window",
            "32K, 8 ms, udp 30 of 200",
            _three(200, 8),
            scenario(2, "reno", 2.5, window="32K"),
            udp_beside("third", "far", 30),
        ),
        Case(
            "line-rate",
            "udp the other way",
            "far to third, 90 of 150",
            _three(150),
            scenario(2, "reno"),
            udp_beside("far", "third", 90),
        ),
        Case(
            "path",
            "udp beside a shaper",
            "tbf 80M at near, udp 30 of 250",
            _three(250),
            scenario(2, "cubic"),
            (*udp_beside("third", "far", 30), ("near", tbf(80, 20))),
        ),
        *(
            _shared(share, rate, pairs, flows, congestion)
            for share, rate, pairs, flows, congestion in (
                (0.955, 150, ("near -> far", "third -> far"), 1, "reno"),
                (0.965, 80, ("near -> far", "third -> far"), 4, "cubic"),
                (0.96, 250, ("near -> far", "near -> third"), 2, "cubic"),
            )
        ),
        _short(200, 25, None, 1, "reno"),
        _short(90, 40, 1, 4, "cubic"),
        _short(400, 10, None, 2, "cubic"),
        _clamped(950, 300, 2, "cubic"),
        _clamped(1040, 150, 1, "reno"),
        _small(940, 300),
        _unscaled(30, "far", 2, "reno"),
        _unscaled(16, "near", 1, "cubic"),
        _low_loss(0.015, 15, 1, "cubic", 3),
        _low_loss(0.01, 25, 2, "reno", 3),
        _low_loss(0.03, 8, 1, "cubic", 0),
    ]
    random.Random(seed).shuffle(made)
    return made


def held_out_again(seed: int) -> list[Case]:
    """Further cells to prove by, made after `held_out` had been judged, before the rules were changed for it."""
    made = [
        _small(930, 200),
        _clamped(1020, 250, 2, "reno"),
        _clamped(920, 120, 1, "cubic"),
        _short(250, 12, None, 1, "reno"),
        _short(120, 30, 2, 2, "cubic"),
        _short(500, 8, None, 4, "cubic"),
        _other("udp 45 of 130 out", udp_beside("near", "third", 45), 130, scenario(2, "reno")),
        _other("tcp out, of 110", tcp_beside("near", "third"), 110, scenario(2, "cubic")),
        Case("line-rate", "nothing", "1 cubic, of 400", rig(4 * 10**8), scenario(1, "cubic")),
        _low_loss(0.02, 15, 2, "cubic", 2),
    ]
    random.Random(seed).shuffle(made)
    return made


def _three(rate_mbps: int, rtt_ms: float | None = None) -> dict[str, Any]:
    return rig(rate_mbps * 10**6, rtt_ms, 4, 1500, 3)


def _other(
    note: str, beside: tuple[tuple[str, str], ...], rate_mbps: int, asked: dict[str, Any], rtt_ms: float | None = None
) -> Case:
    which = asked.get("test", f"{asked['matrix']['parallel']} {asked['matrix'].get('congestion')}")
    return Case("other-traffic", "other traffic", f"{note}, {which}", _three(rate_mbps, rtt_ms), asked, beside)


def _shared(share: float, rate_mbps: int, pairs: tuple[str, ...], flows: int, congestion: str) -> Case:
    """A link that pairs share and that carries a little less than its rate, as real ones do."""
    note = f"{100 * share:g} % of {rate_mbps}M, {', '.join(pairs)}, {flows} {congestion}"
    into = pairs[0].split()[-1] == pairs[1].split()[-1]
    place = ("switch", "far") if into else ("near", "eth0")
    command = tbf(share * FRAMES * rate_mbps, 12, place[1])
    asked = {**scenario(flows, congestion), "pairs": list(pairs)}
    return Case("shared-link", "shared, not quite full", note, _three(rate_mbps), asked, ((place[0], command),))


def _short(rate_mbps: int, queue_ms: int, rtt_ms: float | None, flows: int, congestion: str) -> Case:
    note = f"tbf {rate_mbps}M, queue {queue_ms} ms, rtt {rtt_ms}, {flows} {congestion}, 1 s"
    asked = scenario(flows, congestion, 1.0) | {"omit": "0s"}
    place = ("switch", tbf(rate_mbps, queue_ms, "far")) if rtt_ms is None else ("near", tbf(rate_mbps, queue_ms))
    return Case("path", "short shaper", note, rig(10**9, rtt_ms), asked, (place,))


def _clamped(mss: int, rate_mbps: int, flows: int, congestion: str) -> Case:
    note = f"{mss} of {rate_mbps}M, {flows} {congestion}"
    made = Case("mtu", "clamp", note, rig(rate_mbps * 10**6), scenario(flows, congestion), (clamp(mss),))
    return replace(made, says="clamp")


def _small(mtu: int, rate_mbps: int) -> Case:
    """The same effect by the MTU of one end, which is no clamp."""
    commands = (("far", f"ip link set dev eth0 mtu {mtu}"),)
    made = Case("mtu", "mtu", f"{mtu} of 1500", rig(rate_mbps * 10**6), scenario(1, "cubic"), commands)
    return replace(made, says="same MTU")


def _unscaled(rtt_ms: float, node: str, flows: int, congestion: str) -> Case:
    note = f"off on {node}, rtt {rtt_ms}, {flows} {congestion}"
    made = Case("window", "no scaling", note, rig(2 * 10**8, rtt_ms), scenario(flows, congestion), unscaled(node))
    return replace(made, says="tcp_window_scaling")


def _low_loss(share: float, rtt_ms: float, flows: int, congestion: str, programs: int) -> Case:
    note = f"{100 * share:g} %, rtt {rtt_ms}, {flows} {congestion}, {programs} other programs"
    asked = scenario(flows, congestion, 4.0)
    commands = (("far", drop(share, 4)), ALONE)
    return replace(
        Case("loss", "loss at a low rate", note, rig(10**8, rtt_ms), asked, commands), busy_programs=programs
    )
