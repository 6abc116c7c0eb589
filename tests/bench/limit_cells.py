"""Cells with a limit that is known, because it was injected: made by a seed, for `limits.py`.

Each kind of limit comes in several strengths, with other flows, congestion controls, IP versions and MTUs. Where two
limits are injected, the tighter one is the label: what each allows by arithmetic differs by a third at least. `beside`:
with other traffic, full shared links, short tests, a clamped MSS; `unlike`: pairs whose limits differ; `marked`.
`@far` in a command stands for the data address of that node.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

CONGESTION: Final = ("cubic", "reno", "bbr")
CUTTING: Final = ("cubic", "reno")
MBIT: Final = 1e6
ALONE: Final = ("near", "ethtool -K eth0 tso off gso off")
"""Turns off segmentation offload. Otherwise a drop takes up to 45 segments at once, which TCP treats as one loss."""
MARGIN: Final = 0.66
"""Largest share of the rate under the looser of two limits that the tighter one allows."""


@dataclass(frozen=True, slots=True)
class Case:
    """A test, the changes that are made to its rig before, and the limit that must be found (`label`)."""

    label: str
    kind: str
    note: str
    rig: dict[str, Any]
    scenario: dict[str, Any]
    commands: tuple[tuple[str, str], ...] = ()  # node (or `switch`) and shell command
    quota: tuple[str, int] | None = None  # node, and percent of one processor that its agent may use
    read_bytes_per_s: int | None = None  # rate at which the sender's agent may read from the disk
    busy_programs: int = 0
    of_pairs: tuple[str, ...] = ()  # limit of each pair, if it differs from the test's
    says: str = ""  # text that the findings must contain


def cases(seed: int) -> list[Case]:
    """Return the cases in random order, so that disturbances of the machine hit all kinds."""
    rng = random.Random(seed)
    made = [
        case
        for kind in (nothing, shared, shaper, policer, window, buffers, loss, quota, machine, rate, disk, mtu, two)
        for case in kind(rng)
    ]
    rng.shuffle(made)
    return made


def rig(rate: int, rtt_ms: float | None = None, ip: int = 4, mtu: int = 1500, nodes: int = 2) -> dict[str, Any]:
    names = ("near", "far", "third", "fourth")[:nodes]
    made: dict[str, Any] = {name: {} for name in names}
    if rtt_ms is not None:
        made["far"]["rtt"] = f"{rtt_ms:g}ms"
    return {"virtual": "namespaces", "ip_version": ip, "links": {"rate": str(rate), "mtu": mtu}, "nodes": made}


def drained(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario that omits the first 2 s, in which the bucket of nftables (1 s deep) empties."""
    return {**asked, "duration": "4.5s", "omit": "2s"}


def scenario(flows: int = 1, congestion: str | None = None, seconds: float = 2.5, **axes: Any) -> dict[str, Any]:
    matrix = {"parallel": flows, **axes}
    if congestion:
        matrix["congestion"] = congestion
    return {"pairs": ["near -> far"], "duration": f"{seconds}s", "omit": "0.5s", "matrix": matrix}


def datagrams(offered: int | str, flows: int = 1) -> dict[str, Any]:
    return {**scenario(flows, rate=str(offered)), "test": "udp"}


INGRESS: Final = "type filter hook ingress device eth0 priority 0;"


def filtered(table: str, rule: str) -> str:
    """Return a command that applies an nftables rule to incoming packets."""
    return f"printf 'table netdev {table} {{ chain some {{ {INGRESS}\\n{rule}\\n}}\\n}}\\n' | nft -f -"


def nothing(rng: random.Random) -> Iterator[Case]:
    for rate_mbps in (100, 500, 1000, 2000):
        flows, congestion = rng.choice((1, 2, 8)), rng.choice(CONGESTION)
        link = rig(rate_mbps * 10**6, None, rng.choice((4, 6)), rng.choice((1500, 9000)))
        yield Case("line-rate", "nothing", f"{flows} {congestion}", link, scenario(flows, congestion))
    yield Case("line-rate", "nothing", "udp", rig(rng.choice((200, 500)) * 10**6), datagrams("unlimited"))


