"""Write rig files from hosts, keep virtual rigs up, run commands on nodes."""

import asyncio
import shlex
from typing import Annotated

import typer
from pydantic import BeforeValidator, Field

from rigctl.base.units import format_rate
from rigctl.cli.commands.rig_exec import execute_on_node
from rigctl.cli.commands.rig_init import write_rig_file
from rigctl.cli.options import Json, RigArgument, RigSets
from rigctl.cli.output import Model, Versioned, at, say
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import complete, down, find_rigs, layout_of, up
from rigctl.virtual.state import State

rig_commands = typer.Typer(no_args_is_help=True, add_completion=False)


@rig_commands.command("up")
def start_rig(rig: RigArgument, rig_set: RigSets = None) -> None:
    """Start a virtual rig and keep it up until `rigctl rig down`."""
    ready, state, new = asyncio.run(up(load_rig(rig, sets=rig_set or ())))
    print(_describe(ready, state, "is up" if new else "is up already"))
    print(f"End it with: rigctl rig down {shlex.quote(rig)}")


@rig_commands.command("down")
def end_rig(rig: RigArgument, rig_set: RigSets = None) -> None:
    """End a virtual rig that `rigctl rig up` started, and all that runs on it."""
    ended = asyncio.run(down(load_rig(rig, sets=rig_set or ())))
    for state in ended:
        print(f"{state.name}: ended")
    if not ended:
        print(f"{rig}: was not up")


_Text = BeforeValidator(lambda path: None if path is None else str(path))


class VirtualNode(Model):
    """How OpenSSH reaches a node of a virtual rig."""

    node: str = at("name")
    address: str
    port: int
    user: str | None
    key: Annotated[str | None, _Text]
    known_hosts: Annotated[str | None, _Text]
    data_address: str | None
    data_interface: str | None
    rate_mbps: Annotated[float | None, BeforeValidator(lambda rate_bps: rate_bps and rate_bps / 1e6)] = at(
        "link.rate_bps", "null: not shaped."
    )
    mtu: int | None = at("link.mtu")


class VirtualRig(Model):
    """A virtual rig that is up."""

    pid: int
    current: bool = Field(description="false: the rig was started from another version of its file.")
    nodes: list[VirtualNode] = Field(description="Empty if current is false.")


class RigStatusDocument(Versioned):
    """State of a virtual rig."""

    rig: str
    up: list[VirtualRig]


@rig_commands.command("status")
def show_rig(rig: RigArgument, rig_set: RigSets = None, as_json: Json = False) -> None:
    """Say whether a virtual rig is up, and how OpenSSH reaches its nodes."""
    loaded = load_rig(rig, sets=rig_set or ())
    states = find_rigs(loaded)
    layout = layout_of(loaded)
    if as_json:
        up = []
        for state in states:
            current = state.key == layout.key
            nodes = list(complete(loaded, layout, state).nodes.values()) if current else []
            up.append({"pid": state.holder.pid, "current": current, "nodes": nodes})
        print(RigStatusDocument.text_of(rig=loaded.name, up=up))
        return
    for state in states:
        if state.key == layout.key:
            print(_describe(complete(loaded, layout, state), state, "is up"))
        else:
            what = "was started from another version of the file. Stop it with `rig down`"
            print(f"{state.name}: pid {state.holder.pid} {what}")
    if not states:
        say(f"{loaded.name}: not up. `rigctl run` starts it for itself; `rigctl rig up` keeps it up.")


rig_commands.command("init")(write_rig_file)
rig_commands.command("exec", context_settings={"allow_interspersed_args": False})(execute_on_node)


def _describe(rig: Rig, state: State, what: str) -> str:
    lines = [f"{rig.name}: {what}, pid {state.holder.pid}"]
    for node in rig.nodes.values():
        rate = format_rate(node.link.rate_bps) if node.link.rate_bps else "unshaped"
        user = f"{node.user}@" if node.user else ""
        options = f"-i {node.key} -o IdentitiesOnly=yes -o UserKnownHostsFile={node.known_hosts}"
        lines += [
            f"{node.name}  {node.data_address}  {node.data_interface}  {rate}  MTU {node.link.mtu or '–'}",
            f"    ssh -p {node.port} {options} {user}{node.address}",
        ]
    for switch in rig.switches.values():
        if switch.snmp is not None:
            snmp = f"SNMP on {switch.address} port {switch.snmp.port}" if switch.address else "no SNMP: no snmpd here"
            lines.append(f"{switch.key}  {switch.title}  {snmp}")
    if state.community is not None:
        lines.append(f"    its community is in {state.folder / 'state.json'}")
    return "\n".join(lines)
