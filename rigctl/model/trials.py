"""Describe how the highest load that passes is searched for: one `Searched` record per setting with the value `max`.

A trial is a repetition at one load. Loads have the unit of the searched setting.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from rigctl.base.values import most, total
from rigctl.records import Cell, Repetition, RunPlan, Status
from rigctl.settings import MAX, RATE, Setting

_STEADY: Final = 0.99
"""A trial counts at the rate that was sent if the senders sent less than this share of the rate asked for."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a search: the load that was asked for and sent, whether it passed, and what was measured.

    `asked` is None if the senders had no limit. `passed` is None for a trial that decides nothing.
    """

    number: int  # number of the repetition that is this trial
    asked: int | None
    sent: float | None  # None if unknown: then the trial has not passed
    load: float | None = None  # the load at which the trial counts: that asked for, or that sent; None if unknown
    passed: bool | None = None
    reason: str | None = None  # why the trial did not pass, if `loss` does not say so
    arrived: float | None = None
    loss: float | None = None  # share of what was sent
    burst: int | None = None  # most datagrams that a sender sent in one burst; None if unlimited or unknown


def _middle(low: float, high: float) -> float:
    return fmean((low, high))


@dataclass(frozen=True)
class Searched:
    """A setting whose highest passing value is searched for, and how a repetition becomes a trial of the search."""

    setting: Setting[Any]
    trial: Callable[[RunPlan, Cell, Repetition], Trial]
    least: int  # lowest load that is tried
    most: int | None = None  # highest load that is tried; None: no bound
    first: Callable[[Cell], int | None] = lambda _: None  # load of the first trial; None: as high as the senders can
    growth: float = 2.0  # next load ÷ last load, as long as all trials pass, or all fail
    between: Callable[[float, float], float] = _middle  # next load, between the highest passed and the lowest failed
    precision: float = 0.0  # the search ends when these are within this share, or differ by 1

    def close_enough(self, low: float, high: float) -> bool:
        """Tell whether no load between a passed and a failed one needs to be tried."""
        return high - low <= max(self.precision * high, 1.0)


def _datagram_counts(repetition: Repetition) -> tuple[int, int] | None:
    """Return how many datagrams all flows together sent and received; None if a count is unknown."""
    sent, arrived = (
        total(side.datagrams.count if side is not None and side.datagrams is not None else None for side in sides)
        for sides in ([flow.sender for flow in repetition.flows], [flow.receiver for flow in repetition.flows])
    )
    return None if sent is None or arrived is None else (sent, arrived)


def _datagram_trial(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial:
    """Return a repetition as a trial of a rate of UDP, in bit/s per flow: it passes if its loss is within `max_loss`.

    The results are None if the repetition was not measured.
    """
    asked = repetition.load
    unknown = Trial(repetition.repetition, asked, None, load=asked)
    counts, size = _datagram_counts(repetition), cell.message_bytes
    if counts is None or size is None or repetition.status not in (Status.OK, Status.INVALID):
        return unknown
    times = [flow.sender.elapsed_ns or 0 for flow in repetition.flows if flow.sender is not None]
    if min(times) <= 0:
        return unknown
    each = size * 8e9 / max(times) / len(times)
    sent_bps, loss = counts[0] * each, (counts[0] - counts[1]) / counts[0] if counts[0] else None
    return Trial(
        repetition.repetition,
        asked,
        sent_bps,
        load=sent_bps if asked is None or sent_bps < _STEADY * asked else asked,
        passed=None if loss is None else loss <= plan.max_loss,
        arrived=counts[1] * each,
        loss=loss,
        burst=most(flow.sender.datagrams.burst for flow in repetition.flows if flow.sender and flow.sender.datagrams),
    )


RATE_OF_DATAGRAMS: Final = Searched(RATE, _datagram_trial, least=1000, precision=0.01)
SEARCHED: Final = (RATE_OF_DATAGRAMS,)


def searched_setting(row: Cell | Mapping[Any, Any]) -> Searched | None:
    """Return which setting of a test (or of a row of the matrix) is searched for; None for a test without a search."""
    return next((each for each in SEARCHED if row[each.setting] == MAX), None)


def at_load(cell: Cell, load: int | None) -> Cell:
    """Return the test as a trial measures it, with `load` as value of its searched setting; None: without a limit.

    A test without a search is returned unchanged.
    """
    searched = searched_setting(cell)
    if searched is None:
        return cell
    return replace(cell, settings=cell.settings | {searched.setting: load})


def trial_of(plan: RunPlan, cell: Cell, repetition: Repetition) -> Trial | None:
    """Return a repetition as a trial; None if the test is not searched."""
    searched = searched_setting(cell)
    return None if searched is None else searched.trial(plan, cell, repetition)
