"""The bins of a stream, over the time that counts, and as rows of an export."""

from dataclasses import replace

import builders
import pytest

from rigctl.analysis.rows.series import bin_rows, stream_bins
from rigctl.model.bins import BinSeries
from rigctl.records import Bins, Cell, Direction, Flow, Pair, Repetition, Side, Status

PAIRS = (Pair("a", "b"), Pair("c", "d"))
CELL = Cell(3, "tcp", PAIRS, 1.0, 0.0, 2, bin_us=500)
MS = 1_000_000
INFO = builders.run(builders.plan([CELL]))


def flow(pair: Pair, number: int, values: tuple[int, ...], width_us: int = 500) -> Flow:
    """What the receiver took in bins from 0 on."""
    side = Side(sum(values), 0, 2 * MS, bins=Bins(0, width_us, values))
    return Flow(pair, Direction.FORWARD, number, Side(sum(values), 0, 2 * MS), side, bytes=sum(values))


def repetition(*flows: Flow, start_ns: int | None = 0, end_ns: int | None = 2 * MS) -> Repetition:
    return Repetition(3, 2, 1, Status.OK, None, 0.0, 1.0, start_ns, end_ns, 0.0, 0.0, flows=flows)


FOUR = (
    flow(PAIRS[0], 1, (1, 2, 3, 4)),
    flow(PAIRS[1], 1, (100, 0, 0, 100)),
    flow(PAIRS[0], 2, (10, 20, 30, 40)),
    flow(PAIRS[1], 2, (0, 0, 0, 100)),
)


def test_the_flows_of_a_pair_are_one_series_in_the_scenario_s_order() -> None:
    found = stream_bins(CELL, repetition(*FOUR))
    assert [(str(bins.stream.pair), bins.series) for bins in found] == [
        ("a -> b", BinSeries(500, (11, 22, 33, 44))),
        ("c -> d", BinSeries(500, (100, 0, 0, 200))),
    ]


def test_only_the_measurement_interval_counts() -> None:
    found = stream_bins(CELL, repetition(*FOUR, start_ns=MS // 2, end_ns=3 * MS // 2))
    assert [bins.series.bytes for bins in found] == [(22, 33), (0, 0)]


@pytest.mark.parametrize("bounds", [{"start_ns": None}, {"end_ns": None}])
def test_a_file_has_none_and_counts_from_its_first_byte_to_its_last(bounds: dict[str, None]) -> None:
    first, second = (FOUR[0], FOUR[2])
    assert first.receiver is not None
    late = replace(first, receiver=replace(first.receiver, first_byte_ns=MS, last_byte_ns=None))
    assert second.receiver is not None
    early = replace(second, receiver=replace(second.receiver, first_byte_ns=MS // 2, last_byte_ns=3 * MS // 2))
    (found,) = stream_bins(CELL, repetition(late, early, **bounds))
    assert found.series.bytes == (22, 33)
    unknown = [
        replace(one, receiver=replace(one.receiver, first_byte_ns=None)) for one in (first, second) if one.receiver
    ]
    assert stream_bins(CELL, repetition(*unknown, **bounds)) == []


def test_a_stream_with_a_flow_whose_bins_are_unknown_is_left_out() -> None:
    lost = FOUR[0]
    assert lost.receiver is not None
    for broken in (replace(lost, receiver=None), replace(lost, receiver=replace(lost.receiver, bins=None))):
        found = stream_bins(CELL, repetition(broken, *FOUR[1:]))
        assert [str(bins.stream.pair) for bins in found] == ["c -> d"]
    other_width = flow(PAIRS[0], 1, (1, 2), width_us=1000)
    assert [str(bins.stream.pair) for bins in stream_bins(CELL, repetition(other_width, *FOUR[1:]))] == ["c -> d"]


def test_each_bin_is_a_row_at_its_end() -> None:
    rows = bin_rows(INFO, CELL, repetition(*FOUR))
    assert len(rows) == 8
    first, second = rows[0], rows[5]
    assert (first["run"], first["cell"], first["repetition"]) == (INFO.run, 3, 2)
    assert (first["source"], first["destination"], first["direction"]) == ("a", "b", "forward")
    assert (first["t_s"], first["bytes"]) == (0.0005, 11)
    assert first["goodput_mbps"] == pytest.approx(11 * 8 / 500)
    assert (second["source"], second["t_s"], second["bytes"]) == ("c", 0.001, 0)
    assert (second["goodput_mbps"], second["cumulative_mbps"]) == (0, pytest.approx(100 * 8 / 1000))


def test_what_was_not_requested_or_does_not_count_has_no_rows() -> None:
    assert bin_rows(INFO, replace(CELL, bin_us=None), repetition(*FOUR)) == []
    assert bin_rows(INFO, CELL, replace(repetition(*FOUR), status=Status.INVALID)) == []
