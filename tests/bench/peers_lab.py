"""Where the peers are compared: two namespaces with a link between them, and processor time by control group.

Every tool meets the same kernel settings: cubic by the route, buffers as the kernel tunes them.
"""

import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import bench  # noqa: F401
from processes import eventually
from talk import Talk, joined
from two_links import Namespace, two_namespaces

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
