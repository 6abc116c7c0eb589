"""The tools that are compared, and how each is started and read.

Streams count what arrived, as a tool counts it at its receiver. Messages are a ping-pong over TCP, one message at a
time, of which p50 and p99 of the whole round trip are taken: both ends sleep in the kernel while they wait, but for
tools that are named so. sockperf prints half a round trip; its messages have 14 to 65,507 bytes. Datagrams are sent as
fast as a tool can, and those that arrived are counted; with the offloads off each crosses the link by itself.
"""

import json
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from peers_lab import Figures, Job, Tool
from talk import Report, report_of, started

from rigctl.model.latency import percentile_ns

DEFAULTS: Final = {"streams": (1, 10), "messages": (1, 65536), "datagrams": (64, 1472)}
"""Numbers of flows, or sizes."""


def brought(count: float, gbps: float) -> Figures:
    return {"bytes": count, "gbps": gbps}


def arrived(packets: float, seconds: float) -> Figures:
    return {"packets": packets, "seconds": seconds}


def trips(p50_us: float, p99_us: float) -> Figures:
    return {"p50_us": p50_us, "p99_us": p99_us}


def agents(job: Job, **how: Any) -> tuple[Report, Report]:
    """Return what receiver and sender report."""
    with job.agents(**how) as (receiver, sender):
        started(receiver, sender, job.seconds * 1000)
        for side in (sender, receiver):
            assert side.event("ended", job.seconds + 15)["error"] is None
        return report_of(receiver), report_of(sender)


def agent_streams(job: Job, listen: str = "") -> Figures:
    totals = agents(job, interval_ms=100, flows=job.number, listen=listen)[0].totals.values()
    length_ns = max(t["last_byte_ns"] for t in totals) - min(t["first_byte_ns"] for t in totals)
    count = sum(t["bytes"] for t in totals)
    return brought(count, count * 8 / length_ns)


def agent_messages(job: Job, busy: int) -> Figures:
    _, report = agents(job, extra=f"test=pingpong size={job.number} busy={busy} nodelay=1")
    p50, p99 = (percentile_ns([(b, n) for b, n in report.buckets[0]], percent) for percent in (50, 99))
    assert p50 is not None and p99 is not None
    return trips(p50 / 1e3, p99 / 1e3)


def agent_datagrams(job: Job) -> Figures:
    report, _ = agents(job, extra=f"transport=udp size={job.number}")
    return arrived(float(report.datagrams[0]["datagrams"]), job.seconds)


def iperf3(job: Job, words: str) -> dict[str, Any]:
    port, server = job.serve("-s -1 -J -p {port} -B {address}")
    job.drive(f"-c {{address}} -p {port} -t {{seconds}} -J {words}")
    found: dict[str, Any] = json.loads(job.receivers.finished(server))["end"]
    return found


def iperf3_streams(job: Job, extra: str = "") -> Figures:
    total = iperf3(job, f"-P {{number}} {extra}")["sum_received"]
    return brought(total["bytes"], total["bits_per_second"] / 1e9)


def iperf3_datagrams(job: Job, extra: str = "") -> Figures:
    total = iperf3(job, f"-u -b 0 -l {{number}} {extra}")["sum"]
    return arrived(total["packets"] - total["lost_packets"], job.seconds)


def iperf(job: Job, words: str, kind: str = "") -> list[list[str]]:
    port, server = job.serve(f"-s {kind} -p {{port}} -B {{address}} -y C", udp=kind == "-u")
    job.drive(f"-c {{address}} -p {port} {kind} {words} -t {{seconds}} -y C")
    time.sleep(0.1)
    return [line.split(",") for line in job.receivers.finished(server, signal.SIGTERM).splitlines()]


def iperf_streams(job: Job) -> Figures:
    lines = iperf(job, "-P {number}")
    each = [line for line in lines if line[5] != "-1"]
    assert len(each) == job.number, lines
    return brought(sum(float(line[7]) for line in each), sum(float(line[8]) for line in each) / 1e9)


def iperf_datagrams(job: Job) -> Figures:
    (line,) = iperf(job, "-b 100g -l {number}", "-u")
    return arrived(float(line[7]) / job.number, job.seconds)


def told(text: str) -> dict[str, str]:
    """Return what stands as NAME=VALUE."""
    return dict(word.partition("=")[::2] for word in text.split())


