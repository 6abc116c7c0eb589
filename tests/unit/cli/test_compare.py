import shutil
from pathlib import Path

import builders
import compared_runs
import pytest
from in_process import Rigctl

from rigctl.store import open_store

TESTS = compared_runs.cells(3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A store of two equal runs and one with a slower test."""
    path = tmp_path_factory.mktemp("compared") / "store.db"
    slow = compared_runs.view(TESTS, seed=3, factors={2: 0.9})
    views = enumerate((compared_runs.view(TESTS), compared_runs.view(TESTS, seed=2), slow))
    with open_store(str(path)) as store:
        return path, [builders.put(store, own.info, own.every, own.info.started_at + 3600 * at) for at, own in views]


@pytest.fixture
def runs(made: tuple[Path, list[str]], rigctl: Rigctl) -> list[str]:
    """The ids of its runs, of which the test has a copy."""
    shutil.copy(made[0], rigctl.store)
    return made[1]


def test_the_latest_is_compared_with_the_one_before_where_none_is_named(runs: list[str], rigctl: Rigctl) -> None:
    made = rigctl.document("compare", "compare", code=1)
    assert ([made[side]["run"] for side in ("before", "after")], made["worse"]) == ([runs[1], runs[2]], True)
    assert (made["tests"][0]["test"], made["tests"][0]["verdict"]) == (2, "worse")


def test_the_run_before_is_the_latest_of_the_same_scenario_and_rig(runs: list[str], rigctl: Rigctl) -> None:
    info = builders.run(builders.plan([builders.cell()], scenario_name="other"))
    with open_store(str(rigctl.store)) as store:
        other = builders.put(store, info, [builders.repetition(builders.cell())], info.started_at + 3 * 3600)
        views = compared_runs.view(TESTS)
        latest = builders.put(store, views.info, views.every, info.started_at + 4 * 3600)
    made = rigctl.document("compare", "compare")
    assert [made[side]["run"] for side in ("before", "after")] == [runs[2], latest]
    errors = rigctl("compare", other, latest, code=2).errors
    assert errors == "rigctl: the runs have no test in common: other on gigablox; gigablox on gigablox\n"
    rigctl("runs", "rm", "--yes", latest)
    assert f"no run of other on gigablox before {other}. Name two runs" in rigctl("compare", code=2).errors


def test_what_cannot_be_compared_or_written_is_refused_with_the_reason(runs: list[str], rigctl: Rigctl) -> None:
    for words, what in (
        ([runs[0], runs[0]], "is both A and B"),
        (["latest~7"], "the store has 3 runs"),
        (["2024"], "no run"),
        (["-o", "c.txt"], "c.txt: no format is known by this ending"),
    ):
        assert what in rigctl("compare", *words, code=2).errors


@pytest.mark.usefixtures("runs")
def test_a_file_gets_the_format_of_its_ending(rigctl: Rigctl) -> None:
    for name, begins in {"c.html": "<!doctype html>", "c.md": "# ", "c.json": "{"}.items():
        assert rigctl("compare", "-o", name, code=1).out == f"{rigctl.folder / name}\n"
        assert (rigctl.folder / name).read_text().lstrip().startswith(begins)


@pytest.mark.usefixtures("runs")
def test_a_wider_bound_leaves_a_slower_test_open(rigctl: Rigctl) -> None:
    made = rigctl.document("compare", "compare", "--bound", "20")
    assert (made["bound_pct"], made["tests"][0]["verdict"]) == (20, "inconclusive")
