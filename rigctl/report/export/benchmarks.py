"""The figures of a run for services that track benchmarks: Bencher and github-action-benchmark.

Formats: Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format), and the JSON of
github-action-benchmark for customBiggerIsBetter and customSmallerIsBetter, of which a file has one direction only.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.expectations import Values
from rigctl.base.errors import InputError
from rigctl.columns import BY_NAME, Column
from rigctl.report.words.text import settings_text, told_apart
from rigctl.scenario.expecting import OF_KIND

BIGGER: Final = frozenset({"goodput_mbps", "throughput_bytes_per_s"})
SMALLER: Final = frozenset(
    {"app_rtt_p50_us", "app_rtt_p99_us", "latency_loaded_p50_us", "latency_loaded_p99_us", "loss_pct"}
)
_MOST_NAME: Final = 1024
"""Characters of a benchmark's name at Bencher."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a test, or of one of its pairs. `each` has its values in the repetitions, where these are known."""

    name: str
    column: Column
    value: float
    each: tuple[float, ...]


def bencher(view: RunView) -> bytes:
    """Return Bencher Metric Format: the measures of each test, with the lowest and the highest repetition."""
    made: dict[str, dict[str, dict[str, float]]] = {}
    for figure in _figures(view, BIGGER | SMALLER):
        metric = {"value": figure.value}
        if len(figure.each) > 1:
            metric |= {"lower_value": min(figure.each), "upper_value": max(figure.each)}
        made.setdefault(figure.name, {})[figure.column.name.replace("_", "-")] = metric
    return _text(view, made, "figure")


def benchmark_action(view: RunView, *, smaller: bool = False) -> bytes:
    """Return the list of github-action-benchmark: goodput, or with `smaller` round trips and loss."""
    made = []
    for figure in _figures(view, SMALLER if smaller else BIGGER):
        entry = {"name": f"{figure.name}, {figure.column.name}", "unit": figure.column.unit, "value": figure.value}
        if len(figure.each) > 1:
            entry |= {"range": f"± {stdev(figure.each):.3g}"}
        made.append(entry | {"extra": f"run {view.info.run}: {figure.column.meaning}"})
    return _text(view, made, "round trip and no loss" if smaller else "goodput")


def has_smaller(view: RunView) -> bool:
    """Tell whether `benchmark_action` has figures with `smaller`."""
    return any(True for _ in _figures(view, SMALLER))


def _text(view: RunView, made: Sequence[object] | Mapping[str, object], what: str) -> bytes:
    if not made:
        raise InputError(f"export: run {view.info.run} has no {what} that was measured. `rigctl show` tells why")
    return f"{json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _figures(view: RunView, wanted: frozenset[str]) -> Iterator[Figure]:
    """Yield the wanted figures that were measured, in the scenario's order.

    A name is the same in every run of a scenario: it has the settings, and the test's number only where tests have
    the same settings.
    """
    values, apart = Values(view), told_apart(view.plan.cells)
    settings = {cell.number: settings_text(cell, apart) for cell in view.plan.cells}
    same = Counter(settings.values())
    for cell in view.plan.cells:
        number = f", test {cell.number}" if same[settings[cell.number]] > 1 else ""
        for stream in cell.streams if cell.in_messages else (None,):
            pair = f", {stream}" if stream is not None and len(cell.streams) > 1 else ""
            name = f"{view.plan.scenario_name}: {settings[cell.number]}{number}{pair}"[:_MOST_NAME]
            for column in OF_KIND[cell.test]:
                value = values.of(cell, stream, column)
                if column in wanted and isinstance(value, int | float):
                    yield Figure(name, BY_NAME[column], value, values.each(cell, stream, column))
