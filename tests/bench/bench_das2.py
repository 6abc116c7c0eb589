"""What 24 nodes cost: until they are ready, per cell beyond its duration, and in the controller's memory.

`python tests/bench/bench_das2.py [--cells N]`: `rigctl run das2` on a virtual rig of its own, 12 pairs × 10 flows,
cells of 10 s. The time to the first byte holds everything: interpreter, rig, SSH, agents pushed, facts, conditions.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rigctl.records import Repetition
from rigctl.store import open_store

DURATION_S = 10.0
PAIRS, FLOWS = 12, 10


def measured(folder: Path, cells: int) -> tuple[float, float, int, list[Repetition]]:
    """(start of the command and its end by CLOCK_MONOTONIC in ns, the controller's peak RSS in KiB, repetitions)."""
    store = folder / "store.db"
    command = [
        *(sys.executable, "-m", "rigctl", "run", "das2", "--quiet"),
        *("--set", f"pairs={PAIRS}", "--set", f"parallel={FLOWS}", "--set", "window_total=256K"),
        *("--set", "condition=no resize 1500", "--repeat", str(cells), "--duration", f"{DURATION_S:g}s"),
        *("--store", str(store), "--report", str(folder / "report.html")),
    ]
    began_ns = time.monotonic_ns()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    ended_ns = time.monotonic_ns()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit("the run did not end well")
    with open_store(str(store)) as opened:
        return began_ns, ended_ns, usage.ru_maxrss, opened.repetitions(opened.run(None).run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10)
    cells = parser.parse_args().cells
    with tempfile.TemporaryDirectory() as folder:
        began_ns, ended_ns, peak_kib, repetitions = measured(Path(folder), cells)
    skews_ms = [one.start_skew_us / 1e3 for one in repetitions if one.start_skew_us is not None]
    inside_s = [one.wall_s - DURATION_S for one in repetitions]
    firsts = [flow.sender.first_byte_ns for flow in repetitions[0].flows if flow.sender and flow.sender.first_byte_ns]
    first_s = (min(firsts) - began_ns) / 1e9
    lasts = [one.window_end_ns for one in repetitions if one.window_end_ns is not None]
    # From the first byte of the first to the last byte of the last: what lies between cells is in it.
    apart_s = ((max(lasts) - min(firsts)) / 1e9 - DURATION_S * len(repetitions)) / max(1, len(repetitions) - 1)
    print(f"\n24 nodes, {PAIRS} pairs × {FLOWS} flows, {len(repetitions)} cells of {DURATION_S:g} s, one run\n")
    print("| figure | measured | wanted |\n|---|---|---|")
    print(
        f"| from the command to the first byte (rig made, agents pushed, conditions set) | {first_s:.2f} s | ≤ 10 s |"
    )
    print(f"| beyond its duration, per cell, from first to last byte of the run | {apart_s:.3f} s | ≤ 0.5 s |")
    print(f"| … of which between a cell's orders and its record, median | {statistics.median(inside_s):.3f} s | |")
    print(f"| start skew, median and worst | {statistics.median(skews_ms):.2f}, {max(skews_ms):.2f} ms | |")
    print(f"| the controller's largest RSS | {peak_kib / 1024:.0f} MiB | < 300 MiB |")
    print(f"| from the last byte to the end of the command | {(ended_ns - max(lasts)) / 1e9:.2f} s | |")


if __name__ == "__main__":
    main()
