"""A real SNMP agent (net-snmp's snmpd) for the switches' interfaces, on a socket of the machine's own 127.0.0.1.

The starter binds the socket in the controller's namespace. snmpd takes it over as systemd would hand it one
(LISTEN_FDS, sd_listen_fds(3)) and runs in the switches' namespace. So no packet is relayed, and snmpd answers with the
interfaces of the bridges. snmpd is a process of the rig's namespace: the kernel ends it with the rig.
"""

import os
import secrets
import shlex
import socket
import sys
from pathlib import Path
from typing import Final

from pysnmp.hlapi.v3arch import asyncio as hlapi

from rigctl.virtual.discards import OUT_DISCARDS

FOLDER: Final = Path("/run/rigctl/snmp")  # in the rig's own /run, which is gone with it
_ASK_AGAIN_S: Final = 0.05
_MOST_TRIES: Final = 60
_CONTROL: Final = ("127.0.0.1", 161)  # in the switches' namespace, where only the holder is
_PASSED: Final = 3  # the first descriptor that sd_listen_fds(3) hands over
# NET-SNMP-AGENT-MIB's nsCacheTimeout of the interfaces' table: seconds for which snmpd repeats what it read. 3 by
# default; 0 makes it look anew for each request, so that a counter is as old as its answer.
_CACHE_TIMEOUT: Final = "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"
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


async def served(name: str, sock: socket.socket) -> str | None:
    """Start snmpd on a bound UDP socket. Return its community, or None if it does not answer: the log says why."""
    community, control = secrets.token_hex(16), secrets.token_hex(16)
    FOLDER.mkdir(parents=True, mode=0o700)
    config = FOLDER / "snmpd.conf"
    config.touch(mode=0o600)
    column = ".".join(map(str, OUT_DISCARDS))
    config.write_text(
        _CONFIG.format(community=community, control=control, name=name, folder=FOLDER, column=column),
    )
    # A script: snmpd cuts its line at spaces, and the interpreter's path may have some.
    (FOLDER / "discards").write_text(f"exec {shlex.quote(sys.executable)} -P -m rigctl.virtual.discards\n")
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
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # for rigctl.virtual.discards
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
    """Make snmpd read the interfaces anew for each request. Return whether it has agreed, and so answers."""
    engine = hlapi.SnmpEngine()
    try:
        target = await hlapi.UdpTransportTarget.create(place, timeout=_ASK_AGAIN_S, retries=_MOST_TRIES)
        zero = hlapi.ObjectType(hlapi.ObjectIdentity(_CACHE_TIMEOUT), hlapi.Integer32(0))
        user = hlapi.CommunityData(community, mpModel=1)  # noqa: S508 — it does not leave this machine
        failure, status, _, _ = await hlapi.set_cmd(engine, user, target, hlapi.ContextData(), zero, lookupMib=False)
        return failure is None and not status
    finally:
        engine.close_dispatcher()
