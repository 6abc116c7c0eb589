"""News of a run: changes of level that its night shows first, those that still stand, and suspicions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import Final

from rigctl.analysis.nights.figures import Subject
from rigctl.analysis.nights.history import Nights, NightSeries, nights, since, values_of
from rigctl.analysis.nights.setup_changes import RESTART, SCENARIO_FILE, SetupChange, Source, setup_changes
from rigctl.analysis.nights.shifts import Shift, Suspected, grouped, shifts_of
from rigctl.base.errors import InputError
from rigctl.model.statistics.changes import LEAST_NIGHTS, Rules, Verdict, compared, judged, significant
from rigctl.records import CONFIRMS, Accepted, RunInfo
from rigctl.store import Store

_DATE_DIGITS: Final = 8
"""A number with this many digits is the beginning of a run's id, as 20261122."""


@dataclass(frozen=True, slots=True)
class Regressions:
    """Verdict on one run. The largest change comes first everywhere; `history` has all, the earliest first."""

    run: RunInfo
    nights: Nights
    rules: Rules
    news: tuple[Shift, ...]
    standing: tuple[Shift, ...] = ()  # found in earlier nights, and not accepted since
    suspected: tuple[Suspected, ...] = ()
    history: tuple[Shift, ...] = ()
    levels: tuple[Accepted, ...] = ()  # accepted ones of these nights
    judged: int = 0  # series with enough nights
    too_few: int = 0  # series that were measured, with too few nights
    baseline: RunInfo | None = None  # None: the nights before
    given: str | None = None  # the baseline as it was given
    visible: float | None = None  # in the noisiest test or pair, a smaller change (a share) would not be found yet

    @property
    def accepted(self) -> Accepted | None:
        """Return the levels that were accepted last."""
        return max(self.levels, key=lambda level: level.accepted_at, default=None)

    @property
    def worse(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.news if not shift.better)

    @property
    def failed(self) -> bool:
        """Return True if something is worse than the accepted level, found now or earlier."""
        return any(not shift.better for shift in (*self.news, *self.standing))

    @property
    def confirmed(self) -> bool:
        """Return True if a second measurement was made."""
        return self.run.run in self.nights.confirmations

    @property
    def to_confirm(self) -> tuple[int, ...]:
        """Return the numbers of the tests, in the run's plan, that a second measurement would decide."""
        seen = [own.series for shift in self.news for own in (*shift.explains, shift)]
        seen += [own.series for own in self.suspected]
        left = [series for series in seen if series.points[-1].second is None]
        pairs = {number for series in left if series.subject.node is None for number in series.tests}
        nodes = [set(series.tests) for series in left if series.subject.node is not None]
        return tuple(sorted(pairs.union(*(tests for tests in nodes if not tests & pairs))))


def news(store: Store, run: RunInfo, *, baseline: str | None = None, rules: Rules | None = None) -> Regressions:
    """Judge `run` by the nights before it.

    `baseline`: a run's id, `TAG=VALUE` or a number of nights, in place of all nights since the last accepted level.
    Runs that confirm `run` (tagged `CONFIRMS`) are taken into account: call this again after `confirmed`.
    Raise `InputError` for an invalid baseline.
    """
    rules = rules or Rules()
    seen = nights(store, run)
    reference = _baseline_of(store, run, baseline)
    if isinstance(reference, RunInfo):
        return replace(_against(store, seen, reference, rules), given=baseline)
    if reference is not None:
        seen = since(seen, len(seen.runs) - 1 - reference)
    return replace(of_nights(seen, store.history.accepted(), rules), given=baseline)


