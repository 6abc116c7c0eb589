"""The pictures of a product's page: bars of goodput, the table, and the card that social networks show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.report.blocks import Charts, Column
from rigctl.report.charts.colours import LIGHT, Palette
from rigctl.report.charts.svg import render_svg
from rigctl.report.product.claim import decimals, floored, rate_text
from rigctl.report.product.colours import families
from rigctl.report.product.content import Bar, Product
from rigctl.report.product.drawing import Drawing, width_of, with_common, wrapped
from rigctl.report.product.table import worded
from rigctl.report.words.text import UNKNOWN, ceiling_text, plural

CARD: Final = (1200, 630)
"""Size of an Open Graph image."""
WIDE, NARROW = 720.0, 340.0
MOST_BARS: Final = 24
MOST_PAIRS: Final = 4
MOST_CHARTS: Final = 40
_PAD: Final = 16.0
_VALUE_WIDTH: Final = 46.0
_ROW: Final = 32.0


@dataclass(slots=True)
class _Chart:
    """A bar chart that is being drawn."""

    drawing: Drawing
    product: Product
    tests: Sequence[Bar]
    left: float
    label: float  # width of the labels
    room: float  # width of the longest bar
    most: float  # Mbit/s of the longest bar
    narrow: bool

    def draw(self, bar: Bar, y: float) -> None:
        """Draw the bars of one test below `y`."""
        colours, series = self.product.theme.palette, self.product.theme.palette.series
        name = f"Test {bar.test}" if len(self.product.bars) > 1 else ""
        self.drawing.text((self.left, y + 12), name, 13, colours["ink"], bold=True)
        indent = width_of(name, 13, bold=True) + 8 if name and self.narrow else 0.0
        lines = wrapped(bar.settings, 11, self.drawing.width - self.left - indent if self.narrow else self.label - 16)
        settings = "".join(lines[:1]) + ("…" if len(lines) > 1 else "")
        below = 12 if self.narrow else 27
        self.drawing.text((self.left + indent, y + below), settings, 11, colours["soft"])
        y += 20 if self.narrow else 0
        start = self.left + self.label
        for number, rate in enumerate(_shown(bar)):
            at = y + 16 * number
            if rate is not None:
                length = self.room * rate / self.most
                self.drawing.box((start, at + 2), (length, 12), series[number % len(series)], 2)
            text = UNKNOWN if rate is None else f"{floored(rate):.{decimals(rate) if rate else 0}f}"
            self.drawing.text((start + self.room + 8, at + 12.5), text, 12, colours["ink"], bold=True)

    def draw_ceiling(self, top: float, bottom: float) -> None:
        """Draw a dashed line at what the link allows, if all tests have the same ceiling."""
        ceiling = _one_ceiling(self.tests)
        if ceiling is not None:
            x = self.left + self.label + self.room * ceiling / self.most
            theme = self.product.theme
            self.drawing.line((x, top), (x, bottom), theme.palette["ceiling"], "4 3")
            text = f"{theme.words.allowed}: {ceiling_text(ceiling)}"
            self.drawing.text((x, top - 6), text, 11, theme.palette["soft"], anchor="end")


def bars(product: Product, width: float = WIDE, *, framed: bool = True) -> str | None:
    """Return goodput of each test and pair as an SVG bar chart, from 0; None if there is nothing to draw.

    A `framed` chart stands alone: it has a title above and the source below.
    """
    tests = [bar for bar in product.bars if any(rate is not None for rate in bar.mbps)][:MOST_BARS]
    if not tests:
        return None
    narrow, pad = width < 500, _PAD if framed else 0.0
    top = 78.0 if framed else 30.0
    bottom = top + sum(_height(bar, narrow=narrow) for bar in tests)
    height = bottom + (38 if framed else 8)
    theme = product.theme
    paper = theme.palette["paper"] if framed else "none"
    drawing = Drawing(width, height, theme.text, bars_label(product), paper)
    if framed:
        _title(drawing, product, f"{product.name}: {bars_title(product)}")
        _legend(drawing, product)
    label = 0.0 if narrow else min(0.42 * width, 24 + max(width_of(bar.settings, 12) for bar in tests))
    room = width - 2 * pad - label - _VALUE_WIDTH
    most = max(max([bar.ceiling_mbps or 0.0, *(rate or 0.0 for rate in bar.mbps)]) for bar in tests)
    chart = _Chart(drawing, product, tests, pad, label, room, most, narrow)
    y = top
    for bar in tests:
        chart.draw(bar, y)
        y += _height(bar, narrow=narrow)
    chart.draw_ceiling(top - 8, bottom)
    if framed:
        _source(drawing, product)
    return drawing.svg()


def _title(drawing: Drawing, product: Product, text: str) -> None:
    theme = product.theme
    size = min(18.0, 18 * (drawing.width - 2 * _PAD) / width_of(text, 18, bold=True))
    drawing.text((_PAD, 34), text, round(size, 1), theme.palette["ink"], bold=True, fonts=theme.headings)


def _legend(drawing: Drawing, product: Product) -> None:
    x, y = _PAD, 62.0
    for name, colour in keys(product):
        drawing.box((x, y - 9), (18, 10), colour, 2)
        drawing.text((x + 25, y), name, 12, product.theme.palette["soft"])
        x += 25 + width_of(name, 12) + 20


def _source(drawing: Drawing, product: Product) -> None:
    drawing.text((_PAD, drawing.height - 14), product.source, 11, product.theme.palette["soft"])


def bars_title(product: Product) -> str:
    word = product.theme.words.goodput
    return f"{word[:1].lower()}{word[1:]} of {product.rates_of}, Mbit/s"


def bars_label(product: Product) -> str:
    """Return the text alternative: the range, and what it is compared with."""
    rates = [rate for bar in product.bars for rate in bar.mbps if rate is not None]
    ceiling, words = _one_ceiling(product.bars), product.theme.words
    what = f"{words.goodput} of {product.rates_of} in {plural(len(product.bars), 'test')}"
    text = f"{what}: {floored(min(rates)):g} to {floored(max(rates)):g} Mbit/s"
    return text + (f"; {words.allowed}: {ceiling_text(ceiling)} Mbit/s" if ceiling else "")


def _one_ceiling(tests: Sequence[Bar]) -> float | None:
    ceilings = {bar.ceiling_mbps for bar in tests}
    return ceilings.pop() if len(ceilings) == 1 else None


def _shown(bar: Bar) -> tuple[float | None, ...]:
    """Return all pairs; of many pairs the slowest and the fastest."""
    known = sorted(rate for rate in bar.mbps if rate is not None)
    return bar.mbps if len(bar.mbps) <= MOST_PAIRS else (known[0], known[-1])


def _height(bar: Bar, *, narrow: bool) -> float:
    return 16.0 * len(_shown(bar)) + (34 if narrow else 14)


def keys(product: Product) -> list[tuple[str, str]]:
    """Return the legend: the bars of a test with their colours."""
    colours = product.theme.palette.series
    names = product.keys if 1 < len(product.keys) <= MOST_PAIRS else ()
    return [(name, colours[number % len(colours)]) for number, name in enumerate(names)]


def table(product: Product) -> str:
    """Return the table as an SVG picture, with the claim above it."""
    theme, colours, rows = product.theme, product.theme.palette, product.table.rows
    columns = [
        (column, [row.entries[number].text for row in rows]) for number, column in enumerate(product.table.columns)
    ]
    heads = [_head(column, texts) for column, texts in columns]
    widths = [_column_width(head, texts) for head, (_, texts) in zip(heads, columns, strict=True)]
    width = max(560.0, sum(widths) + 2 * _PAD)
    widths = [own * (width - 2 * _PAD) / sum(widths) for own in widths]
    claimed = wrapped(str(product.claimed), 15, width - 2 * _PAD) if product.claimed else []
    top = 52.0 + 22 * len(claimed)
    body = top + 16.0 * max(len(head) for head in heads) + 16
    height = body + _ROW * len(rows) + 34
    drawing = Drawing(width, height, theme.text, f"{product.title}, {len(rows)} rows", colours["paper"])
    _title(drawing, product, product.title)
    for number, line in enumerate(claimed):
        drawing.text((_PAD, 58 + 22 * number), line, 15, colours["accent"], bold=True)
    drawing.box((_PAD, top), (width - 2 * _PAD, body - top), colours["panel"])
    for number in range(len(rows)):
        y = body + _ROW * (number + 1)
        drawing.line((_PAD, y), (width - _PAD, y), colours["line"])
    x = _PAD
    for number, (column, texts) in enumerate(columns):
        left = column.words or number == 0
        at = x + 12 if left else x + widths[number] - 12
        _column(drawing, product, column, heads[number], texts, (at, body), left=left)
        x += widths[number]
    _source(drawing, product)
    return drawing.svg()


def _head(column: Column, texts: Sequence[str]) -> list[str]:
    longest = max([width_of(text, 14, bold=True) for text in texts], default=0.0)
    lines = wrapped(column.title, 12, max(longest, 92.0), bold=True)
    return [*lines, column.unit] if column.unit else lines


def _column_width(head: Sequence[str], texts: Sequence[str]) -> float:
    entries = [width_of(text, 14, bold=True) for text in texts]
    return max([*entries, *(width_of(line, 12, bold=True) for line in head)]) + 24


def _column(
    drawing: Drawing,
    product: Product,
    column: Column,
    head: Sequence[str],
    texts: Sequence[str],
    at: tuple[float, float],
    *,
    left: bool,
) -> None:
    """Draw a column. `at`: where its texts begin (`left`) or end, and where its head ends."""
    (x, y), colours = at, product.theme.palette
    for line, text in enumerate(reversed(head)):
        unit = bool(column.unit) and line == 0
        colour = colours["soft" if unit else "ink"]
        drawing.text((x, y - 12 - 16 * line), text, 12, colour, bold=not unit, anchor="start" if left else "end")
    for row, text in enumerate(texts):
        bold = column.group == "measured"
        at = (x, y + _ROW * row + 21)
        drawing.text(at, text, 14, colours["ink"], bold=bold, anchor="start" if left else "end")


def charts(product: Product) -> Iterator[str]:
    """Yield each chart of the report as an SVG picture that stands alone in the theme's colours."""
    if product.other is not None:
        return
    theme, palette = product.theme, product.theme.palette
    own = {f"s{number}": colour for number, colour in enumerate(palette.series, 1)}
    own |= {"axis": palette["soft"], "grid": palette["line"]}
    own |= {name: palette[name] for name in ("ceiling", "good", "warn")}
    colours = Palette({**LIGHT.colours, **own}, palette["paper"], palette["ink"], families(with_common(theme.text)))
    blocks = [block for section in product.document.sections for block in section.blocks]
    drawn = [(chart, block.keys) for block in blocks if isinstance(block, Charts) for chart in block.charts]
    virtual = " Virtual rig." if product.virtual else ""
    for chart, legend in drawn[:MOST_CHARTS]:
        label = worded(chart.label or chart.heading, theme)
        yield render_svg(chart.plot, colours, legend, f"{product.name}: {label}.{virtual}")


