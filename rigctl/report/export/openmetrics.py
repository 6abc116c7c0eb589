"""The figures of a run as OpenMetrics text: for node_exporter's textfile collector and GitLab's metrics report.

Imported only where the format is asked for: it needs prometheus-client.
Only gauges, and no timestamps of samples: the collector refuses a file that has some (prometheus/node_exporter#769).
When the run began is a gauge of its own. Units are base units: seconds, bytes, ratios.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import Values, checks
from rigctl.columns import COLUMNS, Column, Level
from rigctl.records import Cell, Stream
from rigctl.report.words.text import settings_text, told_apart
from rigctl.scenario.expecting import OF_KIND

_UNITS: Final = {
    "Mbit/s": ("_mbps", "bytes_per_second", 1e6 / 8),
    "B/s": ("_bytes_per_s", "bytes_per_second", 1.0),
    "us": ("_us", "seconds", 1e-6),
    "s": ("_s", "seconds", 1.0),
    "%": ("_pct", "ratio", 1e-2),
    "B": ("_bytes", "bytes", 1.0),
}
"""By a column's unit: the end of the column's name, OpenMetrics' unit, and the factor between them."""
_OF_RUN: Final = ("scenario", "rig")
_OF_TEST: Final = (*_OF_RUN, "test", "settings")
_OF_PAIR: Final = (*_OF_TEST, "source", "destination", "direction")
"""Labels. The run's id is not among them: each run would begin new series."""


def render(view: RunView) -> bytes:
    """Return all figures that were measured. A figure that was not measured is absent."""

    class Figures:
        def collect(self) -> Iterator[GaugeMetricFamily]:
            yield from _families(view)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    written: bytes = generate_latest(registry)
    return written


def _families(view: RunView) -> Iterator[GaugeMetricFamily]:
    run = (view.plan.scenario_name, view.plan.rig_name)
    began = GaugeMetricFamily("rigctl_run_start_timestamp", "When the run began.", labels=_OF_RUN, unit="seconds")
    began.add_metric(run, view.info.started_at)
    yield began
    values, apart = Values(view), told_apart(view.plan.cells)
    of_test = {cell.number: (*run, str(cell.number), settings_text(cell, apart)) for cell in view.plan.cells}
    counted = GaugeMetricFamily("rigctl_test_measured", "1: the test has a valid result.", labels=_OF_TEST)
    for cell in view.plan.cells:
        counted.add_metric(of_test[cell.number], float(values.counted(cell)))
    yield counted
    for column in _figures(view):
        for level in sorted(column.levels & {Level.CELLS, Level.PAIRS}) or (Level.PAIRS,):
            family = _family(column, level)
            for cell, stream in _places(view.plan.cells, level):
                value = values.of(cell, stream, column.name)
                if isinstance(value, float | int):
                    scale = _UNITS[column.unit][2] if column.unit else 1.0
                    family.add_metric((*of_test[cell.number], *_pair(stream)), value * scale)
            if family.samples:
                yield family
    yield from _words(view, of_test)


def _figures(view: RunView) -> Iterator[Column]:
    """Yield the columns with figures of the run's kinds of tests, in the table's order."""
    kinds = {cell.test for cell in view.plan.cells}
    wanted = {name for kind in kinds for name in OF_KIND[kind]}
    yield from (column for column in COLUMNS if column.name in wanted)


def _family(column: Column, level: Level) -> GaugeMetricFamily:
    suffix, unit, _ = _UNITS.get(column.unit, ("", "", 1.0))
    unit = "ratio" if column.name == "efficiency" else unit
    name = f"rigctl_{'test' if level is Level.CELLS else 'pair'}_{column.name.removesuffix(suffix)}"
    labels = _OF_TEST if level is Level.CELLS else _OF_PAIR
    return GaugeMetricFamily(name, f"{column.meaning[:1].upper()}{column.meaning[1:]}.", labels=labels, unit=unit)


def _places(cells: Sequence[Cell], level: Level) -> Iterator[tuple[Cell, Stream | None]]:
    for cell in cells:
        for stream in (None,) if level is Level.CELLS else cell.streams:
            yield cell, stream


def _pair(stream: Stream | None) -> tuple[str, ...]:
    return () if stream is None else (stream.pair.source, stream.pair.destination, str(stream.direction))


def _words(view: RunView, of_test: Mapping[int, tuple[str, ...]]) -> Iterator[GaugeMetricFamily]:
    """Yield the bottleneck of each test, and whether the test is as expected."""

    limit = GaugeMetricFamily("rigctl_test_limit", "1: the bottleneck of the test.", labels=(*_OF_TEST, "limit"))
    for summary in () if view.plan.in_messages else view.cells:
        if summary.counted:
            limit.add_metric((*of_test[summary.cell.number], summary.limit), 1.0)
    if limit.samples:
        yield limit
    labels = (*_OF_TEST, "pair", "figure", "expected")
    met = GaugeMetricFamily("rigctl_expectation_met", "1: the result is as the scenario expects.", labels=labels)
    for check in checks(view):
        pair = "" if check.stream is None else str(check.stream)
        expected = (pair, check.expectation.name, check.expectation.text)
        met.add_metric((*of_test[check.cell.number], *expected), float(check.met))
    if met.samples:
        yield met
