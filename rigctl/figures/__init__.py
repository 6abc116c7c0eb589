"""Figures are the results of a test. Each has one record here, as each setting has one in `rigctl.settings`.

`COLUMNS` is the table of all columns, in order. Exports, `--json`, `expect` and the docs are made from it.
"""

from collections.abc import Mapping
from typing import Any, Final

from rigctl.figures.bursts import BURST_FIGURES
from rigctl.figures.ceilings import CEILING_FIGURES
from rigctl.figures.connections import CONNECTION_FIGURES
from rigctl.figures.counters import COUNTER_FIGURES
from rigctl.figures.datagrams import DATAGRAM_FIGURES
from rigctl.figures.effective import columns_of_setting
from rigctl.figures.figure import ALL_LEVELS, Figure, FlowGroup, combine_streams
from rigctl.figures.messages import MESSAGE_FIGURES
from rigctl.figures.multicast import MULTICAST_FIGURES
from rigctl.figures.probes import PROBES
from rigctl.figures.processors import PROCESSOR_FIGURES
from rigctl.figures.requests import REQUEST_FIGURES
from rigctl.figures.streams import (
    BYTES,
    FAIRNESS,
    GOODPUT,
    GOODPUT_LEAST,
    GOODPUT_MEDIAN,
    LONGEST_GAP,
    RETRANSMITS,
    START_SKEW,
    STREAM_FIGURES,
)
from rigctl.settings import PARALLEL, SETTINGS, setting_columns
from rigctl.settings.setting import BUCKETS, MEASURED, ONLY_FLOWS, PHASED, DataColumn, Level, as_column

__all__ = ["BY_NAME", "COLUMNS", "FIGURES", "NAMES", "DataColumn", "Figure", "FlowGroup", "Level"]
__all__ += ["columns_at", "combine_streams", "dtype"]

_PAIRS: Final = ALL_LEVELS - {Level.CELLS}
_SERIES: Final = frozenset({Level.INTERVALS, Level.BINS})
_TRAFFIC_NAMES: Final = (
    "window_total",
    "window",
    "transport",
    "rate",
    "burst",
    "size",
    "iterations",
    "busy_poll",
    "read",
    "write",
    "close",
    "reply",
    "per_second",
    "length",
    "interval",
    "unjoined",
    "join",
    "leave",
    "group",
    "ttl",
    "engine",
)
_TRAFFIC: Final = tuple(SETTINGS[name] for name in _TRAFFIC_NAMES)
_CONNECTION: Final = (*(setting for setting in SETTINGS.values() if setting not in (*_TRAFFIC, PARALLEL)), PARALLEL)

