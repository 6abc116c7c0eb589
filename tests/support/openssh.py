"""Real OpenSSH servers on 127.0.0.1, each with its own host key, configuration and folder."""

import asyncio
import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from processes import DEADLINE_S, end, eventually, signal_all

from rigctl.records import Link
from rigctl.remote.host import connect_node
from rigctl.remote.lock import lock_name
from rigctl.rig.inventory import Node, Rig

USER = pwd.getpwuid(os.getuid()).pw_name
GUEST = "rigguest"
GUEST_ID = 47110
GUEST_HOME = "/mnt/rigguest"
PATIENCE = 6
"""Factor by which tests that are not about deadlines lengthen rigctl's deadlines of 5 to 30 s."""
# $1 is the server's folder, the rest the command. Copies of accounts and sudo rules are mounted over the real files.
_OWN_SYSTEM = f"""
set -e; folder=$1; shift
mount --make-rprivate /
cp /etc/passwd /etc/group /etc/shadow "$folder"
echo '{GUEST}:x:{GUEST_ID}:{GUEST_ID}::{GUEST_HOME}:/bin/sh' >>"$folder/passwd"
echo '{GUEST}:x:{GUEST_ID}:' >>"$folder/group"
echo '{GUEST}:*:19000:0:99999:7:::' >>"$folder/shadow"
chmod 440 "$folder/sudoers"
for file in passwd group shadow sudoers; do mount --bind "$folder/$file" "/etc/$file"; done
mount --bind "$folder/pam" /etc/pam.d/sshd
mount -t tmpfs -o mode=755 rigctl-test /var/lib
mount -t tmpfs -o mode=755 rigctl-test /mnt
mount -t tmpfs -o mode=755 rigctl-test /run; mkdir -m 755 /run/sshd
mkdir {GUEST_HOME}; cp "$folder/authorized_keys" {GUEST_HOME}; chown -R {GUEST_ID} {GUEST_HOME}
exec "$@"
"""


