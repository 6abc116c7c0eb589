"""Processes: commands and their output, a process's identity, its limits, and the account that it runs under."""

import contextlib
import ctypes
import errno
import gc
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

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_DESCRIPTORS: Final = 16384
"""Enough for 1000 nodes; few enough for programs that close every descriptor by its number."""


@dataclass(frozen=True, slots=True)
class Process:
    """Identifies a process: `started` is field 22 of /proc/PID/stat (proc(5)), which a later process has not."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return process(self.pid) == self


def process(pid: int) -> Process | None:
    """Return the process `pid` as it is now, or None if there is none, or only its exit status is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the name, in brackets, and may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else Process(pid, int(fields[19]))


def is_hidden(pid: int) -> bool:
    """Tell whether /proc hides a process of another user (hidepid, proc(5))."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def run(
    command: list[str], *, text: str = "", environment: Mapping[str, str] | None = None, deadline_s: float = 30.0
) -> str:
    """Run a command with `text` on its input; return its output. Raise `RigError` with its last lines if it fails."""
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
    """Let the kernel send this child signal `number` when the thread that started it ends.

    To be called in the child, before it becomes a command. Linux only; elsewhere nothing happens.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it ended before
            os.kill(os.getpid(), number)


def allow_descriptors() -> None:
    """Raise the soft limit of open files, often 1024: a node needs one, a virtual node ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def collect_rarely() -> None:
    """Let Python look for cycles of objects less often: a run's records have none, and a third of `show` was that."""
    gc.set_threshold(100_000, 50, 100)


def limit_met(error: BaseException) -> str | None:
    """Return which limit of this process an error met and how to raise it; None if it met no limit."""
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"too many open files: this process may have {most}. Allow more: ulimit -n {max(1024, 2 * most)}"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        limits = f"{_ulimit('-v', resource.RLIMIT_AS, 1024)} and {_ulimit('-u', resource.RLIMIT_NPROC)}"
        return f"no thread can be started: {limits}. Raise these limits, or that of the container's processes"
    if isinstance(error, MemoryError):
        return f"out of memory: {_ulimit('-v', resource.RLIMIT_AS, 1024)}. Raise that limit, or add memory"
    return None


def _ulimit(option: str, which: int, unit: int = 1) -> str:
    most = resource.getrlimit(which)[0]
    return f"ulimit {option} is {'unlimited' if most == resource.RLIM_INFINITY else most // unit}"


def account() -> str:
    """Return who uses rigctl, as `anna@lab7`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def holder() -> str:
    """Return who holds a rig, for those who find it locked, as `anna@lab7 pid 4711`."""
    return f"{account()} pid {os.getpid()}"
