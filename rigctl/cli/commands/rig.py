"""Write rig files from hosts, keep virtual rigs up, run commands on nodes."""

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TextIO

import typer
from pydantic import BeforeValidator, Field

from rigctl.base.errors import InputError, NodeError, RigError
from rigctl.base.files import write_whole
from rigctl.base.resources import modeline
from rigctl.base.units import format_rate
from rigctl.cli.options import Json, RigArgument, RigSets
from rigctl.cli.output import InMbps, Model, Versioned, at, of, plain_console, print_table, say
from rigctl.discovery.discover import discover, switch_named
from rigctl.discovery.draft import Draft
from rigctl.discovery.inventory import inventory_targets, read_inventory, split_reference
from rigctl.discovery.rig_file import rig_of_text, rig_text
from rigctl.discovery.targets import Target, fill_in_allocation, targets_of
from rigctl.findings.text import plural
from rigctl.remote.host import RemoteProcess, connect_node
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.scenario.pairs import pairs_option
from rigctl.virtual.provide import complete, down, find_rigs, layout_of, provide, up
from rigctl.virtual.state import State
from rigctl.yamlfile.fields import FieldError

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
    states, layout = find_rigs(loaded), layout_of(loaded)
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
        say(f"{loaded.name}: not up. `rigctl run` starts it for a run; `rigctl rig up` keeps it up between runs.")


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


_STANDARD_OUTPUT: Final = "-"
_FEWEST: Final = 2
"""Smallest number of nodes in a rig: a pair needs two."""


