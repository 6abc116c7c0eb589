"""Arithmetic with unknowns: what is not known is never taken for 0."""

from rigctl.model.unknowns import agreed, joined, known_total, least, mean, mean_of_all, most, total


def test_a_sum_of_which_a_part_is_unknown_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([1, None]) is None
    assert total([]) is None


def test_what_is_known_can_be_summed_alone() -> None:
    assert known_total([1, None]) == 1
    assert known_total([None]) is None


def test_extremes_and_means_are_of_what_is_known() -> None:
    values = [3, None, 1]
    assert (least(values), most(values), mean(values)) == (1, 3, 2)
    assert least([]) is most([None]) is mean([None]) is None


def test_a_mean_of_all_needs_all() -> None:
    assert mean_of_all([1, 3]) == 2
    assert mean_of_all([1, None]) is None
    assert mean_of_all([]) is None


def test_names_are_joined_and_flags_agree_or_are_unknown() -> None:
    assert joined(["cubic", None, "bbr", "cubic"]) == "bbr, cubic"
    assert agreed([True, True]) is True
    assert agreed([True, False]) is None
