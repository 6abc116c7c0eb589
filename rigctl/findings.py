"""A finding: one thing that rigctl reports, with the numbers that show it and what would change it.

Made by the sections of a report; printed by every printer and given whole in JSON.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Final, Literal, TypeAlias

Number: TypeAlias = float | int | str | bool | None
"""A measured value of a finding; `None` is unknown."""

SubjectKind: TypeAlias = Literal["run", "test", "pair", "node", "link", "switch"]


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Weight(IntEnum):
    """How soon a reader needs a finding. The one with `ANSWER` is the headline of a run."""

    ANSWER = 100
    EXPECTED = 95  # expectations of the scenario that are not met
    MISSING = 90  # tests without a result, a run that did not end
    SUSPECT = 80  # results above what is possible, counters that disagree, other programs beside the run
    BOTTLENECK = 70
    COMPARISON = 60  # conditions, sizes, rates against each other
    GRANTED = 50  # what the kernel granted differs from what was requested
    LOSS = 40
    DETAIL = 20
    RIG = 10


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: the run, or tests, pairs, nodes, links or switches by their names."""

    kind: SubjectKind = "run"
    names: tuple[str, ...] = ()


RUN = Subject()
UNMET: Final = "Not as expected: "
"""How the sentence on a missed expectation begins."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence or two. `numbers` maps a name with its unit (`goodput_mbps`) to the measured value."""

    text: str
    weight: Weight
    level: Severity = Severity.NOTE
    subject: Subject = RUN
    numbers: Mapping[str, Number] = field(default_factory=dict)
    remedy: str | None = None  # what would change it


def tests(numbers: Iterable[int]) -> Subject:
    """The tests with these numbers."""
    return Subject("test", tuple(str(number) for number in numbers))


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The weightiest first; equal ones keep their order."""
    return tuple(sorted(findings, key=lambda finding: -finding.weight))