COLUMNS: Final[tuple[DataColumn, ...]] = (
    DataColumn(name="run", unit="", levels=ALL_LEVELS, meaning="id of the run"),
    DataColumn(name="cell", unit="", levels=ALL_LEVELS, meaning="number of the test in the scenario's order, from 1"),
    DataColumn(name="repetition", unit="", levels=ALL_LEVELS, meaning="number of the repetition, from 1"),
    DataColumn(
        name="attempt",
        unit="",
        levels=ALL_LEVELS,
        meaning="1, or 2 if the repetition was measured again after an invalid attempt",
    ),
    DataColumn(name="status", unit="", levels=ALL_LEVELS, meaning="ok, invalid, failed or interrupted"),
    as_column(
        "counted",
        "",
        "whether the row counts in the means of the results table: its status is ok, it is no retest, and in a search "
        "for the highest rate it is the deciding trial",
    ),
    as_column("reason", "", "why the status is not ok; if it is ok, which pairs were not measured, and why"),
    DataColumn(name="test", unit="", levels=ALL_LEVELS, meaning="kind of test, such as tcp"),
    DataColumn(
        name="part",
        unit="",
        levels=MEASURED | PHASED,
        meaning="part of the scenario; empty if the scenario has no parts",
    ),
    DataColumn(
        name="class",
        unit="",
        levels=MEASURED | PHASED,
        meaning="traffic class; all classes are measured at once; empty if the scenario has no classes",
    ),
    DataColumn(
        name="phase",
        unit="",
        levels=PHASED,
        meaning="before, during or after other classes start and stop beside the class",
    ),
    DataColumn(
        name="start_s", unit="s", levels=PHASED, meaning="start of the phase, after the start of the test", digits=3
    ),
    DataColumn(
        name="stop_s", unit="s", levels=PHASED, meaning="end of the phase, after the start of the test", digits=3
    ),
    as_column("condition", "", "condition (host settings) of the test; empty if the nodes are measured as they are"),
    DataColumn(
        name="pairs",
        unit="",
        levels=frozenset({Level.CELLS}),
        meaning="number of node pairs that are measured at the same time",
    ),
    DataColumn(name="source", unit="", levels=_PAIRS, meaning="source node of the pair"),
    DataColumn(name="destination", unit="", levels=_PAIRS, meaning="destination node of the pair"),
    DataColumn(
        name="direction",
        unit="",
        levels=ALL_LEVELS,
        meaning="forward: source to destination; reverse: destination to source; both: only at level cells",
    ),
    DataColumn(
        name="flow",
        unit="",
        levels=ONLY_FLOWS | {Level.INTERVALS} | BUCKETS,
        meaning="number of the flow within its pair and direction, from 1",
    ),
    DataColumn(
        name="t_s",
        unit="s",
        levels=_SERIES,
        meaning="end of the interval or bin, in s after the start of the measurement interval or file",
        digits=4,
    ),
    *(column for setting in _TRAFFIC for column in columns_of_setting(setting)),
    as_column(
        "max_latency_us",
        "us",
        "requested longest 99th percentile of the times of requests; empty unless the most requests are searched",
    ),
    as_column("search_trials", "", "trials of a search (rate, per_second or length: max); empty: no search"),
    as_column("search_s", "s", "time that all trials of the search took, with their preparation", 1),
    as_column(
        "search_lower",
        "",
        "relevant lower bound of the search (RFC 9971), in the unit of rate_mbps, per_second or burst_length; empty if "
        "no trial passed often enough",
        2,
    ),
    as_column("search_upper", "", "relevant upper bound, as search_lower; empty if no trial failed often enough", 2),
    as_column(
        "search_conditional_mbps",
        "Mbit/s",
        "conditional throughput of each flow (RFC 9971) in a search for a rate: what arrived at search_lower",
        2,
    ),
    *MESSAGE_FIGURES,
    *CONNECTION_FIGURES,
    *REQUEST_FIGURES,
    *BURST_FIGURES,
    *MULTICAST_FIGURES,
    DataColumn(
        name="app_rtt_bucket_low_us",
        unit="us",
        levels=BUCKETS,
        meaning="lower bound of a bucket of times: round trips of messages, times to connect, or those of requests",
        digits=3,
    ),
    DataColumn(
        name="app_rtt_bucket_high_us",
        unit="us",
        levels=BUCKETS,
        meaning="upper bound of a bucket of times: round trips of messages, times to connect, or those of requests",
        digits=3,
    ),
    DataColumn(
        name="loss_burst_low",
        unit="",
        levels=BUCKETS,
        meaning="lower bound of a bucket of loss bursts: datagrams lost in a row",
    ),
    DataColumn(
        name="loss_burst_high",
        unit="",
        levels=BUCKETS,
        meaning="upper bound of a bucket of loss bursts: datagrams lost in a row",
    ),
    DataColumn(
        name="count",
        unit="",
        levels=BUCKETS,
        meaning="number of round trips or loss bursts in the bucket; an empty bucket has no row",
    ),
    *(column for setting in _CONNECTION for column in columns_of_setting(setting)),
    DataColumn(
        name="duration_s",
        unit="s",
        levels=MEASURED | PHASED,
        meaning="length of the measurement interval: all flows run, omitted start excluded; of a phase, without the "
        "time in which its load settles",
        digits=3,
    ),
    BYTES,
    GOODPUT,
    DataColumn(
        name="cumulative_mbps",
        unit="Mbit/s",
        levels=frozenset({Level.BINS}),
        meaning="goodput from t_s = 0 to the end of the bin",
        digits=1,
    ),
    GOODPUT_MEDIAN,
    GOODPUT_LEAST,
    FAIRNESS,
    LONGEST_GAP,
    *DATAGRAM_FIGURES,
    RETRANSMITS,
    *STREAM_FIGURES,
    *PROBES,
    START_SKEW,
    *CEILING_FIGURES,
    *PROCESSOR_FIGURES,
    *COUNTER_FIGURES,
)
BY_NAME: Final[Mapping[str, DataColumn]] = {column.name: column for column in COLUMNS}
FIGURES: Final[Mapping[str, Figure[Any]]] = {column.name: column for column in COLUMNS if isinstance(column, Figure)}
NAMES: Final = {level: tuple(column.name for column in COLUMNS if level in column.levels) for level in Level}
"""Maps each level to the names of its columns, in table order."""
_TEXT: Final = frozenset(
    {"run", "status", "reason", "test", "part", "class", "phase", "source", "destination", "direction", "condition"}
    | {figure.name for figure in FIGURES.values() if figure.is_text}
    | {name for name, kind in setting_columns().items() if kind is str}
)
_FLAGS: Final = frozenset({"counted"} | {name for name, kind in setting_columns().items() if kind is bool})


def columns_at(level: Level) -> tuple[DataColumn, ...]:
    """Return the columns of `level`, in table order."""
    return tuple(column for column in COLUMNS if level in column.levels)


def dtype(column: DataColumn) -> str:
    """Return the pandas type of a column; every type can hold NA, which stands for an unknown value."""
    if column.name in _TEXT:
        return "string"
    return "boolean" if column.name in _FLAGS else "Int64" if column.digits is None else "Float64"
