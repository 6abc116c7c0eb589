"""The commands that run on a virtual rig's nodes: started, reaped and ended by the holder, which is their init.

A command leads a session of its own (setsid(2)), so that all it starts can be found and ended with it.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER: Final = 36
TERM_AFTER_S: Final = 1.5
"""From end-of-file on its input to SIGTERM: an agent needs 1 s to restore what it changed and exit."""
KILL_AFTER_S: Final = 3.0


@dataclass(eq=False, slots=True)
class Child:
    """A running command: our ends of its pipes, and its exit status (negative: the signal) once it has one."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    status: int | None = None
    on_exit: Callable[[], None] | None = None
    ending: list[asyncio.TimerHandle] = field(default_factory=list)


class Children:
    """All commands of a rig. `dying_with_us`: without a process namespace the kernel has to be asked for that."""

    def __init__(self, dying_with_us: bool) -> None:
        self._dying_with_us = dying_with_us
        self._running: dict[int, Child] = {}
        self._loop = asyncio.get_running_loop()
        if dying_with_us:
            # Whatever a command leaves behind becomes our child, as it would become pid 1's.
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._none_left = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def spawn(self, command: list[str], environment: Mapping[str, str], folder: Path) -> Child:
        """Start a command. Raises `OSError` where it cannot be."""
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        try:
            started = subprocess.Popen(
                command,
                stdin=stdin[0],
                stdout=stdout[1],
                stderr=stderr[1],
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
                # This process has no other thread by now, so the child may run Python before it becomes the command.
                preexec_fn=die_with_parent if self._dying_with_us else None,  # noqa: PLW1509
            )
        except OSError:
            for descriptor in (stdin[1], stdout[0], stderr[0]):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (stdin[0], stdout[1], stderr[1]):
                os.close(descriptor)
        started.returncode = 0  # reaped below, by pid: Popen need not wait for it
        for descriptor in (stdin[1], stdout[0], stderr[0]):
            os.set_blocking(descriptor, False)
        child = Child(started.pid, stdin[1], stdout[0], stderr[0])
        self._running[child.pid] = child
        return child

    def end(self, child: Child) -> None:
        """See that the child ends, its input being closed already: asked first, then made to. Returns at once."""
        if child.status is None and not child.ending:
            child.ending = [
                self._loop.call_later(TERM_AFTER_S, signal_session, child.pid, signal.SIGTERM),
                self._loop.call_later(KILL_AFTER_S, signal_session, child.pid, signal.SIGKILL),
            ]

    async def end_all(self) -> None:
        """Wait until all have ended by themselves, then make them. Takes `KILL_AFTER_S` at most."""
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
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._running.pop(pid, None)
            if child is None:
                continue  # an orphan of some command
            if not self._running:
                self._none_left.set()
            child.status = os.waitstatus_to_exitcode(status)
            for timer in child.ending:
                timer.cancel()
            if child.ending:  # its session is to go with it
                signal_session(pid, signal.SIGKILL)
            if child.on_exit is not None:
                child.on_exit()


def signal_session(leader: int, number: int) -> None:
    """Send a signal to every process of the session that `leader` leads or led."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and session_of(int(entry.name)) == leader:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), number)


def session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def die_with_parent() -> None:
    """In a child, before it becomes a command: the kernel kills it when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
