"""Prints verdicts as JUnit XML, which CI systems show beside a change: https://github.com/testmoapp/junitxml."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias
from xml.etree.ElementTree import Element, SubElement, tostring

from rigctl.base.texts import printable, printable_lines

CaseOutcome: TypeAlias = Literal["passed", "failed", "error", "skipped"]

_RESULTS: Final = {"failed": "failure", "error": "error", "skipped": "skipped"}
"""XML element of each outcome; `passed` has none."""
_NO_CHARACTERS: Final = str.maketrans({"\ufffe": "?", "\uffff": "?"})
"""Characters that XML 1.0 (section 2.2) forbids and that `printable` does not replace."""


@dataclass(frozen=True, slots=True)
class Case:
    """One verdict. `failed`: measured, but not as expected. `error`: could not be measured."""

    name: str
    classname: str  # group of the case in CI systems, such as scenario and rig
    outcome: CaseOutcome
    text: str = ""  # details, whose first line becomes the message
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The verdicts of one run, as JUnit cases."""

    name: str
    cases: Sequence[Case]
    started_at: float  # start of the run, as Unix time


def junit(suites: Sequence[Suite]) -> str:
    """Return a JUnit XML document of the suites, in their order. Control characters become `?`."""
    document = Element("testsuites", name="rigctl")
    document.extend(_suite(suite) for suite in suites)
    # Jenkins' schema lacks `skipped` on this element; Jenkins sums it over the suites.
    for name in ("tests", "failures", "errors"):
        document.set(name, str(sum(int(suite.attrib[name]) for suite in document)))
    document.set("time", _total(float(suite.attrib["time"]) for suite in document))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(document, encoding="unicode")}\n'


def _suite(suite: Suite) -> Element:
    outcomes = Counter(case.outcome for case in suite.cases)
    element = Element(
        "testsuite",
        name=_line(suite.name),
        # Ant and Surefire write the time without a zone.
        timestamp=datetime.fromtimestamp(suite.started_at, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        tests=str(len(suite.cases)),
        errors=str(outcomes["error"]),
        failures=str(outcomes["failed"]),
        skipped=str(outcomes["skipped"]),
    )
    element.extend(_case(case) for case in suite.cases)
    element.set("time", _total(float(case.attrib["time"]) for case in element if "time" in case.attrib))
    return element


def _total(seconds: Iterable[float]) -> str:
    return str(round(sum(seconds), 3))


def _case(case: Case) -> Element:
    element = Element("testcase", name=_line(case.name), classname=_line(case.classname))
    if case.seconds is not None:
        element.set("time", str(round(float(case.seconds), 3)))  # Surefire writes times with three decimals
    text = _lines(case.text)
    if case.outcome != "passed":
        message = text.partition("\n")[0]
        result = SubElement(element, _RESULTS[case.outcome], {"message": message} if message else {}, type=case.outcome)
        result.text = text
    elif text:
        SubElement(element, "system-out").text = text
    return element


def _line(text: str) -> str:
    return printable(text.replace("\n", " ")).translate(_NO_CHARACTERS)


def _lines(text: str) -> str:
    return printable_lines(text).translate(_NO_CHARACTERS)
