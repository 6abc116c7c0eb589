"""Latency under load: whether its rise equals queue ÷ rate, and how much goodput the probes cost.

`python tests/bench/bench_latency.py [queue] [cost] [--rounds 6]`. `queue`: a switch port with room for 400
KB behind a faster sender, at 1 Gbit/s (super-packets of 64 KB) and at 200 Mbit/s (plain frames). tc(8) reads the depth
of the queue every 20 ms. The rise must be within 15 %. `cost`: runs with and without probes in turn at 1 Gbit/s. The
median loss of goodput between consecutive runs must be below 0.5 %.
"""

import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from bench import command, in_turn, kept_up, ran, spread, table

from rigctl.virtual.links import port_limit_bytes, shaper_bps

RIGS: Final = {
    "shaped": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast: {rate: 2G}\n  slow:\n",
    "slower": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast:\n  slow: {rate: 200M}\n",
}
PLAIN: Final = "conditions: {plain: {offload: {tso: off, gso: off}}}\n"
TIMES: Final = ("idle_p50", "loaded_p50", "loaded_p99", "rise")
SLOWER_BPS: Final = shaper_bps(200_000_000, 1500)
LIMIT_BYTES: Final = port_limit_bytes(10**9, 1500)


@contextmanager
def rig_up(folder: Path, name: str) -> Iterator[tuple[Path, int]]:
    """Yield the rig's file, and the id of the process whose network namespace has the rig's switch."""
    file = folder / f"bench-{name}.yaml"
    file.write_text(RIGS[name])
    with kept_up(str(file)) as holder:
        yield file, holder


def scenario(rig: Path, duration_s: int, more: str = "matrix: {congestion: cubic}\n") -> str:
    return f"rig: {rig}\npairs: [fast -> slow]\nduration: {duration_s}s\nomit: 1s\n{more}"


class Backlog:
    """Reads the bytes queued at the switch's port to a node every 20 ms, with a shell in the switch's namespace."""

    def __init__(self, holder: int, port: str) -> None:
        loop = f"while :; do tc -s -j qdisc show dev {port}; sleep 0.02; done"
        command = ["nsenter", "-t", str(holder), "-n", "sh", "-c", loop]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.read: list[tuple[int, float]] = []  # time in ns, and bytes
        self.rate_bps = 0
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            (qdisc,) = json.loads(line)
            self.rate_bps = 8 * qdisc["options"]["rate"]
            # The packet at the head waits for tokens and is counted fully; on average, half of it is paid already.
            head = qdisc["backlog"] / qdisc["qlen"] if qdisc["qlen"] else 0
            self.read.append((time.monotonic_ns(), qdisc["backlog"] - head / 2))

    def end(self) -> None:
        self._process.kill()
        self._process.wait(10)


def queue(folder: Path, rounds: int) -> None:
    """Print a table of the rise of latency, and of queue ÷ rate."""
    heads = ["link", "flows", "goodput, Mbit/s", "queue, mean, bytes", "queue / rate, ms"]
    heads += ["idle, ms", "loaded, ms", "loaded p99, ms", "rise, ms", "rise / (queue / rate)"]
    ratios: dict[str, list[float]] = {}

    def rows() -> Iterator[list[str]]:
        for name in ("shaped", "slower"):
            with rig_up(folder, name) as (rig, holder):
                if name == "slower":
                    change = f"tc qdisc change dev slow root tbf rate {SLOWER_BPS}bit burst 25kb limit {LIMIT_BYTES}b"
                    subprocess.run(["nsenter", "-t", str(holder), "-n", *change.split()], check=True)
                for flows in [1, 4] * rounds:
                    row, depths, rate_bps = filled(folder, rig, holder, flows, PLAIN if name == "slower" else "")
                    depth = statistics.mean(depths)
                    times_us = [8e6 * depth / rate_bps, *(row[f"latency_{what}_us"] for what in TIMES)]
                    ratios.setdefault(name, []).append(row["latency_rise_us"] / times_us[0])
                    known = [name, str(flows), f"{row['goodput_mbps']:.1f}", f"{depth:.0f}"]
                    known += [f"{time_us / 1e3:.3f}" for time_us in times_us]
                    yield [*known, f"{ratios[name][-1]:.3f}"]

    table(f"Latency under load; load {os.getloadavg()[0]:.1f}", heads, rows())
    for name, found in ratios.items():
        print(f"\n{name}: ratios {spread(found, 3)}")


def filled(folder: Path, rig: Path, holder: int, flows: int, more: str) -> tuple[dict[str, Any], list[float], int]:
    """Make a run with probes. Return its row, the queued bytes meanwhile, and the bucket's rate in bit/s."""
    backlog = Backlog(holder, "slow")
    text = scenario(rig, 6, f"matrix: {{congestion: cubic, parallel: {flows}}}\nlatency: true\n{more}")
    try:
        made = ran(folder, text, "--no-report")
    finally:
        backlog.end()
    (row,), (repetition,) = made.rows(), made.repetitions()
    start_ns, end_ns = repetition.window_start_ns or 0, repetition.window_end_ns or 0
    return row, [size for at_ns, size in backlog.read if start_ns <= at_ns < end_ns], backlog.rate_bps


def cost(folder: Path, rounds: int) -> None:
    """Print a table of goodput with and without probes at 1 Gbit/s, from runs in turn."""
    with rig_up(folder, "shaped") as (rig, _):

        def goodput_mbps(latency: str) -> float:
            (row,) = ran(folder, scenario(rig, 4), "--no-report", "--set", f"latency={latency}").rows()
            return float(row["goodput_mbps"])

        found = in_turn(rounds, {setting: partial(goodput_mbps, setting) for setting in ("false", "true")})
    ratios = [probed / plain for plain, probed in zip(found["false"], found["true"], strict=True)]
    row = (spread(found["false"], 1), spread(found["true"], 1), spread(ratios, 4))
    table("Cost of probes", ("without, Mbit/s", "with probes, Mbit/s", "median of the ratios"), [row])


WHAT: Final = {"queue": queue, "cost": cost}


def main(what: Annotated[list[str], typer.Argument(default_factory=lambda: list(WHAT))], rounds: int = 6) -> None:
    with tempfile.TemporaryDirectory() as name:
        for each in what:
            WHAT[each](Path(name), rounds)


if __name__ == "__main__":
    command(__doc__, main)
