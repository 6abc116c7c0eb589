"""The agent's libFuzzer targets (agents/fuzz), each for RIGCTL_FUZZ_MINUTES minutes of processor time, else 30.

    python tests/bench/fuzz.py [TARGET…]

A target goes on from what earlier runs found (agents/build/corpus) and from the seeds (agents/fuzz/corpus). Prints
cases, coverage and findings; a finding is kept as agents/build/found/TARGET-… and makes the exit code 1.
"""

import os
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

AGENTS: Final = Path(__file__).parents[2] / "agents"
TARGETS: Final = ("orders", "opening", "journal", "datagram", "order")
SLICE_S: Final = 120
"""A slice is bounded by the clock on the wall: what is frozen meanwhile has had less of the processor."""


@dataclass(slots=True)
class Tally:
    cases: int = 0
    cpu_s: float = 0.0
    edges: int = 0
    corpus: int = 0
    found: str = ""


def children_s() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def one_slice(target: str, seconds: int, tally: Tally) -> None:
    work, found = AGENTS / "build" / "corpus" / target, AGENTS / "build" / "found"
    work.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    program = AGENTS / "build" / f"fuzz-{target}"
    command: list[str | Path] = [
        program,
        f"-max_total_time={seconds}",
        f"-dict={AGENTS / 'fuzz' / 'agent.dict'}",
        f"-artifact_prefix={found / target}-",
        "-max_len=4096",
        "-timeout=60",
        "-print_final_stats=1",
        "-reduce_inputs=1",
        work,
        AGENTS / "fuzz" / "corpus" / target,
    ]
    before_s = children_s()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    tally.cpu_s += children_s() - before_s
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    seen = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", done.stderr)
    tally.cases += int(executed.group(1)) if executed else 0
    if seen:
        tally.edges, tally.corpus = int(seen[-1][0]), int(seen[-1][1])
    if done.returncode != 0 and not was_frozen(program, done.stderr):
        tally.found = done.stderr[-4000:]


def was_frozen(program: Path, said: str) -> bool:
    """Whether what libFuzzer took for endless was only a process that did not run: the input alone ends at once."""
    kept = re.search(r"Test unit written to (\S+/\w+-timeout-\w+)", said)
    if kept is None:
        return False
    try:
        alone = subprocess.run([program, kept[1]], capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return False
    Path(kept[1]).unlink()
    return alone.returncode == 0


def told(target: str, tally: Tally) -> str:
    return (
        f"{target}: {tally.cases:,} cases, {tally.cpu_s / 60:.1f} CPU minutes, {tally.edges} edges, "
        f"{tally.corpus} inputs in the corpus, {'a finding' if tally.found else 'no finding'}"
    )


def main(targets: list[str]) -> int:
    """A slice of each target in turn, until all have had their time; 1 where one found something."""
    wanted_s = 60 * float(os.environ.get("RIGCTL_FUZZ_MINUTES", "30"))
    subprocess.run(["make", "-s", "-C", AGENTS, "fuzz"], check=True)
    tallies = {target: Tally() for target in targets or TARGETS}
    while left := [target for target, tally in tallies.items() if tally.cpu_s < wanted_s and not tally.found]:
        for target in left:
            one_slice(target, min(SLICE_S, int(wanted_s - tallies[target].cpu_s) + 1), tallies[target])
            print(told(target, tallies[target]), flush=True)
    for target, tally in tallies.items():
        print(f"\n{told(target, tally)}\n{tally.found}", flush=True)
    return int(any(tally.found for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
