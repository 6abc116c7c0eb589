"""What a run does in a thread while its nodes are opened, so that it costs no time of its own: imports.

The controller mostly waits then. It is over before the first test: nothing of it runs beside what is measured.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

_SWITCH_S: Final = 0.0005
"""How long the thread may hold up the connections each time; Python's own 5 ms would add up over their round trips."""


def later_imports() -> None:
    """Import what a run needs only when its first test has been measured."""
    import rigctl.analysis.run_view  # noqa: F401


@asynccontextmanager
async def beside(
    first: Callable[[], None], then: Callable[[], None]
) -> AsyncIterator[tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]]:
    """`first`, then `then` are done in a thread; gives what waits for the end of each, and raises what that raised."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    firsts = asyncio.create_task(asyncio.to_thread(first))

    async def following() -> None:
        try:
            await asyncio.shield(firsts)
            await asyncio.to_thread(then)
        finally:
            sys.setswitchinterval(usual_s)

    thens = asyncio.create_task(following())
    try:
        yield lambda: asyncio.shield(firsts), lambda: asyncio.shield(thens)
    finally:
        await asyncio.wait({firsts, thens})
        for task in (firsts, thens):
            task.exception()  # looked at: what ended the run matters more
