"""The agent's TCP ping-pong against sockperf's, between two namespaces, in turn: mean round trip.

`python tests/bench/bench_pingpong.py [--rounds 7] [--seconds 3]`. Messages of 14 bytes: sockperf's least. sockperf
prints half a round trip; both of its ends sleep while they wait (--nonblocked is not given), as the agent's do but for
its busy polling. Medians of the ratios of neighbouring runs.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import time

from bench_agent import ADDRESSES, inside, two_hosts

sys.path.insert(0, str(__file__).rpartition("/tests/")[0] + "/tests/support")

from processes import end
from talk import Talk, joined

from rigctl.remote.build import build, host_machine

SIZE = 14
PORT = "11111"


def by_agent(hosts: tuple[str, str], binary: str, seconds: float, *, busy: bool) -> float:
    """Mean round trip in µs."""
    what = f"test=pingpong size={SIZE} busy={int(busy)}"
    with Talk(inside(hosts[1], binary)) as receiver, Talk(inside(hosts[0], binary)) as sender:
        joined(receiver, sender, ADDRESSES[1], ADDRESSES[0], extra=what)
        at_ns = time.monotonic_ns() + 30_000_000
        for agent in (receiver, sender):
            assert agent.ask(f"start endpoint=1 at_ns={at_ns} duration_ms={round(seconds * 1000)}")["ok"]
        sender.event("ended", seconds + 15)
        lines = sender.answer(sender.send("report endpoint=1"))
    (totals,) = (line for line in lines if "round_trips" in line)
    return float(totals["rtt_sum_ns"] / totals["round_trips"] / 1e3)


def by_sockperf(hosts: tuple[str, str], seconds: float) -> float:
    server = subprocess.Popen(
        inside(hosts[1], "sockperf", "server", "--tcp", "-i", ADDRESSES[1], "-p", PORT),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        time.sleep(0.5)
        words = [
            "sockperf",
            "ping-pong",
            "--tcp",
            "-i",
            ADDRESSES[1],
            "-p",
            PORT,
            "-m",
            str(SIZE),
            "-t",
            f"{seconds:.0f}",
        ]
        done = subprocess.run(inside(hosts[0], *words), check=True, capture_output=True, text=True)
    finally:
        end(server)
    found = re.search(r"avg-latency=([0-9.]+)", done.stdout)
    assert found is not None, done.stdout
    return 2 * float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    if shutil.which("sockperf") is None:
        sys.exit("the Debian package sockperf is missing")
    binary = str(build([host_machine()])[0].path)
    plain, busy, peer = [], [], []
    with two_hosts(shaped=False) as hosts:
        for _ in range(asked.rounds):
            plain.append(by_agent(hosts, binary, asked.seconds, busy=False))
            peer.append(by_sockperf(hosts, asked.seconds))
            busy.append(by_agent(hosts, binary, asked.seconds, busy=True))
    print(f"\nTCP ping-pong of {SIZE} bytes, mean round trip, {asked.rounds} rounds in turn\n")
    print("| who | median [µs] | least … most | median of the ratios to sockperf | wanted |\n|---|---|---|---|---|")
    for name, times, wanted in (("sockperf", peer, ""), ("agent", plain, "≤ 1.02"), ("agent, busy", busy, "≤ 0.6")):
        ratio = statistics.median(one / other for one, other in zip(times, peer, strict=True))
        spread = f"{min(times):.2f} … {max(times):.2f}"
        print(f"| {name} | {statistics.median(times):.2f} | {spread} | {ratio:.3f} | {wanted} |")


if __name__ == "__main__":
    main()
