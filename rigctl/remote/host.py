"""Runs commands on a connected node, as the SSH user or as root, with a deadline and limited output."""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal

import asyncssh

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote import local, srun, ssh
from rigctl.remote.openssh.connection import open_openssh, open_ssh
from rigctl.remote.transport import Channel, Connection, Ending
from rigctl.rig.inventory import Node, Transport

_RUN_DEADLINE_S: Final = 10.0
BEGIN_DEADLINE_S: Final = 15.0
"""Deadline for the start-up files of a login shell, before a command's own deadline begins. The deadlines to open a
node are longer (`session._OPEN_DEADLINE_S`, `discover.HOST_S`), so that this error message comes first."""
_OUTPUT_LIMIT: Final = 4 * 1024**2
"""Limit of a command's standard output, in bytes."""
LINE_BOUND: Final = 64 * 1024
"""`readline` splits a line above this size in bytes; `protocol.lines` then refuses the parts."""
END_DEADLINE_S: Final = 2.0
LAST_WORDS_DEADLINE_S: Final = 2.0
_CHUNK: Final = 64 * 1024
_MARK: Final = "@@rigctl begins"
"""Line printed before each command, which separates the command's output from the output of start-up files."""
_LAST_WORDS: Final = 400
_TRANSPORTS: Final[Mapping[Transport, Callable[[Node, AsyncExitStack], Awaitable[Connection]]]] = {
    "ssh": open_ssh,
    "openssh": open_openssh,
    "srun": srun.open_srun,
    "local": local.open_local,
    "netns": local.open_netns,
}
SUDO_S: Final = 20.0
"""Time in s that sudo may take before it runs a command: it may wait for DNS, for the node's own name."""


@dataclass(frozen=True, slots=True)
class SudoRefusal:
    """Why sudo runs no root shell, and the line for its rules that allows it; both with `{who}` for the user."""

    code: Literal["password", "refused", "tty"]
    meaning: str
    line: str = "{who} ALL=(root) NOPASSWD: ALL"


_ASKS: Final = SudoRefusal("password", "sudo asks for a password")
_FORBIDS: Final = SudoRefusal("refused", "sudo does not let {who} run a shell as root")
_WANTS_TERMINAL: Final = SudoRefusal(
    "tty", "sudo wants a terminal (requiretty in its rules)", "Defaults:{who} !requiretty"
)
# Error text of sudo and sudo-rs in the C locale → meaning for the user.
_REFUSALS: Final = (
    (
        "must have a tty",
        SudoRefusal("tty", "sudo wants a terminal (requiretty in its rules)", "Defaults:{who} !requiretty"),
    ),
    ("password is required", _ASKS),
    ("terminal is required", _ASKS),
    ("authentication is required", _ASKS),
    ("not in the sudoers", SudoRefusal("refused", "sudo does not know {who}")),
    ("not allowed", _FORBIDS),
    ("may not run", _FORBIDS),
    ("I'm afraid I can't do that", _FORBIDS),
)
_OF_SUDO: Final = re.compile(r"^sudo(?:-rs)?: ", re.MULTILINE)
_UNRESOLVED: Final = "unable to resolve host"


class LateError(NodeError):
    """A command had not finished by its deadline. `said` is what it had printed on standard error."""

    def __init__(self, node: str, what: str, said: str) -> None:
        last = last_line(said)
        super().__init__(node, f"{what}; it said: {last}" if last else what)
        self.said = said


def last_line(said: str) -> str:
    """Return the last line that is not blank, made printable and cut; empty if there is none."""
    lines = [printable(line.strip()) for line in said.splitlines() if line.strip()]
    return lines[-1][:_LAST_WORDS] if lines else ""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """How a command ended. `exit_code` is None if a signal ended the command, or the connection reported no code."""

    exit_code: int | None
    output: bytes
    errors: bytes

    @property
    def stdout(self) -> str:
        return self.output.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.errors.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """Return the last line of standard error and the exit code, for an error message."""
        return _complaint(self.errors, Ending(self.exit_code, None))


def _complaint(errors: bytes, ending: Ending) -> str:
    said = last_line(errors.decode("utf-8", "replace"))
    how = f"exit code {ending.exit_code}" if ending.exit_code is not None else "cut off"
    how = f"killed by SIG{printable(ending.signal[:20])}" if ending.signal else how  # a server may send any text
    return f"{said} ({how})" if said else how


