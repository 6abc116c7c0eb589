"""One run at a time per node: a lock on the node, held by a shell that lives as long as its SSH channel.

The lock is a symbolic link: making one is atomic and carries who holds it. Each user's links are in a folder that only
that user can write to; a run makes its own link first and then looks for a live holder in everybody's folders, so that
of two users at least one sees the other. It is held by a small shell script at the other end of an SSH channel. When
the controller lets go, ends, or is killed, the script sees the end of its input and removes the link; when the network
is cut, it misses the sign of life it gets every few seconds and does the same. Where the script itself was killed
(power cut, out of memory), its process is gone: a user's next run takes the lock over, and other users' runs pass over
it, as they do over links that no rigctl made.

A node is told from others on the same file system (virtual rigs) by its network namespace.
"""

import asyncio
import contextlib
import re
import shlex
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final

from rigctl.errors import NodeError, RigError
from rigctl.remote.host import Host, Process
from rigctl.rig.inventory import Node
from rigctl.texts import printable

LOCK_DEADLINE_S: Final = 10.0
SIGN_OF_LIFE_S: Final = 5.0
SILENCE_S: Final = 20
"""A holder that hears nothing for so long lets go: after the agent's watchdog, so that no traffic outlives the lock."""
_NUMBER: Final = re.compile(r"[0-9]{1,11}")
_SHOWN: Final = 300

# $1: what tells nodes apart that share a network namespace; $2: who holds it; $3: seconds of silence.
# The link's target: PID:START:BOOT:HOLDER. START is field 22 of /proc/PID/stat, so that a reused PID is no holder.
# Another user may have made a folder of our name: then the next name is tried. `taking` is between one user's runs.
_SCRIPT: Final = r"""
LC_ALL=C; export LC_ALL; trap '' HUP
started() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1; set -- ${s##*) }; printf '%s\n' "${20}"; }
alive() {
  p=${1%%:*}; r=${1#*:}; st=${r%%:*}; r=${r#*:}
  case $p in '' | *[!0-9]* | ??????????*) return 1 ;; esac
  [ "$p" -gt 0 ] && [ "${r%%:*}" = "$boot" ] || return 1
  if now=$(started "$p"); then [ "$now" = "$st" ]; return; fi
  kill -0 "$p" 2>/dev/null && return 0
  case $(kill -0 "$p" 2>&1) in *ermitted*) return 0 ;; esac
  return 1
}
tell() { t=$1; r=${t#*:*:*:}; printf 'busy %s %s\n' "${t%%:*}" "$r"; exit 1; }
net=$(readlink /proc/self/ns/net 2>/dev/null | tr -dc '0-9')
boot=$(cut -c1-8 /proc/sys/kernel/random/boot_id 2>/dev/null)
uid=$(id -u)
for base in /tmp /var/tmp /dev/shm none; do
  for own in "$base/rigctl-locks-$uid" "$base/rigctl-locks-$uid-2" "$base/rigctl-locks-$uid-3"; do
    mkdir -m 755 "$own" 2>/dev/null
    [ -d "$own" ] && [ ! -L "$own" ] && [ -O "$own" ] && chmod 755 "$own" 2>/dev/null && [ -w "$own" ] && break 2
  done
done
[ "$base" != none ] || { echo 'failed no folder for a lock: /tmp, /var/tmp and /dev/shm are read-only'; exit 1; }
name=${net:-0}$1; held=$own/$name; taking=$held.taking
me=$$:$(started $$):$boot:$2
if ! ln -sn "$me" "$held" 2>/dev/null; then
  # Of those who find a dead holder, one at a time looks again and takes over.
  if ! ln -sn "$me" "$taking" 2>/dev/null; then
    other=$(readlink "$taking") && alive "$other" && tell "$other"
    rm -f "$taking"; ln -sn "$me" "$taking" 2>/dev/null || tell "$(readlink "$taking")"
  fi
  if holder=$(readlink "$held") && alive "$holder"; then rm -f "$taking"; tell "$holder"; fi
  rm -f "$held"; why=$(ln -sn "$me" "$held" 2>&1); took=$?; rm -f "$taking"
  if [ $took != 0 ]; then
    holder=$(readlink "$held") && tell "$holder"
    printf 'failed %s\n' "$why"; exit 1
  fi
fi
for other in "$base"/rigctl-locks*/"$name"; do
  if [ "$other" != "$held" ] && holder=$(readlink "$other") && alive "$holder"; then rm -f "$held"; tell "$holder"; fi
done
echo held
if (echo | read -r -t 1 _) 2>/dev/null; then
  while read -r -t "$3" _; do :; done
else
  while read -r _; do :; done
fi
[ "$(readlink "$held")" = "$me" ] && rm -f "$held"
exit 0
"""


