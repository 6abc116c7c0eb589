"""The life of a run, on one page.

1. The virtual rig is started where the rig is one (`virtual.provided`).
2. Every node is opened: connection, lock, agent pushed and started; its facts are asked, its paths probed
   (`runner.precheck`). Meanwhile a thread imports the store and what comes after the run; it has ended before the
   first test. No node is locked before the store is open.
3. The run is stored with its plan and facts, before the first cell; or a stored one is taken up (`runner.resume`).
4. Before the cells of a condition its host settings are applied (`runner.conditions`); the switches' counters are read
   all the time (`runner.counters`).
5. Each repetition of each cell is measured (`runner.repetition`, by an engine) and stored at once; an invalid one is
   measured once more.
6. Old host settings are put back, everything that was opened is closed, whatever happened, and the run is marked with
   how it ended.
"""

import asyncio
import logging
import os
import platform
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from rigctl import protocol
from rigctl.base.account import account
from rigctl.base.errors import BusyError, Interrupted, NodeError, RigError, of_nodes
from rigctl.base.logs import about, learnt
from rigctl.base.texts import file_name
from rigctl.base.version import __version__
from rigctl.records import Repetition, RunInfo, RunPlan, RunStatus, Status
from rigctl.remote.build import carried
from rigctl.remote.reach import import_transports
from rigctl.rig.inventory import Rig
from rigctl.runner.by_iperf3 import check_iperf3, iperf3_versions
from rigctl.runner.conditions import conditions_of
from rigctl.runner.counters import counters_of
from rigctl.runner.engine import Bench
from rigctl.runner.logged import Logged
from rigctl.runner.meanwhile import beside, later_imports
from rigctl.runner.measurable import pairs_without
from rigctl.runner.nodes import Nodes, nodes_of
from rigctl.runner.orders import MOST_ATTEMPTS, Order, further_orders, is_open_ended, missing, planned
from rigctl.runner.precheck import prechecked
from rigctl.runner.progress import progress_on
from rigctl.runner.published import Board, board_of
from rigctl.runner.repetition import measure_cell
from rigctl.runner.resume import controller_id
from rigctl.runner.waiting import opened
from rigctl.virtual import provided

if TYPE_CHECKING:  # a run begins to connect before it needs SQLAlchemy
    from rigctl.store import Store

MOST_LOST: Final = 24
"""Messages about nodes that could not be opened, at most."""
_log = logging.getLogger("rigctl.run")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run's id and how it ended."""

    run: str
    status: RunStatus
    restored: bool = True  # False: a node may keep changed host settings

    @property
    def exit_code(self) -> int:
        """0, 3 or 130, as in design, section 3."""
        complete = 0 if self.restored else RigError.exit_code
        return {RunStatus.COMPLETE: complete, RunStatus.INTERRUPTED: Interrupted.exit_code}.get(
            self.status, RigError.exit_code
        )


def holder() -> str:
    """Who holds the rig, for those who find it locked: `anna@lab7 pid 4711`."""
    return f"{account()} pid {os.getpid()}"


