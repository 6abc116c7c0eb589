"""`rigctl compare`: which runs are meant, what is printed in each format, and the exit code."""

import json
import shutil
from pathlib import Path
from typing import Any

import builders
import compared_runs
import jsonschema
import pytest
from in_process import Rigctl

from rigctl.analysis.run_view import RunView
from rigctl.records import Against
from rigctl.store import open_store

TESTS = compared_runs.cells(3)
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "compare.schema.json").read_text())


def stored(path: Path, *views: RunView) -> list[str]:
    """Return the ids of runs with these repetitions, an hour after each other."""
    with open_store(str(path)) as store:
        return [
            builders.put(store, view.info, view.every, view.info.started_at + 3600 * number)
            for number, view in enumerate(views)
        ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A store of two equal runs and one with a slower test."""
    path = tmp_path_factory.mktemp("compared") / "store.db"
    slow = compared_runs.view(TESTS, seed=3, factors={2: 0.9})
    return path, stored(path, compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2), slow)


@pytest.fixture
def runs(made: tuple[Path, list[str]], rigctl: Rigctl) -> list[str]:
    """The ids of its runs, of which the test has a copy."""
    shutil.copy(made[0], rigctl.store)
    return made[1]


def compared(rigctl: Rigctl, *words: str, code: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(rigctl("compare", *words, "--json", code=code).out)
    jsonschema.validate(made, SCHEMA)
    return made


def test_the_latest_is_compared_with_the_one_before_where_none_is_named(runs: list[str], rigctl: Rigctl) -> None:
    made = compared(rigctl, code=1)
    assert [made[side]["run"] for side in ("before", "after")] == [runs[1], runs[2]]
    assert made["worse"]
    worst = made["tests"][0]
    assert (worst["test"], worst["verdict"], worst["figure"]) == (2, "worse", "goodput_mbps")
    assert worst["low_pct"] < worst["change_pct"] < worst["high_pct"] < -9
    assert len(worst["before"]) == 6
    assert made["tests"][1]["same_within_pct"] < 1


def test_what_cannot_be_compared_or_written_is_refused_with_the_reason(runs: list[str], rigctl: Rigctl) -> None:
    for words, what in (
        ([runs[0], runs[0]], "is A and B"),
        (["latest~7"], "the store has 3 runs"),
        (["2024"], "no run"),
        (["-o", "c.txt"], "c.txt: no format is known by this ending"),
    ):
        assert what in rigctl("compare", *words, code=2).errors


@pytest.mark.parametrize(("name", "begins"), [("c.html", "<!doctype html>"), ("c.md", "# "), ("c.json", "{")])
@pytest.mark.usefixtures("runs")
def test_a_file_gets_the_format_of_its_ending(rigctl: Rigctl, name: str, begins: str) -> None:
    path = rigctl.folder / name
    assert rigctl("compare", "-o", name, code=1).out.strip() == str(path)
    assert path.read_text().lstrip().startswith(begins)


@pytest.mark.usefixtures("runs")
def test_a_wider_bound_leaves_a_slower_test_open(rigctl: Rigctl) -> None:
    made = compared(rigctl, "--bound", "20")
    assert (made["bound_pct"], made["tests"][0]["verdict"]) == (20, "inconclusive")


def test_the_variants_of_a_run_are_compared_where_it_is_named_alone(rigctl: Rigctl) -> None:
    against = Against("parallel", "1", "5", ((1, 2),))
    stored(rigctl.store, compared_runs.view(TESTS, factors={2: 0.9}, plan={"against": against}))
    made = compared(rigctl, code=1)
    assert made["against"] == {"setting": "parallel", "before": "1", "after": "5"}
    assert [(test["test_before"], test["test"]) for test in made["tests"]] == [(1, 2)]
