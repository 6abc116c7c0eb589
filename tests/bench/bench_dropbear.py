"""Run a short scenario again and again on two hosts with dropbear and busybox alone: how many runs fail, and why.

python tests/bench/bench_dropbear.py [RUNS]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from busybox_host import serve_small
from openssh_lab import laboratory

SCENARIO = "rig: lab.yaml\npairs: [pi1 -> pi2]\nduration: 300ms\nmax_skew: 1s\nmatrix: {window: [64K, 1M]}\n"


def main(runs: int) -> None:
    """Print what failed, then a line with the counts and the time of a run."""
    took_s: list[float] = []
    failed = 0
    with tempfile.TemporaryDirectory() as folder, laboratory(Path(folder), ["pi1", "pi2"], serve_small) as lab:
        (Path(folder) / "s.yaml").write_text(SCENARIO)
        for number in range(1, runs + 1):
            began_s = time.monotonic()
            run = lab.rigctl("run", "s.yaml", "--no-report")
            _, errors = run.communicate(timeout=100)
            took_s.append(time.monotonic() - began_s)
            if run.returncode != 0:
                failed += 1
                print(f"run {number}: exit code {run.returncode}: {errors.strip()}", flush=True)
    print(f"{runs - failed} of {runs} runs measured all; median {statistics.median(took_s):.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
