"""What figures are called in print, with their units."""

from dataclasses import dataclass
from typing import Final

from rigctl.analysis.figures import GOODPUT, LOADED_LATENCY, ROUND_TRIP, THROUGHPUT, Metric


@dataclass(frozen=True, slots=True)
class Words:
    """`short` where a table names it beside others; a value in `unit` is that of the column times `scale`."""

    name: str
    short: str
    unit: str
    scale: float = 1.0


METRICS: Final[dict[Metric, Words]] = {
    GOODPUT: Words("goodput", "goodput", "Mbit/s"),
    ROUND_TRIP: Words("mean round trip", "round trip", "µs"),
    THROUGHPUT: Words("throughput", "throughput", "MB/s", 1e-6),
    LOADED_LATENCY: Words("latency under load, p50", "latency under load", "µs"),
}
