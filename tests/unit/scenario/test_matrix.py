"""From axes to cells: order, exclude, include, and bounds by counting."""

import builders
import pytest
from work import calls_of

from rigctl.records import Direction
from rigctl.records.flat import flattened
from rigctl.scenario.matrix import Matrix, count, expand, matrix_of, pattern_of, with_axis
from rigctl.settings import CONGESTION, MSS, NO_SETTINGS, PARALLEL, SETTINGS, WINDOW, Settings


def settings_of(rows: list[Settings], *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[SETTINGS[name]] for name in names) for row in rows]


def test_the_first_axis_changes_slowest() -> None:
    rows = expand(matrix_of({"matrix": {"mss": [1460, 8960], "window": ["64K", "200K"]}}))
    assert settings_of(rows, "mss", "window") == [(1460, 65536), (1460, 204800), (8960, 65536), (8960, 204800)]


def test_a_cell_has_every_setting_unset_where_nothing_is_asked_for() -> None:
    (row,) = expand(matrix_of({}))
    assert row == NO_SETTINGS
    set_anyway = {name: row[setting] for name, setting in SETTINGS.items() if row[setting] is not None}
    assert set_anyway == {"parallel": 1, "transport": "tcp", "direction": Direction.FORWARD, "engine": "agent"}


def test_settings_and_the_fields_of_a_cell_are_the_same() -> None:
    no_settings = {"number", "test", "duration_s", "omit_s", "resize", "bin_us", "capture", "folder", "pairs"}
    no_settings |= {"traffic_class", "group"}
    fields = set(flattened(builders.cell())) - no_settings
    assert {setting.stored_as for setting in SETTINGS.values()} - {None} == fields


def test_a_setting_at_the_top_is_an_axis_with_one_value() -> None:
    above = matrix_of({"copy": True, "window": "1M", "matrix": {"parallel": [1, 4]}})
    below = matrix_of({"matrix": {"copy": True, "window": "1M", "parallel": [1, 4]}})
    assert expand(above) == expand(below)


def test_a_setting_at_the_top_holds_in_rows_that_do_not_name_it_and_adds_no_test() -> None:
    rows = expand(matrix_of({"copy": True, "include": [{"mss": 1460}, {"mss": 1460, "copy": False}]}))
    assert settings_of(rows, "mss", "copy") == [(1460, True), (1460, False)]


def test_exclude_drops_what_has_all_its_values() -> None:
    axes = {"mss": [100, 200, 300], "parallel": [1, 2]}
    data = {"matrix": axes, "exclude": [{"mss": 200}, {"mss": 300, "parallel": 1}]}
    assert settings_of(expand(matrix_of(data)), "mss", "parallel") == [(100, 1), (100, 2), (300, 2)]


def test_include_comes_after_the_product_in_its_own_order() -> None:
    data = {"matrix": {"mss": [1460]}, "include": [{"mss": 9000, "nodelay": True}, {"parallel": 5}]}
    rows = expand(matrix_of(data))
    assert count(matrix_of(data)) == 3
    assert settings_of(rows, "mss", "parallel", "nodelay") == [(1460, 1, None), (9000, 1, True), (None, 5, None)]


def test_include_alone_has_no_product() -> None:
    assert len(expand(matrix_of({"include": [{"mss": 1460}, {"mss": 8960}], "matrix": None}))) == 2
    under = expand(matrix_of({"include": [{"mss": 1460}], "conditions": {"a": {}, "b": {}}}))
    assert settings_of(under, "condition", "mss") == [("a", 1460), ("b", 1460)]


def test_a_replaced_axis_keeps_its_place() -> None:
    matrix = with_axis(matrix_of({"matrix": {"mss": [1460, 8960], "parallel": [1, 5]}}), SETTINGS["mss"], (500, 600))
    assert settings_of(expand(matrix), "mss", "parallel") == [(500, 1), (500, 5), (600, 1), (600, 5)]


def test_an_axis_that_was_not_there_changes_fastest() -> None:
    matrix = with_axis(matrix_of({"matrix": {"mss": [1460, 8960]}}), SETTINGS["parallel"], (1, 5))
    assert settings_of(expand(matrix), "mss", "parallel") == [(1460, 1), (1460, 5), (8960, 1), (8960, 5)]


def test_in_rows_a_replaced_axis_makes_equal_rows_one() -> None:
    rows = [{"window": "64K", "mss": mss} for mss in (1460, 500, 8960)] + [{"window": "200K", "mss": 1460}]
    matrix = with_axis(matrix_of({"include": rows}), SETTINGS["window"], (1024,))
    assert settings_of(expand(matrix), "window", "mss") == [(1024, 1460), (1024, 500), (1024, 8960)]


def test_in_rows_several_values_make_a_row_each() -> None:
    matrix = with_axis(matrix_of({"include": [{"mss": 1460}, {"mss": 8960}]}), SETTINGS["parallel"], (1, 5))
    assert settings_of(expand(matrix), "mss", "parallel") == [(1460, 1), (1460, 5), (8960, 1), (8960, 5)]


def test_a_row_that_an_option_made_equal_to_a_cell_of_the_product_is_that_cell() -> None:
    data = {"matrix": {"window": ["64K"], "mss": [1460, 500]}, "include": [{"window": "1M", "mss": 1460}]}
    matrix = with_axis(matrix_of(data), SETTINGS["window"], (1024,))
    assert settings_of(expand(matrix), "window", "mss") == [(1024, 1460), (1024, 500)]


def test_counting_a_matrix_of_ten_to_the_sixteenth_expands_nothing() -> None:
    values = tuple(range(100, 10_100))
    matrix = Matrix(dict.fromkeys((MSS, WINDOW, PARALLEL, CONGESTION), values))
    assert count(matrix) == 10**16
    assert calls_of(lambda: count(matrix)) < 100


def test_the_work_of_expanding_does_not_grow_with_the_rows_that_exclude() -> None:
    axes = {MSS: tuple(range(100)), WINDOW: tuple(range(50))}

    def excluding(others: int) -> Matrix:
        exclude = [{MSS: mss, WINDOW: 0} for mss in range(100)] + [{MSS: -mss} for mss in range(1, others + 1)]
        return Matrix(axes, exclude)

    few, many = excluding(10), excluding(5000)
    assert len(expand(few)) == len(expand(many)) == 5000 - 100
    reading = calls_of(lambda: [pattern_of(row) for row in many.exclude])
    assert calls_of(lambda: expand(many)) < calls_of(lambda: expand(few)) + 2 * reading


@pytest.mark.parametrize("name", SETTINGS)
def test_every_axis_reads_its_own_examples_and_says_what_it_means(name: str) -> None:
    axis = SETTINGS[name]
    for example in axis.schema["examples"]:
        value = axis.parse(name, example)
        assert axis.parse(name, axis.text(value)) == value
    assert axis.meaning.endswith(".")
