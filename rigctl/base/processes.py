"""Processes: run commands, identify processes, their resource limits, and the account of the user."""

import contextlib
import errno
import getpass
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, TypeVar
from weakref import WeakSet

from rigctl.base.errors import RigError

_PR_SET_PDEATHSIG: Final = 1  # constant of linux/prctl.h
_DESCRIPTORS: Final = 16384
"""Soft limit of open files: enough for 1000 nodes, not too many for programs that close every possible file."""
_GRACE_S: Final = 1.0
"""Time from SIGTERM to SIGKILL for a program that is ended."""
_LOOK_S: Final = 0.02
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Process:
    """Identifies a process, also if its pid is reused. `started` is its start time, field 22 of /proc/PID/stat."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return process(self.pid) == self


def process(pid: int) -> Process | None:
    """Return the identity of process `pid`; None if there is no such process, or only a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the name in brackets, which may contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else Process(pid, int(fields[19]))


def is_hidden(pid: int) -> bool:
    """Tell whether `pid` is a process of another user, which /proc may hide (hidepid, proc(5))."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def run_bounded(
    command: Sequence[str],
    deadline_s: float,
    *,
    text: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a foreign program with input `text`; end it and all that it started with its answer, or at the deadline.

    Raise `subprocess.TimeoutExpired`, with the output until then, at the deadline; `OSError` if it cannot be started.
    """
    caller = _caller.get()
    if caller.ended:
        raise subprocess.TimeoutExpired(command, 0)
    # Files, because a pipe stays open, and its reader waits, while any child of the program lives.
    with _scratch(text) as given, _scratch() as output, _scratch() as errors:
        process = subprocess.Popen(
            command,
            stdin=given, stdout=output, stderr=errors, env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
        caller.groups.add(process.pid)
        try:
            in_time = wait_end(process, 0 if caller.ended else deadline_s)
        finally:
            caller.groups.discard(process.pid)
            end_group(process)
        output.seek(0)
        errors.seek(0)
        said = output.read(), errors.read()
    if not in_time:
        raise subprocess.TimeoutExpired(command, deadline_s, *said)
    return subprocess.CompletedProcess(command, process.returncode, *said)


@dataclass(eq=False)
class _Caller:
    """The programs that a caller of `run_bounded` has running: numbers of groups whose leaders are not reaped yet."""

    groups: set[int] = field(default_factory=set)
    ended: bool = False

    def end(self) -> None:
        self.ended = True
        for group in tuple(self.groups):
            signal_group(group, signal.SIGKILL)


_outside: Final = _Caller()  # of all that does not run in `run_in_thread`
_callers: Final = WeakSet([_outside])
_caller: Final = ContextVar("rigctl.base.processes.caller", default=_outside)


async def run_in_thread(function: Callable[..., _T], *given: object) -> _T:
    """Return what `function` returns in a thread. If the caller is cancelled, end the programs that it runs there."""
    import asyncio  # slow to import, and not needed by every command

    caller = _Caller()
    _callers.add(caller)
    token = _caller.set(caller)
    try:
        return await asyncio.to_thread(function, *given)
    except asyncio.CancelledError:
        caller.end()  # else the interpreter would wait for them at its end
        raise
    finally:
        _caller.reset(token)


def end_programs_by_signals() -> None:
    """Let SIGTERM and SIGHUP, which programs in sessions of their own do not get, end them with this process."""

    def end(number: int, _frame: object) -> None:
        for caller in tuple(_callers):
            caller.end()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # SIGHUP is ignored under nohup
            signal.signal(number, end)


def _scratch(text: bytes = b"") -> IO[bytes]:
    """Return an open file without a name that holds `text`; in memory on Linux, so that no disk can be full."""
    file = os.fdopen(os.memfd_create("rigctl"), "w+b") if sys.platform == "linux" else TemporaryFile()  # noqa: SIM115
    file.write(text)
    file.seek(0)
    return file


def wait_end(process: "subprocess.Popen[bytes]", deadline_s: float) -> bool:
    """Return True when `process` has ended, False at the deadline. Do not reap it: its group keeps its number."""
    if process.returncode is None and sys.platform == "linux":
        with contextlib.suppress(OSError):  # a kernel, or a sandbox, without pidfd_open(2)
            descriptor = os.pidfd_open(process.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                return bool(poll.poll(deadline_s * 1000))
            finally:
                os.close(descriptor)
    try:
        process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def end_group(process: "subprocess.Popen[bytes]", grace_s: float = _GRACE_S) -> None:
    """End the process group that `process` leads: SIGTERM, and SIGKILL to what runs after `grace_s`.

    What is left of the group after its leader has `_GRACE_S`. A process that others own, or that the kernel
    holds, is not waited for.
    """
    for number in (signal.SIGTERM, signal.SIGCONT):  # SIGCONT: a stopped process heeds SIGTERM only then
        signal_group(process.pid, number)
    if wait_end(process, grace_s):
        process.wait()  # a leader that is not reaped counts as a member
        until_s = time.monotonic() + min(grace_s, _GRACE_S)
        while signal_group(process.pid, 0) and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
    signal_group(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group, 0 to none; return True if the group has a process that may be signalled."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def run_command(
    command: list[str], *, text: str = "", environment: Mapping[str, str] | None = None, deadline_s: float = 30.0
) -> str:
    """Run a command with input `text` and return its output. Raise `RigError` with its last output if it fails."""
    name = " ".join(command[:3])
    try:
        done = run_bounded(command, deadline_s, text=text.encode(), environment=environment)
    except FileNotFoundError:
        raise RigError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise RigError(f"{name}: had not ended after {deadline_s:g} s") from None
    output, errors = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    if done.returncode != 0:
        complaint = " / ".join((errors or output).strip().splitlines()[-3:])
        raise RigError(f"{name}: {complaint or f'exit code {done.returncode}'}")
    return output


def die_with(parent: int, number: int) -> None:
    """Make Linux send signal `number` to this child when its parent thread ends. Called by the child before exec."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent has already ended
            os.kill(os.getpid(), number)


def allow_descriptors() -> None:
    """Raise this process's soft limit of open files, often 1024. A node takes one open file, a virtual node ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def limit_met(error: BaseException) -> str | None:
    """Return a message on the resource limit that caused an error, with a remedy; None if no limit caused it."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"too many open files: this process may have {most}. Allow more: ulimit -n {max(1024, 2 * most)}"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        limits = f"{_ulimit('-v', resource.RLIMIT_AS, 1024)} and {_ulimit('-u', resource.RLIMIT_NPROC)}"
        return f"no thread can be started: {limits}. Raise these limits, or the container's limit of processes"
    if isinstance(error, MemoryError):
        return f"out of memory: {_ulimit('-v', resource.RLIMIT_AS, 1024)}. Raise that limit, or add memory"
    return None


def _ulimit(option: str, which: int, unit: int = 1) -> str:
    most = resource.getrlimit(which)[0]
    return f"ulimit {option} is {'unlimited' if most == resource.RLIM_INFINITY else most // unit}"


def account() -> str:
    """Return the user and the host, as `anna@lab7`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def holder() -> str:
    """Return the text that identifies the holder of a rig's lock: `anna@lab7 pid 4711`."""
    return f"{account()} pid {os.getpid()}"
