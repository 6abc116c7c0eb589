"""Runs net-snmp's snmpd on a port of 127.0.0.1. It ends with its block, and also if the test process is killed."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import eventually, running

from rigctl.base.errors import NodeError
from rigctl.rig.inventory import Secrets, Snmp, Switch
from rigctl.switches import reader_of


@contextmanager
def snmpd(folder: Path, config: str, community: str) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """Run snmpd with the lines of `config`, which give `community` access. Yield its port and its process.

    It takes over a socket, as from systemd, so that nobody else can have the port.
    """
    command = shutil.which("snmpd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert command is not None, "the Debian package snmpd is missing"
    (folder / "snmpd.conf").write_text(f"{config}[snmp] persistentDir {folder}\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = int(sock.getsockname()[1])
        options = f"-f -C -c {folder}/snmpd.conf -Lf {folder}/log -I -smux udp:127.0.0.1:{port}"
        run = f"exec setpriv --pdeathsig KILL {command} {options} 3<&{sock.fileno()}"
        script = ["bash", "-c", f"export LISTEN_PID=$$ LISTEN_FDS=1; {run}"]
        with running(script, stdin=subprocess.DEVNULL, pass_fds=[sock.fileno()]) as process:
            sock.close()
            eventually(lambda: process.poll() is not None or asyncio.run(_answers(port, community)))
            assert process.poll() is None, (folder / "log").read_text()
            yield port, process


async def _answers(port: int, community: str) -> bool:
    asked = Switch("agent", "", address="127.0.0.1", snmp=Snmp(port=port), secrets=Secrets(community=community))
    with contextlib.suppress(NodeError):
        async with reader_of(asked, []):
            return True
    return False
