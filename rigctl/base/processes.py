"""Processes: run commands, identify processes, their resource limits, and the account of the user."""

import contextlib
import ctypes
import errno
import getpass
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError

_PR_SET_PDEATHSIG: Final = 1  # constant of linux/prctl.h
_DESCRIPTORS: Final = 16384
"""Soft limit of open files: enough for 1000 nodes, not too many for programs that close every possible file."""


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


def run_command(
    command: list[str], *, text: str = "", environment: Mapping[str, str] | None = None, deadline_s: float = 30.0
) -> str:
    """Run a command with input `text` and return its output. Raise `RigError` with its last output if it fails."""
    name = " ".join(command[:3])
    try:
        done = subprocess.run(
            command,
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline_s,
            check=False,
        )
    except FileNotFoundError:
        raise RigError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise RigError(f"{name}: had not ended after {deadline_s:g} s") from None
    if done.returncode != 0:
        complaint = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise RigError(f"{name}: {complaint or f'exit code {done.returncode}'}")
    return done.stdout


def die_with(parent: int, number: int) -> None:
    """Make Linux send signal `number` to this child when its parent thread ends. Called by the child before exec."""
    if sys.platform == "linux":
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
