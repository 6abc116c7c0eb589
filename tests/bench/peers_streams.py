"""Streams over TCP by each tool: one run between pairs of hosts, what arrived, and what it cost.

Each tool counts at its receiver. A tool that has no parallel streams (netperf) runs one process for each of them.
"""

import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from peers_lab import Crew, Ends, Job, await_listening, machine_busy_s, netserver, next_port, qperf_figures
from talk import Talk, joined, report_of


@dataclass(frozen=True)
class Run:
    """What one pair of a tool brought."""

    bytes: float
    gbps: float


DEFAULTS = (1, 10)
Pending = Callable[[], Run]
# Starts the receiver at once and returns what starts the sender, which returns what waits for the end.
Stream = Callable[[Job], Callable[[], Pending]]


def iperf3(*extra: str) -> Stream:
    def prepare(job: Job) -> Callable[[], Pending]:
        port = str(next_port())
        server = job.serve([job.binary, "-s", "-1", "-J", "-p", port, "-B", job.ends.address])
        await_listening(job.ends.receiver, int(port))

        def go() -> Pending:
            words = [
                job.binary,
                "-c",
                job.ends.address,
                "-p",
                port,
                "-t",
                str(job.seconds),
                "-P",
                str(job.number),
                "-J",
                *extra,
            ]
            client = job.drive(words)

            def result() -> Run:
                job.senders.finished(client)
                total = json.loads(job.receivers.finished(server))["end"]["sum_received"]
                return Run(total["bytes"], total["bits_per_second"] / 1e9)

            return result

        return go

    return prepare


def iperf(job: Job) -> Callable[[], Pending]:
    port = str(next_port())
    server = job.serve([job.binary, "-s", "-p", port, "-B", job.ends.address, "-y", "C"])
    await_listening(job.ends.receiver, int(port))

    def go() -> Pending:
        client = job.drive(
            [job.binary, "-c", job.ends.address, "-p", port, "-t", str(job.seconds), "-P", str(job.number), "-y", "C"]
        )

        def result() -> Run:
            job.senders.finished(client)
            time.sleep(0.1)
            lines = [line.split(",") for line in job.receivers.finished(server, signal.SIGTERM).splitlines()]
            each = [line for line in lines if line[5] != "-1"]
            assert len(each) == job.number, lines
            return Run(sum(float(line[7]) for line in each), sum(float(line[8]) for line in each) / 1e9)

        return result

    return go


def neper(*extra: str) -> Stream:
    def prepare(job: Job) -> Callable[[], Pending]:
        control, port = next_port(), next_port()
        words = [job.binary, "-C", str(control), "-P", str(port), "-l", str(job.seconds), "-F", str(job.number), *extra]
        server = job.serve(words)
        await_listening(job.ends.receiver, control)

        def go() -> Pending:
            client = job.drive([*words, "-c", "-H", job.ends.address])

            def result() -> Run:
                job.senders.finished(client)
                said = dict(line.partition("=")[::2] for line in job.receivers.finished(server).splitlines())
                gbps = float(said["local_throughput"]) / 1e9
                return Run(gbps * 1e9 / 8 * (float(said["time_end"]) - float(said["time_start"])), gbps)

            return result

        return go

    return prepare


def netperf(*extra: str) -> Stream:
    def prepare(job: Job) -> Callable[[], Pending]:
        port = str(next_port())
        job.serve([netserver(job.binary), "-D", "-p", port, "-L", job.ends.address])
        await_listening(job.ends.receiver, int(port))

        def go() -> Pending:
            words = [
                job.binary,
                "-p",
                port,
                "-H",
                job.ends.address,
                "-t",
                "TCP_STREAM",
                "-l",
                str(job.seconds),
                "-P",
                "0",
            ]
            words += ["--", *extra, "-o", "REMOTE_BYTES_RECVD,REMOTE_RECV_THROUGHPUT"]
            clients = [job.drive(words) for _ in range(job.number)]

            def result() -> Run:
                said = [job.senders.finished(client).strip().splitlines()[-1].split(",") for client in clients]
                return Run(sum(float(line[0]) for line in said), sum(float(line[1]) for line in said) / 1e3)

            return result

        return go

    return prepare


