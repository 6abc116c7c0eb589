"""Exports hold the same data in every format, with unknown as nothing and never as 0."""

import csv
import io
import json
from dataclasses import replace

import builders
import pandas as pd
import pytest

from rigctl.analysis.rows.frames import Frames, load
from rigctl.columns import Level, columns_at
from rigctl.records import Bins, Repetition
from rigctl.report.export.formats import FORMATS


def mixed() -> Frames:
    cells = [builders.cell(1, parallel=2, bin_us=1_000_000), builders.cell(2)]
    return load(builders.run(builders.plan(cells)), [binned(builders.repetition(cells[0])), builders.failed(cells[1])])


def binned(measured: Repetition) -> Repetition:
    """The receivers' bytes in bins of a second, and a histogram."""
    bins = Bins(measured.window_start_ns or 0, 1_000_000, (1000, 0, 3000))
    flows = [
        replace(flow, receiver=flow.receiver and replace(flow.receiver, bins=bins, histogram=((7, 1),)))
        for flow in measured.flows
    ]
    return replace(measured, flows=tuple(flows))


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
        for name, value in one.items():
            expected = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            assert row[name] == expected


@pytest.mark.parametrize("level", list(Level))
def test_parquet_comes_back_as_the_frame_it_was(level: Level) -> None:
    frames = mixed()
    back = pd.read_parquet(io.BytesIO(made("parquet", frames, level)), dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(back, getattr(frames, level.name.lower()), check_dtype=False)
    assert len(back) == len(frames.rows(level))


def test_unknown_is_empty_in_csv_null_in_json_and_a_dash_in_markdown() -> None:
    cell = builders.cell()
    frames = load(builders.run(builders.plan([cell])), [builders.failed(cell)])
    assert json.loads(made("json", frames, Level.CELLS))[0]["bytes"] is None
    assert next(csv.DictReader(io.StringIO(made("csv", frames, Level.CELLS).decode())))["bytes"] == ""
    lines = made("md", frames, Level.CELLS).decode().splitlines()
    header = [name.strip() for name in lines[0].strip("|").split("|")]
    values = [value.strip() for value in lines[2].strip("|").split("|")]
    assert dict(zip(header, values, strict=True))["bytes \\[B\\]"] == "–"


def test_a_run_without_measurements_exports_its_header() -> None:
    frames = load(builders.run(), [])
    assert made("csv", frames, Level.PAIRS).decode().startswith("run,cell,repetition,attempt,status,")
    assert json.loads(made("json", frames, Level.INTERVALS)) == []
    assert made("parquet", frames, Level.FLOWS)[:4] == b"PAR1"
