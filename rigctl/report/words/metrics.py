"""Names and units of figures in print."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.figures import GOODPUT, LOADED_LATENCY, ROUND_TRIP, THROUGHPUT, Metric
from rigctl.records import Cell


@dataclass(frozen=True, slots=True)
class Words:
    """Name and unit of a figure, `short` for tables; a value in `unit` is the column's value times `scale`."""

    name: str
    short: str
    unit: str
    scale: float = 1.0


def sum_words(cells: Iterable[Cell], metric: Metric) -> str:
    """Return what a figure of these tests adds up, as `of all pairs`; empty if it is no sum."""
    made = list(cells)
    if metric not in (GOODPUT, THROUGHPUT) or all(len(cell.streams) == 1 for cell in made):
        return ""
    return "of all pairs" if any(len(cell.pairs) > 1 for cell in made) else "of both directions"


METRICS: Final[dict[Metric, Words]] = {
    GOODPUT: Words("goodput", "goodput", "Mbit/s"),
    ROUND_TRIP: Words("mean round trip", "round trip", "µs"),
    THROUGHPUT: Words("throughput", "throughput", "MB/s", 1e-6),
    LOADED_LATENCY: Words("latency under load, p50", "latency under load", "µs"),
}
