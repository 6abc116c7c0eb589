"""From axes to cells: order, exclude, include, ranges in place of values, and bounds by counting."""

import re
from itertools import islice
from typing import Any

import builders
import pytest
from cases import from_file
from work import calls_of

from rigctl.records import Direction
from rigctl.records.flat import flatten
from rigctl.scenario import load, matrix
from rigctl.scenario.matrix import MAX_VALUES, AxisMatrix, count_tests, expand_matrix, parse_axis, pattern_of, with_axis
from rigctl.scenario.overrides import Changes
from rigctl.scenario.schema import ScenarioFile
from rigctl.settings import CONGESTION, MSS, NO_SETTINGS, PARALLEL, SETTINGS, WINDOW, Settings
from rigctl.yamlfile.fields import FieldError


def matrix_of(data: dict[str, Any]) -> AxisMatrix:
    return load.matrix_of(ScenarioFile.model_validate({"pairs": "a -> b", **data}), Changes())


def settings_of(rows: list[Settings], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[SETTINGS[name]] for name in names) for row in rows]


def test_a_cell_has_every_setting_unset_where_nothing_is_asked_for() -> None:
    (row,) = expand_matrix(matrix_of({}))
    assert row == NO_SETTINGS
    set_anyway = {name: row[setting] for name, setting in SETTINGS.items() if row[setting] is not None}
    assert set_anyway == {"parallel": 1, "transport": "tcp", "direction": Direction.FORWARD, "engine": "agent"}


def test_settings_and_the_fields_of_a_cell_are_the_same() -> None:
    no_settings = {"number", "test", "duration_s", "omit_s", "resize", "bin_us", "capture", "folder", "pairs"}
    no_settings |= {"traffic_class", "group", "start_s", "stop_s", "part", "frame_ns"}
    fields = set(flatten(builders.cell())) - no_settings
    assert {setting.stored_as for setting in SETTINGS.values()} - {None} == fields


BOTH = {"mss": 300, "parallel": 1}
DROPPED = {"matrix": {"mss": [100, 200, 300], "parallel": [1, 2]}, "exclude": [{"mss": 200}, BOTH]}
ADDED = {"matrix": {"mss": [99]}, "include": [{"mss": 9000, "nodelay": True}, {"parallel": 5}]}
COPIED = {"copy": True, "include": [{"size": 9}, {"size": 9, "copy": False}]}


@pytest.mark.parametrize(
    ("data", "names", "rows"),
    [
        ({"matrix": {"size": [1, 2], "parallel": [3, 4]}}, "size parallel", [(1, 3), (1, 4), (2, 3), (2, 4)]),
        ({"copy": True, "matrix": {"parallel": [1, 4]}}, "copy parallel", [(True, 1), (True, 4)]),
        (COPIED, "size copy", [(9, True), (9, False)]),
        (DROPPED, "mss parallel", [(100, 1), (100, 2), (300, 2)]),
        (ADDED, "mss parallel nodelay", [(99, 1, None), (9000, 1, True), (None, 5, None)]),
        ({"include": [{"mss": 1460}, {"mss": 8960}], "matrix": None}, "mss", [(1460,), (8960,)]),
        ({"include": [{"size": 7}], "conditions": {"a": {}, "b": {}}}, "condition size", [("a", 7), ("b", 7)]),
    ],
    ids=["the first is slowest", "one at the top", "holds in rows", "exclude", "include", "rows alone", "conditions"],
)
def test_axes_and_rows_are_expanded_in_their_order(data: dict[str, Any], names: str, rows: list[Any]) -> None:
    assert settings_of(expand_matrix(matrix_of(data)), *names.split()) == rows


MSSES: dict[str, Any] = {"mss": [1460, 8960]}
ROWS = [{"window": "64K", "mss": mss} for mss in (1460, 500, 8960)] + [{"window": "200K", "mss": 1460}]


@pytest.mark.parametrize(
    ("data", "axis", "values", "others"),
    [
        ({"matrix": {"parallel": [1, 5], **MSSES}}, "parallel", [2, 2, 3, 3], [1460, 8960] * 2),
        ({"matrix": MSSES}, "parallel", [1, 5, 1, 5], [1460, 1460, 8960, 8960]),
        ({"include": ROWS}, "window", [1024] * 3, [1460, 500, 8960]),
        ({"include": [{"mss": 1460}, {"mss": 8960}]}, "parallel", [1, 5, 1, 5], [1460, 1460, 8960, 8960]),
        ({"matrix": {"window": ["64K"], **MSSES}, "include": ROWS[3:]}, "window", [1024] * 2, [1460, 8960]),
    ],
    ids=["keeps its place", "a new one changes fastest", "equal rows are one", "a row each", "a row of the product"],
)
def test_an_option_replaces_an_axis(data: dict[str, Any], axis: str, values: list[int], others: list[int]) -> None:
    matrix = with_axis(matrix_of(data), SETTINGS[axis], tuple(dict.fromkeys(values)))
    assert settings_of(expand_matrix(matrix), axis, "mss") == list(zip(values, others, strict=True))


def test_counting_a_matrix_of_ten_to_the_sixteenth_expands_nothing() -> None:
    values = tuple(range(100, 10_100))
    matrix = AxisMatrix(dict.fromkeys((MSS, WINDOW, PARALLEL, CONGESTION), values))
    assert count_tests(matrix) == 10**16
    assert calls_of(lambda: count_tests(matrix)) < 100
    assert count_tests(matrix_of(ADDED)) == 3


def test_the_work_of_expanding_does_not_grow_with_the_rows_that_exclude() -> None:
    axes = {MSS: tuple(range(100)), WINDOW: tuple(range(50))}

    def excluding(others: int) -> AxisMatrix:
        exclude = [{MSS: mss, WINDOW: 0} for mss in range(100)] + [{MSS: -mss} for mss in range(1, others + 1)]
        return AxisMatrix(axes, exclude)

    few, many = excluding(10), excluding(5000)
    assert len(expand_matrix(few)) == len(expand_matrix(many)) == 5000 - 100
    reading = calls_of(lambda: [pattern_of(row) for row in many.exclude])
    assert calls_of(lambda: expand_matrix(many)) < calls_of(lambda: expand_matrix(few)) + 2 * reading


@pytest.mark.parametrize("name", SETTINGS)
def test_every_axis_reads_its_own_examples_and_says_what_it_means(name: str) -> None:
    axis = SETTINGS[name]
    for example in axis.schema["examples"]:
        value = axis.parse(name, example)
        assert axis.parse(name, axis.text(value)) == value
    assert axis.meaning.endswith(".")


@from_file
def test_a_range_is_its_values_with_both_ends(name: str, value: Any, values: list[Any]) -> None:
    axis = SETTINGS[name]
    assert parse_axis(axis, value) == tuple(axis.parse(name, each) for each in values)


@from_file
def test_a_range_that_is_none_says_what_was_expected(name: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_axis(SETTINGS[name], value)


def test_thousands_of_long_ranges_are_refused_after_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(values: Any, most: int) -> Any:
        nonlocal made
        for value in islice(values, most):
            made += 1
            yield value

    monkeypatch.setattr(matrix, "islice", counted)
    with pytest.raises(FieldError):
        parse_axis(SETTINGS["mss"], ["100..9099"] * 3000)
    assert made == 18_000


def test_single_values_are_not_counted_as_ranges() -> None:
    assert len(parse_axis(SETTINGS["mss"], list(range(100, MAX_VALUES + 105)))) == MAX_VALUES + 5
