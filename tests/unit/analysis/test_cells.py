"""Rows are derived from raw counters on reading; what is unknown stays unknown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import builders
import das2
import message_runs
import probing
import pytest
from builders import bucket_of
from switched import Paper

from rigctl.analysis.rows.cells import Rows, derive
from rigctl.analysis.rows.flows import NAMES, latency_values
from rigctl.analysis.rows.frames import load
from rigctl.base.errors import InputError
from rigctl.columns import Level, columns_at
from rigctl.records import Cell, Direction, DiskTimes, Flow, Link, Pair, Repetition, RoundTrips, Side, Status
from rigctl.settings import RATE, READ, WRITE, Settings

CELL = builders.cell()


def derived(repetition: Repetition, cell: Cell = CELL, **plan: Any) -> Rows:
    return derive(builders.run(builders.plan([cell], **plan)), [repetition])


@pytest.mark.parametrize("level", list(Level))
def test_each_level_has_exactly_its_columns(level: Level) -> None:
    frames = load(*builders.gigablox())
    names = [column.name for column in columns_at(level)]
    assert all(list(row) == names for row in frames.rows(level))
    assert list(getattr(frames, level.name.lower()).columns) == names


def test_speeds_and_retransmits_come_out_as_they_went_in_and_a_cell_sums_its_pairs_and_flows() -> None:
    rows = derive(*builders.gigablox())
    went_in = [pair for row in builders.GIGABLOX for pair in zip(row[3], row[4], strict=True)]
    assert [(round(row["goodput_mbps"]), row["retransmits"]) for row in rows.pairs] == went_in
    for cell in rows.cells:
        pairs = [row for row in rows.pairs if row["cell"] == cell["cell"]]
        flows = [row for row in rows.flows if row["cell"] == cell["cell"]]
        for name in ("bytes", "retransmits"):
            assert cell[name] == sum(row[name] for row in pairs) == sum(row[name] for row in flows)
        assert cell["goodput_mbps"] == pytest.approx(sum(row["goodput_mbps"] for row in pairs))
        assert cell["pairs"] == len(pairs) == 2


def test_ceiling_efficiency_and_limit_follow_from_link_and_effective_mss() -> None:
    first, second = derived(builders.repetition(CELL, (911, 941))).pairs
    assert second["ceiling_mbps"] == pytest.approx(1000 * 1448 / 1538)
    assert second["efficiency"] == pytest.approx(941 / (1000 * 1448 / 1538), rel=1e-6)
    assert (first["limit"], second["limit"]) == ("unknown", "line-rate")


def test_the_slower_end_of_a_pair_sets_its_ceiling() -> None:
    links = {node: Link(10**9, 1500) for node in ("pi1", "pi3", "pi4")} | {"pi2": Link(10**8, 1500)}
    rows = derived(builders.repetition(CELL, (90, 941)), links=links)
    assert [round(row["ceiling_mbps"], 1) for row in rows.pairs] == [94.1, 941.5]
    assert rows.cells[0]["ceiling_mbps"] == pytest.approx(1100 * 1448 / 1538)


def test_an_unknown_link_rate_is_asked_of_the_node_and_else_leaves_the_ceiling_unknown() -> None:
    links = {node: Link(None, None) for node in ("pi1", "pi2", "pi3", "pi4")}
    info = builders.run(builders.plan([CELL], links=links))
    known, nobody = (derive(each, [builders.repetition(CELL)]) for each in (info, replace(info, facts={})))
    assert known.cells[0]["ceiling_mbps"] == pytest.approx(2000 * 1448 / 1538)
    row = nobody.cells[0]
    assert (row["ceiling_mbps"], row["efficiency"], row["limit"]) == (None, None, "unknown")


def test_both_directions_are_two_rows_each_with_its_own_ceiling() -> None:
    cell = builders.cell(pairs=(Pair("a", "b"),), direction=Direction.BOTH)
    rows = derived(builders.repetition(cell, (940, 930)), cell)
    assert [row["direction"] for row in (*rows.pairs, *rows.cells)] == ["forward", "reverse", "both"]
    assert rows.cells[0]["ceiling_mbps"] == pytest.approx(2000 * 1448 / 1538)


def test_the_cpu_of_a_reverse_pair_is_that_of_the_node_that_sends() -> None:
    cell = builders.cell(pairs=(Pair("a", "b"),), direction=Direction.REVERSE)
    busy = {"a": {"node_busy_us": 8_000_000}, "b": {"node_busy_us": 4_000_000}}
    row = derived(builders.using(builders.repetition(cell, (940,)), busy), cell).pairs[0]
    assert (row["cpu_source_pct"], row["cpu_destination_pct"]) == (10.0, 20.0)


def test_a_flow_that_was_not_reported_leaves_its_pair_and_cell_unknown() -> None:
    cell = builders.cell(parallel=2)
    one = builders.repetition(cell)
    lost = replace(one, flows=one.flows[1:], status=Status.FAILED, reason="pi1: gone")
    rows = derived(lost, cell)
    assert [row["bytes"] is None for row in rows.pairs] == [True, False]
    assert (rows.cells[0]["goodput_mbps"], rows.cells[0]["reason"]) == (None, "pi1: gone")


def test_a_failed_repetition_has_its_rows_with_nothing_in_them() -> None:
    rows = derived(builders.failed(CELL))
    assert [row["status"] for row in rows.pairs] == ["failed", "failed"]
    assert (rows.cells[0]["bytes"], rows.cells[0]["efficiency"], rows.flows) == (None, None, [])


def test_the_effective_window_is_half_the_smaller_buffer_and_unknown_where_one_is() -> None:
    for sndbuf_bytes, window_bytes in ((100_000, 50_000), (None, None)):
        one = builders.repetition(CELL, sender={"sndbuf_bytes": sndbuf_bytes})
        assert derived(one).pairs[0]["window_effective_bytes"] == window_bytes


def test_frames_are_typed_so_that_unknown_is_not_a_float() -> None:
    frame = load(builders.run(builders.plan([CELL])), [builders.failed(CELL)]).pairs
    assert (str(frame["bytes"].dtype), str(frame["goodput_mbps"].dtype)) == ("Int64", "Float64")
    assert frame["bytes"].isna().all()


def test_condition_window_in_all_and_the_median_over_intervals_are_in_the_rows() -> None:
    info, measured = das2.run((das2.ON,), windows=(65536,), flows=(4,), pairs=(1, 2))
    rows = derive(info, measured)
    for row in (rows.cells[1], rows.pairs[1], rows.flows[5]):
        assert (row["condition"], row["window_total_bytes"], row["window_bytes"]) == ("resize-on", 65536, 16384)
    assert rows.cells[0]["goodput_median_mbps"] == pytest.approx((measured[0].goodput_median_bps or 0) / 1e6)
    plain = derive(*builders.gigablox()).cells[0]
    assert (plain["goodput_median_mbps"], plain["condition"]) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cell": 7}, "test 7, repetition 1: the run's plan has no such test"),
        ({"window_end_ns": 1}, "test 1, repetition 1: its measurement interval ends before it begins"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(wrong: dict[str, int], said: str) -> None:
    info = builders.run(builders.plan([CELL]))
    one = replace(builders.repetition(CELL, (941,) * len(CELL.pairs)), **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"run {info.run}, {said}\. The store is damaged"):
        load(info, [one])


@pytest.mark.parametrize(
    ("span_us", "busy_us", "pct"),
    [
        # The kernel counts ticks of 10 ms: one in a ping-pong of 4 ms would be 250 %.
        (4_000, 10_000, None),
        (199_999, 100_000, None),
        (200_000, 100_000, 50.0),
        (1_011_289, 1_030_000, 100.0),
    ],
)
def test_processors_are_unknown_in_few_ticks_and_never_above_100(span_us: int, busy_us: int, pct: float | None) -> None:
    usage = {"span_us": span_us, "cpus": 1, "node_busy_us": busy_us, "busiest_cpu_us": busy_us}
    assert cpu(["cpu_source_pct", "busiest_cpu_source_pct"], usage) == [pct, pct]


class TestDatagrams:
    UDP: Final[Any] = {"test": "udp", "transport": "udp", "message_bytes": 1250, "settings": Settings({RATE: 10**8})}
    CELL: Final = builders.cell(pairs=(Pair("a", "b"),), parallel=2, **UDP)

    def rows(self, *counts: tuple[int, int], **fields: Any) -> Rows:
        """Of flows with these numbers of datagrams sent and received."""
        flows = tuple(builders.datagram_flow(*each, number) for number, each in enumerate(counts, 1))
        plain = builders.repetition(builders.cell(pairs=(Pair("a", "b"),)), (1.0,), flows=flows)
        one = replace(plain, window_end_ns=builders.BEGIN_NS + 10**9, **fields)
        return derived(one, self.CELL)

    def test_a_rate_that_arrives_is_the_limit_of_flows_pair_and_cell(self) -> None:
        rows = self.rows((10_000, 9_950), (10_000, 9_950))
        (cell,), (pair,) = rows.cells, rows.pairs
        assert [row["limit"] for row in (cell, pair, *rows.flows)] == ["rate"] * 4
        assert {row["rate_mbps"] for row in (cell, pair, *rows.flows)} == {100.0}  # of each flow
        assert (cell["datagrams_sent"], pair["datagrams_lost"]) == (20_000, 100)
        assert [row["datagrams_lost"] for row in rows.flows] == [50, 50]
        assert pair["ceiling_mbps"] == pytest.approx(1000 * 1250 / (1250 + 66))
        assert pair["goodput_mbps"] == pytest.approx(199.0)

    def test_a_rate_that_does_not_arrive_is_not(self) -> None:
        rows = self.rows((10_000, 9_950), (10_000, 9_000))
        assert (rows.cells[0]["limit"], rows.pairs[0]["limit"]) == ("unknown", "unknown")
        assert [row["limit"] for row in rows.flows] == ["rate", "unknown"]

    def test_the_rate_of_a_trial_is_its_own(self) -> None:
        rows = self.rows((5_000, 5_000), (5_000, 5_000), rate_bps=50_000_000)
        assert (rows.cells[0]["rate_mbps"], rows.cells[0]["limit"]) == (50.0, "rate")

    def test_a_flow_that_was_not_reported_leaves_the_sums_unknown(self) -> None:
        rows = self.rows((10_000, 9_950))
        for row in (rows.cells[0], rows.pairs[0]):
            assert (row["datagrams_sent"], row["loss_pct"], row["bytes"]) == (None, None, None)
        assert rows.flows[0]["datagrams_sent"] == 10_000


def test_the_length_of_the_measurement_interval_is_its_duration() -> None:
    one = builders.repetition(CELL, window_end_ns=builders.BEGIN_NS + 9_876_543_210)
    assert derived(one).cells[0]["duration_s"] == 9.87654321
    for unknown in ({"window_start_ns": None}, {"window_end_ns": None}):
        row = derived(replace(one, **unknown)).cells[0]  # type: ignore[arg-type]
        assert (row["duration_s"], row["goodput_mbps"]) == (None, None)
        assert row["bytes"] is not None


def test_counters_of_switches_stand_beside_the_flows() -> None:
    paper = Paper(pairs=(Pair("n1", "n3"),))
    rows = derive(paper.run(), [paper.repetition()])
    (cell,), (pair,) = rows.cells, rows.pairs
    octets = paper.segments * (1448 + 66)
    assert (cell["trunk_octets"], pair["source_port_octets"], pair["destination_port_octets"]) == (octets,) * 3
    assert cell["trunk_expected_octets"] == pytest.approx(octets, rel=1e-5)
    assert cell["counters_difference_pct"] == pytest.approx(0, abs=0.01)


def cpu(of: Sequence[str], usage: dict[str, Any], parallel: int = 1) -> list[float | None]:
    """Columns of a pair whose sender used its processors so."""
    cell = builders.cell(pairs=(Pair("a", "b"),), parallel=parallel)
    one = builders.using(builders.repetition(cell, (900,)), {"a": usage})
    row = derived(one, cell).pairs[0]
    return [row[name] for name in of]


@pytest.mark.parametrize("unknown", [{"node_busy_us": None}, {"cpus": 0}, {"span_us": None}])
def test_a_node_that_did_not_report_its_processors_leaves_them_unknown(unknown: dict[str, Any]) -> None:
    busy = {"node_busy_us": 20_000_000, "cpus": 4, "span_us": 10_000_000}
    names = ("cpu_source_pct", "cpu_destination_pct")
    assert cpu(names, busy) == [50.0, 25.0]
    assert cpu(names, busy | unknown) == [None, 25.0]


@pytest.mark.parametrize("unknown", [{"agent_cpu_us": None}, {"cpus": 0}, {"span_us": None}, {"span_us": 0}])
def test_an_agent_can_use_a_processor_for_each_of_its_flows(unknown: dict[str, Any]) -> None:
    used = {"agent_cpu_us": 6_000_000, "cpus": 4, "span_us": 10_000_000}
    assert cpu(["agent_cpu_source_pct"], used) == [60.0]
    assert cpu(["agent_cpu_source_pct"], used, parallel=3) == [20.0]
    assert cpu(["agent_cpu_source_pct"], used, parallel=6) == [15.0]
    assert cpu(["agent_cpu_source_pct"], used | unknown) == [None]


OTHER = Pair("pi3", "pi4")


def test_the_rise_is_that_of_the_medians() -> None:
    cell = probing.cell()
    measured = probing.repetition(cell, probing.probes([100] * 9 + [200], [3000] * 98 + [4000, None]))
    (row,) = derived(measured, cell).pairs
    assert [row[name] for name in NAMES] == [100.0, 200.0, 3000.0, 4000.0, 2900.0, pytest.approx(20_000), 1.0]


def test_a_pair_has_its_own_and_the_test_all_of_them() -> None:
    cell = probing.cell(pairs=(probing.PAIR, OTHER))
    own, other = probing.probes([100] * 10, [1000] * 90), probing.probes([200] * 10, [5000] * 90, OTHER)
    measured = probing.repetition(cell, own, other)
    rows = derived(measured, cell)
    assert [row["latency_loaded_p50_us"] for row in rows.pairs] == [1000.0, 5000.0]
    assert (rows.cells[0]["latency_idle_p99_us"], rows.cells[0]["latency_loaded_p99_us"]) == (200.0, 5000.0)


def test_a_repetition_that_failed_has_its_idle_round_trips_only() -> None:
    failed = replace(builders.failed(probing.cell()), probes=(probing.probes([100] * 9, [3000] * 9),))
    values = latency_values(failed)
    assert (values["latency_idle_p50_us"], values["latency_loaded_p50_us"], values["latency_lost_pct"]) == (
        100.0, None, None,
    )  # fmt: skip


def test_without_probes_nothing_is_known() -> None:
    assert set(latency_values(builders.repetition(builders.cell(), [900.0, 900.0])).values()) == {None}


PAIR = Pair("dublin", "cork")
FILE = builders.cell(
    test="file", pairs=(PAIR,), message_bytes=10**7, settings=Settings({READ: "disk", WRITE: "memory"}), folder="/tmp"
)


def transfer(sender: Side, receiver: Side | None) -> dict[str, object]:
    info = builders.run(builders.plan([FILE]))
    flow = Flow(PAIR, FILE.direction, 1, sender, receiver)
    (row,) = load(info, [Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, flows=(flow,))]).rows(Level.FLOWS)
    return row


def test_a_file_has_its_settings_its_throughput_and_the_shares_of_its_disks() -> None:
    sender = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=500_000))
    receiver = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=200_000, sync_us=1_500_000))
    row = transfer(sender, receiver)
    assert (row["read"], row["write"], row["message_bytes"]) == ("disk", "memory", 10**7)
    assert (row["messages"], row["elapsed_s"], row["throughput_bytes_per_s"]) == (1, 2.0, 5e6)
    assert (row["read_share"], row["write_share"], row["sync_s"]) == (0.25, 0.1, 1.5)
    assert row["app_rtt_mean_us"] is None


def test_what_a_side_did_not_report_is_unknown() -> None:
    row = transfer(Side(10**7, 10**9, None), None)
    names = ("elapsed_s", "throughput_bytes_per_s", "read_share", "write_share", "sync_s")
    assert {row[name] for name in names} == {None}


def test_cells_that_differ_in_where_a_file_is_can_be_told_apart_at_every_level() -> None:
    other = replace(FILE, number=2, settings=Settings({READ: "memory", WRITE: "disk"}))
    info = builders.run(builders.plan([FILE, other]))
    failed = [Repetition(number, 1, 1, Status.FAILED, "why", 0.0, 1.0) for number in (1, 2)]
    frames = load(info, failed)
    for level in (Level.CELLS, Level.PAIRS):
        assert [(row["read"], row["write"]) for row in frames.rows(level)] == [("disk", "memory"), ("memory", "disk")]


def ping_pong(**sender: Any) -> dict[str, object]:
    """The row of a ping-pong of 1000 round trips of 2 ms."""
    info, (one,) = message_runs.measured("pingpong", [(1024, 1000, (2.0,))])
    (row,) = load(info, [builders.changing_flows(one, sender=sender)]).rows(Level.FLOWS)
    return row


def test_a_ping_pong_has_its_round_trips_and_throughput_one_way() -> None:
    row = ping_pong()
    assert (row["messages"], row["throughput_bytes_per_s"]) == (1000, 512_000.0)
    assert row["app_rtt_mean_us"] == pytest.approx(2000)
    assert (row["read"], row["read_share"], row["sync_s"]) == (None, None, None)


def test_round_trips_have_their_extremes_and_percentiles_in_us() -> None:
    counts = {1_000_000: 899, 4_000_000: 91, 16_000_000: 9, 64_000_000: 1}
    histogram = tuple((bucket_of(trip_ns), count) for trip_ns, count in counts.items())
    row = ping_pong(round_trips=RoundTrips(1000, 2_000_000_000, 500_000, 64_000_000), histogram=histogram)
    assert (row["app_rtt_mean_us"], row["app_rtt_min_us"], row["app_rtt_max_us"]) == (2000.0, 500.0, 64_000.0)
    shares = [row[f"app_rtt_p{percent}_us"] for percent in ("50", "90", "99", "999")]
    assert shares == pytest.approx([1000, 4000, 4000, 16_000], rel=0.005)


@pytest.mark.parametrize("timed", [None, RoundTrips(0), RoundTrips(5)])
def test_without_times_of_round_trips_they_are_unknown(timed: RoundTrips | None) -> None:
    row = ping_pong(round_trips=timed)
    assert {row[f"app_rtt_{name}_us"] for name in ("mean", "min", "max", "p50", "p999")} == {None}
    assert row["messages"] == 1000
