"""A lab of hosts with OpenSSH on a switch, made of network namespaces; the controller is one of the hosts."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from openssh import new_key
from processes import command_line, end, eventually, output_of
from user import ended

ROOT = Path(__file__).parents[2]


def sh(*words: str) -> str:
    return output_of(words)


@dataclass
class Lab:
    folder: Path
    prefix: str

    def host(self, name: str) -> str:
        return f"{self.prefix}-{name}"

    @property
    def network(self) -> Path:
        """The controller's network namespace."""
        return Path("/run/netns", self.host("ctl"))

    def inside(self, name: str, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.host(name), *words]

    def processes(self, name: str) -> dict[int, str]:
        lines = {pid: command_line(pid) for pid in map(int, sh("ip", "netns", "pids", self.host(name)).split())}
        return {pid: line for pid, line in lines.items() if line}

    def control_packets(self) -> int:
        listed = json.loads(sh(*self.inside("ctl", "nft", "-j", "list", "table", "ip", "count")))
        rules = [one["rule"] for one in listed["nftables"] if "rule" in one]
        return int(rules[0]["expr"][-1]["counter"]["packets"])

    def received(self, name: str) -> int:
        """Return the bytes that a host's eth0 has received. No program is started, because tests ask very often."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(_received, Path("/run/netns", self.host(name))).result()

    def at(self, folder: Path) -> "Lab":
        """Return the same hosts for a user with another home folder and another store."""
        for name in ("id", "known", "lab.yaml"):
            shutil.copy(self.folder / name, folder)
        return replace(self, folder=folder)

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder), "RIGCTL_STORE": str(self.folder / "s.db"), "PYTHONPATH": str(ROOT)}
        return os.environ | own | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}  # has ansible-inventory

    def start(self, *words: str) -> "subprocess.Popen[str]":
        command = self.inside("ctl", sys.executable, "-m", "rigctl", *words)
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, **pipes)

    def rigctl(self, *words: str, code: int = 0, **given: str) -> str:
        """Run a command on the controller that ends with `code`; return its output, then its messages."""
        ran = ended(words, self.folder, self.environment | given, network=self.network)
        out, errors = ran.stdout.decode(), ran.stderr.decode()
        assert ran.returncode == code, f"{words} gave {ran.returncode}:\n{out}\n{errors}"
        return out + errors


def _received(network: Path) -> int:
    """Enter a network namespace for the rest of this thread; return the bytes that its eth0 has received."""
    with network.open() as place:
        assert ctypes.CDLL(None).setns(place.fileno(), 0) == 0, network
    lines = [line.split() for line in Path("/proc/thread-self/net/dev").read_text().splitlines()]
    return next(int(words[1]) for words in lines if words[0] == "eth0:")


Serving: TypeAlias = Callable[[Lab, str, str], "subprocess.Popen[bytes]"]


@contextmanager
def laboratory(folder: Path, names: Sequence[str], serving: "Serving | None" = None, **how: bool) -> Iterator[Lab]:
    """Yield a lab of the hosts `names` with sshd, and the controller `ctl`, on one switch. `lab.yaml` is its rig file.

    `serving` starts another SSH server than OpenSSH on a host; `how` are parameters of `serve`.
    """
    made = Lab(folder, f"rigtest{os.getpid()}")
    hosts = {name: f"10.98.0.{number}" for number, name in enumerate([*names, "ctl"], 1)}
    with switched(made), ExitStack() as servers:
        new_key(folder / "id")
        for name, address in hosts.items():
            cable(made, name, address)
        for name in names:
            server = serving(made, name, hosts[name]) if serving else serve(made, name, hosts[name], **how)
            servers.callback(end, server, politely_for_s=5)
        known = [f"{hosts[n]} {(folder / n / 'host_key.pub').read_text()}" for n in names]
        (folder / "known").write_text("".join(known))
        trust = "user: root, key: id, known_hosts: known"
        nodes = "".join(f"  {name}: {{address: {hosts[name]}, {trust}, data_interface: eth0}}\n" for name in names)
        (folder / "lab.yaml").write_text(f"switch: bridge\nlinks: {{mtu: 1500}}\nnodes:\n{nodes}")
        for name in names:
            eventually(partial(sh, *made.inside(name, "ss", "-Hltn", "sport = 22")), f"{name} listens")
        yield made


@contextmanager
def switched(lab: Lab) -> Iterator[None]:
    """Create the switch of a lab; after the block, remove the switch and all hosts."""
    try:
        bridge(lab.host("switch"))
        yield
    finally:
        for line in sh("ip", "netns", "list").splitlines():
            if line.startswith(f"{lab.prefix}-"):
                subprocess.run(["ip", "netns", "del", line.split()[0]], check=False)


def bridge(space: str) -> None:
    sh("ip", "netns", "add", space)
    sh("ip", "-n", space, "link", "add", "br0", "type", "bridge")
    sh("ip", "-n", space, "link", "set", "br0", "up")


def named_in_ssh_config(lab: Lab, names: Sequence[str]) -> None:
    """Write an SSH configuration for the user whose home is the lab's folder, so that `ssh NAME` reaches each host."""
    settings = lab.folder / ".ssh"
    settings.mkdir(mode=0o700)
    hosts = "".join(f"Host {name}\n  HostName 10.98.0.{number}\n" for number, name in enumerate(names, 1))
    trust = f"Host *\n  User root\n  IdentityFile {lab.folder}/id\n  UserKnownHostsFile {lab.folder}/known\n"
    (settings / "config").write_text(hosts + trust)


