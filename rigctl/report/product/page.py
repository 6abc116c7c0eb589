"""The pages of a product: the fragment for a shop's page, the report in the theme, and all files of a folder.

The fragment is HTML in a shadow root of its own (docs/decisions/0033-fragment-in-a-shadow-root.md).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from markupsafe import Markup

from rigctl.base.errors import InputError
from rigctl.base.resources import templates
from rigctl.report.blocks import Block, Charts, Document, Folded, Section, Table
from rigctl.report.printers.files import write_whole
from rigctl.report.printers.html import Brand, environment
from rigctl.report.product import pictures
from rigctl.report.product.claim import rate_text
from rigctl.report.product.colours import host_style, page_style
from rigctl.report.product.content import Product
from rigctl.report.product.data import linked_data, product_json
from rigctl.report.product.drawing import png
from rigctl.report.product.table import worded
from rigctl.report.product.theme import Theme

_HYPHENS: Final = {
    word.replace("\u00ad", ""): word
    for word in ("Retrans\u00admits", "Effi\u00adciency", "Paral\u00adlel", "Connec\u00adtions", "Con\u00adgestion")
}
"""Words in heads of columns, with where they may be broken on a phone."""


def fragment(product: Product) -> str:
    """Return the HTML that is pasted into a shop's page. Every text of the user is escaped."""
    theme = product.theme
    wide, narrow = (pictures.bars(product, width, framed=False) for width in (pictures.WIDE, pictures.NARROW))
    linked = json.dumps(linked_data(product), ensure_ascii=False, indent=1).replace("<", "\\u003c")
    style = host_style(theme.palette, theme.text, theme.headings) + (templates() / "product.css").read_text("utf-8")
    template = environment().get_template("product.html.j2")
    return template.render(
        product=product,
        theme=theme,
        hyphens=_HYPHENS,
        claim=product.claimed,
        table=product.table,
        conditions=product.conditions,
        label=pictures.bars_label(product) if wide else "",
        title=pictures.bars_title(product) if wide else "",
        rate_text=rate_text,
        keys=pictures.keys(product) if wide else [],
        wide=Markup(wide or ""),  # noqa: S704 — drawn here, its texts escaped
        narrow=Markup(narrow or ""),  # noqa: S704
        linked=Markup(linked),  # noqa: S704 — JSON without <
        style=Markup(style),  # noqa: S704 — colours and fonts as their patterns allow
    )


def files_of(product: Product) -> dict[str, bytes]:
    """Return all files of a product's folder by name."""
    drawn: dict[str, str] = {"table": pictures.table(product)}
    if bars := pictures.bars(product):
        drawn["chart"] = bars
    drawn |= {f"chart-{number}": svg for number, svg in enumerate(pictures.charts(product), 1)}
    files = {"fragment.html": fragment(product).encode(), "product.json": product_json(product).encode()}
    for name, svg in drawn.items():
        files |= {f"{name}.svg": svg.encode(), f"{name}.png": png(svg)}
    return files | {"og.png": png(pictures.card(product), scale=1)}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write `files` to `folder`. Raise `InputError` if the folder, or a file in it, cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there: {error.strerror}. Name another place") from error
    for name, content in files.items():
        write_whole(folder / name, content, follow=False)  # others may have made links in the folder


def brand(theme: Theme) -> Brand:
    """Return the theme's name, logo and style sheet for the whole report."""
    name = f"{theme.name}, {theme.maker}" if theme.maker else theme.name
    style = page_style(theme.palette, theme.dark, theme.text, theme.headings)
    if theme.logo is None:
        return Brand(name, style)
    return Brand(name, style, theme.logo.address, round(40 * theme.logo.aspect))


def themed(document: Document, theme: Theme) -> Document:
    """Return the report with the theme's words in headings and heads of columns. Sentences keep the field's words."""
    results, sections = (
        tuple(_section(section, theme) for section in sections) for sections in (document.results, document.sections)
    )
    return replace(document, results=results, sections=sections)


def _section(section: Section, theme: Theme) -> Section:
    title = theme.words.results if section.title == "Results" else worded(section.title, theme)
    return replace(section, title=title, blocks=tuple(_block(block, theme) for block in section.blocks))


def _block(block: Block, theme: Theme) -> Block:
    if isinstance(block, Table):
        own = dict(theme.columns)
        columns = (
            replace(column, title=own.get(column.title, worded(column.title, theme))) for column in block.columns
        )
        return replace(block, columns=tuple(columns))
    if isinstance(block, Charts):
        charts = (replace(chart, label=worded(chart.label, theme)) for chart in block.charts)
        return replace(block, charts=tuple(charts))
    if isinstance(block, Folded):
        return replace(block, blocks=tuple(_block(inner, theme) for inner in block.blocks))
    return block
