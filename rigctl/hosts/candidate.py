"""Facts on a host that may become a node, for `rig init`: its system, interfaces, routes and neighbours.

Ordinary host facts are about the data interface; these are about all interfaces, because the data interface is not
known yet. Nothing is changed on the host. Commands that need root run with `sudo -n`, which does not prompt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from rigctl.base.texts import harmless
from rigctl.hosts import freebsd, interface, machine
from rigctl.hosts.fact import SUDO_LIMIT, Fact, everywhere, given_answer, read_answers, take_line
from rigctl.hosts.lldp import NEIGHBOURS, Neighbour
from rigctl.hosts.network import LIST_INTERFACES, HostInterface, TableRoute, parse_interfaces, parse_routes
from rigctl.hosts.network.ways import Ways
from rigctl.remote.host import sudo_meaning

Sudo: TypeAlias = Literal["granted", "password", "absent", "refused", "tty", "late", "failed"]
_FIRST: Final = "head -n 400"
_ROUTES: Final = f"{{ ip -o -4 route; ip -o -6 route; }} | {_FIRST}"
# The agent needs a root shell (remote.host.shell), so a sudo rule for certain commands is not enough.
_ASK_SUDO: Final = (
    f"{SUDO_LIMIT}; command -v sudo >/dev/null || echo absent; "
    "[ $(id -u) = 0 ] || $limit sudo -n -- sh -c 'echo granted' 2>&1 || { [ $? = 124 ] && echo late; }"
)
BY_SUDO: Final = ("sudo", "lldp")
"""Keys of the facts that sudo may delay. A host without their answers can still be a node."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host that may become a node. None: the host did not report the value."""

    machine: str | None  # output of `uname -m`
    system: str | None  # output of `uname -s`
    hostname: str | None
    os: str | None
    is_virtual: bool | None  # whether /proc/cpuinfo shows a hypervisor (x86)
    identity: tuple[str, ...] | None  # boot id and network namespace; equal if two addresses reach one host
    ssh_address: str | None  # the host's address that the SSH connection uses
    sudo: Sudo | None  # whether sudo gives a root shell; None: the user is root
    has_ip: bool
    interfaces: Mapping[str, HostInterface] = field(default_factory=dict)
    routes: tuple[TableRoute, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    lldp: str | None = None  # why neighbours are unknown: "absent" (no lldpcli), "refused"; None: known
    ways: Ways = field(default_factory=Ways)  # to the other hosts; asked for when all hosts have answered


def _parse_sudo(output: str) -> Sudo:
    if "granted" in output.splitlines():  # sudo may also warn that it cannot resolve the host's name
        return "granted"
    if output.strip().startswith("absent"):
        return "absent"
    if "late" in output.splitlines():
        return "late"
    refusal = sudo_meaning(output)
    return "failed" if refusal is None else refusal.code


CANDIDATE_FACTS: Final[dict[str, Fact]] = {
    **{key: machine.FACTS[key] for key in ("kernel", "os", "hypervisor")},
    **machine.IDENTITY,
    "ssh_address": interface.FACTS["ssh_address"],
    "uid": machine.UID,
    "sudo": everywhere(Fact(_ASK_SUDO, _parse_sudo)),
    "has_ip": Fact("command -v ip", take_line, twin=Fact("command -v ifconfig", take_line)),
    "routes": Fact(_ROUTES, parse_routes, twin=Fact(f"netstat -rn | {_FIRST}", freebsd.parse_routes)),
    "interfaces": Fact(LIST_INTERFACES, parse_interfaces, twin=Fact("ifconfig -a", freebsd.parse_interfaces)),
    "lldp": NEIGHBOURS,
}


def late_answer(key: str) -> str:
    """Return what stands in for the output of a fact of `BY_SUDO` that did not come in time."""
    return given_answer(key, "late")


def read_candidate(output: str) -> Candidate:
    """Return the host described by the output of `command_for(CANDIDATE_FACTS)`."""
    found = read_answers(output, CANDIDATE_FACTS)
    plain = harmless({key: found[key] for key in ("kernel", "os", "hostname", "ssh_address")})
    system, _, rest = (plain["kernel"] or "").partition(" ")
    identity = (found["boot_id"], found["namespace"])
    neighbours, why = found["lldp"]
    return Candidate(
        machine=rest.rpartition(" ")[2] or None,
        system=system or None,
        hostname=plain["hostname"],
        os=plain["os"],
        is_virtual=found["hypervisor"],
        identity=identity if all(identity) else None,
        ssh_address=plain["ssh_address"],
        sudo=None if found["uid"] == 0 else found["sudo"],
        has_ip=found["has_ip"] is not None,
        interfaces=found["interfaces"],
        routes=found["routes"],
        neighbours=neighbours,
        lldp=why,
    )
