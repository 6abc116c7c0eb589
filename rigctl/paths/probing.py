"""Probes the paths between nodes with their agents: which packet sizes arrive, and who refuses the others.

In each round, a node sends to one node and receives from one node, so that no probe waits behind another. A datagram
that does not arrive is sent twice more before it counts as lost. A search then finds the largest size that arrives.
"""

import asyncio
import ipaddress
import secrets
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from rigctl.base.errors import NodeError
from rigctl.protocol.orders import Close, Listen, Probe, Sockets

SMALL: Final = 128
"""Size of the small IP packet in bytes; it arrives on every path that is not blocked."""
_MOST_PACKET: Final = 65535
_ENDPOINT: Final = 65535
"""Number of the probe receiver on each agent."""
_NO_PORT: Final = ("EADDRINUSE", "EACCES")
_WAIT_S: Final = 1.5
"""Time to wait for answers, long enough for one retransmission of a SYN (RFC 6298: 1 s)."""
_SETTLE_S: Final = 0.15
"""Shortest time to wait for the datagrams of one step of the search."""
_MOST_SETTLE_S: Final = 2.0
_STEPS: Final = 16
"""Most packet sizes that one step of the search tries."""
_STEP_BYTES: Final = 100_000
"""Most bytes that one step of the search sends; they fit into a default receive buffer (net.core.rmem_default)."""
_LIFE_MS: Final = 120_000
_MOST_DIGITS: Final = 10
"""Most digits of a number from an agent; an MTU in ICMP has 32 bits."""
_MOST_ICMP: Final = 64
_CONNECTIONS: Final = 2
"""Number of further TCP connections per path, to measure the round-trip time."""
_MOST_SEARCHES: Final = 16
"""Most steps of the search. Four suffice; the limit ends a search in which ICMP errors keep reporting new sizes."""


PathEnds: TypeAlias = tuple[str, str]
"""Names of the sending and the receiving node."""


class Prober(Protocol):
    """An agent, with only the methods that probing needs."""

    async def listen(self, order: Listen) -> int: ...

    async def probe(self, order: Probe) -> dict[str, str]: ...

    async def read_probes(self, *, last: bool = False) -> dict[str, str]: ...

    async def order(self, order: Close) -> object: ...


@dataclass(frozen=True, slots=True)
class Spot:
    """Address and ports of a node to be probed. `ports`: first and last port of its receiver; None: any port."""

    name: str
    address: str
    mtu: int | None
    ports: tuple[int, int] | None = None
    receivers: int = 1  # most receivers that a test opens there at once

    @property
    def version(self) -> int:
        return 6 if ":" in self.address else 4

    @property
    def header(self) -> int:
        """Size of the IP and UDP headers in bytes (RFC 791, 8200, 768)."""
        return 48 if self.version == 6 else 28


@dataclass(frozen=True, slots=True)
class Icmp:
    """An ICMP error in reply to a datagram. `mtu`: from "fragmentation needed" or "packet too big", else None."""

    error: str  # errno name that the sender's kernel reports
    type: int
    code: int
    mtu: int | None
    sender: str


@dataclass(slots=True)
class PathState:
    """Results of probing the path from one node to another. Sizes are bytes of IP packets."""

    source: str
    destination: str
    version: int
    wanted: int  # largest packet that the MTUs of both interfaces allow
    port: int | None = None
    heard: set[int] = field(default_factory=set)  # sizes that arrived
    lost: set[int] = field(default_factory=set)  # sizes that did not arrive
    refused: dict[int, str] = field(default_factory=dict)  # size → errno name with which the sender's kernel refused
    icmp: set[Icmp] = field(default_factory=set)
    stream: str | None = None  # result of the TCP connection: "0" if accepted, else an errno name; None: no answer
    rtt_us: int | None = None

    @property
    def ends(self) -> PathEnds:
        return self.source, self.destination

    @property
    def least(self) -> int:
        """Size in bytes of the smaller of the first two packets."""
        return min(SMALL, self.wanted)

    @property
    def asking(self) -> str:
        """Name of the protocol that resolves an IP address to a MAC address."""
        return "ARP" if self.version == 4 else "neighbour discovery"

    @property
    def missing(self) -> list[int]:
        """Sizes of the first two packets, without packets that arrived or that the sender's kernel refused."""
        return self.sizes_missing(_first_sizes(self))

    def sizes_missing(self, sizes: Iterable[int]) -> list[int]:
        return [size for size in sizes if size not in self.heard and size not in self.refused]

    @property
    def largest(self) -> int | None:
        """Size in bytes of the largest IP packet that arrived; None if none did."""
        return max(self.heard, default=None)

    @property
    def whole(self) -> bool:
        """True if TCP was accepted and the largest wanted packet arrived."""
        return self.stream == "0" and self.wanted in self.heard


