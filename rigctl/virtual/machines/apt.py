"""Debian packages of any machine type, downloaded by apt with a configuration of its own: no root, no change here.

The mirrors are those of the machine's own apt (sources.list(5)); nothing is installed, maintainer scripts do not run.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError

DEADLINE_S: Final = 900.0
_SOURCES: Final = Path("/etc/apt")
_STANZA_END: Final = re.compile(r"\n\s*\n")


def debian_sources(texts: Iterable[tuple[str, str]], codename: str) -> Iterator[str]:
    """Lines and stanzas of apt sources that are Debian's of this release; `texts`: file name and content each.

    Others (a vendor's repository) may lack the machine type and are left out. Gives deb822 stanzas (sources.list(5)).
    """
    for name, text in texts:
        if name.endswith(".sources"):
            stanzas = (_fields(stanza) for stanza in _STANZA_END.split(text))
        else:
            stanzas = (_of_line(line) for line in text.splitlines())
        for stanza in stanzas:
            suites = [suite for suite in stanza.get("Suites", "").split() if suite.split("-")[0] == codename]
            is_binary = "deb" in stanza.get("Types", "").split() and stanza.get("Enabled", "yes") != "no"
            if is_binary and suites and "main" in stanza.get("Components", "").split():
                kept = {"Types": "deb", "URIs": stanza["URIs"], "Suites": " ".join(suites), "Components": "main"}
                kept |= {"Signed-By": stanza["Signed-By"]} if "Signed-By" in stanza else {}
                yield "".join(f"{key}: {value}\n" for key, value in kept.items())


def _fields(stanza: str) -> dict[str, str]:
    lines = [line for line in stanza.splitlines() if line.strip() and not line.startswith("#")]
    found: dict[str, str] = {}
    key = ""
    for line in lines:
        if line[0].isspace():
            found[key] = f"{found.get(key, '')}\n{line}"
        else:
            key, _, value = line.partition(":")
            found[key] = value.strip()
    return found


def _of_line(line: str) -> dict[str, str]:
    """`deb [signed-by=/a/key] URI SUITE COMPONENT…` as fields; empty where it is something else."""
    match = re.fullmatch(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line.partition("#")[0].rstrip())
    if match is None:
        return {}
    options = dict(word.split("=", 1) for word in (match[1] or "").split() if "=" in word)
    fields = {"Types": "deb", "URIs": match[2], "Suites": match[3], "Components": match[4]}
    return fields | ({"Signed-By": options["signed-by"]} if "signed-by" in options else {})


def configuration(folder: Path, debian: str) -> str:
    """An apt.conf(5) that keeps everything in `folder` and knows one machine type, Debian's name of it."""
    return f"""\
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/debian.sources";
Dir::Etc::sourceparts "/dev/null";
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
    """The files of `packages` and of all that they depend on, in `folder`. Raises `RigError` with what apt said."""
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "debian.sources").write_text("\n".join(_own_sources()))
    (folder / "apt.conf").write_text(configuration(folder, debian))
    environment = os.environ | {"APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
    run(["apt-get", "-qq", "update"], environment)
    run(["apt-get", "-qq", "-y", "--download-only", "install", *packages], environment)
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _own_sources() -> list[str]:
    release = _fields(Path("/etc/os-release").read_text().replace("=", ": ").replace('"', ""))
    files = [_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))]
    texts = [(path.name, path.read_text()) for path in files if path.suffix in (".list", ".sources") and path.is_file()]
    found = list(debian_sources(texts, release.get("VERSION_CODENAME", "")))
    if release.get("ID") != "debian" or not found:
        raise RigError(
            f"{_SOURCES}: no sources of Debian {release.get('VERSION_CODENAME', '')} here, from which the machines of a"
            " rig with virtual: machines are made. Use a Debian machine, or virtual: namespaces."
        )
    return found


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command printed. Raises `RigError` with its last lines where it fails."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise RigError(f"{command[0]} is not installed; machines of a virtual rig are made with it") from None
    except subprocess.TimeoutExpired:
        raise RigError(f"{' '.join(command[:3])}: had not ended after {DEADLINE_S:g} s") from None
    if done.returncode != 0:
        said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise RigError(f"{' '.join(command[:3])}: {said or f'exit code {done.returncode}'}")
    return done.stdout
