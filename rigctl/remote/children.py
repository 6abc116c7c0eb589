"""Runs programs on a node beside the agent: several at once over one SSH channel. They end when the channel ends.

A shell on the node reads a command per line and starts it. The program's number precedes each line of its output.
When the shell's input ends (the controller ended or lost its connection), the shell ends all programs. `timeout` ends
them if the node does not notice a lost connection. A channel per program could exceed sshd's MaxSessions (ten).
"""

import asyncio
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.remote.host import Host, RemoteProcess, shell

_MOST_OUTPUT: Final = 64 * 1024**2
"""Limit of one program's output, in bytes."""
SHELL_OUTLIVES_S: Final = 10
"""The shell on the node ends this long after its programs' deadline, because a busy node reports their ends late."""
PATH: Final = "PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin; export PATH"
"""Shell command that adds folders of locally built programs, which the PATH of a non-login shell may lack."""
# In each pipeline, the left side runs the program and prints its pid and exit code. The right side passes SIGTERM to
# timeout(1), which signals the program and kills it a second later. sed -u keeps the lines of the programs apart.
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
class ProgramEnd:
    """How a program ended."""

    exit_code: int
    output: bytes  # standard output and standard error
    first_ns: int | None  # controller's monotonic clock when the first output arrived; None: no output


@dataclass(slots=True)
class _Child:
    ended: asyncio.Future[ProgramEnd]
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    first_ns: int | None = None


class Children:
    """Starts programs on a node and waits for them. Made by `children_on`."""

    def __init__(self, node: str, process: RemoteProcess) -> None:
        self.node = node
        self._process = process
        self._children: dict[int, _Child] = {}
        self._failure: NodeError | None = None

    def start(self, words: Sequence[str]) -> int:
        """Start a program and return its number. No word of the command may be empty or contain a blank."""
        number = len(self._children) + 1
        child = self._children[number] = _Child(asyncio.get_running_loop().create_future())
        try:
            self._process.write(f"{number} {' '.join(words)}\n".encode())
        except ConnectionError as error:
            self._fail(NodeError(self.node, f"the {self._process.what} was lost: {error}"))
        if self._failure is not None and not child.ended.done():
            child.ended.set_exception(self._failure)
        return number

    async def wait_end(self, number: int) -> ProgramEnd:
        """Return the exit code and output of a program once it has ended. Raise `NodeError` if the channel is lost."""
        return await asyncio.shield(self._children[number].ended)

    def over(self, number: int) -> bool:
        """Return True if the program has ended, or if the channel was lost."""
        return self._children[number].ended.done()

    def result(self, number: int) -> ProgramEnd | None:
        """Return exit code and output of the program; None if it has not ended, or if the channel was lost."""
        ended = self._children[number].ended
        return ended.result() if ended.done() and ended.exception() is None else None

    async def read(self) -> None:
        """Read the programs' output until the channel ends; then fail all programs that have not ended. Never raise."""
        failure = NodeError(self.node, "its programs were ended")
        try:
            while line := await self._process.readline():
                self._take(line)
            words = await self._process.last_words()
            failure = NodeError(self.node, f"the shell that runs programs on it ended: {words}")
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
            child.ended.set_result(ProgramEnd(int(code), b"".join(child.lines), child.first_ns))
            return
        if child.first_ns is None:
            child.first_ns = time.monotonic_ns()
        child.lines.append(text)
        child.size += len(text)
        if child.size > _MOST_OUTPUT:
            raise NodeError(self.node, f"a program printed more than {_MOST_OUTPUT} bytes")

    def _fail(self, failure: NodeError) -> None:
        self._failure = self._failure or failure
        for child in self._children.values():
            if not child.ended.done():
                child.ended.set_exception(self._failure)
                child.ended.exception()  # else asyncio logs an error if nobody awaits the future


@asynccontextmanager
async def children_on(host: Host, deadline_s: float) -> AsyncIterator[Children]:
    """Yield an object that starts programs on `host`. The programs end with the block, or after `deadline_s`."""
    if host.is_windows:
        raise NodeError(host.node.name, "it runs Windows, where rigctl cannot start iperf3. Use engine: agent")
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
