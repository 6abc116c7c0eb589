"""Figures of the probes: their round-trip times before the streams and while the streams run."""

from collections.abc import Callable
from typing import Final

from rigctl.figures.figure import TCP_AND_UDP, TESTS, Figure, FlowGroup


def _idle_us(percent: float) -> Callable[[FlowGroup], float | None]:
    return lambda group: group.idle.percentile_us(percent)


def _under_load_us(percent: float) -> Callable[[FlowGroup], float | None]:
    return lambda group: group.loaded.percentile_us(percent)


def _rise_us(group: FlowGroup) -> float | None:
    before_us, beside_us = group.idle.percentile_us(50), group.loaded.percentile_us(50)
    return None if before_us is None or beside_us is None else beside_us - before_us


IDLE: Final = Figure(
    *("latency_idle_p50_us", "us", TESTS, "median round-trip time of the probes before the streams", 1),
    compute=_idle_us(50),
    kinds=TCP_AND_UDP,
)
IDLE_P99: Final = Figure(
    *("latency_idle_p99_us", "us", TESTS, "99th percentile of the probes' round-trip time before the streams", 1),
    compute=_idle_us(99),
    kinds=TCP_AND_UDP,
)
LOADED: Final = Figure(
    *("latency_loaded_p50_us", "us", TESTS, "median round-trip time of the probes while the streams run", 1),
    compute=_under_load_us(50),
    kinds=TCP_AND_UDP,
    alias="rtt_p50",
    watched=True,
)
LOADED_P99: Final = Figure(
    *("latency_loaded_p99_us", "us", TESTS, "99th percentile of the probes' round-trip time during the streams", 1),
    compute=_under_load_us(99),
    kinds=TCP_AND_UDP,
    alias="rtt_p99",
    watched=True,
)
RISE: Final = Figure(
    *("latency_rise_us", "us", TESTS, "latency_loaded_p50_us - latency_idle_p50_us", 1),
    compute=_rise_us,
    kinds=TCP_AND_UDP,
)
RPM: Final = Figure(
    *("latency_rpm", "", TESTS),
    "round trips per minute under load: 60 s ÷ the mean round-trip time of the probes without the longest 5 %",
    0,
    compute=lambda group: group.loaded.per_minute,
    kinds=TCP_AND_UDP,
)
LOST_PROBES: Final = Figure(
    *("latency_lost_pct", "%", TESTS, "share of the probes under load that were not answered", 2),
    compute=lambda group: group.loaded.lost_pct,
    kinds=TCP_AND_UDP,
)
PROBES: Final = (IDLE, IDLE_P99, LOADED, LOADED_P99, RISE, RPM, LOST_PROBES)
"""Figures of the probes, in the order of the column table."""
