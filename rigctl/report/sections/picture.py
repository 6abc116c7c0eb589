"""Chooses the chart below the answer of a run of streams or datagrams, by the setting that the tests vary.

Variants of --against are bars side by side. If windows or datagram sizes vary, points are drawn beside the curve of
what the link or window allows. All other runs have a bar per test and pair.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, Literal

from rigctl.analysis.run_view import RunView
from rigctl.base.units import digits_text
from rigctl.base.values import least
from rigctl.findings.text import mean_mbps, plural, rate_decimals, rate_text, span
from rigctl.limits.ceilings import window_bps
from rigctl.limits.limit import BY_WINDOW
from rigctl.limits.links import datagram_path
from rigctl.records import settings_words
from rigctl.report.blocks import Chart, Charts, Key, Part
from rigctl.report.charts.bars import bars_chart, bars_of, names_of
from rigctl.report.charts.plot import WIDE, Axis, Dots, Line, plot, stream_colours
from rigctl.results.summary import CellSummary

_HEIGHT: Final = 240
_STEPS: Final = 40


def part(view: RunView) -> Part | None:
    """Return the chart; None if nothing was measured, and for meshes and ping-pong, blast or file tests."""
    cells = [cell for cell in view.cells if cell.goodput_mbps is not None and not cell.cell.in_messages]
    if view.meshes or not cells:
        return None
    what = f"Goodput of each pair in {plural(len(cells), 'test')}"
    bars = _variants(view, cells) or bars_chart(bars_of(cells, requested=True), what, names_of(cells))
    return Part(picture=_windows(cells) or _sizes(view, cells) or bars)


def _variants(view: RunView, cells: Sequence[CellSummary]) -> Charts | None:
    """Return bars with the total goodput of both variants of each test; None for a run without --against."""
    against, by_number = view.plan.against, {cell.cell.number: cell for cell in cells}
    twins = against.twins if against else ()
    both = [(by_number[one], by_number[other]) for one, other in twins if {one, other} <= by_number.keys()]
    if against is None or not both:
        return None
    names = (f"{against.before}, all pairs", f"{against.after}, all pairs")
    decimals = rate_decimals((cell.goodput_mbps, cell.ceiling_mbps) for own in both for cell in own)
    bars = [
        replace(
            bar,
            rates=tuple(cell.goodput_mbps for cell in own),
            texts=tuple(f"{mean_mbps(cell.goodput_mbps) or 0.0:.{decimals}f}" for cell in own),
            ceiling=own[0].ceiling_mbps,
        )
        for bar, own in zip(bars_of([first for first, _ in both], requested=True), both, strict=True)
    ]
    return bars_chart(bars, f"Goodput in {plural(len(bars), 'test')}", names)


def _windows(cells: Sequence[CellSummary]) -> Charts | None:
    """Return a chart of goodput and of window ÷ round-trip time by window; None unless windows limit a single pair."""
    known = [(cell, size) for cell in cells if (size := cell.streams[0].window_effective_bytes) and _slowest(cell)]
    sizes = {size for _, size in known}
    limited = [cell.streams[0].rtt_min_us for cell, _ in known if cell.limit == BY_WINDOW.word]
    several = any(len(cell.streams) > 1 or cell.cell.parallel > 1 for cell in cells)
    if several or len(known) < len(cells) or len(sizes) < 3 or len(limited) < 2 or None in limited:
        return None
    rtt_s = median(rtt_us or 0.0 for rtt_us in limited) / 1e6
    top = max(cell.ceiling_mbps or 0.0 for cell in cells)
    allowed = tuple((size, min(window_bps(size, rtt_s) / 1e6, top or math.inf)) for size in _between(sizes))
    name = f"window ÷ {digits_text(rtt_s * 1e3)} ms{', at most the ceiling' if top else ''}"
    across = Axis("window", kind="log2", labels="bytes", at=tuple(sorted(sizes)))
    return _curves(known, Line(allowed, "ceiling", 1.2, dashed=True, name=name), across, "window", "log10")


def _sizes(view: RunView, cells: Sequence[CellSummary]) -> Charts | None:
    """Return the chart of goodput and line rate by datagram size, or None for fewer than two sizes."""
    known = [(cell, size) for cell in cells if (size := cell.cell.message_bytes) and _slowest(cell)]
    sizes = {size for _, size in known}
    if len(sizes) < 2:
        return None
    first = cells[0].cell
    cells_of = [(size, replace(first, message_bytes=size)) for size in _between(sizes)]
    paths = [(size, datagram_path(view.info, first.streams[0].ends, cell.parallel, cell)) for size, cell in cells_of]
    allowed = tuple((size, own.ceiling_mbps) for size, own in paths)
    across = Axis("bytes of a datagram", kind="log2", at=tuple(sorted(sizes)))
    return _curves(known, Line(allowed, "ceiling", 1.2, dashed=True, name="line rate"), across, "size")


def _slowest(cell: CellSummary) -> float | None:
    return least(mean_mbps(stream.goodput_mbps) for stream in cell.streams)


def _between(sizes: Iterable[int]) -> list[int]:
    """Return `sizes`, and further sizes between them at equal logarithmic steps."""
    known = sorted({*sizes})
    steps = (round(known[0] * (known[-1] / known[0]) ** (step / _STEPS)) for step in range(_STEPS + 1))
    return sorted({*known, *steps})


def _curves(
    at: Sequence[tuple[CellSummary, int]], curve: Line, x: Axis, what: str, kind: Literal["linear", "log10"] = "linear"
) -> Charts:
    """Return a chart of goodput by size: a line per combination of the other settings, and the theoretical curve."""
    words = [settings_words(cell.cell) for cell, _ in at]
    names = [name for name in dict.fromkeys(name for own in words for name in own) if name != what]
    varied = [name for name in names if len({own.get(name) for own in words}) > 1]
    lines: dict[str, list[tuple[float, float]]] = {}
    for (cell, size), own in zip(at, words, strict=True):
        name = ", ".join(own.get(name, f"default {name}") for name in varied) or "goodput"
        lines.setdefault(name, []).append((size, _slowest(cell) or 0.0))
    marks: list[Line | Dots] = [curve]
    for (name, points), colour in zip(lines.items(), stream_colours(len(lines)), strict=True):
        # Goodput between two windows is not on the line between them, so only points are drawn.
        placed = tuple(sorted(points))
        line = Line(placed, colour, dots=True, name=name)
        marks.append(line if kind == "linear" else Dots(placed, colour, 8, name=name))
    rates = [rate for points in lines.values() for _, rate in points]
    label = f"Goodput against {what}: {span(map(rate_text, (min(rates), max(rates))))} Mbit/s"
    caption = "Each point is the slowest pair of a test." if any(len(cell.streams) > 1 for cell, _ in at) else ""
    keys = tuple(Key(mark.name or "", mark.colour) for mark in (*marks[1:], curve))
    up = Axis("Mbit/s", 0 if kind == "linear" else None, kind=kind, ticks=7)
    return Charts((Chart(plot(WIDE, _HEIGHT, x, up, tuple(marks)), label, caption),), keys, wide=True)