@asynccontextmanager
async def locked(hosts: Mapping[str, Host], holder: str) -> AsyncIterator[None]:
    """Hold the locks of all `hosts` in the name of `holder`; all or none. Waits for nobody, so nobody waits for ever.

    Raises `NodeError` where a node is in use, by whom and since when; `RigError` listing all where several are.
    """
    async with contextlib.AsyncExitStack() as stack:
        outcomes = await asyncio.gather(*(_take(hosts[name], holder, stack) for name in sorted(hosts)))
        failures = [outcome for outcome in outcomes if isinstance(outcome, NodeError)]
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise RigError("\n".join(str(failure) for failure in failures))
        keeper = asyncio.create_task(_keep([outcome for outcome in outcomes if isinstance(outcome, Process)]))
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)


async def _take(host: Host, holder: str, stack: contextlib.AsyncExitStack) -> Process | NodeError:
    """Take one lock; `stack` lets it go."""
    try:
        async with asyncio.timeout(LOCK_DEADLINE_S):
            process = await stack.enter_async_context(host.process(_command(host.node, holder)))
            line = (await process.readline()).decode("utf-8", "replace").strip()
            if line == "held":
                return process
            return NodeError(host.node.name, _why(line) or f"could not be locked: {await process.last_words()}")
    except NodeError as error:
        return error
    except TimeoutError:
        return NodeError(host.node.name, f"could not be locked within {LOCK_DEADLINE_S:g} s")
    except OSError as error:
        return NodeError(host.node.name, f"could not be locked: {error}")


def _command(node: Node, holder: str) -> str:
    # dash, Debian's sh, cannot limit how long a read takes; bash and busybox can.
    who = "".join(c if c.isprintable() and c.isascii() else "?" for c in holder)[:200]
    said = (_SCRIPT, "rigctl-lock", _distinction(node), f"{int(time.time())} {who}", str(SILENCE_S))
    words = " ".join(shlex.quote(word) for word in said)
    return f"if command -v bash >/dev/null 2>&1; then exec bash -c {words}; else exec sh -c {words}; fi"


def _distinction(node: Node) -> str:
    """Nothing for a host of its own; what names the node where several share one host's loopback."""
    address = node.data_address or node.address
    try:
        loopback = ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    return "-" + "".join(c if c.isalnum() else "-" for c in f"{address}-{node.name}") if loopback else ""


def _why(line: str) -> str | None:
    """What a holder's first line means, for people. None: it is no such line.

    Any user of the node can make a link: nothing in it is taken for granted.
    """
    kind, _, rest = printable(line[:_SHOWN]).partition(" ")
    if kind == "failed":
        return f"could not be locked: {rest}"
    pid, _, told = rest.partition(" ")
    if kind != "busy" or not _NUMBER.fullmatch(pid):
        return None
    since, _, who = told.partition(" ")
    if _NUMBER.fullmatch(since) and who:
        shape = "%H:%M:%S" if time.time() - int(since) < 86400 else "%Y-%m-%d %H:%M"
        by = f"{who}, since {time.strftime(shape, time.localtime(int(since)))}"
    else:
        by = "an unknown run"
    return f"in use by {by}. Wait for it to end, or end it (its lock on the node: process {pid})"


async def _keep(processes: list[Process]) -> None:
    """A sign of life to every holder, until cancelled. One that is gone shows in its agent, which is gone too."""
    while True:
        await asyncio.sleep(SIGN_OF_LIFE_S)
        for process in processes:
            with contextlib.suppress(OSError):
                process.write(b"\n")
