"""Processes and file systems of tests: each ends with its block, and no wait for one is without a deadline."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DEADLINE_S = 10.0


@contextmanager
def running(
    command: Sequence[str | Path], ends_within_s: float | None = None, **options: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is killed when the block ends.

    With `ends_within_s` it must end by itself until then: `subprocess.TimeoutExpired`, which names it, if it does not.
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
    """End it: by SIGTERM, if it may take its time, and by SIGKILL when that has passed."""
    if politely_for_s and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(politely_for_s)
    if process.poll() is None:
        process.kill()
    process.wait(DEADLINE_S)


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    """A tmpfs with these options on `path`, which is made."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "rigctl-test", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