def measure_run(
    plan: RunPlan,
    rig: Rig,
    store: "Callable[[], Store]",
    console: Console,
    *,
    quiet: bool = False,
    resumed: str | None = None,
    captures: Path | None = None,
    tags: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
    without_unreachable: bool = False,
    meanwhile: Callable[[], None] = later_imports,
) -> Outcome:
    """Measure `plan` on `rig` into `store`. Blocks until it is over; progress goes to `console`.

    `store` gives it, opened by the first call: that may be while nodes are connected, none is locked yet. `resumed` is
    the id of a stored run of this plan (checked by `runner.resume`): what it lacks is measured. `captures` is the
    folder for pcap files; None: the working folder. The run is given `tags` at its beginning. A node that another run
    has is waited for, for at most `wait_s`. A run of which every test needs a node that can't be had, or a path that
    nothing passes, is refused; with `without_unreachable` the other pairs are measured, if there are any.

    `meanwhile` is called in a thread while the nodes are opened: the controller waits then, and nothing is measured.

    Ctrl-C and SIGTERM end it within 3 s, with everything stopped on every node and what was measured stored. Raises
    `RigError` where the rig could not be had at all: then nothing was stored.
    """
    orders = missing(plan, store().statuses(resumed) if resumed else {})
    with (
        about(),
        progress_on(console, plan, orders, quiet) as shown,
        board_of(plan, orders, Logged(shown)) as board,
    ):
        folder = captures or Path.cwd()
        work = _Work(plan, rig, store, board, folder, tags or {}, wait_s, without_unreachable, meanwhile)
        try:
            outcome = asyncio.run(_interruptible(_run(work, orders, resumed)))
        finally:
            for line in work.changed:
                console.print(f"rigctl: {line}", highlight=False, markup=False, soft_wrap=True)
        return replace(outcome, restored=not work.changed)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a run works on, and where its results and its words go."""

    plan: RunPlan
    rig: Rig
    opened_store: "Callable[[], Store]"
    progress: Board
    captures: Path
    tags: Mapping[str, str]
    wait_s: float
    without_unreachable: bool
    meanwhile: Callable[[], None]
    changed: list[str] = field(default_factory=list)  # nodes that may keep changed host settings, a line each

    @property
    def store(self) -> "Store":
        return self.opened_store()


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
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or `run --display`
            loop.add_signal_handler(number, cancel_once)
    try:
        return await task
    except asyncio.CancelledError:
        raise Interrupted("interrupted before the first test; nothing was stored") from None


async def _run(work: _Work, orders: Sequence[Order], resumed: str | None) -> Outcome:
    plan = work.plan
    names = sorted(plan.nodes)
    import_transports(work.rig, names)
    async with (
        beside(_import_store, work.meanwhile) as (store_imported, prepared),
        provided(work.rig) as reachable,
        counters_of(work.plan, reachable) as counters,
        nodes_of(reachable, holder()) as nodes,
    ):
        plan = replace(plan, ports=reachable.ports)  # a virtual rig knows its switches' ports only now
        await _open(work, nodes, names, store_imported)
        store = work.store
        facts, controller = await nodes.facts(names), controller_id()
        nodes.check_data_addresses()
        check_iperf3(plan, facts)
        messages, blocked = await prechecked(plan, nodes, names, by_pair=work.without_unreachable)
        for message in messages:
            work.progress.said(message)
        await prepared()
        known = versions() | iperf3_versions(plan, facts)
        run = resumed or store.begin(plan, known, facts, time.time(), controller, work.tags)
        if resumed is not None:
            store.resume(run, controller)
            store.history.tag(run, work.tags)
        learnt(run=run)
        work.progress.stored(RunInfo(run, plan, RunStatus.RUNNING, time.time(), None, known, facts))
        _log.info("run %s: %d tests on %s", run, len(plan.cells), plan.rig_name, extra={"event": "run begins"})
        try:
            async with conditions_of(plan, nodes, names, work.changed.append) as conditions:
                captures = work.captures / f"{file_name(plan.scenario_name)}-{run}"
                bench = Bench(nodes, conditions, counters, captures, blocked)
                await _measure_all(work, orders, run, bench)
                while is_open_ended(plan) and (more := further_orders(plan, store.repetitions(run, series=False))):
                    if any(order.rate_bps is None for order in more):
                        work.progress.said(f"measuring {len(more)} more: the repetitions so far differ")
                    await _measure_all(work, more, run, bench)
        except asyncio.CancelledError:
            store.finish(run, RunStatus.INTERRUPTED, time.time())
            _ended(work, run, RunStatus.INTERRUPTED)
            return Outcome(run, RunStatus.INTERRUPTED)
        status = _status(plan, store.statuses(run))
        store.finish(run, status, time.time())
        _ended(work, run, status)
    return Outcome(run, status)


def _ended(work: _Work, run: str, status: RunStatus) -> None:
    work.progress.over(status)
    _log.info("run %s ended: %s", run, status, extra={"event": "run ended", "status": str(status)})


def _import_store() -> None:
    import rigctl.store  # noqa: F401


async def _open(work: _Work, nodes: Nodes, names: list[str], store_imported: Callable[[], Awaitable[None]]) -> None:
    """Open all nodes, and the store while they are connected: none is locked before it is open.

    Raises where not one cell could be measured: then nothing is stored.
    """
    nodes.may_be_locked.clear()
    opening = asyncio.create_task(opened(nodes, names, work.wait_s, work.progress.said))
    try:
        await store_imported()
        work.opened_store()
        nodes.may_be_locked.set()
        outcomes = await opening
    finally:
        opening.cancel()
        await asyncio.wait({opening})
    lost = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, NodeError)}
    said = of_nodes(lost.values())
    in_use = any(isinstance(error, BusyError) for error in lost.values())
    if work.without_unreachable and not in_use and any(pairs_without(cell, lost) for cell in work.plan.cells):
        for line in said[:MOST_LOST]:
            work.progress.said(f"measured without it: {line}")
    elif lost and all(lost.keys() & cell.nodes for cell in work.plan.cells):
        more = [f"… and {len(said) - MOST_LOST} more"] if len(said) > MOST_LOST else []
        raise RigError("\n".join([*said[:MOST_LOST], *more]))


async def _measure_all(work: _Work, orders: Sequence[Order], run: str, bench: Bench) -> None:
    """Every repetition that is to be measured, in order, stored as it comes."""
    for first in orders:
        for attempt in range(first.attempt, MOST_ATTEMPTS + 1):
            result = await _measure_one(replace(first, attempt=attempt), work, run, bench)
            if result.status is not Status.INVALID:
                break


async def _measure_one(order: Order, work: _Work, run: str, bench: Bench) -> Repetition:
    """One repetition, measured and stored. Interrupted, it is stored as such before the interruption goes on."""
    work.progress.began(order.cell, order.repetition, order.attempt)
    result = await measure_cell(order, bench, work.plan.max_skew_s, work.progress)
    work.store.add(run, result)
    work.progress.ended(order.cell, result)
    if result.status is Status.INTERRUPTED:
        raise asyncio.CancelledError
    if result.status is Status.FAILED or bench.nodes.learnt:
        bench.nodes.learnt = False
        facts = await bench.nodes.facts(bench.nodes.rig.nodes)
        work.store.set_facts(run, facts, versions() | iperf3_versions(work.plan, facts))
    return result


def _status(plan: RunPlan, stored: Mapping[tuple[int, int, int], Status]) -> RunStatus:
    """Complete when every repetition of every cell has a valid measurement."""
    wanted = {cell.number: planned(plan, cell) for cell in plan.cells}
    valid = {
        (cell, repetition)
        for (cell, repetition, _), status in stored.items()
        if status is Status.OK and repetition <= wanted[cell]
    }
    return RunStatus.COMPLETE if len(valid) == sum(wanted.values()) else RunStatus.PARTIAL


def versions() -> dict[str, str]:
    """Of what a run is measured with, as stored with it."""
    agents = {f"agent {binary.machine} sha256": binary.sha256 for binary in carried()}
    own = {"rigctl": __version__, "python": platform.python_version(), "agent protocol": str(protocol.VERSION)}
    return own | agents
