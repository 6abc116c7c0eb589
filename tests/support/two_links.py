"""Network namespaces with further links between them, for connections of Multipath TCP over several subflows."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import running

UP = "ip link set lo up && echo up && exec sleep 300"


class Namespace:
    """The network namespace of a process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        as_user = ["-U", "--preserve-credentials"] if os.geteuid() != 0 else []
        self.enter = ["nsenter", "-t", str(pid), *as_user, "-n"]

    def run(self, *command: str) -> str:
        return subprocess.run([*self.enter, *command], check=True, capture_output=True, text=True).stdout

    def switch_off(self) -> None:
        self.run("sysctl", "-qw", "net.mptcp.enabled=0")


@contextmanager
def two_namespaces() -> Iterator[tuple[Namespace, Namespace]]:
    as_user = ["-Ur"] if os.geteuid() != 0 else []
    with running(["unshare", *as_user, "-n", "sh", "-c", UP], stdout=subprocess.PIPE) as one:
        near = made(one)
        with running([*near.enter, "unshare", "-n", "sh", "-c", UP], stdout=subprocess.PIPE) as other:
            yield near, made(other)


def made(holder: "subprocess.Popen[bytes]") -> Namespace:
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"up\n"
    return Namespace(holder.pid)


def link(near: Namespace, far: Namespace, number: int, rate: str = "100mbit") -> None:
    """A cable from w1, w2, … to the other's of that name, with the addresses 10.78.1.1 and 10.78.1.2, …"""
    name = f"w{number}"
    near.run("ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", str(far.pid))
    for host, end in enumerate((near, far), 1):
        end.run("ip", "addr", "add", f"10.78.{number}.{host}/24", "dev", name)
        end.run("ip", "link", "set", name, "up")
        end.run("tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", rate, "burst", "32kb", "limit", "400kb")


def use(near: Namespace, far: Namespace, number: int) -> None:
    """Let connections from `near` to `far` use this link, too: the receiver announces its address there."""
    for end in (near, far):
        end.run("ip", "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "4")
    far.run("ip", "mptcp", "endpoint", "add", f"10.78.{number}.2", "dev", f"w{number}", "signal")


def namespace_of(inode: str, command: str) -> Namespace | None:
    """The network namespace with this inode, by a process that runs `command` in it."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "ns/net").readlink()) == inode and (process / "comm").read_text() == f"{command}\n":
                return Namespace(int(process.name))
        except OSError:
            continue
    return None
