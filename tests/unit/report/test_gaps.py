"""Gaps of 200 ms or longer in the series of streams are a finding, as far as the samples show them."""

from dataclasses import dataclass, replace
from typing import Any

import builders
import pytest

from rigctl.analysis.gaps import gaps_of
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, Flow, NicCounters, Pair, Repetition, Series, Side, Status
from rigctl.report.document import document

PAIR = Pair("pi1", "pi2")
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Carrier(NicCounters):
    carrier_changes: int | None = None


def stream(number: int = 1, **settings: Any) -> Cell:
    return builders.cell(number, pairs=(PAIR,), duration_s=5.0, **settings)


def stopped(of: Flow, from_ms: int, to_ms: int) -> Flow:
    """`of` without what its receiver took from one time to the other, as it was at the last sample before."""
    side = of.receiver
    assert side is not None
    columns = side.series.columns
    within = [from_ms < (at - builders.BEGIN_NS) // MS <= to_ms for at in columns["t_ns"]]
    before = columns["bytes"][within.index(True) - 1]
    kept = [before if silent else count for silent, count in zip(within, columns["bytes"], strict=True)]
    return replace(of, receiver=replace(side, series=Series(columns | {"bytes": kept})))


def with_gap(cell: Cell, from_ms: int, to_ms: int, flows: slice = slice(None), **fields: Any) -> Repetition:
    """A repetition in which some flows of every stream got nothing for a while."""
    whole = builders.repetition(cell, [900.0] * len(cell.streams), **fields)
    silent = [stopped(flow, from_ms, to_ms) for flow in whole.flows[flows]]
    return replace(whole, flows=(*silent, *whole.flows[len(silent) :]))


def found_in(*repetitions: Repetition, cells: tuple[Cell, ...] = (), **plan: Any) -> list[Finding]:
    info = builders.run(builders.plan(cells or (stream(),), **plan))
    return [made for made in document(info, repetitions).findings if "rrived" in made.text]


def test_a_gap_of_two_seconds_is_a_finding_with_test_pair_start_and_length() -> None:
    (found,) = found_in(with_gap(stream(), 1000, 3000))
    assert found.text == "Nothing arrived for 2 s or longer on pi1 → pi2 in test 1 (from 1.0 s on)."
    assert (found.weight, found.level, found.subject.names) == (Weight.SUSPECT, Severity.WARNING, ("1",))
    assert found.numbers["gaps"] == 1
    assert found.numbers["longest_gap_s"] == pytest.approx(2.0)
    assert found.numbers["carrier_changes"] is None


def test_a_stream_that_never_stops_has_none() -> None:
    assert found_in(builders.repetition(stream(), [900.0])) == []


@pytest.mark.parametrize(("to_ms", "gaps"), [(1100, 0), (1200, 1)])
def test_two_hundred_milliseconds_are_the_least(to_ms: int, gaps: int) -> None:
    assert len(gaps_of(stream(), with_gap(stream(), 1000, to_ms))) == gaps


def test_a_length_is_never_rounded_up() -> None:
    repetition = replace(with_gap(stream(), 1000, 3000), window_start_ns=builders.BEGIN_NS + 1050 * MS)
    (found,) = found_in(repetition)
    assert found.text == "Nothing arrived for 1.9 s or longer on pi1 → pi2 in test 1 (from 0.0 s on)."
    early = replace(repetition, window_start_ns=builders.BEGIN_NS + 1002 * MS)
    assert "for 2 s or longer" in found_in(early)[0].text  # a sample that is taken 2 ms late


def test_the_flows_of_a_pair_have_a_gap_where_all_of_them_have() -> None:
    cell = stream(parallel=3)
    assert found_in(with_gap(cell, 1000, 3000, slice(0, 2)), cells=(cell,)) == []
    assert len(found_in(with_gap(cell, 1000, 3000), cells=(cell,))) == 1


def test_of_flows_that_stop_at_different_times_the_gap_is_what_they_share() -> None:
    cell = stream(parallel=2)
    whole = builders.repetition(cell, [900.0])
    first, second = whole.flows
    for_both = replace(whole, flows=(stopped(stopped(first, 500, 1000), 2000, 4000), stopped(second, 700, 3000)))
    assert [(gap.start_s, round(gap.length_s, 3)) for gap in gaps_of(cell, for_both)] == [(0.7, 0.3), (2.0, 1.0)]


def test_what_one_sampling_interval_may_hide_is_not_claimed() -> None:
    """Samples a second apart: bytes that rose between two of them say nothing of a gap."""
    repetition = with_gap(stream(), 1000, 1900)
    flow = repetition.flows[0]
    assert flow.receiver is not None
    columns = {name: values[9::10] for name, values in flow.receiver.series.columns.items()}
    rare = replace(flow, receiver=replace(flow.receiver, series=Series(columns)))
    assert gaps_of(stream(), replace(repetition, flows=(rare,))) == []


def test_without_series_nothing_is_claimed() -> None:
    repetition = with_gap(stream(), 1000, 3000)

    def bare(side: Side | None) -> Side | None:
        return side and replace(side, series=Series())

    flows = tuple(replace(flow, sender=bare(flow.sender), receiver=bare(flow.receiver)) for flow in repetition.flows)
    assert gaps_of(stream(), replace(repetition, flows=flows)) == []
    missing = tuple(replace(flow, receiver=None) for flow in repetition.flows)
    assert gaps_of(stream(), replace(repetition, flows=missing)) == []
    assert gaps_of(stream(), replace(repetition, flows=())) == []


def test_what_lies_outside_the_measurement_interval_does_not_count() -> None:
    repetition = with_gap(stream(), 1000, 3000)
    later = replace(repetition, window_start_ns=builders.BEGIN_NS + 2900 * MS)
    assert gaps_of(stream(), later) == []
    (gap,) = gaps_of(stream(), replace(repetition, window_start_ns=builders.BEGIN_NS + 2500 * MS))
    assert gap.start_s == 0.0
    assert gap.length_s == pytest.approx(0.5)


@pytest.mark.parametrize("status", [Status.INVALID, Status.FAILED, Status.INTERRUPTED])
def test_repetitions_that_do_not_count_have_none(status: Status) -> None:
    assert gaps_of(stream(), replace(with_gap(stream(), 1000, 3000), status=status)) == []


def test_a_long_round_trip_is_no_gap() -> None:
    repetition = with_gap(stream(), 1000, 1400)
    flow = repetition.flows[0]
    assert flow.sender is not None
    slow = Series(flow.sender.series.columns | {"rtt_us": [300_000] * 50})
    far = replace(repetition, flows=(replace(flow, sender=replace(flow.sender, series=slow)),))
    assert len(gaps_of(stream(), repetition)) == 1
    assert gaps_of(stream(), far) == []


def test_datagrams_of_a_low_rate_are_far_apart_without_a_gap() -> None:
    slow = replace(stream(), test="udp", transport="udp", message_bytes=1000)
    repetition = with_gap(stream(), 1000, 1400)
    assert gaps_of(builders.asking(slow, rate=40_000), repetition) == []  # one in 200 ms
    assert len(gaps_of(builders.asking(slow, rate=10**6), repetition)) == 1


def test_the_longest_three_of_many_are_named_with_their_repetition() -> None:
    cells = tuple(stream(number) for number in (1, 2))
    repetitions = [
        with_gap(cell, 1000, 1000 + 100 * cell.number + 400 * nth, number=nth) for cell in cells for nth in (1, 2)
    ]
    (found,) = found_in(*repetitions, cells=cells, repeat=2)
    assert found.text == (
        "4 gaps of 200 ms or longer, in which nothing arrived; the longest: 1 s on pi1 → pi2 in test 2, repetition 2 "
        "(from 1.0 s on), 900 ms on pi1 → pi2 in test 1, repetition 2 (from 1.0 s on) and 600 ms on pi1 → pi2 in test "
        "2, repetition 1 (from 1.0 s on)."
    )
    assert found.subject.names == ("1", "2")


def test_a_link_that_went_down_meanwhile_is_named() -> None:
    repetition = with_gap(stream(), 1000, 3000)
    nodes = tuple(
        replace(usage, nic=Carrier(carrier_changes=2 if usage.node == "pi2" else 0)) for usage in repetition.nodes
    )
    (found,) = found_in(replace(repetition, nodes=nodes))
    assert found.text.endswith("Meanwhile the carrier changed 2 times on pi2: a link went down or came up.")
    assert found.remedy == "Check the cable, the switch port and its log."
    assert found.numbers["carrier_changes"] == 2
