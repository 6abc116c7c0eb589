"""Processes and file systems for tests, which end with their block, and waits for events, with a deadline."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

DEADLINE_S = 300.0
"""Deadline of every wait. 60 s were too short with 15 other programs on two processors."""
_LOOK_S = 0.02
T = TypeVar("T")


@contextmanager
def running(
    command: Sequence[str | Path], ends_within_s: float | None = None, **options: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a process and yield it; kill it when the block ends.

    With `ends_within_s`, raise `subprocess.TimeoutExpired` if the process has not ended that long after the block.
    """
    process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)
    try:
        yield process
        if ends_within_s is not None:
            process.wait(ends_within_s)
    finally:
        end(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


def end(process: "subprocess.Popen[Any]", politely_for_s: float = 0) -> None:
    """End a process: by SIGTERM if `politely_for_s` is not 0, and by SIGKILL after that time."""
    if politely_for_s and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(politely_for_s)
    if process.poll() is None:
        process.kill()
    process.wait(DEADLINE_S)


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to those of these processes that are left."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def paused(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """Stop all threads of a child process by SIGSTOP, and continue it when the block ends."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def eventually(holds: Callable[[], T], what: str = "") -> T:
    """Wait until `holds` returns a true value, and return that value. Fail after `DEADLINE_S`, with the text `what`."""
    until_s = time.monotonic() + DEADLINE_S
    while not (held := holds()):
        assert time.monotonic() < until_s, f"not within {DEADLINE_S:g} s: {what or holds}"
        time.sleep(_LOOK_S)
    return held


async def eventually_async(holds: Callable[[], Any], what: str = "") -> Any:
    """Wait as `eventually` does, in an event loop. `holds` may be a coroutine function."""
    until_s = time.monotonic() + DEADLINE_S
    while True:
        held = holds()
        if held := await held if isinstance(held, Coroutine) else held:
            return held
        assert time.monotonic() < until_s, f"not within {DEADLINE_S:g} s: {what or holds}"
        await asyncio.sleep(_LOOK_S)


async def turns(count: int = 1) -> None:
    """Let the other tasks of the event loop run `count` times."""
    for _ in range(count):
        await asyncio.sleep(0)


def output_of(command: Sequence[str | Path], timeout: float = DEADLINE_S, **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return str(done.stdout)


def command_line(pid: int) -> str:
    """Return the command line of a process; "" if there is no such process, or it is a kernel thread."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def all_commands() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (words := command_line(int(entry.name))):
            yield int(entry.name), words


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.add(pid)
    return found


def program(path: Path, script: str) -> Path:
    """Write an executable shell script, with its folder, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    """Create the folder `path` and mount a tmpfs on it with these options during the block."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "rigctl-test", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
