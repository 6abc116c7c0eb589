"""Mutation tests of packages without I/O: checks that their unit tests fail when the code is changed.

`python tests/bench/mutants.py [--all] [ROOM …]`, or `make mutants`. mutmut changes one operator, constant or call at a
time, and runs the unit tests of the same package that reach it. By default, it tries a fifth of the mutants: those
whose number within their function ends in 1 or 6. Each package is changed in a copy of the checkout, in mutants/ROOM.

Prints the score of each package; mutants/ROOM/survivors.txt lists the mutants that no test noticed. `cd mutants/ROOM;
mutmut show NAME` shows a change.
"""

import collections
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from bench import ROOT, command, table

ROOMS: Final = ("model", "limits", "analysis", "protocol", "scenario")
SURVIVED, UNREACHED = {0}, {5, 33}  # mutmut's exit codes: tests passed; no test reaches the mutant
CONFIGURATION: Final = """
[tool.mutmut]
source_paths = ["rigctl"]
only_mutate = ["rigctl/{room}/*"]
also_copy = ["rigctl", "agents", "docs", "reports", "scenarios", "README.md", "CHANGELOG.md"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-k", "not seconds"]  # those of files of a megabyte
pytest_add_cli_args_test_selection = ["tests/unit/{room}"]
"""


def copied(room: str) -> Path:
    """Copy the checkout's files in git, set the copy up for mutmut, and return its folder."""
    folder = ROOT / "mutants" / room
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "agents/dist").mkdir(parents=True)
    known = "git ls-files -z --cached | tar --null --files-from=- --ignore-failed-read -c"
    subprocess.run(f"{known} | tar -x -C {shlex.quote(str(folder))}", shell=True, cwd=ROOT, check=True, timeout=60)
    with (folder / "pyproject.toml").open("a") as file:
        file.write(CONFIGURATION.format(room=room))
    return folder


def outcomes(folder: Path) -> dict[str, int]:
    """Return the exit codes of the tests by mutant, for mutants that were tried."""
    found: dict[str, int] = {}
    for path in sorted(folder.glob("mutants/**/*.meta")):
        codes: dict[str, int | None] = json.loads(path.read_text())["exit_code_by_key"]
        found |= {name: code for name, code in codes.items() if code is not None}
    return found


def survivors(codes: dict[str, int]) -> list[str]:
    """Return a line for each function with surviving mutants: their number, the function, and their names."""
    by_function: dict[str, list[str]] = collections.defaultdict(list)
    for name, code in codes.items():
        if code in SURVIVED | UNREACHED:
            by_function[re.sub(r"__mutmut_\d+$", "", name)].append(name.rpartition("_")[2])
    ranked = sorted(by_function.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{len(numbers):4d} {function}: {' '.join(numbers)}" for function, numbers in ranked]


def measured(room: str, pattern: str) -> tuple[object, ...]:
    began_s, folder = time.monotonic(), copied(room)
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", f"rigctl.{room}.{pattern}"]
        subprocess.run(command, cwd=folder, check=False, stdout=log, stderr=subprocess.STDOUT, timeout=7200)
    codes = outcomes(folder)
    if not codes:
        sys.exit(f"{room}: mutmut tried nothing; see {folder / 'log'}")
    (folder / "survivors.txt").write_text("\n".join(survivors(codes)) + "\n")
    survived, unreached = (sum(code in kind for code in codes.values()) for kind in (SURVIVED, UNREACHED))
    killed = len(codes) - survived - unreached
    score, took_s = f"{100 * killed / len(codes):.1f}", f"{time.monotonic() - began_s:.0f}"
    return room, len(codes), killed, survived, unreached, score, took_s


def main(
    rooms: Annotated[list[str], typer.Argument(default_factory=lambda: list(ROOMS))],
    every: Annotated[bool, typer.Option("--all")] = False,
) -> None:
    heads = ("room", "mutants", "killed", "survived", "not reached", "score, %", "time, s")
    table("Mutants", heads, (measured(room, "*" if every else "*[16]") for room in rooms))


if __name__ == "__main__":
    command(__doc__, main)
