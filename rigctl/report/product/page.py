"""Writes the pages of a product: the fragment for a shop's page, and the other files of a folder.

The fragment is HTML in a shadow root (docs/decisions/0033-fragment-in-a-shadow-root.md).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from markupsafe import Markup

from rigctl.base.errors import InputError
from rigctl.base.files import write_whole
from rigctl.base.resources import templates
from rigctl.report.printers.html import Brand, environment
from rigctl.report.product import pictures
from rigctl.report.product.claim import claimed_rate_text
from rigctl.report.product.content import Product
from rigctl.report.product.pictures import png
from rigctl.report.product.theme import Theme, font_families, page_style, tokens

_HYPHENS: Final = {
    word.replace("\u00ad", ""): word
    for word in ("Retrans\u00admits", "Effi\u00adciency", "Paral\u00adlel", "Connec\u00adtions", "Con\u00adgestion")
}
"""Words of column heads, with soft hyphens where a phone may break them."""


def fragment(product: Product) -> str:
    """Return the HTML to paste into a shop's page. Every text of the user is escaped."""
    bars = [pictures.bars(product, width, framed=False) or "" for width in (pictures.WIDE, pictures.NARROW)]
    return (
        environment()
        .get_template("product/fragment.html.j2")
        .render(
            product=product,
            theme=product.theme,
            tokens=tokens(product.theme.palette),
            families=font_families,
            hyphens=_HYPHENS,
            rate_text=claimed_rate_text,
            pictures=pictures,
            bars=[Markup(svg) for svg in bars],  # noqa: S704 — rigctl draws it and escapes its texts
            sheet=Markup((templates() / "product/fragment.css").read_text("utf-8")),  # noqa: S704 — our own
        )
    )


def files_of(product: Product) -> dict[str, bytes]:
    """Return the content of all files of a product folder, by file name."""
    images = {"table": pictures.table_picture(product), "chart": pictures.bars(product)}
    files = {"fragment.html": fragment(product).encode()}
    for name, svg in images.items():
        if svg is not None:
            files |= {f"{name}.svg": svg.encode(), f"{name}.png": png(svg)}
    return files | {"og.png": png(pictures.card_picture(product), scale=1)}


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write `files` to `folder`. Raise `InputError` if the folder or a file cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: no folder can be made there: {error.strerror}. Name another place") from error
    for name, content in files.items():
        write_whole(folder / name, content, follow=False)  # links that other users made in the folder are not followed


def brand(theme: Theme) -> Brand:
    """Return the theme's name, logo and style sheet for the pages of the report."""
    name = f"{theme.name}, {theme.maker}" if theme.maker else theme.name
    style = page_style(theme)
    return Brand(name, style, theme.logo.address, round(40 * theme.logo.aspect)) if theme.logo else Brand(name, style)
