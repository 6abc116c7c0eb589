"""Goodput of Multipath TCP over two links of 100 Mbit/s, of 1 and 3 connections: the sum of both.

`python tests/bench/bench_mptcp.py [SECONDS]`: one row for each number of connections. Bound: 130 Mbit/s, more than one
link carries. Root, or unprivileged user namespaces.
"""

import sys
from contextlib import ExitStack
from typing import Final

import bench
from talk import Talk, completed, joined, report_of, started
from two_links import link, two_namespaces, use

from rigctl.remote.build import build, host_machine

FLOWS: Final = (1, 3)
LEAST_MBPS: Final = 130


def goodput_mbps(flows: int, seconds: int) -> float:
    (binary,) = build([host_machine()])
    with two_namespaces() as (near, far), ExitStack() as stack:
        for number in (1, 2):
            link(near, far, number)
        use(near, far, 2)
        sender, receiver = (stack.enter_context(Talk([*end.enter, str(binary.path)])) for end in (near, far))
        joined(receiver, sender, "10.78.1.2", "10.78.1.1", extra="mptcp=1", flows=flows)
        started(receiver, sender, 1000 * seconds)
        completed(sender, receiver)
        totals = report_of(receiver).totals.values()
    # What stands in queues at the end arrives later.
    span_ns = max(each["last_byte_ns"] for each in totals) - min(each["first_byte_ns"] for each in totals)
    return float(sum(each["bytes"] for each in totals) * 8e3 / span_ns)


def main(seconds: int) -> None:
    found = ((flows, goodput_mbps(flows, seconds)) for flows in FLOWS)
    rows = ((flows, f"{mbps:.1f}", "yes" if mbps >= LEAST_MBPS else "NO") for flows, mbps in found)
    bench.table(f"{seconds} s each", ("connections", "goodput, Mbit/s", "within"), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
