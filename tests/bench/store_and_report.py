"""How long it takes to store one large repetition, and to make the page of the seven tests, imports included.

`python tests/bench/store_and_report.py` prints both; the first must stay under 50 ms, the second under 2 s.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

import builders  # noqa: E402

from rigctl.records import Pair  # noqa: E402
from rigctl.store import open_store  # noqa: E402

_PAGE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import builders
from pathlib import Path
info, measured = builders.gigablox(60.0)
began = time.perf_counter()
from rigctl.report.html import write_report
write_report(info, measured, Path(sys.argv[2]))
print(time.perf_counter() - began)
"""


def add_ms() -> float:
    """Median of 7: a repetition of 12 pairs × 10 flows × 100 samples, committed to a SQLite file."""
    pairs = tuple(Pair(f"n{2 * n}", f"n{2 * n + 1}") for n in range(12))
    cell = builders.cell(pairs=pairs, parallel=10)
    one = builders.repetition(cell, [600.0] * 12)
    times = []
    with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/r.db") as store:
        run = store.begin(builders.plan([cell]), {}, {}, 0.0)
        for _ in range(7):
            began = time.perf_counter()
            store.add(run, one)
            times.append((time.perf_counter() - began) * 1e3)
    return median(times)


def page_s() -> float:
    """Median of 3: seven tests of 60 s, two pairs, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _PAGE, str(TESTS), f"{folder}/page.html"]
        runs = [subprocess.run(command, capture_output=True, check=True, timeout=60).stdout for _ in range(3)]
    return median(float(out) for out in runs)


def main() -> None:
    print(f"store: one repetition of 120 flows: {add_ms():.1f} ms (at most 50)")
    print(f"report: page of 7 tests x 2 pairs, imports included: {page_s():.2f} s (at most 2)")


if __name__ == "__main__":
    main()
