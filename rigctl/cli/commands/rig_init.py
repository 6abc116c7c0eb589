"""`rigctl rig init`: look at hosts and write a rig file for them."""

import asyncio
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, Literal

import typer
from pydantic import BeforeValidator

from rigctl.base.errors import InputError, RigError
from rigctl.base.files import write_whole
from rigctl.base.resources import modeline
from rigctl.base.units import format_rate
from rigctl.cli.options import Json
from rigctl.cli.output import InMbps, Model, Versioned, at, of, plain_console, print_table
from rigctl.discovery.discover import discover, switch_named
from rigctl.discovery.draft import Draft
from rigctl.discovery.inventory import inventory_targets, read_inventory, split_reference
from rigctl.discovery.rig_file import rig_of_text, rig_text
from rigctl.discovery.targets import Target, fill_in_allocation, targets_of
from rigctl.findings.text import plural
from rigctl.scenario.pairs import pairs_option
from rigctl.yamlfile.fields import FieldError

_STANDARD_OUTPUT: Final = "-"
_FEWEST: Final = 2
"""Smallest number of nodes in a rig: a pair needs two."""


def write_rig_file(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST", help="[USER@]HOST[:PORT], or a range as in node[001-012,20]."),
    ] = None,
    inventory: Annotated[
        str | None, typer.Option("--from", metavar="FILE[:GROUP]", help="Take hosts from an Ansible inventory, too.")
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="GROUP", help="Of the inventory, this group only; repeatable."),
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Take the nodes of this Slurm allocation, and ask them by srun.")
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
    rig_of_text(text, path)  # a file that `run` would refuse is never written
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
    """Return the hosts of the command line and the inventory, or of the Slurm allocation, and notes for the user.

    Raise `InputError` for an unreadable name or inventory, or if no host is named.
    """
    if slurm:
        if hosts or inventory is not None or groups:
            raise InputError("rig init: --slurm takes the nodes of the allocation. Name no other hosts beside it")
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
        raise InputError("rig init: no host is named. Name some, as in pi1 pi2 or node[001-012], or give --from")
    return targets, notes


def check_place(path: Path, *, force: bool) -> None:
    """Raise `InputError` if the file cannot be written, or if it exists and `force` is not given."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name a file in it, as {path / 'rig.yaml'}")
    if path.exists() and not force:
        raise InputError(f"{path}: exists. Name another file with -o, or replace it with --force")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{path}: cannot be written there: {folder} is no folder that you may write to")


def _too_few(draft: Draft) -> str:
    usable = f"only {draft.nodes[0].target.text} is usable" if draft.nodes else "no host is usable"
    reasons = "".join(f"\n{each.target.text}: {each.reason}" for each in draft.left_out)
    return f"rig init: {usable}; a rig needs {_FEWEST} nodes. Nothing was written.{reasons}"


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
        file, option = quote(output), pairs_option([node.name for node in draft.nodes])
        console.print(f"Next:\n  rigctl check {file}\n  rigctl run gigablox --rig {file} {option}")


_ROOT: Final = {None: "yes", "granted": "sudo", "password": "no", "absent": "no", "refused": "no"}


def _summary(draft: Draft, output: str) -> str:
    where = "printed" if output == _STANDARD_OUTPUT else f"written to {output}"
    unread = len(draft.left_out)
    left_out = f", {plural(unread, 'host')} left out" if unread else ""
    speeds = {node.path.interface.speed_bps for node in draft.nodes if node.path.interface is not None}
    mixed = ", of different speeds," if len(speeds - {None}) > 1 else ""
    return f"A rig of {len(draft.nodes)} nodes{mixed} was {where}{left_out}."


_HEADS: Final = ("Node", "Host", "Machine", "Interface", "Data address", "Rate", "MTU", "Root", "Switch port")


def _rows(draft: Draft) -> list[list[str]]:
    """Return a table row for each node; an unknown field is a dash."""
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
            _ROOT[node.host.sudo],
            f"{node.switch} {port.port}" if port is not None else None,
        )
        rows.append([field or "–" for field in fields])
    return rows


_ROOTS: Final = {None: "login", "granted": "sudo"}


class RigNode(Model):
    """A host that became a node."""

    node: str = at("name")
    host: str = at("target.text", "As the user named the host.")
    machine: str | None = at("host.machine")
    os: str | None = at("host.os")
    virtual_machine: bool | None = at("host.is_virtual")
    root: Annotated[
        Literal["login", "sudo", "password", "absent", "refused"],
        BeforeValidator(lambda sudo: _ROOTS.get(sudo, sudo)),
    ] = at("host.sudo", "login: the SSH user is root; sudo: sudo -n works; else why not.")
    data_interface: Annotated[str | None, of("name")] = at("path.interface")
    data_address: str | None = at("path.address")
    why: str = at("path.why", "Why this interface and address were chosen.")
    driver: Annotated[str | None, of("driver")] = at("path.interface")
    rate_mbps: Annotated[InMbps | None, of("speed_bps")] = at("path.interface")
    duplex: Annotated[str | None, of("duplex")] = at("path.interface")
    mtu: Annotated[int | None, of("mtu")] = at("path.interface")
    switch: str | None
    switch_port: Annotated[str | None, of("port")] = at("port")
    port_unknown: str | None = at("no_port", "Why the switch's port is not in the file.")


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
