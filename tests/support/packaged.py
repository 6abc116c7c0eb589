"""Runs commands for tests that install rigctl: without pip's settings, with the package index, or without network."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import processes

ROOT: Final = Path(__file__).parents[2]
CLOSED: Final = ("unshare", "--net")
"""Words before a command that must run without network; even the loopback interface is down."""


def output_of(*words: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Return the output of a command without settings of pip and Python. Fail with its output if the command fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return processes.output_of(words, timeout=600, cwd=cwd, env=environment or kept)


def index(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run this environment's pip with the machine's package index, without local wheels. Return the ended process."""
    pip = [sys.executable, "-m", "pip", *words]
    environment = os.environ | {"PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(pip, env=environment, capture_output=True, text=True, timeout=600, check=False)


def tags(machine: str, glibc: Sequence[int], python: str = "3.11") -> list[str]:
    """Return pip's options for wheels of this machine type, CPython version and glibc versions."""
    names = [f"manylinux_2_{number}_{machine}" for number in glibc]
    names += [f"manylinux2014_{machine}", f"linux_{machine}"]
    built = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    return [*built, *(word for name in names for word in ("--platform", name))]
