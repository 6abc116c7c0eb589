"""The agent on a node: one static binary, chosen by `uname -sm`, named by its SHA-256, pushed over the exec channel.

One command finds out what the node is, whether the right binary is there already, and runs it then. An upload goes to
a name of its own, is verified on the node and then renamed, so that two runs that deploy at once do not disturb each
other. No SFTP, no Python, nothing but `sh` and common tools (busybox's will do) is needed.

On a node with `sudo: true` all of this happens as root, in a folder that only root can write to: the agent keeps its
journal of host settings beside itself, and carries it out.
"""

import asyncio
import functools
import hashlib
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base import resources
from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote.agent import Agent, running
from rigctl.remote.build import KERNELS
from rigctl.remote.host import Completed, Host
from rigctl.remote.rights import shell, sudo_refusal
from rigctl.rig.inventory import Node

UPLOAD_DEADLINE_S: Final = 30.0
WATCHDOG_S: Final = 15
"""An agent that hears nothing for so long ends by itself (docs/reference/agent-protocol.md)."""
_SHOWN: Final = 200
_OPTIONS: Final = f"--watchdog {WATCHDOG_S}"
_STARTED: Final = b"started\n"
_MOST_LINES: Final = 16
"""Of what the look for the agent says: where it was found, or why a folder could not be used."""

# Prints the SHA-256 of $1 with whichever tool there is; fails where there is none.
_SUM: Final = """
sum() {
  for tool in 'sha256sum' 'busybox sha256sum' 'openssl dgst -sha256 -r' 'shasum -a 256' 'sha256 -q'; do
    if s=$($tool "$1" 2>/dev/null) && [ -n "$s" ]; then printf '%s\\n' "${s%% *}"; return 0; fi
  done
  return 1
}
"""
# A folder will do when it is ours, can be written to, and runs what it holds (no "noexec"). Says why it will not. Where
# the first of them holds the agent, that it may be run says as much as trying (access(2)), and costs no process. $run:
# options to run it with at once; empty: only look.
_FIND: Final = """
usable() {
  umask 077
  mkdir -p "$1" || return 1
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || { echo 'it is not ours'; return 1; }
  chmod 700 "$1" || return 1
  t=$1/.try-$$
  printf '#!/bin/sh\\nexit 0\\n' >"$t" && chmod 700 "$t" && "$t"; r=$?
  rm -f "$t"
  return $r
}
holds() {
  f=$1/agent-$h; t=$1/.try-$$
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -f "$f" ] && [ ! -L "$f" ] && [ -x "$f" ] || return 1
  (echo try >"$t") 2>/dev/null; r=$?; rm -f "$t"; [ $r = 0 ] && chmod 700 "$1"
}
there() {
  touch "$f" 2>/dev/null
  s=$(sum "$f") || s=unknown
  printf 'there %s %s\\n' "$s" "$f"
}
d=FIRST
if holds "$d"; then
  if [ "$run" ] && [ "$(sum "$f")" = "$h" ]; then echo started; touch "$f" 2>/dev/null; exec "$f" $run; fi
  there; exit 0
fi
passed=
for d in "$d" FURTHER; do
  if why=$(usable "$d" 2>&1); then
    f=$d/agent-$h
    if [ -f "$f" ] && [ ! -L "$f" ] && [ -x "$f" ]; then
      there
    else
      printf 'absent - %s\\n' "$f"
    fi
    [ -z "$passed" ] || printf 'passed %s\\n' "$passed"
    exit 0
  fi
  [ -n "$passed" ] || passed="$d
$why"
done
echo 'nowhere - -'
"""
# A home may be on a file server: the journal beside the agent is this host's alone.
_OWN_FOLDERS: Final = """case "$n" in '' | .* | *[!A-Za-z0-9._-]*) n=host ;; esac
""" + _FIND.replace("FIRST", "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/rigctl/$n").replace(
    "FURTHER", '"${TMPDIR:-/tmp}/rigctl-$(id -u)" "/var/tmp/rigctl-$(id -u)" "/dev/shm/rigctl-$(id -u)"'
)
# Nobody but root can write to what these lie in.
_ROOTS_FOLDERS: Final = _FIND.replace("FIRST", "/var/lib/rigctl").replace("FURTHER", "/run/rigctl")
# Agents that no run has used for a week, and uploads that were cut off, go. A running one only loses its name.
_UPLOAD: Final = """
umask 077
cat >"$t" && chmod 700 "$t" || { rm -f "$t"; exit 9; }
if s=$(sum "$t"); then
  [ "$s" = "$h" ] || { rm -f "$t"; echo "it arrived as $s" >&2; exit 8; }
fi
mv -f "$t" "$f" || { rm -f "$t"; exit 9; }
find "${f%/*}" -type f \\( -name 'agent-*' -mtime +7 -o -name '.new-*' -mtime +0 \\) ! -name "${f##*/}" \\
  -exec rm -f {} + 2>/dev/null
printf 'done %s\\n' "${s:-unknown}"
"""


