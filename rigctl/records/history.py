"""Records of a store beside its measurements: accepted levels, and how each night went."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CONFIRMS: Final = "rigctl.confirms"
"""Tag of a run that was made to confirm the news of another: that run's id."""
ANSWER: Final = "rigctl.answer"
"""Tag of a run that has ended: its answer in few words, as it was then."""
BASELINE: Final = "baseline"
"""Tag of a run that others are compared with: it is never pruned."""
OWN_TAGS: Final = "rigctl."
"""Prefix of the names of rigctl's own tags. Users cannot give such tags, and no table shows them."""


def given_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that users gave, sorted by name."""
    return {name: value for name, value in sorted(tags.items()) if not name.startswith(OWN_TAGS)}


def tag_text(name: str, value: str) -> str:
    """Return `firmware=1.2.3`, or the name alone if there is no value."""
    return f"{name}={value}" if value else name


@dataclass(frozen=True, slots=True)
class Accepted:
    """The levels of `run` are the normal ones from then on."""

    run: str
    accepted_at: float  # Unix time, seconds
    who: str  # user@host
    because: str


class NightOutcome(StrEnum):
    """How a night ended, in one word for people and programs. The fields of `Night` have the details."""

    QUIET = "quiet"  # measured, nothing to report
    NEWS = "news"  # measured: something got slower or faster
    UNEXPECTED = "not-as-expected"  # measured: a bound of the scenario's `expect:` was missed
    FAILED = "failed"  # the run failed, or a part of it
    OVERDUE = "overdue"  # it was stopped at its deadline
    BUSY = "busy"  # the rig was locked for all of the time that it was waited for
    MISSED = "missed"  # it did not happen; known at the next one


@dataclass(frozen=True, slots=True)
class Unmet:
    """A bound of the scenario's `expect:` that a run missed."""

    bound: str  # the same in every run: "goodput >= 930M per pair"
    text: str  # one sentence with the measured value


@dataclass(frozen=True, slots=True)
class Night:
    """One night of an unattended scenario. A night that began and has no outcome hung or was killed."""

    scenario: str  # RunPlan.scenario_name
    rig: str  # RunPlan.rig_name
    due_at: float  # Unix time, seconds
    began_at: float | None
    ended_at: float | None
    outcome: NightOutcome | None
    run: str | None  # None: no run was started
    reason: str | None  # one sentence: why it was not measured, or only in part
    unmet: tuple[Unmet, ...] = ()
    news: str | None = None  # one sentence on the largest change
    next_due_at: float | None = None  # when the schedule has the night after it
    in_part: bool = False  # the run failed in some of its tests only
