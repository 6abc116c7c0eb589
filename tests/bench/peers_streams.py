"""Streams over TCP by each tool: what arrived, as the tool counts it at its receiver."""

import json
import signal
import time
from collections.abc import Callable

from peers_lab import Figures, Job, Tool, qperf_test
from talk import report_of, started

DEFAULTS = (1, 10)
Stream = Callable[[Job], Figures]


def brought(count: float, gbps: float) -> Figures:
    return {"bytes": count, "gbps": gbps}


def iperf3(extra: str = "") -> Stream:
    def run(job: Job) -> Figures:
        port, server = job.serve("-s -1 -J -p {port} -B {address}")
        job.drive(f"-c {{address}} -p {port} -t {{seconds}} -P {{number}} -J {extra}")
        total = json.loads(job.receivers.finished(server))["end"]["sum_received"]
        return brought(total["bytes"], total["bits_per_second"] / 1e9)

    return run


def iperf(job: Job) -> Figures:
    port, server = job.serve("-s -p {port} -B {address} -y C")
    job.drive(f"-c {{address}} -p {port} -t {{seconds}} -P {{number}} -y C")
    time.sleep(0.1)
    lines = [line.split(",") for line in job.receivers.finished(server, signal.SIGTERM).splitlines()]
    each = [line for line in lines if line[5] != "-1"]
    assert len(each) == job.number, lines
    return brought(sum(float(line[7]) for line in each), sum(float(line[8]) for line in each) / 1e9)


def neper(extra: str = "") -> Stream:
    def run(job: Job) -> Figures:
        data = job.port()
        port, server = job.serve(f"-C {{port}} -P {data} -l {{seconds}} -F {{number}} {extra}")
        job.drive(f"-C {port} -P {data} -l {{seconds}} -F {{number}} {extra} -c -H {{address}}")
        said = dict(line.partition("=")[::2] for line in job.receivers.finished(server).splitlines())
        gbps = float(said["local_throughput"]) / 1e9
        return brought(gbps * 1e9 / 8 * (float(said["time_end"]) - float(said["time_start"])), gbps)

    return run


def nuttcp(job: Job) -> Figures:
    port, _ = job.serve("-S -1 -P {port}")
    flows = "-N{number}" if job.number > 1 else ""
    text = job.drive(f"-P {port} -p {job.port()} -fparse -T{{seconds}} {flows} {{address}}")
    said = dict(word.partition("=")[::2] for word in text.split())
    return brought(float(said["megabytes"]) * 2**20, float(said["rate_Mbps"]) / 1e3)


def qperf(job: Job) -> Figures:
    said = qperf_test(job, "tcp_bw", sized=False)
    return brought(said["recv_bytes"], said["bw"] * 8 / 1e9)


def agent(listen: str = "") -> Stream:
    def run(job: Job) -> Figures:
        with job.agents(interval_ms=100, flows=job.number, listen=listen) as (receiver, sender):
            started(receiver, sender, job.seconds * 1000)
            for side in (sender, receiver):
                assert side.event("ended", job.seconds + 15)["error"] is None
            totals = report_of(receiver).totals.values()
        length_ns = max(t["last_byte_ns"] for t in totals) - min(t["first_byte_ns"] for t in totals)
        count = sum(t["bytes"] for t in totals)
        return brought(count, count * 8 / length_ns)

    return run


COPY, DISCARD = "received data copied", "received data discarded"
TOOLS = (
    Tool("rigctl", "", agent(), DISCARD, own=True),
    Tool("rigctl, copy", "", agent("copy=1"), COPY, own=True),
    Tool("iperf3", "iperf3", iperf3(), COPY),
    Tool("iperf3 -l 512K", "iperf3", iperf3("-l 512K"), COPY),
    Tool("iperf3 -l 512K -Z", "iperf3", iperf3("-l 512K -Z"), COPY),
    Tool("iperf", "iperf", iperf, COPY),
    Tool("neper", "tcp_stream", neper(), COPY),
    Tool("neper -B 512K", "tcp_stream", neper("-B 524288"), COPY),
    Tool("nuttcp", "nuttcp", nuttcp, COPY),
    Tool("qperf", "qperf", qperf, COPY, most=1),
    Tool("iperf3 --skip-rx-copy", "iperf3", iperf3("--skip-rx-copy"), DISCARD),
    Tool("iperf3 -l 512K --skip-rx-copy", "iperf3", iperf3("-l 512K --skip-rx-copy"), DISCARD),
    Tool("iperf3 -l 512K -Z --skip-rx-copy", "iperf3", iperf3("-l 512K -Z --skip-rx-copy"), DISCARD),
    Tool("neper -B 512K --skip-rx-copy", "tcp_stream", neper("-B 524288 --skip-rx-copy"), DISCARD),
)
