"""Verdicts of `rigctl compare` on runs without a change, and on runs in which one node's tests were slowed down.

`python tests/bench/bench_compare.py measure FOLDER [--runs N]` measures into FOLDER/store.db. It can
be interrupted and started again. `judge FOLDER…` compares the stored runs.
The rig has a hub and ten nodes on links of 100 Mbit/s; twenty tests of one pair each have five repetitions of 0.25 s.
The slowdown is a lower rate of a node's shaping, which no fact of the rig shows.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench import command, table, timed

from rigctl.analysis.nights.comparison import FigureChange, compare_runs
from rigctl.analysis.run_view import RunView
from rigctl.model.statistics.comparing import Comparison
from rigctl.results.read import read_results
from rigctl.store import open_store

RIG: Final = 'virtual: namespaces\nlinks: {rate: 100M, mtu: 1500}\nnodes: {hub: , "n[01..10]": }\n'
SCENARIO: Final = "rig: rig.yaml\npairs: {star: hub}\nduration: 0.25s\nomit: 0.05s\nrepeat: 5\ncongestion: cubic\n"
SLOWDOWNS: Final = (1, 2, 5, 10)
LATENCY: Final = ("burst", "12kb", "latency", "122ms")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.rig, self.scenario = folder / "rig.yaml", folder / "compare.yaml"
        self.store, self._list = folder / "store.db", folder / "runs.json"
        self.rig.write_text(RIG)
        self.scenario.write_text(SCENARIO)
        # Run id, slowed-down node ("" for none), and slowdown in percent.
        self.runs: list[tuple[str, str, int]] = []
        if self._list.exists():
            self.runs = [(run, node, percent) for run, node, percent in json.loads(self._list.read_text())]

    def rigctl(self, *words: str, codes: Sequence[int] = (0,)) -> str:
        runtime = self.folder / "runtime"  # keeps the rigs of several folders apart
        runtime.mkdir(mode=0o700, exist_ok=True)
        return timed(*words, store=self.store, codes=codes, XDG_RUNTIME_DIR=str(runtime.resolve())).output

    def measure(self, node: str = "", percent: int = 0) -> bool:
        """Make a run with the link of `node` to the switch slower by `percent`. Return whether a run was stored.

        A run in which a repetition failed (exit code 3) counts.
        """
        shown = self._on("n01", "tc", "qdisc", "show", "dev", "eth0").split()
        base = int(shown[shown.index("rate") + 1].removesuffix("Kbit"))
        if node:
            self._shape(node, base * (100 - percent) // 100)
        try:
            ids = self.rigctl("run", str(self.scenario), "--quiet", "--no-report", codes=range(4)).split()
        finally:
            if node:
                self._shape(node, base)
        self.runs += [(run, node, percent) for run in ids]
        self._list.write_text(json.dumps(self.runs))
        return ids != []

    def _shape(self, node: str, kbit: int) -> None:
        self._on(node, "tc", "qdisc", "change", "dev", "eth0", "root", "tbf", "rate", f"{kbit}kbit", *LATENCY)

    def _on(self, node: str, *words: str) -> str:
        return self.rigctl("rig", "exec", str(self.rig), node, "--", *words)


def measure(folder: Path, runs: int = 51) -> None:
    """Compare `runs` runs of the same thing, and after every second of them one with a slowdown."""
    bench = Bench(folder)
    bench.rigctl("rig", "up", str(bench.rig))
    failed = 0
    try:
        while (plain := sum(not node for _, node, _ in bench.runs)) < runs and failed < 5:
            slowed = len(bench.runs) - plain
            node, percent = "", 0
            if plain // 2 > slowed:
                node, percent = f"n{slowed % 10 + 1:02}", SLOWDOWNS[slowed % len(SLOWDOWNS)]
            if bench.measure(node, percent):
                print(len(bench.runs), *bench.runs[-1], flush=True)
            else:
                failed += 1
    finally:
        bench.rigctl("rig", "down", str(bench.rig))


def judge(folders: list[Path]) -> None:
    """Each run against the plain one before it: what is said of tests that are the same, and of the slower ones."""
    plain: Counter[Comparison] = Counter()
    beside: Counter[Comparison] = Counter()
    pairs, widest, rows = 0, [], []
    for folder in folders:
        bench, last = Bench(folder), None
        with open_store(str(bench.store), create=False) as store:
            views = {run: RunView(read_results(store, store.run(run))) for run, _, _ in bench.runs}
        for run, node, percent in bench.runs:
            if last is not None:
                changes = compare_runs(views[last], views[run]).tests
                slower = [change for change in changes if node and change.cell.pairs[0].source == node]
                rows += [(percent, node, change) for change in slower]
                others = [change.change for change in changes if change not in slower]
                (beside if node else plain).update(difference.verdict for difference in others)
                if not node:
                    pairs += 1
                    widest += [found.within for found in others if found.verdict is Comparison.SAME and found.within]
            last = run if not node else last
    within = f"{100 * median(widest):.2f} %" if widest else "–"
    print(f"{pairs} pairs of runs of the same thing: {counted(plain)}; same within, median {within}")
    print(f"the other tests of {len(rows)} runs with a slower one: {counted(beside)}\n")
    heads = ("slower by, %", "from", "measured, %", "interval, %", "chance", "verdict")
    table("Slower tests", heads, (shown(*row) for row in sorted(rows, key=lambda row: row[:2])))


def shown(percent: int, node: str, change: FigureChange) -> tuple[object, ...]:
    found = change.change
    measured, low, high = (f"{100 * (value or 0):.2f}" for value in (found.share, found.low, found.high))
    said = f"same within {100 * (found.within or 0):.2f} %" if found.verdict is Comparison.SAME else found.verdict
    return percent, node, measured, f"{low} to {high}", f"{found.chance or 0:.3f}", said


def counted(verdicts: Counter[Comparison]) -> str:
    return ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Comparison)


if __name__ == "__main__":
    command(__doc__, measure, judge)
