"""One run at a time has a node; others are refused, or wait in the order of their arrival.

The agent takes the lock before it does anything else, and has it as long as it lives (agents/lock.c). The lock and the
places in its queue are names of abstract sockets, one set per network namespace: the kernel frees them with the agent's
process, all users see them in /proc/net/unix, and no file is left.
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
"""Characters of a holder's name: with its label it must fit into the 107 bytes of an address (unix(7))."""
_UNKNOWN: Final = "an unknown program"
_LABELS: Final = (
    "sed -n 's/.* @rigctl-lock-{name}-\\([0-9]* [0-9]* .*\\)/\\1/p' /proc/net/unix | while read -r place pid rest; do "
    'case $(cat /proc/$pid/comm) in *agent-*) echo "$place $pid $rest" ;; esac; done 2>/dev/null'
)
"""Prints the labels of agents. Their programs are agent-SHA256, or rigctl-agent-MACHINE on a virtual rig."""
_LABEL: Final = re.compile(r"([0-9]{1,2}) ([0-9]{1,10}) ([0-9]{1,11}) (.+)")


@dataclass(frozen=True, slots=True)
class Claim:
    """How a run asks for a node."""

    holder: str
    had_it: bool = False  # this run lost the node, and goes before the waiting runs
    wait_s: float = 0.0  # in all, for all nodes; 0: a node that another run has is refused
    until_s: float = 0.0  # the end of that, on the monotonic clock
    say: Callable[[str], None] = print

    def words(self, node: Node) -> str:
        """Return the agent's options, for a shell."""
        how = "first" if self.had_it else "wait" if self.wait_s else "now"
        label = f"{int(time.time())} {_ascii(self.holder)}"
        return f"--lock {lock_name(node)} {shlex.quote(label)} {how}"


@dataclass(frozen=True, slots=True)
class Use:
    """A run that has a node or waits for it, as the names of its agent's sockets in /proc/net/unix say."""

    place: int  # in the queue; 0: it has the node
    pid: str  # of its agent
    since_s: int
    holder: str

    def __str__(self) -> str:
        shape = "%H:%M:%S" if time.time() - self.since_s < 86400 else "%Y-%m-%d %H:%M"
        return f"{self.holder}, since {time.strftime(shape, time.localtime(self.since_s))}"


class Queue:
    """The queue for `host`, as `claim` meets it."""

    def __init__(self, host: Host, claim: Claim) -> None:
        self._host, self._claim = host, claim

    @property
    def left_s(self) -> float:
        """Return how long to wait at most from now on."""
        return max(0.0, self._claim.until_s - time.monotonic())

    async def moved(self, place: int) -> None:
        """Tell the user who has the node and how many wait before us."""
        use = await self._first()
        others = "nobody" if place < 2 else f"{place - 1} run{'s' if place > 2 else ''}"
        waiting = f"waiting at most {format_duration(self._claim.wait_s)}"
        name = self._host.node.name
        self._claim.say(f"{name} is in use by {use or _UNKNOWN}; {others} ahead in the queue; {waiting}")

    async def refusal(self, place: int) -> NodeError:
        """Return why the node cannot be had: who has it, since when, and what to do."""
        use = await self._first()
        by = str(use or _UNKNOWN)
        find = f"ss -xap | grep rigctl-lock-{lock_name(self._host.node)}"
        end = f"end it (on the node: process {use.pid})" if use else f"end it (on the node, as root: {find})"
        # An ending agent may lose its label before its place. Then it counts as the agent that this run lost.
        own = self._claim.had_it if use is None else use.place == 0 and use.holder == _ascii(self._claim.holder)
        if self._claim.wait_s:
            queue = f", {place - 1} ahead in the queue" if place > 1 else ""
            waited = f"waited for {format_duration(self._claim.wait_s)}"
            what = f"in use by {by}{queue}; {waited}. Wait longer (--wait), or {end}"
        elif use is not None and use.place > 0:
            what = f"the next turn is that of {by} (on the node: process {use.pid}). Wait for yours with --wait 30m"
        else:
            what = f"in use by {by}. Wait for it to end (--wait 30m), or {end}"
        return BusyError(self._host.node.name, what, own=own)

    async def _first(self) -> Use | None:
        """Return the run that has the node, or is the next to have it; None if no label of an agent tells that.

        Anybody may take such a name: a label counts only if the process that it names is an agent. Our own does not.
        """
        name = lock_name(self._host.node)
        labels = await self._host.output(_LABELS.format(name=name))
        matches = [match for line in labels.splitlines() if (match := _LABEL.fullmatch(printable(line)))]
        uses = [Use(int(match[1]), match[2], int(match[3]), match[4]) for match in matches]
        mine = _ascii(self._claim.holder)
        others = (use for use in uses if use.place == 0 or use.holder != mine)
        return min(others, key=lambda use: use.place, default=None)


def lock_name(node: Node) -> str:
    """Return the name of the lock of `node`: of its own where several nodes are one host, reached by its loopback."""
    address = node.data_address or node.address
    try:
        loopback = ip_address(address).is_loopback
    except ValueError:
        loopback = address == "localhost"
    return hashlib.sha256(f"{address} {node.name}".encode()).hexdigest()[:12] if loopback else "node"


def _ascii(holder: str) -> str:
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in holder)[:_MOST_HOLDER]
