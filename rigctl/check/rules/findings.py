"""How rules make findings: about one node or path first, then those that say the same of several as one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeAlias, TypeVar

from rigctl.check.records import Seen
from rigctl.findings import Finding, Number, Severity, Subject, Weight

T = TypeVar("T")
Rule: TypeAlias = Callable[[Seen], Iterable[Finding]]

WEIGHTS: Final = {
    Severity.ERROR: Weight.MISSING,
    Severity.WARNING: Weight.SUSPECT,
    Severity.NOTE: Weight.DETAIL,
    Severity.OK: Weight.RIG,
}
MOST_NAMES: Final = 6
_PLURALS: Final[dict[str, str]] = {"node": "nodes", "pair": "paths"}


def found(
    level: Severity,
    subject: Subject,
    text: str,
    remedy: str | None = None,
    numbers: Mapping[str, Number] | None = None,
) -> Finding:
    """A finding whose text goes on after its subject's name: "has no link"."""
    return Finding(text, WEIGHTS[level], level, subject, numbers or {}, remedy)


def node(*names: str) -> Subject:
    return Subject("node", names)


def pair(source: str, destination: str) -> Subject:
    return Subject("pair", (f"{source} -> {destination}",))


def most_common(values: Mapping[str, T]) -> T | None:
    """The value that more nodes have than any other; None where two values are as common: neither is the usual one."""
    counts = Counter(values.values()).most_common(2)
    return None if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]) else counts[0][0]


def by_value(values: Mapping[str, object]) -> str:
    """`1400 on a and 1500 on b, c`."""
    names: dict[object, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    return " and ".join(f"{value} on {_listed('node', own)}" for value, own in names.items())


def together(findings: Iterable[Finding], everybody: Mapping[str, int]) -> Iterator[Finding]:
    """Those that say the same of several subjects as one, in the order of the first; names in front of the text.

    `everybody`: how many subjects there are of each kind.
    """

    def saying(finding: Finding) -> tuple[str, str, str, str]:
        return finding.level, finding.subject.kind, finding.text, finding.remedy or ""

    order: dict[tuple[str, str, str, str], int] = {}
    listed = [(order.setdefault(saying(finding), len(order)), finding) for finding in findings]
    for _, members in groupby(sorted(listed, key=lambda each: each[0]), key=lambda each: each[0]):
        same = [finding for _, finding in members]
        names = tuple(dict.fromkeys(name for finding in same for name in finding.subject.names))
        first = same[0]
        every = len(names) > 2 and len(names) == everybody.get(first.subject.kind)
        who = f"all {len(names)} {_PLURALS[first.subject.kind]}" if every else _listed(first.subject.kind, names)
        text = f"{who}: {first.text}" if names else first.text
        numbers = dict(first.numbers) if len(same) == 1 else _by_name(same)
        yield replace(first, text=text, subject=Subject(first.subject.kind, names), numbers=numbers)


def _by_name(findings: Sequence[Finding]) -> dict[str, Number]:
    """The numbers of several subjects: those that agree once, the others by name."""
    made: dict[str, Number] = {}
    for key in dict.fromkeys(key for finding in findings for key in finding.numbers):
        values = [(finding.subject.names, finding.numbers.get(key)) for finding in findings]
        if len({value for _, value in values}) == 1:
            made[key] = values[0][1]
        else:
            made |= {f"{key} {' '.join(names)}": value for names, value in values}
    return made


def _listed(kind: str, names: Sequence[str]) -> str:
    """Names for a sentence; of many pairs with one end in common that end."""
    if kind == "pair" and len(names) > 2:
        ends = [tuple(name.split(" -> ")) for name in names]
        if len({source for source, _ in ends}) == 1:
            return f"{ends[0][0]} -> {len(ends)} nodes"
        if len({destination for _, destination in ends}) == 1:
            return f"{len(ends)} nodes -> {ends[0][1]}"
    if len(names) <= MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMES - 1])} and {len(names) - MOST_NAMES + 1} more"