def cable(lab: Lab, name: str, address: str, switch: str = "switch") -> None:
    """One more host on a switch: its eth0 has `address`, its port of the switch has its name."""
    host = lab.host(name)
    sh("ip", "netns", "add", host)
    linked(lab, host, "eth0", name, switch)
    sh("ip", "-n", host, "address", "add", f"{address}/24", "dev", "eth0")
    sh("ip", "-n", host, "link", "set", "lo", "up")


def serve(
    lab: Lab, name: str, address: str, *, lldp: bool = False, at_home: bool = False, named: bool = False
) -> "subprocess.Popen[bytes]":
    """Start OpenSSH on port 22 of the host, with a separate home, because the hosts share this machine's files.

    With `lldp`, lldpd runs on the host with a separate socket. With `at_home`, all programs use the separate home, not
    only rigctl's cache. With `named`, the host name is `name`.
    """
    Path("/run/sshd").mkdir(exist_ok=True)
    home = lab.folder / name
    home.mkdir()
    new_key(home / "host_key")
    options = [f"HostKey={home}/host_key", f"ListenAddress={address}", f"AuthorizedKeysFile={lab.folder}/id.pub"]
    options += ["StrictModes=no", "UsePAM=no", "PidFile=none"]
    options.append(f"SetEnv=XDG_CACHE_HOME={home}" + (f" HOME={home}" if at_home else ""))
    sshd = ["/usr/sbin/sshd", "-D", "-f", "/dev/null", *(word for option in options for word in ("-o", option))]
    if named:
        sshd = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name, *sshd]
    if lldp:
        sshd = [*announcing(name), *sshd]
    return subprocess.Popen(lab.inside(name, *sshd), stderr=subprocess.DEVNULL)


def announcing(name: str) -> list[str]:
    """Return words that start lldpd with the command that follows, in a private /run; lldpd ends with the command."""
    script = (
        "mount -t tmpfs none /run && mkdir /run/sshd /run/lldpd || exit 1\n"
        # Not in the test's folder, because lldpd reads its settings as another user.
        f"printf 'configure lldp tx-interval 1\\nconfigure system hostname {name}\\n' >/run/lldpd.conf\n"
        "lldpd -d -O /run/lldpd.conf </dev/null >/dev/null 2>&1 & l=$!\n"
        '"$@" & m=$!; trap "kill $m $l" TERM INT; wait $m; kill $l; wait\n'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


def linked(lab: Lab, host: str, interface: str, port: str, switch: str = "switch") -> None:
    """A cable from `interface` of a host to `port` of a switch, both up."""
    space = lab.host(switch)
    sh("ip", "link", "add", interface, "netns", host, "type", "veth", "peer", "name", port, "netns", space)
    sh("ip", "-n", space, "link", "set", port, "master", "br0", "up")
    sh("ip", "-n", host, "link", "set", interface, "up")
