"""Latency under load: whether its rise is the queue over the rate, and what the probes cost the streams.

`python tests/bench/bench_latency.py [queue] [cost] [processors] [--rounds 6]`. The queue: a switch port with room for
400 KB behind a faster sender, at a gigabit (super-packets of 64 KB) and at 200 Mbit/s (plain frames); its depth is read
with tc(8) every 20 ms, within the measurement interval. Agreed: within 15 %. The cost: runs with and without probes in
turn on the gigabit, the median of the ratios of neighbours; where processors are the limit tenths of a second in turn,
the mean and its standard error. Agreed: less than 0.5 %.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from bench_agent import ADDRESSES, inside, two_hosts

sys.path.insert(0, str(__file__).rpartition("/tests/")[0] + "/tests/support")

from talk import Talk, joined, report_of, settings

from rigctl.analysis.rows.cells import Row, derive
from rigctl.records import Repetition
from rigctl.remote.build import build, host_machine
from rigctl.store import open_store
from rigctl.virtual.links import port_limit_bytes, shaped_bps

RIGCTL: Final = (sys.executable, "-m", "rigctl")
RIGS: Final = {
    "shaped": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast: {rate: 2G}\n  slow:\n",
    "slower": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast:\n  slow: {rate: 200M}\n",
}
SCENARIO: Final = "rig: {rig}\npairs: [fast -> slow]\nduration: {duration}s\nomit: 1s\nmatrix: {{congestion: cubic}}\n"
PLAIN: Final = "conditions: {plain: {offload: {tso: off, gso: off}}}\n"
READ_S: Final = 0.02
TIMES: Final = ("idle_p50", "loaded_p50", "loaded_p99", "rise")
SLOWER_BPS: Final = shaped_bps(200_000_000, 1500)
LIMIT_BYTES: Final = port_limit_bytes(10**9, 1500)
INTERVALS_MS: Final = (1, 20)
SLICES: Final = 200
"""With probes, in one measurement; as many without lie between them."""
SLICE_NS: Final = 100_000_000
EDGE_NS: Final = 10_000_000
SPAN: Final = 10
"""Slices with probes that are averaged before the error is estimated: neighbours share a slice without."""


@contextmanager
def rig_up(folder: Path, name: str) -> Iterator[tuple[Path, int]]:
    """The rig's file, and the process whose network namespace has its switch."""
    file = folder / f"bench-{name}.yaml"
    file.write_text(RIGS[name])
    said = subprocess.run([*RIGCTL, "rig", "up", str(file)], check=True, capture_output=True, text=True)
    found = re.search(r"pid (\d+)", said.stdout + said.stderr)
    assert found is not None
    try:
        yield file, int(found[1])
    finally:
        subprocess.run([*RIGCTL, "rig", "down", str(file)], check=True, capture_output=True)


def measured(folder: Path, rig: Path, duration_s: int, *sets: str, more: str = "") -> tuple[Row, Repetition]:
    """One run of one test: its row of level `pairs`, and its repetition."""
    scenario, store = folder / "latency.yaml", folder / f"{time.monotonic_ns()}.db"
    scenario.write_text(SCENARIO.format(rig=rig, duration=duration_s) + more)
    chosen = [word for setting in sets for word in ("--set", setting)]
    run = [*RIGCTL, "run", str(scenario), "--quiet", "--store", str(store), "--report", str(folder / "report.html")]
    subprocess.run([*run, *chosen], check=True, capture_output=True)
    with open_store(str(store), create=False) as stored:
        info = stored.run()
        (repetition,) = stored.repetitions(info.run)
    (row,) = derive(info, [repetition]).pairs
    return row, repetition


class Backlog:
    """Bytes queued at the switch's port to a node, read again and again by one shell in its namespace."""

    def __init__(self, holder: int, port: str) -> None:
        loop = f"while :; do tc -s -j qdisc show dev {port}; sleep {READ_S}; done"
        command = ["nsenter", "-t", str(holder), "-n", "sh", "-c", loop]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.read: list[tuple[int, float]] = []  # when, and how many
        self.rate_bps = 0
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            (qdisc,) = json.loads(line)
            self.rate_bps = 8 * qdisc["options"]["rate"]
            # The bucket saves up for the packet at its head, which is counted whole until it goes: on average half.
            head = qdisc["backlog"] / qdisc["qlen"] if qdisc["qlen"] else 0
            self.read.append((time.monotonic_ns(), qdisc["backlog"] - head / 2))

    def end(self) -> None:
        self._process.kill()
        self._process.wait(10)


