"""Computes what a store-and-forward switch does with frames: a discrete-event model, without sockets and clocks.

`Switch.arrive` hands frames to the card at the other end of a port's cable. `Switch.advance` computes everything up to
a time, and returns what has left the switch and what it has dropped, each with its time stamp. So the model's time is
exact, however late its caller is, and a known trace has known drops and delays (tests/unit/test_known_switch.py).

- A frame takes its bytes, frame check (4), preamble (8) and gap (12) on a cable (IEEE 802.3), at the rate of the link.
- Queues are at the outputs, one or several by DSCP, or at the inputs: one FIFO for each, whose first frame blocks those
  behind it until its output takes it. An output takes the first frame that has been in the switch longest.
- A frame uses the buffer until its last bit has left. The buffer is separate for each queue. Or all queues share it,
  and a queue may have `alpha` times the free bytes (Choudhury and Hahne, "Dynamic queue length thresholds", 1998).
- With `pause`, a port with more than XOFF bytes in the switch stops its sender after the current frame, until XON.
- At equal times, frames leave first, then others arrive, then outputs choose.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from ipaddress import IPv4Address
from itertools import count
from typing import Any, Final, Literal

from known_switch.multicast import Snooping, Snoops

SECOND: Final = 1_000_000_000
NEVER: Final = 2**63
_SENT, _RECEIVED, _CHOSEN = range(3)
_BROADCAST: Final = b"\xff" * 6
_MAC_CONTROL: Final = b"\x88\x08"
_PAUSE: Final = b"\x00\x01"


def size_of(frame: bytes) -> int:
    """Return the bytes of a frame as a switch counts and stores it: padded to 60, with the frame check."""
    return max(len(frame), 60) + 4


def wire_ns(size: int, rate_bps: int) -> int:
    """Return the time that a frame of this size takes on a cable, with preamble and gap, in nanoseconds."""
    return (size + 20) * 8 * SECOND // rate_bps


@dataclass(frozen=True, slots=True)
class Link:
    """A port's cable: its rate, that of the other way if it differs, and a policer for frames that arrive."""

    rate_bps: int
    out_bps: int | None = None
    police_bps: int | None = None
    police_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Design:
    """What a switch is made of."""

    links: Mapping[str, Link]  # by port
    buffer_bytes: int  # of each queue; with `alpha`, of the whole switch
    alpha: float | None = None
    queues_at: Literal["output", "input"] = "output"
    pause: tuple[int, int] | None = None  # XOFF and XON in bytes
    classes: Mapping[int, int] = field(default_factory=dict)  # queue of an output by DSCP; others have queue 0
    weights: tuple[float, ...] = (1,)  # of each queue of an output
    strict: bool = False  # instead of weights: the queue with the highest number first
    multicast: Snooping | None = None  # None: multicast is flooded
    latency_ns: int = 0  # from the last bit of a frame to its queue


@dataclass(slots=True)
class Traffic:
    """Counters of one way of a port, as IF-MIB and EtherLike-MIB have them."""

    octets: int = 0
    unicast: int = 0
    multicast: int = 0
    broadcast: int = 0
    discards: int = 0
    pause: int = 0

    def count(self, frame: bytes, size: int) -> None:
        self.octets += size
        if not frame[0] & 1:
            self.unicast += 1
        elif frame[:6] == _BROADCAST:
            self.broadcast += 1
        else:
            self.multicast += 1


