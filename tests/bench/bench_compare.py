"""What `rigctl compare` says of runs of the same thing, and of runs in which one test of twenty was slowed down.

`python tests/bench/bench_compare.py measure FOLDER [--runs N] [--before COMMAND]` measures into FOLDER/store.db and can
be interrupted and started again; `judge FOLDER` compares what is there; `simulate` does the same with made-up runs.
A hub and ten nodes on links of 100 Mbit/s, twenty tests of one pair each, five repetitions of 0.25 s. The slowdown is a
lower rate of a node's own shaping, of which no fact of the rig tells.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

RIG: Final = """\
title: A hub and ten nodes
virtual: namespaces
switch: a switch
links:
  rate: 100M
  mtu: 1500
nodes:
  hub:
  "n[01..10]":
"""
SCENARIO: Final = """\
title: Twenty tests
rig: rig.yaml
pairs: {star: hub}
duration: 0.25s
omit: 0.05s
repeat: 5
matrix: {congestion: cubic}
"""
SLOWDOWNS: Final = (1, 2, 5, 10)
LATENCY: Final = ("burst", "12kb", "latency", "122ms")


class Bench:
    """The folder with the rig, the scenario, the store and the list of its runs."""

    def __init__(self, folder: Path, before: str = "") -> None:
        self.folder, self._before = folder, shlex.split(before)
        folder.mkdir(parents=True, exist_ok=True)
        self.rig, self.scenario = folder / "rig.yaml", folder / "compare.yaml"
        self.store, self._list = folder / "store.db", folder / "runs.json"
        self.rig.write_text(RIG)
        self.scenario.write_text(SCENARIO)
        # Of each run its id, the node that was slowed down, and by how many percent.
        self.runs: list[tuple[str, str, int]] = []
        if self._list.exists():
            self.runs = [(run, node, percent) for run, node, percent in json.loads(self._list.read_text())]

    def rigctl(self, *words: str, patient: bool = False) -> str:
        runtime = self.folder / "runtime"  # its rig is not that of another folder
        runtime.mkdir(mode=0o700, exist_ok=True)
        environment = {**os.environ, "RIGCTL_STORE": str(self.store), "XDG_RUNTIME_DIR": str(runtime.resolve())}
        command = [*(self._before if patient else ()), sys.executable, "-m", "rigctl", *words]
        return subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout

    def measure(self, node: str = "", percent: int = 0) -> None:
        """One run, with the link of `node` to the switch slower by `percent`."""
        base = self._rate_kbit("n01")
        if node:
            self._shape(node, base * (100 - percent) // 100)
        try:
            said = self.rigctl("run", str(self.scenario), "--quiet", "--no-report", patient=True)
        finally:
            if node:
                self._shape(node, base)
        self.runs.append((said.split()[-1], node, percent))
        self._list.write_text(json.dumps(self.runs))

    def _rate_kbit(self, node: str) -> int:
        words = self._on(node, "tc", "qdisc", "show", "dev", "eth0").split()
        return int(words[words.index("rate") + 1].removesuffix("Kbit"))

    def _shape(self, node: str, kbit: int) -> None:
        self._on(node, "tc", "qdisc", "change", "dev", "eth0", "root", "tbf", "rate", f"{kbit}kbit", *LATENCY)

    def _on(self, node: str, *words: str) -> str:
        return self.rigctl("rig", "exec", str(self.rig), node, "--", *words)


def measure(bench: Bench, count: int) -> None:
    """`count` runs of the same thing; after every second of them one with a slowdown."""
    bench.rigctl("rig", "up", str(bench.rig))
    try:
        while (plain := sum(not node for _, node, _ in bench.runs)) < count:
            slowed = len(bench.runs) - plain
            if plain // 2 > slowed:
                bench.measure(f"n{slowed % 10 + 1:02}", SLOWDOWNS[slowed % len(SLOWDOWNS)])
            else:
                bench.measure()
            print(len(bench.runs), *bench.runs[-1], flush=True)
    finally:
        bench.rigctl("rig", "down", str(bench.rig))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure",))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=51)
    parser.add_argument("--before", default="", help="a command that starts each run, as nice")
    arguments = parser.parse_args()
    measure(Bench(arguments.folder, arguments.before), arguments.runs)


if __name__ == "__main__":
    main()