async def literal(address: str) -> str | None:
    """Return the IP address of `address`, which may be a host name; None if the name cannot be resolved."""
    with suppress(ValueError):
        return str(ipaddress.ip_address(address))
    with suppress(OSError):
        found = await asyncio.get_running_loop().getaddrinfo(address, None, type=socket.SOCK_STREAM)
        return str(found[0][4][0])
    return None


def rounds(pairs: Iterable[PathEnds]) -> list[list[PathEnds]]:
    """Split ordered pairs into rounds in which each node sends at most once and receives at most once."""
    result: list[list[PathEnds]] = []
    for source, destination in pairs:
        for members in result:
            if all(source != sender and destination != receiver for sender, receiver in members):
                members.append((source, destination))
                break
        else:
            result.append([(source, destination)])
    return result


async def probe_paths(
    agents: Mapping[str, Prober],
    spots: Mapping[str, Spot],
    pairs: Sequence[PathEnds],
    wait_s: float = _WAIT_S,
    *,
    round_trips: bool = False,
    deaf: dict[str, str] | None = None,
) -> list[PathState]:
    """Return the probed paths of `pairs`, without the paths of nodes whose agent failed.

    Store in `deaf` the agent's reason for each node whose agent cannot listen on a data port. With `round_trips`, open
    further TCP connections and keep the shortest round-trip time, because the first may include the time of ARP.
    """
    work = _Probing(agents, spots, pairs, wait_s)
    try:
        await work.run()
        if round_trips:
            await work.connect_again()
    finally:
        await work.close()
    if deaf is not None:
        deaf |= work.deaf
    return [path for path in work.paths.values() if path.source not in work.failed and path.port is not None]


