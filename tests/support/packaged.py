"""Commands of the tests that install rigctl: without settings of pip, with the package index, without a network."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import processes

ROOT: Final = Path(__file__).parents[2]
CLOSED: Final = ("unshare", "--net")
"""Begins a command that has no network, not even a loopback interface that is up."""


def output_of(*words: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Return the output of a command. Fail with all that it printed if it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    return processes.output_of(words, timeout=600, cwd=cwd, env=environment or kept)


def index(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run pip of this environment, with the package index as this machine has it, and without local wheels."""
    pip = [sys.executable, "-m", "pip", *words]
    environment = os.environ | {"PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return subprocess.run(pip, env=environment, capture_output=True, text=True, timeout=600, check=False)


def tags(machine: str, glibc: Sequence[int], python: str = "3.11") -> list[str]:
    """Return pip's options for wheels of a machine type and a CPython, up to the newest glibc."""
    names = [f"manylinux_2_{number}_{machine}" for number in glibc]
    names += [f"manylinux2014_{machine}", f"linux_{machine}"]
    built = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    return [*built, *(word for name in names for word in ("--platform", name))]
