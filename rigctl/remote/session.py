"""One node while it is in our hands: connection, lock and agent, with the task that owns them.

The task enters the context managers and leaves them, so that whatever ends a run or a check, everything that was opened
is closed by the task that opened it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from rigctl.base.errors import BusyError, NodeError, RigctlError
from rigctl.base.logs import about
from rigctl.base.processes import limit_met
from rigctl.remote.agent import Agent
from rigctl.remote.deploy import agent_on
from rigctl.remote.host import Host
from rigctl.remote.lock import SILENCE_S, locked
from rigctl.remote.reach import connected
from rigctl.rig.inventory import Rig

_log = logging.getLogger(__name__)
OPEN_DEADLINE_S: Final = 20.0
"""Connecting, locking, pushing the agent over a slow link, starting it."""
CLOSE_DEADLINE_S: Final = 2.0
AT_ONCE: Final = 32
"""Nodes that are being opened at a time. Each takes the controller about 15 ms of a processor: of 1000 begun together
none would be ready within its deadline."""
OWN_LOCK_S: Final = SILENCE_S + 5.0
"""A lock of our own that a lost connection left on the node goes after `SILENCE_S`; the agent behind it went before."""
_TRY_AGAIN_S: Final = 0.5
_MISSING: Final = {"ssh": "not connected", "lock": "connected, but not locked", "agent": "its agent did not start"}


class Session:
    """One node while it is reachable: an owner task holds connection, lock and agent until told to let go."""

    def __init__(
        self,
        rig: Rig,
        name: str,
        holder: str,
        arrived: Callable[[Host], Awaitable[None]] | None = None,
        held: Callable[[Host], None] | None = None,
        *,
        queue: bool = True,
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        """`arrived` is called once the node is connected, before it is locked; `held` once it is locked, before its
        agent is there; `queue`: leave it to those who wait; `turns`: the node is opened, and its deadline begins, when
        there is one."""
        self._rig, self._name, self._holder, self._queue = rig, name, holder, queue
        self._deadline_s = OPEN_DEADLINE_S * rig.nodes[name].patience
        self._arrived, self._held, self._turns = arrived, held, turns or asyncio.Semaphore()
        self.stage = "ssh"  # then "lock" and "agent": how far it came
        self._opened: asyncio.Future[tuple[Host, Agent]] = asyncio.get_running_loop().create_future()
        self._let_go = asyncio.Event()
        self._owner = asyncio.create_task(self._own(), name=f"session {name}")

    async def opened(self) -> tuple[Host, Agent]:
        """The connection and the agent. Raises `NodeError` where they could not be had."""
        return await asyncio.shield(self._opened)

    @property
    def usable(self) -> bool:
        """Still opening, or open with a living agent."""
        if not self._opened.done():
            return True
        return self._opened.exception() is None and not self._opened.result()[1].ended

    @property
    def note(self) -> str | None:
        """What a user should know of how the agent was put on the node."""
        opened = self._opened.done() and self._opened.exception() is None
        return self._opened.result()[1].note if opened else None

    def let_go(self) -> None:
        """Begin to let go of the node; one that is not locked yet never will be."""
        self._let_go.set()

    async def close(self) -> None:
        """Let go of the node; never fails, and takes twice `CLOSE_DEADLINE_S` at most."""
        self.let_go()
        _, late = await asyncio.wait({self._owner}, timeout=CLOSE_DEADLINE_S)
        for task in late:
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_DEADLINE_S)

    async def _own(self) -> None:
        with about(node=self._name):
            await self._hold()

    async def _hold(self) -> None:
        try:
            async with AsyncExitStack() as turn:
                await turn.enter_async_context(self._turns)
                if self._let_go.is_set():
                    raise asyncio.CancelledError
                await self._open(turn)
        except BaseException as error:  # whatever it is, who waits must be told
            if not self._opened.done():
                _log.info("%s", failure := self._as_node_error(error))
                self._opened.set_exception(failure)
                self._opened.exception()  # looked at: nobody may be waiting any more
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise

    async def _open(self, turn: AsyncExitStack) -> None:
        """Open the node, hold it until it is to be let go. Once it is open, the `turn` is over."""
        async with (
            asyncio.timeout(self._deadline_s) as deadline,
            connected(self._rig, [self._name]) as hosts,
            AsyncExitStack() as lock,
        ):
            if self._arrived is not None:
                await self._arrived(hosts[self._name])
                if self._let_go.is_set():
                    raise asyncio.CancelledError
            self.stage = "lock"
            await self._take(hosts, lock, deadline)
            if self._held is not None:
                self._held(hosts[self._name])
            self.stage = "agent"
            async with agent_on(hosts[self._name]) as agent:
                deadline.reschedule(None)
                await turn.aclose()
                _log.info("%s: connected, locked, agent started", self._name)
                self._opened.set_result((hosts[self._name], agent))
                await self._let_go.wait()
                _log.info("%s: let go", self._name)

    async def _take(self, hosts: Mapping[str, Host], lock: AsyncExitStack, deadline: asyncio.Timeout) -> None:
        """Lock the node. A lock of our own is waited for: else all tests of that time would fail."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + OWN_LOCK_S
        while True:
            try:
                await lock.enter_async_context(locked(hosts, self._holder, queue=self._queue))
            except BusyError as error:
                if not error.own or loop.time() > until_s:
                    raise
                _log.info("%s: waiting for the lock that a lost connection left", self._name)
                await asyncio.sleep(_TRY_AGAIN_S)
                deadline.reschedule(loop.time() + self._deadline_s)
            else:
                return

    def _as_node_error(self, error: BaseException) -> NodeError:
        if isinstance(error, NodeError):
            return error
        if isinstance(error, TimeoutError):
            jump = self._rig.nodes[self._name].jump
            what = _MISSING[self.stage] + (f" through its jump host {jump}" if jump and self.stage == "ssh" else "")
            return NodeError(self._name, f"{what} within {self._deadline_s:g} s. Is it up, and reachable?")
        if (limit := limit_met(error)) is not None:
            return NodeError(self._name, limit)
        if isinstance(error, RigctlError | OSError):
            return NodeError(self._name, str(error) or type(error).__name__)
        if isinstance(error, asyncio.CancelledError):
            return NodeError(self._name, "cancelled before it was ready")
        failure = NodeError(self._name, f"rigctl failed on it: {type(error).__name__}: {error}. Please report this")
        failure.__cause__ = error  # for --debug
        return failure