class RemoteProcess:
    """A command's standard streams while it runs. Reads raise `ConnectionError` if the connection is lost."""

    def __init__(self, channel: Channel, what: str, on_errors: Callable[[bytes], None] | None = None) -> None:
        self._channel = channel
        self.what = what  # name of the connection for messages, such as "SSH connection"
        self._on_errors = on_errors
        self._buffer = bytearray()
        self._errors = bytearray()
        self._greeting = bytearray()
        self.explain: Callable[[], Awaitable[str]] | None = None  # returns why the agent may have ended
        self._listener = asyncio.create_task(self._listen_to_errors())

    async def begin(self) -> bool:
        """Skip the output of start-up files. Return False if the login shell ended without starting the command."""
        while (line := await self.readline()).strip() != _MARK.encode():
            if not line:
                return False
            self._greeting += line
            del self._greeting[:-_CHUNK]
        return True

    @property
    def greeting(self) -> str:
        """Return the first line that was printed before the command, in quotes; empty if there was none."""
        lines = self._greeting.decode("utf-8", "replace").split("\n")
        first = next((printable(line.strip()) for line in lines if line.strip()), "")
        return f'"{first[:_LAST_WORDS]}"' if first else ""

    async def readline(self) -> bytes:
        """Return the next line with its newline, or `LINE_BOUND` bytes of it; at the end, the rest, then b""."""
        searched = 0
        while True:
            cut = self._buffer.find(b"\n", searched) + 1
            if cut > LINE_BOUND or (not cut and len(self._buffer) > LINE_BOUND):
                cut = LINE_BOUND
            if cut:
                return self._take(cut)
            searched = len(self._buffer)
            chunk = await self._channel.stdout.read(_CHUNK)
            if not chunk:
                return self._take(len(self._buffer))
            self._buffer += chunk

    async def read(self, most: int) -> bytes:
        """Return up to `most` bytes as soon as some arrive; b"" at the end."""
        return self._take(most) if self._buffer else await self._channel.stdout.read(most)

    def write(self, data: bytes) -> None:
        self._channel.stdin.write(data)

    async def drain(self) -> None:
        await self._channel.stdin.drain()

    def write_eof(self) -> None:
        self._channel.stdin.write_eof()

    async def wait(self) -> int | None:
        """Wait for the command's end. Return its exit code, or None if a signal ended it or the code is unknown."""
        await self._channel.wait_end()
        await asyncio.wait({self._listener})
        return self._channel.ending.exit_code

    async def last_words(self) -> str:
        """Return why the command ended: its last line of standard error, its exit code, and what `explain` returns."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_DEADLINE_S):
                await self.wait()
        return _complaint(self.errors, self._channel.ending) + (await self.explain() if self.explain else "")

    @property
    def errors(self) -> bytes:
        """Return the last 64 KiB of standard error so far."""
        return bytes(self._errors)

    async def end(self) -> None:
        """Close the command's input, wait `END_DEADLINE_S` for its end, then stop the channel."""
        try:
            async with asyncio.timeout(END_DEADLINE_S):
                self._channel.stdin.write_eof()
                await self._channel.wait_end()
        except OSError:
            pass  # the command is late (TimeoutError is an OSError), or the connection is lost
        finally:
            await self._channel.stop()
            self._listener.cancel()
            await asyncio.wait({self._listener})

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    async def _listen_to_errors(self) -> None:
        try:
            while chunk := await self._channel.stderr.read(_CHUNK):
                if self._on_errors is not None:
                    self._on_errors(chunk)
                self._errors += chunk
                del self._errors[:-_CHUNK]
        except OSError:
            return


