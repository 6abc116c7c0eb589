"""Prints a document as Markdown to paste into a page: the answer, the results and findings."""

from typing import Final

from rigctl.findings.text import escape_markdown
from rigctl.report import blocks
from rigctl.report.printers.slim import Shown, fit

_CHARACTERS: Final = 1000
"""Characters of a table's line: none of its columns is left out."""
_MOST_FOLDED: Final = 24
"""A folded table with more rows is omitted, because Markdown cannot fold."""


def markdown(document: blocks.Document) -> str:
    """Return the document as Markdown: title, rig and date, answer, results, findings and the brief sections."""
    lines = [f"# {escape_markdown(document.title)}", ""]
    if document.about:
        lines += [escape_markdown(" · ".join(document.about)), ""]
    if document.findings:
        lines += [escape_markdown(document.answer), ""]
    if document.brief and (facts := [*filter(None, [document.brief.mean]), *document.brief.facts]):
        lines += [escape_markdown(" · ".join(facts)), ""]
    for section in document.results:
        lines += _section(section, titled=len(document.results) > 1)
    for finding in document.findings[1:]:
        lines.append(
            f"- {escape_markdown(finding.text)}" + (f" {escape_markdown(finding.remedy)}" if finding.remedy else "")
        )
    for section in document.sections:
        if section.brief:
            lines += ["", *_section(section, titled=True)]
    return "\n".join(lines).rstrip() + "\n"


def _section(section: blocks.Section, *, titled: bool) -> list[str]:
    lines = [f"## {escape_markdown(section.title)}", ""] if titled else []
    for block in section.blocks:
        lines += _block(block)
    return lines


def _block(block: blocks.Block) -> list[str]:
    lines: list[str] = []
    match block:
        case blocks.Table():
            lines = [*table_lines(block), ""]
        case blocks.HeatMaps():
            lines = [line for heat_map in block.maps for line in _grid(heat_map.title, block.unit, heat_map)]
        case blocks.Paragraph():
            lines = [escape_markdown(block.text), ""]
        case blocks.Items():
            lines = [*(f"- {escape_markdown(sentence)}" for sentence in block.sentences), ""]
        case blocks.Terms():
            lines = [
                f"- {escape_markdown(term.name)}: {escape_markdown(' '.join(term.sentences))}" for term in block.terms
            ] + [""]
        case blocks.Folded() if any(_only_long(inner) for inner in block.blocks if isinstance(inner, blocks.Table)):
            lines = [f"{escape_markdown(block.summary)}: only on the HTML page and in the JSON.", ""]
        case blocks.Folded():
            lines = [line for inner in block.blocks for line in _block(inner)]
    return lines


def _only_long(table: blocks.Table) -> bool:
    """Tell whether a table is so long, such as 100 flows, that only the summary of its folded block is printed."""
    return len(table.rows) > _MOST_FOLDED and all(row.test is None for row in table.rows)


def _grid(title: str, unit: str, heat_map: blocks.HeatMap) -> list[str]:
    head = [f"{escape_markdown(title)}{': ' if title else ''}{escape_markdown(unit)}", ""]
    lines = ["| " + " | ".join((heat_map.corner, *map(escape_markdown, heat_map.columns))) + " |"]
    lines.append("|" + "--:|" * (len(heat_map.columns) + 1))
    lines += ["| " + " | ".join((label, *(field.text for field in fields))) + " |" for label, fields in heat_map.rows]
    return [*head, *lines, ""]


def table_lines(table: blocks.Table) -> list[str]:
    """Return the lines of a Markdown table, followed by what all rows share, its legend and its notes."""
    fitted = fit(table, _CHARACTERS)
    lines = [
        "| " + " | ".join(escape_markdown(_head(column)) for column in fitted.columns) + " |",
        "|" + "|".join(":--" if column.column.words else "--:" for column in fitted.columns) + "|",
    ]
    rows = (*table.rows, *((table.total,) if table.total else ()))
    lines += [_row(row, [column.entries[at].text for column in fitted.columns]) for at, row in enumerate(rows)]
    notes = (f"[{number}] {escape_markdown(note)}" for number, note in enumerate(table.notes, 1))
    rest = [*filter(None, [escape_markdown(fitted.alike)]), *table.legend, *notes]
    return [*lines, "", *(f"{line}  " for line in rest)] if rest else lines


def _head(column: Shown) -> str:
    return " ".join(filter(None, (column.group, *column.head)))


def _row(row: blocks.Row, texts: list[str]) -> str:
    notes = "".join(f" [{note}]" for note in row.notes)
    return "| " + " | ".join((escape_markdown(texts[0]) + notes, *map(escape_markdown, texts[1:]))) + " |"