def nuttcp(job: Job) -> Callable[[], Pending]:
    control, port = next_port(), next_port()
    job.serve([job.binary, "-S", "-1", "-P", str(control)])
    await_listening(job.ends.receiver, control)

    def go() -> Pending:
        words = [job.binary, "-P", str(control), "-p", str(port), "-fparse", f"-T{job.seconds}"]
        client = job.drive([*words, *([f"-N{job.number}"] if job.number > 1 else []), job.ends.address])

        def result() -> Run:
            said = dict(word.partition("=")[::2] for word in job.senders.finished(client).split())
            return Run(float(said["megabytes"]) * 2**20, float(said["rate_Mbps"]) / 1e3)

        return result

    return go


def qperf(job: Job) -> Callable[[], Pending]:
    assert job.number == 1
    control, port = next_port(), next_port()
    job.serve([job.binary, "-lp", str(control)])
    await_listening(job.ends.receiver, control)

    def go() -> Pending:
        words = [
            job.binary,
            "-lp",
            str(control),
            "-ip",
            str(port),
            job.ends.address,
            "-t",
            str(job.seconds),
            "-uu",
            "-vv",
            "tcp_bw",
        ]
        client = job.drive(words)

        def result() -> Run:
            figures = qperf_figures(job.senders.finished(client))
            return Run(figures["recv_bytes"], figures["bw"] * 8 / 1e9)

        return result

    return go


def agent(extra: str = "", listen: str = "") -> Stream:
    def prepare(job: Job) -> Callable[[], Pending]:
        stack = ExitStack()
        receiver = stack.enter_context(Talk(job.receivers.command(job.ends.receiver, [job.binary])))
        sender = stack.enter_context(Talk(job.senders.command(job.ends.sender, [job.binary])))
        joined(
            receiver,
            sender,
            job.ends.address,
            job.ends.sender_address,
            interval_ms=100,
            flows=job.number,
            extra=extra,
            listen=listen,
        )

        def go() -> Pending:
            at_ns = time.monotonic_ns() + 20_000_000
            for side in (receiver, sender):
                side.send(f"start endpoint=1 at_ns={at_ns} duration_ms={job.seconds * 1000}")

            def result() -> Run:
                with stack:
                    for side in (sender, receiver):
                        assert side.event("ended", job.seconds + 15)["error"] is None
                    report = report_of(receiver)
                    for side in (sender, receiver):
                        side.end()
                totals = report.totals.values()
                length_ns = max(t["last_byte_ns"] for t in totals) - min(t["first_byte_ns"] for t in totals)
                count = sum(t["bytes"] for t in totals)
                return Run(count, count * 8 / length_ns)

            return result

        return go

    return prepare


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    run: Stream
    flows: int = 1000  # at most
    own: bool = False
    tuned: bool = False  # asked for what rigctl does by itself: larger pieces, no copy

    def takes(self, flows: int) -> bool:
        return flows <= self.flows


TOOLS = (
    Tool("rigctl", "", agent(listen="near=1"), own=True),
    Tool("rigctl, copy", "", agent(listen="copy=1 near=1"), own=True),
    Tool("iperf3", "iperf3", iperf3()),
    Tool("iperf", "iperf", iperf),
    Tool("neper", "tcp_stream", neper()),
    Tool("netperf", "netperf", netperf()),
    Tool("nuttcp", "nuttcp", nuttcp),
    Tool("qperf", "qperf", qperf, flows=1),
    Tool("iperf3 -l 512K -Z", "iperf3", iperf3("-l", "512K", "-Z"), tuned=True),
    Tool("neper -B 512K --skip-rx-copy", "tcp_stream", neper("-B", "524288", "--skip-rx-copy"), tuned=True),
    Tool("netperf -m 512K", "netperf", netperf("-m", "524288", "-M", "524288"), tuned=True),
)


def measured(tool: Tool, binary: str, pairs: list[Ends], flows: int, seconds: int) -> dict[str, float]:
    with Crew() as receivers, Crew() as senders:
        starts = [tool.run(Job(receivers, senders, ends, flows, seconds, binary)) for ends in pairs]
        before = machine_busy_s()
        runs = [result() for result in [start() for start in starts]]
        machine_s = machine_busy_s() - before
        return {
            "bytes": sum(run.bytes for run in runs),
            "gbps": sum(run.gbps for run in runs),
            "sender_cpu_s": senders.cpu_s(),
            "receiver_cpu_s": receivers.cpu_s(),
            "machine_cpu_s": machine_s,
        }
