"""Datagrams by each tool as fast as it sends them: those that arrived, and what they cost both processes.

With the offloads off each datagram crosses the link by itself, whoever sends it.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from peers_lab import Crew, Ends, Job, await_listening, machine_busy_s, netserver, next_port, qperf_test
from talk import Talk, joined, report_of, started

Figures = dict[str, float]
Datagrams = Callable[[Job], tuple[float, float]]
"""How many arrived, and within how many job.seconds."""
DEFAULTS = (64, 1472)


def agent(job: Job) -> tuple[float, float]:
    with (
        Talk(job.receivers.command(job.ends.receiver, [job.binary])) as receiver,
        Talk(job.senders.command(job.ends.sender, [job.binary])) as sender,
    ):
        joined(receiver, sender, job.ends.address, job.ends.sender_address, extra=f"transport=udp size={job.number}")
        started([receiver, sender], job.seconds * 1000)
        for side in (sender, receiver):
            assert side.event("ended", job.seconds + 15)["error"] is None
        return float(report_of(receiver).datagrams[0]["datagrams"]), job.seconds


def iperf3(job: Job) -> tuple[float, float]:
    port = str(next_port())
    server = job.serve([job.binary, "-s", "-1", "-J", "-p", port, "-B", job.ends.address])
    await_listening(job.ends.receiver, int(port))
    words = [
        job.binary,
        "-c",
        job.ends.address,
        "-p",
        port,
        "-u",
        "-b",
        "0",
        "-l",
        str(job.number),
        "-t",
        str(job.seconds),
        "-J",
    ]
    job.senders.finished(job.drive(words))
    total = json.loads(job.receivers.finished(server))["end"]["sum"]
    return total["packets"] - total["lost_packets"], job.seconds


def iperf(job: Job) -> tuple[float, float]:
    port = str(next_port())
    server = job.serve([job.binary, "-s", "-u", "-p", port, "-B", job.ends.address, "-y", "C"])
    await_listening(job.ends.receiver, int(port), udp=True)
    words = [
        job.binary,
        "-c",
        job.ends.address,
        "-p",
        port,
        "-u",
        "-b",
        "100g",
        "-l",
        str(job.number),
        "-t",
        str(job.seconds),
        "-y",
        "C",
    ]
    job.senders.finished(job.drive(words))
    time.sleep(0.1)
    (line,) = job.receivers.finished(server, signal.SIGTERM).splitlines()
    return float(line.split(",")[7]) / job.number, job.seconds


def neper(job: Job) -> tuple[float, float]:
    control, port = next_port(), next_port()
    words = [job.binary, "-C", str(control), "-P", str(port), "-l", str(job.seconds), "-B", str(job.number)]
    server = job.serve(words)
    await_listening(job.ends.receiver, control)
    job.senders.finished(job.drive([*words, "-c", "-H", job.ends.address]))
    said = dict(line.partition("=")[::2] for line in job.receivers.finished(server).splitlines())
    return float(said["local_throughput"]) / 8 / job.number * job.seconds, job.seconds


def netperf(job: Job) -> tuple[float, float]:
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
        "UDP_STREAM",
        "-l",
        str(job.seconds),
        "--",
        "-R",
        "1",
    ]
    words += ["-m", str(job.number), "-o", "REMOTE_BYTES_RECVD,ELAPSED_TIME"]
    said = job.senders.finished(job.drive(words)).strip().splitlines()[-1].split(",")
    return float(said[0]) / job.number, float(said[1])


def nuttcp(job: Job) -> tuple[float, float]:
    control, port = next_port(), next_port()
    job.serve([job.binary, "-S", "-1", "-P", str(control)])
    await_listening(job.ends.receiver, control)
    words = [
        job.binary,
        "-P",
        str(control),
        "-p",
        str(port),
        "-fparse",
        "-u",
        f"-l{job.number}",
        "-Ru",
        f"-T{job.seconds}",
        job.ends.address,
    ]
    said = dict(word.partition("=")[::2] for word in job.senders.finished(job.drive(words)).split())
    return float(said["megabytes"]) * 2**20 / job.number, float(said["real_seconds"])


def qperf(job: Job) -> tuple[float, float]:
    said = qperf_test(job, "udp_bw")
    return said["recv_msgs"], job.seconds


def sockperf(job: Job) -> tuple[float, float]:
    port = str(next_port())
    words = ["-i", job.ends.address, "-p", port]
    server = job.serve([job.binary, "server", *words])
    await_listening(job.ends.receiver, int(port), udp=True)
    client = [job.binary, "throughput", *words, "-m", str(job.number), "-t", str(job.seconds), "--mps=max"]
    said = job.senders.finished(job.drive(client))
    length = re.search(r"messages sent in ([\d.]+) sec", said)
    time.sleep(0.1)
    came = re.search(r"Total (\d+) messages received", job.receivers.finished(server, signal.SIGINT))
    assert length is not None and came is not None, said
    return float(came[1]), float(length[1])


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    run: Datagrams
    own: bool = False
    tuned: bool = False

    def takes(self, _size: int) -> bool:
        return True


TOOLS = (
    Tool("rigctl", "", agent, own=True),
    Tool("iperf3", "iperf3", iperf3),
    Tool("iperf", "iperf", iperf),
    Tool("neper", "udp_stream", neper),
    Tool("netperf", "netperf", netperf),
    Tool("nuttcp", "nuttcp", nuttcp),
    Tool("qperf", "qperf", qperf),
    Tool("sockperf", "sockperf", sockperf),
)


def measured(tool: Tool, binary: str, pairs: list[Ends], size: int, seconds: int) -> Figures:
    with Crew() as receivers, Crew() as senders:
        before = machine_busy_s()
        packets, length_s = tool.run(Job(receivers, senders, pairs[0], size, seconds, binary))
        machine_s = machine_busy_s() - before
        return {
            "packets": packets,
            "seconds": length_s,
            "sender_cpu_s": senders.cpu_s(),
            "receiver_cpu_s": receivers.cpu_s(),
            "machine_cpu_s": machine_s,
        }