@rig_commands.command("init")
def write_rig_file(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST", help="A host as [USER@]HOST[:PORT], or a range as node[001-012,20]."),
    ] = None,
    inventory: Annotated[
        str | None, typer.Option("--from", metavar="FILE[:GROUP]", help="Take also the hosts of an Ansible inventory.")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Take only this group of the inventory; repeatable."),
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Take the nodes of this Slurm allocation, which rigctl reaches by srun.")
    ] = False,
    switches: Annotated[
        list[str] | None,
        typer.Option(
            "--switch",
            metavar="[NAME=]HOST[:COMMUNITY]",
            help="Ask this switch by SNMP which node is on which port; repeatable.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write this file; - prints it.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Look at hosts by SSH or srun and write a rig file for them.

    Changes nothing on the hosts.
    """
    if not output:
        raise InputError("rig init: name the file to write, as in -o mylab.yaml; -o - prints it")
    printed = output == _STANDARD_OUTPUT
    if printed and as_json:
        raise InputError("rig init: -o - and --json both print to standard output. Name a file with -o")
    targets, notes = find_hosts(hosts or [], inventory, groups or [], slurm=slurm)
    asked = [switch_named(text) for text in switches or ()]
    path = Path("rig.yaml" if printed else output)
    if not printed:
        check_place(path, force=force)
    draft = asyncio.run(discover(targets, asked, notes))
    if len(draft.nodes) < _FEWEST:
        raise RigError(_too_few(draft))
    text = modeline("rig") + rig_text(draft, f"Written by rigctl rig init, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.")
    rig_of_text(text, path)  # raises `InputError` if `rigctl run` would refuse the file
    if printed:
        sys.stdout.write(text)
    else:
        write_whole(path, text.encode(), follow=False)
    if as_json:
        print(RigInitDocument.text_of(file=str(path), draft=draft))
    else:
        _print(draft, output)


def find_hosts(
    hosts: Sequence[str], inventory: str | None, groups: Sequence[str], *, slurm: bool = False
) -> tuple[list[Target], list[str]]:
    """Return the hosts of the command line and the inventory, or those of the Slurm allocation, and notes to print."""
    if slurm:
        if hosts or inventory is not None or groups:
            raise InputError("rig init: --slurm takes the nodes of the allocation. Name no hosts with it")
        return fill_in_allocation(), []
    try:
        targets, notes = targets_of(hosts), list[str]()
    except FieldError as error:
        raise InputError(f"rig init: {error}") from None
    if inventory is not None:
        file, chosen = split_reference(inventory)
        found, notes = inventory_targets(read_inventory(file), [*chosen, *groups])
        targets += found
    elif groups:
        raise InputError("rig init: --group chooses from an inventory. Name one with --from")
    if not targets:
        raise InputError("rig init: no host is named. Name some, as in pi1 pi2 or 'node[001-012]', or give --from")
    return targets, notes


def check_place(path: Path, *, force: bool) -> None:
    """Raise `InputError` if the file cannot be written, or if it exists and `force` is not given."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name a file in it, as {path / 'rig.yaml'}")
    if path.exists() and not force:
        raise InputError(f"{path}: exists. Name another file with -o, or replace it with --force")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{path}: cannot be written: {folder} is no folder that you may write to")


def _too_few(draft: Draft) -> str:
    usable = f"only {draft.nodes[0].target.text} is usable" if draft.nodes else "no host is usable"
    reasons = "".join(f"\n{each.target.text}: {each.reason}" for each in draft.left_out)
    notes = "".join(f"\nNote: {note}." for note in draft.notes)
    return f"rig init: {usable}; a rig needs {_FEWEST} nodes. Nothing was written.{reasons}{notes}"


def _print(draft: Draft, output: str) -> None:
    """Print a summary and a table of nodes, to standard error if the rig file goes to standard output."""
    console = plain_console(stderr=output == _STANDARD_OUTPUT)
    console.print(_summary(draft, output))
    for note in draft.notes:
        console.print(f"Note: {note}.")
    print_table(console, _HEADS, _rows(draft), left={*_HEADS} - {"Rate", "MTU"})
    for each in draft.left_out:
        console.print(f"{each.target.text}: left out: {each.reason}")
    if output != _STANDARD_OUTPUT:
        file, option = shlex.quote(output), pairs_option([node.name for node in draft.nodes])
        console.print(f"Next:\n  rigctl check {file}\n  rigctl run gigablox --rig {file} {option}")


_ROOT: Final = {None: "yes", "granted": "sudo"}


def _summary(draft: Draft, output: str) -> str:
    where = "printed" if output == _STANDARD_OUTPUT else f"written to {output}"
    unread = len(draft.left_out)
    left_out = f", {plural(unread, 'host')} left out" if unread else ""
    speeds = {node.path.interface.speed_bps for node in draft.nodes if node.path.interface is not None}
    mixed = ", of different speeds," if len(speeds - {None}) > 1 else ""
    return f"A rig of {len(draft.nodes)} nodes{mixed} was {where}{left_out}."


_HEADS: Final = ("Node", "Host", "Machine", "Interface", "Data address", "Rate", "MTU", "Root", "Switch port")


def _rows(draft: Draft) -> list[list[str]]:
    rows = []
    for node in draft.nodes:
        interface, port = node.path.interface, node.port
        speed = interface.speed_bps if interface is not None else None
        fields = (
            node.name,
            node.target.text,
            node.host.machine,
            interface.name if interface is not None else None,
            node.path.address,
            format_rate(speed) if speed else None,
            str(interface.mtu) if interface is not None and interface.mtu else None,
            _ROOT.get(node.host.sudo, "no"),
            f"{node.switch} {port.port}" if port is not None else None,
        )
        rows.append([field or "–" for field in fields])
    return rows


_ROOTS: Final = {None: "login", "granted": "sudo"}


class RigNode(Model):
    """A host that became a node."""

    node: str = at("name")
    host: str = at("target.text", "The host as the user named it.")
    machine: str | None = at("host.machine")
    os: str | None = at("host.os")
    virtual_machine: bool | None = at("host.is_virtual")
    root: Annotated[
        Literal["login", "sudo", "password", "absent", "refused", "tty", "late", "failed"],
        BeforeValidator(lambda sudo: _ROOTS.get(sudo, sudo)),
    ] = at("host.sudo", "How rigctl becomes root: login (as SSH user) or sudo (with -n); else why sudo -n fails.")
    data_interface: Annotated[str | None, of("name")] = at("path.interface")
    data_address: str | None = at("path.address")
    why: str = at("path.why", "Why rigctl chose this interface and address.")
    driver: Annotated[str | None, of("driver")] = at("path.interface")
    rate_mbps: Annotated[InMbps | None, of("speed_bps")] = at("path.interface")
    duplex: Annotated[str | None, of("duplex")] = at("path.interface")
    mtu: Annotated[int | None, of("mtu")] = at("path.interface")
    switch: str | None
    switch_port: Annotated[str | None, of("port")] = at("port")
    port_unknown: str | None = at("no_port", "Why the file lacks the node's switch port.")


class LeftOutHost(Model):
    """A host that did not become a node."""

    host: str = at("target.text")
    reason: str


class RigInitDocument(Versioned):
    """The nodes that `rig init` found, and the file that it wrote."""

    file: str
    nodes: list[RigNode] = at("draft.nodes")
    left_out: list[LeftOutHost] = at("draft.left_out")
    notes: list[str] = at("draft.notes")


_CHUNK: Final = 65536


@rig_commands.command("exec", context_settings={"allow_interspersed_args": False})
def execute_on_node(
    rig: RigArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node of the rig.")],
    command: Annotated[
        list[str], typer.Argument(metavar="CMD…", help="A command with arguments, or one shell command line in quotes.")
    ],
    rig_set: RigSets = None,
) -> int:
    """Run a command on a node of any rig; exit with its exit code.

    If a virtual rig is not up, it is started for the command.
    """
    loaded = load_rig(rig, sets=rig_set or ())
    if node not in loaded.nodes:
        raise InputError(f'{loaded.name}: no node "{node}". Its nodes: {", ".join(loaded.nodes)}.')
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise InputError(f"rig exec {rig} {node} --: no command. Add one, as in -- uname -a")
    return asyncio.run(_execute(loaded, node, words[0] if len(words) == 1 else shlex.join(words)))


async def _execute(rig: Rig, node: str, line: str) -> int:
    async with (
        provide(rig) as ready,
        connect_node(ready.nodes[node]) as host,
        # With `eval`, a syntax error in `line` does not stop the shell from printing the mark before the output.
        host.process(line if host.is_windows else f"eval {shlex.quote(line)}", partial(_put, 2)) as process,
    ):
        feeding = asyncio.create_task(_feed(process))
        try:
            while data := await process.read(_CHUNK):
                _put(1, data)
            code = await process.wait()
        except ConnectionError as error:
            raise NodeError(node, f"the {process.what} was lost: {error}") from None
        finally:
            feeding.cancel()
            await asyncio.wait({feeding})
    return 255 if code is None else code  # 255 as from ssh(1): a signal ended the command, or its code is unknown


async def _feed(process: RemoteProcess) -> None:
    """Copy standard input to the command. A thread reads the input, because an event loop cannot wait for a file."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)

    def read() -> None:
        data = b"?"
        while data:
            try:
                data = os.read(sys.stdin.fileno(), _CHUNK)
            except (OSError, ValueError, AttributeError):  # input is closed, or rigctl runs in the background
                data = b""
            piece = pieces.put(data)
            try:
                asyncio.run_coroutine_threadsafe(piece, loop).result()
            except (RuntimeError, CancelledError):
                piece.close()
                return  # the command ended before standard input

    # A read from a terminal cannot be cancelled; a daemon thread does not delay the exit of rigctl.
    threading.Thread(target=read, daemon=True).start()
    try:
        while data := await pieces.get():
            process.write(data)
            await process.drain()
        process.write_eof()
    except ConnectionError:
        return


def _put(descriptor: int, data: bytes) -> None:
    stream: TextIO | None = sys.stdout if descriptor == 1 else sys.stderr
    if stream is not None:  # sys.stdout is None if it was closed at the start
        stream.buffer.write(data)
        stream.buffer.flush()
