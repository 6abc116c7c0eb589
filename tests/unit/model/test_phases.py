"""Phases of a traffic class: which it has, and in which part of them its figures count."""

from typing import Any

import builders
import pytest

from rigctl.model.phases import counted_ns, phases_of
from rigctl.records import Cell

SECOND = 10**9


def sending(name: str, start_s: float = 0.0, stop_s: float | None = None, omit_s: float = 0.0) -> Cell:
    span: dict[str, Any] = {"start_s": start_s, "stop_s": stop_s, "omit_s": omit_s}
    return builders.cell(traffic_class=name, duration_s=20.0, group=1, **span)


VICTIM = sending("victim")


def spans(cell: Cell, *others: Cell) -> list[tuple[str, float, float]]:
    return [(phase.name, phase.start_s, phase.end_s) for phase in phases_of(cell, [cell, *others])]


def test_a_class_has_the_times_before_during_and_after_another_sends() -> None:
    load = sending("load", 5.0, 15.0)
    assert spans(VICTIM, load) == [("before", 0.0, 5.0), ("during", 5.0, 15.0), ("after", 15.0, 20.0)]
    assert spans(load, VICTIM) == []


def test_a_class_that_sends_from_the_start_or_to_the_end_leaves_two_phases() -> None:
    assert spans(VICTIM, sending("load", 0.0, 8.0)) == [("during", 0.0, 8.0), ("after", 8.0, 20.0)]
    assert spans(VICTIM, sending("load", 8.0)) == [("before", 0.0, 8.0), ("during", 8.0, 20.0)]


def test_two_classes_that_overlap_in_part_are_the_load_of_each_other() -> None:
    first, second = sending("first", 0.0, 12.0), sending("second", 8.0)
    assert spans(first, second) == [("before", 0.0, 8.0), ("during", 8.0, 12.0)]
    assert spans(second, first) == [("during", 8.0, 12.0), ("after", 12.0, 20.0)]


def test_the_load_of_several_classes_lasts_from_the_first_to_the_last() -> None:
    found = spans(VICTIM, sending("one", 4.0, 6.0), sending("two", 9.0, 11.0), sending("all the time"))
    assert found == [("before", 0.0, 4.0), ("during", 4.0, 11.0), ("after", 11.0, 20.0)]


def test_figures_leave_out_how_the_load_settles_and_the_last_samples_before_it_changes() -> None:
    window = (3 * SECOND, 23 * SECOND)
    counted = [counted_ns(VICTIM, phase, window) for phase in phases_of(VICTIM, [VICTIM, sending("load", 5.0, 15.0)])]
    # A tenth of the phase, at most 1 s, settles; 0.2 s are two samples.
    bounds = [(3.0, 7.8), (9.0, 17.8), (18.5, 23.0)]
    assert counted == [(round(start * SECOND), round(end * SECOND)) for start, end in bounds]


def test_a_phase_of_which_the_omitted_start_leaves_nothing_is_not_counted() -> None:
    late = sending("victim", omit_s=2.0)
    phases = phases_of(late, [late, sending("load", 1.0, 15.0)])
    window = (2 * SECOND, 20 * SECOND)
    assert [counted_ns(late, phase, window) is None for phase in phases] == [True, False, False]


@pytest.mark.parametrize("duration_s", [1.0, 20.0, 3600.0])
def test_more_is_left_out_where_samples_are_further_apart(duration_s: float) -> None:
    victim = builders.cell(traffic_class="victim", duration_s=duration_s, group=1)
    load = builders.cell(traffic_class="load", duration_s=duration_s, group=1, start_s=duration_s / 2)
    before, _ = phases_of(victim, [victim, load])
    counted = counted_ns(victim, before, (0, round(duration_s * SECOND)))
    assert counted == (0, round((duration_s / 2 - max(0.2, duration_s / 1500)) * SECOND))
