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
from rigctl.base.files import write_whole
from rigctl.base.resources import templates
from rigctl.report.blocks import Block, Charts, Document, Folded, Section, Table
from rigctl.report.printers.html import Brand, environment
from rigctl.report.product import pictures
from rigctl.report.product.claim import rate_text
from rigctl.report.product.colours import families, page_style, tokens
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
    linked = json.dumps(linked_data(product), ensure_ascii=False, indent=1).replace("<", "\\u003c")
    bars = [pictures.bars(product, width, framed=False) or "" for width in (pictures.WIDE, pictures.NARROW)]
    return (
        environment()
        .get_template("product/fragment.html.j2")
        .render(
            product=product,
            theme=product.theme,
            tokens=tokens(product.theme.palette),
            families=families,
            hyphens=_HYPHENS,
            rate_text=rate_text,
            pictures=pictures,
            bars=[Markup(svg) for svg in bars],  # noqa: S704 — drawn here, its texts escaped
            linked=Markup(linked),  # noqa: S704 — JSON without <
            sheet=Markup((templates() / "product/fragment.css").read_text("utf-8")),  # noqa: S704 — our own
        )
    )


def files_of(product: Product) -> dict[str, bytes]:
    """Return all files of a product's folder by name."""
    drawn = {"table": pictures.table(product), "chart": pictures.bars(product)}
    drawn |= {f"chart-{number}": svg for number, svg in enumerate(pictures.charts(product), 1)}
    files = {"fragment.html": fragment(product).encode(), "product.json": product_json(product).encode()}
    for name, svg in drawn.items():
        if svg is not None:
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
    return Brand(name, style, theme.logo.address, round(40 * theme.logo.aspect)) if theme.logo else Brand(name, style)


def themed(document: Document, theme: Theme) -> Document:
    """Return the report with the theme's words in headings and heads of columns. Sentences keep the field's words."""

    def section(own: Section) -> Section:
        title = theme.words.results if own.title == "Results" else worded(own.title, theme)
        return replace(own, title=title, blocks=tuple(_block(block, theme) for block in own.blocks))

    return replace(
        document, results=tuple(map(section, document.results)), sections=tuple(map(section, document.sections))
    )


def _block(block: Block, theme: Theme) -> Block:
    if isinstance(block, Table):
        own = dict(theme.columns)
        titles = (own.get(column.title, worded(column.title, theme)) for column in block.columns)
        columns = (replace(column, title=title) for column, title in zip(block.columns, titles, strict=True))
        return replace(block, columns=tuple(columns))
    if isinstance(block, Charts):
        return replace(block, charts=tuple(replace(one, label=worded(one.label, theme)) for one in block.charts))
    if isinstance(block, Folded):
        return replace(block, blocks=tuple(_block(inner, theme) for inner in block.blocks))
    return block
