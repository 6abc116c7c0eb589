"""How much of a command is its imports: `plan`, `runs` and `show` of a small run, in proportion to additions in Python.

python tests/bench/bench_start.py [--rounds 7]
Each round runs the command, the same imports without the command, and `sum(range(20_000_000))`, each in a new process.
Times are of the processor, so that other programs disturb them less; everything is compiled before.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import typer
from bench import RIGCTL, command, in_turn, table

from rigctl.store import open_store

COMMANDS: Final = ("plan gigablox", "runs", "show")
LISTED: Final = """
import atexit, json, sys, rigctl.cli.app
atexit.register(lambda: print(json.dumps([name for name in sys.modules if name != "__main__"]), file=sys.stderr))
rigctl.cli.app.main()
"""
IMPORTED: Final = """
import contextlib, gc, importlib, sys
gc.set_threshold(300_000, 50, 100)
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
gc.freeze()
"""
"""Imports what a command imported, in the same order; ends as rigctl ends."""
ADDED: Final = "sum(range(20_000_000))"


def main(rounds: Annotated[int, typer.Option(help="Number of rounds.")] = 7) -> None:
    """Measure the imports of commands."""
    import builders  # tests/support, which bench.py puts on the path

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "rigctl.db"
        with open_store(str(store)) as opened:
            builders.put(opened, *builders.gigablox())
        environment = os.environ | {"RIGCTL_STORE": str(store)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        heads = (
            "command",
            "modules",
            "imports",
            "whole command",
            "additions",
            "imports ÷ additions",
            "command ÷ additions",
        )
        table("Start of a command", heads, _rows(rounds, environment))


def _rows(rounds: int, environment: dict[str, str]) -> Iterator[tuple[object, ...]]:
    for words in COMMANDS:
        listed = subprocess.run(
            [sys.executable, "-c", LISTED, *words.split()], env=environment, capture_output=True, text=True, check=True
        )
        modules = json.loads(listed.stderr.splitlines()[-1])
        ways = {
            "imports": [sys.executable, "-c", IMPORTED, *modules],
            "command": [*RIGCTL, *words.split()],
            "additions": [sys.executable, "-c", ADDED],
        }
        found = in_turn(rounds, {name: partial(cpu_s, line, environment) for name, line in ways.items()})
        ratios = [
            f"{median(own / added for own, added in zip(found[name], found['additions'], strict=True)):.2f}"
            for name in ("imports", "command")
        ]
        seconds = [f"{median(found[name]):.3f} s" for name in ways]
        yield f"`{words}`", len(modules), *seconds, *ratios


def cpu_s(line: list[str], environment: dict[str, str]) -> float:
    """Return the processor time in s that a command took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    command(__doc__, main)
