"""Rows are derived from raw counters on reading, those of datagrams too; what is unknown stays unknown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import builders
import das2
import message_runs
import probing
import pytest
from builders import bucket_of
from switched import Paper

from rigctl.base.errors import InputError
from rigctl.figures import FIGURES, FlowGroup, Level, columns_at
from rigctl.figures.datagrams import DATAGRAM_FIGURES
from rigctl.figures.effective import BURST_EFFECTIVE
from rigctl.figures.probes import IDLE, LOADED, LOST_PROBES, PROBES
from rigctl.records import Cell, Copying, Datagrams, Direction, DiskTimes, Flow, Pair, Repetition, RoundTrips, Side
from rigctl.results.condense import Derivation, requested_mbps
from rigctl.results.frames import load_frames
from rigctl.results.run_results import RunResults, condensed_in_memory
from rigctl.settings import COPY, NODELAY, RATE, READ, WRITE, Settings

CELL = builders.cell()
AB = Pair("a", "b")


def derived(repetition: Repetition, cell: Cell = CELL, **plan: Any) -> RunResults:
    return condensed_in_memory(builders.run(builders.plan([cell], **plan)), [repetition])


@pytest.mark.parametrize("level", list(Level))
def test_each_level_has_exactly_its_columns(level: Level) -> None:
    frames = load_frames(*builders.gigablox())
    names = [column.name for column in columns_at(level)]
    assert all(list(row) == names for row in frames.rows(level))
    assert list(getattr(frames, level.name.lower()).columns) == names


def test_speeds_and_retransmits_come_out_as_they_went_in_and_a_cell_sums_its_pairs_and_flows() -> None:
    rows = condensed_in_memory(*builders.gigablox())
    went_in = [pair for row in builders.GIGABLOX for pair in zip(row[3], row[4], strict=True)]
    assert [(round(row["goodput_mbps"]), row["retransmits"]) for row in rows.pairs] == went_in
    for cell in rows.cells:
        pairs = [row for row in rows.pairs if row["cell"] == cell["cell"]]
        flows = [row for row in rows.flows if row["cell"] == cell["cell"]]
        for name in ("bytes", "retransmits"):
            assert cell[name] == sum(row[name] for row in pairs) == sum(row[name] for row in flows)
        assert cell["goodput_mbps"] == pytest.approx(sum(row["goodput_mbps"] for row in pairs))
        assert cell["pairs"] == len(pairs) == 2


def test_ceiling_efficiency_limit_and_window_follow_from_link_mss_and_buffers() -> None:
    ceiling_mbps = 1000 * 1448 / 1538
    first, second = derived(builders.repetition(CELL, (911, 941), sender={"sndbuf_bytes": 100_000})).pairs
    assert (second["ceiling_mbps"], second["efficiency"]) == pytest.approx((ceiling_mbps, 941 / ceiling_mbps), rel=1e-6)
    assert (first["limit"], second["limit"]) == ("unknown", "line-rate")
    unknown, _ = derived(builders.repetition(CELL, sender={"sndbuf_bytes": None})).pairs
    assert (first["window_effective_bytes"], unknown["window_effective_bytes"]) == (50_000, None)


def test_the_slower_end_of_a_pair_sets_its_ceiling_and_an_unknown_link_rate_is_asked_of_the_node() -> None:
    links = builders.plan([CELL]).links
    slow = links | {"pi2": replace(links["pi2"], rate_bps=10**8)}
    rows = derived(builders.repetition(CELL, (90, 941)), links=slow)
    assert [round(row["ceiling_mbps"], 1) for row in rows.pairs] == [94.1, 941.5]
    assert rows.cells[0]["ceiling_mbps"] == pytest.approx(1100 * 1448 / 1538)
    unknown = dict.fromkeys(links, replace(links["pi1"], rate_bps=None, mtu=None))
    info = builders.run(builders.plan([CELL], links=unknown))
    known, nobody = (
        condensed_in_memory(each, [builders.repetition(CELL)]).cells[0] for each in (info, replace(info, facts={}))
    )
    assert known["ceiling_mbps"] == pytest.approx(2000 * 1448 / 1538)
    assert (nobody["ceiling_mbps"], nobody["efficiency"], nobody["limit"]) == (None, None, "unknown")


def test_both_directions_are_two_rows_and_the_cpu_of_a_reverse_pair_is_that_of_the_node_that_sends() -> None:
    cell = builders.cell(pairs=(AB,), direction=Direction.BOTH)
    busy = {"a": {"node_busy_us": 8_000_000}, "b": {"node_busy_us": 4_000_000}}
    rows = derived(builders.using(builders.repetition(cell, (940, 930)), busy), cell)
    assert [row["direction"] for row in (*rows.pairs, *rows.cells)] == ["forward", "reverse", "both"]
    assert rows.cells[0]["ceiling_mbps"] == pytest.approx(2000 * 1448 / 1538)
    processors = [(row["cpu_source_pct"], row["cpu_destination_pct"]) for row in rows.pairs]
    assert processors == [(20.0, 10.0), (10.0, 20.0)]


def test_a_flow_that_was_not_reported_leaves_its_pair_and_cell_unknown() -> None:
    cell = builders.cell(parallel=2)
    one = builders.repetition(cell, reason="pi1: gone")
    rows = derived(replace(one, flows=one.flows[1:]), cell)
    assert [row["bytes"] is None for row in rows.pairs] == [True, False]
    assert (rows.cells[0]["goodput_mbps"], rows.cells[0]["reason"]) == (None, "pi1: gone")


def test_a_failed_repetition_has_its_rows_with_nothing_in_them_not_even_a_float() -> None:
    frames = load_frames(builders.run(builders.plan([CELL])), [builders.failed(CELL)])
    rows, frame = frames.results, frames.pairs
    assert [row["status"] for row in rows.pairs] == ["failed", "failed"]
    assert (rows.cells[0]["bytes"], rows.cells[0]["efficiency"], rows.flows) == (None, None, [])
    assert (str(frame["bytes"].dtype), str(frame["goodput_mbps"].dtype)) == ("Int64", "Float64")
    assert frame["bytes"].isna().all()


def test_condition_window_in_all_and_the_median_over_intervals_are_in_the_rows() -> None:
    info, measured = das2.run((das2.ON,), windows=(65536,), flows=(4,), pairs=(1, 2))
    rows = condensed_in_memory(info, measured)
    for row in (rows.cells[1], rows.pairs[1], rows.flows[5]):
        assert (row["condition"], row["window_total_bytes"], row["window_bytes"]) == ("resize-on", 65536, 16384)
    assert rows.cells[0]["goodput_median_mbps"] == pytest.approx((measured[0].goodput_median_bps or 0) / 1e6)
    plain = condensed_in_memory(*builders.gigablox()).cells[0]
    assert (plain["goodput_median_mbps"], plain["condition"]) == (None, None)


def test_records_that_do_not_fit_together_are_refused() -> None:
    info, one = builders.run(builders.plan([CELL])), builders.repetition(CELL)
    for wrong, said in (
        (replace(one, cell=7), "test 7, repetition 1: the run's plan has no such test"),
        (replace(one, window_end_ns=1), "test 1, repetition 1: its measurement interval ends before it begins"),
    ):
        with pytest.raises(InputError, match=rf"run {info.run}, {said}\. The store is damaged"):
            load_frames(info, [wrong])


UDP = Cell(1, "udp", (AB,), 1.0, 0.0, 1, transport="udp", message_bytes=1250, settings=Settings({RATE: 10**8}))


def lossy(sent: int, came: int, burst: int = 1, **more: Any) -> Flow:
    """One in which `burst` datagrams at most are missing in a row."""
    counts = {"duplicates": 0, "reordered": 0, "overflow": 0, "jitter_ns": 5000, "jitter_max_ns": 9000} | more
    lost = ((bucket_of(burst), 1),) if came < sent else ()
    return builders.changing(builders.datagram_flow(sent, came, **counts), receiver={"histogram": lost})


def datagram_values(flows: Sequence[Flow]) -> dict[str, Any]:
    group = FlowGroup(UDP, flows)
    return {figure.name: figure.of(group) for figure in (*DATAGRAM_FIGURES, BURST_EFFECTIVE)}


def lost(*flows: Flow) -> tuple[Any, ...]:
    """Datagrams sent and lost, the share of them, and the most in a row."""
    values = datagram_values(flows)
    return tuple(values[name] for name in ("datagrams_sent", "datagrams_lost", "loss_pct", "loss_burst_max"))


def test_what_is_missing_at_the_end_is_a_loss_in_a_row_too_and_duplicates_make_no_negative_one() -> None:
    assert lost(lossy(10_000, 9950, burst=10, highest=9960)) == (10_000, 50, 0.5, 40)
    assert lost(lossy(10_000, 9950, burst=45, highest=9960)) == (10_000, 50, 0.5, 45)
    assert lost(lossy(1000, 1000), lossy(1000, 1003, duplicates=3)) == (2000, 0, 0.0, 0)
    assert lost(lossy(1000, 1000, highest=1002)) == (1000, 0, 0.0, 0)
    assert lost(lossy(0, 0)) == (0, 0, None, 0)
    assert lost(lossy(1000, 990, highest=None)) == (1000, 10, 1.0, None)  # datagrams without numbers


def test_a_receiver_that_got_nothing_has_an_unknown_burst_and_an_unknown_time_gives_no_rate() -> None:
    nothing = {"first_byte_ns": None, "last_byte_ns": None, "histogram": (), "datagrams": Datagrams(0)}
    silent = builders.changing(lossy(1000, 0), receiver=nothing)
    assert lost(silent) == (1000, 1000, 100.0, None)
    unknown = ("jitter_us", "jitter_max_us", "duplicates", "reordered", "receiver_drops")
    assert {datagram_values([silent])[name] for name in unknown} == {None}
    for times in ({"first_byte_ns": None}, {"last_byte_ns": None}, {"last_byte_ns": builders.BEGIN_NS}):
        assert datagram_values([builders.changing(lossy(1, 1), sender=times)])["sent_mbps"] is None


def test_flows_are_summed_their_jitter_is_a_mean_and_the_worst_stays_the_worst() -> None:
    first = lossy(1000, 990, 4, refused=1, reordered=2, overflow=3, jitter_ns=4000, jitter_max_ns=20_000)
    second = lossy(3000, 2980, 6, refused=2, reordered=3, duplicates=1, overflow=4, jitter_ns=8000)
    values = datagram_values([first, second])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_pct"]) == (4000, 30, 0.75)
    assert (values["sender_drops"], values["receiver_drops"]) == (3, 7)
    assert (values["reordered"], values["duplicates"]) == (5, 1)
    assert (values["jitter_us"], values["jitter_max_us"], values["loss_burst_max"]) == (6.0, 20.0, 6)
    assert values["sent_mbps"] == pytest.approx(40.0)


def test_a_side_that_is_not_known_leaves_sums_unknown_and_tcp_has_none_of_them() -> None:
    whole = lossy(1000, 1000)
    one_sided, unsent = [whole, replace(whole, receiver=None)], [whole, replace(whole, sender=None)]
    assert lost(*one_sided) == (2000, None, None, 0)  # the burst of those known
    assert (datagram_values(one_sided)["reordered"], datagram_values(one_sided)["jitter_us"]) == (None, 5.0)
    assert (*lost(*unsent), datagram_values(unsent)["sent_mbps"]) == (None, None, None, 0, None)
    nothing = datagram_values([])
    assert nothing == datagram_values(builders.flows(CELL, (900, 900))) == dict.fromkeys(nothing)


def test_the_rate_of_a_trial_comes_before_what_the_scenario_says() -> None:
    plain = builders.repetition(CELL)
    searched = replace(UDP, settings=Settings({RATE: "max"}))
    assert [requested_mbps(one, replace(plain, load=25_000_000)) for one in (UDP, searched)] == [100.0, 25.0]
    for unbounded in ("max", "unlimited", None):
        assert requested_mbps(replace(UDP, settings=Settings({RATE: unbounded})), plain) is None


def copied(sent: Copying, copies: bool | None = None, nodelay: bool | None = None) -> Flow:
    sender = Side(9, 1, 2, copying=sent, granted=Settings({NODELAY: nodelay, COPY: False}))
    return Flow(AB, Direction.FORWARD, 1, sender, Side(9, 1, 2, granted=Settings({COPY: copies})))


def together(*flows: Flow) -> dict[str, Any]:
    group = FlowGroup(CELL, flows)
    return {name: figure.of(group) for name, figure in FIGURES.items()}


def test_the_effective_share_is_of_all_sends_of_all_flows_and_unknown_if_not_asked_for() -> None:
    values = together(copied(Copying(300, 300), True, True), copied(Copying(100, 0), True, True))
    assert (values["copy_effective"], values["nodelay"], values["congestion"]) == (True, True, None)
    assert values["zerocopy_effective"] == 0.75
    assert together(copied(Copying(300, 0)))["zerocopy_effective"] == 0.0
    for values in (together(copied(Copying(300))), together()):
        assert (values["zerocopy_effective"], values["copy_effective"]) == (None, None)
    assert together(copied(Copying(1), True), copied(Copying(1), False))["copy_effective"] is None


def datagram_rows(*counts: tuple[int, int], **fields: Any) -> RunResults:
    """Rows of flows with these numbers of datagrams sent and received."""
    flows = tuple(builders.datagram_flow(*each, number) for number, each in enumerate(counts, 1))
    fields |= {"flows": flows, "window_end_ns": builders.BEGIN_NS + 10**9}
    return derived(builders.repetition(builders.cell(pairs=(AB,)), (1.0,), **fields), replace(UDP, parallel=2))


def test_a_rate_that_arrives_is_the_limit_of_flows_pair_and_cell() -> None:
    rows = datagram_rows((10_000, 9_950), (10_000, 9_950))
    (cell,), (pair,) = rows.cells, rows.pairs
    limits = [(row["limit"], row["rate_mbps"], row["datagrams_lost"]) for row in (cell, pair, *rows.flows)]
    assert limits == [("rate", 100.0, 100)] * 2 + [("rate", 100.0, 50)] * 2  # 100 Mbit/s of each flow
    assert (cell["datagrams_sent"], pair["goodput_mbps"]) == (20_000, pytest.approx(199.0))
    assert pair["ceiling_mbps"] == pytest.approx(1000 * 1250 / (1250 + 66))


def test_a_rate_that_does_not_arrive_is_no_limit_and_a_flow_that_was_not_reported_leaves_sums_unknown() -> None:
    rows = datagram_rows((10_000, 9_950), (10_000, 9_000))
    limits = [row["limit"] for row in (*rows.cells, *rows.pairs, *rows.flows)]
    assert limits == ["unknown"] * 4
    rows = datagram_rows((10_000, 9_950))
    sums = [(row["datagrams_sent"], row["loss_pct"], row["bytes"]) for row in (*rows.cells, *rows.pairs)]
    assert (sums, rows.flows[0]["datagrams_sent"]) == ([(None,) * 3] * 2, 10_000)


def test_the_length_of_the_measurement_interval_is_its_duration() -> None:
    one = builders.repetition(CELL, window_end_ns=builders.BEGIN_NS + 9_876_543_210)
    assert derived(one).cells[0]["duration_s"] == 9.87654321
    for unknown in ({"window_start_ns": None}, {"window_end_ns": None}):
        row = derived(replace(one, **unknown)).cells[0]  # type: ignore[arg-type]
        assert (row["duration_s"], row["goodput_mbps"]) == (None, None)
        assert row["bytes"] is not None


def test_counters_of_switches_stand_beside_the_flows() -> None:
    paper = Paper(pairs=(Pair("n1", "n3"),))
    rows = condensed_in_memory(paper.run(), [paper.repetition()])
    (cell,), (pair,) = rows.cells, rows.pairs
    octets = paper.segments * (1448 + 66)
    assert (cell["trunk_octets"], pair["source_port_octets"], pair["destination_port_octets"]) == (octets,) * 3
    assert cell["trunk_expected_octets"] == pytest.approx(octets, rel=1e-5)
    assert cell["counters_difference_pct"] == pytest.approx(0, abs=0.01)


def cpu(of: Sequence[str], usage: dict[str, Any], parallel: int = 1) -> list[float | None]:
    """Columns of a pair whose sender used its processors so."""
    cell = builders.cell(pairs=(AB,), parallel=parallel)
    one = builders.using(builders.repetition(cell, (900,)), {"a": usage})
    row = derived(one, cell).pairs[0]
    return [row[name] for name in of]


def test_what_a_node_did_not_report_of_its_processors_is_unknown_and_an_agent_can_use_one_for_each_flow() -> None:
    used = {"node_busy_us": 20_000_000, "agent_cpu_us": 6_000_000, "cpus": 4, "span_us": 10_000_000}
    names = ("cpu_source_pct", "agent_cpu_source_pct", "cpu_destination_pct")
    assert cpu(names, used) == [50.0, 60.0, 25.0]
    assert cpu(names, used | {"node_busy_us": None}) == [None, 60.0, 25.0]
    assert cpu(names, used | {"agent_cpu_us": None}) == [50.0, None, 25.0]
    for unknown in ({"cpus": 0}, {"span_us": None}, {"span_us": 0}):
        assert cpu(names, used | unknown) == [None, None, 25.0]
    assert [cpu(["agent_cpu_source_pct"], used, parallel) for parallel in (3, 6)] == [[20.0], [15.0]]


def test_the_share_of_time_without_a_processor_is_one_threads_and_at_most_the_whole() -> None:
    cell = builders.cell(pairs=(AB,), parallel=3)
    shares = []
    for throttled_us, cpus in ((6_000_000, 4), (6_000_000, 2), (90_000_000, 4), (None, 4), (6_000_000, 0)):
        usage = {"throttled_us": throttled_us, "cpus": cpus, "span_us": 10_000_000}
        one = builders.using(builders.repetition(cell, (900,)), {"a": usage})
        results = Derivation(builders.run(builders.plan([cell])), cell, one, None)
        shares.append(results.throttled_share("a"))
    assert shares == [pytest.approx(0.2), pytest.approx(0.3), 1.0, None, None]


def test_processors_are_unknown_in_few_ticks_and_never_above_100() -> None:
    """The kernel counts ticks of 10 ms: one in a ping-pong of 4 ms would be 250 %."""
    spans = {4_000: (10_000, None), 199_999: (100_000, None), 200_000: (100_000, 50.0), 1_011_289: (1_030_000, 100.0)}
    for span_us, (busy_us, pct) in spans.items():
        usage = {"span_us": span_us, "cpus": 1, "node_busy_us": busy_us, "busiest_cpu_us": busy_us}
        assert cpu(["cpu_source_pct", "busiest_cpu_source_pct"], usage) == [pct, pct]


def test_the_rise_of_round_trips_is_that_of_the_medians_and_the_test_has_those_of_all_pairs() -> None:
    cell = probing.cell()
    measured = probing.repetition(cell, probing.probes([100] * 9 + [200], [3000] * 98 + [4000, None]))
    (row,) = derived(measured, cell).pairs
    assert [row[figure.name] for figure in PROBES] == [100.0, 200.0, 3000.0, 4000.0, 2900.0, pytest.approx(20_000), 1.0]
    both = probing.cell(pairs=builders.PAIRS)
    own, other = ([100] * 10, [1000] * 90), ([200] * 10, [5000] * 90)
    rows = derived(probing.repetition(both, probing.probes(*own), probing.probes(*other, builders.PAIRS[1])), both)
    assert [row["latency_loaded_p50_us"] for row in rows.pairs] == [1000.0, 5000.0]
    assert (rows.cells[0]["latency_idle_p99_us"], rows.cells[0]["latency_loaded_p99_us"]) == (200.0, 5000.0)


def test_a_repetition_that_failed_has_its_idle_round_trips_only_and_one_without_probes_none() -> None:
    failed = replace(builders.failed(probing.cell()), probes=(probing.probes([100] * 9, [3000] * 9),))
    group = FlowGroup(CELL, failed.flows, probes=failed.probes, window_ns=failed.window_ns)
    assert [figure.of(group) for figure in (IDLE, LOADED, LOST_PROBES)] == [100.0, None, None]
    assert {figure.of(FlowGroup(CELL, ())) for figure in PROBES} == {None}


WHERE = Settings({READ: "disk", WRITE: "memory"})
FILE = builders.cell(test="file", pairs=(AB,), message_bytes=10**7, settings=WHERE, folder="/tmp")


def transfer(sender: Side, receiver: Side | None) -> Mapping[str, object]:
    one = builders.repetition(FILE, (1.0,), flows=(Flow(AB, FILE.direction, 1, sender, receiver),))
    (row,) = load_frames(builders.run(builders.plan([FILE])), [one]).rows(Level.FLOWS)
    return row


def test_a_file_has_its_settings_its_throughput_and_the_shares_of_its_disks_unless_a_side_did_not_report() -> None:
    sender = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=500_000))
    receiver = Side(10**7, 10**9, 3 * 10**9, disk=DiskTimes(disk_us=200_000, sync_us=1_500_000))
    row, silent = transfer(sender, receiver), transfer(Side(10**7, 10**9, None), None)
    assert (row["read"], row["write"], row["message_bytes"]) == ("disk", "memory", 10**7)
    assert (row["messages"], row["app_rtt_mean_us"]) == (1, None)
    names = ("elapsed_s", "throughput_bytes_per_s", "read_share", "write_share", "sync_s")
    assert tuple(row[name] for name in names) == (2.0, 5e6, 0.25, 0.1, 1.5)
    assert {silent[name] for name in names} == {None}


def test_cells_that_differ_in_where_a_file_is_can_be_told_apart_at_every_level() -> None:
    other = replace(FILE, number=2, settings=Settings({READ: "memory", WRITE: "disk"}))
    frames = load_frames(builders.run(builders.plan([FILE, other])), [builders.failed(cell) for cell in (FILE, other)])
    for level in (Level.CELLS, Level.PAIRS):
        assert [(row["read"], row["write"]) for row in frames.rows(level)] == [("disk", "memory"), ("memory", "disk")]


def ping_pong(**sender: Any) -> Mapping[str, object]:
    """The row of a ping-pong of 1000 round trips of 2 ms."""
    info, (one,) = message_runs.measured("pingpong", [(1024, 1000, (2.0,))])
    (row,) = load_frames(info, [builders.changing_flows(one, sender=sender)]).rows(Level.FLOWS)
    return row


def test_a_ping_pong_has_throughput_one_way_and_round_trips_that_are_unknown_without_times() -> None:
    names = ("messages", "throughput_bytes_per_s", "app_rtt_mean_us", "read", "read_share", "sync_s")
    assert [ping_pong()[name] for name in names] == [1000, 512_000.0, 2000.0, None, None, None]
    counts = {1_000_000: 899, 4_000_000: 91, 16_000_000: 9, 64_000_000: 1}
    histogram = tuple((bucket_of(trip_ns), count) for trip_ns, count in counts.items())
    row = ping_pong(round_trips=RoundTrips(1000, 2_000_000_000, 500_000, 64_000_000), histogram=histogram)
    trips = [f"app_rtt_{name}_us" for name in ("mean", "min", "max", "p50", "p90", "p99", "p999")]
    assert [row[name] for name in trips[:3]] == [2000.0, 500.0, 64_000.0]
    assert [row[name] for name in trips[3:]] == pytest.approx([1000, 4000, 4000, 16_000], rel=0.005)
    for timed in (None, RoundTrips(0), RoundTrips(5)):
        row = ping_pong(round_trips=timed)
        assert ({row[name] for name in trips}, row["messages"]) == ({None}, 1000)
