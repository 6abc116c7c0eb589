"""A document as one self-contained HTML file, which makes no request and uses the reader's fonts.

A page with charts has one script (reports/templates/charts.js). The page's policy allows its hash and no other script.
Without the script the page is complete.
"""

import base64
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rigctl.base.files import write_whole
from rigctl.base.resources import templates
from rigctl.findings.text import plural
from rigctl.report.blocks import Block, Chart, Document, Section, Sparkline
from rigctl.report.charts.plot import Plot
from rigctl.report.charts.svg import render_sparkline, render_svg
from rigctl.report.printers.json import document_json
from rigctl.report.printers.page_tables import LONGEST, anchors, first_table, page_table

_MOST_FINDINGS: Final = 3
_SHORT_PAGE: Final = 4
"""A page with at most this number of sections has no table of contents."""
_MOST_OPEN_ROWS: Final = 12
"""A table with more rows than this is folded, unless it has the results."""
_ONE_LINE: Final = 9
"""A table of contents with more entries than this is folded on wide screens too."""
STYLES: Final = ("report.css", "matrix.css")
"""The style sheets of a page. Colours and fonts are custom properties at the top of report.css."""
_READABLE: Final = " data-axis="
"""Attribute of a chart whose values the script shows on hover."""
_COMMAND: Final = re.compile(r"`([^`\n]+)`")
"""A command quoted in a sentence."""
MOST_BYTES: Final = 2_000_000
"""Most bytes of a page with its data."""
PLACE: Final = "<!--data-->"
"""Placeholder for the data in the template. User text cannot contain it because user text is escaped."""
_SCRIPT_PLACE: Final = "<!--script-->"
_POLICY_PLACE: Final = "script-src 'none'; "
_SCRIPT: Final = '<script type="application/json" id="rigctl-data">\n{}\n</script>'
_SOME: Final = "the document of rigctl show --json"


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
    """Owner of a page: name and logo above the title, and a style sheet that follows the report's style sheets."""

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
    short = document.fell_short
    rest = tuple(finding for finding in document.findings[1:] if finding not in short)
    contents = [*(results if len(results) > 1 else ()), *([_FINDINGS] if rest else ())]
    contents += [*([_NOTES] if document.notes else ()), *sections]
    made = (
        environment()
        .get_template("report.html.j2")
        .render(
            style=Markup(style),  # noqa: S704 — our own file
            document=document,
            brand=brand,
            branded=Markup(brand.style if brand else ""),  # noqa: S704 — colours and fonts, of fixed patterns
            around=around,
            results=results,
            sections=sections,
            contents=contents if len(contents) > _SHORT_PAGE else (),
            short=short,
            findings=rest,
            told=frozenset(finding.text for finding in document.findings),  # a page prints each sentence only once
            most=_MOST_FINDINGS,
            one_line=_ONE_LINE,
            first_table=first_table(block for section in document.results for block in section.blocks),
        )
    )
    return with_data(with_script(made), document)


@cache
def _script() -> tuple[str, str]:
    """Return the charts' script element, and the content security policy that allows its hash."""
    text = f"\n{(templates() / 'charts.js').read_text('utf-8')}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"script-src 'sha256-{digest}'; "


def with_script(page: str) -> str:
    """Return `page` with the script of its charts; without a script if no chart needs it."""
    element, policy = _script() if _READABLE in page else ("", _POLICY_PLACE)
    return page.replace(_SCRIPT_PLACE, element, 1).replace(_POLICY_PLACE, policy, 1)


@cache
def environment() -> Environment:
    """Return the Jinja2 environment with the page templates and filters; it escapes every text."""

    def svg(plot: Plot, width: float = 0) -> Markup:
        return Markup(render_svg(replace(plot, width=width or plot.width)))  # noqa: S704 — it escapes the names in it

    def sparkline(line: Sparkline) -> Markup:
        return Markup(render_sparkline(line.lines, line.most))  # noqa: S704 — numbers

    def prose(text: str) -> Markup:
        return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 — escaped

    # Templates that end in .html.j2 are escaped too. Only style sheets and charts of rigctl are inserted unescaped.
    made = Environment(
        loader=FileSystemLoader(templates()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"svg": svg, "kind": _kind, "fitted": page_table, "label": _label}
    made.filters |= {"anchors": anchors, "prose": prose, "sparkline": sparkline}
    made.globals |= {"most_open": _MOST_OPEN_ROWS, "longest": LONGEST}
    return made


_FINDINGS: Final = AnchoredBlock(Section("Findings", ()), "findings")
_NOTES: Final = AnchoredBlock(Section("Notes", ()), "notes")


def _add_anchors(document: Document) -> tuple[list[AnchoredBlock], list[AnchoredBlock]]:
    """Return results and other sections with their anchors, which are the same in every run."""
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
    """Return the anchor of a title: `goodput-over-time`. It never equals the anchor of a row or note."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "section"
    return f"section-{stem}" if re.match(r"test-\d|n-", stem) else stem


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _label(chart: Chart) -> str:
    return chart.label or chart.heading


def with_data(page: str, document: Document) -> str:
    """Return `page` with the run's data embedded up to `MOST_BYTES`, and a sentence about the embedded data."""
    if not document.export:
        return page.replace(PLACE, "", 1)
    room = MOST_BYTES - len(page.encode("utf-8", "replace")) - 500
    made: dict[str, Any] = dict(document_json(document))
    columns = list(document.pairs[0]) if document.pairs else []
    rows = [[row[name] for name in columns] for row in document.pairs]
    inside = f"the document of rigctl show --json and {plural(len(rows), 'row')}, one per test, repetition and pair"
    for data, words in ((made | {"pairs": {"columns": columns, "rows": rows}}, inside), (made, _SOME)):
        text = _text(data)
        if len(text.encode("utf-8", "replace")) <= room:
            return page.replace(PLACE, f"{_note(words)}\n{_SCRIPT.format(text)}", 1)
    return page.replace(PLACE, _note(""), 1)


def _note(inside: str) -> str:
    if not inside:
        return '<p class="small">The data would make this page too large: the command under “Reproduce” gives them.</p>'
    left = "; the command under “Reproduce” gives the rows of pairs, too many for this page" if inside == _SOME else ""
    where = "Data inside this file, as JSON in its element <code>rigctl-data</code>: "
    return f'<p class="small inside">{where}{inside}{left}.</p>'


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
