"""Runs known switches on the ports of a virtual rig: `python -m known_switch.ports`, in the switches' namespaces.

A port is the other end of a node's veth pair. Its packet socket (packet(7)) gives each frame the kernel's time stamp,
so a late process computes the same drops and delays as one in time, and sends late what is due. Pause frames to a node
are counted, not sent, and VLAN tags are lost. Four ports at 20 Mbit/s each way, with full frames, take a third of a
processor; 16,000 frames/s take two thirds.

A node's queue is a token bucket at the rate of its link. Neither veth nor TAP devices can make their sender wait for a
paused port. Instead, the bucket slows down with the number of frames that wait in the model's card: some hundred at
most.

Standard input has the orders, pickled. The process prints `ready`, and ends when standard input closes. Whoever
connects to the socket of the orders gets what the switches have counted, as JSON.
"""

import contextlib
import json
import os
import pickle
import resource
import select
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

from known_switch.model import SECOND, Design, Events, Switch, trunk
from processes import DEADLINE_S, running

_ALL_PROTOCOLS, _SOL_PACKET, _SO_TIMESTAMPNS = 3, 263, 35  # linux/if_ether.h, packet(7), socket(7)
_VNET_HEADER, _IGNORE_OUTGOING = 15, 23  # linux/if_packet.h
_HEADER: Final = 10  # bytes of struct virtio_net_hdr, with which checksums pass as the kernel left them
_SUPER_PACKET: Final = 1  # byte of the header that is 0 for a single frame
_MOST_FRAME: Final = 16_384
_BUFFER: Final = 1 << 24
"""Bytes of frames that wait for this process: at 100 Mbit/s, more than a second."""
_STAMP: Final = struct.Struct("=qq")
_FRAME: Final = 1538  # bytes of a full frame on the cable
_BURST_S: Final = 0.005
_QUEUE_FRAMES: Final = 1000  # Linux's default txqueuelen
_LONGEST_WAIT_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Orders:
    """What to run: switches by name, whose ports have the names of nodes, and the two ports of a trunk."""

    designs: Mapping[str, Design]
    trunk: tuple[str, str] | None
    control: str  # path of the socket


class Sender:
    """The queue of a node, whose token bucket follows what the switch takes from the node's card."""

    def __init__(self, node: str, rate_bps: int) -> None:
        self._node, self._rate_bps, self._level = node, rate_bps, 0
        self._burst = max(8 * _FRAME, int(rate_bps * _BURST_S / 8))
        self._few = 2 * self._burst // _FRAME
        _run("ip", "-n", node, "link", "set", "dev", "eth0", "gso_max_segs", "1")  # single frames only
        _run("tc", "-n", node, *self._bucket("replace").split())
        self._tc = subprocess.Popen(["tc", "-n", node, "-force", "-batch", "-"], stdin=subprocess.PIPE)

    def follow(self, waiting: int) -> None:
        """Adapt the bucket: a quarter of the rate where the card is full, a sixteenth where twice as much waits …"""
        level = self._level
        while waiting > 2 * self._few << level:
            level += 1
        while level and waiting < self._few << (level - 1):
            level -= 1
        if level != self._level:
            self._level = level
            assert self._tc.stdin is not None
            self._tc.stdin.write(f"{self._bucket('change')}\n".encode())
            self._tc.stdin.flush()

    def _bucket(self, action: str) -> str:
        rate_bps = max(self._rate_bps >> 2 * self._level, 8)
        size = f"burst {self._burst} limit {_QUEUE_FRAMES * _FRAME}"
        return (
            f"qdisc {action} dev eth0 root handle 1: stab overhead 24 linklayer ethernet tbf rate {rate_bps}bit {size}"
        )


