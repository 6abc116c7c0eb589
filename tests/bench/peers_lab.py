"""Where the peers are compared: pairs of hosts in namespaces of their own, and processor time by control group.

Every tool meets the same kernel settings: cubic by the route, buffers as the kernel tunes them. "loopback"
is the loopback device of one namespace, with its MTU and offloads set like a link's.
"""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench  # noqa: F401
from talk import Talk, joined

DEADLINE_S = 30.0
Figures = dict[str, float]
OFFLOADS = ("tso", "gso", "gro", "tx-udp-segmentation")
_numbers = itertools.count()


@dataclass(frozen=True)
class Ends:
    """A pair: in which namespaces its two ends run, and the receiver's address."""

    sender: str
    receiver: str
    sender_address: str
    address: str


@dataclass(frozen=True)
class Place:
    kind: str  # namespaces | loopback
    pairs: int
    offloads: bool
    mtu: int
    pinned: (
        bool  # senders on processor 0, receivers on processor 1, as taskset does it; else where the scheduler puts them
    )

    def __str__(self) -> str:
        offloads, placement = "on" if self.offloads else "off", "taskset" if self.pinned else "scheduler"
        return f"{self.kind}, MTU {self.mtu}, offloads {offloads}, pairs {self.pairs}, placement {placement}"


