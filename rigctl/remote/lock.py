"""One run at a time per node: a lock on the node, held by a shell that lives as long as its SSH channel.

The lock is a symbolic link: making one is atomic and carries who holds it. Each user's links are in a folder that only
that user can write to, in /tmp, or elsewhere where that is not possible; a run makes its own link first and then looks
for a live holder in everybody's folders in every such place, so that of two users at least one sees the other. It is
held by a small shell script at the other end of an SSH channel. When the controller lets go, ends, or is killed, the
script sees the end of its input and removes the link; when the network is cut, it misses the sign of life it gets every
few seconds and does the same. Where the script itself was killed (power cut, out of memory), its process is gone: a
user's next run takes the lock over, and other users' runs pass over it, as they do over links that no rigctl made. Who
waits for a lock (`remote.queue`) has a ticket there, a link of the same form: a run that has not waited leaves the lock
to them.

A node is told from others on the same file system (virtual rigs) by its network namespace.
"""

import asyncio
import contextlib
import logging
import re
import shlex
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from rigctl.base.errors import BusyError, NodeError, RigError
from rigctl.base.texts import printable
from rigctl.remote.host import Host, Process
from rigctl.remote.lock_scripts import LOCK
from rigctl.rig.inventory import Node

LOCK_DEADLINE_S: Final = 10.0
SIGN_OF_LIFE_S: Final = 5.0
SILENCE_S: Final = 20
"""A holder that hears nothing for so long lets go: after the agent's watchdog, so that no traffic outlives the lock."""
_NUMBER: Final = re.compile(r"[0-9]{1,11}")
_SHOWN: Final = 300
_SCRIPT: Final = LOCK
_log = logging.getLogger(__name__)


@asynccontextmanager
async def locked(hosts: Mapping[str, Host], holder: str, *, queue: bool = True) -> AsyncIterator[None]:
    """Hold the locks of all `hosts` in the name of `holder`; all or none. Waits for nobody, so nobody waits for ever.

    With `queue` it leaves a node to those who wait for it; without, it passes them over: its turn has come.
    Raises `BusyError` where a node is in use, by whom and since when; `RigError` listing all where several are.
    """
    async with contextlib.AsyncExitStack() as stack:
        outcomes = await asyncio.gather(*(_take(hosts[name], holder, stack, queue) for name in sorted(hosts)))
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


async def _take(host: Host, holder: str, stack: contextlib.AsyncExitStack, queue: bool) -> Process | NodeError:
    """Take one lock; `stack` lets it go."""
    deadline_s = LOCK_DEADLINE_S * host.node.patience
    try:
        async with asyncio.timeout(deadline_s):
            process = await stack.enter_async_context(
                host.process(command_of(_SCRIPT, host.node, holder, "queue" if queue else ""))
            )
            line = await _line(process)
            while line.startswith("note "):
                _log.warning("%s: %s", host.node.name, printable(line.removeprefix("note "))[:_SHOWN])
                line = await _line(process)
            if line == "held":
                return process
            if (use := in_use(line)) is not None:
                own = not use.waits and use.by.startswith(f"{_shown_holder(holder)}, since ")
                return BusyError(host.node.name, use.why(), own=own)
            return NodeError(host.node.name, failure(line) or f"could not be locked: {await process.last_words()}")
    except NodeError as error:
        return error
    except TimeoutError:
        return NodeError(host.node.name, f"could not be locked within {deadline_s:g} s")
    except OSError as error:
        return NodeError(host.node.name, f"could not be locked: {error}")


async def _line(process: Process) -> str:
    return (await process.readline()).decode("utf-8", "replace").strip()


def command_of(script: str, node: Node, holder: str, *further: str) -> str:
    """A command line that runs a script of `lock_scripts` on `node`, in the name of `holder`."""
    # dash, Debian's sh, cannot limit how long a read takes; bash and busybox can.
    since = f"{int(time.time())} {_shown_holder(holder)}"
    said = (script, "rigctl-lock", _distinction(node), since, str(SILENCE_S), *further)
    words = " ".join(shlex.quote(word) for word in said)
    # The script only once: dropbear ends a connection on which a command of more than 9000 bytes is requested.
    return f"s=sh; if command -v bash >/dev/null 2>&1; then s=bash; fi; exec $s -c {words}"


def _shown_holder(holder: str) -> str:
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in holder)[:200]


def _distinction(node: Node) -> str:
    """Nothing for a host of its own; what names the node where several share one host's loopback."""
    address = node.data_address or node.address
    try:
        loopback = ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    return "-" + "".join(c if c.isalnum() else "-" for c in f"{address}-{node.name}") if loopback else ""


@dataclass(frozen=True, slots=True)
class Use:
    """Who has a node, or is the next to have it."""

    waits: bool  # it is not in use: others wait for it
    by: str  # with since when
    pid: str  # of its lock or ticket on the node
    folder: str  # of the lock or ticket: any user can make one, and whose the folder is shows who did

    def why(self) -> str:
        if self.waits:
            return f"the next turn is that of {self.by} ({self.place()}). Wait for yours with --wait 30m"
        return f"in use by {self.by}. Wait for it to end (--wait 30m), or end it ({self.place()})"

    def place(self) -> str:
        return f"on the node: process {self.pid}, its link in {self.folder}"


def in_use(line: str) -> Use | None:
    """What a script's line means. None: it is no such line.

    Any user of the node can make a link: nothing in it is taken for granted.
    """
    kind, _, rest = printable(line[:_SHOWN]).partition(" ")
    pid, _, rest = rest.partition(" ")
    folder, _, told = rest.partition(" ")
    if kind not in {"busy", "queued"} or not _NUMBER.fullmatch(pid):
        return None
    since, _, who = told.partition(" ")
    if _NUMBER.fullmatch(since) and who:
        shape = "%H:%M:%S" if time.time() - int(since) < 86400 else "%Y-%m-%d %H:%M"
        by = f"{who}, since {time.strftime(shape, time.localtime(int(since)))}"
    else:
        by = "an unknown run"
    return Use(kind == "queued", by, pid, folder)


def failure(line: str) -> str | None:
    """Why a script could make no link, as it says. None: it does not."""
    kind, _, rest = printable(line[:_SHOWN]).partition(" ")
    return f"could not be locked: {rest}" if kind == "failed" else None


async def _keep(processes: list[Process]) -> None:
    """A sign of life to every holder, until cancelled. One that is gone shows in its agent, which is gone too."""
    while True:
        await asyncio.sleep(SIGN_OF_LIFE_S)
        for process in processes:
            with contextlib.suppress(OSError):
                process.write(b"\n")
