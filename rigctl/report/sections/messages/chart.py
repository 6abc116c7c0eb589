"""Round-trip time or throughput against the size of a message, on logarithmic axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import format_bytes
from rigctl.report.blocks import Chart
from rigctl.report.charts.plot import Axis, Mark, Plot, Spans, plot, stream_colours
from rigctl.report.charts.plot import Line as Drawn
from rigctl.report.sections.messages.lines import Line
from rigctl.report.words.text import rate_text

_WIDTH: Final = 1040
_HEIGHT: Final = 340


@dataclass(frozen=True, slots=True)
class Size:
    """Of one size the mean with its spread in µs, or throughput and ceiling in MB/s."""

    size: int
    value: float
    spread: tuple[float, float] | None = None
    ceiling: float | None = None


def message_chart(drawn: Sequence[Line], *, trips: bool) -> Chart | None:
    """The chart; `None` where there are fewer than two sizes to draw."""
    found = [[size for result in line.results if (size := _size(result, trips))] for line in drawn]
    known = [size for line in found for size in line]
    if len({size.size for size in known}) < 2:
        return None
    low, high = (end(known, key=lambda size: size.size) for end in (min, max))
    unit = "µs" if trips else "MB/s"
    what = "Mean round trip" if trips else "Throughput"
    label = (
        f"{what} against message size: {rate_text(low.value)} {unit} at {format_bytes(low.size)}, "
        f"{rate_text(high.value)} {unit} at {format_bytes(high.size)}"
    )
    return Chart(_plot(found, trips=trips), label)


def _size(result: MessageResult, trips: bool) -> Size | None:
    if not trips:
        if result.bytes_per_s is None:
            return None
        ceiling = None if result.ceiling_bps is None else result.ceiling_bps / 8e6
        return Size(result.size, result.bytes_per_s / 1e6, ceiling=ceiling)
    if result.rtt_mean_ns is None:
        return None
    low, high = result.rtt_us(50), result.rtt_us(99)
    spread = None if low is None or high is None else (low, high)
    return Size(result.size, result.rtt_mean_ns / 1000, spread)


def _plot(found: Sequence[Sequence[Size]], *, trips: bool) -> Plot:
    """What bounds or spreads the means lies below them."""
    below: list[Mark] = []
    means: list[Mark] = []
    for line, colour in zip(found, stream_colours(len(found)), strict=True):
        spreads = tuple((size.size, *size.spread) for size in line if size.spread is not None)
        ceiling = tuple((size.size, size.ceiling) for size in line)
        below.append(Spans(spreads, colour, width=4, opacity=0.3))
        below.append(Drawn(ceiling, "ceiling", width=1.2, dashed=True))
        means.append(Drawn(tuple((size.size, size.value) for size in line), colour, dots=True))
    across = Axis("bytes per message", kind="log2", ticks=12, labels="bytes")
    up = Axis("round trip [µs]" if trips else "MB/s", kind="log10", ticks=7)
    return plot(_WIDTH, _HEIGHT, across, up, (*below, *means))
