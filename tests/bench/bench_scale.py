"""How rigctl grows with its nodes: N/2 pairs of 20 Mbit/s on a virtual rig, two tests of 4 s.

`python tests/bench/bench_scale.py [--counts N,N]`. Start skew, goodput, time beyond the durations; wall time and the
controller's own processor time and peak memory.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import table, timed

TRAFFIC = (24, 100, 200)
RATE_MBPS = 20
DURATION_S = 4.0
REPEAT = 2


def measured(folder: Path, rig_file: Path) -> dict[str, float]:
    """Run tests between the rig's groups; return times, skew, goodput, the controller's processor time and memory."""
    from rigctl.records import Status
    from rigctl.store import open_store

    scenario, store = folder / "scenario.yaml", folder / "store.db"
    scenario.write_text(
        f"title: scale\nrig: {rig_file}\npairs: [left -> right]\nduration: {DURATION_S:g}s\nrepeat: {REPEAT}\n"
        "matrix: {congestion: cubic}\n"
    )
    began_ns = time.monotonic_ns()
    spent = timed("run", str(scenario), "--quiet", "--report", str(folder / "page.html"), store=store, codes=(0, 3))
    with open_store(str(store)) as known:
        repetitions = known.repetitions(known.run(None).run)
    valid = [repetition for repetition in repetitions if repetition.status is Status.OK]
    for repetition in repetitions:
        if repetition.status is not Status.OK:
            print(f"  {repetition.status}: {repetition.reason}")
    firsts = [flow.sender.first_byte_ns for flow in repetitions[0].flows if flow.sender and flow.sender.first_byte_ns]
    skews_ms = [repetition.start_skew_us / 1e3 for repetition in valid if repetition.start_skew_us is not None]
    windows_ns = [(repetition.window_end_ns or 0) - (repetition.window_start_ns or 0) for repetition in valid]
    received = [sum(flow.bytes or 0 for flow in repetition.flows) for repetition in valid]
    goodput = [8e3 * count / window_ns for count, window_ns in zip(received, windows_ns, strict=True)]
    return {
        "valid": float(len(valid)),
        "measured": float(len(repetitions)),
        "first_s": (min(firsts) - began_ns) / 1e9,
        "beyond_s": statistics.median(repetition.wall_s - DURATION_S for repetition in repetitions),
        "skew_ms": statistics.median(skews_ms) if skews_ms else math.nan,
        "goodput_mbps": statistics.median(goodput) if goodput else math.nan,
        "wall_s": spent.wall_s,
        "cpu_s": spent.cpu_s,
        "peak_mib": spent.peak_mib,
    }


def reported(count: int, row: dict[str, float]) -> dict[str, float]:
    """Print `row` at once: a later part may fail."""
    words = ", ".join(f"{name} {value:.4g}" for name, value in row.items())
    print(f"{count}: {words}", file=sys.stderr, flush=True)
    return row


def traffic(counts: Sequence[int]) -> None:
    rows = {}
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            rig, half = Path(name, "rig.yaml"), count // 2
            rig.write_text(
                f"title: scale\nvirtual: namespaces\nlinks: {{rate: {RATE_MBPS}M, mtu: 1500}}\n"
                f"nodes:\n  a[001..{half:03}]: {{}}\n  b[001..{half:03}]: {{}}\n"
                f"groups:\n  left: a[001..{half:03}]\n  right: b[001..{half:03}]\n"
            )
            rows[count] = reported(count, measured(Path(name), rig))
    names = list(next(iter(rows.values())))
    cells = ((count, *(f"{row[name]:.4g}" for name in names)) for count, row in rows.items())
    table(f"Virtual nodes, pairs of {RATE_MBPS} Mbit/s, {REPEAT} tests of {DURATION_S:g} s", ("nodes", *names), cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", help="numbers of nodes, as 100,200")
    asked = parser.parse_args()
    traffic([int(count) for count in asked.counts.split(",")] if asked.counts else TRAFFIC)


if __name__ == "__main__":
    main()
