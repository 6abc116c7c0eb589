"""Helpers of the benchmarks: rounds in turn, Markdown tables, and `rigctl` as a process whose costs are measured."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

import typer

from rigctl.records import Repetition
from rigctl.store import open_store

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
RIGCTL: Final = (sys.executable, "-m", "rigctl")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Spent:
    wall_s: float
    cpu_s: float
    peak_mib: float
    output: str


def command(doc: str | None, *functions: Callable[..., object]) -> None:
    """Run a function as a command with this help, its parameters as options; or several by their names."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=doc)
    for function in functions:
        app.command(help=function.__doc__ or doc)(function)
    app()


def in_turn(rounds: int, ways: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Call each function once per round, each round beginning with another function. Return the results by name."""
    found: dict[str, list[T]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(ways[name]())
    return found


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table, each row as soon as `rows` yields it."""
    print(f"\n{title}\n\n| {' | '.join(heads)} |\n|:--{'|--:' * (len(heads) - 1)}|", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def spread(values: Sequence[float], digits: int = 2) -> str:
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def timed(*words: str, store: Path | None = None, cwd: Any = None, codes: Sequence[int] = (0,), **given: str) -> Spent:
    """Run `rigctl` with bytecode, as an installed one. Return time, memory and output; exit unless its code fits."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | given
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if store is not None:
        environment["RIGCTL_STORE"] = str(store)
    began_s = time.monotonic()
    process = subprocess.Popen([*RIGCTL, *words], cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        sys.exit(f"rigctl {' '.join(words)} ended with {process.returncode}: {output}")
    return Spent(time.monotonic() - began_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)


@contextmanager
def kept_up(rig: str) -> Iterator[int]:
    """Keep a virtual rig up; yield the id of the process whose network namespace has the rig's switch."""
    found = re.search(r"pid (\d+)", timed("rig", "up", rig).output)
    assert found is not None
    try:
        yield int(found[1])
    finally:
        timed("rig", "down", rig)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run in a separate store."""

    store: Path
    spent: Spent

    def rows(self, level: str = "pairs") -> list[dict[str, Any]]:
        exported = timed("export", "--format", "json", "--level", level, store=self.store).output
        found: list[dict[str, Any]] = json.loads(exported)
        return found

    def repetitions(self) -> list[Repetition]:
        with open_store(str(self.store)) as opened:
            return list(opened.repetitions(opened.run().run))


def ran(folder: Path, scenario: str, *words: str, codes: Sequence[int] = (0,)) -> Ran:
    """Run a scenario, given as text or name, into a new store in `folder`. Return the run."""
    file, store = folder / "scenario.yaml", folder / f"{time.monotonic_ns()}.db"
    if "\n" in scenario:
        file.write_text(scenario)
        scenario = str(file)
    return Ran(store, timed("run", scenario, "--quiet", *words, store=store, codes=codes))
