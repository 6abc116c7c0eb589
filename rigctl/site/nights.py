"""The nights of a course as its calendar has them: measured, failed, missed; never one that is not known to be due."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from rigctl.analysis.shifts import Shift
from rigctl.records import Night, NightOutcome, RunStatus
from rigctl.site.made import MadeRun


class State(StrEnum):
    """How a night went, as its field in the calendar shows it."""

    MEASURED = "measured"  # nothing new
    WORSE = "worse"  # a change for the worse was found in it
    BETTER = "better"
    NEWS = "news"  # an expectation was not met, or a variant is worse
    PARTLY = "partly"  # some tests were not measured
    FAILED = "failed"  # not measured: failed, stopped at its deadline, or the rig was in use
    MISSED = "missed"
    OPEN = "open"  # it runs, or its controller died

    @property
    def whole(self) -> bool:
        return self in _WHOLE


_WHOLE: Final = frozenset({State.MEASURED, State.WORSE, State.BETTER, State.NEWS})
WORDS: Final[dict[State, str]] = {
    State.MEASURED: "measured, nothing new",
    State.WORSE: "worse",
    State.BETTER: "better",
    State.NEWS: "an expectation was not met",
    State.PARTLY: "measured in part",
    State.FAILED: "failed",
    State.MISSED: "missed",
    State.OPEN: "running, or ended without a result",
}
SIGNS: Final[dict[State, str]] = {
    State.MEASURED: "",
    State.WORSE: "▼",
    State.BETTER: "▲",
    State.NEWS: "!",
    State.PARTLY: "~",
    State.FAILED: "×",
    State.MISSED: "–",
    State.OPEN: "…",
}
_OUTCOMES: Final[dict[NightOutcome, State]] = {
    NightOutcome.QUIET: State.MEASURED,
    NightOutcome.NEWS: State.NEWS,
    NightOutcome.FAILED: State.FAILED,
    NightOutcome.OVERDUE: State.FAILED,
    NightOutcome.BUSY: State.FAILED,
    NightOutcome.MISSED: State.MISSED,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One night: when it was due, or began; its run, where it came to one; what there is to say of it."""

    at: float
    state: State
    run: str | None
    text: str

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.at).date()

    @property
    def sign(self) -> str:
        return SIGNS[self.state]

    @property
    def label(self) -> str:
        """`2026-11-05, failed: the scenario cannot be read`."""
        return f"{self.day}, {WORDS[self.state]}{f': {self.text}' if self.text else ''}"


def slots(
    runs: Iterable[MadeRun], nights: Iterable[Night], found: Mapping[str, Sequence[Shift]], words: Mapping[str, str]
) -> tuple[Slot, ...]:
    """The nights of a course, the earliest first.

    `nights`: what the store keeps of those that a timer started. `found`: of a run, the changes that its night showed
    first, and `words` the sentence on them.
    """
    due = {night.run: night for night in nights if night.run is not None}
    made = [_of_run(run, due.get(run.run), found.get(run.run, ()), words) for run in runs if run.is_night]
    known = {slot.run for slot in made}
    made += [
        Slot(night.due_at, _state(night), None, night.reason or "")
        for night in nights
        if night.run not in known or night.run is None
    ]
    return tuple(sorted(made, key=lambda slot: (slot.at, slot.run or "")))


def _of_run(run: MadeRun, night: Night | None, found: Sequence[Shift], words: Mapping[str, str]) -> Slot:
    at = run.started_at if night is None else night.due_at
    text = words.get(run.run, "")
    if run.status is RunStatus.RUNNING:
        return Slot(at, State.OPEN, run.run, text)
    if night is not None and night.outcome not in {None, NightOutcome.QUIET, NightOutcome.NEWS}:
        return Slot(at, State.PARTLY, run.run, night.reason or "")
    if run.status is not RunStatus.COMPLETE:
        return Slot(at, State.PARTLY, run.run, text)
    if found:
        return Slot(at, State.BETTER if all(shift.better for shift in found) else State.WORSE, run.run, text)
    if night is not None and night.outcome is NightOutcome.NEWS and "expectation" in (night.reason or ""):
        return Slot(at, State.NEWS, run.run, night.reason or "")
    return Slot(at, State.MEASURED, run.run, "")


def _state(night: Night) -> State:
    return State.OPEN if night.outcome is None else _OUTCOMES[night.outcome]
