"""What counting in bins of 0.5 ms costs a transfer: goodput of one flow with and without, between two namespaces.

`python tests/bench/bench_bins.py [--rounds 9] [--seconds 3]`. The agent against itself, in turn, unshaped and on a
gigabit; cubic. Medians of the ratios of neighbouring runs.
"""

import argparse
import statistics
import sys

from bench_agent import ADDRESSES, inside, two_hosts

sys.path.insert(0, str(__file__).rpartition("/tests/")[0] + "/tests/support")

from talk import Talk, joined, report_of, started

from rigctl.remote.build import build, host_machine


def goodput_mbps(hosts: tuple[str, str], binary: str, seconds: float, how: str) -> float:
    with Talk(inside(hosts[1], binary)) as receiver, Talk(inside(hosts[0], binary)) as sender:
        joined(receiver, sender, ADDRESSES[1], ADDRESSES[0], interval_ms=100, extra="congestion=cubic")
        started([receiver, sender], round(seconds * 1000), how)
        for agent in (sender, receiver):
            assert agent.event("ended", seconds + 15)["error"] is None
        totals = report_of(receiver).totals[0]
    return float(totals["bytes"] * 8e3 / (totals["last_byte_ns"] - totals["first_byte_ns"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    binary = str(build([host_machine()])[0].path)
    print(f"\nGoodput with bins of 0.5 ms : without, {asked.rounds} rounds in turn\n")
    print("| link | without [Mbit/s] | with [Mbit/s] | median of the ratios | wanted |\n|---|---|---|---|---|")
    for shaped in (False, True):
        plain, binned = [], []
        with two_hosts(shaped=shaped) as hosts:
            for _ in range(asked.rounds):
                plain.append(goodput_mbps(hosts, binary, asked.seconds, ""))
                binned.append(goodput_mbps(hosts, binary, asked.seconds, "bin_us=500"))
        ratio = statistics.median(one / other for one, other in zip(binned, plain, strict=True))
        middle = [f"{statistics.median(speeds):.0f}" for speeds in (plain, binned)]
        print(f"| {'1 Gbit/s' if shaped else 'unshaped'} | {' | '.join(middle)} | {ratio:.3f} | ≥ 0.98 |")


if __name__ == "__main__":
    main()
