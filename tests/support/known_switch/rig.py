"""A rig of real nodes on known switches: those of a virtual rig, whose ports the switches take over from the bridge.

rigctl reaches the nodes by SSH and the switches by SNMP, as on hardware, by the rig file that `known_switch` writes.
Whatever ends the test process also ends the virtual rig, and with it nodes and switches. Nodes can stay up while one
switch after another runs between them.
"""

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from known_switch.mib import SUBTREES
from known_switch.model import Design
from known_switch.ports import Orders, driven, read
from lab import entering
from processes import DEADLINE_S
from snmp_agent import snmpd
from two_links import Namespace, of_node
from user import User
from virtual_rigs import rig

from rigctl.rig.inventory import Rig, Switch
from rigctl.switches.secrets import env_name
from rigctl.virtual.provide import provide
from rigctl.virtual.state import states

_COMMUNITY: Final = "known"


@dataclass(frozen=True)
class Nodes:
    """Nodes that are up: a rig with their addresses, and the process that keeps them."""

    folder: Path
    rig: Rig
    holder: str

    def namespace(self, node: str) -> Namespace:
        return of_node(self.holder, node)


@dataclass(frozen=True)
class KnownSwitch:
    """Switches that run. `file` is the rig file, `environment` the variables that rigctl needs with this file."""

    file: Path
    environment: Mapping[str, str]
    control: Path
    process: "subprocess.Popen[bytes]"

    def counted(self) -> dict[str, Any]:
        """Return what the model has counted: of each port, drops by reason, frames of multicast groups."""
        return read(self.control)


@contextmanager
def nodes_up(folder: Path, *names: str) -> Iterator[Nodes]:
    """Start nodes without a switch; end them after the block. `folder` is their runtime folder."""
    providing = provide(rig(folder, *names, links="{mtu: 1500}"))
    with asyncio.Runner() as runner:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(folder))
            made = runner.run(providing.__aenter__())
            state = next(state for state in states() if state.client_key == made.nodes[names[0]].key)
        try:
            yield Nodes(folder, made, str(state.holder.pid))
        finally:
            runner.run(providing.__aexit__(None, None, None))


@contextmanager
def known_switch(
    nodes: Nodes, design: Design | Mapping[str, Design], trunk: Sequence[str] = (), **keys: str
) -> Iterator[KnownSwitch]:
    """Run a switch between the nodes during the block, or several by name, which a trunk of two ports connects.

    A port has the name of its node. `keys` are further keys of the rig file.
    """
    designs = design if isinstance(design, Mapping) else {"known": design}
    control, script = nodes.folder / "known.sock", nodes.folder / "mib"
    control.unlink(missing_ok=True)
    orders = Orders(designs, (trunk[0], trunk[1]) if trunk else None, str(control))
    # A script, because snmpd would split a command at the spaces that the interpreter's path may contain.
    program = shlex.join(["env", f"PYTHONPATH={Path(__file__).parents[1]}", sys.executable, "-m", "known_switch.mib"])
    script.write_text(f"exec {program} {shlex.quote(str(control))}\n")
    config = f"rocommunity {_COMMUNITY} 127.0.0.1\n"
    config += "".join(f"pass_persist -p 1 .{subtree} /bin/sh {script}\n" for subtree in SUBTREES)
    with (
        driven([*entering(nodes.holder), "-m"], orders) as process,
        snmpd(nodes.folder, config, _COMMUNITY) as (port, _),
    ):
        file = nodes.folder / "known.yaml"
        file.write_text(_rig_file(nodes, designs, trunk, port, keys))
        environment = {env_name(Switch(key, key), "community"): _COMMUNITY for key in designs}
        yield KnownSwitch(file, environment, control, process)


def introduce(nodes: Nodes, names: Sequence[str]) -> None:
    """Let a switch learn the ports of some nodes: each pings the next."""
    for one, other in pairwise([*names, names[0]]):
        address = nodes.rig.nodes[other].data_address or ""
        nodes.namespace(one).run("ping", "-c", "1", "-W", f"{DEADLINE_S:g}", address)


def shown(user: User, switch: KnownSwitch, scenario: str, deadline_s: float) -> dict[str, Any]:
    """Run the text of a scenario at a switch; return what `rigctl show --json` prints of the run."""
    environment = user.environment
    user.environment = environment | dict(switch.environment)
    try:
        words = (user.scenario(scenario), "--rig", str(switch.file), "--no-report", "--quiet")
        number = user.rigctl("run", *words, deadline_s=deadline_s).split()[0]
        run: dict[str, Any] = json.loads(user.rigctl("show", number, "--json"))
    finally:
        user.environment = environment
    return run


def _rig_file(
    nodes: Nodes, designs: Mapping[str, Design], trunk: Sequence[str], port: int, keys: Mapping[str, str]
) -> str:
    lines = [f"{key}: {value}" for key, value in keys.items()]
    lines.append("switches:")
    lines += [f"  {key}: {{address: 127.0.0.1, snmp: {{port: {port}}}, poll: 200ms}}" for key in designs]
    if trunk:
        at = {port: key for key, design in designs.items() for port in design.links}
        rate_bps = min(designs[at[end]].links[end].rate_bps for end in trunk)
        ends = ", ".join(f"{at[end]}: {end}" for end in trunk)
        lines.append(f"trunk: {{rate: {rate_bps}, ports: {{{ends}}}}}")
    lines.append("nodes:")
    for key, design in designs.items():
        for name, link in design.links.items():
            if name not in trunk:
                node = nodes.rig.nodes[name]
                access = f"address: {node.address}, port: {node.port}, user: root, key: {node.key}"
                data = f"data_address: {node.data_address}, data_interface: {node.data_interface}"
                place = f"rate: {link.rate_bps}, mtu: 1500, switch: {key}, switch_port: {name}"
                lines.append(f"  {name}: {{{access}, known_hosts: {node.known_hosts}, {data}, {place}}}")
    return "\n".join([*lines, ""])