def quietly(*words: str, check: bool = True) -> None:
    subprocess.run(words, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def laid_out(place: Place) -> Iterator[list[Ends]]:
    """The pairs of a place; nothing of them is left afterwards."""
    stem = f"rigctl-peers-{os.getpid()}"
    names: list[str] = []
    pairs: list[Ends] = []
    try:
        if place.kind == "loopback":
            names.append(f"{stem}-l")
            quietly("ip", "netns", "add", names[0])
            _set_device(names[0], "lo", place)
            # Without an address of another kind getaddrinfo(3) finds none for netperf.
            quietly("ip", "-n", names[0], "address", "add", "10.98.0.1/32", "dev", "lo")
            for own in ("127.0.0.0/8", "127.0.0.1"):  # the kernel makes a route for each
                _cubic(names[0], "table", "local", "local", own, "dev", "lo", "scope", "host", "src", "127.0.0.1")
            for i in range(1, place.pairs + 1):
                pairs.append(Ends(names[0], names[0], f"127.0.0.{100 + i}", f"127.0.0.{i}"))
        else:
            for i in range(place.pairs):
                here, there = f"{stem}-s{i}", f"{stem}-r{i}"
                names += [here, there]
                quietly("ip", "netns", "add", here)
                quietly("ip", "netns", "add", there)
                veth = ("link", "add", "eth0", "netns", here, "type", "veth", "peer", "name", "eth0", "netns", there)
                quietly("ip", *veth)
                for name, last in ((here, 1), (there, 2)):
                    quietly("ip", "-n", name, "address", "add", f"10.99.{i}.{last}/24", "dev", "eth0")
                    _set_device(name, "lo", None)
                    _set_device(name, "eth0", place)
                    _cubic(name, f"10.99.{i}.0/24", "dev", "eth0", "scope", "link", "src", f"10.99.{i}.{last}")
                pairs.append(Ends(here, there, f"10.99.{i}.1", f"10.99.{i}.2"))
        time.sleep(0.3)
        yield pairs
    finally:
        for name in names:
            quietly("ip", "netns", "del", name, check=False)


def _cubic(name: str, *route: str) -> None:
    """By the route: a namespace may not choose for itself what its host has not allowed to everybody."""
    quietly("ip", "-n", name, "route", "replace", *route, "proto", "kernel", "congctl", "cubic")


def _set_device(name: str, device: str, place: Place | None) -> None:
    if place is not None:
        quietly("ip", "-n", name, "link", "set", device, "mtu", str(place.mtu))
        if not place.offloads:
            for offload in OFFLOADS:  # the loopback device refuses some of them
                quietly(*inside(name, "ethtool", "-K", device, offload, "off"), check=device != "lo")
    quietly("ip", "-n", name, "link", "set", device, "up")


def inside(name: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", name, *words]


def _accounting() -> tuple[Path, str]:
    """The folder of control groups that counts processor time, and the file in each that holds it."""
    old = Path("/sys/fs/cgroup/cpuacct")
    return (old, "cpuacct.usage") if old.is_dir() else (Path("/sys/fs/cgroup"), "cpu.stat")


class Crew:
    """The processes of one side of a tool and their children, in a control group that counts their time.

    They all run on `processor`; None: where the scheduler puts them.
    """

    def __init__(self, processor: int | None = None) -> None:
        self._pinned = [] if processor is None else ["taskset", "-c", str(processor)]
        root, self._file = _accounting()
        self._folder = root / f"rigctl-peers-{os.getpid()}-{next(_numbers)}"
        self._folder.mkdir()
        self._scratch = tempfile.TemporaryDirectory()  # neper writes logs where it is started
        self.processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Crew":
        return self

    def command(self, namespace: str, words: Sequence[str]) -> list[str]:
        join = f'echo $$ >{self._folder}/cgroup.procs; exec "$@"'
        return ["sh", "-c", join, "sh", *inside(namespace, *self._pinned, *words)]

    def start(self, namespace: str, words: Sequence[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command(namespace, words),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._scratch.name,
        )
        self.processes.append(process)
        return process

    def finished(self, process: subprocess.Popen[str], kill: signal.Signals | None = None) -> str:
        """What a process printed, once it has ended, by `kill` or by itself."""
        if kill is not None:
            self._signal(kill)
        return process.communicate(timeout=DEADLINE_S)[0]

    def cpu_s(self) -> float:
        text = (self._folder / self._file).read_text()
        return int(text) / 1e9 if self._file == "cpuacct.usage" else int(text.split()[1]) / 1e6

    def _signal(self, number: signal.Signals) -> list[int]:
        members = [int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()]
        for pid in members:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
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
    """One run of a tool on one pair. Words may hold {port}, {address}, {seconds} and {number}."""

    receivers: Crew
    senders: Crew
    ends: Ends
    number: int  # of flows, or the size of messages
    seconds: int
    binary: str

    def port(self) -> int:
        """A port of its own for each run: none waits for the one before it to be forgotten."""
        return 20000 + next(_numbers) % 10000

    def _words(self, words: str, binary: str, port: int = 0) -> list[str]:
        said = words.format(port=port, address=self.ends.address, seconds=self.seconds, number=self.number)
        return [binary, *said.split()]

    def serve(self, words: str, program: str = "", udp: bool = False) -> tuple[int, subprocess.Popen[str]]:
        """Start the tool's server, or another program from beside it; return its port when it listens."""
        port, binary = self.port(), str(Path(self.binary).with_name(program)) if program else self.binary
        server = self.receivers.start(self.ends.receiver, self._words(words, binary, port))
        await_listening(self.ends.receiver, port, udp)
        return port, server

    def start(self, words: str) -> subprocess.Popen[str]:
        return self.senders.start(self.ends.sender, self._words(words, self.binary))

    def drive(self, words: str) -> str:
        """Run the tool's client; return what it printed."""
        return self.senders.finished(self.start(words))

    @contextmanager
    def agents(self, **how: Any) -> Iterator[tuple[Talk, Talk]]:
        """Receiver and sender of rigctl, joined."""
        with (
            Talk(self.receivers.command(self.ends.receiver, [self.binary])) as receiver,
            Talk(self.senders.command(self.ends.sender, [self.binary])) as sender,
        ):
            joined(receiver, sender, self.ends.address, self.ends.sender_address, **how)
            yield receiver, sender


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    run: Callable[[Job], Figures]
    work: str  # tools that do the same work are compared
    own: bool = False
    most: int = 1_000_000  # flows, or bytes of a message


def machine_busy_s() -> float:
    """Processor time of the whole machine that was not idle, since boot."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def await_listening(namespace: str, port: int, udp: bool = False) -> None:
    until_s = time.monotonic() + DEADLINE_S
    words = inside(namespace, "ss", "-Hln", "-u" if udp else "-t", f"sport = :{port}")
    while not subprocess.run(words, capture_output=True, check=True).stdout.strip():
        if time.monotonic() > until_s:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.01)


def program(name: str, folders: Sequence[Path]) -> str | None:
    """A peer's program in one of `folders` or on the PATH; None where it isn't there."""
    for folder in folders:
        if (folder / name).is_file():
            return str((folder / name).resolve())
    return shutil.which(name)


def qperf_test(job: Job, test: str, *, sized: bool = True) -> Figures:
    """Return the figures of one of qperf's tests by name, in base units (-uu)."""
    port, _ = job.serve("-lp {port}")
    size = "-m {number}" if sized else ""
    text = job.drive(f"-lp {port} -ip {job.port()} {{address}} -t {{seconds}} {size} -uu -vv {test}")
    said = (line.partition("=")[::2] for line in text.splitlines())
    return {name.strip(): float(value.split()[0].replace(",", "")) for name, value in said if value}
