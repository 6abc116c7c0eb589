"""Datagrams by each tool as fast as it sends them: those that arrived, and what they cost both processes.

With the offloads off each datagram crosses the link by itself, whoever sends it.
"""

import json
import re
import signal
import time
from collections.abc import Callable

from peers_lab import Figures, Job, Tool, qperf_test
from talk import report_of, started

DEFAULTS = (64, 1472)


def arrived(packets: float, seconds: float) -> Figures:
    return {"packets": packets, "seconds": seconds}


def agent(job: Job) -> Figures:
    with job.agents(extra=f"transport=udp size={job.number}") as (receiver, sender):
        started(receiver, sender, job.seconds * 1000)
        for side in (sender, receiver):
            assert side.event("ended", job.seconds + 15)["error"] is None
        return arrived(float(report_of(receiver).datagrams[0]["datagrams"]), job.seconds)


def iperf3(extra: str = "") -> Callable[[Job], Figures]:
    def run(job: Job) -> Figures:
        port, server = job.serve("-s -1 -J -p {port} -B {address}")
        job.drive(f"-c {{address}} -p {port} -u -b 0 -l {{number}} -t {{seconds}} -J {extra}")
        total = json.loads(job.receivers.finished(server))["end"]["sum"]
        return arrived(total["packets"] - total["lost_packets"], job.seconds)

    return run


def iperf(job: Job) -> Figures:
    port, server = job.serve("-s -u -p {port} -B {address} -y C", udp=True)
    job.drive(f"-c {{address}} -p {port} -u -b 100g -l {{number}} -t {{seconds}} -y C")
    time.sleep(0.1)
    (line,) = job.receivers.finished(server, signal.SIGTERM).splitlines()
    return arrived(float(line.split(",")[7]) / job.number, job.seconds)


def neper(job: Job) -> Figures:
    data = job.port()
    port, server = job.serve(f"-C {{port}} -P {data} -l {{seconds}} -B {{number}}")
    job.drive(f"-C {port} -P {data} -l {{seconds}} -B {{number}} -c -H {{address}}")
    said = dict(line.partition("=")[::2] for line in job.receivers.finished(server).splitlines())
    return arrived(float(said["local_throughput"]) / 8 / job.number * job.seconds, job.seconds)


def nuttcp(job: Job) -> Figures:
    port, _ = job.serve("-S -1 -P {port}")
    text = job.drive(f"-P {port} -p {job.port()} -fparse -u -l{{number}} -Ru -T{{seconds}} {{address}}")
    said = dict(word.partition("=")[::2] for word in text.split())
    return arrived(float(said["megabytes"]) * 2**20 / job.number, float(said["real_seconds"]))


def qperf(job: Job) -> Figures:
    return arrived(qperf_test(job, "udp_bw")["recv_msgs"], job.seconds)


def sockperf(job: Job) -> Figures:
    port, server = job.serve("server -i {address} -p {port}", udp=True)
    said = job.drive(f"throughput -i {{address}} -p {port} -m {{number}} -t {{seconds}} --mps=max")
    length = re.search(r"messages sent in ([\d.]+) sec", said)
    time.sleep(0.1)
    came = re.search(r"Total (\d+) messages received", job.receivers.finished(server, signal.SIGINT))
    assert length is not None and came is not None, said
    return arrived(float(came[1]), float(length[1]))


BATCHES, SINGLE = "several datagrams per system call", "one datagram per system call"
TOOLS = (
    Tool("rigctl", "", agent, BATCHES, own=True),
    Tool("iperf3 --gsro", "iperf3", iperf3("--gsro"), BATCHES),
    Tool("iperf3", "iperf3", iperf3(), SINGLE),
    Tool("iperf", "iperf", iperf, SINGLE),
    Tool("neper", "udp_stream", neper, SINGLE),
    Tool("nuttcp", "nuttcp", nuttcp, SINGLE),
    Tool("qperf", "qperf", qperf, SINGLE),
    Tool("sockperf", "sockperf", sockperf, SINGLE),
)