def queue(folder: Path, rounds: int) -> None:
    """A table of the rise and of the queue over the rate."""
    heads = ["link", "flows", "goodput, Mbit/s", "retransmits", "queue, mean, bytes", "queue / rate, ms"]
    heads += ["limit / rate, ms", "idle, ms", "loaded, ms", "loaded p99, ms", "rise, ms", "rise / (queue / rate)"]
    print(f"| {' | '.join(heads)} | TCP's RTT, ms |\n{'|--:' * (len(heads) + 1)}|")
    ratios: dict[str, list[float]] = {}
    for name in ("shaped", "slower"):
        with rig_up(folder, name) as (rig, holder):
            if name == "slower":
                change = f"tc qdisc change dev slow root tbf rate {SLOWER_BPS}bit burst 25kb limit {LIMIT_BYTES}b"
                subprocess.run(["nsenter", "-t", str(holder), "-n", *change.split()], check=True)
            for flows in [1, 4] * rounds:
                row, depths, rate_bps = filled(folder, rig, holder, flows, PLAIN if name == "slower" else "")
                depth = statistics.mean(depths)
                times_us = (8e6 * depth / rate_bps, 8e6 * LIMIT_BYTES / rate_bps)
                times_us += tuple(row[f"latency_{what}_us"] for what in TIMES)
                ratios.setdefault(name, []).append(row["latency_rise_us"] / times_us[0])
                known = [name, str(flows), f"{row['goodput_mbps']:.1f}", str(row["retransmits"]), f"{depth:.0f}"]
                known += [f"{time_us / 1e3:.3f}" for time_us in times_us]
                print(f"| {' | '.join(known)} | {ratios[name][-1]:.3f} | {row['rtt_us'] / 1e3:.3f} |", flush=True)
    for name, found in ratios.items():
        print(f"\n{name}: median of the ratios {statistics.median(found):.3f}, {min(found):.3f} to {max(found):.3f}")
    print()


def filled(folder: Path, rig: Path, holder: int, flows: int, more: str) -> tuple[Row, list[float], int]:
    """A run with probes: its row, what was queued meanwhile, and the bucket's rate in bit/s."""
    backlog = Backlog(holder, "slow")
    try:
        row, repetition = measured(folder, rig, 6, "latency=true", f"parallel={flows}", more=more)
    finally:
        backlog.end()
    start_ns, end_ns = repetition.window_start_ns or 0, repetition.window_end_ns or 0
    return row, [size for at_ns, size in backlog.read if start_ns <= at_ns < end_ns], backlog.rate_bps


def cost(folder: Path, rounds: int) -> None:
    """The goodput with probes over that without, on the shaped gigabit: whole runs in turn."""
    without: list[float] = []
    with_probes: list[float] = []
    with rig_up(folder, "shaped") as (rig, _):
        for _ in range(rounds):
            for goodput, setting in ((without, "latency=false"), (with_probes, "latency=true")):
                goodput.append(measured(folder, rig, 4, setting)[0]["goodput_mbps"])
    told("shaped, runs in turn", without, with_probes)


def cost_of_processors(folder: Path, rounds: int) -> None:
    """The same where processors are the limit: streams between two namespaces, probes in every other slice of time.

    Goodput there differs by 6 % from slice to slice, so that the default interval takes thousands of slices; every 1 ms
    probes cost twenty times as much, which few slices show.
    """
    heads = "| probe every | slices | goodput, Gbit/s | cost of probes, % | standard error"
    print(f"{heads} | of each span of {2 * SPAN * SLICE_NS / 1e9:g} s |")
    print("|--:|--:|--:|--:|--:|:--|")
    for interval_ms in INTERVALS_MS:
        costs: list[float] = []
        goodputs = []
        for _ in range(rounds):
            goodput_mbps, contrasts = sliced(interval_ms)
            goodputs.append(goodput_mbps)
            costs += (-100 * contrasts.reshape(-1, SPAN).mean(axis=1)).tolist()
        error = statistics.stdev(costs) / len(costs) ** 0.5
        listed = " ".join(f"{cost:.1f}" for cost in costs)
        known = f"{interval_ms} ms | {len(costs) * SPAN} | {statistics.mean(goodputs) / 1e3:.1f}"
        print(f"| {known} | {statistics.mean(costs):.2f} | {error:.2f} | {listed} |", flush=True)
    print()


