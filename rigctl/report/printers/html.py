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
from rigctl.report.printers.json import whole
from rigctl.report.printers.table_parts import (
    LONGEST,
    MOST_CARDS,
    anchors,
    find_repeated,
    first_table,
    is_tight,
    paper_parts,
    screen_parts,
)

_MOST_FINDINGS: Final = 3
_SHORT_PAGE: Final = 4
"""A page of at most so many parts has no list of contents."""
_MOST_OPEN_ROWS: Final = 12
"""A table of more rows that does not hold the results is folded."""
_ONE_LINE: Final = 9
"""A longer list of contents is folded on a wide screen, too."""
STYLES: Final = ("report.css", "matrix.css")
"""The style sheet of a page; its colours and letters are custom properties at the top of the first."""
_READABLE: Final = " data-axis="
"""Text in every page with a chart whose values the script shows."""
_COMMAND: Final = re.compile(r"`([^`\n]+)`")
"""A command in a sentence."""
MOST_BYTES: Final = 2_000_000
"""Size of a page with its data."""
PLACE: Final = "<!--data-->"
"""Place of the data in the template. No text of the user can contain it, because these are escaped."""
_SCRIPT_PLACE: Final = "<!--script-->"
_POLICY_PLACE: Final = "script-src 'none'; "
_SCRIPT: Final = '<script type="application/json" id="rigctl-data">\n{}\n</script>'
_SOME: Final = "the document of rigctl show --json"


@dataclass(frozen=True, slots=True)
class Place:
    """Another page of the same site: the text of its link, and its address relative to this page."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Around:
    """Links from a page to the other pages of its site; None if the page stands alone."""

    home: Place | None = None
    earlier: Place | None = None
    later: Place | None = None


@dataclass(frozen=True, slots=True)
class Brand:
    """Owner of a page: a name and a logo above the title, and a style sheet after the report's own."""

    name: str
    style: str
    logo: str | None = None  # a data address
    logo_width: int = 40  # of a height of 40


@dataclass(frozen=True, slots=True)
class Anchored:
    """A section with its anchor."""

    section: Section
    id: str


def write_page(document: Document, path: Path, brand: Brand | None = None) -> None:
    """Write the page to `path`, whole or not at all. Raises `InputError` if that fails."""
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
            told=frozenset(finding.text for finding in document.findings),  # a page says no sentence twice
            most=_MOST_FINDINGS,
            one_line=_ONE_LINE,
            first_table=first_table(block for section in document.results for block in section.blocks),
        )
    )
    return with_data(with_script(made), document)


@cache
def _script() -> tuple[str, str]:
    """Return the script of the charts as an element, and the policy that allows it."""
    text = f"\n{(templates() / 'charts.js').read_text('utf-8')}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"script-src 'sha256-{digest}'; "


def with_script(page: str) -> str:
    """Return `page` with the script of its charts, if it has charts whose values the script shows."""
    element, policy = _script() if _READABLE in page else ("", _POLICY_PLACE)
    return page.replace(_SCRIPT_PLACE, element, 1).replace(_POLICY_PLACE, policy, 1)


@cache
def environment() -> Environment:
    """Return Jinja2 with the templates of pages and their filters; every text is escaped."""

    def svg(plot: Plot, width: float = 0) -> Markup:
        return Markup(render_svg(replace(plot, width=width or plot.width)))  # noqa: S704 — it escapes the names in it

    def sparkline(line: Sparkline) -> Markup:
        return Markup(render_sparkline(line.lines, line.most))  # noqa: S704 — numbers

    def prose(text: str) -> Markup:
        return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 — escaped

    # Templates that end in .html.j2 are escaped, too; only our own style sheet and charts are inserted as they are.
    made = Environment(
        loader=FileSystemLoader(templates()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"svg": svg, "kind": _kind, "paper": paper_parts, "screen": screen_parts, "label": _label}
    made.filters |= {"repeated": find_repeated, "anchors": anchors, "tight": is_tight, "prose": prose}
    made.filters |= {"sparkline": sparkline}
    made.globals |= {"most_cards": MOST_CARDS, "most_open": _MOST_OPEN_ROWS, "longest": LONGEST}
    return made


_FINDINGS: Final = Anchored(Section("Findings", ()), "findings")
_NOTES: Final = Anchored(Section("Notes", ()), "notes")


def _add_anchors(document: Document) -> tuple[list[Anchored], list[Anchored]]:
    """Return the results and the other sections, with anchors that stay the same from run to run."""
    taken = {"findings", "notes", "contents", "rigctl-data"}
    made = []
    for section in (*document.results, *document.sections):
        stem = anchor(section.title)
        number = 1
        while (name := stem if number == 1 else f"{stem}-{number}") in taken:
            number += 1
        taken.add(name)
        made.append(Anchored(section, name))
    count = len(document.results)
    return made[:count], made[count:]


def anchor(title: str) -> str:
    """Return `goodput-over-time` for `Goodput over time`; never the anchor of a row (`test-1`) or a note (`n-…`)."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "section"
    return f"section-{stem}" if re.match(r"test-\d|n-", stem) else stem


def _kind(block: Block) -> str:
    return type(block).__name__.lower()


def _label(chart: Chart) -> str:
    return chart.label or chart.heading


def with_data(page: str, document: Document) -> str:
    """Return `page` with as much of the data as its size allows, and a sentence about the data inside."""
    if not document.export:
        return page.replace(PLACE, "", 1)
    room = MOST_BYTES - len(page.encode("utf-8", "replace")) - 500
    made: dict[str, Any] = dict(whole(document))
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
