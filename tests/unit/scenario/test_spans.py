"""Ranges in place of values: both ends count, and what is no range is told from what is one written wrongly."""

from itertools import islice
from typing import Any

import pytest
from cases import from_file

from rigctl.scenario import matrix
from rigctl.scenario.matrix import MAX_VALUES, spread
from rigctl.settings import SETTINGS
from rigctl.yamlfile.fields import FieldError


@from_file
def test_a_range_is_its_values_with_both_ends(name: str, value: Any, values: list[Any]) -> None:
    assert spread(SETTINGS[name], value) == values


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("parallel", "1..", 'parallel "1..": expected a range as in 1..12 or 1..9 step 2'),
        ("parallel", "1..2..3", 'parallel "1..2..3": expected a range'),
        ("parallel", "1..4 by 2", 'parallel "1..4 by 2": expected a range'),
        ("window", "32K..", 'window "32K..": expected a range as in 32K..256K times 2'),
        ("parallel", "4..1", 'parallel "4..1": runs backwards. Write 1..4'),
        ("parallel", "1..4 step 0", "never reaches its end. Use step 1 or more, times 2 or more"),
        ("parallel", "1..4 times 1", "never reaches its end"),
        ("parallel", "0..4 times 2", "never reaches its end"),
        ("window", "32K..64K", "needs a step, as in 32K..64K times 2"),
        ("parallel", "1..x", '"x" is not a number'),
        ("window", "1K..1Q step 1K", '"1Q" is not a number'),
        ("window", "64K..128K times 2K", '"2K" is not a number'),
        ("parallel", f"1..{MAX_VALUES + 1}", "parallel: more than 10,000 values"),
        ("parallel", ["1..6000", "1..6000"], "parallel: more than 10,000 values"),
    ],
)
def test_a_range_that_is_none_says_what_was_expected(name: str, value: Any, said: str) -> None:
    with pytest.raises(FieldError) as caught:
        spread(SETTINGS[name], value)
    assert said in str(caught.value)


def test_thousands_of_long_ranges_are_refused_after_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def counted(values: Any, most: int) -> Any:
        nonlocal made
        for value in islice(values, most):
            made += 1
            yield value

    monkeypatch.setattr(matrix, "islice", counted)
    with pytest.raises(FieldError):
        spread(SETTINGS["mss"], ["1..9000"] * 3000)
    assert made == 18_000


def test_single_values_are_not_counted_as_ranges() -> None:
    assert len(spread(SETTINGS["mss"], list(range(MAX_VALUES + 5)))) == MAX_VALUES + 5
