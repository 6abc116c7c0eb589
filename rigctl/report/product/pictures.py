"""The pictures of a product's page: bars of goodput, the table, and the card that social networks show."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rigctl.report.blocks import Charts, Column, Table
from rigctl.report.charts.palette import LIGHT, Palette
from rigctl.report.charts.svg import render_svg
from rigctl.report.product.claim import Claim, decimals, floored, rate_text
from rigctl.report.product.content import Bar, Product
from rigctl.report.product.drawing import Anchor, Drawing, width_of, with_common, wrapped
from rigctl.report.product.style import families
from rigctl.report.product.table import worded
from rigctl.report.words.text import UNKNOWN, ceiling_text, plural

CARD: Final = (1200, 630)
"""Of an Open Graph image."""
WIDE, NARROW = 720.0, 340.0
MOST_BARS: Final = 24
MOST_PAIRS: Final = 4
MOST_CHARTS: Final = 40
ANCHORS: Final[Mapping[bool, Anchor]] = {True: "start", False: "end"}
_PAD: Final = 16.0


def bars(product: Product, width: float = WIDE, *, framed: bool = True) -> str | None:
    """Goodput of each test and pair beside what the link allows, from 0; `None` where there is nothing to draw.

    `framed`: with a title and the source below, as a picture of its own.
    """
    tests = [bar for bar in product.bars if any(rate is not None for rate in bar.mbps)][:MOST_BARS]
    if not tests:
        return None
    narrow = width < 500
    rows = sum(_height(bar, narrow=narrow) for bar in tests)
    top = (52.0 if framed else 4.0) + 26
    height = top + rows + 8 + (30 if framed else 0)
    theme, colours = product.theme, product.theme.palette
    drawing = Drawing(width, height, theme.text, bars_label(product), colours["paper"] if framed else "none")
    if framed:
        _title(drawing, product, chart_title(product))
        _legend(drawing, product, (_PAD, 62))
    left = _PAD if framed else 0.0
    label = 0.0 if narrow else min(0.42 * width, 24 + max(width_of(bar.settings, 12) for bar in tests))
    value = 46.0
    room = width - left - label - value - (_PAD if framed else 0)
    most = max(max([bar.ceiling_mbps or 0.0, *(rate or 0.0 for rate in bar.mbps)]) for bar in tests)
    y = top
    for bar in tests:
        _draw(drawing, product, bar, (left, label, room, y), most, narrow=narrow)
        y += _height(bar, narrow=narrow)
    _ceiling(drawing, product, tests, left + label, room, (top - 8, y), most)
    if framed:
        drawing.text((_PAD, height - 14), product.source, 11, colours["soft"])
    return drawing.svg()


def _legend(drawing: Drawing, product: Product, at: tuple[float, float]) -> None:
    x, y = at
    for name, colour in keys(product):
        drawing.box((x, y - 9), (18, 10), colour, 2)
        drawing.text((x + 25, y), name, 12, product.theme.palette["soft"])
        x += 25 + width_of(name, 12) + 20


def _title(drawing: Drawing, product: Product, text: str) -> None:
    """In letters as large as fit."""
    size = min(18.0, 18 * (drawing.width - 2 * _PAD) / width_of(text, 18, bold=True))
    drawing.text(
        (_PAD, 34), text, round(size, 1), product.theme.palette["ink"], bold=True, fonts=product.theme.headings
    )


def chart_title(product: Product) -> str:
    return f"{product.name}: {bars_title(product)}"


def bars_title(product: Product) -> str:
    word = product.theme.words.goodput
    return f"{word[:1].lower()}{word[1:]} of {product.rates_of}, Mbit/s"


def bars_label(product: Product) -> str:
    """The text alternative: the range, and what it is compared with."""
    rates = [rate for bar in product.bars for rate in bar.mbps if rate is not None]
    ceilings = {bar.ceiling_mbps for bar in product.bars}
    ceiling = next(iter(ceilings), None) if len(ceilings) == 1 else None
    low, high = floored(min(rates)), floored(max(rates))
    what = f"{product.theme.words.goodput} of {product.rates_of} in {plural(len(product.bars), 'test')}"
    said = f"{what}: {low:g} to {high:g} Mbit/s"
    return said + (f"; {product.theme.words.allowed}: {ceiling_text(ceiling)} Mbit/s" if ceiling else "")


def _shown(bar: Bar) -> tuple[float | None, ...]:
    """Of many pairs the slowest and the fastest."""
    known = sorted(rate for rate in bar.mbps if rate is not None)
    return bar.mbps if len(bar.mbps) <= MOST_PAIRS else (known[0], known[-1])


def _height(bar: Bar, *, narrow: bool) -> float:
    return 16.0 * len(_shown(bar)) + (34 if narrow else 14)


def _draw(
    drawing: Drawing, product: Product, bar: Bar, place: tuple[float, float, float, float], most: float, *, narrow: bool
) -> None:
    left, label, room, y = place
    colours = product.theme.palette
    rates = _shown(bar)
    name = f"Test {bar.test}" if len(product.bars) > 1 else ""
    if narrow:
        drawing.text((left, y + 12), name, 13, colours["ink"], bold=True)
        indent = width_of(name, 13, bold=True) + 8 if name else 0.0
        lines = wrapped(bar.settings, 11, drawing.width - left - indent)
        drawing.text((left + indent, y + 12), lines[0] + ("…" if len(lines) > 1 else ""), 11, colours["soft"])
        y += 20
    else:
        drawing.text((left, y + 12), name, 13, colours["ink"], bold=True)
        lines = wrapped(bar.settings, 11, label - 16)
        drawing.text((left, y + 27), lines[0] + ("…" if len(lines) > 1 else ""), 11, colours["soft"])
    for number, rate in enumerate(rates):
        at = y + 16 * number
        colour = product.theme.palette.series[number % len(product.theme.palette.series)]
        if rate is not None:
            drawing.box((left + label, at + 2), (room * rate / most, 12), colour, 2)
        digits = decimals(rate) if rate else 0
        text = UNKNOWN if rate is None else f"{floored(rate):.{digits}f}"
        drawing.text((left + label + room + 8, at + 12.5), text, 12, colours["ink"], bold=True)


def _ceiling(
    drawing: Drawing,
    product: Product,
    tests: Sequence[Bar],
    left: float,
    room: float,
    span: tuple[float, float],
    most: float,
) -> None:
    """A dashed line at what the link allows, where that is one rate."""
    found = {bar.ceiling_mbps for bar in tests}
    ceiling = found.pop() if len(found) == 1 else None
    if ceiling is None:
        return
    x = left + room * ceiling / most
    colours = product.theme.palette
    drawing.line((x, span[0]), (x, span[1]), colours["ceiling"], "4 3")
    text = f"{product.theme.words.allowed}: {ceiling_text(ceiling)}"
    drawing.text((x, span[0] - 6), text, 11, colours["soft"], anchor="end")


def table(product: Product) -> str:
    """The table as a picture, with the claim above where there is one."""
    shown, theme, colours = product.table, product.theme, product.theme.palette
    heads = [_head(column, shown, number) for number, column in enumerate(shown.columns)]
    widths = [_column_width(shown, heads, number) for number in range(len(heads))]
    width = max(560.0, sum(widths) + 2 * _PAD)
    widths = [own * (width - 2 * _PAD) / sum(widths) for own in widths]
    deep = max(len(head) for head in heads)
    claimed = wrapped(str(product.claim), 15, width - 2 * _PAD) if isinstance(product.claim, Claim) else []
    top = 52.0 + 22 * len(claimed)
    head_height = 16.0 * deep + 16
    height = top + head_height + 32 * len(shown.rows) + 34
    label = f"{product.title}, {len(shown.rows)} rows"
    drawing = Drawing(width, height, theme.text, label, colours["paper"])
    _title(drawing, product, product.title)
    for number, line in enumerate(claimed):
        drawing.text((_PAD, 58 + 22 * number), line, 15, colours["accent"], bold=True)
    drawing.box((_PAD, top), (width - 2 * _PAD, head_height), colours["panel"])
    for row in range(len(shown.rows)):
        y = top + head_height + 32 * (row + 1)
        drawing.line((_PAD, y), (width - _PAD, y), colours["line"])
    x = _PAD
    for number in range(len(shown.columns)):
        _column(drawing, product, number, (x, widths[number], top, head_height), heads[number])
        x += widths[number]
    drawing.text((_PAD, height - 14), product.source, 11, colours["soft"])
    return drawing.svg()


def _column(
    drawing: Drawing, product: Product, number: int, place: tuple[float, float, float, float], head: list[str]
) -> None:
    x, width, top, head_height = place
    colours = product.theme.palette
    column = product.table.columns[number]
    left = column.words or number == 0
    at, anchor = (x + 12 if left else x + width - 12), ANCHORS[left]
    for line, text in enumerate(reversed(head)):
        unit = bool(column.unit) and line == 0
        y = top + head_height - 12 - 16 * line
        drawing.text((at, y), text, 12, colours["soft" if unit else "ink"], bold=not unit, anchor=anchor)
    for row, own in enumerate(product.table.rows):
        entry = own.entries[number]
        y = top + head_height + 32 * row + 21
        bold = column.group == "measured"
        drawing.text((at, y), entry.text, 14, colours["ink"], bold=bold, anchor=anchor)


def _head(column: Column, shown: Table, number: int) -> list[str]:
    longest = max([width_of(row.entries[number].text, 14, bold=True) for row in shown.rows], default=0.0)
    lines = wrapped(column.title, 12, max(longest, 92.0), bold=True)
    return [*lines, column.unit] if column.unit else lines


def _column_width(shown: Table, heads: Sequence[list[str]], number: int) -> float:
    entries = [width_of(row.entries[number].text, 14, bold=True) for row in shown.rows]
    return max([*entries, *(width_of(line, 12, bold=True) for line in heads[number])]) + 24


def charts(product: Product) -> Iterator[str]:
    """Each chart of the report, as a picture that stands alone in the theme's colours."""
    theme = product.theme
    own = {f"s{number}": colour for number, colour in enumerate(theme.palette.series, 1)}
    more = {"ceiling": theme.palette["ceiling"], "axis": theme.palette["soft"], "grid": theme.palette["line"]}
    marks = {name: theme.palette[name] for name in ("good", "warn")}
    colours = Palette(
        {**LIGHT.colours, **own, **more, **marks},
        theme.palette["paper"],
        theme.palette["ink"],
        families(with_common(theme.text)),
    )
    blocks = [block for section in product.document.sections for block in section.blocks]
    drawn = [(chart, block.keys) for block in blocks if isinstance(block, Charts) for chart in block.charts]
    for chart, legend in drawn[:MOST_CHARTS] if product.other is None else ():
        label = worded(chart.label or chart.heading, theme)
        virtual = " Virtual rig." if product.virtual else ""
        yield render_svg(chart.plot, colours, legend, f"{product.name}: {label}.{virtual}")