def shared(rng: random.Random) -> Iterator[Case]:
    pairings = (
        ["near -> far", "third -> far"],
        ["near -> far", "near -> third"],
        ["near -> far", "third -> far", "fourth -> far"],
    )
    for pairs in pairings:
        flows, congestion = rng.choice((1, 4)), rng.choice(CONGESTION)
        link = rig(rng.choice((300, 600, 1000)) * 10**6, None, rng.choice((4, 6)), 1500, 4)
        asked = {**scenario(flows, congestion), "pairs": pairs}
        yield Case("shared-link", "shared", f"{len(pairs)} pairs, {flows} {congestion}", link, asked)
    link = rig(10**9, None, 4, rng.choice((1500, 9000)), 4)
    for name, switch in zip(link["nodes"], ("left", "right", "left", "right"), strict=True):
        link["nodes"][name] = {"switch": switch}
    trunk_mbps = rng.choice((400, 800, 1200))
    link |= {"switches": {"left": {"mtu": 9216}, "right": {"mtu": 9216}}, "trunk": {"rate": f"{trunk_mbps}M"}}
    asked = {**scenario(rng.choice((1, 4)), "cubic"), "pairs": ["near -> far", "third -> fourth"]}
    yield Case("shared-link", "trunk", f"{trunk_mbps} Mbit/s", link, asked)


def tbf(rate_mbps: float, queue_ms: float, device: str = "eth0") -> str:
    limit = max(round(rate_mbps * 125 * queue_ms), 140_000)
    return f"tc qdisc replace dev {device} root tbf rate {rate_mbps:.0f}mbit burst 70kb limit {limit}b"


def shaper(rng: random.Random) -> Iterator[Case]:
    for share, place in ((0.15, "near"), (0.3, "switch"), (0.5, "near"), (0.7, "switch")):
        rate_mbps, flows = rng.choice((500, 1000)), rng.choice((1, 2, 8))
        congestion, queue_ms = rng.choice(CONGESTION), rng.choice((10, 20, 40))
        rtt_ms = rng.choice((None, 1, 3))
        link = rig(rate_mbps * 10**6, rtt_ms, rng.choice((4, 6)))
        command = tbf(share * rate_mbps, queue_ms, "far" if place == "switch" else "eth0")
        note = f"tbf {share * rate_mbps:.0f}M at {place}, queue {queue_ms} ms, rtt {rtt_ms}, {flows} {congestion}"
        yield Case("path", "shaper", note, link, scenario(flows, congestion), ((place, command),))
    link, shaped_mbps = rig(10**9), rng.choice((100, 300))
    note = f"tbf {shaped_mbps}M at switch, udp 600M"
    yield Case("path", "shaper", note, link, datagrams(600 * 10**6), (("switch", tbf(shaped_mbps, 20, "far")),))


def police(rate_mbps: float, burst_kb: int, ip: int) -> str:
    """Return a command that drops packets above a rate at the receiver, as a provider's policer does."""
    protocol = "ip protocol" if ip == 4 else "ip6 nexthdr"
    rule = f"{protocol} {{ tcp, udp }} limit rate over {rate_mbps / 8 * 1e6 / 1024:.0f} kbytes/second"
    return filtered("police", f"{rule} burst {burst_kb} kbytes counter drop")


def policer(rng: random.Random) -> Iterator[Case]:
    for policed_mbps in (50, 120, 200, 400):
        flows, congestion, ip = rng.choice((1, 4)), rng.choice(CONGESTION), rng.choice((4, 6))
        rtt_ms, burst_kb = rng.choice((None, 2, 5)), rng.choice((128, 256))
        # In half of the cases, segments are sent and dropped one by one.
        commands = (("far", police(policed_mbps, burst_kb, ip)), *rng.choice(((), (ALONE,))))
        note = f"{policed_mbps}M, burst {burst_kb} KB, rtt {rtt_ms}, {flows} {congestion}"
        yield Case("path", "policer", note, rig(10**9, rtt_ms, ip), drained(scenario(flows, congestion)), commands)
    asked, commands = drained(datagrams(300 * 10**6)), (("far", police(150, 128, 4)),)
    yield Case("path", "policer", "150M, udp 300M", rig(10**9), asked, commands)


def window(rng: random.Random) -> Iterator[Case]:
    for _ in range(4):
        size_kb, rtt_ms, flows = rng.choice((6, 12, 32, 64)), rng.choice((3, 5, 7, 15)), rng.choice((1, 2, 4))
        congestion = rng.choice(CONGESTION)
        allowed = flows * size_kb * 8192 / rtt_ms * 1e3
        link = rig(_above(allowed), rtt_ms, rng.choice((4, 6)))
        note = f"{size_kb} KB, rtt {rtt_ms}, {flows} {congestion}"
        yield Case("window", "window", note, link, scenario(flows, congestion, window=f"{size_kb}K"))


