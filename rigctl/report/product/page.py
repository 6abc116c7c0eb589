"""The whole report as a product's page: the theme's name, logo, colours and fonts around it, its words in titles."""

from dataclasses import replace

from rigctl.report.blocks import Block, Charts, Document, Folded, Section, Table
from rigctl.report.printers.html import Brand
from rigctl.report.product.style import page_style
from rigctl.report.product.table import worded
from rigctl.report.product.theme import Theme


def brand(theme: Theme) -> Brand:
    name = f"{theme.name}, {theme.maker}" if theme.maker else theme.name
    if theme.logo is None:
        return Brand(name, page_style(theme))
    return Brand(name, page_style(theme), theme.logo.address, round(40 * theme.logo.aspect))


def themed(document: Document, theme: Theme) -> Document:
    """With the theme's words in headings and heads of columns; sentences keep the field's."""
    return replace(
        document,
        results=tuple(_section(section, theme) for section in document.results),
        sections=tuple(_section(section, theme) for section in document.sections),
    )


def _section(section: Section, theme: Theme) -> Section:
    title = theme.words.results if section.title == "Results" else worded(section.title, theme)
    return replace(section, title=title, blocks=tuple(_block(block, theme) for block in section.blocks))


def _block(block: Block, theme: Theme) -> Block:
    if isinstance(block, Table):
        own = dict(theme.columns)
        titles = (own.get(column.title, worded(column.title, theme)) for column in block.columns)
        columns = (replace(column, title=title) for column, title in zip(block.columns, titles, strict=True))
        return replace(block, columns=tuple(columns))
    if isinstance(block, Charts):
        charts = (replace(chart, label=worded(chart.label, theme)) for chart in block.charts)
        return replace(block, charts=tuple(charts))
    if isinstance(block, Folded):
        return replace(block, blocks=tuple(_block(inner, theme) for inner in block.blocks))
    return block
