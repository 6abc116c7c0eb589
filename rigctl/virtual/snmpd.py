"""Runs net-snmp's snmpd, by which virtual switches answer SNMP at the machine's 127.0.0.1.

The starter binds the socket in the controller's network namespace. snmpd runs in the switches' namespace, whose
interfaces it reports, and takes the socket as from systemd (LISTEN_FDS, sd_listen_fds(3)). The kernel ends snmpd with
the rig's process namespace.

A hardware switch counts overflows of a port's queue in ifOutDiscards (RFC 2863). On Linux, the interface counts only
drops of the driver, and the queue (tbf) has a separate count. So snmpd gets this column from `python -m
rigctl.virtual.snmpd` (pass_persist in snmpd.conf(5)), which adds both counts until snmpd closes its pipe.
"""

import json
import os
import re
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

FOLDER: Final = Path("/run/rigctl/snmp")  # folder in the rig's private /run, which ends with the rig
_CONTROL: Final = ("127.0.0.1", 161)  # address in the switches' namespace, which only the holder can enter
_PASSED: Final = 3  # number of the first descriptor in sd_listen_fds(3)
# nsCacheTimeout of the interfaces' table (NET-SNMP-AGENT-MIB): for how many seconds snmpd repeats values (default: 3).
_CACHE_TIMEOUT: Final = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"
_OUT_DISCARDS: Final = ".1.3.6.1.2.1.2.2.1.19"
_OID: Final = re.compile(rf"{re.escape(_OUT_DISCARDS)}(?:\.([0-9]+))?")  # the column, or one interface by its index
_SAME_S: Final = 0.005
"""Within this time, requests get values of the same reading, because snmpd asks for each port separately."""
# Serve only system (uptime), interfaces, ifMIB and the age of the counters.
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
    """Start snmpd on a bound UDP socket. Return its community; if it does not answer, log this and return None."""
    community, control = secrets.token_hex(16), secrets.token_hex(16)
    FOLDER.mkdir(parents=True, mode=0o700)
    config = FOLDER / "snmpd.conf"
    config.touch(mode=0o600)
    words = {"community": community, "control": control, "name": name, "folder": FOLDER, "column": _OUT_DISCARDS}
    config.write_text(_CONFIG.format(**words))
    # A script, because snmpd would split a command at the spaces that the interpreter's path may contain.
    (FOLDER / "discards").write_text(f"exec {shlex.quote(sys.executable)} -P -m rigctl.virtual.snmpd\n")
    _start(config, sock)
    if await read_anew(control):
        return community
    print("snmpd does not answer: the switches have no SNMP", file=sys.stderr, flush=True)
    return None


def _start(config: Path, sock: socket.socket) -> None:
    # LISTEN_PID must be the process id of snmpd: that of the shell, which exec keeps.
    listens = f"udp:127.0.0.1:{sock.getsockname()[1]} udp:{_CONTROL[0]}:{_CONTROL[1]}"
    line = f"LISTEN_PID=$$ exec snmpd -f -C -c {config} -LE 3 -I -smux {listens}"
    environment = {
        "PATH": os.environ["PATH"],
        "LISTEN_FDS": "1",
        "MIBS": "",  # load no MIB files, because all names are numeric
        "SNMP_PERSISTENT_DIR": str(FOLDER),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # where the program that counts frames finds rigctl
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # posix_spawn, because subprocess cannot pass a descriptor under another number.
    os.posix_spawn(
        "/bin/sh",
        ["/bin/sh", "-c", line],
        environment,
        file_actions=[
            # The holder's standard input tells the end of its starter, so no other process may hold it.
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 2, 1),
            (os.POSIX_SPAWN_DUP2, sock.fileno(), _PASSED),
        ],
    )


async def read_anew(community: str, place: tuple[str, int] = _CONTROL) -> bool:
    """Tell snmpd to read the interfaces for each request. Return True if snmpd confirms this."""
    from pysnmp.hlapi.v3arch import asyncio as hlapi  # a slow import, rarely needed

    engine = hlapi.SnmpEngine()
    try:
        target = await hlapi.UdpTransportTarget.create(place, timeout=0.05, retries=60)
        zero = hlapi.ObjectType(hlapi.ObjectIdentity(_CACHE_TIMEOUT), hlapi.Integer32(0))
        user = hlapi.CommunityData(community, mpModel=1)  # noqa: S508 — stays on this machine
        failure, status, _, _ = await hlapi.set_cmd(engine, user, target, hlapi.ContextData(), zero, lookupMib=False)
        return failure is None and not status
    finally:
        engine.close_dispatcher()


def main() -> None:
    """Answer snmpd's requests for discarded frames until its pipe closes."""
    read_at, dropped = 0.0, Counter[int]()
    while verb := sys.stdin.readline().strip().lower():
        if verb == "ping":
            print("PONG", flush=True)
            continue
        oid = sys.stdin.readline().strip()
        if time.monotonic() - read_at > _SAME_S:
            dropped = discards(_json_of(["ip", "-s", "-j", "link"]), _json_of(["tc", "-s", "-j", "qdisc"]))
            read_at = time.monotonic()
        print(answer_snmpd(verb, oid, dropped), flush=True)


def answer_snmpd(verb: str, oid: str, dropped: Mapping[int, int]) -> str:
    """Return the answer to `get` or `getnext` for an OID, in the form of pass_persist: OID, type and value, or NONE."""
    match = _OID.fullmatch(oid)
    if match is None or verb not in {"get", "getnext"}:
        return "NONE"
    index = int(match[1] or 0)
    if verb == "getnext":
        index = min((other for other in dropped if other > index), default=0)
    return f"{_OUT_DISCARDS}.{index}\ncounter\n{dropped[index] % 2**32}" if index in dropped else "NONE"


def discards(links: list[dict[str, Any]], queues: list[dict[str, Any]]) -> Counter[int]:
    """Return dropped frames by interface index: those of the driver (`ip -s link`) and of the queue (`tc -s qdisc`)."""
    in_queue = {queue["dev"]: queue["drops"] for queue in queues if queue.get("root") and "drops" in queue}
    return Counter(
        {link["ifindex"]: link["stats64"]["tx"]["dropped"] + in_queue.get(link["ifname"], 0) for link in links}
    )


def _json_of(command: list[str]) -> list[dict[str, Any]]:
    printed: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return printed


if __name__ == "__main__":
    main()
