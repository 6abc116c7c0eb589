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

from peers_lab import Crew, Ends, await_listening, machine_busy_s, netserver, next_port, qperf_figures
from talk import Talk, joined, report_of, started

Figures = dict[str, float]
Datagrams = Callable[[Crew, Crew, Ends, int, int, str], tuple[float, float]]
"""How many arrived, and within how many seconds."""
DEFAULTS = (64, 1472)


def agent(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    with (
        Talk(receivers.command(ends.receiver, [binary])) as receiver,
        Talk(senders.command(ends.sender, [binary])) as sender,
    ):
        joined(receiver, sender, ends.address, ends.sender_address, extra=f"transport=udp size={size}")
        started([receiver, sender], seconds * 1000)
        for side in (sender, receiver):
            assert side.event("ended", seconds + 15)["error"] is None
        return float(report_of(receiver).datagrams[0]["datagrams"]), seconds


def iperf3(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    port = str(next_port())
    server = receivers.start(ends.receiver, [binary, "-s", "-1", "-J", "-p", port, "-B", ends.address])
    await_listening(ends.receiver, int(port))
    words = [binary, "-c", ends.address, "-p", port, "-u", "-b", "0", "-l", str(size), "-t", str(seconds), "-J"]
    senders.finished(senders.start(ends.sender, words))
    total = json.loads(receivers.finished(server))["end"]["sum"]
    return total["packets"] - total["lost_packets"], seconds


def iperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    port = str(next_port())
    server = receivers.start(ends.receiver, [binary, "-s", "-u", "-p", port, "-B", ends.address, "-y", "C"])
    await_listening(ends.receiver, int(port), udp=True)
    words = [binary, "-c", ends.address, "-p", port, "-u", "-b", "100g", "-l", str(size), "-t", str(seconds), "-y", "C"]
    senders.finished(senders.start(ends.sender, words))
    time.sleep(0.1)
    (line,) = receivers.finished(server, signal.SIGTERM).splitlines()
    return float(line.split(",")[7]) / size, seconds


def neper(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    control, port = next_port(), next_port()
    words = [binary, "-C", str(control), "-P", str(port), "-l", str(seconds), "-B", str(size)]
    server = receivers.start(ends.receiver, words)
    await_listening(ends.receiver, control)
    senders.finished(senders.start(ends.sender, [*words, "-c", "-H", ends.address]))
    said = dict(line.partition("=")[::2] for line in receivers.finished(server).splitlines())
    return float(said["local_throughput"]) / 8 / size * seconds, seconds


def netperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    port = str(next_port())
    receivers.start(ends.receiver, [netserver(binary), "-D", "-p", port, "-L", ends.address])
    await_listening(ends.receiver, int(port))
    words = [binary, "-P", "0", "-p", port, "-H", ends.address, "-t", "UDP_STREAM", "-l", str(seconds), "--", "-R", "1"]
    words += ["-m", str(size), "-o", "REMOTE_BYTES_RECVD,ELAPSED_TIME"]
    said = senders.finished(senders.start(ends.sender, words)).strip().splitlines()[-1].split(",")
    return float(said[0]) / size, float(said[1])


def nuttcp(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    control, port = next_port(), next_port()
    receivers.start(ends.receiver, [binary, "-S", "-1", "-P", str(control)])
    await_listening(ends.receiver, control)
    words = [binary, "-P", str(control), "-p", str(port), "-fparse", "-u", f"-l{size}", "-Ru", f"-T{seconds}", ends.address]
    said = dict(word.partition("=")[::2] for word in senders.finished(senders.start(ends.sender, words)).split())
    return float(said["megabytes"]) * 2**20 / size, float(said["real_seconds"])


def qperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    control, port = str(next_port()), str(next_port())
    receivers.start(ends.receiver, [binary, "-lp", control])
    await_listening(ends.receiver, int(control))
    words = [binary, "-lp", control, "-ip", port, ends.address, "-t", str(seconds), "-m", str(size), "-uu", "-vv"]
    said = qperf_figures(senders.finished(senders.start(ends.sender, [*words, "udp_bw"])))
    return said["recv_msgs"], seconds


def sockperf(receivers: Crew, senders: Crew, ends: Ends, size: int, seconds: int, binary: str) -> tuple[float, float]:
    port = str(next_port())
    words = ["-i", ends.address, "-p", port]
    server = receivers.start(ends.receiver, [binary, "server", *words])
    await_listening(ends.receiver, int(port), udp=True)
    client = [binary, "throughput", *words, "-m", str(size), "-t", str(seconds), "--mps=max"]
    said = senders.finished(senders.start(ends.sender, client))
    length = re.search(r"messages sent in ([\d.]+) sec", said)
    time.sleep(0.1)
    came = re.search(r"Total (\d+) messages received", receivers.finished(server, signal.SIGINT))
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
        packets, length_s = tool.run(receivers, senders, pairs[0], size, seconds, binary)
        machine_s = machine_busy_s() - before
        return {
            "packets": packets,
            "seconds": length_s,
            "sender_cpu_s": senders.cpu_s(),
            "receiver_cpu_s": receivers.cpu_s(),
            "machine_cpu_s": machine_s,
        }
