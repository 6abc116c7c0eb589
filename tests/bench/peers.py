"""The tools that are compared, how each is started and read, and where: two namespaces with a link between them.

Every tool meets the same kernel settings: cubic by the route, buffers as the kernel tunes them. Processor time is that
of a control group. Streams count what arrived, as a tool counts it at its receiver. Messages are a ping-pong over TCP,
one message at a time, of which p50 and p99 of the whole round trip are taken: both ends sleep in the kernel while they
wait, but for tools that are named so. sockperf prints half a round trip; its messages have 14 to 65,507 bytes.
Datagrams are sent as fast as a tool can, and those that arrived are counted; with the offloads off each crosses the
link by itself.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import bench  # noqa: F401
from processes import eventually
from talk import Report, Talk, joined, report_of, started
from two_links import Namespace, two_namespaces

from rigctl.model.latency import percentile_ns

DEADLINE_S = 30.0
SENDER, RECEIVER = "10.99.0.1", "10.99.0.2"
OFFLOADS: Final = ("tso", "gso", "gro", "tx-udp-segmentation")
Figures = dict[str, float]
_numbers = itertools.count()


@contextmanager
def laid_out(*, offloads: bool) -> Iterator[tuple[Namespace, Namespace]]:
    """Yield the namespaces of sender and receiver."""
    with two_namespaces() as ends:
        ends[0].run_lines(f"ip link add eth0 type veth peer name eth0 netns {ends[1].name}")
        for end, address in zip(ends, (SENDER, RECEIVER), strict=True):
            end.run_lines(
                f"ip address add {address}/24 dev eth0",
                *(f"ethtool -K eth0 {name} off" for name in OFFLOADS if not offloads),
                "ip link set eth0 up",
                # Cubic by the route: a namespace may not choose for itself what its host has not allowed to everybody.
                f"ip route replace 10.99.0.0/24 dev eth0 scope link src {address} proto kernel congctl cubic",
            )
        time.sleep(0.3)
        yield ends


class Crew:
    """The processes of one side of a tool and their children, in a control group that counts their time.

    They all run on `processor`; None: where the scheduler puts them.
    """

    def __init__(self, end: Namespace, processor: int | None) -> None:
        self._enter = [*end.enter, *(() if processor is None else ("taskset", "-c", str(processor)))]
        old = Path("/sys/fs/cgroup/cpuacct")
        root, self._file = (old, "cpuacct.usage") if old.is_dir() else (old.parent, "cpu.stat")
        self._folder = root / f"rigctl-peers-{os.getpid()}-{next(_numbers)}"
        self._folder.mkdir()
        self._scratch = tempfile.TemporaryDirectory()  # neper writes logs where it is started
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Crew":
        return self

    def command(self, words: Sequence[str]) -> list[str]:
        join = f'echo $$ >{self._folder}/cgroup.procs; exec "$@"'
        return ["sh", "-c", join, "sh", *self._enter, *words]

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        process = subprocess.Popen(self.command(words), cwd=self._scratch.name, **output)
        self.processes.append(process)
        return process

    def finished(self, process: subprocess.Popen[str], kill: signal.Signals | None = None) -> str:
        """Return the output of a process that has ended, by `kill` or by itself."""
        if kill is not None:
            self._signal(kill)
        return process.communicate(timeout=DEADLINE_S)[0]

    def cpu_s(self) -> float:
        text = (self._folder / self._file).read_text()
        return int(text) / 1e9 if self._file == "cpuacct.usage" else int(text.split()[1]) / 1e6

    def _signal(self, number: signal.Signals) -> list[int]:
        members = [int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()]
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return members

    def __exit__(self, *_: object) -> None:
        until_s = time.monotonic() + DEADLINE_S
        while self._signal(signal.SIGKILL) and time.monotonic() < until_s:
            for process in self.processes:
                process.poll()
            time.sleep(0.005)
        for process in self.processes:
            process.wait(DEADLINE_S)
            if process.stdout is not None:
                process.stdout.close()
        self._folder.rmdir()
        self._scratch.cleanup()


@dataclass(frozen=True)
class Job:
    """One run of a tool. Words may hold {port}, {address}, {seconds} and {number}."""

    receivers: Crew
    senders: Crew
    receiver: Namespace
    number: int  # of flows, or the size of messages
    binary: str
    seconds: int = 1

    def port(self) -> int:
        """A port of its own for each run: none waits for the one before it to be forgotten."""
        return 20000 + next(_numbers) % 10000

    def _words(self, words: str, port: int = 0) -> list[str]:
        filled = words.format(port=port, address=RECEIVER, seconds=self.seconds, number=self.number)
        return [self.binary, *filled.split()]

    def serve(self, words: str, udp: bool = False) -> tuple[int, subprocess.Popen[str]]:
        """Start the tool's server; return its port when it listens."""
        port = self.port()
        server = self.receivers.start(self._words(words, port))
        look = ("ss", "-Hln", "-u" if udp else "-t", f"sport = :{port}")
        eventually(lambda: self.receiver.run(*look).strip(), f"listens on port {port}")
        return port, server

    def drive(self, words: str) -> str:
        return self.senders.finished(self.senders.start(self._words(words)))

    @contextmanager
    def agents(self, **how: Any) -> Iterator[tuple[Talk, Talk]]:
        with (
            Talk(self.receivers.command([self.binary])) as receiver,
            Talk(self.senders.command([self.binary])) as sender,
        ):
            joined(receiver, sender, RECEIVER, SENDER, **how)
            yield receiver, sender


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    run: Callable[[Job], Figures]
    work: str  # tools that do the same work are compared
    own: bool = False
    most: int = 1_000_000  # flows, or bytes of a message


def measured(tool: Tool, binary: str, ends: tuple[Namespace, Namespace], number: int, *, pinned: bool) -> Figures:
    """`pinned`: senders on processor 0, receivers on 1, as taskset does it; else where the scheduler puts them."""
    processors = (0, 1) if pinned else (None, None)
    with Crew(ends[0], processors[0]) as senders, Crew(ends[1], processors[1]) as receivers:
        before = machine_busy_s()
        figures = tool.run(Job(receivers, senders, ends[1], number, binary))
        return figures | {
            "machine_cpu_s": machine_busy_s() - before,
            "sender_cpu_s": senders.cpu_s(),
            "receiver_cpu_s": receivers.cpu_s(),
        }


def machine_busy_s() -> float:
    """Processor time of the whole machine that was not idle, since boot."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


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
