"""Evaluates the nights of a scenario on a rig: calendar, news, and the sentence on the latest night."""

from calendar import monthcalendar
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from rigctl.analysis.nights.history import Nights
from rigctl.analysis.nights.regressions import Regressions, Shift, judge_nights
from rigctl.base.values import group_by
from rigctl.findings.text import plural, upper_first
from rigctl.records import CONFIRMS, Acceptance, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.report.blocks import Document
from rigctl.report.regressions import regressions_document, shift_text
from rigctl.site.folder import ScenarioOnRig, page_of_run

_MOST_MONTHS: Final = 13


@dataclass(frozen=True, slots=True)
class SiteRun:
    """A run with a page on the site. `unmet` has the bounds of `expect:` that the run missed."""

    info: RunInfo
    unmet: tuple[Unmet, ...] = ()

    @property
    def scenario(self) -> ScenarioOnRig:
        return ScenarioOnRig(self.info.plan.scenario_name, self.info.plan.rig_name)

    @property
    def run(self) -> str:
        return self.info.run

    @property
    def is_night(self) -> bool:
        """Return True unless the run is a second measurement that confirms a night."""
        return CONFIRMS not in self.info.tags


class NightState(StrEnum):
    """State of a night, with its calendar sign and legend text. The most urgent state comes first."""

    sign: str
    words: str

    def __new__(cls, value: str, sign: str, words: str) -> "NightState":
        state = str.__new__(cls, value)
        state._value_, state.sign, state.words = value, sign, words
        return state

    UNEXPECTED = "unexpected", "!", "not as expected"  # some bound of `expect:` was missed
    WORSE = "worse", "▼", "worse"  # a lasting change for the worse began in this night
    NEWS = "news", "?", "news of that night only"  # a change that later nights do not confirm
    FAILED = "failed", "×", "failed"  # includes runs ended at their deadline, and a rig in use
    MISSED = "missed", "–", "missed"
    PARTLY = "partly", "~", "measured in part"  # some tests were not measured
    BETTER = "better", "▲", "better"
    OPEN = "open", "…", "running, or ended without a result"
    MEASURED = "measured", "", "measured, nothing new"

    @property
    def urgency(self) -> int:
        """Return the rank among all states; 0 is the most urgent."""
        return list(NightState).index(self)

    @property
    def whole(self) -> bool:
        """Return True if a night in this state measured all tests."""
        return self not in {NightState.FAILED, NightState.MISSED, NightState.PARTLY, NightState.OPEN}


