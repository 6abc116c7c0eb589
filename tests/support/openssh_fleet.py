"""Many real OpenSSH servers at once, each a process of its own with its own address, host key and agent folder."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
from fake_nodes import PER_RANGE, rig_text
from processes import end

PREFIX = "127.2"
START_DEADLINE_S = 120.0


@contextmanager
def fleet(folder: Path, count: int) -> Iterator[Path]:
    """`count` servers on 127.2.0.1, 127.2.0.2, … at one port; gives the rig file. All have ended afterwards."""
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    addresses = [f"{PREFIX}.{number // PER_RANGE}.{number % PER_RANGE + 1}" for number in range(count)]
    with socket.socket() as probe:
        probe.bind((addresses[0], 0))
        port = probe.getsockname()[1]
    user = asyncssh.generate_private_key("ssh-ed25519")
    (folder / "authorized_keys").write_bytes(user.export_public_key())
    (folder / "key").touch(mode=0o600)
    (folder / "key").write_bytes(user.export_private_key())
    known = [_configured(folder, address, port) for address in addresses]
    (folder / "known_hosts").write_text("".join(known))
    rig = folder / "rig.yaml"
    rig.write_text(rig_text(folder, count, port, PREFIX))
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or "/usr/sbin/sshd"
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for address in addresses:
            command = [program, "-D", "-e", "-f", str(folder / f"{address}.config")]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for address in addresses:
            _wait(address, port)
        yield rig
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            end(process, politely_for_s=5)


def _configured(folder: Path, address: str, port: int) -> str:
    """Write a server's key and configuration; its line for known_hosts."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    path = folder / f"{address}.key"
    path.touch(mode=0o600)
    path.write_bytes(key.export_private_key())
    lines = [
        f"ListenAddress {address}:{port}",
        f"HostKey {path}",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "UseDNS no",
        "LogLevel QUIET",
        # Each has its own agent pushed, and a home without what this machine's user starts at each login.
        f"SetEnv XDG_CACHE_HOME={folder}/{address}.cache HOME={folder}",
    ]
    (folder / f"{address}.config").write_text("\n".join(lines) + "\n")
    return f"[{address}]:{port} {key.export_public_key().decode()}"


def _wait(address: str, port: int) -> None:
    until = time.monotonic() + START_DEADLINE_S
    while True:
        try:
            with socket.create_connection((address, port), 1) as connection:
                connection.recv(1)
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