class Driver:
    """Switches on packet sockets."""

    def __init__(self, orders: Orders) -> None:
        self._events = Events(time.time_ns())
        self._switches = {name: Switch(design, self._events) for name, design in orders.designs.items()}
        at = {port: switch for switch in self._switches.values() for port in switch.design.links}
        if orders.trunk:
            one, other = orders.trunk
            trunk(at[one], one, at[other], other)
        self._drops = Counter[str]()
        self._late_ns = self._read = self._unsent = self._most_waiting = 0
        self._sockets: dict[str, socket.socket] = {}
        self._ports: dict[socket.socket, tuple[str, Switch, Sender]] = {}
        for port, switch in at.items():
            if not orders.trunk or port not in orders.trunk:
                _run("ip", "link", "set", "dev", port, "nomaster")
                sender = Sender(port, switch.design.links[port].rate_bps)
                self._sockets[port] = _packet_socket(port)
                self._ports[self._sockets[port]] = port, switch, sender
        self._control = socket.socket(socket.AF_UNIX)
        self._control.bind(orders.control)
        self._control.listen()

    def run(self) -> None:
        readers = [*self._ports, self._control, sys.stdin]
        while True:
            wait_s = (self._events.next_ns - time.time_ns()) / SECOND
            ready, _, _ = select.select(readers, [], [], min(max(wait_s, 0), _LONGEST_WAIT_S))
            now_ns = time.time_ns()
            for reader in ready:
                if reader in self._ports:
                    self._take(reader)
            self._late_ns = max(self._late_ns, now_ns - self._events.next_ns)
            self._events.advance(now_ns)
            for switch in self._switches.values():
                self._give(switch)
            for port, switch, sender in self._ports.values():
                waiting = switch.waiting(port)
                self._most_waiting = max(self._most_waiting, waiting)
                sender.follow(waiting)
            if self._control in ready:
                self._answer()
            if sys.stdin in ready:
                return

    def _take(self, sock: socket.socket) -> None:
        """Hand the frames that a node has sent to its card."""
        port, switch, _ = self._ports[sock]
        with contextlib.suppress(BlockingIOError):
            while True:
                data, [(_, _, stamp)], _, _ = sock.recvmsg(_MOST_FRAME, 64)
                assert not data[_SUPER_PACKET], f"{port}: the node sends several frames at once"
                seconds, ns = _STAMP.unpack(stamp)
                self._read += 1
                switch.arrive(seconds * SECOND + ns, port, data[_HEADER:], data[:_HEADER])

    def _give(self, switch: Switch) -> None:
        """Send what has left a switch to the nodes."""
        departures, drops = switch.taken()
        for gone in departures:
            try:
                self._sockets[gone.port].send((gone.note or bytes(_HEADER)) + gone.frame)
            except OSError:  # the node's interface is down
                self._unsent += 1
        for drop in drops:
            self._drops[f"{drop.port} {drop.why}"] += 1

    def _answer(self) -> None:
        """Send all counters to whoever connects."""
        ports: dict[str, Any] = {}
        for switch in self._switches.values():
            for port, (into, out) in switch.counters().items():
                rate_bps = switch.design.links[port].rate_bps
                ports[port] = {"in": asdict(into), "out": asdict(out), "rate_bps": rate_bps}
        groups = {name: switch.forwarded for name, switch in self._switches.items()}
        members = {name: _members(switch) for name, switch in self._switches.items()}
        used = resource.getrusage(resource.RUSAGE_SELF)
        own = {"frames": self._read, "unsent": self._unsent, "late_s": self._late_ns / SECOND}
        own |= {"cpu_s": used.ru_utime + used.ru_stime, "most_waiting": self._most_waiting}
        text = json.dumps({"ports": ports, "drops": self._drops, "groups": groups, "members": members, "process": own})
        peer, _ = self._control.accept()
        with peer, contextlib.suppress(OSError):
            peer.sendall(text.encode())


def _members(switch: Switch) -> dict[str, list[str]]:
    """Return the ports that have joined each multicast group."""
    if switch.snoops is None:
        return {}
    now_ns = switch.events.now_ns
    return {str(IPv4Address(group)): sorted(switch.snoops.joined(now_ns, group)) for group in switch.snoops.members}


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def _packet_socket(port: str) -> socket.socket:
    """Return a socket that gets the frames of a port with their times, and sends frames there."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    for option in (_VNET_HEADER, _IGNORE_OUTGOING):
        sock.setsockopt(_SOL_PACKET, option, 1)
    sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    with contextlib.suppress(PermissionError):
        sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE, socket(7)
    sock.setblocking(False)
    sock.bind((port, _ALL_PROTOCOLS))
    return sock


def read(control: Path) -> dict[str, Any]:
    """Return what the switches have counted so far."""
    with socket.socket(socket.AF_UNIX) as sock, sock.makefile("rb") as answer:
        sock.connect(str(control))
        counted: dict[str, Any] = json.load(answer)
        return counted


@contextmanager
def driven(enter: list[str], orders: Orders) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the switches of `orders` during the block. `enter` are words that enter the switches' namespaces."""
    command = [*enter, "env", f"PYTHONPATH={Path(__file__).parents[1]}"]
    command += [sys.executable, "-m", "known_switch.ports", orders.control]
    with running(command, DEADLINE_S, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin:  # the process ends when this closes
            pickle.dump(orders, process.stdin)
            process.stdin.flush()
            assert process.stdout.readline() == b"ready\n", "the switch did not start; its messages are above"
            yield process


def main() -> None:
    with contextlib.suppress(OSError):
        os.nice(-10)  # a switch does not wait for the programs of its hosts
    driver = Driver(pickle.load(sys.stdin.buffer))
    print("ready", flush=True)
    driver.run()


if __name__ == "__main__":
    main()
