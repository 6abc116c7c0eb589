"""The life of a run, on one page.

1. The virtual rig is started where the rig is one (`virtual.provided`).
2. Every node is opened: connection, lock, agent pushed and started; its facts are asked.
3. The run is stored with its plan and facts, before the first cell.
4. Each repetition of each cell is measured (`runner.cell`) and stored at once; an invalid one is measured once more.
5. Everything that was opened is closed, whatever happened, and the run is marked with how it ended.
"""

import asyncio
import contextlib
import getpass
import os
import platform
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rich.console import Console

from rigctl import __version__
from rigctl.errors import Interrupted, NodeError, RigError
from rigctl.records import Cell, Facts, Repetition, RunPlan, RunStatus, Status
from rigctl.rig.inventory import Rig
from rigctl.runner.cell import Order, measure_cell
from rigctl.runner.nodes import Nodes, nodes_of
from rigctl.runner.progress import Progress, progress_on
from rigctl.store import Store
from rigctl.virtual import provided


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run's id and how it ended."""

    run: str
    status: RunStatus

    @property
    def exit_code(self) -> int:
        """0, 3 or 130, as in design, section 3."""
        return {RunStatus.COMPLETE: 0, RunStatus.INTERRUPTED: Interrupted.exit_code}.get(
            self.status, RigError.exit_code
        )


def holder() -> str:
    """Who holds the rig, for those who find it locked: `anna@lab7 pid 4711`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()} pid {os.getpid()}"


def measure_run(plan: RunPlan, rig: Rig, store: Store, console: Console, *, quiet: bool = False) -> Outcome:
    """Measure `plan` on `rig` into `store`. Blocks until it is over; progress goes to `console`.

    Ctrl-C and SIGTERM end it within 3 s, with everything stopped on every node and what was measured stored. Raises `RigError`
    where the rig could not be had at all: then nothing was stored.
    """
    with progress_on(console, plan, quiet) as progress:
        return asyncio.run(_interruptible(_run(plan, rig, store, progress)))


async def _interruptible(work: "asyncio._CoroutineLike[Outcome]") -> Outcome:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise Interrupted("interrupted before the first cell; nothing was stored") from None


async def _run(plan: RunPlan, rig: Rig, store: Store, progress: Progress) -> Outcome:
    async with provided(rig) as reachable, nodes_of(reachable, holder()) as nodes:
        facts = await _facts(plan, nodes, progress)
        run = store.begin(plan, _versions(), facts, time.time())
        async with _marked(store, run) as marks:
            for cell in plan.cells:
                for repetition in range(1, plan.repeat + 1):
                    marks.append(await _measure(Order(cell, repetition, 1), run, nodes, store, progress))
    return marks.outcome()
