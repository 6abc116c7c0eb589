"""Writes the pages of a product: the fragment for a shop's page, its pictures, and the other files of a folder.

The fragment is HTML in a shadow root (docs/decisions/0033-fragment-in-a-shadow-root.md). The pictures are goodput bars,
the table, and a card for link previews in social networks. This module computes sizes and positions, the templates in
reports/templates/product draw them, and resvg renders PNG without a browser.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from rigctl.base.errors import extra
from rigctl.base.resources import templates
from rigctl.findings.text import lower_first, plural, upper_first
from rigctl.product.content import Product
from rigctl.product.switch_card import SwitchCard
from rigctl.product.theme import Theme, font_families, page_style, tokens
from rigctl.report.blocks import Column
from rigctl.report.charts.bars import bars_label, bars_plot
from rigctl.report.charts.svg import render_svg, text_width
from rigctl.report.printers.html import Brand, environment

_BOLD: Final = 1.1
"""Width of bold letters relative to regular ones."""
CARD: Final = (1200, 630)
"""Width and height of an Open Graph image, in pixels."""
WIDE, NARROW = 720.0, 340.0
_PAD: Final = 16.0
_ROW: Final = 32.0
_SMALL: Final = 11.0
_LINE: Final = 16.0
"""Height of a line of a footnote."""
_BESIDE: Final = 22.0
"""Size of letters on a card that tell what is added to the control."""
_FEW_LINES: Final = 2
"""Most lines of a claim on a card that leave room for them."""
_HYPHENS: Final = {
    word.replace("\u00ad", ""): word
    for word in ("Retrans\u00admits", "Effi\u00adciency", "Paral\u00adlel", "Connec\u00adtions", "Con\u00adgestion")
}
"""Words of column heads, with soft hyphens where a phone may break them."""


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    return text_width(text, size) * (_BOLD if bold else 1)


def wrap(text: str, size: float, most: float, *, bold: bool = False) -> list[str]:
    """Return the lines of a text, wrapped at spaces to at most `most` pixels."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size, bold=bold) <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def family(fonts: Sequence[str]) -> str:
    """Return the fonts as an SVG `font-family` value, without names that only browsers understand."""
    names = [name for name in fonts if name not in ("system-ui", "-apple-system")]
    return ", ".join(f"'{name}'" if " " in name or "." in name else name for name in names)


def png(svg: str, scale: int = 2) -> bytes:
    """Return an SVG as PNG. Arimo, which has Arial's widths, replaces missing fonts."""
    with extra("pictures", "report --fragment"):
        import fontpkg_arimo
        import resvg_py
    return resvg_py.svg_to_bytes(
        svg,
        zoom=scale,
        font_dirs=[str(path) for path in fontpkg_arimo.__path__],
        font_family="Arimo",
        serif_family="Arimo",
        sans_serif_family="Arimo",
        monospace_family="Arimo",
    )


def _svg(product: Product, kind: str, size: tuple[float, float], label: str, **values: object) -> str:
    """Return a picture as SVG; `label` is its text alternative."""
    theme, (width, height) = product.theme, map(round, size)
    values |= {"theme": theme, "colours": tokens(theme.palette), "family": family, "pad": _PAD}
    template = environment().get_template(f"product/{kind}.svg.j2")
    return template.render(product=product, source=product.source, width=width, height=height, label=label, **values)


def bars(product: Product, width: float = WIDE, *, framed: bool = True) -> str | None:
    """Return the goodput of each test and pair as SVG bars; None if nothing was measured.

    A `framed` chart has a title above, and the date of the measurement below.
    """
    tests = [bar for bar in product.bars if any(bar.rates)]
    if not tests:
        return None
    margin, top = (_PAD, 66.0) if framed else (0.0, 0.0)
    drawn = render_svg(bars_plot(tests, width - 2 * margin, product.keys, allowed=product.theme.words.allowed))
    height = float(drawn.partition('viewBox="0 0 ')[2].split('"')[0].split()[1])
    place = f'<svg x="{margin:.0f}" y="{top:.0f}" width="{width - 2 * margin:.0f}" height="{height:.0f}" '
    title = f"{product.theme.name}: {bars_title(product)}"
    notes = _footnote(product, width) if framed else []
    return _svg(
        product,
        "bars",
        (width, height + (top + 38 + _LINE * len(notes) if framed else 8)),
        product_bars_label(product),
        framed=framed,
        title=title,
        title_size=_title_size(title, width),
        keys=_places(_keys(product)),
        chart=Markup(drawn.replace("<svg ", place, 1)),  # noqa: S704 — rigctl draws it and escapes its texts
        notes=notes,
    )


