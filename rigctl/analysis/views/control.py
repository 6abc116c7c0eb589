"""Subtract a control, the same scenario over a plain cable or another switch: what is left is the switch's own.

The verdicts are those of a comparison of two runs (`rigctl.model.statistics.comparing`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.comparison import keys_of_tests
from rigctl.analysis.run_view import RunView
from rigctl.base.values import group_by
from rigctl.figures import Figure
from rigctl.figures.connections import CONNECT_P50, CONNECT_P99, PER_S
from rigctl.figures.datagrams import LOSS
from rigctl.figures.messages import ROUND_TRIP_P50, ROUND_TRIP_P99
from rigctl.figures.probes import IDLE, LOADED, LOADED_P99
from rigctl.figures.streams import GOODPUT
from rigctl.model.statistics.comparing import Change, Samples, compare_samples
from rigctl.records import Cell, Stream
from rigctl.results.rows import RepetitionResults

SUBTRACTED: Final[Mapping[Figure[float], str]] = {
    ROUND_TRIP_P50: "round trip p50, µs",
    ROUND_TRIP_P99: "round trip p99, µs",
    CONNECT_P50: "time to connect p50, µs",
    CONNECT_P99: "time to connect p99, µs",
    PER_S: "connections/s",
    GOODPUT: "goodput, Mbit/s",
    LOSS: "loss, %",
    IDLE: "idle round trip p50, µs",
    LOADED: "loaded round trip p50, µs",
    LOADED_P99: "loaded round trip p99, µs",
}
"""The figures that are shown beside those of a control, where both runs have them, with their words in tables."""


@dataclass(frozen=True, slots=True)
class Added:
    """A figure of one stream in this run and in the control, by their medians over repetitions."""

    cell: Cell
    stream: Stream
    figure: Figure[float]
    change: Change  # from the control to this run

    @property
    def amount(self) -> float:
        """Return by how much the figure is larger than in the control, in its unit."""
        return (self.change.after or 0.0) - (self.change.before or 0.0)

    @property
    def told(self) -> bool:
        """Tell whether the repetitions tell the difference from none; True if there are too few to judge."""
        return self.interval is None or not self.interval[0] <= 0 <= self.interval[1]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the confidence interval of `amount`; None with too few repetitions for a verdict."""
        before, low, high = self.change.before, self.change.low, self.change.high
        return None if before is None or low is None or high is None else (before * low, before * high)


def added_to_control(view: RunView, control: RunView) -> list[Added]:
    """Return the differences to the control of all tests that both runs have, in the order of the scenario."""
    numbers = numbers_in_control(view, control)
    both = [(cell, numbers[cell.number]) for cell in view.plan.cells if cell.number in numbers]
    mine, theirs = counted_by_test(view), counted_by_test(control)
    asked = [
        (cell, stream, figure, _samples(mine.get(cell.number, ()), theirs.get(number, ()), stream, figure))
        for cell, number in both
        for stream in cell.streams
        for figure in SUBTRACTED
    ]
    known = [one for one in asked if one[3].before and one[3].after]
    changes = compare_samples([samples for *_, samples in known])
    return [Added(*one[:3], change) for one, change in zip(known, changes, strict=True)]


def numbers_in_control(view: RunView, control: RunView) -> dict[int, int]:
    """Return the control's numbers of the tests that both runs have, by the numbers of this run."""
    theirs = {key: number for number, key in keys_of_tests(control.plan.cells).items()}
    return {number: theirs[key] for number, key in keys_of_tests(view.plan.cells).items() if key in theirs}


def _samples(
    mine: Sequence[RepetitionResults], theirs: Sequence[RepetitionResults], stream: Stream, figure: Figure[float]
) -> Samples:
    before, after = figure_values(theirs, stream, figure), figure_values(mine, stream, figure)
    return Samples(tuple(before), tuple(after), figure.higher_is_better)


def counted_by_test(view: RunView) -> dict[int, list[RepetitionResults]]:
    """Return the repetitions that count, by the number of their test."""
    return group_by((one for one in view.results.each if one.counted), lambda one: one.cell.number)


def figure_values(repetitions: Sequence[RepetitionResults], stream: Stream, figure: Figure[float]) -> Iterator[float]:
    """Yield a figure of one stream in each repetition that has it."""
    for one in repetitions:
        if stream in one.cell.streams:
            value = one.figure(stream, figure.name)
            if value is not None:
                yield float(value)
