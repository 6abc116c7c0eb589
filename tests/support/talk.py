"""Talks to an agent's process directly: sends orders, reads JSON lines, and waits with deadlines."""

import json
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from known import known
from processes import DEADLINE_S, end, eventually, output_of

Line = dict[str, Any]
TOKEN = "0123456789abcdef" * 2
AGENTS: Final = Path(__file__).parents[2] / "agents"
LONG_MS: Final = 300_000
"""A duration of traffic that ends by its work or by `stop`: no test lasts so long."""


class Talk:
    """`command` is the agent's; use it as a context manager. `enter`: what runs a program in the agent's network.

    Not every agent `greets` at once: one that waits for a lock does so when it has the lock. Without a `--watchdog` of
    its own the agent waits an hour for its next order, so that no slow test loses it.
    """

    def __init__(self, command: Sequence[str], *arguments: str, enter: Sequence[str] = (), greets: bool = True) -> None:
        words = [*command, *(() if "--watchdog" in arguments else ("--watchdog", "3600")), *arguments]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(words, bufsize=0, **pipes)
        self.enter = enter
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._events: list[Line] = []
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        self.hello = self.event("hello") if greets else {}

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process)

    def _read(self) -> None:
        for line in known(self.process.stdout):
            self._lines.put(line)
        self._lines.put(b"")

    def _line(self, until_s: float) -> Line:
        try:
            line = self._lines.get(timeout=max(0.01, until_s - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"no line came in time; events so far: {self._events}") from None
        if not line:
            raise EOFError(known(self.process.stderr).read().decode())
        assert len(line) <= 16384
        parsed: Line = json.loads(line)
        return parsed

    def write(self, data: bytes) -> None:
        known(self.process.stdin).write(data)

    def send(self, order: str) -> int:
        self._number += 1
        self.write(f"{self._number} {order}\n".encode())
        return self._number

    def answer(self, number: int | None, deadline_s: float = DEADLINE_S) -> list[Line]:
        """Return all lines of the answer to an order. Events that arrive meanwhile are kept for `event`."""
        parts: list[Line] = []
        until_s = time.monotonic() + deadline_s
        while True:
            line = self._line(until_s)
            if "event" in line:
                self._events.append(line)
            elif line["id"] == number:
                parts.append(line)
                if "ok" in line:
                    return parts

    def ask(self, order: str) -> Line:
        """Send `order` and return the last line of the answer."""
        return self.answer(self.send(order))[-1]

    def event(self, name: str, deadline_s: float = DEADLINE_S) -> Line:
        until_s = time.monotonic() + deadline_s
        while True:
            for event in self._events:
                if event["event"] == name:
                    self._events.remove(event)
                    return event
            line = self._line(until_s)
            if "event" in line:
                self._events.append(line)

    def events(self, name: str) -> list[Line]:
        return [event for event in self._events if event["event"] == name]

    def forget_events(self) -> None:
        self._events.clear()

    def end(self) -> int:
        known(self.process.stdin).close()
        return self.process.wait(DEADLINE_S)

    def listening_ports(self) -> list[int]:
        """Return the TCP ports on which this process listens."""
        shown = output_of([*self.enter, "ss", "-Hltnp"]).splitlines()
        return [int(line.split()[3].rpartition(":")[2]) for line in shown if f",pid={self.process.pid}," in line]


Start = Callable[..., Talk]
"""The fixture `start` of the agent's tests: starts an agent that ends with the test."""


def settings(flows: int = 1, interval_ms: int = 50, wait_ms: int = 60_000, extra: str = "") -> str:
    return f"token={TOKEN} flows={flows} interval_ms={interval_ms} wait_ms={wait_ms} {extra}"


def listening(receiver: Talk, address: str = "127.0.0.1", more: str = "", **how: Any) -> int:
    answer = receiver.ask(f"listen endpoint=1 address={address} {settings(**how)} {more}")
    assert answer["ok"], answer
    return int(answer["port"])


def connecting(port: int, **how: Any) -> str:
    """Return the order that connects endpoint 1 to a port of 127.0.0.1."""
    return f"connect endpoint=1 address=127.0.0.1 port={port} bind=127.0.0.1 {settings(**how)}"


def joined(
    receiver: Talk,
    sender: Talk,
    address: str = "127.0.0.1",
    bind: str | None = None,
    *,
    listen: str = "",
    connect: str = "",
    **how: Any,
) -> int:
    """Connect two agents, ready to start; return the port. `listen`, `connect`: more keys of the order of this name."""
    port = listening(receiver, address, more=listen, **how)
    side = f"address={address} port={port} bind={bind or address}"
    connected = sender.ask(f"connect endpoint=1 {side} {settings(**how)} {connect}")
    assert connected["ok"], connected
    assert receiver.ask("ready endpoint=1")["ok"]
    return port


def begin(agent: Talk, duration_ms: int = LONG_MS, how: str = "", at_ns: int | None = None) -> int:
    """Start the traffic of endpoint 1 at `at_ns` of the monotonic clock (default: in 30 ms), and return that time."""
    at_ns = time.monotonic_ns() + 30_000_000 if at_ns is None else at_ns
    answer = agent.ask(f"start endpoint=1 at_ns={at_ns} duration_ms={duration_ms} {how}".rstrip())
    assert answer["ok"], answer
    return at_ns


def started(receiver: Talk, sender: Talk, duration_ms: int = LONG_MS, how: str = "", at_ns: int | None = None) -> int:
    """Start traffic, which the sender ends after `duration_ms`. The receiver takes what comes, however late."""
    return begin(sender, duration_ms, how, begin(receiver, LONG_MS, how, at_ns))


def shown(sender: Talk, port: int, value: str, address: str = "127.0.0.1") -> list[int]:
    """Return what the kernel says now, by this name of `ss`, of each connection to a port."""
    to = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    said = output_of([*sender.enter, "ss", "-Htin", "dst", to])
    return [int(found) for found in re.findall(rf"\b{value}:(\d+)", said)]


def arrived(sender: Talk, port: int, count: int = 1, flows: int = 1, address: str = "127.0.0.1") -> None:
    least = 21 + count  # SYN and opening come before the first data
    eventually(lambda: sum(acked >= least for acked in shown(sender, port, "bytes_acked", address)) >= flows)


def flowed(sender: Talk, port: int, count: int, flows: int) -> None:
    """Wait until `count` more bytes of each of the flows have arrived."""
    arrived(sender, port, max(shown(sender, port, "bytes_acked")) + count, flows)


def progressed(receiver: Talk, count: int = 1) -> int:
    """Wait until a receiver has told of `count` bytes at endpoint 1, as it does every 250 ms; return its bytes."""
    while (told := int(receiver.event("progress")["bytes"].get("1", 0))) < count:
        pass
    return told


def at_work(agent: Talk, flows: int) -> None:
    """Wait until the threads of so many flows have taken a millisecond of processor time each: they move bytes."""
    threads = [task for task in tasks_of(agent) if task.name != str(agent.process.pid)]

    def busy() -> int:
        return sum(int((thread / "schedstat").read_text().split()[0]) > 1_000_000 for thread in threads)

    eventually(lambda: busy() >= flows)


def asleep(agent: Talk) -> None:
    tasks = tasks_of(agent)
    eventually(lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in tasks))


