"""Prints a report in a terminal: answer, failures and missed expectations, table, at most three other findings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rigctl.findings import Finding, Severity
from rigctl.findings.text import lower_first, plural, some
from rigctl.records import tag_text
from rigctl.report import blocks
from rigctl.report.printers.slim import slim, superscript_text

_MOST_FINDINGS: Final = 3
_MOST_NOTES: Final = 5
_STYLES: Final = {Severity.WARNING: "bold magenta", Severity.ERROR: "bold red"}
"""Styles of marks. Sentences have the terminal's own colour: few colours can be read on black and on white."""
_MARKS: Final = {Severity.OK: "✓ ", Severity.NOTE: "· ", Severity.WARNING: "! ", Severity.ERROR: "✗ "}


def print_document(document: blocks.Document, console: Console, *, everything: bool = False) -> None:
    """Print `document`; with `everything`, print all findings, notes and columns, and `full` sections too."""
    if document.findings:
        answer = document.findings[0]
        text = " ".join(filter(None, (_title(document.title, answer.text), answer.remedy)))
        _print(text, console, "bold", _mark(answer.level) if answer.level in _STYLES else None)
    else:
        _print(document.title, console, "bold")
    if document.brief:
        _print_facts(document.brief, console)
    short = document.warnings if everything else document.warnings[:_MOST_FINDINGS]
    for finding in short:
        _print_finding(finding, console)
    if document.about:
        _print(" · ".join(filter(None, (*document.about, document.run))), console, "dim")
    if document.tags:
        _print(" ".join(tag_text(*tag) for tag in document.tags), console, "dim")
    titled = len(document.results) > 1
    for section in _print_lines(document.results, everything):
        _print_section(section, console, document.show, titled=titled, everything=everything)
    rest = [finding for finding in document.findings[1:] if finding not in short]
    most = len(rest) if everything else _MOST_FINDINGS - (0 if document.fell_short else len(short))
    _print_findings(rest, document.show, console, most)
    for section in _print_lines(document.sections, everything):
        _print_section(section, console, document.show, titled=True, everything=everything)


def print_brief(document: blocks.Document, console: Console) -> None:
    """Print the lines of `document` that a reader posts: request, answer, slowest and fastest test, one warning.

    Of a run with parts, the answer is a line for each part.
    """
    brief = document.brief
    if brief is not None:
        request = f"{_short(document.title)} · {brief.request}"
        gap = " " * (console.width - cell_len(request) - cell_len(brief.about))
        _print(f"{request}{gap if len(gap) > 1 else ' · '}{brief.about}", console)
    parts, mean = (brief.parts, brief.mean) if brief else ((), "")
    for line in parts or (mean or document.answer,):
        _print(line, console, "bold")
    if brief:
        _print_facts(replace(brief, mean=""), console)
    for finding in document.warnings[:1]:
        _print(finding.text, console, mark=_mark(finding.level))


def _print_facts(brief: blocks.Brief, console: Console) -> None:
    """Print the sentence with the mean, and the facts below it."""
    if brief.mean:
        _print(brief.mean, console)
    line = ""
    for fact in brief.facts:
        if line and cell_len(line) + cell_len(fact) + 5 > console.width:
            _print(line, console, mark=Text("  "))
            line = ""
        line += f"   {fact}" if line else fact
    if line:
        _print(line, console, mark=Text("  "))


def _print_lines(sections: Sequence[blocks.Section], everything: bool) -> list[blocks.Section]:
    return [section for section in sections if section.brief or (section.full and everything)]


def _title(title: str, answer: str) -> str:
    """Return the short title and the answer as one sentence: `GigaBlox: line rate in all 7 tests`."""
    short = _short(title)
    return answer if answer.startswith(short) else f"{short}: {lower_first(answer)}"


def _short(title: str) -> str:
    return title.partition(", ")[0].partition(": ")[0]


def _print(text: str, console: Console, style: str = "", mark: Text | None = None) -> None:
    """Print word-wrapped text after `mark`, with further lines indented to the text."""
    begins = mark or Text()
    for number, line in enumerate(Text(text, style).wrap(console, max(10, console.width - len(begins)))):
        line.rstrip()
        console.print(Text.assemble(" " * len(begins) if number else begins, line), soft_wrap=True)


def _mark(level: Severity) -> Text:
    return Text(_MARKS[level], _STYLES.get(level, ""))


def _print_finding(finding: Finding, console: Console) -> None:
    _print(" ".join(filter(None, (finding.text, finding.remedy))), console, mark=_mark(finding.level))


