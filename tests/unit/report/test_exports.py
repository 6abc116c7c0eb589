import csv
import io
import json
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import builders
import jsonschema
import message_runs
import pages
import pandas as pd
import pytest
from documents import document
from hypothesis import given, settings
from hypothesis import strategies as st
from meshes import NODES, mesh_run, messages_between
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.figures import Level, columns_at
from rigctl.records import Bins, Expectation, Link, Operator, Repetition, RunInfo
from rigctl.report.export.ci import bencher, benchmark_action, suite_of
from rigctl.report.export.formats import FORMATS
from rigctl.report.export.openmetrics import render
from rigctl.report.export.slurm import drain_commands
from rigctl.report.printers.json import as_json
from rigctl.report.printers.junit import Case, CaseOutcome, Suite, junit
from rigctl.results.frames import Frames, load_frames


def mixed() -> Frames:
    victim = builders.cell(1, parallel=2, bin_us=1_000_000, traffic_class="victim", group=1)
    cells = [victim, builders.cell(2, traffic_class="load", group=1, start_s=3.0)]
    one = builders.repetition(cells[0])
    binned = {"bins": Bins(one.window_start_ns or 0, 1_000_000, (1000, 0, 3000)), "histogram": ((7, 1),)}
    measured = [builders.changing_flows(one, receiver=binned), builders.failed(cells[1])]
    return load_frames(builders.run(builders.plan(cells)), measured)


def made(form: str, frames: Frames, level: Level) -> bytes:
    return FORMATS[form](frames.rows(level), level)


@pytest.mark.parametrize("level", list(Level))
def test_csv_and_json_have_the_same_rows(level: Level) -> None:
    frames = mixed()
    table = list(csv.DictReader(io.StringIO(made("csv", frames, level).decode())))
    objects = json.loads(made("json", frames, level))
    assert len(table) == len(objects) == len(frames.rows(level)) > 0
    assert [list(row) for row in objects] == [[column.name for column in columns_at(level)]] * len(objects)
    for row, one in zip(table, objects, strict=True):
        texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in one.items()}
        assert row == {name: "" if one[name] is None else text for name, text in texts.items()}


