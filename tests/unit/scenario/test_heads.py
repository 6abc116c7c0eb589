"""Titles of columns that a scenario gives, as those of a page that is measured again."""

import json
from pathlib import Path

import planning
import pytest

from rigctl.scenario.load import Overrides, load_plan
from rigctl.store.rows import plan_from
from rigctl.store.rows import plan_json as as_json


def test_titles_are_in_the_plan_in_their_order(tmp_path: Path) -> None:
    plan = planning.planned(tmp_path, "heads: {Mean: AVG, RTT mean: RTT}")
    assert plan.heads == (("Mean", "AVG"), ("RTT mean", "RTT"))


@pytest.mark.parametrize("heads", ["", "heads:", "heads: {}"])
def test_without_any_the_plan_has_none(tmp_path: Path, heads: str) -> None:
    assert planning.planned(tmp_path, heads).heads == ()


def test_they_are_stored_with_the_plan(tmp_path: Path) -> None:
    plan = planning.planned(tmp_path, "heads: {Mean: AVG}")
    assert plan_from(json.dumps(as_json(plan))) == plan


@pytest.mark.parametrize(
    ("scenario", "heads"),
    [
        ("nettest-pingpong", (("Mean", "AVG"), ("RTT mean", "RTT"))),
        ("nettest-blast", (("Mean", "AVG"),)),
    ],
)
def test_the_nettest_tables_have_the_heads_of_their_page(scenario: str, heads: tuple[tuple[str, str], ...]) -> None:
    assert load_plan(scenario, Overrides())[0].heads == heads