def _print_findings(findings: Sequence[Finding], show: str, console: Console, most: int) -> None:
    shown = findings[:most]
    for finding in shown:
        _print_finding(finding, console)
    if len(findings) > len(shown):
        more = plural(len(findings) - len(shown), "more finding")
        _print(f"{more}: `{show}`, or the page." if show else f"{more}.", console, "dim")


def _print_section(section: blocks.Section, console: Console, show: str, *, titled: bool, everything: bool) -> None:
    console.print()
    if titled:
        _print(section.title, console, "bold")
    for block in section.blocks:
        _print_block(block, console, show, everything)


def _print_block(block: blocks.Block, console: Console, show: str, everything: bool) -> None:
    match block:
        case blocks.Table():
            _print_table(block, console, show, everything)
        case blocks.HeatMaps():
            _print_heat_maps(block, console, show, everything)
        case blocks.Paragraph():
            _print(block.text, console, "dim" if block.small else "")
        case blocks.Items():
            for sentence in block.sentences:
                _print(sentence, console)
        case blocks.Terms():
            for term in block.terms:
                _print(f"{term.name} ({term.detail}): {' '.join(term.sentences)}", console)
        case blocks.Folded() if not all(isinstance(inner, blocks.Charts) for inner in block.blocks):
            _print(f"{block.summary}: only on the HTML page and in the JSON.", console, "dim")
            for table in (inner for inner in block.blocks if isinstance(inner, blocks.Table)):
                _print_notes(table, console, everything)
        # A terminal shows neither charts nor files.


def _print_heat_maps(block: blocks.HeatMaps, console: Console, show: str, everything: bool) -> None:
    """Print the heat maps as one table, or each as a table of its own if the table would be too wide."""
    table = _heat_table(block)
    if not slim(table, console.width).left_out or len(block.maps) == 1:
        _print_table(table, console, show, everything)
        return
    for heat_map in block.maps:
        _print(f"{heat_map.title}, {block.unit}", console)
        _print_table(_heat_table(replace(block, maps=(replace(heat_map, title=""),))), console, show, everything)


def _heat_table(block: blocks.HeatMaps) -> blocks.Table:
    """Return the heat maps as one table; the first row of each map has its title."""
    titled = any(heat_map.title for heat_map in block.maps)
    names = dict.fromkeys(name for heat_map in block.maps for name in heat_map.columns)
    rows = []
    for heat_map in block.maps:
        for number, (label, fields) in enumerate(heat_map.rows):
            texts = dict(zip(heat_map.columns, (field.text for field in fields), strict=True))
            begins = ["" if number else heat_map.title, label] if titled else [label]
            rows.append(blocks.Row(tuple(map(blocks.Entry, (*begins, *(texts.get(name, "") for name in names))))))
    named = not all(label.isdigit() for heat_map in block.maps for label, _ in heat_map.rows)
    corner = blocks.Column(block.maps[0].corner, words=named, short=block.maps[0].corner.replace("↓ ", "↓\n"))
    title = blocks.Column(block.unit, words=True, short=block.unit)
    columns = (blocks.Column(name, short=name) for name in names)
    return blocks.Table((*([title] if titled else []), corner, *columns), tuple(rows))


def _print_table(table: blocks.Table, console: Console, show: str, everything: bool) -> None:
    slimmed = slim(table, console.width)
    for line in slimmed.lines:
        console.print(line, soft_wrap=True)
    if slimmed.alike:
        _print(slimmed.alike, console)
    if slimmed.left_out and everything:
        for row, phrases in zip(table.rows, slimmed.phrases_left_out, strict=True):
            _print(" · ".join(phrases), console, mark=Text(f"{row.entries[0].text}: "))
    elif slimmed.left_out:
        where = f" `{show}` has them." if show else ""
        _print(f"Left out at this width: {some(slimmed.titles_left_out)}.{where}", console, "dim")
    for text in table.legend:
        _print(text, console, "dim")
    _print_notes(table, console, everything)


def _print_notes(table: blocks.Table, console: Console, everything: bool) -> None:
    kept = table.notes if everything else table.notes[:_MOST_NOTES]
    for number, note in enumerate(kept, 1):
        _print(note, console, mark=Text(f"{superscript_text(number)} ", "bold magenta"))
    if len(table.notes) > len(kept):
        more = plural(len(table.notes) - len(kept), "more note is", "more notes are")
        _print(f"{more} on the page.", console, "dim")
