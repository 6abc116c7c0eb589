"""The steps of a run, on one page.

1. Start the virtual rig, if the rig is virtual (`virtual.provide`).
2. Open every node: connect, push and start the agent, which takes the node's lock (`remote.session`). Read host facts
   and probe the paths (`runner.precheck`).
3. Store the run with its plan and facts, before the first test; or resume a stored run (`runner.resume`).
4. Apply the host settings of a condition before its tests (`runner.conditions`). Read switch counters all the time
   (`runner.counters`).
5. Measure each repetition of each test (`runner.repetition`, with an engine) and store it at once. Measure an invalid
   repetition once more.
6. Restore the host settings, close everything that was opened, even after an error, and store how the run ended.
"""

import asyncio
import logging
import platform
import signal
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from rigctl.base.errors import BusyError, InterruptError, NodeError, RigError, of_nodes
from rigctl.base.logs import about, learn
from rigctl.base.processes import holder
from rigctl.base.texts import file_name
from rigctl.base.version import __version__
from rigctl.model.repeating import count_planned
from rigctl.model.trials import searched_setting
from rigctl.protocol.lines import VERSION
from rigctl.records import Facts, RunInfo, RunPlan, RunStatus, Status
from rigctl.remote.build import find_agents
from rigctl.results.message_times import last_message_times
from rigctl.rig.inventory import Rig
from rigctl.runner import schedule
from rigctl.runner.board import open_board, print_progress
from rigctl.runner.by_iperf3 import check_iperf3, iperf3_versions
from rigctl.runner.conditions import conditions_of
from rigctl.runner.counters import counters_of
from rigctl.runner.engine import Bench
from rigctl.runner.nodes import Nodes, nodes_of
from rigctl.runner.precheck import precheck
from rigctl.runner.progress import Broadcast, EventLog, Progress, find_not_granted
from rigctl.runner.repetition import measure_together
from rigctl.runner.resume import controller_id
from rigctl.runner.schedule import MOST_ATTEMPTS, MeasurementOrder, further_orders, is_open_ended
from rigctl.store import Store
from rigctl.virtual.provide import provide

