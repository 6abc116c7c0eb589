"""Links with a round-trip time: their TAP devices, and the relay between them. Runs in the holder.

When the rig starts, the round trip without any hold is measured, the relay's own work included. The relay holds frames
for the rest of the round trip that the rig file asks for.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Final

from rigctl.base.errors import RigError
from rigctl.virtual.layout import Layout, Place

_TUN: Final = "/dev/net/tun"
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0  # linux/if_tun.h
_TAP_WITH_HEADER: Final = 0x0002 | 0x1000 | 0x4000  # IFF_TAP, IFF_NO_PI, IFF_VNET_HDR
_OFFLOADS: Final = (0x7F, 0x0F)  # checksums and TCP segments, and UDP's where the kernel has it (Linux 6.2)
_ECHOES: Final = 41
_MARK: Final = 0x7267  # identifier of our echoes
_ECHO_DEADLINE_S: Final = 1.0
_SAID_DEADLINE_S: Final = 10.0


def distant(layout: Layout) -> list[Place]:
    """Return the nodes whose link has a round-trip time."""
    return [place for place in layout.places if place.rtt_ns is not None]


def tap(name: str) -> int:
    """Return the descriptor of a new TAP device in the calling thread's network namespace. The device ends with it."""
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
def relayed(
    layout: Layout, taps: Mapping[str, tuple[int, int]], inside: Callable[[str, Callable[[], float]], float]
) -> Iterator[None]:
    """Hold the frames of distant links while the `with` lasts. `taps`: by node, the node's end and the switch's.

    `inside(name, work)` does `work` in a node's namespace. Raise `RigError` if a link takes longer by itself than it
    should.
    """
    places = distant(layout)
    if not places:
        yield
        return
    pairs = json.dumps([taps[place.name] for place in places])
    passed = [end for ends in taps.values() for end in ends]
    command = [sys.executable, "-P", "-m", "rigctl.virtual.relay", pairs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=passed) as relay:
        for end in passed:
            os.close(end)  # the relay's alone: where it dies, the link is dead, not open to nobody
        try:
            assert relay.stdin is not None
            assert relay.stdout is not None
            os.write(relay.stdin.fileno(), json.dumps([_held_ns(layout, place, inside) for place in places]).encode())
            if relay.stdout.readline() != b"holding\n":
                raise RigError("the relay of a distant link ended; see the rig's log")
            yield
        finally:
            relay.kill()


def _held_ns(layout: Layout, place: Place, inside: Callable[[str, Callable[[], float]], float]) -> int:
    """Return how long the frames of a link are held each way, for the round trip that the rig file asks for.

    The round trip without any hold is measured to a node that is not distant, if there is one.
    """
    others = [other for other in layout.places if other is not place]
    other = next((place for place in others if place.rtt_ns is None), others[0])
    asked_ns, own_ns = place.rtt_ns or 0, round(inside(place.name, lambda: echo_ns(other.ipv4)))
    if asked_ns < own_ns:
        asked = f"rtt {asked_ns / 1e6:g} ms"
        raise RigError(f"{place.name}: {asked}: this machine takes {own_ns / 1e6:.3f} ms. Set a larger rtt.")
    print(f"{place.name}: a round trip takes {own_ns / 1e6:.3f} ms by itself", file=sys.stderr, flush=True)
    return (asked_ns - own_ns) // 2


def echo_ns(address: str) -> float:
    """Return the median round trip of ICMP echoes (RFC 792) to `address`, in ns. Wait for them without sleep."""
    trips: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
        sock.setblocking(False)
        sock.connect((address, 0))
        until_s = time.monotonic() + _SAID_DEADLINE_S  # the relay may still be starting
        number = 0
        while len(trips) < _ECHOES:
            number = (number + 1) % 65536
            sent_ns = time.monotonic_ns()
            with contextlib.suppress(OSError):
                sock.send(_echo(number))
            while (now_ns := time.monotonic_ns()) < sent_ns + _ECHO_DEADLINE_S * 1e9:
                with contextlib.suppress(BlockingIOError):
                    if _answers(sock.recv(2048), number):
                        trips.append(now_ns - sent_ns)
                        break
            if time.monotonic() > until_s:
                raise RigError(f"{address} does not answer over its distant link")
            time.sleep(0.001)
    return median(trips[1:])


def _echo(number: int) -> bytes:
    head = struct.pack("!BBHHH", 8, 0, 0, _MARK, number)
    words = sum(struct.unpack("!4H", head))
    words = (words & 0xFFFF) + (words >> 16)
    return struct.pack("!BBHHH", 8, 0, ~words & 0xFFFF, _MARK, number)


def _answers(packet: bytes, number: int) -> bool:
    header = 4 * (packet[0] & 15)
    return packet[header : header + 1] == b"\0" and packet[header + 4 : header + 8] == struct.pack("!HH", _MARK, number)
