"""Read from the store how long the messages of a scenario took in an earlier run, to forecast the time of a run."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from rigctl.records import Cell, Repetition, RunPlan, RunStatus, Status
from rigctl.settings import ITERATIONS
from rigctl.store import Store


def last_message_times(store: Store, plan: RunPlan) -> tuple[str, Mapping[int, float]]:
    """Return the id of the last run of this scenario on this rig, and the seconds per message by test number of `plan`.

    Tests are matched by their settings, except duration and number of messages. A run without such a test is passed
    over; without any run, the id and the mapping are empty. Raise `InputError` if the store cannot be read.
    """
    cells = [cell for cell in plan.cells if cell[ITERATIONS] is not None]
    for info in store.latest_first({}) if cells else ():
        same = (info.plan.scenario_name, info.plan.rig_name) == (plan.scenario_name, plan.rig_name)
        if same and info.status is not RunStatus.RUNNING:
            measured = _message_times(info.plan, store.repetitions(info.run, samples=False))
            known = {cell.number: measured[key] for cell in cells if (key := _key_of(cell)) in measured}
            if known:
                return info.run, known
    return "", {}


def _message_times(plan: RunPlan, measured: list[Repetition]) -> dict[Cell, float]:
    """Return the mean seconds per message of each test with a valid repetition, by `_key_of` of the test."""
    cells = {cell.number: cell for cell in plan.cells}
    times: dict[Cell, list[float]] = {}
    for repetition in measured:
        cell = cells[repetition.cell]
        if repetition.status is Status.OK and (time_s := _time_of_message(cell, repetition)) is not None:
            times.setdefault(_key_of(cell), []).append(time_s)
    return {key: fmean(own) for key, own in times.items()}


def _time_of_message(cell: Cell, repetition: Repetition) -> float | None:
    """Return the seconds per message of the slowest flow; None if a flow was not reported or sent no message."""
    times = []
    for flow in repetition.flows:
        if flow.sender is None or not flow.sender.elapsed_ns or not cell.message_bytes:
            return None
        if not (count := flow.sender.bytes // cell.message_bytes):
            return None
        times.append(flow.sender.elapsed_ns / 1e9 / count)
    return max(times, default=None)


def _key_of(cell: Cell) -> Cell:
    """Return the test without its number, its duration, its number of messages, and what only observes it."""
    return replace(
        cell,
        number=0,
        group=None,
        duration_s=0.0,
        omit_s=0.0,
        capture=False,
        bin_us=None,
        settings=cell.settings | {ITERATIONS: None},
    )
