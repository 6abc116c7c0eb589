"""Run a command of rigctl with a deadline, after which its process group is ended: by SIGTERM, then by SIGKILL."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rigctl.base.processes import die_with

END_S: Final = 15.0
"""A run restores its nodes' settings within 3 s of SIGTERM."""
_MOST_ERRORS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended. `exit_code` None: it was ended at its deadline."""

    exit_code: int | None
    output: str
    errors: str


def supervised(words: Sequence[str], deadline_s: float, folder: Path) -> Ended:
    """Run `rigctl WORDS` and end it after `deadline_s`, or when this process ends, even by SIGKILL.

    Its output goes to files in `folder`: nobody reads a pipe while it runs.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    out, errors = folder / "output", folder / "errors"
    with out.open("wb") as out_file, errors.open("wb") as error_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "rigctl", *words],
            stdin=subprocess.DEVNULL, stdout=out_file, stderr=error_file, start_new_session=True,
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),  # noqa: PLW1509 — no other thread here
        )  # fmt: skip
        exit_code: int | None = None
        try:
            exit_code = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end(process)
    return Ended(exit_code, out.read_text("utf-8", "replace"), errors.read_text("utf-8", "replace")[-_MOST_ERRORS:])


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process group of `process`, with children that it left behind. A stopped process is continued first."""
    if process.poll() is None:
        for number in (signal.SIGTERM, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
