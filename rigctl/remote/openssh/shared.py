"""Connections that several users share: one to a jump host, and several to a server that runs one command on each."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from rigctl.base.errors import NodeError
from rigctl.rig.inventory import Node

_NO_SESSION: Final = (
    "the SSH server ran no command, not even on a new connection. "
    "Is MaxSessions in its sshd_config 0, or its number of logins limited?"
)


class _Ending(Protocol):
    async def wait_end(self) -> None: ...


_L = TypeVar("_L")
_C = TypeVar("_C", bound=_Ending)


class Logins(Generic[_L]):
    """The logins at a server. Commands run on channels of the first one, or on some servers one per login.

    A server with `MaxSessions 1` opens no second channel. dropbear closes a channel without a command when another
    command of the connection ends (svr-chansession.c, sesscheckclose: `pid == 0`; seen with 2022.83, same code in
    2026.94). On such servers, a login serves the next command only after the previous command has ended.
    """

    def __init__(self, node: str, first: _L, connect: Callable[[], Awaitable[_L]], *, one_command: bool) -> None:
        self.first = first
        self._node, self._connect, self._one_command = node, connect, one_command
        self._idle = [first]
        self._connecting = asyncio.Lock()  # one login at a time: dropbear allows five at once per address
        self._returns: set[asyncio.Task[None]] = set()

    async def start(self, begin: Callable[[_L], Awaitable[_C | None]]) -> _C:
        """Return the channel that `begin` opens on a login; None from `begin` means that a login takes no more."""
        login = await self._login()
        channel = await begin(login)
        if channel is None:
            self._one_command = True
            self._idle.clear()
            async with self._connecting:
                login = await self._connect()
            channel = await begin(login)
        if channel is None:
            raise NodeError(self._node, _NO_SESSION)
        if self._one_command:
            waiting = asyncio.create_task(self._return(login, channel))
            self._returns.add(waiting)
            waiting.add_done_callback(self._returns.discard)
        return channel

    async def _login(self) -> _L:
        if not self._one_command:
            return self.first
        async with self._connecting:
            return self._idle.pop() if self._idle else await self._connect()

    async def _return(self, login: _L, channel: _C) -> None:
        await channel.wait_end()
        self._idle.append(login)


class _Jump(Generic[_L]):
    """The connection to a jump host, which ends with its last user."""

    def __init__(self, open_jump: Callable[[AsyncExitStack], Awaitable[_L]], is_closed: Callable[[_L], bool]) -> None:
        self._users, self._ended = 0, False
        self._stack = AsyncExitStack()
        self._is_closed = is_closed
        self._opening: asyncio.Task[_L] = asyncio.create_task(self._open(open_jump))
        self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs it

    async def _open(self, open_jump: Callable[[AsyncExitStack], Awaitable[_L]]) -> _L:
        return await open_jump(self._stack)

    @property
    def usable(self) -> bool:
        if self._ended or not self._opening.done():
            return not self._ended
        return self._opening.exception() is None and not self._is_closed(self._opening.result())

    async def enter(self, node: Node, stack: AsyncExitStack) -> _L:
        self._users += 1
        stack.push_async_callback(self._left)
        try:
            return await asyncio.shield(self._opening)
        except NodeError as error:
            raise error.at_node(node.name) from None

    async def _left(self) -> None:
        self._users -= 1
        if not self._users:
            self._ended = True
            self._opening.cancel()
            await asyncio.wait({self._opening})
            await self._stack.aclose()


_jumps: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[object, ...], _Jump[Any]]]" = WeakKeyDictionary()


async def shared_jump(
    key: tuple[object, ...],
    node: Node,
    stack: AsyncExitStack,
    open_jump: Callable[[AsyncExitStack], Awaitable[_L]],
    is_closed: Callable[[_L], bool],
) -> _L:
    """Return the connection of this `key`, shared to spare the jump host's MaxStartups; open it for the first user."""
    jumps = _jumps.setdefault(asyncio.get_running_loop(), {})
    jump = jumps.get(key)
    if jump is None or not jump.usable:
        jump = jumps[key] = _Jump(open_jump, is_closed)
    result: _L = await jump.enter(node, stack)
    return result
