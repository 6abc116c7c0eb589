"""Copies the agent to a node: one binary, chosen by `uname -sm`, named by its SHA-256, sent over the exec channel.

One command finds the node's system and whether the right binary is installed. An upload gets a random name, is verified
on the node and then renamed, so that two runs can deploy at once. A node needs neither SFTP nor Python, only `sh` and
common tools, for which busybox suffices. `remote.windows.install` copies the agent to Windows nodes.

On a node with `sudo: true`, all commands run as root, in a folder that only root can write to. Otherwise another user
could forge the journal in this folder, from which the agent restores host settings.
"""

import hashlib
import secrets
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.processes import run_in_thread
from rigctl.base.texts import printable
from rigctl.remote.agent import Agent, running
from rigctl.remote.build import KERNELS, Binary, find_agents, reason_no_agent
from rigctl.remote.host import SUDO_S, CommandOutput, Host, LateError, shell, sudo_late, sudo_refusal
from rigctl.remote.lock import LockRequest, Queue
from rigctl.remote.windows.install import HELD_S, explain_end, install_by_sftp, quote_word
from rigctl.rig.inventory import Node

_CHECK_DEADLINE_S: Final = 10.0
_UPLOAD_DEADLINE_S: Final = 30.0
WATCHDOG_S: Final = 15
"""An agent that receives no line for this time ends (docs/reference/agent-protocol.md)."""
_MOST_QUOTED: Final = 200
# Print the SHA-256 of $1 with the first tool that the node has; fail if the node has none.
_SUM: Final = """
sum() {
  for tool in 'sha256sum' 'busybox sha256sum' 'openssl dgst -sha256 -r' 'shasum -a 256' 'sha256 -q'; do
    if s=$($tool "$1" 2>/dev/null) && [ -n "$s" ]; then printf '%s\\n' "${s%% *}"; return 0; fi
  done
  return 1
}
"""
# Hosts may share a home on a file server, but each needs its own journal of host settings in its own subfolder.
_USERS_FOLDERS: Final = """
case "$n" in '' | .* | *[!A-Za-z0-9._-]*) n=host ;; esac
set -- "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/rigctl/$n" "${TMPDIR:-/tmp}/rigctl-$(id -u)" \\
  "/var/tmp/rigctl-$(id -u)" "/dev/shm/rigctl-$(id -u)"
"""
# Only root can write to /var/lib and /run, the parents of these folders.
_ROOTS_FOLDERS: Final = "set -- /var/lib/rigctl /run/rigctl"
# Print the first folder that the user owns, can write to and can execute files in (not mounted noexec), and, if that is
# not the first candidate, why the first one was skipped. In a shared folder without the sticky bit, other users could
# replace the user's folder after this check, and so the agent.
_FIND: Final = """
usable() {
  umask 077
  case $1 in
  */rigctl-[0-9]*)
    shared=$(find "${1%/*}/." -prune \\( -perm -0020 -o -perm -0002 \\) ! -perm -1000 2>/dev/null)
    [ -z "$shared" ] || { echo 'other users may replace it'; return 1; }
    ;;
  esac
  mkdir -p "$1" || return 1
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || { echo 'it is not ours'; return 1; }
  chmod 700 "$1" || return 1
  t=$1/.try-$$
  printf '#!/bin/sh\\nexit 0\\n' >"$t" && chmod 700 "$t" && "$t"; r=$?
  rm -f "$t" 2>/dev/null
  return $r
}
passed=
for d; do
  if why=$(usable "$d" 2>&1); then
    f=$d/agent-$h
    if [ -f "$f" ] && [ ! -L "$f" ] && [ -x "$f" ]; then
      touch "$f" 2>/dev/null
      s=$(sum "$f") || s=unknown
      printf 'there %s %s\\n' "$s" "$f"
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
# Remove agents unused for a week, and incomplete uploads. Removing the file of a running agent does not disturb it.
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
class Deployment:
    """A verified agent on a node. `path` may contain any character, so it must be quoted for a shell."""

    path: str
    sha256: str
    note: str | None = None  # why the agent is not in its usual folder; if set, the agent is removed when it ends


async def deploy(host: Host, folder: Path | None = None) -> Deployment:
    """Return the agent on the node; upload it from `folder` (default: the bundled agents) if missing or wrong."""
    binaries = {binary.machine: binary for binary in await run_in_thread(find_agents, folder)}
    reply = await _run(host, _check_script(binaries, sudo=host.node.sudo), _CHECK_DEADLINE_S)
    binary, state, held, path = _read_check(host, binaries, reply)
    deployed = Deployment(path, binary.sha256, _note(reply.stdout, path))
    if state != "there" or not await _is_intact(host, deployed, held):
        await _upload(host, deployed, binary.path.read_bytes())
    return deployed


@asynccontextmanager
async def agent_on(host: Host, claim: LockRequest | None = None) -> AsyncIterator[Agent]:
    """Yield the node's agent, which ends with the block. With `claim`, take the node's lock, or raise `BusyError`."""
    queue = None if claim is None else Queue(host, claim)
    if host.is_windows:
        async with _windows_agent_on(host, claim, queue) as agent:
            yield agent
        return
    deployed = await deploy(host)
    async with (
        host.process(_start_command(host.node, deployed, claim)) as process,
        running(host.node.name, process, host.node.patience, queue, SUDO_S if host.node.sudo else 0.0) as agent,
    ):
        agent.note = deployed.note
        yield agent


@asynccontextmanager
async def _windows_agent_on(host: Host, claim: LockRequest | None, queue: Queue | None) -> AsyncIterator[Agent]:
    own = await install_by_sftp(host, {binary.machine: binary for binary in await run_in_thread(find_agents)})
    words = claim.words(host.node, quote=quote_word) if claim else ""
    async with host.process(f"{own.command} --watchdog {WATCHDOG_S} {words}") as process:
        process.explain = partial(explain_end, host, own)
        async with running(host.node.name, process, host.node.patience, queue, HELD_S) as agent:
            agent.path = own.path
            yield agent


async def _run(host: Host, script: str, deadline_s: float, data: bytes = b"") -> CommandOutput:
    """Run `script`, as root if the node has `sudo: true`; sudo may take `SUDO_S` longer."""
    sudo = host.node.sudo
    deadline_s += SUDO_S if sudo else 0.0
    try:
        return await host.run(shell(script, sudo=sudo), input=data, deadline_s=deadline_s)
    except LateError as late:
        if not sudo:
            raise
        raise NodeError(host.node.name, sudo_late(deadline_s * host.node.patience, late.said)) from None


def _start_command(node: Node, deployed: Deployment, claim: LockRequest | None) -> str:
    """Return the command that runs the agent. Outside the usual folder, the command then removes the agent."""
    path = shlex.quote(deployed.path)
    run = f"{path} --watchdog {WATCHDOG_S} {claim.words(node) if claim else ''}"
    folder = shlex.quote(deployed.path.rpartition("/")[0])
    script = f"{run}; s=$?; rm -f {path}; rmdir {folder} 2>&-; exit $s" if deployed.note else f"exec {run}"
    return shell(script, sudo=node.sudo)


def _note(reply: str, path: str) -> str | None:
    """Return a note for the user if the agent's usual folder could not be used, else None."""
    _, passed, rest = reply.partition("\npassed ")
    if not passed:
        return None
    folder, *why = rest.strip().splitlines()
    reason = printable(why[-1].rpartition(": ")[2])[:_MOST_QUOTED] if why else "unknown"
    place = printable(path.rpartition("/")[0])
    return f"the agent ran from {place} and was then removed, because {printable(folder)} can't be used ({reason})"


