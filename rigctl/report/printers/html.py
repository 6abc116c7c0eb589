"""Prints a report as one self-contained HTML file, which loads nothing and uses the reader's fonts.

A page with charts has one script (reports/templates/charts.js), the only one that the page's security policy allows.
The page can be read without the script.
"""

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rigctl.base.files import write_whole
from rigctl.base.resources import templates
from rigctl.findings.text import plural, some
from rigctl.report.blocks import Document, Section, Sparkline, Table, tables_in
from rigctl.report.charts.plot import Plot
from rigctl.report.charts.svg import render_sparkline, render_svg
from rigctl.report.printers.json import block_kind, document_json
from rigctl.report.printers.slim import Shown, fit, left_out_of_phones

_MOST_FINDINGS: Final = 3
_SHORT_PAGE: Final = 4
"""A page with at most this number of sections has no table of contents."""
_MOST_OPEN_ROWS: Final = 12
"""A table with more rows than this is folded, unless it has the results."""
_ONE_LINE: Final = 9
"""A table of contents with more entries than this is folded on wide screens too."""
STYLES: Final = ("report.css", "matrix.css")
"""The style sheets of a page. Colours and fonts are custom properties at the top of report.css."""
_SCREEN_CHARACTERS: Final = 170
"""Characters in a line of a window of 1280 pixels."""
_PHONE_CHARACTERS: Final = 48
_PAPER_CHARACTERS: Final = 95
"""Characters in a line of a printed table."""
_TIGHT_CHARACTERS: Final = 115
"""Characters in a printed line of smaller letters; a wider table is printed in landscape format."""
_LINE_CHARACTERS: Final = 14
"""Width of the sparklines beside the last column, in characters."""
_LONGEST: Final = 40
"""Most characters in a line of a field; a longer text is wrapped."""
_READABLE: Final = " data-axis="
"""Attribute of a chart whose values the script shows on hover."""
_COMMAND: Final = re.compile(r"`([^`\n]+)`")
MOST_BYTES: Final = 2_000_000
"""Most bytes of a page with its data."""
PLACE: Final = "<!--data-->"
"""Placeholder for the data in the template. User text cannot contain it because user text is escaped."""
_SCRIPT_PLACE: Final = "<!--script-->"
_POLICY_PLACE: Final = "script-src 'none'; "
_SCRIPT: Final = '<script type="application/json" id="rigctl-data">\n{}\n</script>'


@dataclass(frozen=True, slots=True)
class SiteLink:
    """Another page of the same site: link text and relative address."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Around:
    """Links from a page to other pages of its site; None for a missing page."""

    home: SiteLink | None = None
    earlier: SiteLink | None = None
    later: SiteLink | None = None


@dataclass(frozen=True, slots=True)
class Brand:
    """Name and logo above the title of a page, and CSS that follows the report's style sheets."""

    name: str
    style: str
    logo: str | None = None  # logo as a data: URL; None: no logo
    logo_width: int = 40  # width in pixels of a logo that is 40 pixels high


@dataclass(frozen=True, slots=True)
class AnchoredBlock:
    """A section of a page, with its anchor."""

    section: Section
    id: str


def write_page(document: Document, path: Path, brand: Brand | None = None) -> None:
    """Write the page to `path`, completely or not at all. Raise `InputError` if that fails."""
    write_whole(path, page(document, brand=brand).encode("utf-8", "replace"))


def page(document: Document, around: Around = Around(), brand: Brand | None = None) -> str:
    """Return the page as text. Every text of the user is escaped."""
    style = "".join((templates() / name).read_text("utf-8") for name in STYLES)
    results, sections = _add_anchors(document)
    short = document.warnings
    rest = tuple(finding for finding in document.findings[1:] if finding not in short)
    contents = [*(results if len(results) > 1 else ()), *([_FINDINGS] if rest else ())]
    contents += [*([_NOTES] if document.notes else ()), *sections]
    tables = tables_in(block for section in document.results for block in section.blocks)
    template = environment().get_template("report.html.j2")
    made = template.render(
        style=Markup(style),  # noqa: S704 — rigctl's own file
        document=document,
        brand=brand,
        branded=Markup(brand.style if brand else ""),  # noqa: S704 — only colours and fonts, whose form is checked
        around=around,
        results=results,
        sections=sections,
        contents=contents if len(contents) > _SHORT_PAGE else (),
        short=short,
        findings=rest,
        told=frozenset(finding.text for finding in document.findings),  # a page prints each sentence only once
        most=_MOST_FINDINGS,
        one_line=_ONE_LINE,
        anchored=frozenset(id(table) for table in _first_tables(tables)),
    )
    return with_data(with_script(made), document)


def _first_tables(tables: Iterable[Table]) -> list[Table]:
    """Return the tables whose rows have anchors: the first one with tests, of each part of the scenario."""
    first: dict[str | None, Table] = {}
    for table in tables:
        row = next((row for row in table.rows if row.test is not None), None)
        if row is not None:
            first.setdefault(row.part, table)
    return list(first.values())


