"""Records of a store that are not measurements: accepted levels, and the outcome of each night."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CONFIRMS: Final = "rigctl.confirms"
"""Tag of a run that confirms the changes of another run; its value is the id of the other run."""
ANSWER: Final = "rigctl.answer"
"""Tag of a run that has ended; its value is the headline in few words, as it was at the end."""
BASELINE: Final = "baseline"
"""Tag of a run with which others are compared; `prune` keeps such runs."""
OWN_TAGS: Final = "rigctl."
"""Prefix of the tags that rigctl sets. Users cannot set tags with this prefix, and tables do not show them."""


def user_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that users set, sorted by name."""
    return {name: value for name, value in sorted(tags.items()) if not name.startswith(OWN_TAGS)}


def tag_text(name: str, value: str) -> str:
    """Return a tag as `firmware=1.2.3`, or only its name if the value is empty."""
    return f"{name}={value}" if value else name


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The record that a user accepted the levels of `run` as normal."""

    run: str
    accepted_at: float  # Unix time in s
    who: str  # user@host who accepted the levels
    because: str


class NightOutcome(StrEnum):
    """How a night ended, in one word for people and programs. The fields of `Night` have the details."""

    QUIET = "quiet"  # measured, without a change to report
    NEWS = "news"  # measured, and a figure changed
    UNEXPECTED = "not-as-expected"  # measured, and a bound of the scenario's `expect:` is not met
    FAILED = "failed"  # all or a part of the run failed
    OVERDUE = "overdue"  # the run was stopped at its deadline
    BUSY = "busy"  # the rig was locked until the waiting time was over
    MISSED = "missed"  # the night did not run, as the next night found


@dataclass(frozen=True, slots=True)
class Unmet:
    """A bound of the scenario's `expect:` that a run did not meet."""

    bound: str  # text of the bound, the same in every run: "goodput >= 930M per pair"
    text: str  # a sentence with the measured value


@dataclass(frozen=True, slots=True)
class Night:
    """One scheduled run of a scenario. A night that began and has no outcome is still running, hung or was killed."""

    scenario: str  # name of the scenario (RunPlan.scenario_name)
    rig: str  # name of the rig (RunPlan.rig_name)
    due_at: float  # time by the schedule, Unix time in s
    began_at: float | None
    ended_at: float | None
    outcome: NightOutcome | None
    run: str | None  # id of the run; None if none was started
    reason: str | None  # a sentence: why not all was measured
    unmet: tuple[Unmet, ...] = ()
    news: str | None = None  # a sentence on the largest change
    next_due_at: float | None = None  # time of the next night by the schedule
    in_part: bool = False  # True if only some tests of the run failed
