"""Cells with other traffic, full shared links, short tests, a clamped MSS, marks, or pairs whose limits differ.

Made by a seed, for `limits.py`. `@far` in a command stands for the data address of that node.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from limit_cells import ALONE, CONGESTION, CUTTING, Case, datagrams, drained, drop, filtered, police, rig, scenario, tbf

SECONDS: Final = 30
"""Other traffic ends by itself: no longer than a cell takes."""
FRAMES: Final = 1514 / 1538
"""A token bucket does not count preamble, gap and check sequence."""


def beside(seed: int) -> list[Case]:
    rng = random.Random(seed)
    made = [case for kind in (other, none_of_it, shared, short, clamped, unscaled, low_loss) for case in kind(rng)]
    rng.shuffle(made)
    return made


def udp_beside(sender: str, receiver: str, mbps: float, size: int = 1448) -> tuple[tuple[str, str], ...]:
    return traffic_beside(sender, receiver, f"-u -b {mbps:g}M -l {size}")


def traffic_beside(sender: str, receiver: str, how: str) -> tuple[tuple[str, str], ...]:
    """Send from `sender` to `receiver` by another program all the time."""
    quiet = "</dev/null >/dev/null 2>&1 &"
    listens = f"timeout {SECONDS + 5} iperf3 -s -p 7777 {quiet} sleep 0.5"
    # On a busy machine the server may listen late.
    sends = f"iperf3 -c @{receiver} -p 7777 -t {SECONDS} {how}"
    again = f"for _ in 1 2 3 4 5 6; do {sends} && break; sleep 0.5; done"
    return (receiver, listens), (sender, f"timeout {SECONDS + 5} sh -c '{again}' {quiet} sleep 1.2")


def _three(rate_mbps: int, rtt_ms: float | None = None) -> dict[str, Any]:
    return rig(rate_mbps * 10**6, rtt_ms, 4, 1500, 3)


def other(rng: random.Random) -> Iterator[Case]:
    """Other traffic into the receiver or out of the sender, of UDP in frames of several sizes or of TCP."""
    for ends in (("third", "far"), ("near", "third")) * 2:
        rate_mbps, flows, congestion = rng.choice((80, 120, 200, 300)), rng.choice((1, 2, 4)), rng.choice(CONGESTION)
        mbps, size, rtt_ms = round(rate_mbps * rng.uniform(0.3, 0.6)), rng.choice((300, 600, 1448)), None
        if ends[1] == "far":
            rtt_ms = rng.choice((None, 5, 10))
        note = f"udp {mbps} of {rate_mbps}, {size} bytes, {' to '.join(ends)}, rtt {rtt_ms}, {flows} {congestion}"
        asked, commands = scenario(flows, congestion), udp_beside(*ends, mbps, size)
        yield Case("other-traffic", "other traffic", note, _three(rate_mbps, rtt_ms), asked, commands)
        beside_it = rng.choice(CUTTING)
        note = f"tcp {beside_it} {' to '.join(ends)}, of {rate_mbps}, {flows} {congestion}"
        commands = traffic_beside(*ends, f"-C {beside_it}")
        yield Case("other-traffic", "other traffic", note, _three(rate_mbps), asked, commands)
    asked, commands = datagrams(120_000_000), udp_beside("third", "far", 60)
    yield Case("other-traffic", "other traffic", "udp 60 of 150, udp", _three(150), asked, commands)


def none_of_it(rng: random.Random) -> Iterator[Case]:
    """Other traffic that is not the limit: beside a window, beside a shaper, and the other way."""
    rate_mbps, flows = rng.choice((100, 200)), rng.choice((1, 2))
    asked = scenario(flows, "cubic", window=f"{16 * rate_mbps // 100}K")
    commands = udp_beside("third", "far", 0.2 * rate_mbps)
    yield Case("window", "udp beside a window", f"of {rate_mbps}, 5 ms", _three(rate_mbps, 5), asked, commands)
    commands = udp_beside("far", "third", 0.5 * rate_mbps)
    asked = scenario(flows, "reno")
    yield Case("line-rate", "udp the other way", f"of {rate_mbps}, {flows} reno", _three(rate_mbps), asked, commands)
    commands = (*udp_beside("third", "far", 0.1 * rate_mbps), ("near", tbf(0.3 * rate_mbps, 30)))
    yield Case("path", "udp beside a shaper", f"of {rate_mbps}, {flows} reno", _three(rate_mbps), asked, commands)


def shared(rng: random.Random) -> Iterator[Case]:
    """A link that pairs share and that carries a little less than its rate, as real ones do."""
    for pairs in (("near -> far", "third -> far"), ("near -> far", "near -> third")) * 2:
        share, rate_mbps = rng.uniform(0.95, 0.97), rng.choice((80, 150, 250))
        flows, congestion = rng.choice((1, 2, 4)), rng.choice(CUTTING)
        note = f"{100 * share:.1f} % of {rate_mbps}M, {', '.join(pairs)}, {flows} {congestion}"
        place, device = ("switch", "far") if pairs[1].endswith("far") else ("near", "eth0")
        command = tbf(share * FRAMES * rate_mbps, 12, device)
        asked = {**scenario(flows, congestion), "pairs": list(pairs)}
        yield Case("shared-link", "shared, not quite full", note, _three(rate_mbps), asked, ((place, command),))


def short(rng: random.Random) -> Iterator[Case]:
    """A shaper in tests of one second."""
    for rtt_ms in (None, rng.choice((1, 2)), None):
        rate_mbps, queue_ms = rng.choice(((70, 100), (120, 30), (250, 12), (400, 10)))
        flows, congestion = rng.choice((1, 2, 4)), rng.choice(CONGESTION)
        note = f"tbf {rate_mbps}M, queue {queue_ms} ms, rtt {rtt_ms}, {flows} {congestion}, 1 s"
        asked = scenario(flows, congestion, 1.0) | {"omit": "0s"}
        place = ("switch", tbf(rate_mbps, queue_ms, "far")) if rtt_ms is None else ("near", tbf(rate_mbps, queue_ms))
        yield Case("path", "short shaper", note, rig(10**9, rtt_ms), asked, (place,))


def clamped(rng: random.Random) -> Iterator[Case]:
    """An MSS that a router changes in the SYN-ACK; and the same effect by the MTU of one end, which is no clamp."""
    for mss in rng.sample((900, 950, 1000, 1040), 2):
        rate_mbps, flows, congestion = rng.choice((100, 200, 300)), rng.choice((1, 2, 4)), rng.choice(CUTTING)
        command = filtered("clamp", f"tcp flags syn tcp option maxseg size set {mss}")
        note = f"{mss} of {rate_mbps}M, {flows} {congestion}"
        link, asked = rig(rate_mbps * 10**6), scenario(flows, congestion)
        yield Case("mtu", "clamp", note, link, asked, (("near", command),), says="clamp")
    mtu, link = rng.choice((930, 980)), rig(rng.choice((100, 200)) * 10**6)
    commands = (("far", f"ip link set dev eth0 mtu {mtu}"),)
    yield Case("mtu", "mtu", f"{mtu} of 1500", link, scenario(1, "cubic"), commands, says="same MTU")


def unscaled(rng: random.Random) -> Iterator[Case]:
    for node, rtt_ms in (("far", rng.choice((20, 30))), ("near", rng.choice((12, 16)))):
        flows, congestion = rng.choice((1, 2)), rng.choice(CUTTING)
        note, commands = f"off on {node}, rtt {rtt_ms}", ((node, "sysctl -w net.ipv4.tcp_window_scaling=0"),)
        link, asked = rig(2 * 10**8, rtt_ms), scenario(flows, congestion)
        yield Case("window", "no scaling", note, link, asked, commands, says="tcp_window_scaling")


def low_loss(rng: random.Random) -> Iterator[Case]:
    """Losses at a low rate, beside busy programs as well."""
    for programs in (0, 3, 3):
        (share, rtt_ms), flows = rng.choice(((0.01, 20), (0.015, 15), (0.02, 10), (0.03, 8))), rng.choice((1, 2))
        congestion = rng.choice(CUTTING)
        note = f"{100 * share:g} %, rtt {rtt_ms}, {flows} {congestion}, {programs} other programs"
        commands = (("far", drop(share, 4)), ALONE)
        made = Case("loss", "loss at a low rate", note, rig(10**8, rtt_ms), scenario(flows, congestion, 4.0), commands)
        yield replace(made, busy_programs=programs)


def unlike(seed: int) -> list[Case]:
    """Two pairs at once, each with a limit of its own: `near -> far` with that of the test, and `third -> fourth`."""
    rng = random.Random(seed)
    made = []
    for label, kind, rtt_ms, commands in (
        ("path", "shaper", None, (("switch", tbf(300, 20, "far")),)),
        ("path", "policer", 5, (("far", police(100, 128, 4)),)),
        ("loss", "loss", 8, (("far", drop(0.01, 4)), ALONE)),
        ("window", "tcp_rmem", 5, (("far", "sysctl -w net.ipv4.tcp_rmem='4096 16384 40000'"),)),
        ("window", "tcp_wmem", 5, (("near", "sysctl -w net.ipv4.tcp_wmem='4096 16384 40000'"),)),
    ):
        for full in (False, True):
            flows, congestion = rng.choice((1, 2)), rng.choice(CUTTING)
            link = rig(10**9, rtt_ms, 4, 1500, 4)
            others: tuple[tuple[str, str], ...] = () if full else (("switch", tbf(500, 20, "fourth")),)
            asked = drained(scenario(flows, congestion)) | {"pairs": ["near -> far", "third -> fourth"]}
            second = "line-rate" if full else "path"
            note = f"{label} and {second}, {flows} {congestion}"
            made.append(Case(label, f"unlike {kind}", note, link, asked, commands + others, of_pairs=(label, second)))
    return made


def marked(seed: int) -> list[Case]:
    """A queue 5 ms away that marks packets of ECN instead of dropping them."""
    rng = random.Random(seed)
    made = []
    for one_in in (150, 300, 600) * 2:
        flows, congestion = rng.choice((1, 2)), rng.choice(CUTTING)
        command = filtered("marks", f"ip protocol tcp ip length > 500 numgen random mod {one_in} < 1 ip ecn set ce")
        asked = scenario(flows, congestion, 5.0) | {"conditions": {"ecn": {"sysctl": {"net.ipv4.tcp_ecn": 1}}}}
        note, says = f"1 in {one_in}, {flows} {congestion}", "marks packets instead of dropping them"
        made.append(Case("path", "marks", note, rig(10**9, 5), asked, (("far", command),), says=says))
    return made
