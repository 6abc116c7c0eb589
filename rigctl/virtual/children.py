"""Commands on a virtual rig's nodes. The holder starts, reaps and ends them: it is their init process.

Each command leads a session of its own (setsid(2)), so that all processes it starts can be found and ended with it.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Final

from rigctl.base.processes import die_with

_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
TERM_AFTER_S: Final = 1.5
"""Time from end-of-file on a command's input to SIGTERM. An agent needs 1 s to restore what it changed and exit."""
KILL_AFTER_S: Final = 3.0


@dataclass(eq=False, slots=True)
class Child:
    """A command: our ends of its pipes, and its exit status (negative: the signal) once it has ended."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    status: asyncio.Future[int]
    ending: list[asyncio.TimerHandle] = field(default_factory=list)


class Children:
    """All running commands of a rig.

    On a rig without a process namespace (`with_us`), the holder asks the kernel to end the commands with it.
    """

    def __init__(self, with_us: bool) -> None:
        self._with_us = with_us
        self._running: dict[int, Child] = {}
        self._loop = asyncio.get_running_loop()
        if with_us:
            # Orphans of a command become our children, as they become pid 1's in a namespace.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._none_left = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def spawn(self, command: list[str], environment: Mapping[str, str], folder: Path) -> Child:
        """Start a command. Raise `OSError` if it cannot be started."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
            # The holder has no other thread by now, so the child may run Python before it becomes the command.
            preexec_fn=partial(die_with, os.getpid(), signal.SIGKILL) if self._with_us else None,  # noqa: PLW1509
        )
        process.returncode = 0  # reaped below, by pid: Popen need not wait for it
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        child = Child(process.pid, process.stdin, process.stdout, process.stderr, self._loop.create_future())
        self._running[child.pid] = child
        return child

    def end(self, child: Child) -> None:
        """End a command whose input is closed: SIGTERM to its session after a while, then SIGKILL. Do not wait."""
        if not child.status.done() and not child.ending:
            child.ending = [
                self._loop.call_later(TERM_AFTER_S, signal_session, child.pid, signal.SIGTERM),
                self._loop.call_later(KILL_AFTER_S, signal_session, child.pid, signal.SIGKILL),
            ]

    async def end_all(self) -> None:
        """Wait until all commands have ended by themselves, then end them. This takes `KILL_AFTER_S` at most."""
        if not self._running:
            return
        self._none_left.clear()
        for wait_s, number in ((TERM_AFTER_S, signal.SIGTERM), (KILL_AFTER_S - TERM_AFTER_S, signal.SIGKILL)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._none_left.wait()
            for pid in list(self._running):
                signal_session(pid, number)

    def _reap(self) -> None:
        """Take the exit status of all processes that have ended, orphans of commands included."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._running.pop(pid, None)
            if child is None:
                continue
            if not self._running:
                self._none_left.set()
            for timer in child.ending:
                timer.cancel()
            if child.ending:
                signal_session(pid, signal.SIGKILL)
            child.status.set_result(os.waitstatus_to_exitcode(status))


def signal_session(leader: int, number: int) -> None:
    """Send a signal to every process of the session that `leader` leads or led."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(int(entry.name)) == leader:
                    os.kill(int(entry.name), number)
