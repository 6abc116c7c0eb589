"""Two agents on one host send to each other in every kind of test: `python two_agents.py COMMAND…` starts an agent.

Nothing but the standard library is needed, so that it also runs on Windows (.github/workflows/windows.yml).
"""

import json
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import quote

DEADLINE_S = 120
FOLDER = quote(str(Path.cwd()), safe="")
KINDS = {
    "tcp": ("", ""),
    "udp": ("transport=udp size=1200", "rate=20000000"),
    "udp, as fast as possible": ("transport=udp size=1200", ""),
    "pingpong": ("test=pingpong size=1000", "iterations=200"),
    "udp pingpong": ("test=pingpong transport=udp size=1000", "iterations=200"),
    "blast": ("test=blast size=100000", "iterations=50"),
    "file": ("test=file size=3000000 disk=0", ""),
    "file on disk": (f"test=file size=3000000 disk=1 folder={FOLDER}", ""),
    "probe": ("test=probe transport=udp size=64", ""),
}


class Agent:
    """An agent; `order` returns all lines of an answer."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*command, "--watchdog", "60"], stdin=pipe, stdout=pipe)
        self._timer = Timer(DEADLINE_S, self.process.kill)
        self._timer.start()
        self._events: list[dict[str, Any]] = []
        self._number = 0
        self.hello = self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"the agent ended: {self.process.poll()}"
        assert not line.endswith(b"\r\n"), "the output is text, not binary"
        found: dict[str, Any] = json.loads(line)
        return found

    def order(self, text: str) -> list[dict[str, Any]]:
        assert self.process.stdin is not None
        self._number += 1
        self.process.stdin.write(f"{self._number} {text}\n".encode())
        self.process.stdin.flush()
        lines: list[dict[str, Any]] = []
        while not lines or "ok" not in lines[-1]:
            line = self._line()
            (lines if line.get("id") == self._number else self._events).append(line)
        assert lines[-1]["ok"], f"{text}: {lines[-1]}"
        return lines

    def wait_end(self, endpoint: int) -> None:
        while not any(event.get("event") == "ended" and event["endpoint"] == endpoint for event in self._events):
            self._events.append(self._line())
        assert not [event for event in self._events if event.get("error")], self._events
        self._events.clear()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)

    def kill(self) -> None:
        self._timer.cancel()
        self.process.kill()


def measure(sender: Agent, receiver: Agent, kind: str, address: str) -> tuple[int, int]:
    """Return the bytes that two flows sent and received in a test of this kind."""
    keys, how = KINDS[kind]
    common = f"endpoint=1 token={secrets.token_hex(16)} flows=2 interval_ms=100 wait_ms=20000 {keys}"
    port = receiver.order(f"listen address={address} {common}")[-1]["port"]
    sender.order(f"connect address={address} port={port} bind={address} {common}")
    receiver.order("ready endpoint=1")
    for agent in (receiver, sender):
        at_ns = agent.order("clock")[-1]["clock_ns"] + 100_000_000
        agent.order(f"start endpoint=1 at_ns={at_ns} duration_ms=200 {how}")
    counts = []
    for agent in (sender, receiver):
        agent.wait_end(1)
        lines = agent.order("report endpoint=1")
        counts.append(sum(line["bytes"] for line in lines if "first_byte_ns" in line))
        agent.order("close endpoint=1")
    return counts[0], counts[1]


def main(command: Sequence[str]) -> None:
    agents = sender, receiver = Agent(command), Agent(command)
    try:
        measure_all(sender, receiver)
        assert [agent.end() for agent in agents] == [0, 0]
    finally:
        for agent in agents:
            agent.kill()


def measure_all(sender: Agent, receiver: Agent) -> None:
    print(sender.hello["agent"], sender.hello["machine"])
    for address in ("127.0.0.1", "::1"):
        for kind in KINDS:
            sent, received = measure(sender, receiver, kind, address)
            print(f"{address} {kind}: {sent} bytes sent, {received} received", flush=True)
            assert 0 < received <= sent
            assert received == sent or kind.startswith("udp") or kind == "probe"


if __name__ == "__main__":
    main(sys.argv[1:])
