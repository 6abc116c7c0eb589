"""Holds the answer of a report to account: each number is traced, each statement holds of the rows that it names."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from rigctl.findings import Finding, Weight
from rigctl.records import RunPlan
from rigctl.report.blocks import Chart, Document, Verbatim

_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_COUNT: Final = re.compile(r"(\d+)(?: of (\d+))? (?:tests|pairs|nodes|settings|sizes)\b")
_SHARES: Final = {"93", "97"}
"""The answer on blast tests says from which size on these shares are reached."""


def answer_of(report: Document) -> Finding:
    return next(found for found in report.findings if found.weight is Weight.ANSWER)


def untraced(report: Document, plan: RunPlan) -> list[str]:
    """Return the numbers of the answer that are in no table and no other text of the report, and count nothing."""
    answer = answer_of(report)
    shown = " ".join([*_texts(report.results), *_texts(report.sections)])
    shown = " ".join([shown, *(found.text for found in report.findings if found is not answer)])
    numbers = {text.replace(",", "") for text in _NUMBER.findall(shown)}
    values = [float(text) for text in numbers]
    counts = {len(rows) for one in answer.statements for rows in (one.rows, one.every)}
    counts |= {len(plan.cells), len(plan.links), *(len(cell.pairs) for cell in plan.cells)}
    known = numbers | _SHARES | {f"{100 * plan.max_loss:g}"}
    rest = _COUNT.sub(
        lambda count: "" if {*map(int, filter(None, count.groups()))} <= counts else count[0], answer.text
    )
    missing = []
    for match in _NUMBER.finditer(rest):
        number, unit = match[0].replace(",", ""), rest[match.end() :]
        kibibytes = unit.startswith(("K", " KiB")) and str(int(float(number) * 1024)) in numbers
        megabytes = " MB/s" in unit[:6] and any(f"{value / 1e6:.1f}" == number for value in values)
        if number not in known and not kibibytes and not megabytes:
            missing.append(match[0])
    return missing


def _texts(part: Any) -> Iterator[str]:
    """Yield the texts of a part of a report that readers see, without files and without descriptions of charts."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _texts(each)
    elif is_dataclass(part) and not isinstance(part, Chart | Verbatim):
        for field in fields(part):
            yield from _texts(getattr(part, field.name))


def false_statements(answer: Finding) -> list[str]:
    """Return the statements of an answer that do not hold of their rows, or hold of rows that they leave out."""
    wrong = []
    for one in answer.statements:
        own = {id(row) for row in one.rows}
        left_out = [row for row in one.every if id(row) not in own]
        is_said = one.text.casefold() in answer.text.casefold()
        if not (is_said and all(map(one.holds, one.rows)) and not any(map(one.holds, left_out))):
            wrong.append(one.text)
    return wrong
