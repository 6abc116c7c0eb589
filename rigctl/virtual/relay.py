"""The process that delays the frames of links with an `rtt` in the rig file: `python -m rigctl.virtual.relay`.

Such a link has two TAP devices (Documentation/networking/tuntap.rst) instead of a veth pair, and the relay between.
Frames pass unchanged, with their virtio-net header, so the kernel still does segmentation and checksums.

At the start of a rig, the holder measures the round trip through the relay without delay. The relay then delays frames
so that the round trip takes the `rtt`. It gets the TAP descriptors at its start and the delays on standard input, and
confirms the delays on standard output. It ends when its input closes.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from rigctl.base.errors import RigError
from rigctl.virtual.layout import Layout, Place

_TUN: Final = "/dev/net/tun"
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0  # values from linux/if_tun.h
_TAP_WITH_HEADER: Final = 0x0002 | 0x1000 | 0x4000  # IFF_TAP, IFF_NO_PI, IFF_VNET_HDR
_OFFLOADS: Final = (0x7F, 0x0F)  # TUN_F_*: with UDP segmentation (Linux 6.2 and later), and without
_PR_SET_TIMERSLACK: Final = 29  # value from linux/prctl.h
_ECHOES: Final = 41
_MARK: Final = 0x7267  # identifier of the ICMP echoes
_MOST_FRAME: Final = 65536 + 64  # largest super-packet with its headers, in bytes
_AWAKE_NS: Final = 400_000
"""The relay polls for this long before a frame is due, because waking a processor would delay the frame."""
_TURN: Final = 64
"""Number of frames that the relay reads from one direction before it turns to the others."""


def nodes_with_rtt(layout: Layout) -> list[Place]:
    return [place for place in layout.places if place.rtt_ns is not None]


def make_tap(name: str) -> int:
    """Make a TAP device in this thread's network namespace. Return its descriptor; closing it removes the device."""
    try:
        descriptor = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RigError(f"a link with an rtt needs {_TUN} (the kernel's module tun): {error.strerror}") from None
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITH_HEADER))
        for offloads in _OFFLOADS:
            with contextlib.suppress(OSError):
                fcntl.ioctl(descriptor, _TUNSETOFFLOAD, offloads)
                break
    except OSError as error:
        os.close(descriptor)
        raise RigError(f"{name}: no TAP device can be made: {error.strerror}") from None
    return descriptor


@contextlib.contextmanager
def relay_frames(
    layout: Layout, taps: Mapping[str, tuple[int, int]], inside: Callable[[str, Callable[[], float]], float]
) -> Iterator[None]:
    """Run the relay during the `with` block. `taps` has the node's and the switch's TAP by node.

    `inside(name, work)` runs `work` in a node's namespace. Raise `RigError` if an rtt is too short for the relay.
    """
    places = nodes_with_rtt(layout)
    if not places:
        yield
        return
    passed = [end for ends in taps.values() for end in ends]
    pairs = json.dumps([taps[place.name] for place in places])
    command = [sys.executable, "-P", "-m", "rigctl.virtual.relay", pairs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=passed) as relay:
        for end in passed:
            os.close(end)  # only the relay keeps the TAPs open, so its end also ends the link
        try:
            assert relay.stdin is not None and relay.stdout is not None
            os.write(relay.stdin.fileno(), json.dumps([_delay_ns(layout, place, inside) for place in places]).encode())
            if relay.stdout.readline() != b"holding\n":
                raise RigError("the process that delays links with an rtt ended; see the rig's log")
            yield
        finally:
            relay.kill()


def _delay_ns(layout: Layout, place: Place, inside: Callable[[str, Callable[[], float]], float]) -> int:
    """Return the delay in ns that the relay must add per direction. Ping a node without an rtt, if there is one."""
    others = [other for other in layout.places if other is not place]
    other = next((place for place in others if place.rtt_ns is None), others[0])
    requested_ns, own_ns = place.rtt_ns or 0, round(inside(place.name, lambda: _echo_ns(other.ipv4)))
    if requested_ns < own_ns:
        needed = f"this machine needs {own_ns / 1e6:.3f} ms"
        raise RigError(f"{place.name}: rtt {requested_ns / 1e6:g} ms is too short ({needed}). Set a larger rtt.")
    print(f"{place.name}: a round trip takes {own_ns / 1e6:.3f} ms without delay", file=sys.stderr, flush=True)
    return (requested_ns - own_ns) // 2


def _echo_ns(address: str) -> float:
    """Return the median round trip of ICMP echoes (RFC 792) to `address` in ns, polling without sleep."""
    trips: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.setblocking(False)
        sock.connect((address, 0))
        until_s = time.monotonic() + 10  # the relay may still be starting
        number = 0
        while len(trips) < _ECHOES:
            number = (number + 1) % 65536
            sent_ns = time.monotonic_ns()
            with contextlib.suppress(OSError):
                sock.send(_echo(number))
            while (now_ns := time.monotonic_ns()) < sent_ns + 1e9:
                with contextlib.suppress(BlockingIOError):
                    if _answers(sock.recv(2048), number):
                        trips.append(now_ns - sent_ns)
                        break
            if time.monotonic() > until_s:
                raise RigError(f"{address} does not answer over a link with an rtt")
            time.sleep(0.001)
    return median(trips[1:])


def _echo(number: int) -> bytes:
    words = sum(struct.unpack("!4H", struct.pack("!BBHHH", 8, 0, 0, _MARK, number)))
    words = (words & 0xFFFF) + (words >> 16)
    return struct.pack("!BBHHH", 8, 0, ~words & 0xFFFF, _MARK, number)


def _answers(packet: bytes, number: int) -> bool:
    header = 4 * (packet[0] & 15)
    return packet[header : header + 1] == b"\0" and packet[header + 4 : header + 8] == struct.pack("!HH", _MARK, number)


@dataclass(slots=True)
class _Direction:
    """One direction of a link: the descriptors of its TAPs, and the delayed frames with the times when they are due."""

    source: int
    target: int
    link: int
    held: deque[tuple[int, bytes]] = field(default_factory=deque)

    def take(self, hold_ns: int) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_TURN):
                frame = os.read(self.source, _MOST_FRAME)
                self.held.append((time.monotonic_ns() + hold_ns, frame))

    def let_go(self) -> None:
        now_ns = time.monotonic_ns()
        while self.held and self.held[0][0] <= now_ns:
            # Drop the frame, as a real link would, if the interface is down or the kernel has no buffer space.
            with contextlib.suppress(OSError):
                os.write(self.target, self.held.popleft()[1])


def main() -> int:
    """Relay frames between the TAPs until standard input closes; return 0."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # wake on time, not up to 50 us late (the default)
    pairs = json.loads(sys.argv[1])
    directions = [_Direction(*ends, link) for link, (a, b) in enumerate(pairs) for ends in ((a, b), (b, a))]
    hold_ns = [0] * len(pairs)
    control = sys.stdin.fileno()
    sources = [control, *(direction.source for direction in directions)]
    while True:
        due = [direction.held[0][0] for direction in directions if direction.held]
        wait_s = max(0.0, (min(due) - _AWAKE_NS - time.monotonic_ns()) / 1e9) if due else None
        readable = select.select(sources, [], [], wait_s)[0]
        if control in readable:
            line = os.read(control, 65536)
            if not line:
                return 0
            hold_ns = json.loads(line)
            print("holding", flush=True)
        for direction in directions:
            if direction.source in readable:
                direction.take(hold_ns[direction.link])
        for direction in directions:
            direction.let_go()


if __name__ == "__main__":
    sys.exit(main())
