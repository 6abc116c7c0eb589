"""The comparison table: what was asked for, the speed and retransmits of each pair, then what was granted and possible.

One table, printed three ways: by rich in a terminal, as Markdown here, and by the page template.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from rigctl.analysis.summary import CellSummary, Estimate, StreamSummary
from rigctl.records import Cell, Direction
from rigctl.report.table import ComparisonTable, TableColumn, TableRow
from rigctl.report.text import UNKNOWN, ceiling_text, count_text, kib_text, percent_text, rate_text

MOST_LISTED: Final = 4
"""More pairs than this are shown as their range, beside their sum."""

NOT_ASKED: Final = "default"


def comparison(cells: Sequence[CellSummary]) -> ComparisonTable:
    """The table of a run; columns of settings that no cell asks for are left out."""
    makers = [*_asked(cells), *_measured(cells), *_derived(cells)]
    notes: list[str] = []
    rows = []
    for cell in cells:
        first = len(notes) + 1
        notes.extend(cell.notes)
        rows.append(
            TableRow(
                number=cell.cell.number,
                cells=tuple(make(cell) for _, make in makers),
                notes=tuple(range(first, len(notes) + 1)),
                counted=cell.counted > 0,
                line_rate=cell.limit == "line-rate",
            )
        )
    return ComparisonTable(tuple(column for column, _ in makers), tuple(rows), tuple(notes), tuple(_legend(cells)))


_Maker = tuple[TableColumn, Callable[[CellSummary], str]]


def _asked(cells: Sequence[CellSummary]) -> list[_Maker]:
    plan = [summary.cell for summary in cells]
    made: list[_Maker] = [(TableColumn("Test", "", "asked"), lambda one: str(one.cell.number))]
    if any(cell.condition is not None for cell in plan):
        made.append((TableColumn("Condition", "", "asked", True), lambda one: one.cell.condition or NOT_ASKED))
    if len({len(cell.pairs) for cell in plan}) > 1:
        made.append((TableColumn("Pairs", "", "asked"), lambda one: str(len(one.cell.pairs))))
    if any(cell.window.total_bytes is not None for cell in plan):
        total = TableColumn("Window in all", "KiB", "asked")
        made.append((total, lambda one: _or_default(one.cell.window.total_bytes, kib_text)))
    if any(cell.window.bytes is not None for cell in plan):
        made.append((TableColumn("Window", "KiB", "asked"), lambda one: _or_default(one.cell.window.bytes, kib_text)))
    if any(cell.tcp.mss is not None for cell in plan):
        made.append((TableColumn("MSS", "B", "asked"), lambda one: _or_default(one.cell.tcp.mss, str)))
    made.append((TableColumn("Parallel", "", "asked"), lambda one: str(one.cell.parallel)))
    if any(cell.transport == "udp" for cell in plan):
        made.append((TableColumn("Datagram", "B", "asked"), lambda one: _or_default(one.cell.message_bytes, str)))
        made.append((TableColumn("Rate of a flow", "Mbit/s", "asked"), lambda one: _rate(one.cell)))
    if any(cell.tcp.congestion is not None for cell in plan):
        made.append((TableColumn("Congestion", "", "asked", True), lambda one: one.cell.tcp.congestion or NOT_ASKED))
    if any(cell.tcp.nodelay is not None for cell in plan):
        made.append((TableColumn("Nodelay", "", "asked", True), lambda one: _nodelay(one.cell)))
    if any(cell.direction is not Direction.FORWARD for cell in plan):
        made.append((TableColumn("Direction", "", "asked", True), lambda one: str(one.cell.direction)))
    return made


def _measured(cells: Sequence[CellSummary]) -> list[_Maker]:
    most = max((len(one.cell.pairs) for one in cells), default=0)
    each = "Speed of each pair" if most > 1 else "Speed"
    # All rows in one way: a range in each where one of them needs it.
    ranges = most > MOST_LISTED
    made: list[_Maker] = [
        (TableColumn(each, "Mbit/s", "measured"), lambda one: _per_pair(one, ranges, _speed, _speeds)),
        *(_of_datagrams(ranges) if _datagrams(cells) else (_resent(ranges),)),
    ]
    if most > MOST_LISTED:
        total = TableColumn("Speed, sum", "Mbit/s", "measured")
        made.insert(0, (total, lambda one: _estimate(one.goodput_mbps, one.ceiling_mbps)))
    return made


def _derived(cells: Sequence[CellSummary]) -> list[_Maker]:
    several = any(len(one.streams) > 1 for one in cells)
    granted: list[_Maker] = [
        (
            TableColumn("Effective window", "KiB", "derived"),
            lambda one: _span([stream.window_effective_bytes for stream in one.streams], kib_text),
        ),
        (
            TableColumn("Effective MSS", "B", "derived"),
            lambda one: _span([stream.mss_effective for stream in one.streams], str),
        ),
    ]
    return [
        *(() if _datagrams(cells) else granted),
        (TableColumn("Ceiling of a pair" if several else "Ceiling", "Mbit/s", "derived"), _ceiling),
        (TableColumn("Efficiency", "%", "derived"), lambda one: percent_text(one.efficiency)),
        (TableColumn("Limit", "", "derived", True), lambda one: one.limit if one.counted else UNKNOWN),
    ]


def _datagrams(cells: Sequence[CellSummary]) -> bool:
    return any(one.cell.transport == "udp" for one in cells)


def _resent(ranges: bool) -> _Maker:
    return (
        TableColumn("Retransmits", "", "measured"),
        lambda one: _per_pair(one, ranges, lambda stream: count_text(stream.retransmits), _retransmits),
    )


def _of_datagrams(ranges: bool) -> list[_Maker]:
    """Loss, jitter and order of each pair; of many pairs the worst."""

    def column(title: str, unit: str, name: str, text: Callable[[float | None], str]) -> _Maker:
        def value(stream: StreamSummary) -> float | None:
            return None if stream.datagrams is None else getattr(stream.datagrams, name)

        def worst(one: CellSummary) -> str:
            return text(max((known for stream in one.streams if (known := value(stream)) is not None), default=None))

        return TableColumn(title, unit, "measured"), lambda one: _per_pair(one, ranges, lambda s: text(value(s)), worst)

    return [
        column("Loss", "%", "loss_pct", lambda value: UNKNOWN if value is None else f"{value:.3g}"),
        column("Lost in a row, at most", "", "burst_max", count_text),
        column("Reordered", "", "reordered", count_text),
        column("Twice", "", "duplicates", count_text),
        column("Jitter", "µs", "jitter_us", lambda value: UNKNOWN if value is None else f"{value:.3g}"),
    ]


def _rate(cell: Cell) -> str:
    rate = cell.datagrams.rate
    return f"{rate / 1e6:g}" if isinstance(rate, int) else rate or NOT_ASKED


def _or_default(value: int | None, text: Callable[[int], str]) -> str:
    return NOT_ASKED if value is None else text(value)


def _nodelay(cell: Cell) -> str:
    return NOT_ASKED if cell.tcp.nodelay is None else "on" if cell.tcp.nodelay else "off"


def _estimate(estimate: Estimate | None, ceiling_mbps: float | None) -> str:
    if estimate is None:
        return UNKNOWN
    text = rate_text(estimate.mean, ceiling_mbps)
    if estimate.spread is None:
        return text
    return f"{text} ± {estimate.spread:.{0 if estimate.spread >= 1 else 1}f}"


def _speed(stream: StreamSummary) -> str:
    return _estimate(stream.goodput_mbps, stream.ceiling_mbps)


def _per_pair(
    one: CellSummary, ranges: bool, text: Callable[[StreamSummary], str], many: Callable[[CellSummary], str]
) -> str:
    """Pairs side by side with commas, the two directions of a pair with a slash; or `ranges` where there are many."""
    if ranges:
        return many(one)
    by_pair: dict[object, list[str]] = {}
    for stream in one.streams:
        by_pair.setdefault(stream.stream.pair, []).append(text(stream))
    return ", ".join(" / ".join(texts) for texts in by_pair.values())


def _speeds(one: CellSummary) -> str:
    known = [stream.goodput_mbps.mean for stream in one.streams if stream.goodput_mbps is not None]
    low, high = (rate_text(min(known)), rate_text(max(known))) if known else (UNKNOWN, UNKNOWN)
    return low if low == high else f"{low} to {high}"


def _retransmits(one: CellSummary) -> str:
    return count_text(one.retransmits)


def _ceiling(one: CellSummary) -> str:
    if one.shared:
        return f"{ceiling_text(one.ceiling_mbps)} together"
    return _distinct(ceiling_text(stream.ceiling_mbps) for stream in one.streams)


def _span(values: Sequence[int | None], text: Callable[[int], str]) -> str:
    """The values that differ; from three on the least and the largest."""
    known = sorted({value for value in values if value is not None})
    if len(known) > 2:
        return f"{text(known[0])} to {text(known[-1])}" + (f", {UNKNOWN}" if None in values else "")
    return _distinct(UNKNOWN if value is None else text(value) for value in values)


def _distinct(texts: Iterable[str]) -> str:
    found = list(dict.fromkeys(texts))
    return ", ".join(found) if found else UNKNOWN


def _legend(cells: Sequence[CellSummary]) -> list[str]:
    """What the signs in the table mean, where they occur."""
    said = []
    if any(one.counted > 1 for one in cells):
        said.append("Speeds are means over repetitions ± their standard deviation; counts are means.")
    if any(one.cell.direction is Direction.BOTH for one in cells):
        said.append("With both directions: forward / reverse.")
    if any(len(one.cell.pairs) > MOST_LISTED for one in cells):
        said.append("Of loss, jitter and order the worst pair." if _datagrams(cells) else "Retransmits: of all pairs.")
    return said
