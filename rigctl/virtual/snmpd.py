"""A real SNMP agent (net-snmp's snmpd) for the switches' interfaces, on a socket of the machine's own 127.0.0.1.

The socket was bound by the starter, in the namespace where the controller is; snmpd takes it over as systemd would hand
it one (LISTEN_FDS, sd_listen_fds(3)) and runs in the switches' namespace. So no packet is relayed, and it answers with
the interfaces of the bridges. It is a process of the rig's namespace and ends with it, by the kernel.
"""

import asyncio
import contextlib
import os
import secrets
import shlex
import socket
import sys
from pathlib import Path
from typing import Final

from rigctl.base.processes import process
from rigctl.virtual.discards import OUT_DISCARDS

FOLDER: Final = Path("/run/rigctl/snmp")  # in the rig's own /run, which is gone with it
START_DEADLINE_S: Final = 3.0
_ASK_AGAIN_S: Final = 0.05
_CONTROL: Final = ("127.0.0.1", 161)  # in the switches' namespace, where only the holder is
_PASSED: Final = 3  # the first descriptor that sd_listen_fds(3) hands over
# NET-SNMP-AGENT-MIB's nsCacheTimeout of the interfaces' table: seconds for which snmpd repeats what it read. 3 by
# default; 0 makes it look anew for each request, so that a counter is as old as its answer.
CACHE_TIMEOUT: Final = (1, 3, 6, 1, 4, 1, 8072, 1, 5, 3, 1, 2, 1, 3, 6, 1, 2, 1, 2, 2)
_CACHE_S: Final = 0
# What is served: system (time up), interfaces, ifMIB, and how old the counters may be. Nothing else of this machine.
_CONFIG: Final = """\
view rig included .1.3.6.1.2.1.1
view rig included .1.3.6.1.2.1.2
view rig included .1.3.6.1.2.1.31
view rig included .1.3.6.1.4.1.8072.1.5.3
view cache included .1.3.6.1.4.1.8072.1.5.3
rocommunity {community} default -V rig
rwcommunity {control} 127.0.0.1 -V cache
sysDescr switches of a virtual rig of rigctl
sysName {name}
pass_persist .{column} /bin/sh {folder}/discards
dontLogTCPWrappersConnects yes
[snmp] persistentDir {folder}
"""
_VERSION_2C: Final = 1
_INTEGER, _TEXT, _NAME, _LIST, _RESPONSE, _SET = 0x02, 0x04, 0x06, 0x30, 0xA2, 0xA3


async def served(name: str, sock: socket.socket) -> str | None:
    """Start snmpd on a bound UDP socket; its community. None where it does not come to answer: the log says why."""
    community, control = secrets.token_hex(16), secrets.token_hex(16)
    FOLDER.mkdir(parents=True, mode=0o700)
    config = FOLDER / "snmpd.conf"
    config.touch(mode=0o600)
    config.write_text(
        _CONFIG.format(
            community=community,
            control=control,
            name=name,
            folder=FOLDER,
            column=".".join(map(str, OUT_DISCARDS)),
        )
    )
    # A script: snmpd cuts its line at spaces, and the interpreter's path may have some.
    (FOLDER / "discards").write_text(f"exec {shlex.quote(sys.executable)} -P -m rigctl.virtual.discards\n")
    pid = _spawn(config, sock)
    if await _quickened(control, pid):
        return community
    print("snmpd does not answer: the switches have no SNMP", file=sys.stderr, flush=True)
    return None


def _spawn(config: Path, sock: socket.socket) -> int:
    port = sock.getsockname()[1]
    # The shell knows the process id that LISTEN_PID must have: its own, which exec keeps.
    words = "LISTEN_PID=$$ exec snmpd -f -C -c {config} -LE 3 -I -smux udp:127.0.0.1:{port} udp:{host}:{control}"
    line = words.format(config=config, port=port, host=_CONTROL[0], control=_CONTROL[1])
    return os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", line],
        {
            "PATH": os.environ["PATH"],
            "LISTEN_FDS": "1",
            "MIBS": "",  # numbers are enough: no files to look for
            "SNMP_PERSISTENT_DIR": str(FOLDER),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # for rigctl.virtual.discards
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        file_actions=[
            # Standard input is the holder's lifeline: not for others to hold.
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
            (os.POSIX_SPAWN_DUP2, sock.fileno(), _PASSED),
        ],
    )


async def _quickened(control: str, pid: int) -> bool:
    """Have the interfaces read anew for each request. True when snmpd (`pid`) has agreed, so it answers."""
    request = set_request(control, CACHE_TIMEOUT, _CACHE_S)
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(TimeoutError):
        asking.setblocking(False)
        asking.connect(_CONTROL)
        async with asyncio.timeout(START_DEADLINE_S):
            while process(pid) is not None:
                with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                    async with asyncio.timeout(_ASK_AGAIN_S):
                        await loop.sock_sendall(asking, request)
                        if granted(await loop.sock_recv(asking, 4096)):
                            return True
                await asyncio.sleep(_ASK_AGAIN_S / 5)
    return False


def set_request(community: str, oid: tuple[int, ...], value: int) -> bytes:
    """An SNMP v2c SetRequest of one whole number, 0 to 127 (RFC 3416, 4.2.5; BER as in RFC 3417, 8)."""
    variable = _tlv(_LIST, _tlv(_NAME, _oid(oid)) + _tlv(_INTEGER, bytes([value])))
    zero = _tlv(_INTEGER, b"\0")
    pdu = _tlv(_SET, _tlv(_INTEGER, b"\1") + zero + zero + _tlv(_LIST, variable))
    return _tlv(_LIST, _tlv(_INTEGER, bytes([_VERSION_2C])) + _tlv(_TEXT, community.encode()) + pdu)


def granted(answer: bytes) -> bool:
    """Whether an answer to `set_request` says that it was done: a Response whose error-status is 0."""
    try:
        _, message, _ = _part(answer)
        _, _, rest = _part(message)  # version
        _, _, rest = _part(rest)  # community
        kind, pdu, _ = _part(rest)
        _, _, rest = _part(pdu)  # request's number
        _, status, _ = _part(rest)
    except IndexError:
        return False
    return kind == _RESPONSE and status == b"\0"


def _tlv(kind: int, value: bytes) -> bytes:
    """Type, length, value. All that is sent here is shorter than 128 bytes but the whole."""
    length = bytes([len(value)]) if len(value) < 128 else bytes([0x81, len(value)])
    return bytes([kind]) + length + value


def _part(data: bytes) -> tuple[int, bytes, bytes]:
    """The first value's type, the value, and what follows it. Raises `IndexError` where it is cut off."""
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise IndexError
    return data[0], data[start : start + length], data[start + length :]


def _oid(numbers: tuple[int, ...]) -> bytes:
    encoded = bytearray([numbers[0] * 40 + numbers[1]])
    for number in numbers[2:]:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        encoded += bytes(reversed(groups))
    return bytes(encoded)