def card(product: Product) -> str:
    """Return name, logo and the claim in large letters as an SVG picture; without a claim, what was measured."""
    theme, colours = product.theme, product.theme.palette
    width, height = CARD
    drawing = Drawing(width, height, theme.text, product.title, colours["paper"])
    drawing.box((0, 0), (width, 14), colours["accent"])
    left = x = 80.0
    if theme.logo is not None:
        wide = min(72 * theme.logo.aspect, 420)
        tall = wide / theme.logo.aspect
        drawing.image((left, 70 + (72 - tall) / 2), (wide, tall), theme.logo.address)
        x += wide + 28
    drawing.text((x, 122), product.name, 44, colours["ink"], bold=True, fonts=theme.headings)
    if theme.maker:
        drawing.text((x, 158), theme.maker, 26, colours["soft"])
    _headline(drawing, product, left)
    drawing.line((left, 540), (width - left, 540), colours["line"])
    drawing.text((left, 584), product.source, 24, colours["soft"])
    return drawing.svg()


def _headline(drawing: Drawing, product: Product, left: float) -> None:
    theme, colours, claim = product.theme, product.theme.palette, product.claimed
    room = drawing.width - 2 * left
    first, rest = theme.words.results, product.verdict[0] if product.verdict else product.summary
    if claim:
        first, rest = rate_text(claim.mbps), claim.rest
        if claim.virtual:
            drawing.text((left, 218), "Virtual rig:", 34, colours["accent"], bold=True)
    size = min(104.0, 104 * room / max(1.0, width_of(first, 104, bold=True)))
    drawing.text((left, 322), first, round(size), colours["accent"], bold=True, fonts=theme.headings)
    smaller = 44 if len(wrapped(rest, 44, room)) <= 3 else 34
    for number, line in enumerate(wrapped(rest, smaller, room)[:4]):
        drawing.text((left, 392 + 1.3 * smaller * number), line, smaller, colours["ink"])
