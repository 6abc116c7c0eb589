"""Loss as the agent reports it against loss that nftables injects: 0.1, 1 and 5 % of 10^6 datagrams.

`python tests/bench/bench_loss.py [--datagrams 1000000]`. nftables drops at random at the receiver's input, each
datagram by itself. Reported: sent less arrived, of those sent; beside it what nftables counted, and how many standard
errors of a binomial the report is from the probability that was asked for (beyond 2 in 1 of 20 draws, whoever counts).
"""

import argparse
import json
import math
import subprocess
import sys

from bench_agent import ADDRESSES, inside, two_hosts

sys.path.insert(0, str(__file__).rpartition("/tests/")[0] + "/tests/support")

from talk import Talk, joined, report_of, started

from rigctl.remote.build import build, host_machine

LOSSES = (
    (0.001, "mod 1000 < 1"),
    (0.01, "mod 100 < 1"),
    (0.05, "mod 20 < 1"),
)
SIZE = 64
PER_S = 100_000


def dropped(host: str) -> int:
    listed = subprocess.run(inside(host, "nft", "-j", "list", "table", "inet", "loss"), capture_output=True, check=True)
    (rule,) = (one["rule"] for one in json.loads(listed.stdout)["nftables"] if "rule" in one)
    return next(int(part["counter"]["packets"]) for part in rule["expr"] if "counter" in part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datagrams", type=int, default=1_000_000)
    asked = parser.parse_args()
    binary = str(build([host_machine()])[0].path)
    print(f"\nLoss of {asked.datagrams:,} datagrams of {SIZE} bytes, {PER_S:,} a second\n")
    head = ("injected", "sent", "reported lost", "nftables dropped", "reported [%]", "standard errors", "wanted")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for probability, rule in LOSSES:
        with two_hosts(shaped=False) as hosts:
            off = ("ethtool", "-K", "eth0", "tx-udp-segmentation", "off")
            subprocess.run(inside(hosts[0], *off), check=True, stdout=subprocess.DEVNULL)
            hook = "type filter hook input priority 0"
            table = (
                f"table inet loss {{ chain some {{ {hook}; meta l4proto udp numgen random {rule} counter drop\n}}\n}}\n"
            )
            subprocess.run(inside(hosts[1], "nft", table), check=True)
            with Talk(inside(hosts[1], binary)) as receiver, Talk(inside(hosts[0], binary)) as sender:
                joined(
                    receiver, sender, ADDRESSES[1], ADDRESSES[0], interval_ms=100, extra=f"transport=udp size={SIZE}"
                )
                seconds = asked.datagrams / PER_S
                started([receiver, sender], round(seconds * 1000) + 1, f"rate={PER_S * SIZE * 8}")
                for agent in (sender, receiver):
                    assert agent.event("ended", seconds + 15)["error"] is None
                sent, came = (report_of(agent).datagrams[0] for agent in (sender, receiver))
            counted = dropped(hosts[1])
        count, lost = sent["datagrams"], sent["datagrams"] - came["datagrams"]
        errors = (lost / count - probability) / math.sqrt(probability * (1 - probability) / count)
        cells = f"{100 * probability:g} % | {count} | {lost} | {counted} | {100 * lost / count:.4f} | {errors:+.2f}"
        print(f"| {cells} | within ± 2 |")
        assert came["overflow"] == 0, f"{came['overflow']} were lost at the receiver's buffer"


if __name__ == "__main__":
    main()