def neper(job: Job, words: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the server and the client say."""
    both = f"-P {job.port()} -l {{seconds}} {words}"
    port, server = job.serve(f"-C {{port}} {both}")
    text = job.drive(f"-C {port} {both} -c -H {{address}}")
    return told(job.receivers.finished(server)), told(text)


def neper_streams(job: Job, extra: str = "") -> Figures:
    said, _ = neper(job, f"-F {{number}} {extra.replace('512K', '524288')}")
    gbps = float(said["local_throughput"]) / 1e9
    return brought(gbps * 1e9 / 8 * (float(said["time_end"]) - float(said["time_start"])), gbps)


def neper_messages(job: Job) -> Figures:
    _, said = neper(job, f"-p 50,99 --no-delay -Q {{number}} -R {{number}} -B {max(job.number, 65536)}")
    return trips(*(1e6 * float(said[f"latency_{name}"]) for name in ("p50", "p99")))


def neper_datagrams(job: Job) -> Figures:
    said, _ = neper(job, "-B {number}")
    return arrived(float(said["local_throughput"]) / 8 / job.number * job.seconds, job.seconds)


def nuttcp(job: Job, words: str) -> dict[str, str]:
    port, _ = job.serve("-S -1 -P {port}")
    return told(job.drive(f"-P {port} -p {job.port()} -fparse -T{{seconds}} {words} {{address}}"))


def nuttcp_streams(job: Job) -> Figures:
    said = nuttcp(job, "-N{number}" if job.number > 1 else "")
    return brought(float(said["megabytes"]) * 2**20, float(said["rate_Mbps"]) / 1e3)


def nuttcp_datagrams(job: Job) -> Figures:
    said = nuttcp(job, "-u -l{number} -Ru")
    return arrived(float(said["megabytes"]) * 2**20 / job.number, float(said["real_seconds"]))


def qperf(job: Job, words: str) -> Figures:
    """Return the figures of one of qperf's tests by name, in base units (-uu)."""
    port, _ = job.serve("-lp {port}")
    text = job.drive(f"-lp {port} -ip {job.port()} {{address}} -t {{seconds}} -uu -vv {words}")
    said = (line.partition("=")[::2] for line in text.splitlines())
    return {name.strip(): float(value.split()[0].replace(",", "")) for name, value in said if value}


def qperf_streams(job: Job) -> Figures:
    said = qperf(job, "tcp_bw")
    return brought(said["recv_bytes"], said["bw"] * 8 / 1e9)


def qperf_datagrams(job: Job) -> Figures:
    return arrived(qperf(job, "-m {number} udp_bw")["recv_msgs"], job.seconds)


def sockperf_messages(job: Job, extra: str = "") -> Figures:
    port, server = job.serve(f"server --tcp -i {{address}} -p {{port}} {extra}")
    size = min(max(job.number, 14), 65507)
    said = job.drive(f"ping-pong --tcp -i {{address}} -p {port} {extra} -m {size} -t {{seconds}}")
    job.receivers.finished(server, signal.SIGTERM)
    halves = {percent: float(us) for percent, us in re.findall(r"percentile ([\d.]+) = +([\d.]+)", said)}
    return trips(2 * halves["50.000"], 2 * halves["99.000"])


def sockperf_datagrams(job: Job) -> Figures:
    port, server = job.serve("server -i {address} -p {port}", udp=True)
    said = job.drive(f"throughput -i {{address}} -p {port} -m {{number}} -t {{seconds}} --mps=max")
    length = re.search(r"messages sent in ([\d.]+) sec", said)
    time.sleep(0.1)
    came = re.search(r"Total (\d+) messages received", job.receivers.finished(server, signal.SIGINT))
    assert length is not None and came is not None, said
    return arrived(float(came[1]), float(length[1]))


def variants(name: str, program: str, run: Callable[..., Figures], work: str, *options: str) -> list[Tool]:
    """Return a tool with each of these options, by which it is named."""
    return [Tool(f"{name} {option}".strip(), program, partial(run, extra=option), work) for option in options]


COPY, DISCARD = "received data copied", "received data discarded"
SLEEP, POLL = "sleeps while it waits", "polls while it waits"
BATCHES, SINGLE = "several datagrams per system call", "one datagram per system call"
_SKIPPING: Final = ("--skip-rx-copy", "-l 512K --skip-rx-copy", "-l 512K -Z --skip-rx-copy")
TOOLS: Final = {
    "streams": (
        Tool("rigctl", "", agent_streams, DISCARD, own=True),
        Tool("rigctl, copy", "", partial(agent_streams, listen="copy=1"), COPY, own=True),
        *variants("iperf3", "iperf3", iperf3_streams, COPY, "", "-l 512K", "-l 512K -Z"),
        Tool("iperf", "iperf", iperf_streams, COPY),
        *variants("neper", "tcp_stream", neper_streams, COPY, "", "-B 512K"),
        Tool("nuttcp", "nuttcp", nuttcp_streams, COPY),
        Tool("qperf", "qperf", qperf_streams, COPY, most=1),
        *variants("iperf3", "iperf3", iperf3_streams, DISCARD, *_SKIPPING),
        *variants("neper", "tcp_stream", neper_streams, DISCARD, "-B 512K --skip-rx-copy"),
    ),
    "messages": (
        Tool("rigctl", "", partial(agent_messages, busy=0), SLEEP, own=True),
        Tool("rigctl, busy polling", "", partial(agent_messages, busy=1), POLL, own=True),
        Tool("sockperf", "sockperf", sockperf_messages, SLEEP),
        Tool("neper", "tcp_rr", neper_messages, SLEEP),
        *variants("sockperf", "sockperf", sockperf_messages, POLL, "--nonblocked"),
    ),
    "datagrams": (
        Tool("rigctl", "", agent_datagrams, BATCHES, own=True),
        *variants("iperf3", "iperf3", iperf3_datagrams, BATCHES, "--gsro"),
        Tool("iperf3", "iperf3", iperf3_datagrams, SINGLE),
        Tool("iperf", "iperf", iperf_datagrams, SINGLE),
        Tool("neper", "udp_stream", neper_datagrams, SINGLE),
        Tool("nuttcp", "nuttcp", nuttcp_datagrams, SINGLE),
        Tool("qperf", "qperf", qperf_datagrams, SINGLE),
        Tool("sockperf", "sockperf", sockperf_datagrams, SINGLE),
    ),
}
