"""Figures of the probes: their round-trip times before the streams and while the streams run."""

from collections.abc import Callable
from typing import Final

from rigctl.figures.figure import TCP_AND_UDP, TESTS, ComparedAs, Figure, FlowGroup, ShownAs
from rigctl.settings.setting import PHASED


def _rise_us(group: FlowGroup) -> float | None:
    before_us, beside_us = IDLE.of(group), LOADED.of(group)
    return None if before_us is None or beside_us is None else beside_us - before_us


def _probe_figure(
    name: str,
    unit: str,
    meaning: str,
    digits: int,
    of: Callable[[FlowGroup], float | None],
    alias: str = "",
    compared: ComparedAs | None = None,
    shown: ShownAs | None = None,
    phased: bool = True,
) -> Figure[float]:
    return Figure(
        name=name,
        unit=unit,
        levels=TESTS | PHASED if phased else TESTS,
        meaning=meaning,
        digits=digits,
        compute=of,
        kinds=TCP_AND_UDP,
        alias=alias,
        watched=bool(alias),
        compared=compared,
        shown=shown,
    )


IDLE: Final = _probe_figure(
    "latency_idle_p50_us",
    "us",
    "median round-trip time of the probes before the streams",
    1,
    lambda group: group.idle.percentile_us(50),
    shown=ShownAs("Idle round trip", "ms", per_unit=1e3, short="Idle\nms", minor=1),
    phased=False,
)
IDLE_P99: Final = _probe_figure(
    "latency_idle_p99_us",
    "us",
    "99th percentile of the probes' round-trip time before the streams",
    1,
    lambda group: group.idle.percentile_us(99),
    phased=False,
)
LOADED: Final = _probe_figure(
    "latency_loaded_p50_us",
    "us",
    "median round-trip time of the probes while the streams run",
    1,
    lambda group: group.loaded.percentile_us(50),
    "rtt_p50",
    ComparedAs(lambda cell: cell.latency_ms is not None, "latency under load, p50", "latency under load", "µs"),
    shown=ShownAs("Loaded round trip", "ms", per_unit=1e3, short="Loaded\nms", minor=-1),
)
LOADED_P99: Final = _probe_figure(
    "latency_loaded_p99_us",
    "us",
    "99th percentile of the probes' round-trip time during the streams",
    1,
    lambda group: group.loaded.percentile_us(99),
    "rtt_p99",
)
RISE: Final = _probe_figure(
    "latency_rise_us", "us", "latency_loaded_p50_us - latency_idle_p50_us", 1, _rise_us, phased=False
)
RPM: Final = _probe_figure(
    "latency_rpm",
    "",
    "round trips per minute under load: 60 s ÷ the mean round-trip time of the probes without the longest 5 %",
    0,
    lambda group: group.loaded.per_minute,
    shown=ShownAs("Round trips per minute", minor=2),
    phased=False,
)
LOST_PROBES: Final = _probe_figure(
    "latency_lost_pct",
    "%",
    "share of the probes under load that were not answered",
    2,
    lambda group: group.loaded.lost_pct,
)
PROBES: Final = (IDLE, IDLE_P99, LOADED, LOADED_P99, RISE, RPM, LOST_PROBES)
"""Figures of the probes, in the order of the column table."""
