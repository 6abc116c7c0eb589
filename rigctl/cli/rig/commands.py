"""`rigctl rig`: a rig file from hosts; a virtual rig up, down and its state; any command on any node of any rig."""

import asyncio
import os
import shlex
import sys
import threading
from typing import Annotated, Final, Literal, TextIO

import typer
from pydantic import BeforeValidator, Field

from rigctl.base.errors import InputError
from rigctl.base.units import format_rate
from rigctl.cli.documents import Model, at
from rigctl.cli.options import Json, RigSets
from rigctl.cli.rig.init import init
from rigctl.remote.host import Process
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Rig
from rigctl.rig.schema import load_rig
from rigctl.virtual.provide import completed, find, layout_of, provided
from rigctl.virtual.provide import down as end_rig
from rigctl.virtual.provide import up as start_rig
from rigctl.virtual.state import State

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Write rig files from hosts, keep virtual rigs up, run commands on nodes.",
)
RigArgument = Annotated[str, typer.Argument(metavar="RIG", help="A rig file, or the name of a bundled rig.")]
_CHUNK: Final = 65536
_LOST: Final = 255  # as in ssh(1): ended by a signal, or the end is unknown


@app.command()
def up(rig: RigArgument, rig_set: RigSets = None) -> None:
    """Start a virtual rig and keep it up until `rigctl rig down`."""
    ready, state, new = asyncio.run(start_rig(load_rig(rig, sets=rig_set or ())))
    print(_described(ready, state, "is up" if new else "is up already"))
    print(f"End it with: rigctl rig down {shlex.quote(rig)}")


@app.command()
def down(rig: RigArgument, rig_set: RigSets = None) -> None:
    """End a virtual rig that `rigctl rig up` started, and all that runs on it."""
    ended = asyncio.run(end_rig(load_rig(rig, sets=rig_set or ())))
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
    current: bool = Field(description="false: it was started from another version of the file.")
    nodes: list[VirtualNode] = Field(description="Empty where it is not current.")


class RigStatusDocument(Model):
    """State of a virtual rig."""

    version: Literal[1] = 1
    rig: str
    up: list[VirtualRig]


@app.command()
def status(rig: RigArgument, rig_set: RigSets = None, as_json: Json = False) -> None:
    """Say whether a virtual rig is up, and how OpenSSH reaches its nodes."""
    loaded = load_rig(rig, sets=rig_set or ())
    states = find(loaded)
    layout = layout_of(loaded)
    if as_json:
        up = []
        for state in states:
            current = state.key == layout.key
            nodes = list(completed(loaded, layout, state).nodes.values()) if current else []
            up.append({"pid": state.holder.pid, "current": current, "nodes": nodes})
        print(RigStatusDocument.text_of(rig=loaded.name, up=up))
        return
    for state in states:
        if state.key == layout.key:
            print(_described(completed(loaded, layout, state), state, "is up"))
        else:
            what = "was started from another version of the file. Stop it with `rig down`"
            print(f"{state.name}: pid {state.holder.pid} {what}")
    if not states:
        print(f"{loaded.name}: not up. `rigctl run` starts it for itself; `rigctl rig up` keeps it up.")


app.command()(init)


@app.command(name="exec", context_settings={"allow_interspersed_args": False})
def execute(
    rig: RigArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node of that rig.")],
    command: Annotated[
        list[str], typer.Argument(metavar="CMD…", help="One word: a shell command line. More: a command, word by word.")
    ],
    rig_set: RigSets = None,
) -> int:
    """Run a command on a node of any rig; pass on its exit code.

    A virtual rig that is not up is started for the command.
    """
    loaded = load_rig(rig, sets=rig_set or ())
    if node not in loaded.nodes:
        raise InputError(f'{loaded.name}: no node "{node}". Its nodes: {", ".join(loaded.nodes)}.')
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise InputError(f"rig exec {rig} {node} --: no command. Add one, as in -- uname -a")
    line = words[0] if len(words) == 1 else shlex.join(words)
    return asyncio.run(_execute(loaded, node, line))


async def _execute(rig: Rig, node: str, line: str) -> int:
    async with (
        provided(rig) as ready,
        connected(ready, [node]) as hosts,
        hosts[node].process(line, on_errors=lambda data: _put(2, data)) as process,
    ):
        feeding = asyncio.create_task(_feed(process))
        try:
            while data := await process.read(_CHUNK):
                _put(1, data)
            code = await process.wait()
        finally:
            feeding.cancel()
            await asyncio.wait({feeding})
    return _LOST if code is None else code


async def _feed(process: Process) -> None:
    """Pass our input on to the command. A thread reads it: an event loop cannot wait for a file."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)

    def read() -> None:
        data = b"?"
        while data:
            try:
                data = os.read(sys.stdin.fileno(), _CHUNK)
            except (OSError, ValueError, AttributeError):  # closed, or not ours to read
                data = b""
            try:
                asyncio.run_coroutine_threadsafe(pieces.put(data), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the command has ended first

    # A read from a terminal cannot be ended: the thread must not keep the program from ending.
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
    if stream is not None:  # else it is closed
        stream.buffer.write(data)
        stream.buffer.flush()


def _described(rig: Rig, state: State, what: str) -> str:
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
            answers = (
                f"SNMP on {switch.address} port {switch.snmp.port}" if switch.address else "no SNMP: no snmpd here"
            )
            lines.append(f"{switch.key}  {switch.title}  {answers}")
    if state.community is not None:
        lines.append(f"    its community is in {state.folder / 'state.json'}")
    return "\n".join(lines)