def card(product: Product) -> str:
    """1200 × 630: name, logo, the claim in large letters, or what was measured where there is none."""
    theme, colours = product.theme, product.theme.palette
    width, height = CARD
    drawing = Drawing(width, height, theme.text, product.title, colours["paper"])
    drawing.box((0, 0), (width, 14), colours["accent"])
    left = 80.0
    x = left
    if theme.logo is not None:
        logo_width = min(72 * theme.logo.aspect, 420)
        tall = logo_width / theme.logo.aspect
        drawing.image((left, 70 + (72 - tall) / 2), (logo_width, tall), theme.logo.address)
        x += logo_width + 28
    drawing.text((x, 122), product.name, 44, colours["ink"], bold=True, fonts=theme.headings)
    if theme.maker:
        drawing.text((x, 158), theme.maker, 26, colours["soft"])
    _headline(drawing, product, left)
    drawing.line((left, 540), (width - left, 540), colours["line"])
    drawing.text((left, 584), product.source, 24, colours["soft"])
    return drawing.svg()


def _headline(drawing: Drawing, product: Product, left: float) -> None:
    theme, colours = product.theme, product.theme.palette
    room = drawing.width - 2 * left
    if isinstance(product.claim, Claim):
        first, rest = rate_text(product.claim.mbps), product.claim.rest
        if product.claim.virtual:
            drawing.text((left, 218), "Virtual rig:", 34, colours["accent"], bold=True)
    else:
        first, rest = theme.words.results, product.verdict[0] if product.verdict else product.summary
    size = min(104.0, 104 * room / max(1.0, width_of(first, 104, bold=True)))
    drawing.text((left, 322), first, round(size), colours["accent"], bold=True, fonts=theme.headings)
    lines = wrapped(rest, 44, room)
    smaller = 44 if len(lines) <= 3 else 34
    for number, line in enumerate(wrapped(rest, smaller, room)[:4]):
        drawing.text((left, 392 + 1.3 * smaller * number), line, smaller, colours["ink"])


def keys(product: Product) -> list[tuple[str, str]]:
    """The bars of a test with their colours."""
    colours = product.theme.palette.series
    shown = 1 < len(product.keys) <= MOST_PAIRS
    return [(name, colours[number % len(colours)]) for number, name in enumerate(product.keys)] if shown else []
