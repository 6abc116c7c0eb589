"""The engines against each other: one pair on the shaped gigabit, cubic, 10-s tests, agent and iperf3 in turn.

Bound: the medians differ by 1 % at most. Run it as `python tests/bench/bench_engines.py [REPETITIONS]`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

BOUND: Final = 0.01
REPETITIONS: Final = 5
SCENARIO: Final = """
rig: gigablox
pairs: [pi1 -> pi2]
duration: 10s
matrix:
  congestion: cubic
  engine: [agent, iperf3]
"""


def rigctl(folder: Path, *words: str) -> str:
    environment = {**os.environ, "RIGCTL_STORE": str(folder / "store.db")}
    command = [sys.executable, "-m", "rigctl", *words]
    return subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE, timeout=120).stdout


def both(folder: Path) -> dict[str, dict[str, Any]]:
    """One run: a test by each engine, its row by engine."""
    scenario = folder / "engines.yaml"
    scenario.write_text(SCENARIO)
    rigctl(folder, "run", str(scenario), "--quiet", "--report", str(folder / "report.html"))
    rows = json.loads(rigctl(folder, "export", "--format", "json", "--level", "pairs"))
    return {row["engine"]: row for row in rows}


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS
    goodputs: dict[str, list[float]] = {"agent": [], "iperf3": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, repetitions + 1):
            rows = both(Path(folder))
            for engine, values in goodputs.items():
                values.append(rows[engine]["goodput_mbps"])
            shown = ", ".join(f"{engine} {values[-1]:.2f}" for engine, values in goodputs.items())
            print(f"{number}: {shown} Mbit/s", flush=True)
    agent, iperf3 = (median(values) for values in goodputs.values())
    print(f"medians: agent {agent:.2f}, iperf3 {iperf3:.2f} Mbit/s; agent / iperf3 {agent / iperf3:.4f}")
    if abs(agent / iperf3 - 1) > BOUND:
        sys.exit(f"the engines differ by more than {BOUND:.0%}")


if __name__ == "__main__":
    main()
