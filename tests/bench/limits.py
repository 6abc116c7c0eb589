"""Does rigctl name the limit that was injected? Measures labelled cells, judges them, prints the confusion matrix.

`python tests/bench/limits.py measure SET --store FILE` (eight minutes, root, an idle machine); SET is one of `SETS`.
Cells that the store has already are not measured again, so `--cells 30` and the same once more measure the halves.
`python tests/bench/limits.py judge --store FILE [--details]` judges what is stored by the rules as they are: nothing is
measured again. Rules are tuned on all sets but the proofs; `limit_cells.py` makes them.
"""

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from bench import RIGCTL, command, table
from limit_cells import Case, beside, cases, marked, unlike
from processes import all_commands, output_of, running
from user import AGENT

from rigctl.findings.limits import bottleneck_findings, bottleneck_text
from rigctl.results.read import read_results
from rigctl.results.summary import summaries
from rigctl.store import open_store

SETS: Final = {
    "tune": (cases, 1117),
    "proof": (cases, 260611),
    "proof2": (cases, 990131),
    "proof3": (cases, 20261122),
    "proof4": (cases, 5810377),
    "beside": (beside, 18),
    "beside-proof": (beside, 20261124),
    "unlike": (unlike, 512),
    "marked": (marked, 300),
}
"""Name of a set → function that makes its cases, and the seed."""
PERIOD_US: Final = 50_000
DEADLINE_S: Final = 40.0


def rigctl(*arguments: str) -> str:
    return output_of([*RIGCTL, *arguments], timeout=DEADLINE_S)


def measure(name: str, store: Annotated[str, typer.Option()], cells: int | None = None) -> None:
    """Measure the cells of the set NAME that the store lacks, at most `cells` of them."""
    make, seed = SETS[name]
    stored = _stored(store)
    asked = [(number, case) for number, case in enumerate(make(seed), 1) if number not in stored]
    with tempfile.TemporaryDirectory() as folder:
        for number, case in asked[:cells]:
            began_s = time.monotonic()
            try:
                _measure(Path(folder), number, case, store)
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                print(f"{number:3} {case.kind}: {error}", file=sys.stderr)
            took = f"{time.monotonic() - began_s:.1f} s"
            disturbed = "" if case.busy_programs or not _disturbed(store) else ", disturbed by other programs"
            print(f"{number:3} {case.label:12} {case.kind:16} {took}{disturbed}", flush=True)


def _stored(store: str) -> set[int]:
    """Return the numbers of all cases in the store, including failed ones, which are not measured again either."""
    if not Path(store).exists():
        return set()
    with open_store(store) as opened:
        return {int(opened.run(run).plan.title.split()[0]) for run in opened.run_ids()}


def _disturbed(store: str) -> bool:
    """Tell whether other programs kept the processors busy in the last case, so that its label may be wrong."""
    with open_store(store) as opened:
        info = opened.run(max(opened.run_ids()))
        return any(cell.busy.others_pct for cell in summaries(read_results(opened, info)))


