"""How long it takes to store one large repetition, and to make the page of the seven tests, imports included.

And to read a matrix of 480 tests with 100 samples per flow and switch counters, and to make its page: the DAS-2
matrix, and the same number of tests that all have 12 pairs and 10 flows.
And the commands that read a store of those seven tests, from the command to their end; and twenty pages in one process,
as for a site.
`python tests/bench/store_and_report.py` prints them; the first must stay under 50 ms,
the second under 2 s, the third under 10 s and 5 MB. `--commands` prints the commands and the pages only.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TESTS = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(TESTS))

import builders  # noqa: E402
import das2  # noqa: E402

from rigctl.records import Pair, Repetition, RunInfo  # noqa: E402
from rigctl.store import open_store  # noqa: E402

_PAGE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import builders
from pathlib import Path
info, measured = builders.gigablox(60.0)
began = time.perf_counter()
from rigctl.report.printers.html import write_report
write_report(info, measured, Path(sys.argv[2]))
print(time.perf_counter() - began)
"""
_MATRIX = """
import sys, time
from pathlib import Path
began = time.perf_counter()
from rigctl.analysis.views.over_time import drawn_numbers
from rigctl.report.printers.html import write_report
from rigctl.store import open_store
with open_store(sys.argv[1]) as store:
    info = store.run(None)
    measured = store.repetitions(info.run, series=drawn_numbers(info.plan))
read = time.perf_counter()
write_report(info, measured, Path(sys.argv[2]))
print(read - began, time.perf_counter() - read)
"""


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("runs",),
    ("show",),
    ("export", "--format", "csv"),
    ("report", "-o", "page.html"),
)


def commands() -> None:
    """Seven times each, in turn, with bytecode as of an installed rigctl; medians of time and of CPU time."""
    taken: dict[tuple[str, ...], list[tuple[float, float]]] = {command: [] for command in COMMANDS}
    info, measured = builders.gigablox(60.0)
    with tempfile.TemporaryDirectory() as folder:
        with open_store(f"{folder}/r.db") as store:
            run = store.begin(info.plan, info.versions, info.facts, info.started_at)
            for repetition in measured:
                store.add(run, repetition)
            store.finish(run, info.status, info.started_at + 500)
        own = {"RIGCTL_STORE": f"{folder}/r.db", "PYTHONPATH": str(TESTS.parents[1]), "PYTHONPYCACHEPREFIX": folder}
        environment = os.environ | own
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(8):  # the first writes the bytecode
            for command in COMMANDS:
                spent = _timed([sys.executable, "-m", "rigctl", *command], folder, environment)
                taken[command] += [spent] if number else []
        page = Path(f"{folder}/page.html").stat().st_size / 1e3
    for command, each in taken.items():
        wall_s, cpu_s = (median(times) for times in zip(*each, strict=True))
        print(f"rigctl {' '.join(command)}: {wall_s:.2f} s, CPU {cpu_s:.2f} s")
    print(f"its page: {page:.0f} kB")


def _timed(command: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=60)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def warm_pages() -> None:
    """Twenty tests of two pairs: document and page, medians of 20, in a process that has made one."""
    from rigctl.report.document import document
    from rigctl.report.printers.html import page

    cells = [builders.cell(number=number) for number in range(1, 21)]
    info, measured = builders.run(builders.plan(cells)), [builders.repetition(cell) for cell in cells]
    page(document(info, measured))
    spent = []
    for _ in range(20):
        began = time.process_time()
        made = document(info, measured)
        composed = time.process_time()
        page(made)
        spent.append((composed - began, time.process_time() - composed))
    document_s, page_s = (median(times) for times in zip(*spent, strict=True))
    print(f"a further page, 20 tests: document {1e3 * document_s:.0f} ms, page {1e3 * page_s:.0f} ms (CPU)")


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


def matrix_page(folder: str, info: RunInfo, measured: list[Repetition]) -> tuple[float, float, float, int]:
    """Seconds to read, seconds for the page, MB of the page, flows: from a store, in a process of its own."""
    with open_store(f"{folder}/matrix.db") as store:
        run = store.begin(info.plan, info.versions, info.facts, info.started_at)
        for one in measured:
            store.add(run, one)
        store.finish(run, info.status, info.started_at + 5000)
    command = [sys.executable, "-c", _MATRIX, f"{folder}/matrix.db", f"{folder}/matrix.html"]
    out = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    read_s, page_s = map(float, out.split())
    size_mb = Path(f"{folder}/matrix.html").stat().st_size / 1e6
    return read_s, page_s, size_mb, sum(len(one.flows) for one in measured)


def main() -> None:
    commands()
    warm_pages()
    if "--commands" in sys.argv:
        return
    print(f"store: one repetition of 120 flows: {add_ms():.1f} ms (at most 50)")
    print(f"report: page of 7 tests x 2 pairs, imports included: {page_s():.2f} s (at most 2)")
    for name, run in (
        ("the DAS-2 matrix", das2.run(shape=das2.Shape(polled=True), samples=100)),
        ("12 pairs x 10 flows in every test", das2.largest()),
    ):
        with tempfile.TemporaryDirectory() as folder:
            read, page, size_mb, flows = matrix_page(folder, *run)
        print(
            f"report: 480 tests, {name}, {flows} flows: read {read:.2f} s, page {page:.2f} s (together at most 10), "
            f"{size_mb:.2f} MB (at most 5)"
        )


if __name__ == "__main__":
    main()
