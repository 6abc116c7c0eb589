"""`rigctl rig exec`: run a command on a node of any rig."""

import asyncio
import os
import shlex
import sys
import threading
from concurrent.futures import CancelledError
from typing import Annotated, Final, TextIO

import typer

from rigctl.base.errors import InputError
from rigctl.cli.options import RigArgument, RigSets
from rigctl.remote.host import RemoteProcess, connect_node
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig
from rigctl.virtual.provide import provide

_CHUNK: Final = 65536
_LOST: Final = 255  # exit code as of ssh(1): a signal ended the command, or its exit code is unknown


def execute_on_node(
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
        provide(rig) as ready,
        connect_node(ready.nodes[node]) as host,
        # eval: despite a syntax error in the user's line, the shell prints the mark that precedes a command.
        host.process(
            line if host.is_windows else f"eval {shlex.quote(line)}", on_errors=lambda data: _put(2, data)
        ) as process,
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


async def _feed(process: RemoteProcess) -> None:
    """Copy standard input to the command. A thread reads it, because an event loop cannot wait for a file."""
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
