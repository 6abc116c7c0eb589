"""Exports for services that track benchmarks: valid by their definitions, stable names, nothing for the unknown."""

import json
from dataclasses import replace
from typing import Any, Final

import builders
import jsonschema
import message_runs
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Repetition, RunInfo
from rigctl.report.export.ci import bencher, benchmark_action

METRIC: Final = {
    "type": "object",
    "properties": {key: {"type": "number"} for key in ("value", "lower_value", "upper_value")},
    "required": ["value"],
}
BENCHER: Final = {
    "type": "object",
    "patternProperties": {".+": {"type": "object", "patternProperties": {".+": METRIC}}},
}
"""bencher.dev/bmf.json; names up to 1024 characters, slugs of measures up to 64."""
ACTION: Final = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"value": {"type": "number"}}
        | {key: {"type": "string"} for key in ("name", "unit", "range", "extra")},
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}
"""`BenchmarkResult` of github-action-benchmark, src/extract.ts. It refuses a file without results."""


def bmf(info: RunInfo, repetitions: list[Repetition]) -> dict[str, dict[str, dict[str, float]]]:
    made: dict[str, dict[str, dict[str, float]]] = json.loads(bencher(RunView(info, repetitions)))
    jsonschema.validate(made, BENCHER)
    assert all(0 < len(name) <= 1024 for name in made)
    assert all(0 < len(slug) <= 64 for measures in made.values() for slug in measures)
    return made


def action(info: RunInfo, repetitions: list[Repetition], *, smaller: bool = False) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(benchmark_action(RunView(info, repetitions), smaller=smaller))
    jsonschema.validate(made, ACTION)
    assert len({entry["name"] for entry in made}) == len(made)
    return made


def repeated() -> tuple[RunInfo, list[Repetition]]:
    """Two tests, the first with three repetitions."""
    cells = [builders.cell(1), builders.cell(2, parallel=5)]
    mbps = {(1, 1): 900.0, (1, 2): 930.0, (1, 3): 915.0, (2, 1): 941.0}
    made = [builders.repetition(cells[cell - 1], (rate, rate), number=number) for (cell, number), rate in mbps.items()]
    return builders.run(builders.plan(cells, repeat=3)), made


def test_bencher_has_the_range_of_the_repetitions() -> None:
    info, repetitions = repeated()
    first, second = (own["goodput-mbps"] for own in bmf(info, repetitions).values())
    assert [round(first[name] / 2) for name in ("lower_value", "value", "upper_value")] == [900, 915, 930]
    assert list(second) == ["value"]


def test_goodput_and_round_trips_go_to_files_of_their_own() -> None:
    info, repetitions = repeated()
    bigger = action(info, repetitions)
    assert [entry["unit"] for entry in bigger] == ["Mbit/s", "Mbit/s"]
    assert bigger[0]["range"] == "± 30"
    assert "range" not in bigger[1]
    with pytest.raises(InputError, match="no round trip and no loss"):
        action(info, repetitions, smaller=True)
    trips = action(*message_runs.measured("pingpong", message_runs.PING), smaller=True)
    assert {entry["unit"] for entry in trips} == {"us"}


def test_a_test_that_was_not_measured_is_absent() -> None:
    info, repetitions = builders.gigablox()
    repetitions[2] = builders.failed(info.plan.cells[2])
    assert len(bmf(info, repetitions)) == len(action(info, repetitions)) == 6
    with pytest.raises(InputError, match="no figure that was measured"):
        bmf(info, [])


def test_names_are_the_same_in_the_next_run_and_unique_in_each() -> None:
    info, repetitions = builders.gigablox()
    names = list(bmf(info, repetitions))
    assert names == list(bmf(replace(info, run="20270101-010101-beef"), repetitions))
    assert names[0].startswith(f"{info.plan.scenario_name}: ")
    twice = [builders.cell(1), builders.cell(2)]
    same = bmf(builders.run(builders.plan(twice)), [builders.repetition(one) for one in twice])
    assert [name[-8:] for name in same] == [", test 1", ", test 2"]