def of_nights(seen: Nights, accepted: Iterable[Accepted], rules: Rules | None = None) -> Regressions:
    """Judge the last of these nights by those before it. `accepted`: levels of any nights."""
    rules = rules or Rules()
    runs = {info.run for info in seen.runs}
    found = {level.run: level for level in accepted if level.run in runs}
    at = [night for night, info in enumerate(seen.runs) if info.run in found]
    verdicts = judged([series.points for series in seen.series], rules, accepted=at, altered=_altered(seen))
    pairs = list(zip(seen.series, verdicts, strict=True))
    events = grouped(
        shift for series, verdict in pairs for shift in shifts_of(series, verdict.changes, seen, rules.bound)
    )
    last, latest = len(seen.runs) - 1, max(at, default=-1)
    # A pair that was found later than its node, or than the sum over its test, is no news of its own.
    earlier = [own for event in events if latest < event.found < last for own in (event, *event.explains)]
    tonight_too = [own for event in events if event.found == last for own in (event, *event.explains)]
    changed = {shift.series.subject for shift in earlier}
    standing = [*earlier, *(shift for shift in tonight_too if shift.series.subject in changed)]
    tonight = [(series, verdict) for series, verdict in pairs if series.points[-1].value is not None]
    return Regressions(
        run=seen.runs[-1],
        nights=seen,
        rules=rules,
        news=_by_size(_net([shift for shift in events if shift.found == last], rules)),
        standing=_by_size(grouped(_net(standing, rules))),
        suspected=_suspected(pairs, [shift.series for shift in tonight_too]),
        history=tuple(sorted(events, key=lambda shift: (shift.change.at, -shift.weight))),
        levels=tuple(found.values()),
        judged=sum(verdict.noise is not None for _, verdict in tonight),
        too_few=sum(verdict.noise is None for _, verdict in tonight),
        visible=max((own.visible for series, own in tonight if own.visible and not series.subject.node), default=None),
    )


def _suspected(pairs: Iterable[tuple[NightSeries, Verdict]], changed: Sequence[NightSeries]) -> tuple[Suspected, ...]:
    """Return suspicions, the largest first, without sums of pairs one of which is suspected or has changed."""
    found = [
        Suspected(series, verdict.suspicion)
        for series, verdict in pairs
        if verdict.suspicion is not None and series.subject.node is None
    ]
    parts = {
        (series.tests, series.subject.metric)
        for series in (*(own.series for own in found), *changed)
        if series.subject.stream is not None
    }
    kept = (
        own
        for own in found
        if own.series.subject.stream is not None or (own.series.tests, own.series.subject.metric) not in parts
    )
    return tuple(sorted(kept, key=lambda own: -abs(log(own.suspicion.ratio))))


def _by_size(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    return tuple(sorted(shifts, key=lambda shift: -shift.weight))


def _net(shifts: Sequence[Shift], rules: Rules) -> list[Shift]:
    """Join the changes of each series: from the level before the first to that after the last."""
    by_subject: dict[Subject, list[Shift]] = {}
    for shift in shifts:
        by_subject.setdefault(shift.series.subject, []).append(shift)
    kept = []
    for own in by_subject.values():
        first, last = (end(own, key=lambda shift: shift.change.at) for end in (min, max))
        change = replace(last.change, at=first.change.at, before=first.change.before)
        if first is last:
            kept.append(first)
        elif abs(change.ratio - 1) >= rules.bound:
            kept.append(replace(last, change=change, since=first.since, facts=first.facts, returns=None))
    return kept


def _altered(seen: Nights) -> list[int]:
    """Return the nights before which something of the rig changed since the last night with a measurement."""
    measured = [
        night for night in range(len(seen.runs)) if any(own.points[night].value is not None for own in seen.series)
    ]
    return [
        night
        for before, night in pairwise(measured)
        if any(map(_is_a_cause, setup_changes(seen.runs[before], seen.runs[night])))
    ]


def _is_a_cause(change: SetupChange) -> bool:
    """Tell whether a change may cause another level. A restart and options of a run do not."""
    if change.source is Source.SCENARIO:
        return change.name == SCENARIO_FILE
    return not (change.source is Source.FACT and change.name == RESTART)


def _baseline_of(store: Store, run: RunInfo, text: str | None) -> RunInfo | int | None:
    """Return the run that `text` names, or a number of nights. Raise `InputError` for another text."""
    if text is None:
        return None
    if text.isdigit() and len(text) < _DATE_DIGITS:
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


def _against(store: Store, seen: Nights, baseline: RunInfo, rules: Rules) -> Regressions:
    """Compare the last night with `baseline`; the noise is that of the nights before."""
    run, values = seen.runs[-1], values_of(store, baseline)
    facts = tuple(setup_changes(baseline, run))
    differences = [
        (series, compared(series.points, before))
        for series in seen.series
        if series.points[-1].value is not None and (before := values.get(series.subject)) is not None
    ]
    judged = [(series, *difference) for series, difference in differences if difference is not None]
    refuted = significant([p for _, _, p in judged], rules.false_rate)
    shifts = [
        Shift(series, change, run, facts)
        for (series, change, _), is_refuted in zip(judged, refuted, strict=True)
        if is_refuted and abs(change.ratio - 1) >= rules.bound and abs(log(change.ratio)) >= rules.noises * change.noise
    ]
    too_few = len(differences) - len(judged)
    return Regressions(run, seen, rules, grouped(shifts), judged=len(judged), too_few=too_few, baseline=baseline)