def new_key(path: Path, comment: str = "test", passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", comment, "-f", str(path)]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    return path


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 that is reserved during the block, and on which nobody listens.

    A server that sets SO_REUSEADDR, such as sshd and dropbear, can still listen on the port.
    """
    with socket.socket() as keeping:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeping.bind(("127.0.0.1", 0))
        yield keeping.getsockname()[1]


def accepts(port: int) -> bool:
    """Tell whether a server on this port of 127.0.0.1 accepts a connection and sends data."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), DEADLINE_S) as probe:
        return probe.recv(1) != b""
    return False


@dataclass
class Sshd:
    """A running SSH server. `key` is the user's private key, `known_hosts` a file with the server's host key."""

    port: int
    folder: Path
    key: Path
    known_hosts: Path
    process: "subprocess.Popen[bytes]"
    address: str = "127.0.0.1"
    user: str = USER

    @property
    def fingerprint(self) -> str:
        return subprocess.check_output(["ssh-keygen", "-lf", self.folder / "host_key.pub"], text=True).split()[1]

    def node(self, name: str = "pi1", **changes: object) -> Node:
        # Servers on one host are told apart by the data address, as the loopback rig's nodes are.
        plain = Node(name, self.address, Link(None, None), data_address="127.0.0.1", patience=PATIENCE)
        trusted = {"port": self.port, "user": self.user, "key": self.key, "known_hosts": self.known_hosts}
        return replace(plain, **(trusted | changes))  # type: ignore[arg-type]

    def inside(self, path: str) -> Path:
        """`path` as its users see it: a server may have a file system of its own."""
        return Path(f"/proc/{self.process.pid}/root{path}")

    def sessions(self) -> list[int]:
        """The processes that serve connections: children of the listening one."""
        command = ["ps", "-o", "pid=", "--ppid", str(self.process.pid)]
        return [int(pid) for pid in subprocess.run(command, capture_output=True, text=True).stdout.split()]

    def serving(self) -> list[int]:
        """Return all processes that serve connections: for a user other than root, sshd has two of them."""
        first = self.sessions()
        listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        return [*(int(row[0]) for row in rows if int(row[1]) in first and row[2].startswith("sshd")), *first]

    def cut(self) -> None:
        """Cut all connections, as if the network or the server failed."""
        signal_all(self.serving(), signal.SIGKILL)

    def emptied(self) -> bool:
        """Wait until every connection's process has ended: a client is gone a moment before its server."""
        return eventually(lambda: not self.sessions())

    def stop(self) -> None:
        signal_all(self.sessions(), signal.SIGKILL)
        end(self.process, politely_for_s=5)


Start = Callable[..., Sshd]
"""The fixture `sshd` of the integration tests: starts a server that ends with the test."""


def rig_of(*nodes: Node) -> Rig:
    return Rig(name="test", title="", nodes={node.name: node for node in nodes}, switch=None)


@dataclass
class SshdFactory:
    folder: Path
    servers: list[Sshd] = field(default_factory=list)

    def __call__(self, *options: str, sudoers: str | None = None, pam: str = "") -> Sshd:
        """Start and return an SSH server, with `options` as further lines of its sshd_config.

        With `sudoers`, its user is GUEST with these sudo rules, not root, and it has its own /var/lib and /run. They
        are in a mount namespace, so that nothing is left of them. `pam` is its /etc/pam.d/sshd.
        """
        with kept_port() as port:
            server = self._started(port, options, sudoers, pam)
            self.servers.append(server)
            eventually(lambda: server.process.poll() is not None or accepts(port))
        if server.process.poll() is not None or not server.emptied():
            raise RuntimeError(f"sshd did not start: {(server.folder / 'log').read_text()}")
        return server

    def _started(self, port: int, options: tuple[str, ...], sudoers: str | None, pam: str) -> Sshd:
        folder = self.folder / f"sshd{len(self.servers) + 1}"
        folder.mkdir()
        new_key(folder / "host_key")
        key = new_key(folder / "user_key")
        shutil.copy(key.with_suffix(".pub"), folder / "authorized_keys")
        config = folder / "sshd_config"
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
        if sudoers is not None:
            (folder / "sudoers").write_text(sudoers)
            (folder / "pam").write_text(pam)
            options = (f"AuthorizedKeysFile {GUEST_HOME}/authorized_keys", *options)
            command = ["unshare", "--mount", "sh", "-c", _OWN_SYSTEM, "sh", str(folder), *command]
        own = [f"Port {port}", *(f"{key} {folder}/{file}" for key, file in _FILES.items()), _BASE]
        if sudoers is None:  # an empty home, because this user's start-up files may print text
            (folder / "home").mkdir()
            own.append(f"SetEnv HOME={folder}/home")
        config.write_text("\n".join([*options, *own]))  # sshd takes the first line of each option
        public = (folder / "host_key.pub").read_text().split()
        known = folder / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        return Sshd(port, folder, key, known, process, user=USER if sudoers is None else GUEST)


_FILES = {"HostKey": "host_key", "AuthorizedKeysFile": "authorized_keys", "PidFile": "pid"}
_BASE = (
    "ListenAddress 127.0.0.1\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    "PermitRootLogin prohibit-password\nMaxStartups 100\nUseDNS no\nLogLevel ERROR\n"
)


@dataclass(frozen=True)
class Hanging:
    """A command that runs longer than every test. Its process writes its id to `file`."""

    file: Path

    @property
    def command(self) -> str:
        return f"echo $$ >{self.file}; exec sleep 300"

    @property
    def begun(self) -> bool:
        return self.file.exists() and self.file.read_text().endswith("\n")


def places(node: Node) -> dict[int, tuple[int, str]]:
    """Return the agent's process id and the holder's name by place in the node's queue; place 0 holds the lock."""
    labels = re.findall(rf"@rigctl-lock-{lock_name(node)}-(\d+) (\d+) \d+ (.*)", Path("/proc/net/unix").read_text())
    return {int(place): (int(pid), holder) for place, pid, holder in labels}


def gate_and_inner(sshd: Start) -> tuple[Sshd, Sshd]:
    """Start a jump host that drops the third start of a connection at the same time, and the server behind it."""
    gate, inner = sshd("MaxStartups 2:100:2"), sshd()
    inner.known_hosts.write_text(inner.known_hosts.read_text() + gate.known_hosts.read_text())
    (gate.folder / "authorized_keys").write_text(inner.key.with_suffix(".pub").read_text())
    return gate, inner


async def sessions_at_once(gate: Sshd, nodes: Sequence[Node]) -> set[int]:
    """Return the numbers of sessions at the jump host that nodes see while all of them are connected."""
    inside = asyncio.Barrier(len(nodes))

    async def work(node: Node) -> int:
        async with connect_node(node) as host:
            await host.run("true")
            await inside.wait()
            return len(gate.sessions())

    return set(await asyncio.gather(*map(work, nodes)))
