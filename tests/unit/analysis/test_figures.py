"""The figures by which runs are compared: known again by settings, one value per repetition that counts."""

import builders
import message_runs
import pytest

from rigctl.analysis.nights.figures import GOODPUT, ROUND_TRIP, THROUGHPUT, Figure, figures, keys_of_tests
from rigctl.analysis.rows.frames import load
from rigctl.records import Cell, Pair, Repetition, Status, Stream

ONE = builders.cell(pairs=(Pair("a", "b"), Pair("c", "d")))


def of(cell: Cell, *repetitions: Repetition) -> dict[Stream | None, Figure]:
    info = builders.run(builders.plan([cell], repeat=len(repetitions)))
    return {figure.key.stream: figure for figure in figures(load(info, repetitions))}


def test_a_test_and_each_of_its_streams_have_a_value_per_repetition() -> None:
    measured = [builders.repetition(ONE, (mbps, mbps + 1), number=at) for at, mbps in enumerate((900.0, 910.0), 1)]
    found = of(ONE, *measured)
    assert found[None].values == pytest.approx((1801, 1821), rel=1e-6)
    assert found[ONE.streams[0]].values == pytest.approx((900, 910), rel=1e-6)
    assert found[ONE.streams[1]].values == pytest.approx((901, 911), rel=1e-6)
    assert {figure.key.metric for figure in found.values()} == {GOODPUT}


def test_repetitions_that_do_not_count_have_no_value() -> None:
    invalid = builders.repetition(ONE, (900, 900), status=Status.INVALID, reason="skew")
    assert [figure.values for figure in of(ONE, invalid).values()] == [(), (), ()]


def test_a_test_is_known_again_by_its_settings_and_pairs_and_equal_ones_by_their_order() -> None:
    (own,) = keys_of_tests([ONE]).values()
    assert keys_of_tests([builders.cell(7, pairs=ONE.pairs, duration_s=3.0)])[7] == own
    others = [builders.cell(1, pairs=ONE.pairs, parallel=9), builders.cell(2, pairs=ONE.pairs[:1])]
    assert len({own, *keys_of_tests(others).values()}) == 3
    twice = keys_of_tests([ONE, builders.cell(2, pairs=ONE.pairs)])
    assert twice[1] == own != twice[2]


@pytest.mark.parametrize(("test", "metric"), [("pingpong", ROUND_TRIP), ("blast", THROUGHPUT)])
def test_messages_are_compared_by_their_round_trip_or_throughput(test: str, metric: object) -> None:
    info, repetitions = message_runs.measured(test, [(64, 1000, (0.1, 0.2))])
    found = figures(load(info, repetitions))
    assert {figure.key.metric for figure in found} == {metric}
    expected = (100.0, 200.0) if test == "pingpong" else (640_000.0, 320_000.0)
    assert all(figure.values == pytest.approx(expected) for figure in found)
