"""The same matrix by rigctl, by a script of ssh and iperf3, and by ansible: what each costs beyond its traffic.

`python tests/bench/bench_orchestration.py [--tools rigctl,script,ansible] [--pairs 12] [--flows 10] [--duration 10]
[--tests 8]`: hosts with OpenSSH in network namespaces around a switch, links of 200 Mbit/s, the controller is one more
host on it; root. Time from the command to its end, and start skew of the pairs. flent measures by netperf, which Debian
does not have (it is in non-free) and no registry either: left out.
"""

import argparse
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Final

from bench import spread, table
from orchestration_lab import HERE, PairLab, pair_lab, witnessed

from rigctl.records import Status
from rigctl.store import open_store

WINDOWS, SIZES, CONGESTIONS = ("32K", "64K"), (1200, 1460), ("cubic", "reno")


@dataclass(frozen=True)
class Matrix:
    """What is measured: the first `tests` of eight tests."""

    tests: int
    flows: int
    duration_s: int

    @property
    def settings(self) -> list[tuple[str, int, str]]:
        return list(islice(product(WINDOWS, SIZES, CONGESTIONS), self.tests))


Command = Callable[[PairLab, Matrix], list[str]]


def rigctl(lab: PairLab, matrix: Matrix) -> list[str]:
    pairs = ", ".join(f"{source} -> {to}" for source, to in zip(lab.senders, lab.receivers, strict=True))
    rows = "".join(
        f"  - {{window: {window}, mss: {size}, congestion: {congestion}, parallel: {matrix.flows}}}\n"
        for window, size, congestion in matrix.settings
    )
    head = f"rig: lab.yaml\npairs: [{pairs}]\nduration: {matrix.duration_s}s\n"
    (lab.folder / "s.yaml").write_text(f"{head}include:\n{rows}")
    return [sys.executable, "-m", "rigctl", "run", "s.yaml", "--quiet", "--report", "report.html"]


def script(lab: PairLab, matrix: Matrix) -> list[str]:
    pairs = [f"{s}:{r}:{lab.addresses[r]}" for s, r in zip(lab.senders, lab.receivers, strict=True)]
    # The eight tests are its three loops; fewer are the first of them.
    windows, sizes, congestions = (list(dict.fromkeys(map(str, axis))) for axis in zip(*matrix.settings, strict=True))
    loops = [" ".join(axis) for axis in (windows, sizes, congestions)]
    own = [str(lab.folder / "ssh_config"), str(lab.folder), str(matrix.duration_s)]
    return ["bash", str(HERE / "orchestration/iperf3.sh"), *own, *loops, str(matrix.flows), *pairs]


def ansible(lab: PairLab, matrix: Matrix) -> list[str]:
    tests = ", ".join(
        f"{{number: {number}, window: {window}, size: {size}, congestion: {congestion}}}"
        for number, (window, size, congestion) in enumerate(matrix.settings, 1)
    )
    addresses = ", ".join(f"{name}: {address}" for name, address in lab.addresses.items())
    (lab.folder / "vars.yml").write_text(
        f"tests: [{tests}]\nseconds: {matrix.duration_s}\nflows: {matrix.flows}\nfolder: {lab.folder}\n"
        f"addresses: {{{addresses}}}\n"
    )
    forks = ["--forks", str(2 * lab.pairs)]  # its default of 5 would start the pairs one after the other
    return ["ansible-playbook", "-i", "hosts.ini", "-e", "@vars.yml", *forks, str(HERE / "orchestration/playbook.yml")]


TOOLS: Final[dict[str, Command]] = {"rigctl": rigctl, "script": script, "ansible": ansible}


@contextmanager
def started(lab: PairLab, command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """The command on the controller, a process group of its own as a shell gives it; none of it is left here."""
    environment = os.environ | {
        "HOME": str(lab.folder),
        "RIGCTL_STORE": str(lab.folder / "s.db"),
        "PYTHONPATH": str(HERE.parents[1]),
        "PYTHONPYCACHEPREFIX": str(lab.folder / "bytecode"),  # as an installed rigctl has it
        "ANSIBLE_NOCOLOR": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    log = (lab.folder / "log").open("ab")
    process = subprocess.Popen(
        lab.inside("ctl", *command), cwd=lab.folder, env=environment, stdout=log, stderr=log, process_group=0
    )
    try:
        yield process
    finally:
        for pid in lab.processes("ctl"):
            os.kill(pid, signal.SIGKILL)
        process.wait(60.0)
        log.close()


def matrix_taken(lab: PairLab, tool: str, matrix: Matrix) -> tuple[float, list[float]]:
    """Seconds from the command to its end, and the start skew of each test in ms."""
    lines = lab.folder / f"{tool}.syn"
    with witnessed(lab, lines):
        began_s = time.monotonic()
        with started(lab, TOOLS[tool](lab, matrix)) as process:
            code = process.wait(matrix.tests * (matrix.duration_s + 30.0))
        wall_s = time.monotonic() - began_s
    if code != 0:
        sys.exit(f"{tool} ended with {code}: {(lab.folder / 'log').read_text()[-2000:]}")
    return wall_s, _own_skews_ms(lab) if tool == "rigctl" else _skews_ms(lines, lab, matrix)


def _own_skews_ms(lab: PairLab) -> list[float]:
    with open_store(str(lab.folder / "s.db")) as store:
        measured = store.repetitions(store.run(None).run, series=False)
    if bad := [each.reason for each in measured if each.status is not Status.OK]:
        print(f"repetitions that are not valid: {len(bad)} ({bad[0]})", file=sys.stderr)
    return [each.start_skew_us / 1e3 for each in measured if each.start_skew_us is not None]


def _skews_ms(lines: Path, lab: PairLab, matrix: Matrix) -> list[float]:
    """Spread of the pairs' last data connection: a client opens one for control, then one for each flow."""
    opened = sorted((int(at_ns), source) for at_ns, source, *_ in map(str.split, lines.read_text().splitlines()))
    tests: list[dict[str, int]] = []
    before_ns = -math.inf
    for at_ns, source in opened:
        if at_ns - before_ns > matrix.duration_s * 0.5e9:
            tests.append({})
        tests[-1][source] = before_ns = at_ns
    return [(max(last.values()) - min(last.values())) / 1e6 for last in tests if len(last) == lab.pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--flows", type=int, default=10)
    parser.add_argument("--duration", type=int, default=10)
    parser.add_argument("--tests", type=int, default=8)
    given = parser.parse_args()
    matrix, tools = Matrix(given.tests, given.flows, given.duration), given.tools.split(",")
    with tempfile.TemporaryDirectory(prefix="rigctl-orch-") as folder:
        with pair_lab(Path(folder), f"orchestration{os.getpid()}", given.pairs) as lab:
            matrix_table(lab, tools, matrix)


def matrix_table(lab: PairLab, tools: list[str], matrix: Matrix) -> None:
    def rows() -> Iterator[tuple[str, ...]]:
        for tool in tools:
            if tool == "rigctl":
                matrix_taken(lab, tool, Matrix(1, 1, 1))  # bytecode is written, the agents are in place
            wall_s, skews = matrix_taken(lab, tool, matrix)
            beyond_s = (wall_s - matrix.tests * matrix.duration_s) / matrix.tests
            yield tool, f"{wall_s:.1f}", f"{beyond_s:.2f}", spread(skews) if skews else "–"

    title = f"{matrix.tests} tests × {matrix.duration_s} s, {lab.pairs} pairs × {matrix.flows} flows"
    table(title, ("tool", "total, s", "beyond the durations, s per test", "start skew, ms"), rows())


if __name__ == "__main__":
    main()