_OUTCOMES: Final[dict[NightOutcome | None, NightState]] = {
    None: NightState.OPEN,
    NightOutcome.QUIET: NightState.MEASURED,
    NightOutcome.NEWS: NightState.NEWS,
    NightOutcome.UNEXPECTED: NightState.UNEXPECTED,
    NightOutcome.FAILED: NightState.FAILED,
    NightOutcome.OVERDUE: NightState.FAILED,
    NightOutcome.BUSY: NightState.FAILED,
    NightOutcome.MISSED: NightState.MISSED,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One night. `at`: when it was due, else when it began. `since`: first of the nights that miss the same bounds."""

    at: float
    state: NightState
    run: str | None
    text: str
    unmet: tuple[Unmet, ...] = ()
    since: date | None = None

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.at).date()

    @property
    def what(self) -> str:
        """Return the outcome as text: `not as expected since 2026-11-03: goodput 812 Mbit/s …`."""
        since = "" if self.since in (None, self.day) else f" since {self.since}"
        return f"{self.state.words}{since}{f': {self.text}' if self.text else ''}"

    @property
    def label(self) -> str:
        """Return the day and the outcome: `2026-11-05, failed: the scenario cannot be read`."""
        return f"{self.day}, {self.what}"


def slots(runs: Iterable[SiteRun], nights: Iterable[Night], found: Mapping[str, Sequence[Shift]]) -> tuple[Slot, ...]:
    """Return the nights of a scenario on a rig, earliest first: its `runs`, and those of `nights` without such a run.

    `nights` are those that `rigctl nightly` stored. `found` maps a run's id to changes that began in it, worst first.
    """
    due = {night.run: night for night in nights if night.run is not None}
    every = [_of_run(run, due.get(run.run), found.get(run.run, ())) for run in runs if run.is_night]
    known = {slot.run for slot in every}
    for night in nights:
        if night.run is None or night.run not in known:  # the night has no run, or its run is no longer in the store
            text = night.reason or _join(night.unmet, night.news or "")
            every.append(Slot(night.due_at, _OUTCOMES[night.outcome], None, text, night.unmet))
    return tuple(_with_first_misses(sorted(every, key=lambda slot: (slot.at, slot.run or ""))))


def _of_run(run: SiteRun, night: Night | None, found: Sequence[Shift]) -> Slot:
    more = f", and {plural(len(found) - 1, 'more change')}" if len(found) > 1 else ""
    words = f"{shift_text(found[0])}{more}" if found else ""
    outcome = None if night is None else night.outcome
    unmet = run.unmet if night is None or outcome is None else night.unmet
    news = None if night is None else night.news
    state, text = NightState.MEASURED, words
    if run.info.status is RunStatus.RUNNING:
        state, unmet = NightState.OPEN, ()
    elif night is not None and outcome is not None and not _OUTCOMES[outcome].whole:
        state, text = NightState.PARTLY, night.reason or ""
    elif run.info.status is not RunStatus.COMPLETE:
        state = NightState.PARTLY
    elif unmet:
        state, text = NightState.UNEXPECTED, _join(unmet, words)
    elif found:
        state = NightState.BETTER if all(shift.better for shift in found) else NightState.WORSE
    elif news:
        state, text = NightState.NEWS, news
    return Slot(run.info.started_at if night is None else night.due_at, state, run.run, text, unmet)


def _join(unmet: Sequence[Unmet], news: str) -> str:
    return " ".join(filter(None, [*(own.text for own in unmet), news]))


def _with_first_misses(slots: Sequence[Slot]) -> Iterator[Slot]:
    """Yield the nights with `since` set to the first of successive nights that missed the same bounds."""
    last: Slot | None = None  # the last night that measured all tests
    for slot in slots:
        own = slot
        if slot.state is NightState.UNEXPECTED:
            known = set() if last is None else {own.bound for own in last.unmet}
            goes_on = {own.bound for own in slot.unmet} <= known
            own = replace(slot, since=last.since if last is not None and goes_on else slot.day)
        if slot.state.whole:
            last = own
        yield own


Week: TypeAlias = list[tuple[int, Slot | None]]
"""Seven days from Monday: day of the month (0 for a day of another month), and the most urgent night of that day."""


def months(slots: Sequence[Slot]) -> list[tuple[str, list[Week]]]:
    """Return name and weeks of each month from the first night to the last; at most the last `_MOST_MONTHS` months."""
    urgent: dict[date, Slot] = {}
    for slot in sorted(slots, key=lambda slot: (slot.state.urgency, -slot.at)):
        urgent.setdefault(slot.day, slot)
    if not urgent:
        return []
    first, last = (12 * day.year + day.month - 1 for day in (min(urgent), max(urgent)))
    found = []
    for number in range(max(first, last - _MOST_MONTHS + 1), last + 1):
        year, month = number // 12, number % 12 + 1
        weeks = [
            [(day, urgent.get(date(year, month, day)) if day else None) for day in week]
            for week in monthcalendar(year, month)
        ]
        found.append((f"{date(year, month, 1):%B %Y}", weeks))
    return found


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """News of a night. `key` never changes, `page` is the page to link, `latest` is True for the latest night."""

    key: str
    at: float  # Unix time of the news
    state: NightState
    title: str
    sentences: tuple[str, ...]
    page: str
    latest: bool = False


def news_of(
    scenario: ScenarioOnRig, slots: Sequence[Slot], found: Mapping[str, Sequence[Shift]], ended: Mapping[str, float]
) -> Iterator[FeedEntry]:
    """Yield the news, earliest first. `found` has changes by run id, `ended` the Unix time at which each run ended."""
    for slot in slots:
        shifts = found.get(slot.run or "", ())
        goes_on = slot.state is NightState.UNEXPECTED and slot.since != slot.day
        if slot.state in {NightState.OPEN, NightState.MEASURED} or (goes_on and not shifts):
            continue
        sentences = [own.text for own in slot.unmet] + [f"{shift_text(shift)}." for shift in shifts]
        told = slot.text if slot.state in {NightState.WORSE, NightState.BETTER} else slot.what
        yield FeedEntry(
            f"run {slot.run}" if slot.run else f"{scenario.name} {scenario.rig} {slot.at:.0f}",
            ended.get(slot.run or "", slot.at),
            slot.state,
            f"{scenario}, {slot.day}: {told}",
            tuple(sentences) or (slot.label.rstrip(".") + ".",),
            page_of_run(slot.run) if slot.run else scenario.page,
            slot is slots[-1],
        )


@dataclass(frozen=True, slots=True)
class ScenarioNights:
    """Evaluation of a scenario on a rig. `regressions` is None if no run ended; `document` reports the latest run."""

    scenario: ScenarioOnRig
    runs: tuple[SiteRun, ...]  # runs of the scenario, earliest first
    regressions: Regressions | None
    slots: tuple[Slot, ...]
    news: tuple[FeedEntry, ...]
    document: Document | None
    answer: str  # sentence on the latest night; empty if there are too few nights for a verdict
    is_nightly: bool  # True if `rigctl nightly` stored nights of the scenario
    next_due_at: float | None  # Unix time at which the next night is due; None: no schedule

    @property
    def title(self) -> str:
        titles = [run.info.plan.title for run in self.runs if run.is_night]
        return (titles[-1] if titles else "") or self.scenario.name

    @property
    def latest(self) -> Slot | None:
        return self.slots[-1] if self.slots else None

    @property
    def state(self) -> NightState:
        """Return the state of the latest night; WORSE instead of MEASURED while a worse level is not accepted."""
        state = NightState.MEASURED if self.latest is None else self.latest.state
        return NightState.WORSE if state is NightState.MEASURED and self.standing else state

    @property
    def standing(self) -> int:
        """Return the number of changes for the worse that nobody accepted."""
        return sum(not shift.better for shift in self.regressions.standing) if self.regressions else 0

    @property
    def result(self) -> str:
        """Return the first sentence of the latest run's report; empty without a report."""
        return self.document.answer if self.document else ""


def judge_scenario(
    scenario: ScenarioOnRig,
    runs: Sequence[SiteRun],
    nights: Sequence[Night],
    seen: Nights | None,
    accepted: Iterable[Acceptance],
    latest: Document | None,
    now: float,
) -> ScenarioNights:
    """Return the evaluation of a scenario on a rig. `runs` are earliest first; `latest` is the latest night's report.

    A run that began after `now` was recorded with a wrong clock, so it does not count as a night.
    """
    regressions = judge_nights(seen, accepted) if seen is not None and seen.runs else None
    names = [] if seen is None else [info.run for info in seen.runs]
    shifts = sorted(regressions.history if regressions else (), key=lambda shift: (shift.better, -shift.weight))
    found = group_by(shifts, lambda shift: names[shift.found])
    every = slots([run for run in runs if run.info.started_at <= now], nights, found)
    ended = {run.run: run.info.ended_at or run.info.started_at for run in runs}
    return ScenarioNights(
        scenario,
        tuple(runs),
        regressions,
        every,
        tuple(news_of(scenario, every, found, ended)),
        latest,
        _answer(every[-1] if every else None, regressions, latest.answer if latest else ""),
        bool(nights),
        next((night.next_due_at for night in reversed(nights) if night.next_due_at is not None), None),
    )


def latest_ended(runs: Sequence[SiteRun], now: float) -> RunInfo | None:
    """Return the latest night that has ended and did not begin after `now`."""
    ended = [run.info for run in runs if run.is_night and run.info.status is not RunStatus.RUNNING]
    return next((info for info in reversed(ended) if info.started_at <= now), None)


def _answer(latest: Slot | None, regressions: Regressions | None, result: str) -> str:
    """Return the sentence on the latest night: its changes of level, or its outcome if it failed or missed a bound."""
    if latest is not None and latest.state not in {NightState.MEASURED, NightState.WORSE, NightState.BETTER}:
        what, rest = latest.what, ""
        if result and result in latest.text:
            what, rest = replace(latest, text="").what, latest.text.replace(result, "")
        return " ".join(f"{upper_first(what).rstrip('.')}. {rest}".split())
    if regressions is None:
        return "No run has ended."
    return regressions_document(regressions).answer if regressions.judged else ""
