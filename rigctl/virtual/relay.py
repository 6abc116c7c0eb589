"""The process that delays the frames of virtual links with a round-trip time: `python -m rigctl.virtual.relay`.

A link with a round-trip time is two TAP devices (Documentation/networking/tuntap.rst) in place of a veth cable, and
this process between them. Frames cross whole, with their virtio-net header: the kernel still does segmentation and
checksums. The holder starts the relay with the TAPs' descriptors. The times to hold frames come in on standard input
and are confirmed on standard output. The relay ends with its input.
"""

import ctypes
import json
import os
import select
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

MOST_FRAME: Final = 65536 + 64  # a super-packet, with its headers
AWAKE_NS: Final = 400_000
"""Time before a frame is due in which the relay stays awake: a processor that must be woken would send it late."""
_PR_SET_TIMERSLACK: Final = 29  # linux/prctl.h
_TURN: Final = 64
"""Frames taken in one direction before the other direction has its turn."""


@dataclass(slots=True)
class Way:
    """One direction of a link: its TAPs, and the frames on their way, each with the time at which it is due."""

    source: int
    target: int
    link: int
    held: deque[tuple[int, bytes]] = field(default_factory=deque)


class Relay:
    """Carries frames between pairs of TAPs. `hold_ns` of each pair may change while it runs."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self._ways = [Way(*ends, link) for link, (a, b) in enumerate(pairs) for ends in ((a, b), (b, a))]
        self.hold_ns = [0] * len(pairs)

    def serve(self, control: int, said: int) -> None:
        """Carry frames until `control` ends. Each line on it, a JSON list of times, is answered on `said`."""
        sources = [control, *(way.source for way in self._ways)]
        while True:
            readable = select.select(sources, [], [], self._wait_s())[0]
            if control in readable:
                line = os.read(control, 65536)
                if not line:
                    return
                self.hold_ns = json.loads(line)
                os.write(said, b"holding\n")
            for way in self._ways:
                if way.source in readable:
                    self._take(way)
            self._let_go()

    def _wait_s(self) -> float | None:
        due = [way.held[0][0] for way in self._ways if way.held]
        return max(0.0, (min(due) - AWAKE_NS - time.monotonic_ns()) / 1e9) if due else None

    def _take(self, way: Way) -> None:
        hold_ns = self.hold_ns[way.link]
        for _ in range(_TURN):
            try:
                frame = os.read(way.source, MOST_FRAME)
            except BlockingIOError:
                return
            way.held.append((time.monotonic_ns() + hold_ns, frame))

    def _let_go(self) -> None:
        now = time.monotonic_ns()
        for way in self._ways:
            while way.held and way.held[0][0] <= now:
                try:
                    os.write(way.target, way.held.popleft()[1])
                except OSError:
                    continue  # the link is down there, or its kernel has no room: a frame is lost, as on a cable


def main() -> int:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # wake at the time, not up to 50 us later
    Relay([(pair[0], pair[1]) for pair in json.loads(sys.argv[1])]).serve(sys.stdin.fileno(), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
