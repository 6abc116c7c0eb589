"""Names the parts of a scenario in the report of a run: in its answer, its findings, titles and rows."""

from collections.abc import Mapping
from dataclasses import replace

from rigctl.findings import Finding, Severity, Weight
from rigctl.findings.text import lower_first
from rigctl.report.blocks import Block, Folded, Section, Table

_WORST: tuple[Severity, ...] = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)


def answer_of_parts(answers: Mapping[str, Finding]) -> Finding:
    """Return the answer of a run: the answer of each part in a few words. `answers` has that of each part."""
    text = "; ".join(f"{name}: {lower_first(one.brief or one.text)}" for name, one in answers.items())
    level = min((one.level for one in answers.values()), key=_WORST.index)
    statements = tuple(statement for one in answers.values() for statement in one.statements)
    return Finding("parts", text, Weight.ANSWER, level, brief=text, statements=statements)


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
