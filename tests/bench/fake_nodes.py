"""Many nodes in one process, for the controller to be measured at: a real SSH server on an address for each.

`python tests/bench/fake_nodes.py FOLDER COUNT` serves COUNT nodes on 127.1.0.1, 127.1.0.2, … at one port, with a
key, known hosts and a rig file in FOLDER, until its input ends. SSH, the upload of the agent (its SHA-256 is checked)
and the agent's protocol are real; what a shell and an agent would do is made up, so that a thousand fit on a machine.
"""

import asyncio
import contextlib
import hashlib
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import asyncssh
import bench  # noqa: F401
from wire import HELLO, LAST, TOTALS

RATE_BPS: Final = 20_000_000
SEGMENT: Final = 1448
PER_RANGE: Final = 250
_PORT: Final = 40000
_KERNEL: Final = "Linux x86_64"


@dataclass
class Network:
    """What the fake nodes have in common: who is where, and datagrams that arrive at once."""

    agents: dict[str, "FakeAgent"] = field(default_factory=dict)  # by address
    facts: str | None = None

    def facts_of(self, script: str) -> str:
        """What a node answers: this machine's own facts, asked once."""
        if self.facts is None:
            self.facts = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout
        return self.facts


@dataclass
class Endpoint:
    """One side of a pair's flow, at a constant rate."""

    port: int
    receives: bool
    interval_ms: int
    at_ns: int = 0
    duration_ms: int = 0


