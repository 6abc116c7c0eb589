"""A finding: one thing that rigctl reports, with the numbers that show it and what would change it.

Made by the sections of a report; printed by every printer and given whole in JSON.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import partial
from typing import Final, Literal, TypeAlias

Number: TypeAlias = float | int | str | bool | None
"""A measured value of a finding; `None` is unknown."""

SubjectKind: TypeAlias = Literal["run", "test", "pair", "node", "link", "switch"]


NOT_MET: Final = "expectation-not-met"
"""Code of an expectation that was missed: the reason of exit code 1."""


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Weight(IntEnum):
    """How soon a reader needs a finding. The first finding of a run is its headline: the answer."""

    FAILED = 120  # a run that measured nothing
    IMPOSSIBLE = 115  # results above what a link can carry, without an explanation
    ANSWER = 100
    EXPECTED = 95  # expectations of the scenario that are not met
    MISSING = 90  # tests that failed, a run that did not end, a search or a retest without a result
    SUSPECT = 80  # results above the ceiling that are explained, counters that disagree, other programs beside the run
    BOTTLENECK = 70
    COMPARISON = 60  # conditions, sizes, rates against each other
    GRANTED = 50  # what the kernel granted differs from what was requested
    LOSS = 40
    DETAIL = 20
    RIG = 10


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a finding: the run, or tests, pairs, nodes, links or switches by their names."""

    kind: SubjectKind = "run"
    names: tuple[str, ...] = ()


RUN = Subject()


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence or two; an answer is a headline without a full stop.

    `code` names the sentence for programs and tests: its words may change. `numbers` maps a name with its unit
    (`goodput_mbps`) to the measured value.
    """

    code: str
    text: str
    weight: Weight
    level: Severity = Severity.NOTE
    subject: Subject = RUN
    numbers: Mapping[str, Number] = field(default_factory=dict)
    remedy: str | None = None  # what the reader can do about the finding
    brief: str = ""  # an answer in few words, for lists of runs


WEIGHTS: Final = {
    Severity.ERROR: Weight.MISSING,
    Severity.WARNING: Weight.SUSPECT,
    Severity.NOTE: Weight.DETAIL,
    Severity.OK: Weight.RIG,
}
"""The weight of a finding whose sentence has none."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """The findings of one code: their text and remedy as templates (`str.format`), and how grave they are."""

    code: str
    text: str
    remedy: str | None = None
    weight: Weight | None = None  # None: by the level
    level: Severity = Severity.NOTE

    def at(self, level: Severity) -> "Sentence":
        """Return the sentence for a finding of another level."""
        return replace(self, level=level)

    def advising(self, advised: bool) -> "Sentence":
        """Return the sentence, without its remedy unless `advised`."""
        return self if advised else replace(self, remedy=None)

    def say(self, subject: Subject = RUN, numbers: Mapping[str, Number] | None = None, /, **words: object) -> Finding:
        """Return the finding on `subject`; numbers and words fill the templates."""
        words = {**(numbers or {}), **words}
        remedy = None if self.remedy is None else self.remedy.format(**words)
        weight = self.weight or WEIGHTS[self.level]
        return Finding(self.code, self.text.format(**words), weight, self.level, subject, numbers or {}, remedy)


good = partial(Sentence, level=Severity.OK)
note = partial(Sentence, level=Severity.NOTE)
warning = partial(Sentence, level=Severity.WARNING)
error = partial(Sentence, level=Severity.ERROR)


def about_nodes(names: Iterable[str]) -> Subject:
    """Return the subject of nodes with these names."""
    return Subject("node", tuple(names))


def about_pairs(pairs: Iterable[object]) -> Subject:
    """Return the subject of these pairs, by their names."""
    return Subject("pair", tuple(map(str, pairs)))


def tests(numbers: Iterable[int]) -> Subject:
    """Return the subject of tests with these numbers."""
    return Subject("test", tuple(str(number) for number in numbers))


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the weightiest first; equal ones keep their order."""
    return tuple(sorted(findings, key=lambda finding: -finding.weight))
