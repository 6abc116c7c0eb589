"""Compares virtual links with Ethernet, and the agent with iperf3: tests of 10 s at MSS 1460 over gigabit links.

`python tests/bench/bench_fidelity.py [ROUNDS]`: one pair, and two pairs at once, by both engines in turn, with cubic.
The last test is a blast: 13 MB in messages of 128 KiB over fast Ethernet, timed until the last byte is acknowledged.
Bounds: one pair within 0.5 % of 941.5 Mbit/s, two pairs at least 99 %, none above by more than the token bucket allows.
The medians of the engines differ by at most 1 %.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from bench import ran, table

from rigctl.limits.ceilings import ceiling_bps
from rigctl.virtual.links import burst_bytes

DURATION_S: Final = 10
CEILING_MBPS: Final = ceiling_bps(10**9, 1500, 1460) / 1e6
# Only the token bucket, which is full at the start, can raise goodput above the ceiling.
HIGHEST_MBPS: Final = CEILING_MBPS + burst_bytes(10**9, 1500) * 8 / DURATION_S / 1e6
RIG: Final = "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes: {pi1: , pi2: , pi3: , pi4: }\n"
CASES: Final = {"one pair": ("pi1 -> pi2", 0.995), "two pairs": ("pi1 -> pi2, pi3 -> pi4", 0.99)}
"""Pairs that send at the same time, and the smallest acceptable share of the ceiling for each."""


def measured(folder: Path, rounds: int) -> Iterator[tuple[str, str, float, int]]:
    """Yield case, engine, goodput in Mbit/s and retransmits of each pair."""
    (folder / "rig.yaml").write_text(RIG)
    for name, (pairs, _) in list(CASES.items()) * rounds:
        matrix = "matrix: {mss: 1460, congestion: cubic, engine: [agent, iperf3]}\n"
        scenario = f"rig: {folder}/rig.yaml\npairs: [{pairs}]\nduration: {DURATION_S}s\n{matrix}"
        for row in ran(folder, scenario, "--no-report").rows():
            yield name, row["engine"], row["goodput_mbps"], row["retransmits"]


def blast_share(folder: Path) -> float:
    (folder / "rig.yaml").write_text("virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {a: , b: }\n")
    messages = "pairs: [a -> b]\nduration: 60s\nmatrix: {size: 128K, iterations: 100, congestion: cubic}\n"
    (row,) = ran(folder, f"rig: {folder}/rig.yaml\ntest: blast\n{messages}", "--no-report").rows("flows")
    return float(8 * row["throughput_bytes_per_s"] / ceiling_bps(10**8, 1500, 1460))


def main(rounds: int) -> None:
    goodputs: dict[str, list[float]] = {"agent": [], "iperf3": []}

    def rows(folder: Path) -> Iterator[tuple[object, ...]]:
        for name, engine, goodput, retransmits in measured(folder, rounds):
            share = goodput / CEILING_MBPS
            if name == "one pair":
                goodputs[engine].append(goodput)
            within = "yes" if CASES[name][1] <= share and goodput <= HIGHEST_MBPS else "NO"
            yield engine, name, f"{goodput:.2f}", f"{100 * share:.2f}", retransmits, within

    heads = ("engine", "at once", "goodput, Mbit/s", "of the ceiling, %", "retransmits", "within bounds")
    with tempfile.TemporaryDirectory() as name:
        table(f"Ceiling {CEILING_MBPS:.1f} Mbit/s; the bucket allows {HIGHEST_MBPS:.1f}", heads, rows(Path(name)))
        shares = [blast_share(Path(name)) for _ in range(rounds)]
    agent, iperf3 = (median(values) for values in goodputs.values())
    print(f"\nmedians of one pair: agent {agent:.2f}, iperf3 {iperf3:.2f} Mbit/s; agent / iperf3 {agent / iperf3:.4f}")
    print(f"blast over fast Ethernet: {min(shares):.4f} to {max(shares):.4f} of the ceiling (bounds 0.9 and 1.02)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
