"""How near the virtual links are to Ethernet, and the agent to iperf3: 10-s tests at MSS 1460 over gigabit links.

`python tests/bench/bench_fidelity.py [ROUNDS]`: one pair, and two pairs at once, by both engines in turn; cubic.
Bounds: one pair within 0.5 % of 941.5 Mbit/s, each of two pairs 99 % at least, none above by more than the bucket
explains; the medians of the engines differ by 1 % at most.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from bench import run_rows, table

from rigctl.model.limits.ceilings import ceiling_bps
from rigctl.virtual.links import burst_bytes

DURATION_S: Final = 10
CEILING_MBPS: Final = ceiling_bps(10**9, 1500, 1460) / 1e6
# The bucket is full when a flow starts. A receiver's clock stops with its last byte, so nothing else can add to it.
HIGHEST_MBPS: Final = CEILING_MBPS + burst_bytes(10**9, 1500) * 8 / DURATION_S / 1e6
LEAST: Final = {1: 0.995, 2: 0.99}
PAIRS: Final = {1: "pi1 -> pi2", 2: "pi1 -> pi2, pi3 -> pi4"}
RIG: Final = "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes: {pi1: , pi2: , pi3: , pi4: }\n"


def measured(folder: Path, rounds: int) -> Iterator[tuple[int, str, float, int]]:
    """Yield pairs at once, engine, goodput in Mbit/s and retransmits of each pair."""
    (folder / "rig.yaml").write_text(RIG)
    for pairs in (1, 2) * rounds:
        rows = run_rows(
            folder,
            f"rig: {folder}/rig.yaml\npairs: [{PAIRS[pairs]}]\nduration: {DURATION_S}s\n"
            "matrix: {mss: 1460, congestion: cubic, engine: [agent, iperf3]}\n",
        )
        for row in rows:
            yield pairs, row["engine"], row["goodput_mbps"], row["retransmits"]


def main(rounds: int) -> None:
    goodputs: dict[str, list[float]] = {"agent": [], "iperf3": []}

    def rows(folder: Path) -> Iterator[tuple[object, ...]]:
        for pairs, engine, goodput, retransmits in measured(folder, rounds):
            share = goodput / CEILING_MBPS
            within = LEAST[pairs] <= share and goodput <= HIGHEST_MBPS
            if pairs == 1:
                goodputs[engine].append(goodput)
            yield engine, pairs, f"{goodput:.2f}", f"{100 * share:.2f}", retransmits, "yes" if within else "NO"

    heads = ("engine", "pairs at once", "goodput, Mbit/s", "of the ceiling, %", "retransmits", "within bounds")
    with tempfile.TemporaryDirectory() as name:
        table(f"Ceiling {CEILING_MBPS:.1f} Mbit/s; the bucket allows {HIGHEST_MBPS:.1f}", heads, rows(Path(name)))
    agent, iperf3 = (median(values) for values in goodputs.values())
    print(f"\nmedians of one pair: agent {agent:.2f}, iperf3 {iperf3:.2f} Mbit/s; agent / iperf3 {agent / iperf3:.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
