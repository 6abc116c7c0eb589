"""A finding is a statement of a report, with the measured values behind it and a remedy.

The sections of a report make the findings. Every printer prints them, and the JSON output has all their fields.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import partial
from typing import Any, Final, Literal, TypeAlias

FindingValue: TypeAlias = float | int | str | bool | None  # a measured value of a finding; None if unknown
SubjectKind: TypeAlias = Literal["run", "test", "pair", "node", "link", "switch"]

NOT_MET: Final = "expectation-not-met"
"""Code of the finding that an expectation is not met, which makes the exit code 1."""


class Severity(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Weight(IntEnum):
    """The importance of a finding: the report lists high weights first. The first finding of a run is its headline."""

    FAILED = 120  # the run measured nothing
    IMPOSSIBLE = 115  # results exceed the rate of a link without an explanation
    ANSWER = 100
    EXPECTED = 95  # expectations of the scenario that are not met
    MISSING = 90  # tests failed, the run did not end, or a search or a retest has no result
    SUSPECT = 80  # explained results above the ceiling, counters that disagree, other programs that kept CPUs busy
    BOTTLENECK = 70
    COMPARISON = 60  # comparisons of conditions, sizes or rates
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
class Statement:
    """A part of an answer: it says `text` of `rows`, such as tests, pairs or nodes, and `holds` checks a row.

    `holds` is true of `rows` and false of the other rows of `every`. `tests/golden/test_answers.py` checks this for
    stored and generated runs.
    """

    text: str
    rows: Sequence[Any]
    holds: Callable[[Any], bool]
    every: Sequence[Any] = ()  # all rows that the statement counts; empty: it says nothing about other rows


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of one or two sentences. A finding with weight `ANSWER` is a headline, without a full stop.

    `code` identifies the sentence for programs and tests, as the words may change. `numbers` maps a name with its
    unit (`goodput_mbps`) to the measured value.
    """

    code: str
    text: str
    weight: Weight
    level: Severity = Severity.NOTE
    subject: Subject = RUN
    numbers: Mapping[str, FindingValue] = field(default_factory=dict)
    remedy: str | None = None  # what the reader can do about the finding
    brief: str = ""  # the headline in few words, for lists of runs
    statements: tuple[Statement, ...] = field(default=(), compare=False, repr=False)  # what a headline says of rows


WEIGHTS: Final = {
    Severity.ERROR: Weight.MISSING,
    Severity.WARNING: Weight.SUSPECT,
    Severity.NOTE: Weight.DETAIL,
    Severity.OK: Weight.RIG,
}
"""Maps a level to the weight of a finding whose sentence has no weight."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A template for all findings with the same code: text and remedy (`str.format`), weight and level."""

    code: str
    text: str
    remedy: str | None = None
    weight: Weight | None = None  # if None, the level determines the weight
    level: Severity = Severity.NOTE

    def at(self, level: Severity) -> "Sentence":
        """Return a copy of this sentence with another level."""
        return replace(self, level=level)

    def advising(self, advised: bool) -> "Sentence":
        """Return this sentence, without its remedy if `advised` is false."""
        return self if advised else replace(self, remedy=None)

    def say(
        self, subject: Subject = RUN, numbers: Mapping[str, FindingValue] | None = None, /, **words: object
    ) -> Finding:
        """Return the finding on `subject`; `numbers` and `words` fill in the templates."""
        words = {**(numbers or {}), **words}
        remedy = None if self.remedy is None else self.remedy.format(**words)
        weight = self.weight or WEIGHTS[self.level]
        return Finding(self.code, self.text.format(**words), weight, self.level, subject, numbers or {}, remedy)


good = partial(Sentence, level=Severity.OK)
note = partial(Sentence, level=Severity.NOTE)
warning = partial(Sentence, level=Severity.WARNING)
error = partial(Sentence, level=Severity.ERROR)


def about_nodes(names: Iterable[str]) -> Subject:
    """Return the nodes with these names as the subject of a finding."""
    return Subject("node", tuple(names))


def about_pairs(pairs: Iterable[object]) -> Subject:
    """Return pairs of nodes as the subject of a finding, by their names."""
    return Subject("pair", tuple(map(str, pairs)))


def tests(numbers: Iterable[int]) -> Subject:
    """Return the tests with these numbers as the subject of a finding."""
    return Subject("test", tuple(str(number) for number in numbers))


def by_weight(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by weight, the heaviest first; findings of equal weight keep their order."""
    return tuple(sorted(findings, key=lambda finding: -finding.weight))
