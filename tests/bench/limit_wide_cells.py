"""Cells to tune by that `limit_cells` has none of: more flows and distances, pairs of one test whose limits differ."""

import random
from collections.abc import Iterator

from limit_cells import ALONE, CONGESTION, CUTTING, MARGIN, MBIT, Case, drained, drop, mathis_bps, police, rig, scenario
from limit_cells import tbf as shape

RATES_MBPS = (100, 200, 500, 1000, 2500)
DISTANCES_MS = (None, 1, 3, 10, 25)


def wide(seed: int) -> list[Case]:
    """Policers and losses at random with up to 16 flows over up to 25 ms, and send buffers."""
    rng = random.Random(seed)
    made = [*_policers(rng), *_losses(rng), *_send_buffers(rng)]
    rng.shuffle(made)
    return made


def _policers(rng: random.Random) -> Iterator[Case]:
    for flows in (1, 1, 2, 4, 8, 16) * 3:
        rate_mbps, congestion = rng.choice((30, 80, 250, 500)), rng.choice(CONGESTION)
        rtt_ms, burst_kb = rng.choice(DISTANCES_MS), rng.choice((32, 128, 512))
        before = rng.choice(((), (ALONE,)))
        note = f"{rate_mbps}M, burst {burst_kb} KB, rtt {rtt_ms}, {flows} {congestion}, alone {bool(before)}"
        commands = (("far", police(rate_mbps, burst_kb, 4)), *before)
        yield Case("path", "policer", note, rig(10**9, rtt_ms), drained(scenario(flows, congestion)), commands)


def _losses(rng: random.Random) -> Iterator[Case]:
    for flows in (1, 2, 4, 8, 16, 16) * 3:
        share, congestion = rng.choice((0.001, 0.003, 0.01, 0.04)), rng.choice(CUTTING)
        allowed = [2 * flows * mathis_bps(rtt_ms, share) / MARGIN for rtt_ms in DISTANCES_MS if rtt_ms]
        rtt_ms = rng.choice([ms for ms, bps in zip(DISTANCES_MS[1:], allowed, strict=True) if bps <= 2500 * MBIT])
        link = next(mbps for mbps in RATES_MBPS if 2 * flows * mathis_bps(rtt_ms, share) <= MARGIN * mbps * MBIT)
        note = f"{100 * share:g} %, rtt {rtt_ms}, {flows} {congestion}"
        commands = (("far", drop(share, 4)), ALONE)
        yield Case("loss", "loss", note, rig(link * 10**6, rtt_ms), scenario(flows, congestion, 3.0), commands)


def _send_buffers(rng: random.Random) -> Iterator[Case]:
    for most in (10_000, 20_000, 60_000):
        rtt_ms, flows, congestion = rng.choice((4, 9, 16)), rng.choice((1, 2, 4)), rng.choice(CONGESTION)
        asked = scenario(flows, congestion)
        asked["conditions"] = {"small": {"sysctl": {"net.ipv4.tcp_wmem": f"4096 8192 {most}"}}}
        note = f"{most} bytes, rtt {rtt_ms}, {flows} {congestion}"
        yield Case("window", "tcp_wmem", note, rig(10**9, rtt_ms), asked)


def alone_and_together(seed: int) -> list[Case]:
    """A sender's quota and a shaper, each alone and both: which is tighter is measured, not computed."""
    made = []
    shaped = (("switch", shape(3500, 10, "far")),)
    for flows in (1, 2, 4):
        asked = scenario(flows, "cubic")
        for percent in (2, 4):
            note = f"{percent} % of a processor, {flows} cubic"
            made.append(Case("sender", "quota", note, rig(5 * 10**9), asked, quota=("near", percent)))
            made.append(Case("sender", "quota+shaper", note, rig(5 * 10**9), asked, shaped, quota=("near", percent)))
        made.append(Case("path", "shaper", f"tbf 3500M, {flows} cubic", rig(5 * 10**9), asked, shaped))
    random.Random(seed).shuffle(made)
    return made


def unlike(seed: int) -> list[Case]:
    """Two pairs at once, each with a limit of its own: `near -> far` with that of the test, and `third -> fourth`."""
    rng = random.Random(seed)
    made = []
    for label, kind, rtt_ms, commands in (
        ("path", "shaper", None, (("switch", shape(300, 20, "far")),)),
        ("path", "policer", 5, (("far", police(100, 128, 4)),)),
        ("loss", "loss", 8, (("far", drop(0.01, 4)), ALONE)),
        ("window", "tcp_rmem", 5, (("far", "sysctl -w net.ipv4.tcp_rmem='4096 16384 40000'"),)),
        ("window", "tcp_wmem", 5, (("near", "sysctl -w net.ipv4.tcp_wmem='4096 16384 40000'"),)),
    ):
        for full in (False, True):
            flows, congestion = rng.choice((1, 2)), rng.choice(CUTTING)
            link = rig(10**9, rtt_ms, 4, 1500, 4)
            others: tuple[tuple[str, str], ...] = () if full else (("switch", shape(500, 20, "fourth")),)
            asked = drained(scenario(flows, congestion)) | {"pairs": ["near -> far", "third -> fourth"]}
            second = "line-rate" if full else "path"
            note = f"{label} and {second}, {flows} {congestion}"
            made.append(Case(label, f"unlike {kind}", note, link, asked, commands + others, of_pairs=(label, second)))
    return made