def _above(allowed_bps: float) -> int:
    """Return a link rate in bit/s that is no limit beside a limit of `allowed_bps`."""
    return next(rate * 10**6 for rate in (100, 200, 500, 1000, 2500) if allowed_bps <= MARGIN * rate * MBIT)


def buffers(rng: random.Random) -> Iterator[Case]:
    for name in ("tcp_rmem", "tcp_wmem") * 3:
        most, rtt_ms, flows = rng.choice((20_000, 40_000, 90_000)), rng.choice((4, 9, 16)), rng.choice((1, 2, 4))
        allowed = flows * (most + 30_000) * 8 / rtt_ms * 1e3
        link = rig(_above(allowed), rtt_ms, rng.choice((4, 6)))
        asked = scenario(flows, rng.choice(CONGESTION))
        asked["conditions"] = {"small": {"sysctl": {f"net.ipv4.{name}": f"4096 16384 {most}"}}}
        yield Case("window", name, f"{most} bytes, rtt {rtt_ms}, {flows} flows", link, asked)


def drop(share: float, ip: int) -> str:
    protocol = "ip protocol" if ip == 4 else "ip6 nexthdr"
    return filtered(
        "loss", f"{protocol} {{ tcp, udp }} meta length > 500 numgen random mod 10000 < {round(share * 1e4)} drop"
    )


def mathis_bps(rtt_ms: float, share: float) -> float:
    return 1448 * 8 / rtt_ms * 1e3 * math.sqrt(1.5 / share)


def loss(rng: random.Random) -> Iterator[Case]:
    for share in (0.002, 0.005, 0.01, 0.03):
        rtt_ms, flows, ip = rng.choice((4, 8, 16)), rng.choice((1, 2, 4)), rng.choice((4, 6))
        congestion = rng.choice(CUTTING)
        link = rig(_above(2 * flows * mathis_bps(rtt_ms, share)), rtt_ms, ip)
        note = f"{100 * share:g} %, rtt {rtt_ms}, {flows} {congestion}"
        yield Case("loss", "loss", note, link, scenario(flows, congestion, 3.0), (("far", drop(share, ip)), ALONE))
    share = rng.choice((0.18, 0.25))
    note = f"{100 * share:g} %, bbr, rtt 5"
    yield Case("loss", "loss", note, rig(2 * 10**8, 5), scenario(1, "bbr", 3.0), (("far", drop(share, 4)), ALONE))
    share = rng.choice((0.05, 0.15))
    note, asked = f"{100 * share:g} %, udp", datagrams(200_000_000)
    yield Case("loss", "loss", note, rig(10**9), asked, (("far", drop(share, 4)),))


def quota(rng: random.Random) -> Iterator[Case]:
    for node, label in (("near", "sender"), ("far", "receiver")):
        for percent in (3, 4, 6):
            flows, congestion = rng.choice((1, 2, 4)), rng.choice(CONGESTION)
            link = rig(10**10, None, rng.choice((4, 6)), rng.choice((1500, 9000)))
            note = f"{percent} % of a processor, {flows} {congestion}"
            yield Case(label, "quota", note, link, scenario(flows, congestion), quota=(node, percent))


def machine(rng: random.Random) -> Iterator[Case]:
    for flows in (rng.choice((4, 6)), rng.choice((8, 12))):
        link = rig(10**11, None, rng.choice((4, 6)))
        yield Case("machine", "machine", f"{flows} flows", link, scenario(flows, rng.choice(CUTTING)))
    link = rig(10**11)
    yield Case("unknown", "other programs", "4 of them", link, scenario(1, "cubic"), busy_programs=4)


def rate(rng: random.Random) -> Iterator[Case]:
    for share in (0.1, 0.4, 0.8):
        link_bps, flows = rng.choice((100, 500)) * 10**6, rng.choice((1, 2))
        note = f"{flows} flows, {share:g} of {link_bps // 10**6}M"
        yield Case("rate", "rate", note, rig(link_bps), datagrams(round(share * link_bps / flows), flows))


def disk(rng: random.Random) -> Iterator[Case]:
    for read_mb in rng.sample((4, 10, 25), 2):
        asked = {**scenario(1, "cubic", 60.0, read="disk", write="memory"), "test": "file"}
        asked["matrix"]["size"] = f"{3 * read_mb}M"
        asked |= {"omit": "0s"}
        del asked["matrix"]["parallel"]
        yield Case("disk", "disk", f"reads {read_mb} MB/s", rig(10**9), asked, read_bytes_per_s=read_mb * 1_000_000)