def _check_script(binaries: dict[str, Binary], *, sudo: bool) -> str:
    known = {kernel: binaries[machine].sha256 for kernel, machine in KERNELS.items() if machine in binaries}
    cases = [f"'{kernel}') h={sha256} ;;" for kernel, sha256 in known.items()]
    asked = 'n=$(uname -snm); m="${n%% *} ${n##* }"; n=${n#* }; n=${n% *}; printf "%s\\n" "$m"'
    folders = _ROOTS_FOLDERS if sudo else _USERS_FOLDERS
    return "\n".join([asked, 'case "$m" in', *cases, "*) exit 0 ;;", "esac", _SUM, folders, _FIND])


def _read_check(host: Host, binaries: dict[str, Binary], reply: CommandOutput) -> tuple[Binary, str, str, str]:
    """Parse a reply. Return the node's binary, `there` or `absent`, and SHA-256 and path of the agent's file there."""
    name, lines = host.node.name, reply.stdout.splitlines()
    system, _, kernel = (lines[0] if lines else "").rpartition(" ")
    if not system and host.node.sudo and (refusal := sudo_refusal(host.node, reply)) is not None:
        raise NodeError(name, refusal)
    if not system or (reply.exit_code and system not in ("Linux", "FreeBSD")):
        answer = printable(reply.stdout.strip())[:_MOST_QUOTED]
        answer = f"{answer} ({reply.complaint})" if answer else reply.complaint
        help_ = "The user needs a login shell that runs commands, such as /bin/sh, and the command uname"
        raise NodeError(name, f"the shell did not tell the type of the machine: {answer}. {help_}")
    if (reason := reason_no_agent(system, kernel)) is not None:
        raise NodeError(name, reason)
    machine = KERNELS[f"{system} {kernel}"]
    if machine not in binaries:
        raise NodeError(name, f"the agent for {machine} is not built: rigctl agent build --target {machine}")
    words = lines[1].split(" ", 2) if len(lines) > 1 else []
    if len(words) != 3 or words[0] not in ("there", "absent", "nowhere"):
        raise NodeError(name, f"could not check whether the agent is installed: {reply.complaint}")
    if words[0] == "nowhere":
        places = "/var/lib/rigctl and /run/rigctl" if host.node.sudo else "~/.cache, $TMPDIR, /var/tmp and /dev/shm"
        advice = "" if host.node.sudo else ", or set TMPDIR for that user"
        what = f"{places} are full, read-only, mounted noexec or another user's. Free some space{advice}"
        raise NodeError(name, f"no folder to put the agent in: {what}")
    return binaries[machine], words[0], words[1], words[2]


async def _is_intact(host: Host, deployed: Deployment, held: str) -> bool:
    """Tell whether the node's file is the right agent; fetch and hash it here if the node has no SHA-256 tool."""
    if held != "unknown":
        return held == deployed.sha256
    fetched = await _run(host, f"cat {shlex.quote(deployed.path)}", _UPLOAD_DEADLINE_S)
    return hashlib.sha256(fetched.output).hexdigest() == deployed.sha256


async def _upload(host: Host, deployed: Deployment, data: bytes) -> None:
    folder = deployed.path.rpartition("/")[0]
    names = {"f": deployed.path, "h": deployed.sha256, "t": f"{folder}/.new-{secrets.token_hex(8)}"}
    script = "\n".join([*(f"{name}={shlex.quote(value)}" for name, value in names.items()), _SUM, _UPLOAD])
    reply = await _run(host, script, _UPLOAD_DEADLINE_S, data)
    if reply.exit_code != 0:
        raise NodeError(host.node.name, f"could not put the agent into {folder}: {reply.complaint}")
    if not await _is_intact(host, deployed, reply.stdout.split()[-1]):
        raise NodeError(host.node.name, f"the agent was not copied completely to {folder}")
