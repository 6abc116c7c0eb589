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

from peers_lab import Crew, Ends, await_listening, netserver, next_port, qperf_figures
from talk import Talk, joined, report_of, started

from rigctl.model.histogram import percentile_ns

Figures = dict[str, float]
Trips = Callable[[Crew, Crew, Ends, int, int, str], Figures]
DEFAULTS = (1, 65536)


def agent(*, busy: bool) -> Trips:
    def run(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> Figures:
        what = f"test=pingpong size={size} busy={int(busy)} nodelay=1"
        with (
            Talk(receivers.command(ends.receiver, [binary])) as receiver,
            Talk(senders.command(ends.sender, [binary])) as sender,
        ):
            joined(receiver, sender, ends.address, ends.sender_address, extra=what)
            started([receiver, sender], seconds * 1000)
            assert sender.event("ended", seconds + 15)["error"] is None
            report = report_of(sender)
        (totals,) = report.totals.values()
        p50, p99 = (percentile_ns([(b, n) for b, n in report.buckets[0]], percent) for percent in (50, 99))
        assert p50 is not None and p99 is not None
        mean_us = totals["rtt_sum_ns"] / totals["round_trips"] / 1e3
        return {"p50_us": p50 / 1e3, "p99_us": p99 / 1e3, "mean_us": mean_us, "trips": totals["round_trips"]}

    return run


def sockperf(*extra: str) -> Trips:
    def run(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> Figures:
        port = str(next_port())
        words = ["--tcp", "-i", ends.address, "-p", port, *extra]
        server = receivers.start(ends.receiver, [binary, "server", *words])
        await_listening(ends.receiver, int(port))
        size = min(max(size, 14), 65507)
        said = senders.finished(
            senders.start(ends.sender, [binary, "ping-pong", *words, "-m", str(size), "-t", str(seconds)])
        )
        receivers.finished(server, signal.SIGTERM)
        halves = {percent: float(us) for percent, us in re.findall(r"percentile ([\d.]+) = +([\d.]+)", said)}
        mean = re.search(r"Latency is ([\d.]+) usec", said)
        assert mean is not None, said
        return {"p50_us": 2 * halves["50.000"], "p99_us": 2 * halves["99.000"], "mean_us": 2 * float(mean[1])}

    return run


def neper(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> Figures:
    control, port = next_port(), next_port()
    words = [binary, "-C", str(control), "-P", str(port), "-l", str(seconds), "-p", "50,99", "--no-delay"]
    words += ["-Q", str(size), "-R", str(size), "-B", str(max(size, 65536))]
    server = receivers.start(ends.receiver, words)
    await_listening(ends.receiver, control)
    text = senders.finished(senders.start(ends.sender, [*words, "-c", "-H", ends.address]))
    receivers.finished(server)
    said = dict(line.partition("=")[::2] for line in text.splitlines())
    return {f"{name}_us": 1e6 * float(said[f"latency_{name}"]) for name in ("p50", "p99", "mean")}


def netperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> Figures:
    port = str(next_port())
    receivers.start(ends.receiver, [netserver(binary), "-D", "-p", port, "-L", ends.address])
    await_listening(ends.receiver, int(port))
    words = [binary, "-P", "0", "-p", port, "-H", ends.address, "-t", "TCP_RR", "-l", str(seconds), "--", "-D"]
    words += ["-r", f"{size},{size}", "-o", "P50_LATENCY,P99_LATENCY,MEAN_LATENCY"]
    said = senders.finished(senders.start(ends.sender, words)).strip().splitlines()[-1].split(",")
    return dict(zip(("p50_us", "p99_us", "mean_us"), map(float, said), strict=True))


def qperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> Figures:
    control, port = str(next_port()), str(next_port())
    receivers.start(ends.receiver, [binary, "-lp", control])
    await_listening(ends.receiver, int(control))
    words = [binary, "-lp", control, "-ip", port, ends.address, "-t", str(seconds), "-m", str(size), "-uu", "-vv"]
    said = qperf_figures(senders.finished(senders.start(ends.sender, [*words, "tcp_lat"])))
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
        figures = tool.run(receivers, senders, pairs[0], size, seconds, binary)
        return figures | {"sender_cpu_s": senders.cpu_s(), "receiver_cpu_s": receivers.cpu_s()}
