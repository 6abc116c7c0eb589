"""A command over a master: one `ssh` that passes its pipes to the master and reports the exit code.

Standard error is the command's own, so ssh writes its messages to a FIFO. They tell what the exit code 255 means: the
command's own code, a signal, or a lost connection.
"""

import asyncio
import itertools
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from rigctl.base.texts import printable
from rigctl.remote.openssh.master import Master, Program
from rigctl.remote.transport import Ending, for_any_shell

_OPENED: Final = b"master session id"
_TOLD: Final = b"Received exit status from master"
_MOST_LOG: Final = 16 * 1024
_ENDS_S: Final = 2.0
"""How long after its output a command may end. Only then the end of the output is known not to be a lost connection."""
_numbers: Final = itertools.count()


class _Log:
    """The log of a client of ssh(1), read from a FIFO while it writes."""

    def __init__(self, file: Path) -> None:
        os.mkfifo(file, 0o600)
        self._file = file
        self._descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)
        self.opened = asyncio.Event()
        self._text = b""

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _MOST_LOG)
        except BlockingIOError:
            return
        self._text = (self._text + data)[-_MOST_LOG:]
        if not data:
            self._loop.remove_reader(self._descriptor)
        if _OPENED in self._text:
            self.opened.set()

    def text(self) -> bytes:
        """Return all that was written. The client has ended."""
        with suppress(OSError):
            while data := os.read(self._descriptor, _MOST_LOG):
                self._text = (self._text + data)[-_MOST_LOG:]
        return self._text

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        with suppress(OSError):
            os.close(self._descriptor)
        self._file.unlink(missing_ok=True)


class OpensshChannel:
    """A command of a node, as `ssh` over a master runs it."""

    def __init__(self, program: Program, log: _Log, master: Master) -> None:
        process = program.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._program, self._log, self._master = program, log, master
        self._closed = False
        self.stdin = _Input(process.stdin, self)
        self.stdout, self.stderr = _Output(process.stdout, self), _Output(process.stderr, self)

    @classmethod
    async def start(cls, master: Master, command: str) -> "OpensshChannel | str | None":
        """Start `command`. Return None if the connection takes no further command, a text if it was lost."""
        file = master.folder / f"{next(_numbers)}"
        try:
            log = _Log(file)
        except FileNotFoundError:
            return await master.loss() or "the folder of its socket is gone"
        try:
            # Without -T, a command would get a terminal if the configuration said so. -vv: see `_TOLD`.
            words = master.client("-T", "-vv", "-E", str(file))
            program = await Program.start((*words, for_any_shell(command)))
            channel = cls(program, log, master)
        except BaseException:
            log.close()
            raise
        try:
            waits = [asyncio.create_task(event.wait()) for event in (log.opened, program.exited)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if log.opened.is_set() or _OPENED in log.text():
                return channel
        except BaseException:
            await channel.stop()
            raise
        await channel.stop()
        return await master.loss()

    async def wait_end(self) -> None:
        await self._program.exited.wait()

    @property
    def ending(self) -> Ending:
        """Return the exit code. The name of a signal is lost: ssh does not pass it from the master to a client."""
        code = self._program.exit_code
        told = code is not None and code >= 0 and (code != 255 or _TOLD in self._log.text())
        return Ending(code if told else None, None)

    async def loss(self) -> str | None:
        """Return why the connection was lost; None if the command ended, or goes on without output."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDS_S):
                await self._program.exited.wait()
        if self._closed or self._program.exit_code is None or self.ending.exit_code is not None:
            return None
        return await self._master.loss()

    async def stop(self) -> None:
        """Kill the client and close its pipes: the master then closes the channel, which ends the command's input."""
        self._closed = True
        self._program.close()
        self._log.close()


class _Output:
    """A stream from a command. Raises `ConnectionError` where its end is that of the connection."""

    def __init__(self, stream: asyncio.StreamReader, channel: OpensshChannel) -> None:
        self._stream, self._channel = stream, channel

    async def read(self, most: int) -> bytes:
        data = await self._stream.read(most)
        if not data and (reason := await self._channel.loss()) is not None:
            raise ConnectionError(printable(reason))
        return data


class _Input:
    """The stream to a command."""

    def __init__(self, stream: asyncio.StreamWriter, channel: OpensshChannel) -> None:
        self._stream, self._channel = stream, channel

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    async def drain(self) -> None:
        try:
            await self._stream.drain()
        except ConnectionError as error:
            raise ConnectionError(printable(await self._channel.loss() or str(error))) from None

    def write_eof(self) -> None:
        self._stream.write_eof()
