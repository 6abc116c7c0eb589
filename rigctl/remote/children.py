"""Other programs at work on a node: several at once over one channel, and none outlives it.

A shell on the node reads one command a line, starts it, and returns its output with its number before every line. When
the shell's input ends (the controller is done, was killed, or lost its connection) it ends all programs; if nobody
notices a cut connection, `timeout` does. No file is made there. One channel: an SSH server opens ten at most.
"""

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.remote.host import Host, Process, shell

_MOST_OUTPUT: Final = 64 * 1024**2
"""Bytes of one program's output."""
SHELL_OUTLIVES_S: Final = 10
"""Time for which the shell on the node outlives its programs' deadline: on a busy node, their ends come out late."""
PATH: Final = "PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin; export PATH"
"""A shell without a login may lack the folders of programs that were built on the node."""
# In each pipeline the left side runs the program and prints its pid and exit code; the right side ends it on SIGTERM.
# timeout(1) passes that on, and SIGKILL a second later. sed writes whole lines, so that programs do not mix.
_SCRIPT: Final = """
set -f; LC_ALL=C; export LC_ALL; {path}
exec 3<&0 </dev/null
all=
stop() {{ for each in $all; do kill -TERM "$each"; done; wait; exit 0; }} 2>/dev/null
trap stop TERM HUP INT
while read -r id command <&3; do
  {{ timeout -k 1 {deadline} $command 2>&1 3<&- & p=$!; echo "$p"; wait "$p"; code=$?; echo; echo "exit $code"; }} | {{
    exec 3<&- 4<&0
    read -r p; trap 'kill -TERM "$p" 2>/dev/null' TERM
    sed -u "s/^/$id /" <&4 & written=$!
    wait "$written"; wait "$written" 2>/dev/null
  }} &
  all="$all $!"
done
stop
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended; times on the controller's clock, when they became known."""

    exit_code: int
    output: bytes  # standard error in it
    first_ns: int | None  # when its first output came


@dataclass(slots=True)
class _Child:
    ended: asyncio.Future[Ended]
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    first_ns: int | None = None


class Children:
    """The programs of one node. Made by `children_on`."""

    def __init__(self, node: str, process: Process) -> None:
        self.node = node
        self._process = process
        self._children: dict[int, _Child] = {}
        self._failure: NodeError | None = None

    def start(self, words: Sequence[str]) -> int:
        """Start a program; return its number. No word may be empty or have a blank."""
        number = len(self._children) + 1
        child = self._children[number] = _Child(asyncio.get_running_loop().create_future())
        try:
            self._process.write(f"{number} {' '.join(words)}\n".encode())
        except ConnectionError as error:
            self._fail(NodeError(self.node, f"the {self._process.what} was lost: {error}"))
        if self._failure is not None and not child.ended.done():
            child.ended.set_exception(self._failure)
        return number

    async def ended(self, number: int) -> Ended:
        """Wait until a program has ended. Raise `NodeError` if that will never be known."""
        return await asyncio.shield(self._children[number].ended)

    def over(self, number: int) -> bool:
        """Return True if the program has ended."""
        return self._children[number].ended.done()

    def result(self, number: int) -> Ended | None:
        """Return how the program ended; None if it has not, or if that is unknown."""
        ended = self._children[number].ended
        return ended.result() if ended.done() and ended.exception() is None else None

    async def read(self) -> None:
        """Take the programs' output until the channel ends; then fail whatever waits. Never raise."""
        failure = NodeError(self.node, "its programs were ended")
        try:
            while line := await self._process.readline():
                self._take(line)
            failure = NodeError(self.node, f"the shell of its programs ended: {await self._process.last_words()}")
        except NodeError as error:
            failure = error
        except OSError as error:
            failure = NodeError(self.node, f"the {self._process.what} was lost: {error}")
        finally:
            self._fail(failure)

    def _take(self, line: bytes) -> None:
        number, _, text = line.partition(b" ")
        child = self._children.get(int(number)) if number.isdigit() else None
        if child is None or child.ended.done():
            return
        word, _, code = text.partition(b" ")
        if word == b"exit" and code.strip().isdigit():
            child.ended.set_result(Ended(int(code), b"".join(child.lines), child.first_ns))
            return
        if child.first_ns is None:
            child.first_ns = time.monotonic_ns()
        child.lines.append(text)
        child.size += len(text)
        if child.size > _MOST_OUTPUT:
            raise NodeError(self.node, f"more than {_MOST_OUTPUT} bytes of output of one program")

    def _fail(self, failure: NodeError) -> None:
        self._failure = self._failure or failure
        for child in self._children.values():
            if not child.ended.done():
                child.ended.set_exception(self._failure)
                child.ended.exception()  # looked at: nobody may be waiting any more


@asynccontextmanager
async def children_on(host: Host, deadline_s: float) -> AsyncIterator[Children]:
    """Yield the programs of `host`, which last for the block, `deadline_s` at most: none is left at its end."""
    script = _SCRIPT.format(path=PATH, deadline=round(deadline_s) + 1)
    whole = f"{PATH}; exec timeout -k 3 {round(deadline_s) + SHELL_OUTLIVES_S} sh -c {shlex.quote(script)}"
    async with host.process(shell(whole, sudo=False)) as process:
        children = Children(host.node.name, process)
        reader = asyncio.create_task(children.read(), name=f"programs {host.node.name}")
        try:
            yield children
        finally:
            reader.cancel()
            await asyncio.wait({reader})
