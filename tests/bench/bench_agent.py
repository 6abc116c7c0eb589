"""The agent against iperf3, one flow between two namespaces, in turn: goodput, and the receiver's CPU time per byte.

`python tests/bench/bench_agent.py [--rounds 7] [--seconds 4]`. Each tool counts at its receiver, and its own process's
CPU time (getrusage). Medians of the ratios of neighbouring runs. Congestion control is the same for both tools: cubic,
Linux's default, and this machine's own default where that is another.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from processes import running
from talk import Report, Talk, joined, report_of, started

from rigctl.model.window import common_window, cut
from rigctl.records import Direction, Flow, Pair, Series, Side
from rigctl.remote.build import build, host_machine

SHAPED = "tbf rate 984395kbit burst 128kb limit 400kb"
ADDRESSES = ("10.99.0.1", "10.99.0.2")


@dataclass(frozen=True)
class Measured:
    goodput_mbps: float
    cpu_ns_per_byte: float


@contextmanager
def two_hosts(shaped: bool) -> Iterator[tuple[str, str]]:
    """Namespaces of a sender and a receiver, joined by a veth; shaped on the way to the receiver."""
    names = tuple(f"rigctl-bench-{os.getpid()}-{side}" for side in ("s", "r"))
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
        for name, address in zip(names, ADDRESSES, strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                ip("-n", name, "link", "set", device, "up")
        if shaped:
            subprocess.run(["tc", "-n", names[0], "qdisc", "add", "dev", "eth0", "root", *SHAPED.split()], check=True)
        time.sleep(0.5)
        yield names[0], names[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def inside(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def side(report: Report) -> Side:
    totals = report.totals[0]
    columns = dict(zip(report.columns, map(list, zip(*report.rows[0], strict=True)), strict=True))
    return Side(totals["bytes"], totals["first_byte_ns"], totals["last_byte_ns"], series=Series(columns))


def by_agent(hosts: tuple[str, str], binary: str, seconds: float, congestion: str, window: int | None) -> Measured:
    extra = f"congestion={congestion}" + (f" window={window}" if window else "")
    with Talk(inside(hosts[1], binary)) as receiver, Talk(inside(hosts[0], binary)) as sender:
        joined(receiver, sender, ADDRESSES[1], ADDRESSES[0], interval_ms=100, extra=extra)
        at_ns = started([receiver, sender], round(seconds * 1000))
        sender.event("ended", seconds + 15)
        receiver.event("ended", seconds + 15)
        report = report_of(receiver)
    flow = Flow(Pair("s", "r"), Direction.FORWARD, 1, None, side(report))
    window_cut = common_window([flow], 0, at_ns, at_ns + round(seconds * 1e9))
    assert window_cut is not None
    received = cut(flow, window_cut).bytes
    assert received is not None
    cpu_ns = report.last["agent_cpu_us"] * 1e3 / report.totals[0]["bytes"]
    return Measured(received * 8e-6 / window_cut.length_s, cpu_ns)


def by_iperf3(hosts: tuple[str, str], seconds: float, congestion: str, window: int | None) -> Measured:
    with running(inside(hosts[1], "iperf3", "-s", "-1", "-J"), stdout=subprocess.PIPE) as server:
        time.sleep(0.3)
        words = ["iperf3", "-c", ADDRESSES[1], "-t", f"{seconds:g}", "-C", congestion, "-J"]
        words += ["-w", str(window)] if window else []
        subprocess.run(inside(hosts[0], *words), check=True, stdout=subprocess.DEVNULL)
        assert server.stdout is not None
        end = json.loads(server.stdout.read())["end"]
    total = end["sum_received"]
    cpu_s = end["cpu_utilization_percent"]["host_total"] / 100 * total["seconds"]
    return Measured(total["bits_per_second"] / 1e6, cpu_s * 1e9 / total["bytes"])


def row(title: str, shaped: bool, rounds: int, seconds: float, congestion: str, window: int | None) -> list[str]:
    binary = str(build([host_machine()])[0].path)
    own: list[Measured] = []
    peer: list[Measured] = []
    with two_hosts(shaped) as hosts:
        for _ in range(rounds):
            own.append(by_agent(hosts, binary, seconds, congestion, window))
            peer.append(by_iperf3(hosts, seconds, congestion, window))
    lines = []
    for figure, unit, digits, wanted in (
        ("goodput_mbps", "Mbit/s", 1, "≥ 1.00, within 1 %" if shaped else "≥ 1.10"),
        ("cpu_ns_per_byte", "ns/byte, receiver", 4, "" if shaped else "≤ 0.75"),
    ):
        a = [getattr(one, figure) for one in own]
        b = [getattr(one, figure) for one in peer]
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
        medians = f"{statistics.median(a):.{digits}f} | {statistics.median(b):.{digits}f}"
        lines.append(f"| {title}, {congestion} | {unit} | {medians} | {ratio:.3f} | {wanted} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    lines = []
    for congestion in dict.fromkeys(["cubic", default]):
        lines += row("unshaped", False, options.rounds, options.seconds, congestion, None)
    shaped_rounds = max(3, options.rounds // 2)
    for title, window in (("shaped to 1 Gbit/s, 10 s", None), ("shaped, 10 s, window 64K", 65536)):
        lines += row(title, True, shaped_rounds, 10, "cubic", window)
    print(f"\nOne flow between two namespaces, in turn, median of {options.rounds} (shaped: {shaped_rounds})\n")
    print("| run | figure | agent | iperf3 | ratio | wanted |\n|---|---|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
