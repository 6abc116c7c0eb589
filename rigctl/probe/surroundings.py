"""A host and how it is connected, for `rig init`: one command and the parser of its output.

`probe.facts` asks about one known interface. This asks about all of them: which one carries the data is not known yet.
Nothing is changed on the host. What needs root is tried with `sudo -n`, which does not prompt.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Final, Literal, TypeAlias

from rigctl.base.texts import printable
from rigctl.probe import freebsd, parsers
from rigctl.probe.network import LLDP_COMMAND, Interface, Neighbour, Route, neighbours

Sudo: TypeAlias = Literal["granted", "password", "absent", "refused"]
_MOST_SAID: Final = 512 * 1024
_MOST_ROUTES: Final = 400
# Per interface, one line: name, operstate, speed, duplex, MTU, MAC, driver, whether it is hardware, what is below it.
# A bond, bridge or VLAN has no device of its own; lower_* name the interfaces that it consists of.
# `read` and not cat(1): a process for each value would make a host with many interfaces slow to answer.
_INTERFACES: Final = """
got() { v=; [ -r "$1" ] && read -r v <"$1"; said="$said$v|"; }
for d in /sys/class/net/*; do
  [ -e "$d/mtu" ] || continue
  said="${d##*/}|"; below=; hw=no; drv=
  for f in operstate speed duplex mtu address; do got "$d/$f"; done
  for l in "$d"/lower_*; do [ -e "$l" ] && below="$below,${l##*/lower_}"; done
  [ -e "$d/device" ] && hw=yes && drv=$(readlink "$d/device/driver")
  echo "$said${drv##*/}|$hw|$below"
done
"""
_ASKED: Final = {
    "machine": "uname -sm",
    "hostname": "uname -n",
    "os": "cat /etc/os-release",
    "cpuinfo": "grep -m1 ^flags /proc/cpuinfo",
    "boot": "cat /proc/sys/kernel/random/boot_id",
    "namespace": "readlink /proc/self/ns/net",
    "ssh": "echo $SSH_CONNECTION",
    "uid": "id -u",
    # The agent needs a shell as root (remote.host.shell): a rule for some commands only is not enough.
    "sudo": "command -v sudo >/dev/null || echo absent; [ $(id -u) = 0 ] || "
    "$limit sudo -n -- sh -c 'echo granted' 2>&1",
    "ip": "command -v ip",
    "addresses": "ip -o addr",
    "routes": f"{{ ip -o -4 route; ip -o -6 route; }} | head -n {_MOST_ROUTES}",
    "interfaces": _INTERFACES,
    "lldp": LLDP_COMMAND,
}
_ON_FREEBSD: Final = {
    "cpuinfo": "sysctl -n kern.vm_guest",
    "boot": "sysctl -n kern.hostuuid",
    "namespace": "sysctl -n kern.boottime",
    "ip": "command -v ifconfig",
    "addresses": ":",
    "routes": f"{freebsd.ROUTES} | head -n {_MOST_ROUTES}",
    "interfaces": "ifconfig -a",
}
"""Commands for FreeBSD in place of those."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A host as it was found. `None`: the host does not say it."""

    machine: str | None  # `uname -m`
    system: str | None  # `uname -s`
    hostname: str | None
    os: str | None
    is_virtual: bool | None  # a virtual machine, as x86 says
    identity: tuple[str, ...] | None  # equal: the same machine and network namespace
    ssh_address: str | None  # the address that this connection uses
    is_root: bool
    sudo: Sudo | None  # None: the user is root
    has_ip: bool
    interfaces: dict[str, Interface] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    lldp: str | None = None  # why there are no neighbours: "absent", "refused"


def script() -> str:
    """Return the one command that asks a host for everything."""
    lines = [
        "PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin; LC_ALL=C; export PATH LC_ALL",
        "limit=; command -v timeout >/dev/null && limit='timeout 4'",
    ]
    lines += ['if [ "$(uname -s)" = FreeBSD ]; then', *parsers.questions(_ASKED | _ON_FREEBSD)]
    lines += ["else", *parsers.questions(_ASKED), "fi"]
    return f"sh -c {shlex.quote(chr(10).join(lines))}"


def parse(output: str) -> Surroundings:
    """Return what the output of `script` says."""
    outputs = {key: text[:_MOST_SAID] for key, text in parsers.answers(output).items()}
    system, _, machine = printable(parsers.text(outputs.get("machine", "")) or "").partition(" ")
    on_freebsd = system == "FreeBSD"
    boot, namespace = parsers.text(outputs.get("boot", "")), parsers.text(outputs.get("namespace", ""))
    connection = outputs.get("ssh", "").split()
    is_root = outputs.get("uid", "").strip() == "0"
    listed = outputs.get("interfaces", "")
    found, why = neighbours(outputs.get("lldp", ""))
    hostname, os_name = parsers.text(outputs.get("hostname", "")), parsers.os_name(outputs.get("os", ""))
    return Surroundings(
        machine=machine.strip() or None,
        system=system or None,
        hostname=printable(hostname) if hostname else None,
        os=printable(os_name) if os_name else None,
        is_virtual=(freebsd.guest if on_freebsd else parsers.hypervisor)(outputs.get("cpuinfo", "")),
        identity=(boot, namespace) if boot and namespace else None,
        ssh_address=printable(connection[2]) if len(connection) == 4 else None,
        is_root=is_root,
        sudo=None if is_root else _sudo(outputs.get("sudo", "")),
        has_ip=bool(outputs.get("ip", "").strip()),
        interfaces=freebsd.all_interfaces(listed) if on_freebsd else _interfaces(listed, outputs.get("addresses", "")),
        routes=tuple((freebsd.routes if on_freebsd else _routes)(outputs.get("routes", ""))),
        neighbours=found,
        lldp=why,
    )


def _sudo(output: str) -> Sudo:
    if "granted" in output.splitlines():  # beside warnings: sudo writes one if it can't resolve the host's own name
        return "granted"
    if output.strip().startswith("absent"):
        return "absent"
    return "password" if "password is required" in output or "terminal is required" in output else "refused"


def _interfaces(listed: str, addresses: str) -> dict[str, Interface]:
    held = parsers.ip_addresses(addresses, lasting=True)
    found: dict[str, Interface] = {}
    for line in listed.splitlines():
        fields = printable(line).split("|")
        if len(fields) != 9 or fields[0] == "lo":
            continue
        name, state, speed, duplex, mtu, mac, driver, hardware, below = (text.strip() for text in fields)
        known = hardware == "yes" or bool(below)
        found[name] = Interface(
            name=name,
            is_up=state in ("up", "unknown"),  # a tunnel's state is unknown
            speed_bps=parsers.speed_bps(speed) if known else None,
            duplex=parsers.duplex(duplex) if known else None,
            mtu=parsers.whole(mtu),
            mac=mac.lower() if mac.count(":") == 5 and mac != "00:00:00:00:00:00" else None,
            driver=driver or None,
            is_hardware=hardware == "yes",
            below=tuple(name for name in below.split(",") if name),
            addresses=tuple(held.get(name, ())),
        )
    return found


def _routes(output: str) -> Iterator[Route]:
    for line in output.splitlines():
        # default via 10.0.0.254 dev eth0 …; 10.1.0.0/16 via 10.0.0.9 dev eth0; unreachable …
        words = line.split()
        if "dev" not in words[1:-1]:
            continue
        to = words[0]
        if to == "default":
            to = "::/0" if ":" in line.partition(" dev ")[0] else "0.0.0.0/0"
        try:
            yield Route(ip_network(to), printable(words[words.index("dev") + 1]))
        except ValueError:
            continue