def sliced(interval_ms: int) -> "tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]":
    """Goodput without probes in Mbit/s; of each slice with probes the logarithm of its ratio to its neighbours without.

    All orders are given before the first slice; signs of life fall between slices, and the edges are cut off.
    """
    binary = str(build([host_machine()])[0].path)
    with (
        two_hosts(shaped=False) as hosts,
        Talk(inside(hosts[1], binary)) as receiver,
        Talk(inside(hosts[0], binary)) as sender,
    ):
        joined(receiver, sender, ADDRESSES[1], ADDRESSES[0], interval_ms=10, flows=4)
        how = settings(interval_ms=interval_ms, extra="transport=udp test=probe size=64")
        for endpoint in range(2, SLICES + 2):
            port = receiver.ask(f"listen endpoint={endpoint} address={ADDRESSES[1]} {how}")["port"]
            order = f"connect endpoint={endpoint} address={ADDRESSES[1]} port={port} bind={ADDRESSES[0]} {how}"
            assert sender.ask(order)["ok"]
            assert receiver.ask(f"ready endpoint={endpoint}")["ok"]
        begin_ns = time.monotonic_ns() + 10**9
        for agent in (receiver, sender):
            for endpoint in range(2, SLICES + 2):
                at_ns = begin_ns + (2 * endpoint - 3) * SLICE_NS
                assert agent.ask(f"start endpoint={endpoint} at_ns={at_ns} duration_ms={SLICE_NS // 10**6}")["ok"]
            length_ms = (2 * SLICES + 1) * SLICE_NS // 10**6
            assert agent.ask(f"start endpoint=1 at_ns={begin_ns} duration_ms={length_ms}")["ok"]
        for number in (*range(0, 2 * SLICES, 50), 2 * SLICES + 11):
            time.sleep(max(0.0, (begin_ns + number * SLICE_NS - time.monotonic_ns()) / 1e9))
            for agent in (receiver, sender):
                agent.ask("clock")
        flows = report_of(receiver).rows.values()
    edges = [
        begin_ns + number * SLICE_NS + edge
        for number in range(2 * SLICES + 1)
        for edge in (EDGE_NS, SLICE_NS - EDGE_NS)
    ]
    counts = np.zeros(len(edges))
    for rows in flows:
        times, taken = zip(*rows, strict=True)
        counts += np.interp(edges, times, taken)
    logs = np.log(np.diff(counts)[::2])
    return float(np.exp(logs[::2].mean()) * 8e3 / (SLICE_NS - 2 * EDGE_NS)), logs[1::2] - (logs[:-1:2] + logs[2::2]) / 2


def told(what: str, without: Sequence[float], with_probes: Sequence[float]) -> None:
    """A row: medians, and the median of the ratios of neighbours."""
    ratios = [probed / plain for plain, probed in zip(without, with_probes, strict=True)]
    print("| link | without, median, Mbit/s | with probes, median, Mbit/s | median of the ratios | ratios |")
    print("|:--|--:|--:|--:|:--|")
    listed = " ".join(f"{ratio:.4f}" for ratio in ratios)
    medians = f"{statistics.median(without):.1f} | {statistics.median(with_probes):.1f}"
    print(f"| {what} | {medians} | {statistics.median(ratios):.4f} | {listed} |\n", flush=True)


WHAT: Final = {"queue": queue, "cost": cost, "processors": cost_of_processors}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=list(WHAT))
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as name:
        for what in given.what:
            WHAT[what](Path(name), given.rounds)


if __name__ == "__main__":
    main()