@dataclass(frozen=True, slots=True)
class Departure:
    """A frame whose last bit left a port. `note` is what came with the frame."""

    time_ns: int
    port: str
    frame: bytes
    note: Any = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A frame that was dropped at a port: by its `policer`, or because its `input` or `output` had no room."""

    time_ns: int
    port: str
    why: Literal["policer", "input", "output"]
    frame: bytes


class Events:
    """Calls in the order of their times. Switches that are connected share one of these."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._heap: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()

    def at(self, time_ns: int, rank: int, act: Callable[..., None], *given: Any) -> None:
        heappush(self._heap, (time_ns, rank, next(self._numbers), act, given))

    @property
    def next_ns(self) -> int:
        return self._heap[0][0] if self._heap else NEVER

    def advance(self, until_ns: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until_ns:
            self.now_ns, _, _, act, given = heappop(heap)
            act(*given)
        self.now_ns = max(self.now_ns, until_ns)


@dataclass(eq=False, slots=True)
class _Held:
    """A frame in the switch. In an input queue, `waiting` are the outputs that have not yet taken it."""

    frame: bytes
    note: Any
    size: int
    came_ns: int
    source: "_Port"
    queue: int = 0
    waiting: "set[_Port]" = field(default_factory=set)
    unsent: int = 0


class _Port:
    def __init__(self, name: str, link: Link, queues: int) -> None:
        self.name, self.link = name, link
        self.far: tuple[Switch, _Port] | None = None  # the port at the other end of a trunk
        # From the cable:
        self.card: deque[tuple[int, bytes, Any]] = deque()  # what the other end's card has to send, with its times
        self.receiving = self.paused = False
        self.held = 0  # bytes that came from here and are still in the switch
        self.fifo: deque[_Held] = deque()
        self.tokens, self.filled_ns = link.police_bytes * 8 * SECOND, 0  # in billionths of a bit
        self.into = Traffic()
        # To the cable:
        self.queues: list[deque[_Held]] = [deque() for _ in range(queues)]
        self.queued = [0] * queues  # bytes, with those of the frame that is being sent
        self.starts = [0.0] * queues  # virtual time at which each queue's first frame starts (start-time fair queueing)
        self.virtual = 0.0
        self.sending = self.choosing = False
        self.stopped_ns = 0  # until then, the other end has paused this port
        self.out = Traffic()


class Switch:
    """A switch of a design. Switches that a trunk connects need the same `events`."""

    def __init__(self, design: Design, events: Events | None = None) -> None:
        self.design = design
        self.events = events or Events()
        self.table: dict[bytes, str] = {}  # port by MAC address
        self.forwarded: dict[str, Counter[str]] = {}  # by multicast group: port → frames that go there
        self.departures: list[Departure] = []
        self.drops: list[Drop] = []
        self._queues = len(design.weights)
        self._ports = {name: _Port(name, link, self._queues) for name, link in design.links.items()}
        self._others = {port: [o for o in self._ports.values() if o is not port] for port in self._ports.values()}
        self._own = _Port("", Link(SECOND), self._queues)  # source of the switch's own frames
        self._used = 0
        self.snoops = Snoops(design.multicast, self.events.now_ns) if design.multicast else None
        if self.snoops and self.snoops.next_query_ns is not None:
            self.events.at(self.snoops.next_query_ns, _RECEIVED, self._query)

    def arrive(self, time_ns: int, port: str, frame: bytes, note: Any = None) -> None:
        """Hand a frame to the card at the other end of a port's cable. Times of a port do not decrease."""
        at = self._ports[port]
        at.card.append((time_ns, frame, note))
        if len(at.card) == 1:
            self._receive(at)

    def advance(self, until_ns: int) -> tuple[list[Departure], list[Drop]]:
        """Compute everything up to this time. Return what left and what was dropped since the last call."""
        self.events.advance(until_ns)
        return self.taken()

    def taken(self) -> tuple[list[Departure], list[Drop]]:
        """Return what left and what was dropped since the last call."""
        gone = self.departures, self.drops
        self.departures, self.drops = [], []
        return gone

    def queued(self, port: str) -> int:
        """Return the bytes in the queues of an output, with the frame that is being sent."""
        return sum(self._ports[port].queued)

    def waiting(self, port: str) -> int:
        """Return how many frames wait in the card at the other end of a port's cable."""
        return len(self._ports[port].card)

    def counters(self) -> dict[str, tuple[Traffic, Traffic]]:
        """Return the counters of each port: in, out."""
        return {name: (port.into, port.out) for name, port in self._ports.items()}

    # --- from the cable ---

    def _receive(self, port: _Port) -> None:
        """Start to receive the next frame of a port, if there is one and the port is not paused."""
        if port.receiving or port.paused or not port.card:
            return
        now_ns = self.events.now_ns
        if port.card[0][0] > now_ns:
            self.events.at(port.card[0][0], _CHOSEN, self._receive, port)
            return
        _, frame, note = port.card.popleft()
        port.receiving = True
        end_ns = now_ns + wire_ns(size_of(frame), port.link.rate_bps)
        self.events.at(end_ns, _RECEIVED, self._received, port, frame, note)

    def _received(self, port: _Port, frame: bytes, note: Any) -> None:
        port.receiving = False
        size = size_of(frame)
        if frame[12:14] == _MAC_CONTROL:
            self._obey(port, frame)
        else:
            port.into.count(frame, size)
            if not self._conforms(port, size):
                self._drop(port, port.into, "policer", frame)
            elif self.design.latency_ns:
                due_ns = self.events.now_ns + self.design.latency_ns
                self.events.at(due_ns, _RECEIVED, self._forward, port, frame, note)
            else:
                self._forward(port, frame, note)
        self._receive(port)

    def _obey(self, port: _Port, frame: bytes) -> None:
        """Stop an output for the time that a pause frame asks for, in units of 512 bits (IEEE 802.3, annex 31B)."""
        if frame[14:16] == _PAUSE:
            port.into.pause += 1
            rate_bps = port.link.out_bps or port.link.rate_bps
            asked_ns = int.from_bytes(frame[16:18]) * 512 * SECOND // rate_bps
            port.stopped_ns, port.choosing = self.events.now_ns + asked_ns, False
            self._want(port)

    def _conforms(self, port: _Port, size: int) -> bool:
        if port.link.police_bps is None:
            return True
        passed_ns, port.filled_ns = self.events.now_ns - port.filled_ns, self.events.now_ns
        deep = port.link.police_bytes * 8 * SECOND
        port.tokens = min(deep, port.tokens + passed_ns * port.link.police_bps)
        if port.tokens < size * 8 * SECOND:
            return False
        port.tokens -= size * 8 * SECOND
        return True

    def _drop(self, port: _Port, counters: Traffic, why: Literal["policer", "input", "output"], frame: bytes) -> None:
        counters.discards += 1
        self.drops.append(Drop(self.events.now_ns, port.name, why, frame))

    # --- through the switch ---

    def _forward(self, port: _Port, frame: bytes, note: Any) -> None:
        if not frame[6] & 1:
            self.table[frame[6:12]] = port.name
        outs = self._outs(port, frame)
        if self.design.queues_at == "output":
            for out in outs:
                self._enqueue(out, port, frame, note)
        elif outs:
            self._wait(outs, port, frame, note)
        if self.design.pause and port.held > self.design.pause[0]:
            self._pause(port, True)

    def _outs(self, port: _Port, frame: bytes) -> "list[_Port]":
        """Return the ports to which a frame goes: that of its destination, or all others."""
        if not frame[0] & 1:
            known = self._ports.get(self.table.get(frame[:6], ""))
            return self._others[port] if known is None else [known] if known is not port else []
        if frame[:5] == b"\x01\x80\xc2\0\0" and frame[5] < 16:
            return []  # a switch never forwards these (IEEE 802.1Q, table 8-1)
        names = self.snoops.outs(self.events.now_ns, port.name, frame) if self.snoops else None
        outs = [out for out in self._others[port] if names is None or out.name in names]
        if frame[12:14] == b"\x08\x00":
            self.forwarded.setdefault(str(IPv4Address(frame[30:34])), Counter()).update(out.name for out in outs)
        return outs

    def _fits(self, queued: int, size: int) -> bool:
        room, alpha = self.design.buffer_bytes, self.design.alpha
        if alpha is None:
            return queued + size <= room
        free = room - self._used
        return size <= free and queued + size <= alpha * free

    def _enqueue(self, out: _Port, port: _Port, frame: bytes, note: Any) -> None:
        """Put a frame into a queue of its output."""
        size = size_of(frame)
        queue = self.design.classes.get(_dscp(frame), 0) if self.design.classes else 0
        if not self._fits(out.queued[queue], size):
            self._drop(out, out.out, "output", frame)
            return
        if not out.queues[queue]:
            out.starts[queue] = max(out.starts[queue], out.virtual)
        out.queues[queue].append(_Held(frame, note, size, self.events.now_ns, port, queue))
        out.queued[queue] += size
        port.held += size
        self._used += size
        self._want(out)

    def _wait(self, outs: "list[_Port]", port: _Port, frame: bytes, note: Any) -> None:
        """Put a frame into the queue of its input."""
        size = size_of(frame)
        if not self._fits(port.held, size):
            self._drop(port, port.into, "input", frame)
            return
        port.fifo.append(_Held(frame, note, size, self.events.now_ns, port, 0, set(outs), len(outs)))
        port.held += size
        self._used += size
        if len(port.fifo) == 1:
            self._want(*outs)

    def _query(self) -> None:
        """Send a general query to all ports; the switch is the querier."""
        assert self.snoops is not None
        frame = self.snoops.query(self.events.now_ns)
        if self.design.queues_at == "output":
            for out in self._ports.values():
                self._enqueue(out, self._own, frame, None)
        else:
            self._wait(list(self._ports.values()), self._own, frame, None)
        assert self.snoops.next_query_ns is not None
        self.events.at(self.snoops.next_query_ns, _RECEIVED, self._query)

    def _pause(self, port: _Port, on: bool) -> None:
        """Send a pause frame that stops or releases the other end of a port's cable."""
        if port.paused == on or port is self._own:
            return
        port.paused = on
        port.out.pause += 1
        if port.far is None:
            self._receive(port)
            return
        switch, far = port.far
        far.into.pause += 1
        far.stopped_ns, far.choosing = NEVER if on else self.events.now_ns, False
        switch._want(far)

    # --- to the cable ---

    def _want(self, *outs: _Port) -> None:
        """Let outputs choose a frame as soon as they may send."""
        for out in outs:
            if not (out.sending or out.choosing or out.stopped_ns == NEVER):
                out.choosing = True
                self.events.at(max(self.events.now_ns, out.stopped_ns), _CHOSEN, self._choose, out)

    def _choose(self, out: _Port) -> None:
        if out.sending or out.stopped_ns > self.events.now_ns:
            return  # a pause frame came after this was scheduled
        out.choosing = False
        held = self._queued_for(out) if self.design.queues_at == "output" else self._first_for(out)
        if held is not None:
            out.sending = True
            end_ns = self.events.now_ns + wire_ns(held.size, out.link.out_bps or out.link.rate_bps)
            self.events.at(end_ns, _SENT, self._sent, out, held)

    def _queued_for(self, out: _Port) -> _Held | None:
        queue = 0
        if self._queues > 1:
            filled = [number for number, frames in enumerate(out.queues) if frames]
            if filled:
                queue = filled[-1] if self.design.strict else min(filled, key=out.starts.__getitem__)
        if not out.queues[queue]:
            return None
        held = out.queues[queue].popleft()
        out.virtual = out.starts[queue]
        out.starts[queue] += held.size / self.design.weights[queue]
        return held

    def _first_for(self, out: _Port) -> _Held | None:
        """Return the first frame of an input that has been in the switch longest, of those that `out` has to send."""
        firsts = [port.fifo[0] for port in (*self._ports.values(), self._own) if port.fifo]
        held = min((held for held in firsts if out in held.waiting), key=lambda held: held.came_ns, default=None)
        if held is not None:
            held.waiting.remove(out)
        return held

    def _sent(self, out: _Port, held: _Held) -> None:
        now_ns = self.events.now_ns
        out.sending = False
        out.out.count(held.frame, held.size)
        if out.far is None:
            self.departures.append(Departure(now_ns, out.name, held.frame, held.note))
        else:
            switch, far = out.far
            self.events.at(now_ns, _RECEIVED, switch._received, far, held.frame, held.note)
        source = held.source
        if self.design.queues_at == "output":
            out.queued[held.queue] -= held.size
            self._free(source, held.size)
        else:
            held.unsent -= 1
            if not held.unsent:
                source.fifo.popleft()
                self._free(source, held.size)
                if source.fifo:
                    self._want(*source.fifo[0].waiting)
        self._want(out)

    def _free(self, source: _Port, size: int) -> None:
        source.held -= size
        self._used -= size
        if self.design.pause and source.held <= self.design.pause[1]:
            self._pause(source, False)


def trunk(one: Switch, port: str, other: Switch, other_port: str) -> None:
    """Connect a port of one switch to a port of another. Each sends at the rate of its own link."""
    assert one.events is other.events
    near, far = one._ports[port], other._ports[other_port]
    near.far, far.far = (other, far), (one, near)


def _dscp(frame: bytes) -> int:
    """Return the DSCP of an IPv4 or IPv6 packet; 0 for any other frame."""
    if frame[12:14] == b"\x08\x00":
        return frame[15] >> 2
    if frame[12:14] == b"\x86\xdd":
        return (frame[14] & 15) << 2 | frame[15] >> 6
    return 0
