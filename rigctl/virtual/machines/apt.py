"""Debian packages of any machine type, downloaded by apt with a configuration of its own: no root, no change here.

The mirrors are those of this machine's apt (sources.list(5)). Nothing is installed, maintainer scripts do not run.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError

DEADLINE_S: Final = 900.0


def configuration(folder: Path, debian: str) -> str:
    """Return an apt.conf(5) that keeps everything in `folder` and knows one machine type, by Debian's name of it."""
    return f"""\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "{debian}";
APT::Architectures {{ "{debian}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
"""


def downloaded(folder: Path, debian: str, packages: Iterable[str]) -> list[Path]:
    """Download `packages` and all that they depend on into `folder`. Raise `RigError` with what apt says."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(configuration(folder, debian))
    environment = os.environ | {"APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
    run(["apt-get", "-qq", "update"], environment)
    run(["apt-get", "-qq", "-y", "--download-only", "install", *packages], environment)
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output. Raise `RigError` with its last lines if it fails."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise RigError(f"{command[0]} is not installed; machines of a virtual rig are made with it") from None
    except subprocess.TimeoutExpired:
        raise RigError(f"{' '.join(command[:3])}: had not ended after {DEADLINE_S:g} s") from None
    if done.returncode != 0:
        text = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise RigError(f"{' '.join(command[:3])}: {text or f'exit code {done.returncode}'}")
    return done.stdout