class FakeAgent:
    """The agent's protocol. `say` takes its lines."""

    def __init__(self, network: Network, address: str, say: Callable[[bytes], None]) -> None:
        self._network, self._address, self._say = network, address, say
        self._endpoints: dict[int, Endpoint] = {}
        self._heard: list[str] = []
        self._streams: list[str] = []
        self._beating: asyncio.TimerHandle | None = None
        network.agents[address] = self
        self.tell(**HELLO | {"clock_ns": time.monotonic_ns()})

    def tell(self, **values: Any) -> None:
        self._say(json.dumps(values, separators=(",", ":")).encode() + b"\n")

    def end(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        self._network.agents.pop(self._address, None)

    def order(self, line: bytes) -> None:
        number, verb, *words = line.decode().split()
        keys = dict(word.split("=", 1) for word in words)
        obey = getattr(self, f"_{verb}", None)
        extra = obey(int(number), keys) if obey is not None else None
        self.tell(id=int(number), ok=True, **(extra or {}))

    def _clock(self, _: int, __: dict[str, str]) -> dict[str, int]:
        return {"clock_ns": time.monotonic_ns()}

    def _listen(self, _: int, keys: dict[str, str]) -> dict[str, int]:
        number = int(keys["endpoint"])
        self._endpoints[number] = Endpoint(_PORT + number % 20000, True, int(keys["interval_ms"]))
        return {"port": self._endpoints[number].port}

    def _connect(self, _: int, keys: dict[str, str]) -> None:
        self._endpoints[int(keys["endpoint"])] = Endpoint(int(keys["port"]), False, int(keys["interval_ms"]))

    def _start(self, _: int, keys: dict[str, str]) -> None:
        endpoint = self._endpoints[int(keys["endpoint"])]
        endpoint.at_ns, endpoint.duration_ms = int(keys["at_ns"]), int(keys["duration_ms"])
        loop, wait_s = asyncio.get_running_loop(), (endpoint.at_ns - time.monotonic_ns()) / 1e9
        if endpoint.receives and self._beating is None:
            self._beating = loop.call_later(wait_s + 1, self._beat)
        loop.call_later(
            wait_s + endpoint.duration_ms / 1e3,
            lambda: self.tell(event="ended", endpoint=int(keys["endpoint"]), error=None, message=None),
        )

    def _beat(self) -> None:
        now_ns = time.monotonic_ns()
        running = {
            str(number): (now_ns - endpoint.at_ns) * RATE_BPS // 8 // 10**9
            for number, endpoint in self._endpoints.items()
            if endpoint.receives and endpoint.at_ns < now_ns < endpoint.at_ns + endpoint.duration_ms * 10**6
        }
        self._beating = None
        if running:
            self.tell(event="progress", clock_ns=now_ns, bytes=running)
            self._beating = asyncio.get_running_loop().call_later(1, self._beat)

    def _report(self, number: int, keys: dict[str, str]) -> dict[str, Any]:
        endpoint = self._endpoints[int(keys["endpoint"])]
        count = endpoint.duration_ms // endpoint.interval_ms
        step_ns = endpoint.interval_ms * 10**6
        step_bytes = RATE_BPS // 8 * endpoint.interval_ms // 1000
        first_ns, last_ns = endpoint.at_ns + 10_000, endpoint.at_ns + endpoint.duration_ms * 10**6
        self.tell(
            **TOTALS | {"id": number, "bytes": count * step_bytes, "first_byte_ns": first_ns, "last_byte_ns": last_ns}
        )
        columns = ["t_ns", "bytes"] if endpoint.receives else ["t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss"]
        rows = [[step_ns, step_bytes, 0, 0, 0, 0][: len(columns)] for _ in range(count)]
        rows[0] = [endpoint.at_ns + step_ns, step_bytes, 0, 310, 45, SEGMENT][: len(columns)]
        for at in range(0, count, 200):
            self.tell(**{"id": number, "flow": 0, "from": at, "columns": columns, "rows": rows[at : at + 200]})
        carried = endpoint.duration_ms // endpoint.interval_ms * step_bytes * len(self._endpoints)
        counted = dict.fromkeys(("rx_bytes", "tx_bytes"), 2 * carried)
        return LAST | counted | {"endpoint": int(keys["endpoint"]), "span_us": endpoint.duration_ms * 1000}

    def _close(self, _: int, keys: dict[str, str]) -> None:
        self._endpoints.pop(int(keys["endpoint"]), None)

    def _probe(self, _: int, keys: dict[str, str]) -> dict[str, str]:
        receiver = self._network.agents.get(keys["address"])
        if receiver is not None:
            receiver._heard += [f"{keys['source']}:{size}" for size in keys["sizes"].split(",")]
            self._streams.append(f"{keys['target']}:0:120")
        return {"refused": ""}

    def _probed(self, _: int, __: dict[str, str]) -> dict[str, str]:
        said = {"heard": " ".join(self._heard), "errors": "", "streams": " ".join(self._streams)}
        self._heard, self._streams = [], []
        return said

    def _restore(self, _: int, __: dict[str, str]) -> dict[str, int]:
        return {"restored": 0}


class Command(asyncssh.SSHServerSession[bytes]):
    """A command on a fake node, known by a word in it."""

    def __init__(self, network: Network, node: "FakeNode") -> None:
        self._network, self._node, self._input = network, node, bytearray()
        self._command = ""
        self._agent: FakeAgent | None = None

    def connection_made(self, chan: "asyncssh.SSHServerChannel[bytes]") -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def session_started(self) -> None:
        if "--watchdog" in self._command:
            self._agent = FakeAgent(self._network, self._node.address, self._channel.write)

    def data_received(self, data: bytes, datatype: object) -> None:
        self._input += data
        if self._agent is None:
            return
        *lines, rest = bytes(self._input).split(b"\n")
        self._input = bytearray(rest)
        for line in lines:
            self._agent.order(line)

    def eof_received(self) -> bool:
        self._channel.write(self._answer().encode())
        self._channel.exit(0)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._agent is not None:
            self._agent.end()

    def _answer(self) -> str:
        """What a command that reads its input to the end says then."""
        if ".new-" in self._command:
            self._node.held = hashlib.sha256(self._input).hexdigest()
            return f"done {self._node.held}\n"
        if "@@rigctl" in self._command:
            return self._network.facts_of(self._command)
        wanted = self._looked_for()
        if wanted is not None:
            state = f"there {self._node.held}" if self._node.held == wanted else "absent -"
            return f"{_KERNEL}\n{state} /home/fake/agent-{wanted}\n"
        return ""

    def _looked_for(self) -> str | None:
        """The SHA-256 of the agent that a command looks for."""
        found = re.search(rf"'{_KERNEL}'\) h=([0-9a-f]{{64}})", self._command.replace("'\"'\"'", "'"))
        return None if found is None else found[1]


class FakeNode(asyncssh.SSHServer):
    """Lets in who has the key; `held` is the SHA-256 of the agent that was pushed to it."""

    def __init__(self, network: Network, address: str, key: asyncssh.SSHKey, held: dict[str, str]) -> None:
        self._network, self.address, self._key, self._held = network, address, key, held

    @property
    def held(self) -> str | None:
        return self._held.get(self.address)

    @held.setter
    def held(self, sha256: str) -> None:
        self._held[self.address] = sha256

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key.public_data == self._key.public_data

    def session_requested(self) -> Command:
        return Command(self._network, self)


def address_of(number: int) -> str:
    """Of the node with that number, from 0."""
    return f"127.1.{number // PER_RANGE}.{number % PER_RANGE + 1}"


def rig_text(folder: Path, count: int, port: int) -> str:
    """A rig file of `count` nodes, in ranges; the first half of them are `left`, the others `right`."""
    nodes, names = [], []
    for start in range(0, count, PER_RANGE):
        last = min(PER_RANGE, count - start)
        at = start // PER_RANGE
        nodes.append(f'  n{at}x[001..{last:03}]: {{address: "127.1.{at}.{{n}}", data_address: "127.1.{at}.{{n}}"}}')
        names += [f"n{at}x{number:03}" for number in range(1, last + 1)]
    half = len(names) // 2
    keyed = f"port: {port}, key: {folder / 'key'}, known_hosts: {folder / 'known_hosts'}"
    body = "\n".join(node.replace("{address", f"{{{keyed}, address") for node in nodes)
    groups = f"  left: [{', '.join(names[:half])}]\n  right: [{', '.join(names[half:])}]"
    return f"title: {count} nodes\nlinks: {{rate: 1G, mtu: 65536}}\nnodes:\n{body}\ngroups:\n{groups}\n"


async def serve(folder: Path, count: int) -> None:
    """Serve until standard input ends; "ready" on standard output when all nodes answer."""
    network, held = Network(), dict[str, str]()
    host_key, key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    with socket.socket() as probe:
        probe.bind(("127.1.0.1", 0))
        port = probe.getsockname()[1]
    for number in range(count):
        address = address_of(number)
        await asyncssh.listen(
            address,
            port,
            server_factory=lambda address=address: FakeNode(network, address, key, held),
            server_host_keys=[host_key],
            encoding=None,
            line_editor=False,
            gss_host=None,
            config=None,
        )
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_bytes(key.export_private_key())
    public = host_key.export_public_key().decode()
    (folder / "known_hosts").write_text("".join(f"[{address_of(at)}]:{port} {public}" for at in range(count)))
    (folder / "rig.yaml").write_text(rig_text(folder, count, port))
    print("ready", flush=True)
    with contextlib.suppress(OSError):
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