class _Probing:
    def __init__(
        self, agents: Mapping[str, Prober], spots: Mapping[str, Spot], pairs: Sequence[PathEnds], wait_s: float
    ) -> None:
        self.agents, self.spots, self.wait_s = agents, spots, wait_s
        self.token = secrets.token_hex(16)
        used = sorted({name for pair in pairs for name in pair})
        self.numbers = {name: number for number, name in enumerate(used, 1)}
        self.names = {number: name for name, number in self.numbers.items()}
        self.paths = {pair: _path(spots[pair[0]], spots[pair[1]]) for pair in pairs}
        self.failed: set[str] = set()
        self.deaf: dict[str, str] = {}

    async def run(self) -> None:
        await asyncio.gather(*(self._listen(name) for name in self.numbers))
        for members in rounds(self.paths):
            await self._send({pair: _first_sizes(self.paths[pair]) for pair in members}, stream=True)
            await self._read(self.numbers)
        await self._wait()
        await self._find_largest_sizes()

    async def connect_again(self) -> None:
        """Open further TCP connections on paths whose first was accepted; keep each path's shortest round-trip time."""
        first_us = {pair: path.rtt_us for pair, path in self.paths.items() if path.rtt_us is not None}
        for _ in range(_CONNECTIONS):
            for members in rounds(first_us):
                await self._send({pair: _first_sizes(self.paths[pair])[:1] for pair in members}, stream=True)
            await asyncio.sleep(min(2e-6 * max(first_us.values(), default=0), self.wait_s))
            await self._read({source for source, _ in first_us if source not in self.failed})

    async def close(self) -> None:
        """Close the probe endpoints on all agents; ignore agents that are gone."""

        async def forget(name: str) -> None:
            with suppress(NodeError):  # the agent has ended, and its endpoints with it
                await self.agents[name].read_probes(last=True)
                await self.agents[name].order(Close(_ENDPOINT))

        await asyncio.gather(*(forget(name) for name in self.numbers if name not in self.failed))

    async def _listen(self, name: str) -> None:
        spot = self.spots[name]
        sockets = Sockets(self.token, 1, 1000, _LIFE_MS, transport="udp", size=SMALL)
        first, last = spot.ports or (None, None)
        try:
            port = await self.agents[name].listen(Listen(_ENDPOINT, spot.address, sockets, first, last))
        except NodeError as error:
            self.deaf[name] = error.what
            self.failed.add(name)
            return
        for path in self.paths.values():
            if path.destination == name:
                path.port = port
        if spot.ports is not None:
            await self._listen_more(name, spot, sockets)

    async def _listen_more(self, name: str, spot: Spot, sockets: Sockets) -> None:
        """Listen on as many ports of the node's range as a test needs, then close them; store a failure in `deaf`."""
        agent, taken = self.agents[name], list[int]()
        try:
            for number in range(_ENDPOINT - 1, _ENDPOINT - spot.receivers, -1):
                await agent.listen(Listen(number, spot.address, sockets, *(spot.ports or ())))
                taken.append(number)
        except NodeError as error:
            if getattr(error, "error", None) in _NO_PORT:
                free = len(taken) + 1
                self.deaf[name] = f"a test needs {spot.receivers} ports at once, only {free} can be used: {error.what}"
        with suppress(NodeError):
            for number in taken:
                await agent.order(Close(number))

    async def _send(self, sizes: Mapping[PathEnds, Sequence[int]], *, stream: bool = False) -> None:
        async def send(pair: PathEnds, packets: Sequence[int]) -> None:
            path, (source, destination) = self.paths[pair], pair
            here, there = self.spots[source], self.spots[destination]
            if path.port is None or source in self.failed:
                return
            payloads = ",".join(str(packet - here.header) for packet in packets)
            numbers = (self.numbers[destination], self.numbers[source])
            order = Probe(*numbers, there.address, path.port, here.address, self.token, payloads, stream)
            try:
                reply = await self.agents[source].probe(order)
            except NodeError as error:
                refusal = getattr(error, "error", "EPROTO")  # the agent's errno name; EPROTO: the agent failed
                if refusal == "EPROTO":
                    self.failed.add(source)
                else:
                    path.refused.update(dict.fromkeys(packets, refusal))
                    path.stream = path.stream if path.stream == "0" else refusal
                return
            try:
                for size, _, name in (word.partition(":") for word in reply.get("refused", "").split()):
                    if (packet := _parse_whole(size) + here.header) in packets:
                        path.refused[packet] = name
            except ValueError:
                self.failed.add(source)  # the agent violated the protocol
            if path.stream != "0":
                path.stream = reply.get("stream", path.stream)

        await asyncio.gather(*(send(pair, packets) for pair, packets in sizes.items()))

    async def _read(self, names: Iterable[str]) -> None:
        async def read(name: str) -> None:
            try:
                self._add_report(name, await self.agents[name].read_probes())
            except (NodeError, ValueError):  # the agent is gone, or violated the protocol
                self.failed.add(name)

        await asyncio.gather(*(read(name) for name in names if name not in self.failed))

    def _add_report(self, name: str, reply: Mapping[str, str]) -> None:
        """Add an agent's report (packets, ICMP errors, connections) to `paths`. Raise `ValueError` if malformed."""
        for word in reply.get("heard", "").split():
            number, _, size = word.partition(":")
            if (path := self.paths.get((self.names.get(_parse_whole(number), ""), name))) is not None:
                path.heard.add(_parse_whole(size) + self.spots[name].header)
        for word in reply.get("errors", "").split():
            number, error, kind, code, mtu, sender = word.split(":", 5)
            if (path := self._to(name, number)) is not None and len(path.icmp) < _MOST_ICMP:
                path.icmp.add(Icmp(error, _parse_whole(kind), _parse_whole(code), _parse_whole(mtu) or None, sender))
        for word in reply.get("streams", "").split():
            number, error, rtt_us = word.split(":")
            if (path := self._to(name, number)) is not None and path.stream != "0":
                path.stream, path.rtt_us = error, _parse_whole(rtt_us) or None if error == "0" else None
            elif path is not None and error == "0" and path.rtt_us is not None:
                path.rtt_us = min(path.rtt_us, _parse_whole(rtt_us) or path.rtt_us)

    def _to(self, source: str, number: str) -> PathState | None:
        return self.paths.get((source, self.names.get(_parse_whole(number), "")))

    def _paths_unanswered(self) -> list[PathEnds]:
        alive = {pair: path for pair, path in self.paths.items() if not self.failed & set(pair)}
        return [pair for pair, path in alive.items() if path.stream is None or path.missing]

    async def _wait(self) -> None:
        """Wait up to `wait_s` for all answers, and send missing packets again.

        Read the agents once more after this time, because the controller itself may have been delayed.
        """
        began_s = time.monotonic()
        again, pauses = [0.3, 0.6], [0.01, 0.03, 0.06, 0.1]
        while waiting := self._paths_unanswered():
            spent_s = time.monotonic() - began_s
            if again and spent_s >= again[0]:
                del again[0]
                missing = {pair: lacked for pair in waiting if (lacked := self.paths[pair].missing)}
                for members in rounds(missing):
                    await self._send({pair: missing[pair] for pair in members})
            await self._read({name for pair in waiting for name in pair})
            if spent_s >= self.wait_s:
                break
            await asyncio.sleep(pauses.pop(0) if pauses else 0.1)
        for path in self.paths.values():
            path.lost.update(path.missing)

    async def _find_largest_sizes(self) -> None:
        for _ in range(_MOST_SEARCHES):
            wanted = {pair: sizes for pair, path in self.paths.items() if (sizes := _next_sizes(path))}
            if not wanted:
                return
            names = {name for pair in wanted for name in pair}
            rtt_us = max(self.paths[pair].rtt_us or 0 for pair in wanted)
            settle_s = min(max(_SETTLE_S, 2e-6 * rtt_us), _MOST_SETTLE_S)
            left = dict(wanted)
            for _ in range(2):
                for members in rounds(left):
                    await self._send({pair: left[pair] for pair in members})
                await asyncio.sleep(settle_s)
                await self._read(names)
                missing = {pair: self.paths[pair].sizes_missing(sizes) for pair, sizes in left.items()}
                left = {pair: sizes for pair, sizes in missing.items() if sizes}
            for pair, sizes in left.items():
                self.paths[pair].lost.update(sizes)
            if self.failed & names:
                return


def _parse_whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(text)
    return int(text)


def _path(here: Spot, there: Spot) -> PathState:
    known = [mtu for mtu in (here.mtu, there.mtu) if mtu is not None]
    return PathState(here.name, there.name, here.version, min([*known, _MOST_PACKET]) if known else 1500)


def _first_sizes(path: PathState) -> list[int]:
    return sorted({path.least, path.wanted})


def _next_sizes(path: PathState) -> list[int]:
    """Return the sizes to try next, between the largest that arrived and the smallest that did not; [] if none."""
    low = path.largest
    above = [size for size in path.lost | path.refused.keys() if low is not None and size > low]
    if low is None or not above or min(above) - low <= 1:
        return []
    high = min(above)
    step = max(1, -(-(high - low) // (max(2, min(_STEPS, _STEP_BYTES // high)) + 1)))
    reported = {icmp.mtu for icmp in path.icmp if icmp.mtu is not None and low < icmp.mtu < high}
    near = {size for mtu in reported for size in (mtu, mtu + 1) if low < size < high}
    return sorted({*range(low + step, high, step), *near})