@dataclass(frozen=True, slots=True)
class Deployed:
    """The agent as it lies on a node, verified. `path` may hold any character: quote it."""

    path: str
    sha256: str
    machine: str
    note: str | None = None  # why it is not where it should be; then it is removed when it ends


@dataclass(frozen=True, slots=True)
class _Binary:
    machine: str
    data: bytes
    sha256: str


def _carried(folder: Path) -> dict[str, _Binary]:
    """The agents in `folder`, by machine."""
    found = []
    for machine in sorted(set(KERNELS.values())):
        path = folder / f"rigctl-agent-{machine}"
        if path.is_file():
            known = path.stat()
            found.append((machine, path, known.st_mtime_ns, known.st_size))
    return _read(tuple(found))


@functools.lru_cache(maxsize=2)
def _read(files: tuple[tuple[str, Path, int, int], ...]) -> dict[str, _Binary]:
    """Read and summed once, not for each node; again where one has changed."""
    data = {machine: path.read_bytes() for machine, path, _, _ in files}
    return {machine: _Binary(machine, read, hashlib.sha256(read).hexdigest()) for machine, read in data.items()}


async def deploy(host: Host, folder: Path | None = None) -> Deployed:
    """See to it that the node has its agent, out of `folder` (default: the bundled ones). Raises `NodeError`."""
    binaries = await asyncio.to_thread(_carried, folder or resources.agents())
    reply = await host.run(shell(_check_script(binaries, sudo=host.node.sudo), sudo=host.node.sudo))
    return await _deployed(host, binaries, reply)


async def _deployed(host: Host, binaries: dict[str, _Binary], reply: Completed) -> Deployed:
    """The agent after the look for it, which gave `reply`."""
    binary, state, held, path = _read_check(host, binaries, reply)
    deployed = Deployed(path, binary.sha256, binary.machine, _note(reply.stdout, path))
    if state == "there" and await _is_right(host, deployed, held):
        return deployed
    await _upload(host, deployed, binary.data)
    return deployed


@asynccontextmanager
async def agent_on(host: Host) -> AsyncIterator[Agent]:
    """The node's agent, deployed, started and greeted; at the end of the block it is ended."""
    binaries = await asyncio.to_thread(_carried, resources.agents())
    at_once = shell(_check_script(binaries, sudo=host.node.sudo, run=_OPTIONS), sudo=host.node.sudo)
    async with host.process(at_once) as process:
        lines = await host.first_lines(process, 2)
        if _STARTED in lines:
            async with running(host.node.name, process, host.node.patience) as agent:
                yield agent
            return
        lines += await host.first_lines(process, _MOST_LINES)
        reply = Completed(await process.wait(), b"".join(lines), process.errors)
    deployed = await _deployed(host, binaries, reply)
    async with (
        host.process(_start(host.node, deployed)) as process,
        running(host.node.name, process, host.node.patience) as agent,
    ):
        agent.note = deployed.note
        yield agent


def _start(node: Node, deployed: Deployed) -> str:
    """The command that runs the agent. A borrowed folder is left empty, even where the controller is killed."""
    path = shlex.quote(deployed.path)
    run = f"{path} {_OPTIONS}"
    if deployed.note is None:
        return shell(f"exec {run}", sudo=node.sudo)
    return shell(
        f"{run}; s=$?; rm -f {path}; rmdir {shlex.quote(deployed.path.rpartition('/')[0])} 2>&-; exit $s",
        sudo=node.sudo,
    )


