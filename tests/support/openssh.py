"""Real OpenSSH servers on 127.0.0.1, each with its own host key, configuration and folder."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from processes import end

from rigctl.records import Link
from rigctl.rig.inventory import Node, Rig

USER = pwd.getpwuid(os.getuid()).pw_name


def new_key(path: Path, comment: str = "test", passphrase: str = "") -> Path:
    """An ED25519 key pair at `path` and `path`.pub."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, timeout=10)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Sshd:
    """A running sshd. `key` opens it; `known_hosts` vouches for it."""

    port: int
    folder: Path
    key: Path
    known_hosts: Path
    process: "subprocess.Popen[bytes]"
    address: str = "127.0.0.1"

    @property
    def host_key(self) -> str:
        """Type and base64 of its public host key."""
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    @property
    def fingerprint(self) -> str:
        listed = subprocess.run(
            ["ssh-keygen", "-lf", str(self.folder / "host_key.pub")], check=True, capture_output=True, text=True
        )
        return listed.stdout.split()[1]

    def node(self, name: str = "pi1", **changes: object) -> Node:
        """A node of a rig that is this server."""
        settings: dict[str, object] = {
            "name": name,
            "address": self.address,
            "link": Link(None, None),
            "port": self.port,
            "user": USER,
            "key": self.key,
            "known_hosts": self.known_hosts,
            # Servers on one host are told apart by this, as the loopback rig's nodes are.
            "data_address": "127.0.0.1",
        }
        return Node(**(settings | changes))  # type: ignore[arg-type]

    def sessions(self) -> list[int]:
        """The processes that serve connections: children of the listening one."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(pid) for pid in listed.stdout.split()]

    def emptied(self) -> bool:
        """Whether every connection's process ends within a few seconds: a client is gone a moment before its server."""
        until = time.monotonic() + 5
        while self.sessions() and time.monotonic() < until:
            time.sleep(0.01)
        return not self.sessions()

    def stop(self) -> None:
        """End it and its connections."""
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        end(self.process, politely_for_s=5)


def rig_of(*nodes: Node) -> Rig:
    return Rig(name="test", title="", nodes={node.name: node for node in nodes}, switch=None)


@dataclass
class SshdFactory:
    folder: Path
    servers: list[Sshd] = field(default_factory=list)

    def __call__(self, *options: str) -> Sshd:
        """Start one, with further lines for its sshd_config."""
        folder = self.folder / f"sshd{len(self.servers) + 1}"
        folder.mkdir()
        new_key(folder / "host_key")
        key = new_key(folder / "user_key")
        shutil.copy(key.with_suffix(".pub"), folder / "authorized_keys")
        port = free_port()
        config = folder / "sshd_config"
        config.write_text("\n".join([*self._base(folder, port), *options]) + "\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        process = subprocess.Popen(
            [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(config)],
            stdin=subprocess.DEVNULL,
            stderr=(folder / "log").open("wb"),
        )
        public = (folder / "host_key.pub").read_text().split()
        known = folder / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
        server = Sshd(port, folder, key, known, process)
        self.servers.append(server)
        self._wait(server)
        return server

    @staticmethod
    def _base(folder: Path, port: int) -> list[str]:
        return [
            f"Port {port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder}/host_key",
            f"AuthorizedKeysFile {folder}/authorized_keys",
            f"PidFile {folder}/pid",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "MaxStartups 100",
            "UseDNS no",
            "LogLevel ERROR",
        ]

    @staticmethod
    def _wait(server: Sshd) -> None:
        """Until it accepts connections, and its process for the one that found out has ended."""
        until = time.monotonic() + 20
        while time.monotonic() < until and server.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1) as probe:
                probe.recv(1)
                probe.close()
                if server.emptied():
                    return
            time.sleep(0.01)
        raise RuntimeError(f"sshd did not start: {(server.folder / 'log').read_text()}")
