"""The agent's datagrams against iperf3's, between two namespaces, in turn: packets per CPU second.

`python tests/bench/bench_udp.py [--rounds 7] [--seconds 3] [--size 64]`. Both send as fast as they can. Packets that
arrived, over the CPU time of the sender's and the receiver's process together (user and system, getrusage); medians of
the ratios of neighbouring runs. Done twice: as the link is, where the agent's larger pieces cross it whole; and with
the sender's tx-udp-segmentation off, where its kernel cuts them before the link, so that each datagram crosses alone.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from bench_agent import ADDRESSES, inside, two_hosts

sys.path.insert(0, str(__file__).rpartition("/tests/")[0] + "/tests/support")

from talk import Talk, joined, report_of, started

from rigctl.remote.build import build, host_machine


@dataclass(frozen=True)
class Measured:
    packets: int  # that arrived
    lost: int
    sender_cpu_s: float
    receiver_cpu_s: float
    seconds: float

    @property
    def per_cpu_s(self) -> float:
        return self.packets / (self.sender_cpu_s + self.receiver_cpu_s)


def by_agent(hosts: tuple[str, str], binary: str, seconds: float, size: int) -> Measured:
    with Talk(inside(hosts[1], binary)) as receiver, Talk(inside(hosts[0], binary)) as sender:
        joined(receiver, sender, ADDRESSES[1], ADDRESSES[0], interval_ms=100, extra=f"transport=udp size={size}")
        started([receiver, sender], round(seconds * 1000))
        for agent in (sender, receiver):
            assert agent.event("ended", seconds + 15)["error"] is None
        sent, came = report_of(sender), report_of(receiver)
    packets = came.datagrams[0]["datagrams"]
    return Measured(
        packets,
        sent.datagrams[0]["datagrams"] - packets,
        sent.last["agent_cpu_us"] / 1e6,
        came.last["agent_cpu_us"] / 1e6,
        seconds,
    )


def by_iperf3(hosts: tuple[str, str], seconds: float, size: int) -> Measured:
    server = subprocess.Popen(
        inside(hosts[1], "iperf3", "-s", "-1", "-J", "-B", ADDRESSES[1]), stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.3)
    words = ("-c", ADDRESSES[1], "-u", "-b", "0", "-l", str(size), "-t", f"{seconds:g}", "-J")
    subprocess.run(inside(hosts[0], "iperf3", *words), check=True, capture_output=True, text=True, timeout=60)
    end = json.loads(server.communicate(timeout=20)[0])["end"]
    total, cpu = end["sum"], end["cpu_utilization_percent"]
    lost = total["lost_packets"]
    return Measured(
        total["packets"] - lost,
        lost,
        cpu["remote_total"] / 100 * total["seconds"],
        cpu["host_total"] / 100 * total["seconds"],
        total["seconds"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--size", type=int, default=64)
    asked = parser.parse_args()
    if shutil.which("iperf3") is None:
        sys.exit("the Debian package iperf3 is missing")
    binary = str(build([host_machine()])[0].path)
    for segmenting in (True, False):
        agent, peer = [], []
        with two_hosts(shaped=False) as hosts:
            if not segmenting:
                off = ("ethtool", "-K", "eth0", "tx-udp-segmentation", "off")
                subprocess.run(inside(hosts[0], *off), check=True, stdout=subprocess.DEVNULL)
            for _ in range(asked.rounds):
                agent.append(by_agent(hosts, binary, asked.seconds, asked.size))
                peer.append(by_iperf3(hosts, asked.seconds, asked.size))
        crossing = "in larger pieces" if segmenting else "alone"
        print(f"\nUDP, datagrams of {asked.size} bytes, as fast as they go; {asked.rounds} rounds in turn")
        print(f"the agent's cross the link {crossing}\n")
        show(agent, peer)


def show(agent: list[Measured], peer: list[Measured]) -> None:
    head = ("who", "arrived, 1000/s", "lost", "per CPU second, 1000", "median of the ratios", "wanted")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    ratio = statistics.median(one.per_cpu_s / other.per_cpu_s for one, other in zip(agent, peer, strict=True))
    for name, runs, said in (("iperf3", peer, " | "), ("agent", agent, f"{ratio:.2f} | ≥ 1.5")):
        rate = statistics.median(run.packets / run.seconds for run in runs) / 1e3
        lost = statistics.median(run.lost / (run.lost + run.packets) for run in runs)
        print(
            f"| {name} | {rate:.0f} | {lost:.2%} | {statistics.median(r.per_cpu_s for r in runs) / 1e3:.0f} | {said} |"
        )


if __name__ == "__main__":
    main()
