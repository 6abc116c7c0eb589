"""Shows that no test fails at random: runs the tests many times, on an idle and on a busy machine, in random order.

`python tests/bench/steady.py [--runs N] [--on idle,busy,one] [PATH …]`, or `make steady N=10 ON=busy TESTS=PATH`. A run
is one pytest over PATH, by default over all tests of `make test`. `busy`: a busy program runs on each processor.
`one`: everything runs on one processor. Of ten runs, four are idle, four busy and two on one processor.

Prints a line per run, then each test that failed at least once with its share of failed runs, and the seeds.
RIGCTL_ORDER=SEED repeats an order. Exits with 1 if any test failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Final

import typer
from bench import ROOT, command, table
from processes import running

ON: Final = ("idle", "busy", "idle", "busy", "one")
TESTS: Final = ("tests/e2e", "tests/integration", "tests/agent", "tests/golden", "tests/unit")
LONGEST_S: Final = 3600
"""Deadline of one run, after which it is ended and counts as failed."""
COMPUTE: Final = f"import os\nwhile os.getppid() == {os.getpid()}:\n    sum(range(10**6))"
"""Python program that only computes, and ends with this process."""


@contextmanager
def machine(on: str) -> Iterator[list[str]]:
    """Make the machine idle, busy or limited to one processor; yield words to put before a command."""
    processors = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        for processor in processors if on == "busy" else []:
            stack.enter_context(running(["taskset", "-c", str(processor), sys.executable, "-c", COMPUTE]))
        yield ["taskset", "-c", str(processors[-1])] if on == "one" else []


def outcomes(report: Path) -> tuple[set[str], dict[str, str]]:
    """Return the tests in pytest's JUnit XML, and the failed ones with the first line of their message."""
    if not report.exists():
        return set(), {"(the run as a whole)": f"not finished after {LONGEST_S} s, or no test ran"}
    ran, failed = set[str](), dict[str, str]()
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        ran.add(name)
        for bad in (*case.iter("failure"), *case.iter("error")):
            failed.setdefault(name, (bad.get("message") or "").strip().partition("\n")[0][:150])
    return ran, failed


def one_run(on: str, seed: int, paths: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    """Run the tests once and print a line about the run. Keep the output of pytest if a test failed."""
    with tempfile.TemporaryDirectory() as folder, machine(on) as begin:
        report, log = Path(folder, "report.xml"), Path(folder, "log")
        words = ["-q", "-n", "4", "--dist", "loadfile", "-p", "no:cacheprovider", "--no-loadscope-reorder"]
        command = [*begin, sys.executable, "-m", "pytest", *words, f"--junitxml={report}", *paths]
        environment = os.environ | {"CI": "1", "RIGCTL_ORDER": str(seed)}
        began_s = time.monotonic()
        with log.open("wb") as output:
            try:
                subprocess.run(command, cwd=ROOT, env=environment, stdout=output, stderr=output, timeout=LONGEST_S)
            except subprocess.TimeoutExpired:
                report.unlink(missing_ok=True)
        ran, failed = outcomes(report)
        took_s = time.monotonic() - began_s
        print(f"{on:5} seed {seed}: {len(ran)} tests, {len(failed)} failed, {took_s:.0f} s", flush=True)
        if failed:
            kept = ROOT / "build" / f"steady-{on}-{seed}.log"
            kept.parent.mkdir(exist_ok=True)
            shutil.copy(log, kept)
            print(f"      {kept.relative_to(ROOT)}", flush=True)
        return ran, failed


def main(
    paths: Annotated[list[str], typer.Argument(default_factory=lambda: list(TESTS))],
    runs: int = len(ON),
    on: str = ",".join(ON),
    seed: int = int(time.time()) % 100_000,
) -> None:
    if unknown := [kind for kind in on.split(",") if kind not in ON]:
        sys.exit(f"--on: {unknown[0]}: expected idle, busy or one")
    times, failures, reasons = Counter[str](), Counter[str](), dict[str, str]()
    for number, kind in enumerate(islice(cycle(on.split(",")), runs), seed):
        ran, failed = one_run(kind, number, paths)
        times.update(ran)
        failures.update(failed.keys())
        reasons |= failed
    rows = [
        (re.sub(r"^tests\.", "", name), f"{count} of {max(times[name], count)}", reasons[name])
        for name, count in failures.most_common()
    ]
    table(f"Tests that failed, of {len(times)} in {runs} runs: {len(rows)}", ("Test", "Failed", "Reason"), rows)
    sys.exit(1 if rows else 0)


if __name__ == "__main__":
    command(__doc__, main)