@pytest.mark.parametrize("level", list(Level))
def test_parquet_comes_back_as_the_frame_it_was(level: Level) -> None:
    frames = mixed()
    back = pd.read_parquet(io.BytesIO(made("parquet", frames, level)), dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(back, getattr(frames, level.name.lower()), check_dtype=False)
    assert len(back) == len(frames.rows(level))


@cache
def stored(name: str) -> Frames:
    return load_frames(*pages.stored(name))


@pytest.mark.parametrize("level", list(Level))
def test_runs_of_every_kind_go_into_one_file_with_typed_columns(level: Level) -> None:
    names = sorted(path.stem for path in pages.GOLDEN.glob("*.rigctl"))
    rows = [row for name in names for row in stored(name).rows(level)]
    back = pd.read_parquet(io.BytesIO(FORMATS["parquet"](rows, level)), dtype_backend="numpy_nullable")
    assert len(back) == len(rows) > 0
    texts = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    assert texts <= {name for name, kind in back.dtypes.items() if kind == "string"}


def test_a_run_without_measurements_exports_its_header() -> None:
    frames = load_frames(builders.run(), [])
    assert made("csv", frames, Level.PAIRS).decode().startswith("run,cell,repetition,attempt,status,")
    assert json.loads(made("json", frames, Level.INTERVALS)) == []
    assert made("parquet", frames, Level.FLOWS)[:4] == b"PAR1"


def text_of(info: RunInfo, repetitions: list[Repetition]) -> str:
    return render(RunView.in_memory(info, repetitions)).decode()


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    families = {family.name: family for family in openmetrics(text)}
    labels = ("test", "source", "destination")
    samples = families[name].samples if name in families else []
    return {tuple(s.labels[label] for label in labels if label in s.labels): s.value for s in samples}


def test_both_parsers_read_the_same_and_no_series_is_new_with_each_run() -> None:
    """The text suits node_exporter, which takes gauges and refuses a file in which a sample has a timestamp."""
    info, repetitions = builders.gigablox()
    text = text_of(info, repetitions)
    families = list(prometheus(text))
    read, again = ({(s.name, *sorted(s.labels.items())): s.value for f in made for s in f.samples}
                   for made in (openmetrics(text), families))  # fmt: skip
    assert read == again
    assert len(read) > 50
    assert info.run not in text
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
    assert len(bmf(info, repetitions)) == len(action(info, repetitions)) == 6
    with pytest.raises(InputError, match="no measured figure"):
        bmf(info, [])


def test_expectations_are_met_or_not() -> None:
    bound = Expectation("goodput", "goodput_mbps", ">= 1860M", Operator.AT_LEAST, (1, 5), 1860.0)
    text = text_of(*builders.gigablox(expectations=(bound,)))
    assert values(text, "rigctl_expectation_met") == {("1",): 0.0, ("5",): 1.0}


NUMBERS: Final = {key: {"type": "number"} for key in ("value", "lower_value", "upper_value")}
METRIC: Final = {"type": "object", "properties": NUMBERS, "required": ["value"]}
MEASURES: Final = {"type": "object", "patternProperties": {".+": METRIC}}
BENCHER: Final = {"type": "object", "patternProperties": {".+": MEASURES}}
"""bencher.dev/bmf.json; names up to 1024 characters, slugs of measures up to 64."""
FIELDS: Final = {"value": {"type": "number"}} | {key: {"type": "string"} for key in ("name", "unit", "range", "extra")}
REQUIRED: Final = {"required": ["name", "unit", "value"], "additionalProperties": False}
ACTION: Final = {"type": "array", "minItems": 1, "items": {"type": "object", "properties": FIELDS, **REQUIRED}}
"""`BenchmarkResult` of github-action-benchmark, src/extract.ts. It refuses a file without results."""


def bmf(info: RunInfo, repetitions: list[Repetition]) -> dict[str, dict[str, dict[str, float]]]:
    made: dict[str, dict[str, dict[str, float]]] = json.loads(bencher(RunView.in_memory(info, repetitions)))
    jsonschema.validate(made, BENCHER)
    assert all(0 < len(name) <= 1024 for name in made)
    assert all(0 < len(slug) <= 64 for measures in made.values() for slug in measures)
    return made


def action(info: RunInfo, repetitions: list[Repetition], *, smaller: bool = False) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(benchmark_action(RunView.in_memory(info, repetitions), smaller=smaller))
    jsonschema.validate(made, ACTION)
    assert len({entry["name"] for entry in made}) == len(made)
    return made


def repeated() -> tuple[RunInfo, list[Repetition]]:
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
    assert [(entry["unit"], entry.get("range")) for entry in bigger] == [("Mbit/s", "± 30"), ("Mbit/s", None)]
    with pytest.raises(InputError, match="no measured round trip or loss"):
        action(info, repetitions, smaller=True)
    trips = action(*message_runs.measured("pingpong", message_runs.PING), smaller=True)
    assert {entry["unit"] for entry in trips} == {"us"}


def test_names_are_the_same_in_the_next_run_and_unique_in_each() -> None:
    info, repetitions = builders.gigablox()
    names = list(bmf(info, repetitions))
    assert names == list(bmf(replace(info, run="20270101-010101-beef"), repetitions))
    assert names[0].startswith(f"{info.plan.scenario_name}: ")
    twice = [builders.cell(1), builders.cell(2)]
    same = bmf(builders.run(builders.plan(twice)), [builders.repetition(one) for one in twice])
    assert [name[-8:] for name in same] == [", test 1", ", test 2"]


def exported(made: tuple[RunInfo, list[Repetition]]) -> tuple[list[str], list[str]]:
    return drain_commands(RunView.in_memory(*made))


def test_each_slow_node_is_one_command_with_the_figures_of_the_mesh() -> None:
    info, measured = mesh_run({("n2", ""): 3000})
    (command,), notes = exported((info, measured))
    reason = f"reason=rigctl {info.run}: slow in sending, 3.00 Gbit/s, others 9.40 Gbit/s"
    assert shlex.split(command) == ["scontrol", "update", "nodename=n2", "state=drain", reason]
    assert notes == []


def test_no_slow_node_or_one_with_a_slower_link_in_the_rig_file_is_no_command_but_a_note() -> None:
    assert exported(mesh_run({})) == ([], [f"run {builders.run().run}: no slow node to drain"])
    info, measured = mesh_run({("n2", ""): 940})
    links = info.plan.links | {"n2": Link(10**9, 9000)}
    commands, notes = exported((replace(info, plan=replace(info.plan, links=links)), measured))
    assert commands == []
    assert "in sending to the others" in notes[0]


@pytest.mark.parametrize("name", ["n[1-4]", "n1,n3", "ALL", "x'; reboot; '", "a\nb", "$(reboot)"])
def test_a_name_that_means_more_than_one_node_drains_none(name: str) -> None:
    nodes = (*NODES, name)
    commands, notes = exported(mesh_run({(name, ""): 3000}, nodes=nodes))
    assert commands == []
    assert shlex.quote(name) in notes[0]


def test_numbered_nodes_of_an_allocation_come_with_a_warning() -> None:
    info, measured = mesh_run({("node1", ""): 3000}, nodes=("node1", "node2", "node3"))
    plan = replace(info.plan, rig_yaml="transport: srun\nslurm:\n")
    commands, notes = exported((replace(info, plan=plan), measured))
    assert len(commands) == 1
    assert notes[0].startswith("check the names")


def test_a_run_that_is_no_mesh_of_streams_is_refused() -> None:
    times = {(left, right): 1.0 for left in NODES for right in NODES if left != right}
    for made in (builders.gigablox(), messages_between("pingpong", times)):
        with pytest.raises(InputError, match="is no mesh of streams"):
            exported(made)


@pytest.mark.parametrize("name", pages.RUNS)
def test_json_keeps_to_the_schema_in_docs(name: str) -> None:
    schema = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "show.schema.json").read_text())
    jsonschema.validate(json.loads(as_json(document(*pages.RUNS[name]()))), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1}, schema)


