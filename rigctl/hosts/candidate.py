"""A host that may become a node, for `rig init`: what it is, and how it is connected.

Host facts are about one known interface. This asks about all of them: which one carries the data is not known yet.
Nothing is changed on the host. What needs root is tried with `sudo -n`, which does not prompt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from rigctl.base.texts import harmless
from rigctl.hosts import freebsd, interface, machine
from rigctl.hosts.fact import LIMIT, Fact, everywhere, read_answers, take_line
from rigctl.hosts.lldp import NEIGHBOURS, Neighbour
from rigctl.hosts.network import LIST_INTERFACES, HostInterface, TableRoute, parse_interfaces, parse_routes
from rigctl.remote.host import SUDO_ASKS, sudo_meaning

Sudo: TypeAlias = Literal["granted", "password", "absent", "refused"]
_FIRST: Final = "head -n 400"
_ROUTES: Final = f"{{ ip -o -4 route; ip -o -6 route; }} | {_FIRST}"
# The agent needs a shell as root (remote.host.shell): a rule for some commands only is not enough.
_ASK_SUDO: Final = (
    f"{LIMIT}; command -v sudo >/dev/null || echo absent; "
    "[ $(id -u) = 0 ] || $limit sudo -n -- sh -c 'echo granted' 2>&1"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host as it was found. `None`: the host does not say it."""

    machine: str | None  # `uname -m`
    system: str | None  # `uname -s`
    hostname: str | None
    os: str | None
    is_virtual: bool | None  # a virtual machine, as x86 says
    identity: tuple[str, ...] | None  # equal: the same machine and network namespace
    ssh_address: str | None  # the address that this connection uses
    sudo: Sudo | None  # None: the user is root
    has_ip: bool
    interfaces: Mapping[str, HostInterface] = field(default_factory=dict)
    routes: tuple[TableRoute, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    lldp: str | None = None  # why there are no neighbours: "absent", "refused"


def _parse_sudo(output: str) -> Sudo:
    """Return whether sudo gives a shell as root, or why not."""
    if "granted" in output.splitlines():  # beside warnings: sudo writes one if it can't resolve the host's own name
        return "granted"
    if output.strip().startswith("absent"):
        return "absent"
    return "password" if sudo_meaning(output) == SUDO_ASKS else "refused"


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


def read_candidate(output: str) -> Candidate:
    """Return what the answers to `CANDIDATE_FACTS` say."""
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
