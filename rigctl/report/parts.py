"""Names the parts of a scenario in the report of a run: in its answer, its findings, titles and rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rigctl.findings import Finding, Severity, Weight
from rigctl.findings.text import lower_first, plural
from rigctl.report.blocks import Block, Folded, Section, Table

_WORST: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)
_LONGEST: Final = 200
_BRIEF: Final = 60
"""Most characters of an answer, and of an answer in a list of runs."""


def lines_of_parts(answers: Mapping[str, Finding]) -> tuple[str, ...]:
    """Return a line for each part: its name, and its answer in a few words. `answers` has the answer of each part."""
    return tuple(f"{name}: {words_of_part(name, one)}" for name, one in answers.items())


def words_of_part(name: str, answer: Finding) -> str:
    """Return the answer of a part in a few words, which follow its name: `128.3 KiB` of `buffer`."""
    return lower_first(answer.brief or answer.text).removeprefix(f"{name} ")


def answer_of_parts(answers: Mapping[str, Finding]) -> Finding:
    """Return the answer of a run: the lines of its parts, as far as they fit.

    Its statements about rows are those of the parts, whose answers stand above their tables.
    """
    told = lines_of_parts(answers)
    text = "; ".join(told)
    for left in range(1, len(told)):
        if len(text) > _LONGEST:
            text = "; ".join([*told[:-left], f"{plural(left, 'more part')}, below"])
    first = next(iter(answers.values()))
    brief = told[0] if len(told[0]) <= _BRIEF else first.brief
    return Finding(
        "parts", text, Weight.ANSWER, min((one.level for one in answers.values()), key=_WORST.index), brief=brief
    )


def of_part(name: str, finding: Finding) -> Finding:
    """Return a finding of a part, with the part's name before its text."""
    return replace(finding, text=f"{name}: {finding.text}")


def titled_part(name: str, section: Section) -> Section:
    """Return a section of a part, with the part's name before its title and in the rows of its tables."""
    return replace(section, title=f"{name}: {lower_first(section.title)}", blocks=_blocks(name, section.blocks))


def _blocks(name: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(_block(name, block) for block in blocks)


def _block(name: str, block: Block) -> Block:
    if isinstance(block, Folded):
        return replace(block, blocks=_blocks(name, block.blocks))
    if isinstance(block, Table):
        return replace(block, rows=tuple(replace(row, part=name) for row in block.rows))
    return block
