"""A real SNMP agent (net-snmp's snmpd) for the switches' interfaces, on a socket of the machine's own 127.0.0.1.

The starter binds the socket in the controller's namespace. snmpd takes it over as systemd would hand it one
(LISTEN_FDS, sd_listen_fds(3)) and runs in the switches' namespace. So no packet is relayed, and snmpd answers with the
interfaces of the bridges. snmpd is a process of the rig's namespace: the kernel ends it with the rig.

A switch counts what overflows a port's queue in ifOutDiscards (RFC 2863). Linux does not: its interface counts only
what the driver drops, and the queue (tbf) keeps a count of its own. So snmpd asks `python -m rigctl.virtual.snmpd` for
that one column (pass_persist in snmpd.conf(5)); the program adds the two. It ends with snmpd, whose pipe it reads.
"""

import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path("/run/rigctl/snmp")  # in the rig's own /run, which is gone with it
_ASK_AGAIN_S: Final = 0.05
_MOST_TRIES: Final = 60
_CONTROL: Final = ("127.0.0.1", 161)  # in the switches' namespace, where only the holder is
_PASSED: Final = 3  # the first descriptor that sd_listen_fds(3) hands over
# NET-SNMP-AGENT-MIB's nsCacheTimeout of the interfaces' table: seconds for which snmpd repeats what it read. 3 by
# default; 0 makes it look anew for each request, so that a counter is as old as its answer.
_CACHE_TIMEOUT: Final = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"
_OUT_DISCARDS: Final = ".1.3.6.1.2.1.2.2.1.19"
_COUNTER32: Final = 2**32
_SAME_S: Final = 0.005
"""One request asks for many ports, one after the other: they get numbers of one reading."""
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
pass_persist {column} /bin/sh {folder}/discards
dontLogTCPWrappersConnects yes
[snmp] persistentDir {folder}
"""


async def serve(name: str, sock: socket.socket) -> str | None:
    """Start snmpd on a bound UDP socket. Return its community, or None if it does not answer: the log says why."""
    community, control = secrets.token_hex(16), secrets.token_hex(16)
    FOLDER.mkdir(parents=True, mode=0o700)
    config = FOLDER / "snmpd.conf"
    config.touch(mode=0o600)
    config.write_text(
        _CONFIG.format(community=community, control=control, name=name, folder=FOLDER, column=_OUT_DISCARDS)
    )
    # A script: snmpd cuts its line at spaces, and the interpreter's path may have some.
    (FOLDER / "discards").write_text(f"exec {shlex.quote(sys.executable)} -P -m rigctl.virtual.snmpd\n")
    _start(config, sock)
    if await read_anew(control):
        return community
    print("snmpd does not answer: the switches have no SNMP", file=sys.stderr, flush=True)
    return None


def _start(config: Path, sock: socket.socket) -> None:
    # The shell knows the process id that LISTEN_PID must have: its own, which exec keeps.
    listens = f"udp:127.0.0.1:{sock.getsockname()[1]} udp:{_CONTROL[0]}:{_CONTROL[1]}"
    line = f"LISTEN_PID=$$ exec snmpd -f -C -c {config} -LE 3 -I -smux {listens}"
    environment = {
        "PATH": os.environ["PATH"],
        "LISTEN_FDS": "1",
        "MIBS": "",  # numbers are enough: no files to look for
        "SNMP_PERSISTENT_DIR": str(FOLDER),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # for the program that counts discards
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # Not by subprocess, which cannot give a descriptor another number.
    os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", line],
        environment,
        file_actions=[
            # Standard input is the holder's lifeline, which no other process may hold.
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
            (os.POSIX_SPAWN_DUP2, sock.fileno(), _PASSED),
        ],
    )


async def read_anew(community: str, place: tuple[str, int] = _CONTROL) -> bool:
    """Make snmpd read the interfaces anew for each request. Return True if it has agreed, and so answers."""
    from pysnmp.hlapi.v3arch import asyncio as hlapi  # slow to import: few rigs need it, and `main` never does

    engine = hlapi.SnmpEngine()
    try:
        target = await hlapi.UdpTransportTarget.create(place, timeout=_ASK_AGAIN_S, retries=_MOST_TRIES)
        zero = hlapi.ObjectType(hlapi.ObjectIdentity(_CACHE_TIMEOUT), hlapi.Integer32(0))
        user = hlapi.CommunityData(community, mpModel=1)  # noqa: S508 — it does not leave this machine
        failure, status, _, _ = await hlapi.set_cmd(engine, user, target, hlapi.ContextData(), zero, lookupMib=False)
        return failure is None and not status
    finally:
        engine.close_dispatcher()


def main() -> None:
    """Answer snmpd's questions about discarded frames until its pipe ends."""
    read_at, dropped = 0.0, Counter[int]()
    while verb := sys.stdin.readline().strip().lower():
        if verb == "ping":
            print("PONG", flush=True)
            continue
        oid = sys.stdin.readline().strip()
        if time.monotonic() - read_at > _SAME_S:
            dropped = discards(_json_of(["ip", "-s", "-j", "link"]), _json_of(["tc", "-s", "-j", "qdisc"]))
            read_at = time.monotonic()
        print(answer(verb, oid, dropped), flush=True)


def answer(verb: str, oid: str, dropped: Mapping[int, int]) -> str:
    """Return the answer to `get` or `getnext` for an OID: the object with its type and value, or NONE."""
    index = _index(oid)
    if index is None:
        return "NONE"
    if verb == "getnext":
        index = min((other for other in dropped if other > index), default=0)
    if verb not in {"get", "getnext"} or index not in dropped:
        return "NONE"
    return f"{_OUT_DISCARDS}.{index}\ncounter\n{dropped[index] % _COUNTER32}"


def _index(oid: str) -> int | None:
    """Return the interface an OID of the column is about, 0 for the column itself; None for any other OID."""
    if oid == _OUT_DISCARDS:
        return 0
    column, _, last = oid.partition(f"{_OUT_DISCARDS}.")
    return int(last) if column == "" and last.isascii() and last.isdigit() else None


def discards(links: list[dict[str, Any]], queues: list[dict[str, Any]]) -> Counter[int]:
    """Return the dropped frames by interface index, from what `ip -s link` and `tc -s qdisc` print as JSON."""
    in_queue = {queue["dev"]: queue["drops"] for queue in queues if queue.get("root") and "drops" in queue}
    return Counter(
        {link["ifindex"]: link["stats64"]["tx"]["dropped"] + in_queue.get(link["ifname"], 0) for link in links}
    )


def _json_of(command: list[str]) -> list[dict[str, Any]]:
    printed: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return printed


if __name__ == "__main__":
    main()