def _footnote(product: Product, width: float) -> list[str]:
    return wrap(product.notes, _SMALL, width - 2 * _PAD)


def _title_size(text: str, width: float) -> float:
    return round(min(18.0, 18 * (width - 2 * _PAD) / width_of(text, 18, bold=True)), 1)


def _places(legend: Sequence[tuple[str, str]]) -> Iterator[tuple[float, str, str]]:
    x = _PAD
    for name, colour in legend:
        yield x, name, colour
        x += 45 + width_of(name, 12)


def bars_title(product: Product) -> str:
    return f"{lower_first(product.theme.words.goodput)} of each pair, Mbit/s"


def product_bars_label(product: Product) -> str:
    """Return the text alternative of the bars: the range of goodput, and the ceiling."""
    what = f"{product.theme.words.goodput} of each pair in {plural(len(product.bars), 'test')}"
    return bars_label(product.bars, what, allowed=product.theme.words.allowed)


def _keys(product: Product) -> list[tuple[str, str]]:
    """Return the legend: name of each bar and its colour."""
    return [(name, product.theme.palette[f"s{number}"]) for number, name in enumerate(product.keys, 1)]


def table_picture(product: Product) -> str:
    """Return the table as an SVG picture, with the claim above it."""
    if product.card is not None:
        return _switch_picture(product, product.card)
    rows = product.table.rows
    texts = [[row.entries[number].text for row in rows] for number in range(len(product.table.columns))]
    longest = [max([width_of(text, 14, bold=True) for text in own], default=0.0) for own in texts]
    heads = [_head(column, width) for column, width in zip(product.table.columns, longest, strict=True)]
    widths = [
        24 + max([width, *(width_of(line, 12, bold=True) for line in head)])
        for head, width in zip(heads, longest, strict=True)
    ]
    width = max(560.0, sum(widths) + 2 * _PAD)
    scale = (width - 2 * _PAD) / sum(widths)
    columns, x = [], _PAD
    for number, column in enumerate(product.table.columns):
        end = x + widths[number] * scale
        left = column.words or number == 0
        columns.append((column, heads[number][::-1], texts[number], x + 12 if left else end - 12, left))
        x = end
    claim, notes = wrap(str(product.claimed or ""), 15, width - 2 * _PAD), _footnote(product, width)
    top = 52.0 + 22 * len(claim)
    body = top + 16.0 * max(map(len, heads)) + 16
    return _svg(
        product,
        "table",
        (width, body + _ROW * len(rows) + 34 + _LINE * len(notes)),
        f"{product.title}, {len(rows)} rows",
        framed=True,
        title=product.title,
        title_size=_title_size(product.title, width),
        claim=claim,
        top=top,
        body=body,
        row=_ROW,
        columns=columns,
        notes=notes,
    )


