"""The life of a run, on one page.

1. The virtual rig is started where the rig is one (`virtual.provided`).
2. Every node is opened: connection, lock, agent pushed and started; its facts are asked.
3. The run is stored with its plan and facts, before the first cell.
4. Each repetition of each cell is measured (`runner.cell`) and stored at once; an invalid one is measured once more.
5. Everything that was opened is closed, whatever happened, and the run is marked with how it ended.
"""

import asyncio
import getpass
import os
import platform
import signal
import socket
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from rigctl import __version__, protocol
from rigctl.errors import Interrupted, NodeError, RigError
from rigctl.records import Cell, Repetition, RunPlan, RunStatus, Status
from rigctl.remote.build import carried
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

    Ctrl-C and SIGTERM end it within 3 s, with everything stopped on every node and what was measured stored. Raises
    `RigError` where the rig could not be had at all: then nothing was stored.
    """
    with progress_on(console, plan, quiet) as progress:
        return asyncio.run(_interruptible(_run(plan, rig, store, progress)))


async def _interruptible(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    cancelled = False

    def cancel_once() -> None:
        nonlocal cancelled
        if not cancelled:  # what follows is bounded clean-up; a second Ctrl-C must not cut it short
            task.cancel()
        cancelled = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, cancel_once)
    try:
        return await task
    except asyncio.CancelledError:
        raise Interrupted("interrupted before the first cell; nothing was stored") from None


async def _run(plan: RunPlan, rig: Rig, store: Store, progress: Progress) -> Outcome:
    names = sorted({name for cell in plan.cells for pair in cell.pairs for name in (pair.source, pair.destination)})
    async with provided(rig) as reachable, nodes_of(reachable, holder()) as nodes:
        await _open(plan, nodes, names)
        run = store.begin(plan, _versions(), await nodes.facts(names), time.time())
        try:
            results = await _measure_all(plan, run, nodes, store, progress)
        except asyncio.CancelledError:
            store.finish(run, RunStatus.INTERRUPTED, time.time())
            return Outcome(run, RunStatus.INTERRUPTED)
        status = _status(plan, results)
        store.finish(run, status, time.time())
    return Outcome(run, status)


async def _open(plan: RunPlan, nodes: Nodes, names: list[str]) -> None:
    """Open all nodes. Raises where not one cell could be measured: then nothing is stored."""
    outcomes = await nodes.open(names)
    lost = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, NodeError)}
    if lost and all(_needs(cell) & lost.keys() for cell in plan.cells):
        raise RigError("\n".join(str(error) for error in lost.values()))


def _needs(cell: Cell) -> set[str]:
    return {name for pair in cell.pairs for name in (pair.source, pair.destination)}


async def _measure_all(
    plan: RunPlan, run: str, nodes: Nodes, store: Store, progress: Progress
) -> dict[tuple[int, int], Status]:
    """Every repetition of every cell, in order, stored as it comes. The status of each one's last attempt."""
    results: dict[tuple[int, int], Status] = {}
    for cell in plan.cells:
        for repetition in range(1, plan.repeat + 1):
            for attempt in (1, 2):
                order = Order(cell, repetition, attempt)
                result = await _measure_one(order, plan, run, nodes, store, progress)
                results[cell.number, repetition] = result.status
                if result.status is not Status.INVALID:
                    break
    return results


async def _measure_one(
    order: Order, plan: RunPlan, run: str, nodes: Nodes, store: Store, progress: Progress
) -> Repetition:
    """One repetition, measured and stored. Interrupted, it is stored as such before the interruption goes on."""
    cell = order.cell
    addresses = {name: nodes.data_address(name) for name in _needs(cell)}
    progress.began(cell, order.repetition, order.attempt)
    result = await measure_cell(order, nodes, addresses, plan.max_skew_s, progress)
    store.add(run, result)
    progress.ended(cell, result)
    if result.status is Status.INTERRUPTED:
        raise asyncio.CancelledError
    if result.status is Status.FAILED:
        store.set_facts(run, await nodes.facts(nodes.rig.nodes), _versions())
    return result


def _status(plan: RunPlan, results: Mapping[tuple[int, int], Status]) -> RunStatus:
    """Complete when every repetition of every cell has a valid measurement."""
    whole = len(results) == plan.repeat * len(plan.cells) and set(results.values()) == {Status.OK}
    return RunStatus.COMPLETE if whole else RunStatus.PARTIAL


def _versions() -> dict[str, str]:
    agents = {f"agent {binary.machine} sha256": binary.sha256 for binary in carried()}
    own = {"rigctl": __version__, "python": platform.python_version(), "agent protocol": str(protocol.VERSION)}
    return own | agents
