"""Records every TCP connection that is opened across a switch: `python syn_witness.py FILE`, in its namespace.

Writes a line per SYN, with the kernel's time: NS SOURCE SOURCE_PORT DESTINATION DESTINATION_PORT. SSH is left out.
Traffic generators report their start in whole seconds only; this gives all of them the same clock.
"""

import ctypes
import socket
import struct
import sys
from pathlib import Path
from typing import Final

_ETH_P_ALL: Final = 3
_SO_ATTACH_FILTER: Final = 26
_SO_TIMESTAMPNS: Final = 35
_OUTGOING: Final = 4  # linux/if_packet.h: the same frame as it leaves another port
# Socket filter (linux/filter.h) for IPv4, TCP, SYN without ACK, port other than 22.
_FILTER: Final = (
    (0x28, 0, 0, 12),  # ldh [12]
    (0x15, 0, 9, 0x0800),  # IPv4?
    (0x30, 0, 0, 23),  # ldb [23]
    (0x15, 0, 7, 6),  # TCP?
    (0xB1, 0, 0, 14),  # ldx 4 * ([14] & 15)
    (0x50, 0, 0, 27),  # ldb [x + 27], the flags
    (0x54, 0, 0, 0x12),
    (0x15, 0, 3, 0x02),
    (0x48, 0, 0, 16),  # ldh [x + 16], the port
    (0x15, 1, 0, 22),
    (0x06, 0, 0, 128),
    (0x06, 0, 0, 0),
)


def main() -> None:
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _FILTER))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as seen,
        Path(sys.argv[1]).open("w", buffering=1) as lines,
    ):
        seen.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_FILTER), ctypes.addressof(buffer)))
        seen.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        print("ready", flush=True)
        while True:
            frame, ancillary, _, where = seen.recvmsg(128, 64)
            if where[2] == _OUTGOING or not ancillary:
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            at = 14 + 4 * (frame[14] & 15)
            ports = struct.unpack("!HH", frame[at : at + 4])
            ends = (socket.inet_ntoa(frame[26:30]), ports[0], socket.inet_ntoa(frame[30:34]), ports[1])
            lines.write(" ".join(map(str, (seconds * 10**9 + nanoseconds, *ends))) + "\n")


if __name__ == "__main__":
    main()