def tasks_of(agent: Talk) -> list[Path]:
    return list(Path(f"/proc/{agent.process.pid}/task").iterdir())


def served(*agents: Talk) -> None:
    """Wait until each agent has handled all earlier input, which it does before it answers an order."""
    for _ in range(2):
        assert all(agent.ask("ping")["ok"] for agent in agents)


def completed(*agents: Talk) -> None:
    """Wait until the traffic of each agent has ended; fail if it ended with an error."""
    for agent in agents:
        ended = agent.event("ended")
        assert ended["error"] is None, ended


def flowing(
    start: Start, how: str = "", duration_ms: int = LONG_MS, at_ns: int | None = None, **what: Any
) -> tuple[Talk, Talk, int]:
    """Return a receiver and a sender with started traffic, and their port. `what`: parameters of `joined`."""
    receiver, sender = start(), start()
    port = joined(receiver, sender, **what)
    started(receiver, sender, duration_ms, how, at_ns)
    return receiver, sender, port


def ran(
    start: Callable[[], Talk], how: str = "", *, until: int | None = None, **what: Any
) -> tuple["Report", "Report"]:
    """Return the reports of receiver and sender after traffic without error. `what`: parameters of `flowing`.

    The sender ends when its work is done or its duration is over. With `until` (TCP only), it is stopped once `until`
    bytes of each flow have arrived, so that the amount does not depend on the machine's speed.
    """
    receiver, sender, port = flowing(start, how, **what)
    if until is None:
        return reports(receiver, sender)
    arrived(sender, port, until, what.get("flows", 1), what.get("address", "127.0.0.1"))
    return stopped(receiver, sender)


def stopped(receiver: Talk, sender: Talk) -> tuple["Report", "Report"]:
    assert sender.ask("stop endpoint=1")["ok"]
    return reports(receiver, sender)


def reports(receiver: Talk, sender: Talk) -> tuple["Report", "Report"]:
    completed(receiver, sender)
    return report_of(receiver), report_of(sender)


def close(*agents: Talk) -> None:
    for agent in agents:
        assert agent.ask("close endpoint=1")["ok"]


class Report:
    """An agent's report: totals, counts, histogram buckets and absolute rows by flow, and the last line."""

    def __init__(self, lines: list[Line]) -> None:
        self.last = lines[-1]
        assert self.last["ok"], self.last
        self.totals = {line["flow"]: line for line in lines if "bytes" in line}
        self.datagrams = {line["flow"]: line for line in lines if "datagrams" in line}
        self.connections = {line["flow"]: line["connections"] for line in lines if "connections" in line}
        self.multicast = {line["flow"]: line["multicast"] for line in lines if "multicast" in line}
        self.requests = {line["flow"]: line["requests"] for line in lines if "requests" in line}
        self.buckets: dict[int, list[list[int]]] = {flow: [] for flow in self.totals}
        self.rows: dict[int, list[list[int]]] = {flow: [] for flow in self.totals}
        self.columns: list[str] = []
        for line in lines:
            if "buckets" in line:
                self.buckets[line["flow"]] += line["buckets"]
            if "rows" in line:
                rows = self.rows[line["flow"]]
                assert line["from"] == len(rows)
                self.columns = line["columns"]
                for row in line["rows"]:
                    rows.append([a + b for a, b in zip(rows[-1], row, strict=True)] if rows else row)


def report_of(agent: Talk) -> Report:
    return Report(agent.answer(agent.send("report endpoint=1")))
