"""Figures as sentences and tables name them: their words and units, and the decimals of a column of rates."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from rigctl.figures import Figure
from rigctl.figures.messages import ROUND_TRIP, THROUGHPUT
from rigctl.figures.probes import LOADED
from rigctl.figures.streams import GOODPUT
from rigctl.findings.text import decimals
from rigctl.records import Cell


class Rate(Protocol):
    """Anything with a mean in Mbit/s."""

    @property
    def mean(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Words:
    """Name and unit of a figure, `short` for tables; a value in `unit` is the column's value times `scale`."""

    name: str
    short: str
    unit: str
    scale: float = 1.0


METRICS: Final[dict[Figure[float], Words]] = {
    GOODPUT: Words("goodput", "goodput", "Mbit/s"),
    ROUND_TRIP: Words("mean round trip", "round trip", "µs"),
    THROUGHPUT: Words("throughput", "throughput", "MB/s", 1e-6),
    LOADED: Words("latency under load, p50", "latency under load", "µs"),
}


def sum_words(cells: Iterable[Cell], metric: Figure[float]) -> str:
    """Return what a figure of these tests adds up, as `of all pairs`; empty if it is no sum."""
    every = list(cells)
    if metric not in (GOODPUT, THROUGHPUT) or all(len(cell.streams) == 1 for cell in every):
        return ""
    return "of all pairs" if any(len(cell.pairs) > 1 for cell in every) else "of both directions"


def mean(estimate: Rate | None) -> float | None:
    """Return the mean in Mbit/s, or None if there is no estimate."""
    return None if estimate is None else estimate.mean


def rate_decimals(rates: Iterable[tuple[Rate | None, float | None]]) -> int:
    """Return the decimals of a goodput column: enough for its smallest rate, and no rate rounds above its ceiling."""
    known = [(rate.mean, ceiling_mbps) for rate, ceiling_mbps in rates if rate is not None]
    smallest = min((mbps for mbps, _ in known if mbps), default=1000.0)
    above = any(ceiling_mbps is not None and mbps <= ceiling_mbps < round(mbps) for mbps, ceiling_mbps in known)
    return max(decimals(smallest), int(above))