def _switch_picture(product: Product, card: SwitchCard) -> str:
    """Return the card of a switch as an SVG picture: a row with a bar for each size of frames."""
    heads = (
        "Frame",
        f"{card.forwards}, frames/s",
        "Of line rate",
        f"Added to the round trip over {card.control}" if card.control else "",
    )
    texts = [
        [f"{row.frame_bytes} B" for row in card.rows],
        *([getattr(row, name) for row in card.rows] for name in ("rate", "share", "added")),
    ]
    widths = [
        24 + max(width_of(head, 12, bold=True), *(width_of(text, 14, bold=True) for text in own), 0.0)
        for head, own in zip(heads, texts, strict=True)
    ]
    shown = 4 if card.control else 3
    bar = 130.0
    width = max(560.0, sum(widths[:shown]) + bar + 2 * _PAD)
    first = _PAD + widths[0]
    second, third = first + widths[1], first + widths[1] + widths[2]
    summary = wrap(f"{card.summary}.", 15, width - 2 * _PAD)
    top = 52.0 + 22 * len(summary)
    body = top + 32
    under = body + _ROW * len(card.rows) + 8
    name_width = 12 + max([width_of(name, 13, bold=True) for name, _ in card.lines], default=0.0)
    lines = [(name, wrap(text, 13, width - 2 * _PAD - name_width)) for name, text in card.lines]
    conditions = wrap(card.conditions, 13, width - 2 * _PAD)
    below = under + 8 + 20 * (sum(len(words) for _, words in lines) + len(conditions))
    return _svg(
        product,
        "switch",
        (width, below + 34),
        f"{product.title}: {card.summary}",
        framed=True,
        title=product.title,
        title_size=_title_size(product.title, width),
        summary=summary,
        top=top,
        body=body,
        row=_ROW,
        heads=heads[:shown],
        columns=[own[:4] for own in zip(*texts[:shown], strict=True)],
        ends=(first - 12, second - 12, third - 12, third + bar + 12),
        bar=(third, bar - 12),
        filled=[row.filled for row in card.rows],
        lines=lines,
        line_at=_PAD + name_width,
        under=under + 16,
        conditions=conditions,
    )


def _head(column: Column, longest: float) -> list[str]:
    lines = wrap(column.title, 12, max(longest, 92.0), bold=True)
    return [*lines, column.unit] if column.unit else lines


def card_picture(product: Product) -> str:
    """Return an SVG card with name, logo and the claim in large letters, or a summary of the tests without a claim."""
    theme, claim, left = product.theme, product.claimed, 80.0
    room = CARD[0] - 2 * left
    wide = min(72 * theme.logo.aspect, 420) if theme.logo else 0.0
    first, rest = (claim.figure, claim.rest) if claim else (theme.words.results, product.summary)
    if product.card is not None and product.card.figure:
        first, rest = product.card.figure, product.card.rest
    beside = wrap(product.control, _BESIDE, room)
    size = 44 if len(wrap(rest, 44, room)) <= (_FEW_LINES if beside else 3) else 34
    lines = wrap(rest, size, room)[:4]
    return _svg(
        product,
        "card",
        CARD,
        product.title,
        framed=True,
        left=left,
        logo=(wide, wide / theme.logo.aspect) if theme.logo else None,
        name_at=left + wide + 28 if theme.logo else left,
        first=first,
        first_size=round(min(104.0, 104 * room / max(1.0, width_of(first, 104, bold=True)))),
        lines=lines,
        line_size=size,
        beside=beside[:2] if len(lines) <= _FEW_LINES else [],
    )


def fragment(product: Product) -> str:
    """Return the HTML to paste into a shop's page. Every text of the user is escaped."""
    template = environment().get_template("product/fragment.html.j2")
    drawn = [bars(product, width, framed=False) or "" for width in (WIDE, NARROW)]
    return template.render(
        product=product,
        theme=product.theme,
        tokens=tokens(product.theme.palette),
        families=font_families,
        hyphens=_HYPHENS,
        title=upper_first(bars_title(product)),
        label=product_bars_label(product),
        keys=_keys(product),
        bars=[Markup(svg) for svg in drawn],  # noqa: S704 — rigctl draws it and escapes its texts
        sheet=Markup((templates() / "product/fragment.css").read_text("utf-8")),  # noqa: S704 — rigctl's own file
    )


def files_of(product: Product) -> dict[str, bytes]:
    """Return the content of all files of a product folder, by file name."""
    images = {"table": table_picture(product), "chart": bars(product)}
    files = {"fragment.html": fragment(product).encode()}
    for name, svg in images.items():
        if svg is not None:
            files |= {f"{name}.svg": svg.encode(), f"{name}.png": png(svg)}
    return files | {"og.png": png(card_picture(product), scale=1)}


def brand(theme: Theme) -> Brand:
    """Return the theme's name, logo and style sheet for the pages of the report."""
    name = f"{theme.name}, {theme.maker}" if theme.maker else theme.name
    style = page_style(theme)
    return Brand(name, style, theme.logo.address, round(40 * theme.logo.aspect)) if theme.logo else Brand(name, style)
