"""Latency under load: whether its rise is the queue over the rate, and what the probes cost the streams.

`python tests/bench/bench_latency.py [queue] [cost] [classes] [--rounds 6]`. The queue: a switch port with room for 400
KB behind a faster sender, at a gigabit (super-packets of 64 KB) and at 200 Mbit/s (plain frames); its depth is read
with tc(8) every 20 ms, within the measurement interval. Agreed: within 15 %. The cost: runs with and without probes in
turn on the gigabit, the median of the ratios of neighbours. Agreed: less than 0.5 %. Classes: datagrams of two classes
over a shaper of 19 Mbit/s with two bands, as in docs/how-to/qos.md. Agreed: within 15 % of queue / rate; the class that
goes first waits for less than two packets.
"""

import argparse
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
from typing import Any, Final

from bench import in_turn, kept_up, ran, spread, table, timed

from rigctl.virtual.links import port_limit_bytes, shaped_bps

RIGS: Final = {
    "shaped": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast: {rate: 2G}\n  slow:\n",
    "slower": "virtual: namespaces\nlinks: {rate: 1G, mtu: 1500}\nnodes:\n  fast:\n  slow: {rate: 200M}\n",
    "classes": "virtual: namespaces\nlinks: {rate: 20M, mtu: 1500}\nnodes: {fast: , slow: }\n",
}
PLAIN: Final = "conditions: {plain: {offload: {tso: off, gso: off}}}\n"
TIMES: Final = ("idle_p50", "loaded_p50", "loaded_p99", "rise")
SLOWER_BPS: Final = shaped_bps(200_000_000, 1500)
LIMIT_BYTES: Final = port_limit_bytes(10**9, 1500)

SHAPED_BPS: Final = 19e6
QUEUE_BYTES: Final = 100_000
VOICE_BPS: Final = 1e6 * (200 + 14 + 28) / 200
"""What voice takes of the shaper: payload and headers, as the kernel counts them."""
PACKET_MS: Final = 1514 * 8e3 / SHAPED_BPS
CLASSES: Final = f"""
max_skew: 1s
latency: true
classes:
  voice: {{test: udp, rate: {round(VOICE_BPS * 200 / 242)}, size: 200, dscp: EF}}
  bulk: {{test: udp, rate: 30M}}
"""
BANDS: Final = f"""
set -e
tc qdisc replace dev eth0 root handle 1: htb default 20 r2q 100
tc class add dev eth0 parent 1: classid 1:1 htb rate {SHAPED_BPS:.0f}bit burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil {SHAPED_BPS:.0f}bit prio 0 burst 3k cburst 3k
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 17mbit ceil {SHAPED_BPS:.0f}bit prio 1 burst 3k cburst 3k
tc qdisc add dev eth0 parent 1:20 bfifo limit {QUEUE_BYTES}
"""
EXPEDITED: Final = "tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 0xb8 0xfc flowid 1:10"
SHARED_MS: Final = QUEUE_BYTES * 8e3 / SHAPED_BPS
BEHIND_MS: Final = QUEUE_BYTES * 8e3 / (SHAPED_BPS - VOICE_BPS)


@contextmanager
def rig_up(folder: Path, name: str) -> Iterator[tuple[Path, int]]:
    """The rig's file, and the process whose network namespace has its switch."""
    file = folder / f"bench-{name}.yaml"
    file.write_text(RIGS[name])
    with kept_up(str(file)) as holder:
        yield file, holder


def scenario(rig: Path, duration_s: int, more: str = "matrix: {congestion: cubic}\n") -> str:
    return f"rig: {rig}\npairs: [fast -> slow]\nduration: {duration_s}s\nomit: 1s\n{more}"


class Backlog:
    """Bytes queued at the switch's port to a node, read again and again by one shell in its namespace."""

    def __init__(self, holder: int, port: str) -> None:
        loop = f"while :; do tc -s -j qdisc show dev {port}; sleep 0.02; done"
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
    """A run with probes: its row, what was queued meanwhile, and the bucket's rate in bit/s."""
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
    """A table of the goodput with probes over that without, on the shaped gigabit: whole runs in turn."""
    with rig_up(folder, "shaped") as (rig, _):

        def goodput_mbps(latency: str) -> float:
            (row,) = ran(folder, scenario(rig, 4), "--no-report", "--set", f"latency={latency}").rows()
            return float(row["goodput_mbps"])

        found = in_turn(rounds, {setting: partial(goodput_mbps, setting) for setting in ("false", "true")})
    ratios = [probed / plain for plain, probed in zip(found["false"], found["true"], strict=True)]
    row = (spread(found["false"], 1), spread(found["true"], 1), spread(ratios, 4))
    table("Cost of probes", ("without, Mbit/s", "with probes, Mbit/s", "median of the ratios"), [row])


def classes(folder: Path, rounds: int) -> None:
    """A table of each class of each run: its rise under load, what it should be, and whether it is."""

    def rows() -> Iterator[tuple[object, ...]]:
        for _ in range(rounds):
            with rig_up(folder, "classes") as (rig, _):
                for band, command, wanted_ms in (
                    ("one for both", BANDS, {"voice": SHARED_MS, "bulk": SHARED_MS}),
                    ("one for EF", EXPEDITED, {"voice": None, "bulk": BEHIND_MS}),
                ):
                    timed("rig", "exec", str(rig), "fast", "--", command)
                    for row in ran(folder, scenario(rig, 3, CLASSES), "--no-report").rows():
                        rise_ms, wanted = row["latency_rise_us"] / 1e3, wanted_ms[row["class"]]
                        good = rise_ms < 2 * PACKET_MS if wanted is None else abs(rise_ms / wanted - 1) <= 0.15
                        bound = f"< {2 * PACKET_MS:.2f}" if wanted is None else f"{wanted:.1f}"
                        yield band, row["class"], f"{rise_ms:.2f}", bound, "yes" if good else "NO"

    heads = ("band", "class", "rise, ms", "queue / rate, ms", "within")
    table(f"Waits of two classes; load {os.getloadavg()[0]:.1f}", heads, rows())


WHAT: Final = {"queue": queue, "cost": cost, "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=list(WHAT))
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for what in given.what:
            WHAT[what](Path(name), given.rounds)


if __name__ == "__main__":
    main()
