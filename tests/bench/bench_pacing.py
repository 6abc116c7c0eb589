"""Compares goodput of paced TCP streams with the requested rate: ten rates, 4 and 40 flows, unshaped links.

`python tests/bench/bench_pacing.py [SECONDS [CONGESTION]]`: one test for each rate and number of flows. The sum of the
flows must be within 1 % of the requested rates, 5 % at 1 Mbit/s. Sums that the machine cannot carry have another limit.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import ran, table

RATES: Final = ("1M", "2M", "5M", "10M", "20M", "50M", "100M", "200M", "500M", "1G")
FLOWS: Final = (4, 40)
RIG: Final = "virtual: namespaces\nlinks: {mtu: 1500}\nnodes: {near: , far: }\n"


def measured(folder: Path, seconds: int, congestion: str) -> Iterator[tuple[object, ...]]:
    (folder / "rig.yaml").write_text(RIG)
    matrix = f"matrix: {{parallel: {list(FLOWS)}, rate: [{', '.join(RATES)}], congestion: {congestion}}}\n"
    scenario = f"rig: {folder}/rig.yaml\npairs: [near -> far]\nduration: {seconds}s\nmax_skew: 1s\n{matrix}"
    for row in ran(folder, scenario, "--no-report").rows():
        asked = row["rate_mbps"] * row["parallel"]
        share = row["goodput_mbps"] / asked - 1
        within = abs(share) <= (0.05 if row["rate_mbps"] == 1 else 0.01)
        numbers = f"{asked:g}", f"{row['goodput_mbps']:.2f}", f"{100 * share:+.2f}", row["retransmits"]
        yield f"{row['rate_mbps']:g}", row["parallel"], *numbers, row["limit"], "yes" if within else "NO"


def main(seconds: int, congestion: str) -> None:
    asked, found = ("rate, Mbit/s", "flows", "sum, Mbit/s"), ("goodput, Mbit/s", "difference, %", "retransmits")
    with tempfile.TemporaryDirectory() as name:
        rows = measured(Path(name), seconds, congestion)
        table(f"{seconds} s each, {congestion}", (*asked, *found, "limit", "within"), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "cubic")