def mtu(rng: random.Random) -> Iterator[Case]:
    for small in (576, 1000):
        flows, congestion = rng.choice((1, 4)), rng.choice(CONGESTION)
        link = rig(rng.choice((100, 200)) * 10**6)
        commands = (("far", f"ip link set dev eth0 mtu {small}"),)
        yield Case("mtu", "mtu", f"{small} of 1500", link, scenario(flows, congestion), commands)
    link = rig(rng.choice((300, 500, 1000)) * 10**6, None, rng.choice((4, 6)), 9000)
    link["nodes"]["far"]["mtu"] = 1500
    yield Case("mtu", "mtu", "1500 beside 9000", link, scenario(rng.choice((1, 4)), rng.choice(CONGESTION)))


def two(rng: random.Random) -> Iterator[Case]:
    """Yield cases with two limits, of which the tighter one alternates."""
    cut = police(rng.choice((80, 150)), 128, 4)
    for tighter in ("window", "path"):
        rtt_ms, flows = rng.choice((4, 8)), rng.choice((1, 2))
        allowed = flows * 32 * 8192 / rtt_ms * 1e3
        shaped_mbps = allowed / MBIT / MARGIN if tighter == "window" else allowed / MBIT * MARGIN * 0.7
        note = f"32 KB × {flows} over {rtt_ms} ms allow {allowed / MBIT:.0f}M, tbf {shaped_mbps:.0f}M"
        asked = scenario(flows, rng.choice(CONGESTION), window="32K")
        link, shaping = rig(10**9, rtt_ms), (("near", tbf(shaped_mbps, 40)),)
        yield Case(tighter, "window+shaper", note, link, asked, shaping)
    for tighter in ("window", "loss"):
        rtt_ms, share = rng.choice((5, 10)), 0.01
        lossy = mathis_bps(rtt_ms, share)
        size = round(lossy * rtt_ms / 8e3 * (0.3 if tighter == "window" else 8))
        note = f"1 % over {rtt_ms} ms allows {lossy / MBIT:.0f}M, window {size} bytes"
        asked = scenario(1, rng.choice(CUTTING), 3.0, window=max(2048, size))
        yield Case(tighter, "window+loss", note, rig(10**9, rtt_ms), asked, (("far", drop(share, 4)), ALONE))
    shaped = (("switch", tbf(rng.choice((100, 200)), 20, "far")),)
    yield Case("path", "quota+shaper", "sender 20 %", rig(10**9), scenario(2, "cubic"), shaped, quota=("near", 20))
    # Measured alone: 2 % of a processor allow 400 to 800 Mbit/s, 4 % allow 800 to 3200, and this shaper 3010.
    tight = Case("sender", "quota+shaper", "sender 2 %", rig(5 * 10**9), scenario(2, "cubic"), quota=("near", 2))
    yield replace(tight, commands=(("switch", tbf(3500, 10, "far")),))
    shaped = (("switch", tbf(300, 20, "far")),)
    yield Case("rate", "rate+shaper", "100M, tbf 300M", rig(10**9), datagrams(10**8), shaped)
    link, asked = rig(10**9, 8), scenario(1, "reno", window="16K")
    yield Case("window", "window+policer", "16 KB over 8 ms", link, asked, (("far", cut),))


BESIDE_S: Final = 30
"""Other traffic ends by itself: no longer than a cell takes."""
FRAMES: Final = 1514 / 1538
"""A token bucket does not count preamble, gap and check sequence."""


def beside(seed: int) -> list[Case]:
    rng = random.Random(seed)
    made = [case for kind in (other, none_of_it, nearly_full, short, clamped, unscaled, low_loss) for case in kind(rng)]
    rng.shuffle(made)
    return made


def udp_beside(sender: str, receiver: str, mbps: float, size: int = 1448) -> tuple[tuple[str, str], ...]:
    return traffic_beside(sender, receiver, f"-u -b {mbps:g}M -l {size}")


def traffic_beside(sender: str, receiver: str, how: str) -> tuple[tuple[str, str], ...]:
    """Send from `sender` to `receiver` by another program all the time."""
    quiet = "</dev/null >/dev/null 2>&1 &"
    listens = f"timeout {BESIDE_S + 5} iperf3 -s -p 7777 {quiet} sleep 0.5"
    # On a busy machine the server may listen late.
    sends = f"iperf3 -c @{receiver} -p 7777 -t {BESIDE_S} {how}"
    again = f"for _ in 1 2 3 4 5 6; do {sends} && break; sleep 0.5; done"
    return (receiver, listens), (sender, f"timeout {BESIDE_S + 5} sh -c '{again}' {quiet} sleep 1.2")


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


def nearly_full(rng: random.Random) -> Iterator[Case]:
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
