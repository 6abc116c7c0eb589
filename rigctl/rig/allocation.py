"""Replace the key `slurm:` of a rig file by the nodes of the Slurm allocation in which rigctl runs.

Slurm knows the addresses of nodes (`scontrol show node`), not the interfaces that carry data. Without `data_interface`,
the data address is the node's address in Slurm. Default groups are `left` and `right`, each with half of the nodes.
"""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.base.processes import run_bounded
from rigctl.base.texts import printable
from rigctl.rig.fields import NODE_NAME, is_address
from rigctl.rig.inventory import BY_SSH
from rigctl.rig.ranges import host_names
from rigctl.yamlfile import MistakesError, YamlDocument
from rigctl.yamlfile.fields import FieldError

KEY: Final = "slurm"
_SCONTROL_DEADLINE_S: Final = 20.0
_FIELD: Final = re.compile(r"(?:^|\s)(\w+)=(\S*)")
_SHOWN: Final = 200
_COMMA: Final = re.compile(r",(?![^\[\]]*\])")  # not within brackets
_MOST_COMPONENTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Member:
    """A node of an allocation: its name in Slurm, and its address or host name."""

    name: str
    address: str


def with_allocation(document: YamlDocument) -> tuple[YamlDocument, str]:
    """Return the rig file with the allocation's nodes, and a note for the report. Raise `InputError`."""
    if KEY not in document.data:
        return document, ""
    if "nodes" in document.data:
        what = "slurm: the rig file has slurm and nodes. Leave one of them out."
        raise MistakesError([document.mistake((KEY,), what, at_key=True)])
    section = document.data[KEY] or {}
    if not isinstance(section, dict):
        return document, ""  # the schema reports that slurm is no section
    transport = section.get("transport") or document.data.get("transport")
    addressed = "data_interface" in section or transport in (None, *BY_SSH)
    members = members_here(srun=transport == "srun")
    names = node_names([member.name for member in members])
    nodes: dict[str, Any] = {
        name: {
            "address": member.name,
            **({} if addressed else {"data_address": _numeric(member)}),
            **section,
        }
        for name, member in zip(names, members, strict=True)
    }
    half = len(names) // 2
    groups = document.data.get("groups", {"left": names[:half], "right": names[half : 2 * half]} if half else {})
    data = {key: value for key, value in document.data.items() if key != KEY} | {"nodes": nodes, "groups": groups}
    placed = document.copy_places((KEY,), *(("nodes", name) for name in names))
    return replace(placed, data=data), _note(members, names)


def node_names(names: Sequence[str]) -> list[str]:
    """Return the names of nodes for rigctl: Slurm's names if all are valid, else node1, node2 and so on."""
    if all(NODE_NAME.fullmatch(name) for name in names):
        return list(names)
    width = len(str(len(names)))
    return [f"node{number:0{width}}" for number in range(1, len(names) + 1)]


def members_of(output: str) -> list[Member]:
    """Return the nodes in the `output` of `scontrol --oneliner show node`, in the order of the output."""
    members = []
    for line in output.splitlines():
        fields = dict(_FIELD.findall(line))
        if name := fields.get("NodeName"):
            address = fields.get("NodeAddr") or fields.get("NodeHostName") or name
            members.append(Member(name, address if address != "(null)" else name))
    return members


def node_lists() -> list[str]:
    """Return Slurm's list of nodes of each component of a heterogeneous job; of another job, the only list or none."""
    size = os.environ.get("SLURM_HET_SIZE", "")
    if not size.isdigit() or not 0 < int(size) <= _MOST_COMPONENTS:
        return [os.environ.get("SLURM_JOB_NODELIST", "")]
    return [os.environ.get(f"SLURM_JOB_NODELIST_HET_GROUP_{number}", "") for number in range(int(size))]


def component_of(name: str) -> int | None:
    """Return the number of the component of a heterogeneous job that has the node `name`; None in another job."""
    lists = node_lists()
    for number, listed in enumerate(lists if len(lists) > 1 else ()):
        try:
            if any(name in host_names(part) for part in _COMMA.split(listed)):
                return number
        except FieldError:
            continue
    return None


def members_here(*, srun: bool) -> list[Member]:
    """Return the nodes of the allocation in which rigctl runs. Raise `InputError` for fewer than two nodes."""
    listed = ",".join(filter(None, node_lists()))
    if not listed:
        raise InputError(
            "slurm: this is no Slurm allocation (SLURM_JOB_NODELIST is not set). Run rigctl in one, as in "
            "`salloc -N 2 --exclusive rigctl run SCENARIO --rig slurm`, or by sbatch"
        )
    for program in ("scontrol", *(["srun"] if srun else [])):
        if shutil.which(program) is None:
            raise InputError(f"slurm: {program} was not found. Install Slurm's client commands, or add them to PATH")
    try:
        done = run_bounded(["scontrol", "--oneliner", "show", "node", listed], _SCONTROL_DEADLINE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"slurm: scontrol, which names the nodes of the allocation, did not run: {error}") from None
    output, errors = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    members = members_of(output)
    if done.returncode != 0 or not members:
        lines = [line.strip() for line in (errors or output).splitlines() if line.strip()]
        reason = printable(lines[-1])[:_SHOWN] if lines else f"exit code {done.returncode}"
        raise InputError(f"slurm: scontrol does not name the nodes of the allocation {listed[:_SHOWN]}: {reason}")
    if len(members) < 2:
        raise InputError(f"slurm: the allocation has one node, {members[0].name}. Ask for two or more, as in -N 2")
    return members


def _numeric(member: Member) -> str:
    if is_address(member.address):
        return member.address
    try:
        return str(socket.getaddrinfo(member.address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        raise InputError(
            f"slurm: the address of {member.name}, {printable(member.address)[:_SHOWN]}, does not resolve to an IP. "
            f"Name the interface that carries the data: --rig-set slurm.data_interface=ib0"
        ) from None


def _note(members: Sequence[Member], names: Sequence[str]) -> str:
    job = os.environ.get("SLURM_JOB_ID", "?")
    cluster = os.environ.get("SLURM_CLUSTER_NAME")
    called = [
        member.name if member.name == name else f"{name} is {member.name}"
        for member, name in zip(members, names, strict=True)
    ]
    where = f" of cluster {printable(cluster)[:_SHOWN]}" if cluster else ""
    return f"Slurm job {printable(job)[:_SHOWN]}{where}: {', '.join(called)}."
