"""Measures rigctl with growing numbers of nodes: N/2 pairs of 20 Mbit/s on a virtual rig, two tests of 4 s.

`python tests/bench/bench_scale.py [--counts N,N]`. Prints start skew, goodput, time beyond the durations, wall time,
and the controller's processor time and peak memory.
"""

import math
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import command, ran, table

from rigctl.records import Status

RATE_MBPS = 20
DURATION_S = 4.0
REPEAT = 2
HEADS = ("nodes", "valid", "measured", "first_s", "beyond_s", "skew_ms", "goodput_mbps", "wall_s", "cpu_s", "peak_mib")


def measured(folder: Path, count: int) -> tuple[float, ...]:
    """Run tests between the halves of a rig of `count` nodes; return the figures in the order of `HEADS[1:]`."""
    rig, half = folder / "rig.yaml", count // 2
    rig.write_text(
        f"title: scale\nvirtual: namespaces\nlinks: {{rate: {RATE_MBPS}M, mtu: 1500}}\n"
        f"nodes:\n  a[001..{half:03}]: {{}}\n  b[001..{half:03}]: {{}}\n"
        f"groups:\n  left: a[001..{half:03}]\n  right: b[001..{half:03}]\n"
    )
    pairs = f"title: scale\nrig: {rig}\npairs: [left -> right]\nduration: {DURATION_S:g}s\nrepeat: {REPEAT}\n"
    began_ns = time.monotonic_ns()
    page = str(folder / "page.html")
    made = ran(folder, f"{pairs}matrix: {{congestion: cubic}}\n", "--report", page, codes=(0, 3))
    repetitions = made.repetitions()
    valid = [each for each in repetitions if each.status is Status.OK]
    for each in repetitions:
        if each not in valid:
            print(f"  {each.status}: {each.reason}")
    firsts = [flow.sender.first_byte_ns for flow in repetitions[0].flows if flow.sender and flow.sender.first_byte_ns]
    windows_ns = [(each.window_end_ns or 0) - (each.window_start_ns or 0) for each in valid]
    received = [sum(flow.bytes or 0 for flow in each.flows) for each in valid]
    goodput = [8e3 * bytes_ / window_ns for bytes_, window_ns in zip(received, windows_ns, strict=True)]
    return (
        len(valid),
        len(repetitions),
        (min(firsts) - began_ns) / 1e9,
        statistics.median(each.wall_s - DURATION_S for each in repetitions),
        statistics.median([(each.start_skew_us or 0) / 1e3 for each in valid] or [math.nan]),
        statistics.median(goodput or [math.nan]),
        made.spent.wall_s,
        made.spent.cpu_s,
        made.spent.peak_mib,
    )


def main(counts: str = "24,100,200") -> None:
    def rows() -> Iterator[tuple[str, ...]]:
        for count in counts.split(","):
            with tempfile.TemporaryDirectory() as name:
                yield count, *(f"{value:.4g}" for value in measured(Path(name), int(count)))

    title = f"Virtual nodes, pairs of {RATE_MBPS} Mbit/s, {REPEAT} tests of {DURATION_S:g} s"
    table(title, HEADS, rows())


if __name__ == "__main__":
    command(__doc__, main)
