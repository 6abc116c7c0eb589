"""The page: a document as one self-contained HTML file. No script, no request, no font but the reader's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rigctl.garbage import uncollected
from rigctl.report.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    Document,
    Folded,
    HeatMaps,
    Items,
    Paragraph,
    Row,
    Table,
    Terms,
    Verbatim,
)
from rigctl.report.files import write_whole
from rigctl.report.plot import Plot
from rigctl.report.svg import render_svg
from rigctl.resources import templates

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_FINDINGS: Final = 3
PAPER_CHARACTERS: Final = 112
"""What a line of a printed table holds; a wider one is printed in parts, and on a screen in smaller letters."""
SCREEN_CHARACTERS: Final = 165
"""The same for a window of 1280 pixels."""
MOST_PAPER_ROWS: Final = 200
"""A table of more rows that is wider than paper is not printed: its second copy would make a page twice as large."""
_KINDS: Final[dict[type[Any], str]] = {
    Table: "table", Charts: "charts", HeatMaps: "heat", Paragraph: "paragraph", Items: "items", Terms: "terms",
    Verbatim: "verbatim", Folded: "folded",
}  # fmt: skip


STYLES: Final = ("report.css", "matrix.css")
"""The style sheet of a page; its colours and letters are custom properties at the top of the first."""


@dataclass(frozen=True, slots=True)
class Place:
    """Another page of the same site: what its link says, and its address relative to this page."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Around:
    """Where a page lies in a site; a page on its own has no such links."""

    home: Place | None = None
    earlier: Place | None = None
    later: Place | None = None


@dataclass(frozen=True, slots=True)
class Brand:
    """Whose page it is: a name and a logo above the title, and a style sheet after the report's own."""

    name: str
    style: str
    logo: str | None = None  # a data address
    logo_width: int = 40  # of a height of 40


def write_page(document: Document, path: Path, brand: Brand | None = None) -> None:
    """Write the page to `path`, whole or not at all. Raises `InputError` where that can't be."""
    write_whole(path, page(document, brand=brand).encode("utf-8", "replace"))


@uncollected()
def page(document: Document, around: Around = Around(), brand: Brand | None = None) -> str:
    """The page as text. Every text of the user is escaped."""
    from markupsafe import Markup

    style = "".join((templates() / name).read_text("utf-8") for name in STYLES)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            style=Markup(style),  # noqa: S704 — our own file
            document=document,
            brand=brand,
            branded=Markup(brand.style if brand else ""),  # noqa: S704 — colours and fonts, of fixed patterns
            around=around,
            first=document.findings[1 : MOST_FINDINGS + 1],
            rest=document.findings[MOST_FINDINGS + 1 :],
        )
    )


def environment() -> "Environment":
    """Jinja2 with the templates of pages and what they call; every text is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def svg(plot: Plot) -> Markup:
        return Markup(render_svg(plot))  # noqa: S704 — it escapes the names in it

    # What ends in .html.j2 is escaped too; only the style sheet and the charts, which are ours, go in as they are.
    made = Environment(
        loader=FileSystemLoader(templates()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"svg": svg, "kind": _kind, "paper": paper_parts, "screen": screen_parts, "label": _label}
    return made


def _kind(block: Block) -> str:
    return _KINDS[type(block)]


def _label(chart: Chart) -> str:
    return chart.label or chart.heading


def paper_parts(table: Table) -> list[Table]:
    """`table` in tables that fit paper, the first column leads each; none where they would take many sheets."""
    parts = _parts(table, PAPER_CHARACTERS)
    return [] if len(parts) > 1 and len(table.rows) > MOST_PAPER_ROWS else parts


def screen_parts(table: Table) -> list[Table]:
    """The same for a window of 1280 pixels."""
    return _parts(table, SCREEN_CHARACTERS)


def _parts(table: Table, most: int) -> list[Table]:
    widths = [_characters(table, number) for number in range(len(table.columns))]
    if sum(widths) <= most:
        return [table]
    parts: list[list[int]] = [[0]]
    for number in range(1, len(widths)):
        if len(parts[-1]) > 1 and sum(widths[kept] for kept in parts[-1]) + widths[number] > most:
            parts.append([0])
        parts[-1].append(number)
    made = [_columns_of(table, part) for part in parts]
    return [replace(part, notes=(), legend=()) for part in made[:-1]] + made[-1:]


def _characters(table: Table, number: int) -> int:
    column = table.columns[number]
    longest = max(len(word) for word in f"{column.title} {column.unit}".split())
    return max([longest, *(len(row.entries[number].text) for row in table.rows)]) + 2


def _columns_of(table: Table, kept: Sequence[int]) -> Table:
    def part(row: Row) -> Row:
        return replace(row, entries=tuple(row.entries[number] for number in kept))

    columns: tuple[Column, ...] = tuple(table.columns[number] for number in kept)
    total = part(table.total) if table.total else None
    return replace(table, columns=columns, rows=tuple(part(row) for row in table.rows), total=total)
