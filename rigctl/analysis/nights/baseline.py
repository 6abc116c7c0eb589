"""Compare a run with a baseline in place of the nights before it: another run, a tagged one, or the last nights."""

from math import log
from typing import Final

from rigctl.analysis.nights.history import Nights, values_of
from rigctl.analysis.nights.setup_changes import setup_changes
from rigctl.analysis.nights.shifts import Shift
from rigctl.base.errors import InputError
from rigctl.model.statistics.changes import LEAST_NIGHTS, Change, Rules, compared, significant
from rigctl.records import CONFIRMS, RunInfo
from rigctl.store import Store

_OF_ID: Final = 8
"""A number with this many digits is the beginning of a run's id, as 20261122."""


def baseline_of(store: Store, run: RunInfo, text: str | None) -> RunInfo | int | None:
    """Return the run that `text` names, or a number of nights. Raise `InputError` for another text."""
    if text is None:
        return None
    if text.isdigit() and len(text) < _OF_ID:
        if int(text) < LEAST_NIGHTS:
            raise InputError(f"--baseline {text}: expected at least {LEAST_NIGHTS} nights, a run's id or TAG=VALUE")
        return int(text)
    if "=" not in text:
        named = store.run(text)
        if named.run == run.run:
            raise InputError(f"--baseline {text}: is the run that is to be judged. Name another")
        return named
    name, _, value = text.partition("=")
    for info in store.latest_first():
        same = info.plan.scenario_name == run.plan.scenario_name and info.run != run.run
        if same and info.tags.get(name) == value and CONFIRMS not in info.tags:
            return info
    raise InputError(
        f"--baseline {text}: no other run of {run.plan.scenario_name} has that tag. `rigctl runs` lists them"
    )


def against_run(store: Store, nights: Nights, baseline: RunInfo, rules: Rules) -> tuple[list[Shift], int, int]:
    """Return the changes from `baseline` to the last night, the number of series judged, and of those without noise."""
    run, found = nights.runs[-1], []
    values = values_of(store, baseline)
    facts = tuple(setup_changes(baseline, run))
    judged = too_few = 0
    for series in nights.series:
        before, point = values.get(series.subject), series.points[-1]
        if before is None or point.value is None:
            continue
        difference = compared(series.points, before)
        if difference is None:
            too_few += 1
            continue
        judged += 1
        found.append((series, *difference))
    kept = significant([p for _, _, p in found], rules.false_rate)
    chosen = [own for own, is_kept in zip(found, kept, strict=True) if is_kept and _counts(own[1], rules)]
    return (
        [Shift(series, change, run, series.better(change.ratio), facts) for series, change, _ in chosen],
        judged,
        too_few,
    )


def _counts(change: Change, rules: Rules) -> bool:
    return abs(change.ratio - 1) >= rules.bound and abs(log(change.ratio)) >= rules.noises * change.noise
