"""Waiting for nodes that are in use: first come, first served, also among controllers that know nothing of each other.

Who waits has a ticket on each node: a link beside the lock, numbered in the order of arrival, held by a shell that
lives as long as its SSH channel (`lock_scripts.TICKET`). So a waiter that is killed or cut off is out of the queue, and
no clock but the order on the node decides. Tickets are taken node by node, in an order that all controllers know (that
of the hosts' own names of themselves), the next one when the turn at the last has come: of two runs that want the same
nodes none waits for the other for ever.

A turn is no lock: it is had where nobody else is ahead and no lock is held. Then `remote.lock` is asked, which passes
over those who wait.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rigctl.base.errors import BusyError, NodeError
from rigctl.base.units import format_duration
from rigctl.remote.host import Host, Process
from rigctl.remote.lock import LOCK_DEADLINE_S, SIGN_OF_LIFE_S, Use, command_of, failure, in_use
from rigctl.remote.lock_scripts import TICKET

POLL_S: Final = 1.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Place:
    """A place in the queue of one node."""

    node: str
    host: str  # what the node calls itself: the same for every controller
    process: Process
    asked: int = 0

    async def standing(self) -> tuple[Use, int] | None:
        """Who is before us, and how many of those wait; None: it is our turn. `NodeError` where the place is lost."""
        self.asked += 1
        number = str(self.asked)
        try:
            async with asyncio.timeout(LOCK_DEADLINE_S):
                self.process.write(f"{number}\n".encode())
                while line := (await self.process.readline()).decode("utf-8", "replace").strip():
                    answered, _, rest = line.partition(" ")
                    if why := failure(line):
                        raise NodeError(self.node, why)
                    if answered == number:  # else: of a question whose asker did not wait for the answer
                        return _standing(rest)
        except (OSError, TimeoutError) as error:
            raise NodeError(self.node, f"lost while it was waited for: {error}") from error
        raise NodeError(self.node, f"lost while it was waited for: {await self.process.last_words()}")


def _standing(answer: str) -> tuple[Use, int] | None:
    kind, _, rest = answer.partition(" ")
    ahead, _, told = rest.partition(" ")
    if kind == "turn":
        return None
    return in_use(f"{kind} {told}") or Use(False, "an unknown run", "?", "?"), int(ahead) if ahead.isdigit() else 0


class Turn:
    """Our places in the queues of nodes. Made by `queued`."""

    def __init__(self, places: list[_Place], wait_s: float, say: Callable[[str], None]) -> None:
        self._places = sorted(places, key=lambda place: (place.host, place.node))
        self._taken = 0  # of these places, those whose ticket has been taken: the first ones
        self._wait_s, self._say, self._said = wait_s, say, ""
        self._until_s = time.monotonic() + wait_s

    async def come(self) -> None:
        """Wait until nobody is ahead at any node. Raises `BusyError` once it has been waited for long enough."""
        while True:
            waiting = await self._look()
            if waiting is None and self._taken == len(self._places):
                return
            if waiting is None:
                self._taken += 1
                continue
            node, use, ahead = waiting
            if time.monotonic() >= self._until_s:
                raise BusyError(node, self._too_long(use, ahead))
            self._tell(node, use, ahead)
            await asyncio.sleep(min(POLL_S, max(0.01, self._until_s - time.monotonic())))

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """The places live on while something else is done."""
        keeper = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(SIGN_OF_LIFE_S)
            await self._look()

    async def _look(self) -> tuple[str, Use, int] | None:
        """The first node with somebody ahead. A node that is lost is waited for no longer: opening it tells why."""
        places = self._places[: self._taken]
        for idle in self._places[self._taken :]:
            with contextlib.suppress(OSError):
                idle.process.write(b"\n")  # a sign of life
        outcomes = await asyncio.gather(*(place.standing() for place in places), return_exceptions=True)
        first: tuple[str, Use, int] | None = None
        for place, outcome in zip(places, outcomes, strict=True):
            if isinstance(outcome, NodeError):
                _log.warning("%s", outcome)
                self._places.remove(place)
                self._taken -= 1
            elif isinstance(outcome, BaseException):
                raise outcome
            elif outcome is not None and first is None:
                first = (place.node, *outcome)
        return first

    def _tell(self, node: str, use: Use, ahead: int) -> None:
        others = "nobody" if not ahead else f"{ahead} run{'s' if ahead > 1 else ''}"
        state = f"free; next is {use.by}" if use.waits else f"in use by {use.by}"
        line = f"{node} is {state}; {others} ahead in the queue; waiting at most {format_duration(self._wait_s)}"
        if line != self._said:
            self._said = line
            self._say(line)

    def _too_long(self, use: Use, ahead: int) -> str:
        queue = f", {ahead} ahead in the queue" if ahead else ""
        state = f"the next turn is that of {use.by}" if use.waits else f"in use by {use.by}"
        waited = f"waited for {format_duration(self._wait_s)}"
        return f"{state}{queue}; {waited}. Wait longer (--wait), or end it ({use.place()})"


@asynccontextmanager
async def queued(
    hosts: Mapping[str, Host], holder: str, wait_s: float, say: Callable[[str], None]
) -> AsyncIterator[Turn]:
    """A place in the queue of each of `hosts` in the name of `holder`, left at the end.

    `say` gets a line whenever it changes who is ahead.
    """
    async with contextlib.AsyncExitStack() as stack:
        found = await asyncio.gather(*(_arrived(host, holder, stack) for host in hosts.values()))
        yield Turn([place for place in found if place is not None], wait_s, say)


async def _arrived(host: Host, holder: str, stack: contextlib.AsyncExitStack) -> _Place | None:
    try:
        async with asyncio.timeout(LOCK_DEADLINE_S):
            process = await stack.enter_async_context(host.process(command_of(TICKET, host.node, holder)))
            kind, _, name = (await process.readline()).decode("utf-8", "replace").strip().partition(" ")
    except (NodeError, OSError) as error:  # a TimeoutError is an OSError
        _log.warning("%s: no place in its queue: %s", host.node.name, error)
        return None
    return _Place(host.node.name, name, process) if kind == "at" else None
