"""OpenMetrics text: read by both of prometheus_client's parsers; what was not measured is absent."""

from dataclasses import replace

import builders
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from rigctl.analysis.run_view import RunView
from rigctl.records import Comparison, Expectation, Repetition, RunInfo
from rigctl.report.export.openmetrics import render


def text_of(info: RunInfo, repetitions: list[Repetition]) -> str:
    return render(RunView(info, repetitions)).decode()


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    """By test and pair."""
    families = {family.name: family for family in openmetrics(text)}
    labels = ("test", "source", "destination")
    samples = families[name].samples if name in families else []
    return {tuple(s.labels[label] for label in labels if label in s.labels): s.value for s in samples}


def test_both_parsers_read_the_same_and_no_series_is_new_with_each_run() -> None:
    info, repetitions = builders.gigablox()
    text = text_of(info, repetitions)
    read = [{(s.name, *sorted(s.labels.items())): s.value for f in parse(text) for s in f.samples}
            for parse in (openmetrics, prometheus)]  # fmt: skip
    assert read[0] == read[1]
    assert len(read[0]) > 50
    assert info.run not in text


def test_the_text_suits_node_exporter() -> None:
    """It takes gauges, and refuses a file in which a sample has a timestamp."""
    families = list(prometheus(text_of(*builders.gigablox())))
    assert {family.type for family in families} == {"gauge"}
    assert all(sample.timestamp is None for family in families for sample in family.samples)


def test_what_was_not_measured_is_absent() -> None:
    info, repetitions = builders.gigablox()
    repetitions[2] = builders.failed(info.plan.cells[2])
    text = text_of(info, repetitions)
    assert values(text, "rigctl_test_measured")["3",] == 0
    for name in ("rigctl_test_goodput_bytes_per_second", "rigctl_test_efficiency_ratio", "rigctl_test_limit"):
        assert {test for (test,) in values(text, name)} == {"1", "2", "4", "5", "6", "7"}
    assert "latency" not in text
    assert " NaN" not in text


def test_expectations_are_met_or_not() -> None:
    info, repetitions = builders.gigablox()
    bound = Expectation("goodput", "goodput_mbps", ">= 1860M", Comparison.AT_LEAST, (1, 5), 1860.0)
    text = text_of(replace(info, plan=replace(info.plan, expectations=(bound,))), repetitions)
    assert values(text, "rigctl_expectation_met") == {("1",): 0.0, ("5",): 1.0}
