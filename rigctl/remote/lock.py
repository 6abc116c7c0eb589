"""The lock of a node: one run at a time holds it; other runs are refused, or wait in the order of their arrival.

The agent takes the lock before anything else, and holds it until it ends (agents/lock.c). The lock and the places in
its queue are names of abstract Unix sockets in the node's network namespace. The kernel frees the names when the agent
ends, and any user can read them in /proc/net/unix.
"""

import hashlib
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from rigctl.base.errors import BusyError, NodeError
from rigctl.base.texts import printable
from rigctl.base.units import format_duration
from rigctl.remote.host import Host
from rigctl.rig.inventory import Node

_MOST_HOLDER: Final = 50
"""Limit of a run's name, in characters: the socket name that contains it has at most 107 bytes (unix(7))."""
_UNKNOWN: Final = "an unknown program"
_LABELS: Final = (
    "sed -n 's/.* @rigctl-lock-{name}-\\([0-9]* [0-9]* .*\\)/\\1/p' /proc/net/unix | while read -r place pid rest; do "
    'case $(cat /proc/$pid/comm) in *agent-*) echo "$place $pid $rest" ;; esac; done 2>/dev/null'
)
"""Prints labels (names of agents' sockets): place in the queue, process id, start time and name of the run."""
_LABEL: Final = re.compile(r"([0-9]{1,2}) ([0-9]{1,10}) ([0-9]{1,11}) (.+)")


@dataclass(frozen=True, slots=True)
class LockRequest:
    """A run's request for the locks of its nodes."""

    holder: str
    had_it: bool = False  # True: the run lost the lock with its connection, and skips the queue
    wait_s: float = 0.0  # longest wait for all nodes together; 0: do not wait for another run
    until_s: float = 0.0  # end of this wait, on the monotonic clock
    say: Callable[[str], None] = print

    def words(self, node: Node, *, quote: Callable[[str], str] = shlex.quote) -> str:
        """Return the agent's options for taking the lock, quoted for a shell by `quote`."""
        how = "first" if self.had_it else "wait" if self.wait_s else "now"
        label = f"{int(time.time())} {_ascii(self.holder)}"
        return f"--lock {lock_name(node)} {quote(label)} {how}"


@dataclass(frozen=True, slots=True)
class Use:
    """A run that holds or waits for a node's lock, read from the name of its agent's socket (the label)."""

    place: int  # place in the queue; 0: the run holds the lock
    pid: str  # process id of the run's agent
    since_s: int
    holder: str

    def __str__(self) -> str:
        shape = "%H:%M:%S" if time.time() - self.since_s < 86400 else "%Y-%m-%d %H:%M"
        return f"{self.holder}, since {time.strftime(shape, time.localtime(self.since_s))}"


class Queue:
    """The queue for the lock of `host`, in which the run that made the request `claim` waits."""

    def __init__(self, host: Host, claim: LockRequest) -> None:
        self._host, self._claim = host, claim

    @property
    def left_s(self) -> float:
        """Return how many seconds the run may still wait; 0 if the wait is over."""
        return max(0.0, self._claim.until_s - time.monotonic())

    async def on_move(self, place: int) -> None:
        """Tell the user which run holds the node, and how many runs are ahead in the queue."""
        use = await self._first()
        others = "nobody" if place < 2 else f"{place - 1} run{'s' if place > 2 else ''}"
        waiting = f"{others} ahead in the queue; waiting at most {format_duration(self._claim.wait_s)}"
        self._claim.say(f"{self._host.node.name} is in use by {use or _UNKNOWN}; {waiting}")

    async def refusal(self, place: int) -> NodeError:
        """Return an error that tells which run holds the node, since when, and what to do."""
        use = await self._first()
        by, find = str(use or _UNKNOWN), await self._command() if use is None else ""
        end = f"end it (on the node: process {use.pid})" if use else f"end it (on the node, as root: {find})"
        # An exiting agent may free its label before the lock. So if this run had the lock, an unknown one is its own.
        own = self._claim.had_it if use is None else use.place == 0 and use.holder == _ascii(self._claim.holder)
        if self._claim.wait_s:
            queue = f", {place - 1} ahead in the queue" if place > 1 else ""
            waited = f"waited for {format_duration(self._claim.wait_s)}"
            what = f"in use by {by}{queue}; {waited}. Wait longer (--wait), or {end}"
        elif use is not None and use.place > 0:
            what = f"another run waits for it: {by} (on the node: process {use.pid}). Join the queue: --wait 30m"
        else:
            what = f"in use by {by}. Wait for it to end (--wait 30m), or {end}"
        return BusyError(self._host.node.name, what, own=own)

    async def _command(self) -> str:
        """Return the command that shows the process with the node's lock, on the node's operating system."""
        name = f"rigctl-lock-{lock_name(self._host.node)}"
        if self._host.is_windows:
            return 'tasklist /fi "imagename eq agent-*"'
        is_freebsd = (await self._host.output("uname -s")).strip() == "FreeBSD"
        return f"fstat /tmp/{name}-0" if is_freebsd else f"ss -xap | grep {name}"

    async def _first(self) -> Use | None:
        """Return the other run that holds the node's lock, or is first in the queue; None if there is none."""
        # Any user can create a socket with a label, so only the sockets of agents count.
        labels = await self._host.output(_LABELS.format(name=lock_name(self._host.node)))
        matches = [match for line in labels.splitlines() if (match := _LABEL.fullmatch(printable(line)))]
        uses = [Use(int(match[1]), match[2], int(match[3]), match[4]) for match in matches]
        mine = _ascii(self._claim.holder)
        others = (use for use in uses if use.place == 0 or use.holder != mine)
        return min(others, key=lambda use: use.place, default=None)


def lock_name(node: Node) -> str:
    """Return the name of a node's lock: `node`, but a hash for a loopback address, because such nodes share a host."""
    address = node.data_address or node.address
    try:
        loopback = ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    return hashlib.sha256(f"{address} {node.name}".encode()).hexdigest()[:12] if loopback else "node"


def _ascii(holder: str) -> str:
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in holder)[:_MOST_HOLDER]
