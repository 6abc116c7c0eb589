"""A rig of QEMU machines that stays up for a test, with shells, power cuts, and waiting until a machine has booted."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from subprocess import PIPE
from tempfile import mkdtemp
from typing import Final

import pytest
from processes import eventually
from user import User
from virtual_rigs import openssh

from rigctl.records import Facts
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import down, up

RIGS: Final = Path(__file__).parents[1] / "machines"
_SIGNS_OF_LIFE: Final = ("ServerAliveInterval=10", "ServerAliveCountMax=3", "ConnectTimeout=60")
BACK_S: Final = 240.0
"""Deadline for a reboot, from the power cut until the SSH server answers, on a busy host."""
RUN_S: Final = 400.0
SETTINGS: Final = (
    "cat /sys/class/net/eth0/mtu /proc/sys/net/ipv4/tcp_sack; ethtool -k eth0; "
    "cut -f1,2 /proc/sys/net/ipv4/tcp_rmem; "  # the third value follows from the memory that is free at each boot
    "ethtool -g eth0; ethtool -c eth0; tc qdisc show dev eth0; cat /sys/class/net/eth0/queues/rx-*/rps_cpus"
)
FILES: Final = "find /root /etc /usr/local -xdev -type f ! -path '*/.cache/rigctl/*' | sort | xargs cat | sha256sum"
# Prints files and processes that only a run in progress may have. [a] keeps grep from finding itself.
LEFT: Final = (
    "find /root/.cache/rigctl /tmp/rigctl-0 -type f ! -name 'agent-*' 2>/dev/null | grep -E '/settings-|/[.]new-'; "
    "ps -eo args | grep 'rigctl.*/[a]gent-'; true"
)


class Lab:
    def __init__(self, user: User, file: Path) -> None:
        self.user, self.file = user, file
        self.rig, self.state, _ = asyncio.run(up(load_rig(str(file))))
        self.folder = self.state.folder / "home"
        self.nodes = tuple(self.rig.nodes)
        self.masters = mkdtemp(prefix="rigctl-ssh-")  # short, because a socket's path has at most 104 characters

    def ssh(self, node: str, command: str, *, deadline_s: float = 180, check: bool = True) -> str:
        shared = ["ControlMaster=auto", f"ControlPath={self.masters}/%r{node}", "ControlPersist=120", *_SIGNS_OF_LIFE]
        words = [*openssh(self.rig, node), command]
        words[1:1] = [word for option in shared for word in ("-o", option)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=deadline_s, check=False)
        assert done.returncode == 0 or not check, f"{node}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def each(self, command: str) -> dict[str, str]:
        return {node: self.ssh(node, command) for node in self.nodes}

    def boot_id(self, node: str) -> str:
        """Return the node's boot id; "" while the node does not answer."""
        try:
            return self.ssh(node, "cat /proc/sys/kernel/random/boot_id", deadline_s=60, check=False).strip()
        except subprocess.TimeoutExpired:
            return ""

    def greets(self, node: str, within_s: float) -> bool:
        """Return whether the node's SSH server greets. QEMU accepts connections itself and retries after 6 and 12 s."""
        try:
            with socket.create_connection(("127.0.0.1", self.state.ports[node]), within_s) as link:
                link.settimeout(within_s)
                return link.recv(4) == b"SSH-"
        except OSError:
            return False

    def power_cut(self, node: str) -> None:
        os.kill(int((self.folder / f"{node}.pid").read_text()), signal.SIGKILL)

    def back(self, node: str, boot: str) -> float:
        """Wait until the node's boot id is no longer `boot`; return the time in seconds."""
        began, look_s = time.monotonic(), 1.0
        while (found := self.boot_id(node) if self.greets(node, look_s) else "") in ("", boot):
            look_s = min(look_s * 1.2, 10.0)
            assert time.monotonic() - began < BACK_S, f"{node} is not back: {found or 'silent'}: {self.console(node)}"
            time.sleep(0.5)
        return time.monotonic() - began

    def ahead_s(self, node: str, looks: int = 400) -> tuple[float, float]:
        """Return the node's wall clock minus this machine's monotonic clock, and the bound of its error, in seconds.

        Of many readings by one shell, the reading with the shortest round trip counts.
        """
        command = "while read -r line; do echo $EPOCHREALTIME; done"
        shell = subprocess.Popen([*openssh(self.rig, node), command], stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
        found = []
        with shell:
            assert shell.stdin is not None and shell.stdout is not None
            for _ in range(looks):
                sent = time.monotonic()
                shell.stdin.write("\n")
                said = float(shell.stdout.readline())
                got = time.monotonic()
                found.append((got - sent, said - (sent + got) / 2))
            shell.stdin.close()
        trip, ahead = min(found)
        return ahead, trip / 2

    def console(self, node: str) -> str:
        return (self.folder / f"{node}.console").read_text(errors="replace")[-2000:]

    def scenario(self, text: str, name: str = "s.yaml") -> str:
        (self.user.folder / name).write_text(f"rig: {self.file}\n{text}")
        return name

    def run(self, name: str, *words: str, deadline_s: float = RUN_S) -> tuple[int, str]:
        with self.user.running("run", name, "--no-report", *words) as command:
            done = command.ended(deadline_s)
        return done.returncode, (done.stdout + done.stderr).decode()

    def facts(self) -> dict[str, Facts]:
        with self.user.store() as store:
            return store.run().facts

    def contact(self) -> None:
        """Make a short run without conditions, which is the next contact with a node after a failure."""
        text = f"pairs: [{self.nodes[0]} -> {self.nodes[1]}]\nduration: 500ms\nmax_skew: 10s\n"
        self.good(self.scenario(text, "contact.yaml"))

    def good(self, name: str, *words: str, deadline_s: float = RUN_S) -> str:
        code, said = self.run(name, *words, deadline_s=deadline_s)
        assert code == 0, said
        return said

    def await_traffic(self, node: str) -> None:
        """Wait until a node has received 10 MB, which is more than an upload of the agent."""
        received = "awk 'NR > 2 {sum += $2} END {print sum}' /proc/net/dev"
        before = int(self.ssh(node, received))
        eventually(lambda: int(self.ssh(node, received)) > before + 10_000_000, "no traffic")

    @contextmanager
    def running(self, name: str, victim: str) -> Iterator["subprocess.Popen[str]"]:
        """Start a run, and yield its process once its condition has changed the settings of `victim`."""
        before = self.ssh(victim, SETTINGS)
        process = self.user.start("run", name, "--no-report")
        try:
            while process.poll() is None and self.ssh(victim, SETTINGS) == before:
                time.sleep(0.1)
            assert process.poll() is None, process.communicate(timeout=60)
            yield process
        finally:
            process.kill()
            process.communicate(timeout=60)


@contextmanager
def lab(folder: Path, file: str, patch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Yield the rig of `tests/machines/FILE`, started. Its disk image is in the cache of the user who runs pytest."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    patch.setenv("XDG_CACHE_HOME", cache)
    user = User(folder)
    patch.setenv("XDG_RUNTIME_DIR", user.environment["XDG_RUNTIME_DIR"])
    user.environment["XDG_CACHE_HOME"] = cache
    path, made = RIGS / file, None
    try:
        made = Lab(user, path)
        yield made
    finally:
        if made is not None:
            rmtree(made.masters, ignore_errors=True)
        asyncio.run(down(load_rig(str(path))))
