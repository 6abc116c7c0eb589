"""A mesh over time: a row for each pair, a column for each night, coloured by the distance from the usual value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.records import Stream
from rigctl.report.blocks import HeatField
from rigctl.report.words.text import settings_text
from rigctl.site.nights import Slot

MOST_NIGHTS: Final = 60
_LEAST_NODES: Final = 3
_WITHIN: Final = 0.01
"""A share of the usual value. A field that is nearer to it has no number."""
_BOUNDS: Final = (0, 3, 10)
"""Percent, as printed, at which a colour begins."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Colours of the fields are classes: `w1` to `w3` worse, `b1` to `b3` better, `usual`, `none`."""

    title: str
    nights: tuple[Slot, ...]
    rows: tuple[tuple[str, tuple[HeatField, ...]], ...]


def heats(seen: Nights, slots: Sequence[Slot]) -> list[Heat]:
    """Return the latest nights of each mesh of three nodes or more, one for each point of the other axes."""
    points: dict[tuple[str, str], dict[Stream, NightSeries]] = {}
    for series in seen.series:
        stream = series.subject.stream or (series.cell.streams[0] if len(series.cell.streams) == 1 else None)
        if stream is not None and series.subject.node is None:
            point = str(replace(series.cell, number=0, pairs=()))
            points.setdefault((point, series.subject.metric.name), {})[stream] = series
    return [
        _heat(own, seen, slots)
        for own in points.values()
        if len(own) > len({node for stream in own for node in stream.ends}) >= _LEAST_NODES
    ]


def _heat(own: Mapping[Stream, NightSeries], seen: Nights, slots: Sequence[Slot]) -> Heat:
    shown = tuple(slots[-MOST_NIGHTS:])
    places = {info.run: number for number, info in enumerate(seen.runs)}
    nights = [places.get(slot.run or "") for slot in shown]
    rows = []
    for stream in sorted(own, key=lambda stream: stream.ends):
        series = own[stream]
        usual = median([point.value for point in series.points if point.value is not None] or [0.0])
        values = [None if night is None else series.points[night].value for night in nights]
        fields = tuple(_field(value, usual, series) for value in values)
        rows.append((f"{stream.sender} → {stream.receiver}", fields))
    return Heat(settings_text(next(iter(own.values())).cell), shown, tuple(rows))


def _field(value: float | None, usual: float, series: NightSeries) -> HeatField:
    if value is None or not usual:
        return HeatField("", "none")
    ratio = value / usual
    if abs(ratio - 1) < _WITHIN:
        return HeatField("", "usual")
    share = round(100 * (ratio - 1))
    size = sum(abs(share) >= bound for bound in _BOUNDS)
    return HeatField(f"{share:+d}".replace("-", "−"), f"{'b' if series.better(ratio) else 'w'}{size}")
