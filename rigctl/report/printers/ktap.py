"""Prints verdicts as KTAP version 1, which tools for the kernel's selftests read.

Source: Documentation/dev-tools/ktap.rst of Linux. A test with subtests is the whole KTAP of these, two blanks deeper,
and then its own result, which fails if a subtest fails.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.base.texts import printable, printable_lines
from rigctl.report.printers.junit import Case

_INDENT: Final = "  "
_DIRECTIVES: Final = {"error": " # ERROR", "skipped": " # SKIP"}
"""Directive of an outcome; the first line of the case's text follows as diagnostic data."""


@dataclass(frozen=True, slots=True)
class Result:
    """A case with its subtests. `notes` are printed as diagnostics before the result."""

    case: Case
    parts: Sequence["Result"] = ()
    notes: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        return self.case.outcome in ("passed", "skipped") and all(part.ok for part in self.parts)


def ktap(title: str, results: Sequence[Result]) -> str:
    """Return a KTAP document with these results, below a diagnostic line with the title."""
    return "".join(f"{line}\n" for line in _document(results, title))


def _document(results: Sequence[Result], title: str = "") -> Iterator[str]:
    yield "KTAP version 1"
    yield f"1..{len(results)}"
    if title:
        yield _diagnostic(title)
    for number, result in enumerate(results, 1):
        if result.parts:
            yield from (f"{_INDENT}{line}" for line in _document(result.parts))
        yield from map(_diagnostic, result.notes)
        yield from _result(number, result)


def _result(number: int, result: Result) -> Iterator[str]:
    case = result.case
    first, _, rest = printable_lines(case.text).partition("\n")
    directive = _DIRECTIVES.get(case.outcome, "")
    if not directive and first:
        yield _diagnostic(first)
    yield from map(_diagnostic, rest.splitlines())
    data = f" {_plain(first)}" if directive and first else ""
    yield f"{'ok' if result.ok else 'not ok'} {number} {_plain(case.name)}{directive}{data}"


def _diagnostic(text: str) -> str:
    return f"# {printable(text)}".rstrip()


def _plain(text: str) -> str:
    """Return `text` in one line, with `?` for the sign that begins a directive."""
    return printable(" ".join(text.split())).replace("#", "?")
