"""A network namespace for one test, with a veth pair (v0 and v1) whose settings an agent may change."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from processes import eventually, output_of, running
from talk import Talk

SETUP = "mount -t sysfs sysfs /sys && ip link add v0 type veth peer name v1 && ip link set v0 up"


def entering(holder: int | str) -> list[str]:
    as_user = ["-U", "--preserve-credentials"] if os.geteuid() != 0 else []
    return ["nsenter", "-t", str(holder), *as_user, "-n"]


@contextmanager
def holding(unshare: Sequence[str], setup: str = "true") -> Iterator[int]:
    """Yield the id of a process in new namespaces, including a network namespace. It ends when its input is closed."""
    command = [*unshare, "sh", "-c", f"ip link set lo up && {setup} && echo made && exec cat"]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"made\n"
        yield holder.pid


def unsharing() -> list[str]:
    """Return the words that start a program in a new network namespace."""
    return ["unshare", *(["-Ur"] if os.geteuid() != 0 else []), "-n"]


class Lab:
    """A network namespace for agents. `binary` is a copy of the agent in `folder`, where it keeps its journal."""

    def __init__(self, holder: int, binary: Path, stack: ExitStack) -> None:
        self.binary, self.folder = binary, binary.parent
        self._stack = stack
        self.enter = [*entering(holder), "-m"]
        self.journal = self.folder / f"settings-{Path(f'/proc/{holder}/ns/net').stat().st_ino}"

    def start(self, *arguments: str, by: tuple[str, ...] = ()) -> Talk:
        return self._stack.enter_context(Talk([*self.enter, *by, str(self.binary)], *arguments, enter=self.enter))

    def run(self, *command: str) -> str:
        return output_of([*self.enter, *command])

    def mtu(self, interface: str = "v0") -> int:
        (link,) = json.loads(self.run("ip", "-j", "link", "show", interface))
        return int(link["mtu"])

    def sysctl(self, name: str) -> str:
        return " ".join(self.run("cat", f"/proc/sys/{name.replace('.', '/')}").split())

    def gro(self) -> str:
        lines = self.run("ethtool", "-k", "v0").splitlines()
        return next(line.split()[1] for line in lines if line.startswith("generic-receive-offload:"))


@contextmanager
def laboratory(binary: Path, folder: Path) -> Iterator[Lab]:
    copy = folder / "rigctl-agent"
    shutil.copy(binary, copy)
    with holding([*unsharing(), "-m"], SETUP) as holder, ExitStack() as stack:
        yield Lab(holder, copy, stack)


def guard_of(agent: Talk) -> int:
    """Return the id of the process that guards the agent's settings, once it has closed inherited descriptors."""
    (child,) = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    eventually(lambda: len(list(Path(f"/proc/{child}/fd").iterdir())) == 2)
    assert Path(f"/proc/{child}/comm").read_text() == "rigctl-guard\n"
    return int(child)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill_with_guard(lab: Lab, agent: Talk) -> None:
    """Kill an agent and its guard by SIGKILL, so that no process restores its settings."""
    guard = guard_of(agent)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # else the guard could restore settings before it is killed
        lab.run("kill", f"-{number:d}", str(guard), str(agent.process.pid))
    eventually(lambda: not is_running(guard))
    assert lab.journal.exists()


def firewall(lab: Lab, rule: str) -> None:
    """Add an nftables rule for all packets that arrive in the namespace."""
    lab.run("nft", f"table inet wall {{ chain in {{ type filter hook input priority 0; {rule}\n}}\n}}\n")


def drop(lab: Lab, rule: str) -> None:
    firewall(lab, f"meta l4proto udp {rule} counter drop")


def dropped(lab: Lab) -> int:
    listed = json.loads(lab.run("nft", "-j", "list", "table", "inet", "wall"))["nftables"]
    (rule,) = (one["rule"] for one in listed if "rule" in one)
    return next(int(part["counter"]["packets"]) for part in rule["expr"] if "counter" in part)


def taken(lab: Lab) -> int:
    """Return the number of UDP datagrams that programs have received in the namespace."""
    names, counts = (line.split() for line in lab.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Udp:"))
    return int(counts[names.index("InDatagrams")])


_FORGE = """
import socket, struct, sys
there, here = int(sys.argv[1]), int(sys.argv[2])
made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
made.bind(("127.0.0.1", 0))
for word in sys.argv[3:]:
    data = bytes.fromhex(word)
    made.sendto(struct.pack(">HHHH", here, there, 8 + len(data), 0) + data, ("127.0.0.1", 0))
"""


def forge(lab: Lab, port: int, *datagrams: bytes) -> None:
    """Send datagrams with the addresses and ports of the flow to `port`. Only root can: nobody can bind its ports."""
    lines = [line.split() for line in lab.run("cat", "/proc/net/udp").splitlines()[1:]]
    (local,) = {int(words[1].rpartition(":")[2], 16) for words in lines if words[2].endswith(f":{port:04X}")}
    lab.run(sys.executable, "-c", _FORGE, str(port), str(local), *(data.hex() for data in datagrams))
