"""Verdicts as JUnit XML, which CI systems show beside a change: https://github.com/testmoapp/junitxml."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rigctl.base.texts import printable, printable_lines

if TYPE_CHECKING:
    from junitparser import TestCase, TestSuite

Outcome: TypeAlias = Literal["passed", "failed", "error", "skipped"]

_NO_CHARACTERS: Final = str.maketrans({"\ufffe": "?", "\uffff": "?"})
"""Not allowed in XML 1.0 (section 2.2), beside the control characters and surrogates that `printable` replaces."""


@dataclass(frozen=True, slots=True)
class Case:
    """One verdict. `failed`: measured, and not as expected; `error`: could not be measured."""

    name: str
    classname: str  # what CI systems group by: the run's scenario and rig, say
    outcome: Outcome
    text: str = ""  # its first line is the message
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The verdicts of one run."""

    name: str
    cases: Sequence[Case]
    started_at: float  # Unix time


def junit(suites: Sequence[Suite]) -> str:
    """The document of `suites`, in their order. Control characters become `?`."""
    from junitparser import JUnitXml

    document = JUnitXml(name="rigctl")
    for suite in suites:
        document.append(_suite(suite))
    document.update_statistics()
    # Jenkins' schema has no such attribute here; it is the sum of those of the suites.
    del document._elem.attrib["skipped"]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document.tostring().decode()}\n'


def _suite(suite: Suite) -> "TestSuite":
    from junitparser import TestSuite

    made = TestSuite(_line(suite.name))
    # Without a zone, as Ant and Surefire write it.
    made.timestamp = datetime.fromtimestamp(suite.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    made.add_testcases([_case(case) for case in suite.cases])
    return made


def _case(case: Case) -> "TestCase":
    from junitparser import Error, Failure, Skipped, TestCase

    # Surefire's times have three decimals.
    seconds = None if case.seconds is None else round(case.seconds, 3)
    made = TestCase(_line(case.name), _line(case.classname), seconds)
    text = _lines(case.text)
    if case.outcome == "passed":
        if text:
            made.system_out = text
        return made
    kinds = {"failed": Failure, "error": Error, "skipped": Skipped}
    result = kinds[case.outcome](text.partition("\n")[0], case.outcome)
    result.text = text
    made.result = result
    return made


def _line(text: str) -> str:
    return printable(text.replace("\n", " ")).translate(_NO_CHARACTERS)


def _lines(text: str) -> str:
    return printable_lines(text).translate(_NO_CHARACTERS)
