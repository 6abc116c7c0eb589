"""One node while a run or a check has it: connection and agent, with the task that owns them.

The task enters the context managers and leaves them: whatever ends a run or a check, everything that was opened is
closed by the task that opened it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from rigctl.base.errors import BusyError, NodeError, RigctlError
from rigctl.base.logs import about
from rigctl.base.processes import limit_met
from rigctl.remote.agent import Agent
from rigctl.remote.deploy import WATCHDOG_S, agent_on
from rigctl.remote.host import Host, connect_node
from rigctl.remote.lock import Claim
from rigctl.rig.inventory import Rig

_log = logging.getLogger(__name__)
_OPEN_DEADLINE_S: Final = 20.0
"""To connect; then from the start of one command to the next, as pushing the agent over a slow link."""
_CLOSE_DEADLINE_S: Final = 2.0
AT_ONCE: Final = 32
"""Nodes that are being opened at a time. Each takes the controller about 15 ms of a processor: of 1000 begun together
none would be ready within its deadline."""
_OWN_LOCK_S: Final = WATCHDOG_S + 5.0
"""An agent of our own that a lost connection left on the node ends within `WATCHDOG_S`, and its lock with it."""
_TRY_AGAIN_S: Final = 0.5
_MISSING: Final = {"ssh": "not connected", "agent": "its agent did not start", "lock": "in use by another run"}


class Session:
    """One node while it is reachable: an owner task holds connection and agent until told to let go."""

    def __init__(
        self,
        rig: Rig,
        name: str,
        claim: Claim,
        *,
        arrived: Callable[[Host], Awaitable[None]] | None = None,
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        """Begin to open the node.

        `claim`: how its lock is asked for. `arrived` is called once the node is connected, before its agent is there.
        `turns`: opening, and its deadline, begin when the semaphore admits them.
        """
        self._node, self._name, self._claim = rig.nodes[name], name, claim
        self._deadline_s = _OPEN_DEADLINE_S * self._node.patience
        self._arrived, self._turns = arrived, turns or asyncio.Semaphore()
        self.stage = "ssh"  # how far opening came; then "agent", or "lock" if another run has the node
        self._opened: asyncio.Future[tuple[Host, Agent]] = asyncio.get_running_loop().create_future()
        self._let_go = asyncio.Event()
        self._owner = asyncio.create_task(self._own(), name=f"session {name}")
        self._owner.add_done_callback(lambda _: self._failed(asyncio.CancelledError()))

    async def opened(self) -> tuple[Host, Agent]:
        """Return the connection and the agent. Raise `NodeError` if the node cannot be had."""
        return await asyncio.shield(self._opened)

    @property
    def usable(self) -> bool:
        """Return True while the node is being opened, or is open with a living agent."""
        if not self._opened.done():
            return True
        return self._opened.exception() is None and not self._opened.result()[1].ended

    def let_go(self) -> None:
        """Begin to let go of the node; opening it ends."""
        self._let_go.set()
        if not self._opened.done():
            self._owner.cancel()

    async def close(self) -> None:
        """Let go of the node; never fail, and take twice `CLOSE_DEADLINE_S` at most."""
        self.let_go()
        _, late = await asyncio.wait({self._owner}, timeout=_CLOSE_DEADLINE_S)
        for task in late:
            task.cancel()
            await asyncio.wait({task}, timeout=_CLOSE_DEADLINE_S)

    async def _own(self) -> None:
        try:
            with about(node=self._name):
                async with AsyncExitStack() as turn:
                    await turn.enter_async_context(self._turns)
                    await self._open(turn)
        except BaseException as error:  # of any kind: the waiting tasks must learn of it
            self._failed(error)
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise

    def _failed(self, error: BaseException) -> None:
        if not self._opened.done():
            _log.info("%s", failure := self._as_node_error(error))
            self._opened.set_exception(failure)
            self._opened.exception()  # looked at: nobody may be waiting any more

    async def _open(self, turn: AsyncExitStack) -> None:
        """Open the node, and hold it until told to let go. Once it is open, the `turn` is over."""
        async with (
            asyncio.timeout(self._deadline_s) as deadline,
            connect_node(self._node) as host,
            AsyncExitStack() as agents,
        ):
            # Each command waits for the user's start-up files, which may be slow.
            host.on_begin = partial(self._extend, deadline)
            if self._arrived is not None:
                await self._arrived(host)
            self.stage = "agent"
            agent = await self._start(host, agents, deadline)
            host.on_begin = None
            deadline.reschedule(None)
            await turn.aclose()
            _log.info("%s: connected, agent started, locked", self._name)
            self._opened.set_result((host, agent))
            await self._let_go.wait()
            _log.info("%s: let go", self._name)

    async def _start(self, host: Host, agents: AsyncExitStack, deadline: asyncio.Timeout) -> Agent:
        """Start the agent, which takes the lock. Wait for a lock of our own: else all tests of that time would fail."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _OWN_LOCK_S
        while True:
            self._extend(deadline)
            try:
                return await agents.enter_async_context(agent_on(host, self._claim))
            except BusyError as error:
                self.stage = "lock"
                if not error.own or loop.time() > until_s:
                    raise
                _log.info("%s: waiting for the lock that a lost connection left", self._name)
                await asyncio.sleep(_TRY_AGAIN_S)

    def _extend(self, deadline: asyncio.Timeout) -> None:
        wait_s = self._claim.wait_s if self.stage != "ssh" else 0.0
        deadline.reschedule(asyncio.get_running_loop().time() + self._deadline_s + wait_s)

    def _as_node_error(self, error: BaseException) -> NodeError:
        if isinstance(error, NodeError):
            return error
        if isinstance(error, TimeoutError):
            jump = self._node.jump
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
