"""One question, one answer: each figure and each limit of stored runs, asked in every way that rigctl has.

A run tells its figures to scripts (`rigctl.open_run`), to exports, to `show --json`, on its page, to `compare`, and to
the nights. All of these read what the run was condensed to.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest
from pages import STORED

import rigctl as api
from rigctl.analysis.nights.comparison import figures as figures_to_compare
from rigctl.analysis.nights.history import load_figures
from rigctl.figures import FIGURES, Level, columns_at
from rigctl.results.read import read_results
from rigctl.settings.kinds import KINDS
from rigctl.store import open_store

Rigctl = Callable[..., str]
NAMES: Final = {
    level: [column.name for column in columns_at(level) if column.name in FIGURES]
    for level in (Level.CELLS, Level.PAIRS)
}
"""The figures at each level, in the order of the columns."""


def _text(value: Any) -> str:
    """Return a value as exports print it."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _answers(store: Path, level: Level) -> list[dict[str, Any]]:
    """Return the rows of a run: the answers that all others are held against."""
    with open_store(str(store)) as opened:
        results = read_results(opened, opened.run())
        rows = results.cells if level is Level.CELLS else results.pairs
        return [dict(row) for row in rows]


@pytest.fixture(params=STORED)
def store(request: pytest.FixtureRequest, stores: Callable[[str], Path]) -> Path:
    return stores(request.param)


@pytest.mark.parametrize("level", NAMES)
def test_scripts_and_exports_have_the_same_figures(store: Path, level: Level, rigctl: Rigctl) -> None:
    answers = _answers(store, level)
    exported = list(csv.DictReader(io.StringIO(rigctl("export", "--level", level.name.lower(), "--store", str(store)))))
    frames = api.open_run(store=store).frames
    frame = frames.cells if level is Level.CELLS else frames.pairs
    assert len(answers) == len(exported) == len(frame)
    for name in NAMES[level]:
        asked = [row[name] for row in answers]
        assert [row[name] for row in exported] == [_text(value) for value in asked], name
        known = frame[name].notna().tolist()
        assert known == [value is not None for value in asked], name
        assert [value for value, is_known in zip(frame[name].tolist(), known, strict=True) if is_known] == [
            value for value in asked if value is not None
        ], name


def test_json_has_the_means_of_what_is_exported(store: Path, rigctl: Rigctl) -> None:
    made = json.loads(rigctl("show", "--json", "--store", str(store)))
    by_test = {(own["test"], own["pair"]): own["figures"] for own in made["figures"]}
    for level in NAMES:
        for key, rows in _counted(_answers(store, level), level):
            told = by_test[key]
            if rows[0]["iterations"] is not None or KINDS[rows[0]["test"]].in_messages:
                continue  # percentiles are over the messages of all repetitions
            for name in NAMES[level]:
                if name in ("limit", "limit_detail"):
                    continue
                expected = FIGURES[name].over_repetitions(row[name] for row in rows)
                assert told.get(name) == expected, (key, name)
            if len(rows) == 1:
                assert told["limit"] == rows[0]["limit"], key


def _counted(rows: list[dict[str, Any]], level: Level) -> Iterator[tuple[tuple[int, str | None], list[dict[str, Any]]]]:
    """Yield (test, pair) and the rows of its repetitions that count."""
    found: dict[tuple[int, str | None], list[dict[str, Any]]] = {}
    for row in rows:
        arrow = "→" if row["direction"] == "forward" else "←"
        pair = None if level is Level.CELLS else f"{row['source']} {arrow} {row['destination']}"
        if row["counted"]:
            found.setdefault((row["cell"], pair), []).append(row)
    yield from found.items()


def test_compare_and_nights_have_the_values_that_are_exported(store: Path) -> None:
    answers = {
        None: dict(_counted(_answers(store, Level.CELLS), Level.CELLS)),
        "pairs": dict(_counted(_answers(store, Level.PAIRS), Level.PAIRS)),
    }
    with open_store(str(store)) as opened:
        info = opened.run()
        results = read_results(opened, info)
        nights = load_figures(opened, [info], {})[info.run]
        for figure in figures_to_compare(results):
            stream, name = figure.key.stream, figure.key.metric.name
            rows = answers[None if stream is None else "pairs"].get(
                (figure.cell.number, None if stream is None else str(stream)), []
            )
            if name in NAMES[Level.PAIRS]:
                assert list(figure.values) == [row[name] for row in rows if row[name] is not None]
            if figure.key in nights:
                assert nights[figure.key] == (median(figure.values) if figure.values else None)


def test_the_page_has_the_rows_that_are_exported(store: Path, rigctl: Rigctl) -> None:
    with open_store(str(store)) as opened:
        if opened.run().plan.against is not None:  # its page compares the variants, and has no rows
            return
    page = rigctl("report", "--store", str(store), file="page.html")
    (embedded,) = re.findall(r'id="rigctl-data">(.*?)</script>', page, re.DOTALL)
    pairs = json.loads(embedded)["pairs"]
    answers = _answers(store, Level.PAIRS)
    assert pairs["rows"] == [[answer[name] for name in pairs["columns"]] for answer in answers]
    assert set(NAMES[Level.PAIRS]) <= set(pairs["columns"])
