"""A process that cannot be mistaken for a later one with its number (proc(5))."""

import contextlib
import ctypes
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
DESCRIPTORS: Final = 16384
"""More than 1000 nodes take; not so many that a program that closes each by its number would need long."""


@dataclass(frozen=True, slots=True)
class Process:
    """`started` is field 22 of /proc/PID/stat."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return process(self.pid) == self


def process(pid: int) -> Process | None:
    """The process `pid` as it is now; None where there is none, or only its exit status is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The second field is the name, in brackets, and may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else Process(pid, int(fields[19]))


def die_with(parent: int, number: int) -> None:
    """In a child before it becomes a command: the kernel sends signal `number` when the thread that started it ends.

    Linux only; elsewhere nothing happens.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it ended before
            os.kill(os.getpid(), number)


def allow_descriptors() -> None:
    """Raise the soft limit of open files, often 1024: a node takes one, a virtual one ten."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
