"""A row of the results table: means over the repetitions that count, and what is known of the others."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from builders import datagram_flow
from documents import cells_of
from known import known

from rigctl.figures import datagrams
from rigctl.findings.limits import bottleneck_text
from rigctl.findings.window import window_formula
from rigctl.limits.rules import Evidence
from rigctl.records import Cell, Direction, Link, Pair, Repetition, RunStatus, Series, Status
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary, Exclusion, StreamSummary

PAIR = Pair("a", "b")
ONE = builders.cell(pairs=(PAIR,))
TWO = builders.cell(pairs=(PAIR, Pair("c", "d")))
CEILING = 1000 * 1448 / 1538


def summary(cell: Cell, *repetitions: Repetition, plan: dict[str, Any] | None = None, **run: Any) -> CellSummary:
    info = builders.run(builders.plan([cell], **(plan or {"repeat": len(repetitions)})), **run)
    (found,) = cells_of(info, repetitions)
    return found


def only_stream(*repetitions: Repetition, cell: Cell = ONE) -> StreamSummary:
    return summary(cell, *repetitions).streams[0]


class TestMeans:
    def test_they_have_a_standard_deviation_but_that_of_a_single_repetition(self) -> None:
        measured = [builders.repetition(ONE, (mbps,), number=at) for at, mbps in enumerate((900, 910, 920), 1)]
        single, found = summary(ONE, measured[0]), summary(ONE, *measured)
        alone, mean = known(single.goodput_mbps), known(found.goodput_mbps)
        assert (single.counted, alone.spread) == (1, None)
        assert [alone.mean, mean.mean] == pytest.approx([900, 910], rel=1e-6)
        assert mean.spread == pytest.approx(10, rel=1e-4)
        assert (found.efficiency, found.ceiling_mbps) == pytest.approx((910 / CEILING, CEILING), rel=1e-6)
        (stream,) = found.streams
        assert stream.bytes == pytest.approx(910e6 / 8 * 10, rel=1e-6)
        own = (stream.goodput_mbps, stream.efficiency, stream.ceiling_mbps)
        assert own == (found.goodput_mbps, found.efficiency, found.ceiling_mbps)

    def test_retransmits_are_a_mean_over_repetitions_and_a_sum_over_pairs(self) -> None:
        cell = builders.cell()
        measured = [builders.repetition(cell, (900, 900), again, number=n) for n, again in enumerate([(3, 0), (4, 1)])]
        found = summary(cell, *measured)
        assert found.retransmits == 4.0
        assert [stream.retransmits for stream in found.streams] == [3.5, 0.5]

    def test_what_does_not_count_is_in_no_mean(self) -> None:
        good = builders.repetition(ONE, (900.0,))
        slow = builders.repetition(ONE, (100.0,), (50,), number=2, status=Status.INVALID, sender={"mss": 500})
        alone, found = summary(ONE, good), summary(ONE, good, slow)
        assert (found.counted, found.goodput_mbps, found.retransmits) == (1, alone.goodput_mbps, 0)
        assert found.streams == alone.streams

    def test_a_test_without_a_valid_repetition_knows_nothing(self) -> None:
        found = summary(ONE, builders.failed(ONE))
        assert (found.counted, found.goodput_mbps, found.retransmits, found.efficiency) == (0, None, None, None)
        (stream,) = found.streams
        assert (found.limit, found.binding, stream.evidence) == ("unknown", stream, Evidence())
        assert (stream.goodput_mbps, stream.bytes, stream.window_effective_bytes) == (None, None, None)
        assert (stream.rtt_min_us, stream.congestion) == (None, None)

    def test_every_test_of_the_plan_has_a_row_in_its_order(self) -> None:
        cells = [builders.cell(number, pairs=(PAIR,)) for number in (3, 1, 2)]
        measured = [builders.repetition(cells[2], (800,)), builders.repetition(cells[0], (900,))]
        found = cells_of(builders.run(builders.plan(cells)), measured)
        means = [(row.cell.number, row.goodput_mbps and round(row.goodput_mbps.mean)) for row in found]
        assert means == [(3, 900), (1, None), (2, 800)]


class TestStreams:
    def test_each_has_its_own_limit_and_the_test_that_furthest_below_a_ceiling_unless_all_is_full(self) -> None:
        one = builders.repetition(TWO, (940.0, 200.0))
        waiting: dict[str, Any] = {"busy_us": 1_000_000, "rwnd_limited_us": 900_000, "sndbuf_limited_us": 0}
        waiting |= {"rtt_us": None, "series": Series()}  # a kernel that reports no round trips
        found = summary(TWO, replace(one, flows=(one.flows[0], builders.changing(one.flows[1], sender=waiting))))
        assert [stream.limit for stream in found.streams] == ["line-rate", "window"]
        assert (found.limit, found.binding) == ("window", found.streams[1])
        assert found.streams[1].evidence.held_share == 0.9
        assert known(found.window_cause).node == "d"
        assert bottleneck_text(found).endswith(f"By pair: {found.streams[0]} line-rate, {found.streams[1]} window.")
        full = summary(TWO, builders.repetition(TWO, (941.0, 915.0)))
        assert [stream.limit for stream in full.streams] == ["line-rate", "unknown"]
        assert (full.limit, full.binding) == ("line-rate", None)

    def test_each_pair_and_direction_has_its_own_numbers(self) -> None:
        cell = replace(TWO, direction=Direction.BOTH)
        found = summary(cell, builders.repetition(cell, (100, 200, 300, 400), (1, 2, 3, 4))).streams
        assert [stream.stream for stream in found] == list(cell.streams)
        numbers = [(round(known(stream.goodput_mbps).mean), stream.retransmits) for stream in found]
        assert numbers == [(100, 1), (200, 2), (300, 3), (400, 4)]

    def test_what_the_kernels_granted_is_the_least_of_the_flows(self) -> None:
        cell = builders.cell(pairs=(PAIR,), parallel=2)
        made = builders.repetition(cell, (900,))
        first, second = made.flows
        lesser = {"mss": 1400, "pmtu": 1452, "rtt_min_us": 220, "congestion": "bbr", "sndbuf_bytes": 65536}
        found = only_stream(replace(made, flows=(first, builders.changing(second, sender=lesser))), cell=cell)
        assert (found.mss_effective, found.mss_differs, found.mtu) == (1400, True, 1452)
        assert found.window_effective_bytes == 32768
        assert (found.rtt_min_us, found.congestion) == (180, "bbr, cubic")

    def test_an_mss_that_one_flow_does_not_report_is_no_difference_but_timestamps_that_differ_are_unknown(self) -> None:
        first, second = (builders.repetition(ONE, (900,), number=at) for at in (1, 2))
        alone = only_stream(first)
        assert (alone.mss_effective, alone.mtu, alone.timestamps, alone.congestion) == (1448, 1500, True, "cubic")
        assert (alone.rtt_min_us, alone.evidence.window_bytes, alone[datagrams.LOSS]) == (180, 65536, None)
        found = only_stream(first, builders.changing_flows(second, sender={"mss": None, "timestamps": False}))
        assert (found.mss_effective, found.mss_differs, found.timestamps) == (1448, False, None)

    def test_the_flows_of_another_pair_are_not_its_own(self) -> None:
        made = builders.repetition(TWO, (900, 900))
        slow = builders.changing(made.flows[1], sender={"mss": 500, "rtt_min_us": 999, "timestamps": False})
        first, second = summary(TWO, replace(made, flows=(made.flows[0], slow))).streams
        assert (first.mss_effective, first.rtt_min_us, first.timestamps) == (1448, 180.0, True)
        assert (second.mss_effective, second.rtt_min_us, second.timestamps) == (500, 999.0, False)
        assert not first.mss_differs

    def test_what_became_of_them_is_a_mean_over_repetitions_and_the_longest_burst(self) -> None:
        cell = builders.cell(pairs=(PAIR,), test="udp", transport="udp", message_bytes=1250, rate="unlimited")
        counted = {"reordered": 4, "duplicates": 2, "overflow": 6, "jitter_ns": 5000, "jitter_max_ns": 9000}
        other = {"reordered": 0, "duplicates": 0, "overflow": 0, "jitter_ns": 7000, "highest": 19_960}
        first = datagram_flow(10_000, 9_990, refused=8, highest=9_980, **counted)
        second, end_ns = datagram_flow(20_000, 19_950, **other), builders.BEGIN_NS + 10**9
        one = builders.repetition(ONE, (1.0,), flows=(first,), window_end_ns=end_ns)
        measured = (one, replace(one, repetition=2, flows=(second,)))
        found = only_stream(*measured, cell=cell)
        assert (found[datagrams.SENT], found[datagrams.LOST], found[datagrams.LOSS_BURST]) == (15_000, 30, 40)
        assert found[datagrams.LOSS] == pytest.approx((0.1 + 0.25) / 2)
        assert found[datagrams.SENT_MBPS] == pytest.approx(150.0)
        assert (found[datagrams.REORDERED], found[datagrams.DUPLICATES], found[datagrams.JITTER]) == (2, 1, 6.0)
        assert (found[datagrams.SENDER_DROPS], found[datagrams.RECEIVER_DROPS]) == (4, 3)


class TestCeiling:
    def test_more_than_one_percent_above_the_ceiling_is_flagged(self) -> None:
        within, above = (summary(ONE, builders.repetition(ONE, (CEILING * share,))) for share in (1.0104, 1.0106))
        assert [found.above_ceiling for found in (within, above, summary(ONE))] == [False, True, False]

    def test_pairs_that_share_a_link_are_known_by_their_ceilings(self) -> None:
        together = builders.cell(pairs=(PAIR, Pair("a", "c")))
        sharing, apart = (builders.repetition(cell, (470, 470)) for cell in (together, TWO))
        assert summary(together, sharing).shared
        links = {"a": Link(10**9, 1500), "b": Link(10**9, 1500), "c": Link(None, None)}
        unknown = summary(together, sharing, plan={"links": links}, facts={})
        assert [found.shared for found in (summary(TWO, apart), summary(TWO), unknown)] == [False] * 3


class TestLimit:
    def test_processors_are_means_over_the_repetitions_that_count(self) -> None:
        usage = {"a": {"node_busy_us": 8_000_000}, "b": {"node_busy_us": 0}}
        one = builders.using(builders.repetition(ONE, (500.0,)), usage)
        first, second = one, builders.using(replace(one, repetition=2), {"a": {"node_busy_us": 4_000_000}})
        busy = summary(ONE, first, second).busy
        assert busy.one_machine
        assert busy.sender.node_pct == pytest.approx(15.0)
        ignored = replace(second, status=Status.INVALID)
        assert summary(ONE, first, ignored).busy.sender.node_pct == pytest.approx(20.0)

    def test_the_sentence_on_losses_has_the_round_trip_of_the_measurement_interval(self) -> None:
        lossy = {"rwnd_limited_us": 0, "busy_us": 10_000_000, "rtt_us": 5000, "rtt_min_us": 5900}
        lossy |= {"advertised_window_bytes": 3_000_000, "sndbuf_bytes": 4_000_000}
        times = [builders.BEGIN_NS + at for at in (-3, -2, -1, *range(1, 9))]
        series = Series({"t_ns": times, "rtt_us": [90_000] * 3 + [6000] * 8, "cwnd": [300] * 11})
        one = builders.repetition(ONE, (400.0,), (20,), sender=lossy | {"series": series})
        found = summary(ONE, one)
        assert (found.limit, found.streams[0].evidence.rtt_ms) == ("loss", 6.0)
        assert found.streams[0].evidence.lost_share == pytest.approx(20 * 1448 / 5e8, rel=1e-3)
        assert "a round trip took 6 ms" in bottleneck_text(found)
        unsampled = summary(ONE, builders.changing_flows(one, sender={"series": Series()}))
        assert (unsampled.limit, unsampled.streams[0].evidence.rtt_ms) == ("unknown", 5.0)

    def test_column_sentence_formula_and_evidence_have_one_window_and_one_least_round_trip(self) -> None:
        cell = builders.cell(pairs=(PAIR,), parallel=2, window_bytes=None)
        times = [builders.BEGIN_NS + at for at in (-2, -1, 10**9, 2 * 10**9)]
        series = Series({"t_ns": times, "advertised_window": [900_000, 900_000, 20_000, 20_000]})
        waiting = {"busy_us": 1_000_000, "rwnd_limited_us": 900_000, "advertised_window_bytes": 900_000, "rtt_us": None}
        one = builders.repetition(cell, (30.0,), sender={**waiting, "series": series, "rtt_min_us": 8670})
        far = builders.changing(one.flows[1], sender={"rtt_min_us": 9400})
        one = replace(one, flows=(one.flows[0], far))
        info = builders.run(builders.plan([cell]))
        results = condensed_in_memory(info, [one])
        (found,) = cells_of(info, [one])
        seen = found.streams[0].evidence
        assert (results.pairs[0]["rtt_min_us"], found.streams[0].rtt_min_us, seen.rtt_min_ms) == (
            8670,
            8670,
            8.67,
        )
        assert seen.window_bytes == 20_000
        allowed_mbps = 2 * 13 * 1448 * 8 / 8670
        assert seen.window_share == pytest.approx(known(seen.goodput_mbps) / allowed_mbps)
        text = bottleneck_text(found)
        assert "advertised 19.53 KiB on each of 2 flows, 13 whole segments of 1448 bytes (18.38 KiB)" in text
        assert f"a round trip took 8.67 ms at least: window ÷ round trip = {allowed_mbps:.1f} Mbit/s" in text
        assert window_formula(found) == "2 × 19.53 KiB ÷ 8.67 ms = 36.9 Mbit/s"


class TestExclusions:
    def test_what_is_not_in_the_means_is_named_with_its_reason_and_goodput(self) -> None:
        cell = builders.cell()
        invalid = builders.repetition(cell, (500, 600), status=Status.INVALID, reason="start skew 12 ms")
        again = builders.repetition(cell, (900, 910), attempt=2)
        other = builders.failed(cell, repetition=2)
        first, second = summary(cell, invalid, again, other).exclusions
        assert (first.test, first.repetition, first.attempt, first.status) == (1, 1, 1, Status.INVALID)
        assert (first.reason, first.measured_again, first.running) == ("start skew 12 ms", True, False)
        assert list(first.goodput_mbps.values()) == pytest.approx([500, 600], rel=1e-6)
        assert (second.repetition, second.status, second.reason) == (2, Status.FAILED, "pi4: connection refused")
        assert ([*second.goodput_mbps.values()], second.measured_again) == ([None, None], False)

    def test_a_second_attempt_that_failed_too_is_not_measured_again_and_one_that_was_not_made_is_named(self) -> None:
        attempts = [builders.failed(ONE, attempt=attempt) for attempt in (1, 2)]
        found = summary(ONE, *attempts, plan={"repeat": 1}).exclusions
        # Without a number of the repetition, as there is only one.
        told = [(one.attempt, one.measured_again, one.repetition) for one in found]
        assert told == [(1, True, None), (2, False, None)]
        assert summary(ONE).exclusions == (Exclusion(1),)
        assert summary(ONE, status=RunStatus.RUNNING).exclusions == (Exclusion(1, running=True),)
