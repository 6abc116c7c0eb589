"""`rigctl rig`: a rig file from hosts; a virtual rig up, down and its state; any command on any node of any rig."""

import asyncio
import os
import shlex
import sys
import threading
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from rigctl.cli.options import Json

if TYPE_CHECKING:
    from rigctl.cli.short_documents import VirtualRig
    from rigctl.remote.host import Process
    from rigctl.rig.inventory import Rig
    from rigctl.virtual.state import State

app = typer.Typer(no_args_is_help=True)
RigArgument = Annotated[str, typer.Argument(metavar="RIG", help="A rig file, or the name of a bundled rig.")]
RigSets = Annotated[
    list[str] | None,
    typer.Option(
        "--rig-set",
        metavar="PATH=VALUE",
        help="Replace a value of the rig file, as trunk.rate=10G; may be given several times.",
    ),
]
_CHUNK: Final = 65536
_LOST: Final = 255  # as ssh(1) has it: ended by a signal, or nobody knows how


@app.command()
def up(rig: RigArgument, rig_set: RigSets = None) -> None:
    """Start a virtual rig and keep it up until `rigctl rig down`."""
    from rigctl.rig.schema import load_rig
    from rigctl.virtual import up as start

    ready, state, new = asyncio.run(start(load_rig(rig, sets=rig_set or ())))
    print(_described(ready, state, "is up" if new else "is up already"))
    print(f"End it with: rigctl rig down {shlex.quote(rig)}")


@app.command()
def down(rig: RigArgument, rig_set: RigSets = None) -> None:
    """End a virtual rig that `rigctl rig up` started, and all that runs on it."""
    from rigctl.rig.schema import load_rig
    from rigctl.virtual import down as end

    ended = asyncio.run(end(load_rig(rig, sets=rig_set or ())))
    for state in ended:
        print(f"{state.name}: ended")
    if not ended:
        print(f"{rig}: was not up")


@app.command()
def status(rig: RigArgument, rig_set: RigSets = None, as_json: Json = False) -> None:
    """Say whether a virtual rig is up, and how OpenSSH reaches its nodes."""
    from rigctl.rig.schema import load_rig
    from rigctl.virtual import find
    from rigctl.virtual.layout import layout_of
    from rigctl.virtual.provide import completed

    loaded = load_rig(rig, sets=rig_set or ())
    states = find(loaded)
    layout = layout_of(loaded)
    if as_json:
        from rigctl.cli.short_documents import RigStatusDocument

        up = [_state(completed(loaded, layout, state) if state.key == layout.key else None, state) for state in states]
        print(RigStatusDocument(rig=loaded.name, up=up).model_dump_json(indent=2))
        return
    for state in states:
        if state.key == layout.key:
            print(_described(completed(loaded, layout, state), state, "is up"))
        else:
            what = "was started from another version of the file. Stop it with `rig down`"
            print(f"{state.name}: pid {state.holder.pid} {what}")
    if not states:
        print(f"{loaded.name}: not up. `rigctl run` starts it for itself; `rigctl rig up` keeps it up.")


@app.command()
def init(
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
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write this file; - prints it.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Look at hosts by SSH or srun and write a rig file for them. Changes nothing on them."""
    from rigctl.base.errors import InputError
    from rigctl.cli.rig_init import init_rig

    if not output:
        raise InputError("rig init: name the file to write, as in -o mylab.yaml; -o - prints it")
    init_rig(hosts or [], inventory, groups or [], switches or [], output, force=force, as_json=as_json, slurm=slurm)


@app.command(name="exec", context_settings={"allow_interspersed_args": False})
def execute(
    rig: RigArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node of that rig.")],
    command: Annotated[
        list[str], typer.Argument(metavar="CMD…", help="One word: a shell command line. More: a command, word by word.")
    ],
    rig_set: RigSets = None,
) -> int:
    """Run a command on a node of any rig; its exit code is passed on. A virtual rig that is not up is, meanwhile."""
    from rigctl.base.errors import InputError
    from rigctl.rig.schema import load_rig

    loaded = load_rig(rig, sets=rig_set or ())
    if node not in loaded.nodes:
        raise InputError(f'{loaded.name}: no node "{node}". Its nodes: {", ".join(loaded.nodes)}.')
    words = command[1:] if command[0] == "--" else command
    if not words:
        raise InputError(f"rig exec {rig} {node} --: no command. Add one, as in -- uname -a")
    line = words[0] if len(words) == 1 else shlex.join(words)
    return asyncio.run(_execute(loaded, node, line))


async def _execute(rig: "Rig", node: str, line: str) -> int:
    from rigctl.remote.reach import connected
    from rigctl.virtual import provided

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


async def _feed(process: "Process") -> None:
    """Our input to the command's. By a thread: input may be a file, which an event loop cannot wait for."""
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

    # Nobody can end a read from a terminal: the thread must not keep the program.
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


def _state(rig: "Rig | None", state: "State") -> "VirtualRig":
    """Return a virtual rig that is up; without `rig`: it is another version of the file."""
    from rigctl.cli.short_documents import VirtualNode, VirtualRig

    nodes = [
        VirtualNode(
            node=node.name,
            address=node.address,
            port=node.port,
            user=node.user,
            key=None if node.key is None else str(node.key),
            known_hosts=None if node.known_hosts is None else str(node.known_hosts),
            data_address=node.data_address,
            data_interface=node.data_interface,
            rate_mbps=None if node.link.rate_bps is None else node.link.rate_bps / 1e6,
            mtu=node.link.mtu,
        )
        for node in (rig.nodes.values() if rig is not None else ())
    ]
    return VirtualRig(pid=state.holder.pid, current=rig is not None, nodes=nodes)


def _described(rig: "Rig", state: "State", what: str) -> str:
    from rigctl.base.units import format_rate

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