def _measure(folder: Path, number: int, case: Case, store: str) -> None:
    rig, scenario = folder / f"rig{number}.yaml", folder / "scenario.yaml"
    rig.write_text(yaml.safe_dump(case.rig, sort_keys=False))
    notes = json.dumps({name: getattr(case, name) for name in ("label", "kind", "note", "of_pairs", "says")})
    said = {"title": f"{number} {case.kind}", "notes": notes, "rig": str(rig), **case.scenario}
    if case.quota is not None:
        said["max_skew"] = f"{2 * PERIOD_US}us"  # a thread may first wait for the next period
    scenario.write_text(yaml.safe_dump(said, sort_keys=False))
    with contextlib.ExitStack() as ends:
        holder = re.search(r"pid (\d+)", rigctl("rig", "up", str(rig)))
        assert holder is not None
        ends.callback(rigctl, "rig", "down", str(rig))
        for node, asked in case.commands:
            command = re.sub(r"@(\w+)", lambda found: _address(rig, found[1]), asked)
            if node == "switch":
                subprocess.run(["nsenter", "-t", holder[1], "-n", "sh", "-c", command], check=True)
            else:
                rigctl("rig", "exec", str(rig), node, "--", command)
        if case.quota is not None:
            node, percent = case.quota
            limits = {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(PERIOD_US * percent // 100)}
            ends.enter_context(_in_group(Path("/sys/fs/cgroup/cpu/rigctl-limits"), node, limits))
        if case.read_bytes_per_s is not None:
            disk = Path("/var/tmp").stat().st_dev
            limits = {"blkio.throttle.read_bps_device": f"{disk >> 8}:{disk & 0xFF} {case.read_bytes_per_s}"}
            ends.enter_context(_in_group(Path("/sys/fs/cgroup/blkio/rigctl-limits"), "near", limits))
        for _ in range(case.busy_programs):
            ends.enter_context(running([sys.executable, "-c", "while True: pass"]))
        rigctl("run", str(scenario), "--store", store, "--no-report", "--quiet")


def _address(rig: Path, node: str) -> str:
    said = rigctl("rig", "exec", str(rig), node, "--", "ip -o -4 addr show dev eth0")
    return str(re.findall(r"inet ([\d.]+)/", said)[0])


@contextlib.contextmanager
def _in_group(group: Path, node: str, limits: dict[str, str]) -> Iterator[None]:
    """During the block, put the agent of `node` into a control group with these limits as soon as it runs."""
    group.mkdir(exist_ok=True)
    for name, value in limits.items():
        (group / name).write_text(value)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(group, node, done))
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def _watch(group: Path, node: str, done: threading.Event) -> None:
    moved: set[int] = set()
    while not done.wait(0.05):
        agents = [pid for pid, words in all_commands() if pid not in moved and AGENT.search(words)]
        for pid in agents:
            with contextlib.suppress(OSError):
                if f"RIGCTL_NODE={node}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    (group / "cgroup.procs").write_text(str(pid))
                    moved.add(pid)


def judged(store: str) -> Iterator[tuple[dict[str, Any], str, list[str], str]]:
    """Yield for each stored case: description, limit found, limits of the pairs, and the report's text on the limit."""
    with open_store(store) as opened:
        last = {opened.run(run).plan.title: run for run in sorted(opened.run_ids())}
        for run in last.values():
            info = opened.run(run)
            (summary,) = summaries(read_results(opened, info))
            if not summary.counted:
                print(f"not measured: {info.plan.title}", file=sys.stderr)
                continue
            goodput = f"{summary.goodput_mbps.mean:.0f} Mbit/s" if summary.goodput_mbps else "-"
            limits = [stream.limit for stream in summary.streams]
            told = {"run": info.run, "title": info.plan.title, "goodput": goodput, **json.loads(info.plan.notes)}
            found = [f"{finding.text} {finding.remedy or ''}" for finding in bottleneck_findings([summary])]
            yield told, summary.limit, limits, " | ".join([bottleneck_text(summary), *found])


def judge(store: Annotated[str, typer.Option()], details: bool = False) -> None:
    """Judge what is stored by the rules as they are."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for told, limit, pairs, sentence in judged(store):
        found[told["label"]][limit] += 1
        right = limit == told["label"] and pairs == (told.get("of_pairs") or [limit] * len(pairs))
        if "policer" in told["kind"] and limit == "path":
            right = right and "policer" in sentence
        right = right and told.get("says", "") in sentence
        if not right:
            wrong.append(f"{told['title']} ({told['note']}): {told['label']}, found {limit} {pairs}; {told['goodput']}")
        if details:
            mark = "" if right else "WRONG "
            print(f"{mark}{told['title']}: {told['note']}: {told['goodput']}: {limit}\n    {sentence}")
    names = sorted({*found, *(limit for row in found.values() for limit in row)})
    rows = ((label, *(found[label][name] or "" for name in names)) for label in names if label in found)
    table("", ("injected \\ found", *names), rows)
    total = sum(row.total() for row in found.values())
    right = total - len(wrong)
    misnamed = sum(not re.search(r"found unknown", line) for line in wrong)
    print(f"\n{right} of {total} right ({100 * right / max(total, 1):.0f} %), {misnamed} named wrongly")
    print("\n".join(wrong))


if __name__ == "__main__":
    command(__doc__, measure, judge)
