"""Times of requests against a computed queue, and percentiles against HdrHistogram.

`python tests/bench/bench_requests.py [queue] [percentiles] [--rounds 3]`. `queue`: two agents in network namespaces; a
token bucket of tc(8) at 10 Mbit/s shapes the requests on their way, or the replies. The times of the same schedule are
computed packet by packet, by Lindley's recursion for a token bucket, plus the time of an unshaped request. The median
ratio of each percentile (p50, p90, p99) must be within 10 %. `percentiles`: random times in the agent's buckets and in
a histogram of the package hdrhistogram must have the same percentiles within 0.5 %.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import Annotated, Final

import typer
from bench import command, table
from builders import bucket_of
from hdrh.histogram import HdrHistogram
from lab import entering, holding, unsharing
from processes import output_of
from talk import LONG_MS, Report, Talk, begin, completed, joined, report_of

from rigctl.model.latency import merge_histograms, percentile_ns
from rigctl.remote.build import build_binaries, host_machine

RATE_BPS: Final = 10_000_000
SEGMENT: Final = 1448  # payload of a full segment with timestamps, at an MTU of 1500
FRAME: Final = SEGMENT + 66  # what tbf counts: with the headers of TCP, IP and Ethernet
PERCENTS: Final = (50, 90, 99)
BOUND: Final = 0.10
HDR_BOUND: Final = 0.005
UNCHECKED: Final = "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0"
SHORT_APART: Final = (
    "table ip apart { chain out { type route hook output priority 0; meta length < 256 meta mark set 1; }; }"
)
"""Acknowledgements and other short packets go over the second pair of veth, which is not shaped."""
BURST: Final = 10 * FRAME
"""Bytes of the bucket: after a pause of the machine of up to 12 ms, tbf makes up for it."""
LARGE: Final = 500_000  # bytes of a bucket that lets the first requests pass at once


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule: messages of so many full segments, at a rate, over flows. Requests or replies are `shaped`."""

    shaped: str
    segments: int
    per_second: int
    flows: int
    duration_s: float
    burst: int = BURST

    @property
    def load(self) -> float:
        return self.segments * FRAME * 8 * self.per_second / RATE_BPS

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the bytes of a request and of a reply: the one that is shaped is long."""
        long = self.segments * SEGMENT
        return (long, 1) if self.shaped == "requests" else (1, long)


CASES: Final = (
    Case("requests", 40, 15, 1, 6),
    Case("requests", 40, 15, 2, 6),
    Case("requests", 80, 8, 4, 6),
    Case("requests", 160, 4, 1, 8),
    Case("replies", 40, 15, 2, 6),
    Case("replies", 80, 8, 1, 6),
    Case("replies", 160, 4, 4, 8),
    Case("requests", 1, 1100, 1, 3),
    Case("requests", 4, 300, 1, 3),
    Case("requests", 40, 30, 1, 3),
    Case("replies", 1, 1100, 1, 3),
    Case("replies", 4, 300, 1, 3),
    Case("requests", 1, 1500, 1, 2, LARGE),
    Case("replies", 1, 1500, 4, 2, LARGE),
)
"""Those with a load above 1 have one flow: several connections do not share a full link in the order of their bytes."""


def computed_s(case: Case) -> list[float]:
    """Return for how long each message is delayed by a token bucket that was full at the start."""
    per_byte_s = 8 / RATE_BPS
    tokens, last_s, delays = float(case.burst), 0.0, []
    for number in range(round(case.per_second * case.duration_s)):
        due_s = number / case.per_second
        for _ in range(case.segments):
            at_s = max(due_s, last_s)
            tokens = min(case.burst, tokens + (at_s - last_s) / per_byte_s)
            last_s = at_s + max(0.0, FRAME - tokens) * per_byte_s
            tokens = max(tokens, FRAME) - FRAME
        delays.append(last_s - due_s)
    return delays


def nearest_rank(values: list[float], percent: float) -> float:
    return sorted(values)[max(1, ceil(len(values) * percent / 100)) - 1]


@contextmanager
def agents(*, real_time: bool = False) -> Iterator[tuple[Talk, Talk]]:
    """Yield a receiver (10.9.0.2 at s0) and a sender (10.9.0.1 at c0) in namespaces that two pairs of veth join.

    In real time, their threads run before those of other programs, so that a busy machine makes no sender late.
    """
    (built,) = build_binaries([host_machine()])
    with ExitStack() as stack:
        here, there = (stack.enter_context(holding(unsharing())) for _ in range(2))
        for number in (0, 1):
            link = f"ip link add c{number} type veth peer name s{number} netns {there}"
            output_of([*entering(here), *link.split()])
        for holder, name, host in ((here, "c", 1), (there, "s", 2)):
            for words in (f"ip address add 10.9.0.{host}/24 dev {name}0", f"sysctl -qw {UNCHECKED}"):
                output_of([*entering(holder), *words.split()])
            for device in (f"{name}0", f"{name}1"):
                output_of([*entering(holder), *f"ip link set {device} up".split()])
                output_of([*entering(holder), *f"ethtool -K {device} tso off gso off gro off".split()])
            for words in ("ip rule add fwmark 1 table 7", f"ip route add 10.9.0.{3 - host} dev {name}1 table 7"):
                output_of([*entering(holder), *words.split()])
            output_of([*entering(holder), "nft", SHORT_APART])
        start = [
            stack.enter_context(Talk([*entering(holder), str(built.path)], enter=entering(holder)))
            for holder in (there, here)
        ]
        for agent in start if real_time else ():
            os.sched_setscheduler(agent.process.pid, os.SCHED_FIFO, os.sched_param(10))
        yield start[0], start[1]


def shape(agent: Talk, device: str, burst: int | None) -> None:
    """Shape what leaves at `device`; None: no longer."""
    bucket = f"rate {RATE_BPS}bit burst {burst} limit 50000000"
    words = f"tc qdisc add dev {device} root tbf {bucket}" if burst else f"tc qdisc del dev {device} root"
    output_of([*agent.enter, *words.split()])


def measure(receiver: Talk, sender: Talk, case: Case) -> Report:
    size, reply = case.sizes
    what = f"test=requests size={size} reply={reply} nodelay=1"
    joined(receiver, sender, "10.9.0.2", "10.9.0.1", extra=what, flows=case.flows, interval_ms=1000)
    at_ns = time.monotonic_ns() + 200_000_000
    begin(receiver, LONG_MS, at_ns=at_ns)
    begin(sender, round(1000 * case.duration_s), f"per_second={case.per_second}", at_ns=at_ns)
    completed(sender, receiver)
    found = report_of(sender)
    report_of(receiver)
    for agent in (sender, receiver):
        assert agent.ask("close endpoint=1")["ok"]
    return found


def percentiles_ms(report: Report) -> list[float]:
    buckets = merge_histograms([(bucket, count) for bucket, count in own] for own in report.buckets.values())
    return [(percentile_ns(buckets, percent) or 0.0) / 1e6 for percent in PERCENTS]


def queue(rounds: int) -> None:
    """Print computed and measured percentiles of each case, and their ratios."""
    heads = ["shaped", "segments", "per second", "flows", "load", "bucket", "computed p50, p90, p99, ms"]
    heads += ["measured, ms", "ratios", "late", "unanswered"]
    worst = []

    def rows() -> Iterator[list[str]]:
        with agents() as (receiver, sender):
            for case in CASES:
                agent, device = (sender, "c0") if case.shaped == "requests" else (receiver, "s0")
                idle = Case(case.shaped, case.segments, 20, 1, 2)
                base_ms = percentiles_ms(measure(receiver, sender, idle))[0]
                computed = [1e3 * nearest_rank(computed_s(case), percent) + base_ms for percent in PERCENTS]
                found, late, lost = [], 0, 0
                for _ in range(rounds):
                    shape(agent, device, case.burst)
                    report = measure(receiver, sender, case)
                    shape(agent, device, None)
                    found.append(percentiles_ms(report))
                    late += sum(counts["late"] for counts in report.requests.values())
                    lost += sum(counts["unanswered"] + counts["unsent"] for counts in report.requests.values())
                measured = [median(each) for each in zip(*found, strict=True)]
                ratios = [one / other for one, other in zip(measured, computed, strict=True)]
                worst.append(max(abs(ratio - 1) for ratio in ratios))
                known = [case.shaped, case.segments, case.per_second, case.flows, f"{case.load:.2f}", case.burst]
                times = [", ".join(f"{time_ms:.2f}" for time_ms in one) for one in (computed, measured)]
                yield [*map(str, known), *times, ", ".join(f"{ratio:.3f}" for ratio in ratios), str(late), str(lost)]

    table(f"Requests through {RATE_BPS / 1e6:g} Mbit/s; load {os.getloadavg()[0]:.1f}", heads, rows())
    failed = sum(off > BOUND for off in worst)
    print(f"\nwithin {BOUND:.0%}: {len(worst) - failed} of {len(worst)} cases; the largest difference {max(worst):.1%}")
    if failed:
        raise SystemExit(1)


def percentiles(rounds: int) -> None:
    """Print how far percentiles of the agent's buckets are from those of HdrHistogram."""
    largest, compared = 0.0, 0
    for seed in range(10 * rounds):
        numbers = random.Random(seed)
        count = numbers.choice([1000, 10_000, 100_000])
        times = [round(numbers.lognormvariate(numbers.uniform(10, 14), numbers.uniform(0.1, 2))) for _ in range(count)]
        theirs, ours = (
            HdrHistogram(1, 3_600_000_000_000, 3),
            merge_histograms([((bucket_of(value), 1),) for value in times]),
        )
        for value in times:
            theirs.record_value(value)
        for percent in (50.0, 90.0, 99.0, 99.9, 99.99):
            own, other = percentile_ns(ours, percent) or 0.0, theirs.get_value_at_percentile(percent)
            largest, compared = max(largest, abs(own / other - 1)), compared + 1
    print(f"\n{compared} percentiles compared with HdrHistogram: the largest difference {largest:.2%}")
    if largest > HDR_BOUND:
        raise SystemExit(1)


WHAT: Final = {"queue": queue, "percentiles": percentiles}


def main(what: Annotated[list[str], typer.Argument(default_factory=lambda: list(WHAT))], rounds: int = 3) -> None:
    for each in what:
        WHAT[each](rounds)


if __name__ == "__main__":
    command(__doc__, main)
