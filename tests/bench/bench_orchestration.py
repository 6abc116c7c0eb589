"""Measures the same matrix by rigctl, by a script of ssh and iperf3, and by ansible, and the time beyond the traffic.

`python tests/bench/bench_orchestration.py [--tools rigctl,script,ansible] [--pairs 12] [--flows 10] [--duration 10]
[--tests 8]`, as root. Hosts with OpenSSH are network namespaces on a switch, with links of 200 Mbit/s; the controller
is one of the hosts. Prints the total time and the start skew of the pairs. flent is left out, because it needs netperf,
which is only in Debian's non-free and in no registry.
"""

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
from typing import Any, Final

from bench import command, spread, table
from openssh_lab import Lab, laboratory, named_in_ssh_config, sh
from processes import running

from rigctl.records import Status
from rigctl.store import open_store

HERE: Final = Path(__file__).parent
WINDOWS, SIZES, CONGESTIONS = ("32K", "64K"), (1200, 1460), ("cubic", "reno")


@dataclass(frozen=True)
class Matrix:
    """The tests that are measured: the first `tests` of eight tests."""

    tests: int
    flows: int
    duration_s: int

    @property
    def settings(self) -> list[tuple[str, int, str]]:
        return list(islice(product(WINDOWS, SIZES, CONGESTIONS), self.tests))


