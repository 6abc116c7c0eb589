"""Decides what a run of ping-pong may claim to add to its control, such as a plain cable between the same hosts.

The claimed figure is the slowest repetition of the slowest pair less the fastest one of the control, rounded up.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.control import counted_by_test, figure_values, numbers_in_control
from rigctl.analysis.views.expectations import checks
from rigctl.figures.messages import ROUND_TRIP_P50
from rigctl.findings.text import join_list, plural
from rigctl.model.statistics.comparing import LEAST_REPETITIONS
from rigctl.product.claim import Claim, NoClaim, against_rig, with_tests
from rigctl.product.theme import ClaimSection
from rigctl.records import Cell, Stream
from rigctl.results.rows import RepetitionResults
from rigctl.settings import ITERATIONS
from rigctl.settings.kinds import PINGPONG

_SAME_HOSTS: Final = ("cpu_model", "kernel", "driver", "speed_bps")
"""Facts on a host that take part in its round trips; they must be those of the control."""

_WITHIN: Final = 0.004
"""A median is within this share of a time that was measured: the buckets of `rigctl.model.latency` are as wide."""

_LEAST_TRIPS: Final = 1000
"""Fewest round trips of a repetition that supports a claim."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A test, and its medians of round trips in µs by stream: those of the repetitions, and those of the control."""

    cell: Cell
    trips: Sequence[tuple[Sequence[float], Sequence[float]]]

    @property
    def added_us(self) -> float:
        return at_most_added(self.trips)

    @property
    def repetitions(self) -> int:
        return min(len(values) for values in chain.from_iterable(self.trips))


def is_of_round_trips(view: RunView) -> bool:
    """Tell whether a run measures nothing but ping-pong."""
    return all(cell.kind is PINGPONG for cell in view.plan.cells)


def at_most_added(trips: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Return the slowest of the first values less the fastest of the second, of the pair with the largest result.

    Both are known within `_WITHIN`, which is added.
    """
    return max((1 + _WITHIN) * max(own) - (1 - _WITHIN) * min(control) for own, control in trips)


def two_digits_up(value: float) -> float:
    """Return a positive value rounded up to two significant digits."""
    factor = 10.0 ** (1 - math.floor(math.log10(value)))
    return math.ceil(value * factor - 1e-9) / factor


def added_claim(view: RunView, asked: ClaimSection, shown: Sequence[int]) -> Claim | NoClaim:
    """Return the claim on the added round trip, or the reasons against one. `shown`: numbers of the tests to use."""
    control = view.control
    if control is None:
        return NoClaim(("round trips support a claim only beside a control (`rigctl run --control`)",))
    reasons = [*against_rig(view, asked), *_against_control(view, control, asked)]
    numbers, mine, theirs = numbers_in_control(view, control), counted_by_test(view), counted_by_test(control)
    tests = []
    for cell in view.plan.cells:
        if cell.number in shown:
            own, its = mine.get(cell.number, ()), theirs.get(numbers.get(cell.number, 0), ())
            tests.append(_Test(cell, [_trips(stream, own, its) for stream in cell.streams]))
    if isinstance(asked.tests, int):
        tests = [test for test in tests if test.cell.number == asked.tests]
        if not tests:
            reasons.append(f"test {asked.tests}, which the theme chooses for the claim, is not in the table")
    if reasons:
        return NoClaim(tuple(reasons))
    missed = {check.cell.number for check in checks(view) if not check.met}
    against = {test.cell.number: list(_against_test(view, test, missed=test.cell.number in missed)) for test in tests}
    good = [test for test in tests if not against[test.cell.number]]
    if not good or (asked.tests != "best" and len(good) < len(tests)):
        return NoClaim(tuple(with_tests(against)))
    pick = min if asked.tests == "best" else max
    which = f", in {'the best' if asked.tests == 'best' else 'each'} of {len(tests)} tests" if len(tests) > 1 else ""
    return _word(view, control, pick(good, key=lambda test: test.added_us), which)


def _trips(
    stream: Stream, mine: Sequence[RepetitionResults], theirs: Sequence[RepetitionResults]
) -> tuple[list[float], list[float]]:
    own, control = (list(figure_values(each, stream, ROUND_TRIP_P50)) for each in (mine, theirs))
    return own, control


def _against_control(view: RunView, control: RunView, asked: ClaimSection) -> Iterator[str]:
    yield from (f"of the control: {reason}" for reason in against_rig(control, asked))
    nodes = {node for cell in view.plan.cells for stream in cell.streams for node in stream.ends}
    hosts = [(node, view.info.facts.get(node, {}), control.info.facts.get(node, {})) for node in sorted(nodes)]
    if others := [node for node, own, its in hosts if any(own.get(name) != its.get(name) for name in _SAME_HOSTS)]:
        yield f"the control was measured with other hosts, kernels or cards ({join_list(others)})"


def _against_test(view: RunView, test: _Test, *, missed: bool) -> Iterator[str]:
    summary = next((own for own in view.cells if own.cell.number == test.cell.number), None)
    if summary is not None and any(not gone.measured_again for gone in summary.exclusions):
        yield "a repetition does not count"
    for whose, at in (("", 0), (" in the control", 1)):
        counted = min(len(values[at]) for values in test.trips)
        if counted < LEAST_REPETITIONS:
            counts = plural(counted, "repetition counts", "repetitions count")
            yield f"{counts}{whose}, {LEAST_REPETITIONS} are needed"
            return
    iterations = test.cell[ITERATIONS] or 0
    if iterations < _LEAST_TRIPS:
        yield f"each repetition has {plural(iterations, 'round trip')}, {_LEAST_TRIPS} are needed"
    if missed:
        yield "it misses an expectation of the scenario"
    if test.added_us <= 0:
        yield "its round trips are not slower than those of the control"


def _word(view: RunView, control: RunView, test: _Test, which: str) -> Claim:
    added_us, size = two_digits_up(test.added_us), plural(test.cell.message_bytes or 0, "byte")
    return Claim(
        figure=f"{added_us / 1e3:g} ms" if added_us >= 1000 else f"{added_us:g} µs",
        rest=f"at most added to the round trip over {control.plan.rig_name}, for messages of {size}{which}",
        basis=(
            f"the slowest of {test.repetitions} repetitions of the slowest pair less the fastest one of the control, "
            "by their medians, rounded up"
        ),
        shown="the table shows all repetitions together",
        virtual=view.plan.virtual is not None,
    )
