"""Ping-pong over TCP by each tool: p50 and p99 of the whole round trip, one message at a time.

sockperf and qperf print half a round trip; sockperf's messages have 14 to 65,507 bytes; qperf knows the mean alone.
But for those that are named so, both ends of every tool sleep in the kernel while they wait.
"""

import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from peers_lab import Crew, Ends, Job, await_listening, netserver, next_port, qperf_test
from talk import Talk, joined, report_of, started

from rigctl.model.histogram import percentile_ns

Figures = dict[str, float]
Trips = Callable[[Job], Figures]
DEFAULTS = (1, 65536)


def agent(*, busy: bool) -> Trips:
    def run(job: Job) -> Figures:
        what = f"test=pingpong size={job.number} busy={int(busy)} nodelay=1"
        with (
            Talk(job.receivers.command(job.ends.receiver, [job.binary])) as receiver,
            Talk(job.senders.command(job.ends.sender, [job.binary])) as sender,
        ):
            joined(receiver, sender, job.ends.address, job.ends.sender_address, extra=what)
            started([receiver, sender], job.seconds * 1000)
            assert sender.event("ended", job.seconds + 15)["error"] is None
            report = report_of(sender)
        (totals,) = report.totals.values()
        p50, p99 = (percentile_ns([(b, n) for b, n in report.buckets[0]], percent) for percent in (50, 99))
        assert p50 is not None and p99 is not None
        mean_us = totals["rtt_sum_ns"] / totals["round_trips"] / 1e3
        return {"p50_us": p50 / 1e3, "p99_us": p99 / 1e3, "mean_us": mean_us, "trips": totals["round_trips"]}

    return run


def sockperf(*extra: str) -> Trips:
    def run(job: Job) -> Figures:
        port = str(next_port())
        words = ["--tcp", "-i", job.ends.address, "-p", port, *extra]
        server = job.serve([job.binary, "server", *words])
        await_listening(job.ends.receiver, int(port))
        size = min(max(job.number, 14), 65507)
        said = job.senders.finished(
            job.drive([job.binary, "ping-pong", *words, "-m", str(size), "-t", str(job.seconds)])
        )
        job.receivers.finished(server, signal.SIGTERM)
        halves = {percent: float(us) for percent, us in re.findall(r"percentile ([\d.]+) = +([\d.]+)", said)}
        mean = re.search(r"Latency is ([\d.]+) usec", said)
        assert mean is not None, said
        return {"p50_us": 2 * halves["50.000"], "p99_us": 2 * halves["99.000"], "mean_us": 2 * float(mean[1])}

    return run


def neper(job: Job) -> Figures:
    control, port = next_port(), next_port()
    words = [job.binary, "-C", str(control), "-P", str(port), "-l", str(job.seconds), "-p", "50,99", "--no-delay"]
    words += ["-Q", str(job.number), "-R", str(job.number), "-B", str(max(job.number, 65536))]
    server = job.serve(words)
    await_listening(job.ends.receiver, control)
    text = job.senders.finished(job.drive([*words, "-c", "-H", job.ends.address]))
    job.receivers.finished(server)
    said = dict(line.partition("=")[::2] for line in text.splitlines())
    return {f"{name}_us": 1e6 * float(said[f"latency_{name}"]) for name in ("p50", "p99", "mean")}


def netperf(job: Job) -> Figures:
    port = str(next_port())
    job.serve([netserver(job.binary), "-D", "-p", port, "-L", job.ends.address])
    await_listening(job.ends.receiver, int(port))
    words = [
        job.binary,
        "-P",
        "0",
        "-p",
        port,
        "-H",
        job.ends.address,
        "-t",
        "TCP_RR",
        "-l",
        str(job.seconds),
        "--",
        "-D",
    ]
    words += ["-r", f"{job.number},{job.number}", "-o", "P50_LATENCY,P99_LATENCY,MEAN_LATENCY"]
    said = job.senders.finished(job.drive(words)).strip().splitlines()[-1].split(",")
    return dict(zip(("p50_us", "p99_us", "mean_us"), map(float, said), strict=True))


def qperf(job: Job) -> Figures:
    said = qperf_test(job, "tcp_lat")
    return {"mean_us": 2e-3 * said["latency"]}


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    run: Trips
    own: bool = False
    tuned: bool = False  # spins while it waits

    def takes(self, _size: int) -> bool:
        return True


TOOLS = (
    Tool("rigctl", "", agent(busy=False), own=True),
    Tool("rigctl, busy polling", "", agent(busy=True), own=True, tuned=True),
    Tool("sockperf", "sockperf", sockperf()),
    Tool("neper", "tcp_rr", neper),
    Tool("netperf", "netperf", netperf),
    Tool("qperf", "qperf", qperf),
    Tool("sockperf --nonblocked", "sockperf", sockperf("--nonblocked"), tuned=True),
)


def measured(tool: Tool, binary: str, pairs: list[Ends], size: int, seconds: int) -> Figures:
    with Crew() as receivers, Crew() as senders:
        figures = tool.run(Job(receivers, senders, pairs[0], size, seconds, binary))
        return figures | {"sender_cpu_s": senders.cpu_s(), "receiver_cpu_s": receivers.cpu_s()}
