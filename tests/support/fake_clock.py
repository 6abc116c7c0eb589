"""Agents with a clock that the test moves, so that tests need not wait for timed actions (fake_clock.c)."""

import ctypes
import mmap
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from talk import AGENTS, Talk

SOURCE: Final = AGENTS.parent / "tests" / "agent" / "fake_clock.c"


def preloaded(source: Path, folder: Path) -> Path:
    """Compile a library for LD_PRELOAD, and return its path."""
    library = folder / f"{source.stem}.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def with_library(library: Path, **variables: object) -> tuple[str, ...]:
    """Return words that start a sanitized agent with this library. The shipped agent is static and cannot load it."""
    words = {"LD_PRELOAD": library, "ASAN_OPTIONS": "verify_asan_link_order=0"} | variables
    return ("env", *(f"{name}={value}" for name, value in words.items()))


class FakeClock:
    """A clock that stands still until the test moves it, for agents started by `start`, or in a lab with `by`."""

    def __init__(self, binary: Path, library: Path, folder: Path, stack: ExitStack) -> None:
        file = folder / "clock"
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._now = ctypes.c_int64.from_buffer(mmap.mmap(opened.fileno(), 8))
        self._now.value = time.monotonic_ns()
        self.by = with_library(library, FAKE_CLOCK=file)
        self.by_jumps = (*self.by, "FAKE_CLOCK_JUMPS=1")
        """Like `by`, for an agent whose sleeps return at once and move the clock."""
        self._binary, self._stack = binary, stack

    def start(self, *arguments: str) -> Talk:
        return self._stack.enter_context(Talk([*self.by, str(self._binary)], *arguments))

    @property
    def now_ns(self) -> int:
        return self._now.value

    def advance(self, seconds: float) -> None:
        self._now.value += round(seconds * 1e9)