def _note(said: str, path: str) -> str | None:
    """What a user should know of the agent's place: its own folder could not be used."""
    _, found, passed = said.partition("\npassed ")
    if not found:
        return None
    folder, *why = passed.strip().splitlines()
    reason = printable(why[-1].rpartition(": ")[2])[:_SHOWN] if why else "unknown"
    place = printable(path.rpartition("/")[0])
    return f"the agent was kept in {place} and removed at its end: {printable(folder)} can't be used ({reason})"


def _check_script(binaries: dict[str, _Binary], *, sudo: bool, run: str = "") -> str:
    """The look for the agent; with the options `run` it is started where it is in its own folder, as it should be."""
    cases = [
        f"'{kernel}') h={binaries[machine].sha256} ;;" for kernel, machine in KERNELS.items() if machine in binaries
    ]
    asked = 'n=$(uname -snm); m="${n%% *} ${n##* }"; n=${n#* }; n=${n% *}; printf "%s\\n" "$m"'
    choice = [f"run={shlex.quote(run)}", asked, 'case "$m" in', *cases, "*) exit 0 ;;", "esac"]
    return "\n".join([*choice, _SUM, _ROOTS_FOLDERS if sudo else _OWN_FOLDERS])


def _read_check(host: Host, binaries: dict[str, _Binary], reply: Completed) -> tuple[_Binary, str, str, str]:
    """The binary for the node, `there`/`absent`, the SHA-256 of what is there, and its path."""
    name, lines = host.node.name, reply.stdout.splitlines()
    system, _, kernel = (lines[0] if lines else "").rpartition(" ")
    if not system and host.node.sudo and (refusal := sudo_refusal(host.node, reply)) is not None:
        raise NodeError(name, refusal)
    if not system:
        raise NodeError(
            name, f"its machine type could not be read: {reply.complaint}. It needs a POSIX shell and uname"
        )
    machine = KERNELS.get(f"{system} {kernel}")
    if system not in ("Linux", "FreeBSD"):
        raise NodeError(name, f"it runs {printable(system)[:_SHOWN]}; there are agents for Linux and FreeBSD")
    if machine is None:
        known = ", ".join(sorted(each.partition(" ")[2] for each in KERNELS if each.startswith(f"{system} ")))
        raise NodeError(name, f"there is no agent for {printable(kernel)[:_SHOWN]}; there are some for {known}")
    if machine not in binaries:
        raise NodeError(name, f"the agent for {machine} is not built: rigctl agent build --target {machine}")
    words = lines[1].split(" ", 2) if len(lines) > 1 else []
    if len(words) != 3 or words[0] not in ("there", "absent", "nowhere"):
        raise NodeError(name, f"could not look for the agent: {reply.complaint}")
    if words[0] == "nowhere":
        places = "/var/lib/rigctl and /run/rigctl" if host.node.sudo else "~/.cache, $TMPDIR, /var/tmp and /dev/shm"
        advice = "" if host.node.sudo else ", or set TMPDIR for that user"
        raise NodeError(
            name,
            f"no folder to put the agent in: {places} are full, read-only, mounted noexec or another user's. "
            f"Free some space{advice}",
        )
    return binaries[machine], words[0], words[1], words[2]


async def _is_right(host: Host, deployed: Deployed, held: str) -> bool:
    """Is what lies there the agent? Where the node has no tool to tell, its bytes are fetched and looked at here."""
    if held != "unknown":
        return held == deployed.sha256
    read = shell(f"cat {shlex.quote(deployed.path)}", sudo=host.node.sudo)
    fetched = await host.run(read, deadline_s=UPLOAD_DEADLINE_S)
    return hashlib.sha256(fetched.output).hexdigest() == deployed.sha256


async def _upload(host: Host, deployed: Deployed, data: bytes) -> None:
    folder = deployed.path.rpartition("/")[0]
    names = {"f": deployed.path, "h": deployed.sha256, "t": f"{folder}/.new-{secrets.token_hex(8)}"}
    script = "\n".join([*(f"{name}={shlex.quote(value)}" for name, value in names.items()), _SUM, _UPLOAD])
    reply = await host.run(shell(script, sudo=host.node.sudo), input=data, deadline_s=UPLOAD_DEADLINE_S)
    if reply.exit_code != 0:
        raise NodeError(host.node.name, f"could not put the agent into {folder}: {reply.complaint}")
    held = reply.stdout.split()[-1]
    if not await _is_right(host, deployed, held):
        raise NodeError(host.node.name, f"the agent was not copied completely to {folder}")