_MOST_LOST: Final = 24
"""Limit of the messages about nodes that could not be opened."""
_log = logging.getLogger("rigctl.run")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its id and status."""

    run: str
    status: RunStatus
    restored: bool = True  # False: a node may keep changed host settings

    @property
    def exit_code(self) -> int:
        """Return 0 if all was measured and restored, 130 after an interruption, else 3."""
        if self.status is RunStatus.INTERRUPTED:
            return InterruptError.exit_code
        return 0 if self.status is RunStatus.COMPLETE and self.restored else RigError.exit_code


def measure_run(
    plan: RunPlan,
    rig: Rig,
    store: Store,
    console: Console,
    *,
    quiet: bool = False,
    resumed: str | None = None,
    captures: Path | None = None,
    tags: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
    without_unreachable: bool = False,
    screen: ExitStack | None = None,
) -> Outcome:
    """Measure `plan` on `rig` into `store` and return the run's outcome. Progress is printed to `console`.

    `resumed`: id of a stored run of this plan (checked by `runner.resume`); measure only its missing repetitions.
    `captures`: folder for pcap files, by default the working folder. `tags`: tags of the new run. `wait_s`: longest
    wait for nodes that another run uses. `without_unreachable`: leave out pairs whose nodes or path fail; if False,
    refuse a run in which every test needs such a node. `screen`: stack whose end removes the live progress from the
    terminal; by default, the end of the run does.

    Ctrl-C and SIGTERM end the run within 3 s: agents stop all traffic, and the results so far are stored. Raise
    `RigError` without a stored run if the rig cannot be used at all.
    """
    orders = schedule.missing(plan, store.statuses(resumed) if resumed else {})
    _, message_s = last_message_times(store, plan)
    with about(), open_board(plan, orders, message_s) as board, ExitStack() as own:
        printed = (own if screen is None else screen).enter_context(print_progress(console, board, quiet))
        folder, progress = captures or Path.cwd(), Broadcast(board, EventLog(), printed)
        work = _Work(plan, rig, store, progress, folder, tags or {}, wait_s, without_unreachable)
        try:
            outcome = asyncio.run(_interruptible(_run(work, orders, resumed)))
        finally:
            for line in work.changed:
                console.print(f"rigctl: {line}", highlight=False, markup=False, soft_wrap=True)
        return replace(outcome, restored=not work.changed)


@dataclass(frozen=True, slots=True)
class _Work:
    plan: RunPlan
    rig: Rig
    store: Store
    progress: Progress
    captures: Path
    tags: Mapping[str, str]
    wait_s: float
    without_unreachable: bool
    changed: list[str] = field(default_factory=list)  # a line for each node that may keep changed host settings


async def _interruptible(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    cancelled = False

    def cancel_once() -> None:
        nonlocal cancelled
        if not cancelled:  # a second Ctrl-C must not cut the clean-up short, which has deadlines
            task.cancel()
        cancelled = True

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
            loop.add_signal_handler(number, cancel_once)
    try:
        return await task
    except asyncio.CancelledError:
        raise InterruptError("interrupted before the first test; nothing was stored") from None


async def _run(work: _Work, orders: Sequence[MeasurementOrder], resumed: str | None) -> Outcome:
    plan, store = work.plan, work.store
    names = sorted(plan.nodes)
    async with (
        provide(work.rig) as reachable,
        counters_of(work.plan, reachable) as counters,
        nodes_of(reachable, holder()) as nodes,
    ):
        plan = replace(plan, ports=reachable.ports)  # the switches of a virtual rig get their ports at its start
        await _open(work, nodes, names)
        facts, controller = await nodes.facts(names), controller_id()
        nodes.check_data_addresses()
        check_iperf3(plan, facts)
        messages, blocked = await precheck(plan, nodes, names, by_pair=work.without_unreachable)
        for message in messages:
            work.progress.say(message)
        known = versions_of_run() | iperf3_versions(plan, facts)
        run = resumed or _begin(work, plan, known, facts, controller)
        if resumed is not None:
            store.resume(run, controller)
            store.history.tag(run, work.tags)
        learn(run=run)
        work.progress.on_run(RunInfo(run, plan, RunStatus.RUNNING, time.time(), None, known, facts))
        _log.info("run %s: %d tests on %s", run, len(plan.cells), plan.rig_name, extra={"event": "run begins"})
        status = RunStatus.INTERRUPTED
        try:
            async with conditions_of(plan, nodes, names, work.changed.append) as conditions:
                captures = work.captures / f"{file_name(plan.scenario_name)}-{run}"
                bench = Bench(nodes, conditions, counters, captures, blocked)
                await _measure_all(work, orders, run, bench)
                samples = any(cell.kind.by_burst for cell in plan.cells)  # their rows decide on the next trial
                while is_open_ended(plan) and (more := further_orders(plan, store.repetitions(run, samples=samples))):
                    if any(searched_setting(order.cell) is None for order in more):
                        work.progress.say(f"measuring {len(more)} more repetitions, because those so far differ")
                    await _measure_all(work, more, run, bench)
            status = _status(plan, store.statuses(run))
        except asyncio.CancelledError:
            pass  # the results so far are stored, so the run ends as interrupted
        store.finish(run, status, time.time())
        work.progress.on_end(status)
        _log.info("run %s ended: %s", run, status, extra={"event": "run ended", "status": str(status)})
    return Outcome(run, status)


def _begin(work: _Work, plan: RunPlan, known: Mapping[str, str], facts: Mapping[str, Facts], controller: str) -> str:
    """Store the run as begun and return its id. Tell the user if the store has a run that is later by its clock."""
    began_at = time.time()
    later = work.store.later_run(began_at)
    run = work.store.begin(plan, known, facts, began_at, controller, work.tags)
    if later is not None:
        work.progress.say(
            f"this machine's clock says {time.strftime('%Y-%m-%d %H:%M', time.gmtime(began_at))} UTC, which is before "
            f"the store's last run, {later}. While one of the clocks is wrong, `latest` may mean that run: name this "
            f"run as {run}"
        )
    return run


async def _open(work: _Work, nodes: Nodes, names: Sequence[str]) -> None:
    outcomes = await nodes.open_or_wait(names, work.wait_s, work.progress.say)
    lost = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, NodeError)}
    lines = of_nodes(lost.values())
    if len(lines) > _MOST_LOST:
        lines[_MOST_LOST:] = [f"… and {len(lines) - _MOST_LOST} more"]
    in_use = any(isinstance(error, BusyError) for error in lost.values())
    if work.without_unreachable and not in_use and any(schedule.pairs_without(cell, lost) for cell in work.plan.cells):
        for line in lines:
            work.progress.say(f"left out of this run: {line}")
    elif lost and all(lost.keys() & set(cell.nodes) for cell in work.plan.cells):
        raise RigError("\n".join(lines))


async def _measure_all(work: _Work, orders: Sequence[MeasurementOrder], run: str, bench: Bench) -> None:
    for own in schedule.group_classes(orders):
        for attempt in range(own[0].attempt, MOST_ATTEMPTS + 1):
            status = await _measure_one([replace(order, attempt=attempt) for order in own], work, run, bench)
            if status is not Status.INVALID:
                break


async def _measure_one(orders: Sequence[MeasurementOrder], work: _Work, run: str, bench: Bench) -> Status:
    """Measure and store one repetition of a test; return its status. Raise `CancelledError` if it was interrupted."""
    first, cells = orders[0], tuple(order.cell for order in orders)
    work.progress.on_begin(first.cell, first.repetition, first.attempt, cells[1:])
    results = await measure_together(orders, bench, work.plan.max_skew_s, work.progress)
    work.store.add(run, *results)
    for cell, result in zip(cells, results, strict=True):
        work.progress.on_result(cell, result, find_not_granted(cell, result))
    status = results[0].status
    if status is Status.INTERRUPTED:
        raise asyncio.CancelledError
    if status is Status.FAILED or bench.nodes.facts_changed:
        bench.nodes.facts_changed = False
        facts = await bench.nodes.facts(bench.nodes.rig.nodes)
        work.store.set_facts(run, facts, versions_of_run() | iperf3_versions(work.plan, facts))
    return status


def _status(plan: RunPlan, stored: Mapping[tuple[int, int, int], Status]) -> RunStatus:
    wanted = {(cell.number, number) for cell in plan.cells for number in range(1, count_planned(plan, cell) + 1)}
    valid = {(cell, repetition) for (cell, repetition, _), status in stored.items() if status is Status.OK}
    return RunStatus.COMPLETE if wanted <= valid else RunStatus.PARTIAL


def versions_of_run() -> dict[str, str]:
    """Return the versions to store with a run: rigctl, Python, agent protocol, and the SHA-256 of each agent."""
    agents = {f"agent {binary.machine} sha256": binary.sha256 for binary in find_agents()}
    return {"rigctl": __version__, "python": platform.python_version(), "agent protocol": str(VERSION), **agents}