@dataclass
class PairLab(Lab):
    """A lab of pairs of senders and receivers, and the controller, on one switch."""

    addresses: dict[str, str]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        names = list(self.addresses)
        return list(zip(names[: len(names) // 2], names[len(names) // 2 :], strict=True))


@contextmanager
def pair_lab(folder: Path, pairs: int) -> Iterator[PairLab]:
    """Yield a lab with OpenSSH, links of 200 Mbit/s, and configuration files for rigctl, ssh and ansible."""
    names = [f"{side}{number}" for side in "sr" for number in range(1, pairs + 1)]
    with laboratory(folder, names, at_home=True) as made:
        lab = PairLab(folder, made.prefix, {name: f"10.98.0.{number}" for number, name in enumerate(names, 1)})
        for name in names:
            shaped = ("root", "tbf", "rate", "200mbit", "burst", "64kb", "limit", "256kb")
            sh("tc", "-n", lab.host(name), "qdisc", "replace", "dev", "eth0", *shaped)
            sh("tc", "-n", lab.host("switch"), "qdisc", "replace", "dev", name, *shaped)
        rig = folder / "lab.yaml"
        rig.write_text(rig.read_text().replace("{mtu: 1500}", "{rate: 200M, mtu: 1500}"))
        named_in_ssh_config(lab, names)
        senders = "".join(f"{source} peer={lab.addresses[to]}\n" for source, to in lab.pairs)
        receivers = "".join(f"{to}\n" for _, to in lab.pairs)
        ssh = f"ansible_ssh_common_args='-F {folder}/.ssh/config'\nansible_python_interpreter=/usr/bin/python3\n"
        groups = f"[senders]\n{senders}[receivers]\n{receivers}[nodes:children]\nsenders\nreceivers\n"
        (folder / "hosts.ini").write_text(f"{groups}[nodes:vars]\n{ssh}")
        yield lab


Command = Callable[[PairLab, Matrix], list[str]]


def rigctl(lab: PairLab, matrix: Matrix) -> list[str]:
    pairs = ", ".join(f"{source} -> {to}" for source, to in lab.pairs)
    rows = "".join(
        f"  - {{window: {window}, mss: {size}, congestion: {congestion}, parallel: {matrix.flows}}}\n"
        for window, size, congestion in matrix.settings
    )
    head = f"rig: lab.yaml\npairs: [{pairs}]\nduration: {matrix.duration_s}s\n"
    (lab.folder / "s.yaml").write_text(f"{head}include:\n{rows}")
    return [sys.executable, "-m", "rigctl", "run", "s.yaml", "--quiet", "--report", "report.html"]


def script(lab: PairLab, matrix: Matrix) -> list[str]:
    pairs = [f"{source}:{to}:{lab.addresses[to]}" for source, to in lab.pairs]
    # The script's three nested loops are the eight tests; for fewer tests, the loops are cut.
    windows, sizes, congestions = (list(dict.fromkeys(map(str, axis))) for axis in zip(*matrix.settings, strict=True))
    loops = [" ".join(axis) for axis in (windows, sizes, congestions)]
    own = [str(lab.folder / ".ssh/config"), str(lab.folder), str(matrix.duration_s)]
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
    forks = ["--forks", str(len(lab.addresses))]  # with ansible's default of 5, pairs would wait
    return ["ansible-playbook", "-i", "hosts.ini", "-e", "@vars.yml", *forks, str(HERE / "orchestration/playbook.yml")]


TOOLS: Final[dict[str, Command]] = {"rigctl": rigctl, "script": script, "ansible": ansible}


def matrix_taken(lab: PairLab, tool: str, matrix: Matrix) -> tuple[float, list[float]]:
    """Run the matrix with a tool. Return the duration in seconds, and the start skew of each test in ms."""
    lines, log = lab.folder / f"{tool}.syn", lab.folder / "log"
    bytecode = str(lab.folder / "bytecode")  # an installed rigctl has bytecode
    environment = lab.environment | {"PYTHONPYCACHEPREFIX": bytecode, "ANSIBLE_NOCOLOR": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = lab.inside("ctl", *TOOLS[tool](lab, matrix))
    witness = lab.inside("switch", sys.executable, str(HERE / "syn_witness.py"), str(lines))
    with running(witness, stdout=subprocess.PIPE) as seen, log.open("ab") as output:
        assert seen.stdout is not None
        seen.stdout.readline()
        began_s, most_s = time.monotonic(), matrix.tests * (matrix.duration_s + 30.0)
        how: dict[str, Any] = {"cwd": lab.folder, "env": environment, "stdout": output, "stderr": output}
        try:
            code = subprocess.run(command, timeout=most_s, process_group=0, **how).returncode
            wall_s = time.monotonic() - began_s
        finally:
            for pid in lab.processes("ctl"):
                os.kill(pid, signal.SIGKILL)
    if code != 0:
        sys.exit(f"{tool} ended with {code}: {log.read_text()[-2000:]}")
    return wall_s, _own_skews_ms(lab) if tool == "rigctl" else _skews_ms(lines, lab, matrix)


def _own_skews_ms(lab: PairLab) -> list[float]:
    with open_store(str(lab.folder / "s.db")) as store:
        measured = store.repetitions(store.run(None).run, samples=False)
    if bad := [each.reason for each in measured if each.status is not Status.OK]:
        print(f"repetitions that are not valid: {len(bad)} ({bad[0]})", file=sys.stderr)
    return [each.start_skew_us / 1e3 for each in measured if each.start_skew_us is not None]


def _skews_ms(lines: Path, lab: PairLab, matrix: Matrix) -> list[float]:
    """Return for each test the time in ms between the first and the last pair's last connection (of a flow)."""
    opened = sorted((int(at_ns), source) for at_ns, source, *_ in map(str.split, lines.read_text().splitlines()))
    tests: list[dict[str, int]] = []
    before_ns = -math.inf
    for at_ns, source in opened:
        if at_ns - before_ns > matrix.duration_s * 0.5e9:
            tests.append({})
        tests[-1][source] = before_ns = at_ns
    return [(max(last.values()) - min(last.values())) / 1e6 for last in tests if len(last) == len(lab.pairs)]


def main(tools: str = ",".join(TOOLS), pairs: int = 12, flows: int = 10, duration: int = 10, tests: int = 8) -> None:
    with tempfile.TemporaryDirectory(prefix="rigctl-orch-") as folder:
        with pair_lab(Path(folder), pairs) as lab:
            matrix_table(lab, tools.split(","), Matrix(tests, flows, duration))


def matrix_table(lab: PairLab, tools: list[str], matrix: Matrix) -> None:
    def rows() -> Iterator[tuple[str, ...]]:
        for tool in tools:
            if tool == "rigctl":
                matrix_taken(lab, tool, Matrix(1, 1, 1))  # writes bytecode, uploads agents
            wall_s, skews = matrix_taken(lab, tool, matrix)
            beyond_s = (wall_s - matrix.tests * matrix.duration_s) / matrix.tests
            yield tool, f"{wall_s:.1f}", f"{beyond_s:.2f}", spread(skews) if skews else "–"

    title = f"{matrix.tests} tests × {matrix.duration_s} s, {len(lab.pairs)} pairs × {matrix.flows} flows"
    table(title, ("tool", "total, s", "beyond the durations, s per test", "start skew, ms"), rows())


if __name__ == "__main__":
    command(__doc__, main)
