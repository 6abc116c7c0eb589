"""Keeps one node open for a run or a check: a task opens the node's connection and agent, and closes both.

The same task enters and leaves all context managers, so everything is closed, whatever ends the run or check.
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
from rigctl.remote.host import SUDO_S, Host, connect_node
from rigctl.remote.lock import LockRequest
from rigctl.remote.windows.install import HELD_S
from rigctl.rig.inventory import Rig

_log = logging.getLogger(__name__)
_OPEN_DEADLINE_S: Final = 20.0
"""Deadline to connect, and then for each command, such as the upload of the agent."""
_CLOSE_DEADLINE_S: Final = 2.0
AT_ONCE: Final = 32
"""Number of nodes that are opened at the same time. Each takes about 15 ms of processor time on the controller, so that
of 1000 nodes opened at once none would be ready within its deadline."""
_OWN_LOCK_S: Final = WATCHDOG_S + 5.0
"""Longest wait for a lock that this run's lost agent still holds; a lost agent ends within `WATCHDOG_S`."""
_MISSING: Final = {"ssh": "not connected", "agent": "its agent did not start", "lock": "its lock was not free"}


class Session:
    """A node that is being opened or is open. A task keeps connection and agent until `let_go` or `close`."""

    def __init__(
        self,
        rig: Rig,
        name: str,
        claim: LockRequest,
        *,
        arrived: Callable[[Host], Awaitable[None]] | None = None,
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        """Start a task that opens the node and requests its lock by `claim`.

        The task calls `arrived` once the node is connected, before the agent starts. Opening and its deadline begin
        when the semaphore `turns` admits the node.
        """
        self._node, self._name, self._claim = rig.nodes[name], name, claim
        self._deadline_s = (_OPEN_DEADLINE_S + (SUDO_S if self._node.sudo else 0.0)) * self._node.patience
        self._arrived, self._turns = arrived, turns or asyncio.Semaphore()
        self.stage = "ssh"  # what opening waits for: "ssh", then "agent", or "lock" if another run holds the node
        self._opened: asyncio.Future[tuple[Host, Agent]] = asyncio.get_running_loop().create_future()
        self._let_go = asyncio.Event()
        self._owner = asyncio.create_task(self._own(), name=f"session {name}")
        self._owner.add_done_callback(lambda _: self._fail(asyncio.CancelledError()))

    async def open(self) -> tuple[Host, Agent]:
        """Return the connection and the agent once the node is open. Raise `NodeError` if opening failed."""
        return await asyncio.shield(self._opened)

    @property
    def usable(self) -> bool:
        """Return True while the node is being opened, or is open with a living agent."""
        if not self._opened.done():
            return True
        return self._opened.exception() is None and not self._opened.result()[1].ended

    def let_go(self) -> None:
        """Begin to release the node, and return at once. A node that is still being opened is given up."""
        self._let_go.set()
        if not self._opened.done():
            self._owner.cancel()

    async def close(self) -> None:
        """Release the node and wait until it is closed, for twice `_CLOSE_DEADLINE_S` at most. Never raise."""
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
        except BaseException as error:  # every error must reach the tasks that wait in `open`
            self._fail(error)
            if not isinstance(error, Exception | asyncio.CancelledError):
                raise

    def _fail(self, error: BaseException) -> None:
        if not self._opened.done():
            _log.info("%s", failure := self._as_node_error(error))
            self._opened.set_exception(failure)
            self._opened.exception()  # else asyncio logs an error if nobody awaits the future

    async def _open(self, turn: AsyncExitStack) -> None:
        """Open the node and keep it open until `let_go`. Once it is open, close `turn` to admit the next node."""
        async with (
            asyncio.timeout(self._deadline_s) as deadline,
            connect_node(self._node) as host,
            AsyncExitStack() as agents,
        ):
            if host.is_windows:
                self._deadline_s += HELD_S * self._node.patience
            # Slow start-up files of the user may delay each command, so each command extends the deadline.
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
        """Start the agent, which takes the lock. Wait if an agent that this run lost still holds the lock."""
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
                _log.info("%s: waiting for the lock that the lost agent of this run holds", self._name)
                await asyncio.sleep(0.5)

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
        failure = NodeError(self._name, f"an error in rigctl: {type(error).__name__}: {error}. Please report this")
        failure.__cause__ = error  # shown by --debug
        return failure
