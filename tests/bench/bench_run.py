"""What a run costs beyond its traffic: wall time per cell, and the time from the command to the first byte.

`python tests/bench/bench_run.py [--rounds N]`: `rigctl run gigablox` (seven cells, two pairs) on a virtual rig that is
up, with its agents in place and bytecode written, as an installed rigctl has it. Both clocks are CLOCK_MONOTONIC of one
machine, so the command's start and the flows' first bytes compare.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rigctl.store import open_store

CELLS = 7
DURATION_S = 2.0


def rigctl(*arguments: str, bytecode: Path | None = None) -> None:
    environment = os.environ | ({"PYTHONPYCACHEPREFIX": str(bytecode)} if bytecode else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-m", "rigctl", *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)


def one_run(folder: Path, number: int) -> tuple[float, float, float]:
    """(seconds beyond the durations per cell, of which inside the cells, seconds to the first byte)."""
    store = folder / f"{number}.db"
    began_ns = time.monotonic_ns()
    rigctl("run", "gigablox", "--duration", f"{DURATION_S:g}s", "--quiet", "--store", str(store),
           "--report", str(folder / "report.html"), bytecode=folder / "bytecode")  # fmt: skip
    wall_s = (time.monotonic_ns() - began_ns) / 1e9
    with open_store(str(store)) as opened:
        repetitions = opened.repetitions(opened.run(None).run)
    inside_s = sum(repetition.wall_s - DURATION_S for repetition in repetitions)
    firsts = [flow.sender.first_byte_ns for flow in repetitions[0].flows if flow.sender and flow.sender.first_byte_ns]
    return (wall_s - CELLS * DURATION_S) / CELLS, inside_s / CELLS, (min(firsts) - began_ns) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    rigctl("rig", "up", "gigablox")
    try:
        with tempfile.TemporaryDirectory() as folder:
            one_run(Path(folder), 0)  # the agents are in place after this one
            results = [one_run(Path(folder), number) for number in range(1, rounds + 1)]
    finally:
        rigctl("rig", "down", "gigablox")
    beyond, inside, first = (statistics.median(column) for column in zip(*results, strict=True))
    print(f"\nOne `rigctl run` of {CELLS} cells × {DURATION_S:g} s, 2 pairs, rig up; median of {rounds}\n")
    print("| figure | median | wanted |\n|---|---|---|")
    print(f"| wall time beyond the durations, per cell | {beyond:.3f} s | ≤ 0.15 s |")
    print(f"| … of which between a cell's orders and its record | {inside:.3f} s | |")
    print(f"| from the command to the first byte | {first:.2f} s | ≤ 2 s |")


if __name__ == "__main__":
    main()