class Host:
    """A connected node, on which commands can be started."""

    def __init__(self, node: Node, connection: Connection) -> None:
        self.node = node
        self.on_begin: Callable[[], None] | None = None  # called whenever a command starts
        self._connection = connection

    async def run(self, command: str, *, input: bytes = b"", deadline_s: float = _RUN_DEADLINE_S) -> CommandOutput:
        """Run `command` in the user's shell, with `input` on its standard input. Any exit code is a result.

        Raise `NodeError` if the connection is lost, `deadline_s` passes, or the output exceeds `_OUTPUT_LIMIT`.
        """
        deadline_s *= self.node.patience
        started: RemoteProcess | None = None
        try:
            async with self.process(command) as process, asyncio.timeout(deadline_s):
                started = process
                async with asyncio.TaskGroup() as group:
                    output = group.create_task(self._output(process, command))
                    group.create_task(_feed(process, input))
                return CommandOutput(await process.wait(), output.result(), process.errors)
        except TimeoutError:
            said = started.errors.decode("utf-8", "replace") if started is not None else ""
            raise LateError(self.node.name, f"not finished within {deadline_s:g} s: {_short(command)}", said) from None
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from None

    @property
    def is_windows(self) -> bool:
        """Return True for a Windows node. It has no POSIX shell, so its agent reads the host facts."""
        return isinstance(self._connection, ssh.SshConnection) and self._connection.is_windows

    @asynccontextmanager
    async def files(self) -> AsyncIterator[asyncssh.SFTPClient]:
        """Yield an SFTP client for a Windows node."""
        assert isinstance(self._connection, ssh.SshConnection)
        if self.on_begin is not None:
            self.on_begin()
        async with await self._connection.open_sftp() as files:
            yield files

    async def output(self, command: str) -> str:
        """Return the standard output of a shell command, whatever its exit code; "" on Windows, which has no `sh`."""
        return "" if self.is_windows else (await self.run(command)).stdout

    @asynccontextmanager
    async def process(
        self, command: str, on_errors: Callable[[bytes], None] | None = None
    ) -> AsyncIterator[RemoteProcess]:
        """Start `command` in the user's shell and yield its streams. Close its input and stop it after the block.

        `on_errors` receives standard error as it arrives. Raise `NodeError` if the shell does not start the command in
        time.
        """
        # cmd and PowerShell read this line alike: within double quotes, PowerShell passes & on to cmd.
        marked = f'cmd /d /c "echo {_MARK}&{command}"' if self.is_windows else f"echo; echo '{_MARK}'; {command}"
        process = RemoteProcess(await self._connection.start(marked), self._connection.what, on_errors)
        try:
            await self._begin(process)
            yield process
        finally:
            await process.end()

    async def _begin(self, process: RemoteProcess) -> None:
        deadline_s = BEGIN_DEADLINE_S * self.node.patience
        try:
            async with asyncio.timeout(deadline_s):
                begun = await process.begin()
        except TimeoutError:
            said = f" within {deadline_s:g} s" + (f"; it printed {process.greeting}" if process.greeting else "")
            what = f"the login shell did not start a command{said}"
            hint = "Does a start-up file of the user (~/.bashrc, ~/.profile) wait for input?"
            raise NodeError(self.node.name, f"{what}. {hint} Let it do so in interactive shells only") from None
        except ConnectionError as error:
            raise NodeError(self.node.name, f"the {self._connection.what} was lost: {error}") from None
        if not begun:
            # nologin, a forced command of sshd, and an account for file transfers print a sentence and exit.
            words = await process.last_words()
            said = f"{process.greeting} ({words})" if process.greeting else words
            remedy = f"a login shell that runs commands: {'cmd or PowerShell' if self.is_windows else '/bin/sh'}"
            raise NodeError(self.node.name, f"no command runs there: {said}. Give the user {remedy}")
        if self.on_begin is not None:
            self.on_begin()

    async def _output(self, process: RemoteProcess, command: str) -> bytes:
        output = bytearray()
        try:
            while chunk := await process.read(_CHUNK):
                output += chunk
                if len(output) > _OUTPUT_LIMIT:
                    raise NodeError(self.node.name, f"more than {_OUTPUT_LIMIT} bytes of output: {_short(command)}")
        except ConnectionError as error:
            raise NodeError(self.node.name, f"the {self._connection.what} was lost: {error}") from None
        return bytes(output)


async def _feed(process: RemoteProcess, data: bytes) -> None:
    try:
        process.write(data)
        await process.drain()
        process.write_eof()
    except ConnectionError:
        return  # a command may end without reading all its input; its exit code tells whether it succeeded


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 60 else line[:60] + " …"


@asynccontextmanager
async def connect_node(node: Node) -> AsyncIterator[Host]:
    """Connect to `node` by the transport of the rig file, and yield the host. Raise `NodeError` on failure."""
    async with AsyncExitStack() as stack:
        yield Host(node, await _TRANSPORTS[node.transport](node, stack))


def shell(script: str, *, sudo: bool) -> str:
    """Return a command that runs `script` in a POSIX shell, as root if `sudo`. Any login shell can run the command."""
    plain = f"exec sh -c {shlex.quote(script)}"
    if not sudo:
        return plain
    # Root needs no sudo, which may be missing. With LC_ALL=C, sudo's messages are in English, as in `_REFUSALS`.
    as_root = f'[ "$(id -u)" != 0 ] || {plain}; LC_ALL=C; export LC_ALL; exec sudo -n -- sh -c {shlex.quote(script)}'
    return f"exec sh -c {shlex.quote(as_root)}"


def sudo_refusal(node: Node, reply: CommandOutput) -> str | None:
    """Return why sudo did not run the command, and a remedy; None if sudo apparently ran it."""
    leave = f"or leave `sudo: true` out of node {node.name} in the rig file"
    if reply.exit_code == 127 and "sudo" in reply.stderr:
        return f"sudo is not installed there. Install it, log in as root, {leave}"
    if (refusal := sudo_meaning(reply.stderr)) is None:
        if not _OF_SUDO.search(reply.stderr):
            return None
        return f"sudo runs no shell as root: {reply.complaint}. Make `sudo -n sh` work there, log in as root, {leave}"
    who = node.user or "USER"
    why = refusal.meaning.format(who=node.user or "the user")
    line = shlex.quote(refusal.line.format(who=who))
    return f"{why}. As root on the node: echo {line} >>/etc/sudoers.d/rigctl, {leave}"


def sudo_meaning(said: str) -> SudoRefusal | None:
    """Return what sudo's error message means; None for an unknown message."""
    return next((refusal for sign, refusal in _REFUSALS if sign in said), None)


def sudo_late(deadline_s: float, said: str) -> str:
    """Return that a command by sudo had not finished by its deadline, with sudo's words and a remedy."""
    words = f"; it said: {last_line(said)}" if last_line(said) else ""
    if _UNRESOLVED in said:
        remedy = 'As root on the node, give its own name an address: echo "127.0.1.1 $(hostname)" >>/etc/hosts'
    else:
        remedy = "Find out there what it waits for: time sudo -n id"
    return f"sudo takes longer than {deadline_s:g} s{words}. {remedy}"