@cache
def junit_schema() -> Any:
    from xmlschema import XMLSchema  # takes as long as all tests here

    return XMLSchema(str(Path(__file__).parent.parent / "fixtures" / "junit.xsd"))


def valid_junit(*suites: tuple[Case, ...]) -> ElementTree.Element:
    root = ElementTree.fromstring(junit([Suite("run 1", cases, 1_790_000_000.0) for cases in suites]))
    junit_schema().validate(root)
    return root


def test_runs_of_one_name_and_second_stay_apart_and_none_is_a_document_too() -> None:
    first, *others = (Case(f"test {number}", "gigablox on lab", "passed") for number in (1, 2, 3))
    assert [suite.attrib["tests"] for suite in valid_junit((first,), tuple(others))] == ["1", "2"]
    assert len(valid_junit()) == 0


@pytest.mark.parametrize("outcome", ["passed", "failed", "error", "skipped"])
@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_makes_a_valid_junit_document(outcome: CaseOutcome, text: str) -> None:
    valid_junit((Case(text or "-", text or "-", outcome, text, 0.0),))


def test_control_characters_in_junit_are_made_harmless() -> None:
    made = valid_junit((Case("a\x1b[31m\x00b", "c\ud800\uffff", "failed", "one\x07\ntwo\x1b]0;x\x07 & <three>"),))
    case = next(made.iter("testcase"))
    assert (case.attrib["name"], case.attrib["classname"]) == ("a?[31m?b", "c??")
    assert (case[0].get("message"), case[0].text) == ("one?", "one?\ntwo?]0;x? & <three>")


def test_the_classes_of_a_test_share_its_time_in_junit() -> None:
    cells = [builders.cell(number, group=1, traffic_class=name) for number, name in ((1, "voice"), (2, "bulk"))]
    info = builders.run(builders.plan([*cells, builders.cell(3)]))
    suite = suite_of(RunView.in_memory(info, [builders.repetition(cell, wall_s=10.0) for cell in info.plan.cells]))
    assert [case.seconds for case in suite.cases] == [5.0, 5.0, 10.0]
