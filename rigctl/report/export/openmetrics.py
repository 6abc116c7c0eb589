"""Exports the figures of a run as OpenMetrics text, for node_exporter's textfile collector and GitLab's metrics report.

rigctl imports this module for this format only, because it needs prometheus-client. Samples have no timestamps: the
collector refuses files with timestamps (prometheus/node_exporter#769). Units are base units: seconds, bytes, ratios.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import checks
from rigctl.analysis.views.values import ValuesOfTests
from rigctl.figures import COLUMNS, DataColumn, Level
from rigctl.findings.text import how_pairs_differ, settings_text, upper_first
from rigctl.scenario.expectations import OF_KIND

_UNITS: Final = {
    "Mbit/s": ("_mbps", "bytes_per_second", 1e6 / 8),
    "B/s": ("_bytes_per_s", "bytes_per_second", 1.0),
    "us": ("_us", "seconds", 1e-6),
    "s": ("_s", "seconds", 1.0),
    "%": ("_pct", "ratio", 1e-2),
    "B": ("_bytes", "bytes", 1.0),
}
"""By unit of an export column: suffix of the column's name, OpenMetrics unit, and conversion factor."""
_OF_RUN: Final = ("scenario", "rig")
_OF_TEST: Final = (*_OF_RUN, "test", "settings")
_OF_PAIR: Final = (*_OF_TEST, "source", "destination", "direction")
"""Label names of a pair's figure. The run's id is no label, because each run would then begin new series."""


def render(view: RunView) -> bytes:
    """Return the measured figures as OpenMetrics text; a figure that was not measured is absent."""

    class Figures:
        def collect(self) -> Iterator[GaugeMetricFamily]:
            yield from (family for family in _families(view) if family.samples)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    return bytes(generate_latest(registry))


def _families(view: RunView) -> Iterator[GaugeMetricFamily]:
    cells, run = view.plan.cells, (view.plan.scenario_name, view.plan.rig_name)
    values, apart = ValuesOfTests(view), how_pairs_differ(cells)
    of_test = {cell.number: (*run, str(cell.number), settings_text(cell, apart)) for cell in cells}
    began = [(run, view.info.started_at)]
    yield _gauge("rigctl_run_start_timestamp", "When the run began.", _OF_RUN, began, "seconds")
    counted = [(of_test[cell.number], float(values.counted(cell))) for cell in cells]
    yield _gauge("rigctl_test_measured", "1: the test has a valid result.", _OF_TEST, counted)
    wanted = {name for kind in {cell.test for cell in cells} for name in OF_KIND[kind]}
    for column in COLUMNS:  # in the order of the export columns
        for level in sorted(column.levels & {Level.CELLS, Level.PAIRS}) or (Level.PAIRS,):
            if column.name in wanted:
                yield _figure(column, level, values, view, of_test)
    known = [summary for summary in view.cells if summary.counted and not summary.cell.in_messages]
    limits = [((*of_test[summary.cell.number], summary.limit), 1.0) for summary in known]
    yield _gauge("rigctl_test_limit", "1: the bottleneck of the test.", (*_OF_TEST, "limit"), limits)
    met = []
    for check in checks(view):
        expected = (str(check.stream or ""), check.expectation.name, check.expectation.text)
        met.append(((*of_test[check.cell.number], *expected), float(check.met)))
    labels = (*_OF_TEST, "pair", "figure", "expected")
    yield _gauge("rigctl_expectation_met", "1: the expectation is met. 0: it is not met or not known.", labels, met)


def _figure(
    column: DataColumn, level: Level, values: ValuesOfTests, view: RunView, of_test: Mapping[int, tuple[str, ...]]
) -> GaugeMetricFamily:
    """Return an export column as a gauge with a sample per test or pair."""
    suffix, unit, scale = _UNITS.get(column.unit, ("", "", 1.0))
    of_pairs = level is Level.PAIRS
    name = f"rigctl_{'pair' if of_pairs else 'test'}_{column.name.removesuffix(suffix)}"
    samples = []
    for cell in view.plan.cells:
        for stream in cell.streams if of_pairs else (None,):
            value = values.of(cell, stream, column.name)
            pair = (stream.pair.source, stream.pair.destination, str(stream.direction)) if stream else ()
            if isinstance(value, float | int):
                samples.append(((*of_test[cell.number], *pair), value * scale))
    unit = "ratio" if column.name == "efficiency" else unit
    return _gauge(name, f"{upper_first(column.meaning)}.", _OF_PAIR if of_pairs else _OF_TEST, samples, unit)


def _gauge(
    name: str, meaning: str, labels: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], float]], unit: str = ""
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, meaning, labels=labels, unit=unit)
    for values, value in samples:
        family.add_metric(values, value)
    return family
