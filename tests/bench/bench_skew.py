"""How close together the flows of a cell start: 2 pairs and 12 pairs on virtual rigs, where all nodes share one clock.

`python tests/bench/bench_skew.py [--cells 10]`: the spread of the first-byte times at the receivers, cells of 1 s.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rigctl.store import open_store


def skews_us(folder: Path, pairs: int, flows: int, cells: int) -> list[float]:
    nodes = ", ".join(f"n{number}: " for number in range(1, 2 * pairs + 1))
    (folder / "rig.yaml").write_text(f"virtual: namespaces\nlinks: {{rate: 1G, mtu: 1500}}\nnodes: {{{nodes}}}\n")
    listed = ", ".join(f"n{number} -> n{number + pairs}" for number in range(1, pairs + 1))
    (folder / "s.yaml").write_text(
        f"rig: rig.yaml\npairs: [{listed}]\nduration: 1s\n"
        f"repeat: {cells}\nmax_skew: 1s\nmatrix: {{parallel: [{flows}]}}\n"
    )
    store = folder / f"{pairs}-{flows}.db"
    command = [sys.executable, "-m", "rigctl", "run", str(folder / "s.yaml"), "--store", str(store), "--quiet"]
    subprocess.run([*command, "--report", str(folder / "r.html")], check=True, stdout=subprocess.DEVNULL)
    with open_store(str(store)) as opened:
        repetitions = opened.repetitions(opened.run(None).run)
    return [one.start_skew_us for one in repetitions if one.start_skew_us is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10)
    cells = parser.parse_args().cells
    print(f"\nStart skew over the flows of a cell, {cells} cells each\n")
    print("| pairs × flows | median | worst | wanted |\n|---|---|---|---|")
    for pairs, flows in ((2, 1), (2, 5), (12, 1)):
        with tempfile.TemporaryDirectory() as folder:
            found = skews_us(Path(folder), pairs, flows, cells)
        median_ms, worst_ms = statistics.median(found) / 1e3, max(found) / 1e3
        print(f"| {pairs} × {flows} | {median_ms:.3f} ms | {worst_ms:.3f} ms | ≤ 1 ms |")


if __name__ == "__main__":
    main()