@cache
def _script() -> tuple[str, str]:
    """Return the script element of the charts, and the content security policy that allows only this script."""
    text = f"\n{(templates() / 'charts.js').read_text('utf-8')}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"script-src 'sha256-{digest}'; "


def with_script(page: str) -> str:
    """Return `page` with the script of the charts if some chart needs it."""
    element, policy = _script() if _READABLE in page else ("", _POLICY_PLACE)
    return page.replace(_SCRIPT_PLACE, element, 1).replace(_POLICY_PLACE, policy, 1)


@cache
def environment() -> Environment:
    """Return the Jinja2 environment with the page templates and filters; it escapes every text."""

    def svg(plot: Plot, width: float = 0) -> Markup:
        return Markup(render_svg(replace(plot, width=width or plot.width)))  # noqa: S704 — render_svg escapes texts

    def sparkline(line: Sparkline) -> Markup:
        return Markup(render_sparkline(line.lines, line.most))  # noqa: S704 — has only numbers

    def prose(text: str) -> Markup:
        return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 — escaped here

    # Templates that end in .html.j2 are escaped too. Only style sheets and charts of rigctl are inserted unescaped.
    made = Environment(
        loader=FileSystemLoader(templates()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"svg": svg, "kind": block_kind, "fitted": page_table}
    made.filters |= {"id": id}
    made.filters |= {"anchors": _anchors, "prose": prose, "sparkline": sparkline}
    made.globals |= {"most_open": _MOST_OPEN_ROWS, "longest": _LONGEST}
    return made


_FINDINGS: Final = AnchoredBlock(Section("Findings", ()), "findings")
_NOTES: Final = AnchoredBlock(Section("Notes", ()), "notes")


def _add_anchors(document: Document) -> tuple[list[AnchoredBlock], list[AnchoredBlock]]:
    """Return result sections and other sections with anchors. A title has the same anchor in every run."""
    taken = {"findings", "notes", "contents", "rigctl-data"}
    made = []
    for section in (*document.results, *document.sections):
        stem = anchor(section.title)
        number = 1
        while (name := stem if number == 1 else f"{stem}-{number}") in taken:
            number += 1
        taken.add(name)
        made.append(AnchoredBlock(section, name))
    count = len(document.results)
    return made[:count], made[count:]


def anchor(title: str) -> str:
    """Return the anchor of a title: `goodput-over-time`. No row or note of a table has the same anchor."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "section"
    return f"section-{stem}" if re.match(r"test-\d|n-", stem) else stem


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table on a page. `groups` are heads above several columns, as text and number of columns."""

    columns: tuple[Shown, ...]
    groups: tuple[tuple[str, int], ...]
    minor: frozenset[int]  # indexes of the columns that phones do not show
    below: tuple[str, ...]  # sentences below the table
    paper: str  # CSS class for a table too wide for paper; empty: it fits


def page_table(table: Table) -> PageTable:
    fitted = fit(table, _SCREEN_CHARACTERS, longest=_LONGEST)
    groups = tuple((name, len(list(own))) for name, own in groupby(fitted.columns, lambda each: each.group))
    left = f"Left out: {some(fitted.titles_left_out)}." if fitted.left_out else ""
    wide = fitted.width + _LINE_CHARACTERS * any(row.over_time for row in table.rows)
    return PageTable(
        fitted.columns,
        groups if any(name for name, _ in groups) else (),
        left_out_of_phones(fitted.columns, _PHONE_CHARACTERS),
        tuple(filter(None, (fitted.alike, left))),
        "" if wide <= _PAPER_CHARACTERS else " tight" if wide <= _TIGHT_CHARACTERS else " across",
    )


def _anchors(table: Table) -> frozenset[int]:
    """Return the indexes of the rows that are the first row of their test."""
    first = {row.test: number for number, row in reversed([*enumerate(table.rows)]) if row.test is not None}
    return frozenset(first.values())


def with_data(page: str, document: Document) -> str:
    """Return `page` with the run's data as JSON, unless the page would exceed `MOST_BYTES`, and a sentence on them."""
    if not document.export:
        return page.replace(PLACE, "", 1)
    room = MOST_BYTES - len(page.encode("utf-8", "replace")) - 500
    made = document_json(document)
    columns = list(document.pairs[0]) if document.pairs else []
    rows = [[row[name] for name in columns] for row in document.pairs]
    each = f" and {plural(len(rows), 'row')}, one per test, repetition and pair"
    left = "; the command under “Reproduce” gives the rows of pairs, too many for this page"
    for data, words in ((made | {"pairs": {"columns": columns, "rows": rows}}, each), (made, left)):
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        if len(text.encode("utf-8", "replace")) <= room:
            where = "Data inside this file, as JSON in its element <code>rigctl-data</code>: "
            note = f'<p class="small inside">{where}the document of rigctl show --json{words}.</p>'
            return page.replace(PLACE, f"{note}\n{_SCRIPT.format(text)}", 1)
    note = '<p class="small">The data would make this page too large: the command under “Reproduce” gives them.</p>'
    return page.replace(PLACE, note, 1)
