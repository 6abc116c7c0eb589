"""What messages of one size took: the numbers of a lab's page from the records of a run."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from builders import bucket_of
from message_runs import BLAST, PAIR, PING, measured, results

from rigctl.analysis.views.messages import MessageResult, message_results
from rigctl.figures import messages
from rigctl.figures.effective import CONGESTION_IN_USE, MSS_EFFECTIVE, NODELAY_IN_USE
from rigctl.records import (
    Datagrams,
    DiskTimes,
    Link,
    Pair,
    Repetition,
    RoundTrips,
    RunInfo,
    RunStatus,
    Side,
    Status,
    Trunk,
)
from rigctl.results.summary import Exclusion

BACK = Pair("cork", "dublin")
ROWS = [(1024, 100, (1.0, 1.5))]


def only(info: RunInfo, repetitions: list[Repetition]) -> MessageResult:
    (result,) = message_results(info, repetitions)
    return result


def one(*changes: dict[str, Any], test: str = "pingpong", **cell: Any) -> MessageResult:
    """The result of one repetition of 100 messages of 1024 bytes in 1 s, with one flow for each of `changes`."""
    info, (repetition,) = measured(test, [(1024, 100, (1.0,))])
    info = replace(info, plan=replace(info.plan, cells=(builders.asking(info.plan.cells[0], **cell),)))
    (flow,) = repetition.flows
    flows = (builders.changing(flow, sender=own, number=at) for at, own in enumerate(changes or ({},), 1))
    return only(info, [replace(repetition, flows=tuple(flows))])


class TestTimes:
    def test_the_ping_pong_of_the_page(self) -> None:
        first, second = results("pingpong", PING)
        assert (first.size, first.elapsed_s, first.messages) == (1, (14.19, 14.18, 14.12, 14.23, 14.14), (100_000,) * 5)
        assert (first[messages.ROUND_TRIP_MIN], first[messages.ROUND_TRIP_MAX], second.size) == (141.2, 142.3, 2048)
        assert [first.mean_s, first.variation_s, first[messages.ROUND_TRIP]] == pytest.approx([14.172, 0.0336, 141.72])
        percentiles = [second[messages.ROUND_TRIP_P50], second[messages.ROUND_TRIP_P99]]
        assert percentiles == pytest.approx([10_020, 11_570], rel=0.05)

    def test_the_blast_of_the_page(self) -> None:
        first, second = results("blast", BLAST)
        rates = [first.bytes_per_s, second.bytes_per_s, second.ceiling_bps]
        assert rates == pytest.approx([5e6 / 8.46, 98304 * 5e5 / sum(BLAST[1][2]), 1e8 * 1448 / 1538])
        assert second.efficiency == pytest.approx(0.9995, abs=1e-3)
        assert not second.above_ceiling
        assert {first[figure] for figure in messages.ROUND_TRIPS} == {None}

    def test_a_single_repetition_has_no_variation_and_times_that_the_sender_did_not_report_no_rate(self) -> None:
        assert (one().mean_s, one().variation_s) == (1.0, None)
        found = one({"first_byte_ns": None, "round_trips": RoundTrips(0)})
        assert (found.elapsed_s, found.mean_s) == ((), None)
        assert (found.bytes_per_s, found.efficiency, found[messages.ROUND_TRIP]) == (None, None, None)

    def test_flows_of_a_pair_add_their_messages_and_the_slowest_gives_the_time(self) -> None:
        end_ns = 10**12 + 3 * 10**9
        slow = {"last_byte_ns": end_ns, "round_trips": RoundTrips(100, 3 * 10**9, 20_000, 50_000_000)}
        found = one({}, slow)
        assert (found.messages, found.elapsed_s) == ((200,), (3.0,))
        assert found.bytes_per_s == pytest.approx(200 * 1024 / 3)
        assert found[messages.ROUND_TRIP] == 4 * 10**6 / 200
        assert (found[messages.ROUND_TRIP_MIN], found[messages.ROUND_TRIP_MAX]) == (20.0, 50_000.0)
        assert sum(count for _, count in found.round_trips) == 200

    def test_percentiles_are_those_of_all_flows_and_repetitions(self) -> None:
        fast = {"histogram": ((bucket_of(1_000_000), 90),), "round_trips": RoundTrips(90, 90, 999_000, 1_001_000)}
        slow = {"histogram": ((bucket_of(8_000_000), 10),), "round_trips": RoundTrips(10, 80, 7_999_000, 8_001_000)}
        found = one(fast, slow)
        assert [found[messages.ROUND_TRIP_P50], found[messages.ROUND_TRIP_P99]] == pytest.approx([1000, 8000], rel=0.05)

    def test_above_the_ceiling_by_more_than_measuring_explains_is_flagged(self) -> None:
        rate = 1e8 * 1448 / 1538 / 8
        for share, flagged in ((1.005, False), (1.02, True)):
            (found,) = results("blast", [(1024, 1000, (1024 * 1000 / (rate * share),))])
            assert found.efficiency == pytest.approx(share, rel=1e-6)
            assert found.above_ceiling is flagged


class TestCeiling:
    def test_messages_that_nothing_may_gather_have_a_frame_each_and_others_full_segments(self) -> None:
        # 1024 bytes, 32 of TCP with timestamps, 20 of IP, 38 around the packet.
        for timestamps, frame in ((True, 1114), (None, 1114), (False, 1102)):
            found = one({"timestamps": timestamps}, test="blast", nodelay=True)
            assert found.ceiling_bps == pytest.approx(1e8 * 1024 / frame)
        assert one({"mss": 1025}, nodelay=True).ceiling_bps == pytest.approx(1e8 * 1024 / 1114)
        assert one({"mss": 1024}, nodelay=True).ceiling_bps == one({"mss": 1024}).ceiling_bps
        assert one({"mss": None}, {}).ceiling_bps == pytest.approx(1e8 * 1448 / 1538)
        assert one({"mss": None}).ceiling_bps is None

    def test_the_slower_link_rules_and_an_unknown_one_leaves_it_unknown(self) -> None:
        info, repetitions = measured("blast", [(1024, 100, (1.0,))])
        alone = builders.asking(info.plan.cells[0], nodelay=True)
        for cork_bps, cells, ceiling in (
            (10**7, (alone,), pytest.approx(1e7 * 1024 / 1114)),
            (None, (alone,), None),
            (None, info.plan.cells, None),
        ):
            links = info.plan.links | {"cork": Link(cork_bps, 1500)}
            plan = replace(info.plan, cells=cells, links=links)
            assert only(replace(info, plan=plan), repetitions).ceiling_bps == ceiling
        switches = {"dublin": Link(10**8, 1500, "a"), "cork": Link(10**8, 1500, "b")}
        plan = replace(info.plan, cells=(alone,), links=switches, trunk=Trunk(("a", "b"), 10**6))
        assert only(replace(info, plan=plan), repetitions).ceiling_bps == pytest.approx(1e6 * 1024 / 1114)


class TestWhich:
    def test_each_pair_and_direction_has_its_own_result_in_the_scenario_s_order(self) -> None:
        info, repetitions = measured("pingpong", [(1024, 100, (1.0,)), (2048, 100, (2.0,))])
        cells = tuple(replace(cell, pairs=(PAIR, BACK)) for cell in info.plan.cells)
        late = {"last_byte_ns": 10**12 + 5 * 10**9}
        back = [builders.changing(one.flows[0], sender=late, pair=BACK) for one in repetitions]
        both = [replace(one, flows=(*one.flows, flow)) for one, flow in zip(repetitions, back, strict=True)]
        found = message_results(replace(info, plan=replace(info.plan, cells=cells)), both)
        assert [(result.cell.number, str(result.stream), result.elapsed_s) for result in found] == [
            (1, "dublin → cork", (1.0,)), (1, "cork → dublin", (5.0,)),
            (2, "dublin → cork", (2.0,)), (2, "cork → dublin", (5.0,)),
        ]  # fmt: skip

    def test_what_does_not_count_is_in_no_number_and_named_and_what_was_not_reported_neither(self) -> None:
        info, (first, second) = measured("pingpong", ROWS)
        failed = replace(second, status=Status.FAILED, reason="cork: gone", attempt=2)
        silent = replace(second, flows=tuple(replace(flow, sender=None) for flow in second.flows))
        for other, named in ((failed, (Exclusion(1, 2, 2, Status.FAILED, "cork: gone"),)), (silent, ())):
            found = only(info, [first, other])
            assert (found.elapsed_s, found.messages, found.exclusions) == ((1.0,), (100,), named)
        single = replace(info, plan=replace(info.plan, repeat=1))
        assert only(single, [failed]).exclusions == (Exclusion(1, None, 2, Status.FAILED, "cork: gone"),)

    def test_what_was_not_measured_yet_is_told_from_what_never_will_be(self) -> None:
        info, _ = measured("pingpong", ROWS)
        assert only(info, []).exclusions == (Exclusion(1),)
        assert only(replace(info, status=RunStatus.RUNNING), []).exclusions == (Exclusion(1, running=True),)
        assert (only(info, []).mean_s, only(info, []).bytes_per_s, only(info, []).ceiling_bps) == (None, None, None)


class TestOthers:
    def test_what_the_flows_report_together_and_what_they_do_not_agree_on_or_do_not_report(self) -> None:
        first = {"mss": 1448, "retransmits": 2, "nodelay": True, "congestion": "cubic"}
        found = one(first, {"mss": 1400, "retransmits": 3, "nodelay": True, "congestion": "bbr"})
        assert (found[MSS_EFFECTIVE], found.retransmits) == (1400, 5)
        assert (found[NODELAY_IN_USE], found[CONGESTION_IN_USE]) == (True, "bbr, cubic")
        found = one({"retransmits": 2, "nodelay": True}, {"retransmits": None, "nodelay": False})
        assert (found.retransmits, found[NODELAY_IN_USE], found[CONGESTION_IN_USE]) == (None, None, None)

    def test_datagrams_that_did_not_come_back_are_those_sent_less_the_round_trips(self) -> None:
        found = one({"datagrams": Datagrams(103)}, {"datagrams": Datagrams(101)})
        assert found.unanswered == 4
        assert one({"datagrams": Datagrams(103)}, {"datagrams": None}).unanswered is None
        assert one({"datagrams": Datagrams(103), "round_trips": None}).unanswered is None

    def test_of_a_file_the_shares_of_its_disks(self) -> None:
        info, (repetition,) = measured("file", [(10**6, 1, (2.0,))])
        (flow,) = repetition.flows
        receiver = Side(10**6, 1, 2, disk=DiskTimes(disk_us=1_500_000, sync_us=250_000))
        both = replace(builders.changing(flow, sender={"disk": DiskTimes(disk_us=500_000)}), receiver=receiver)
        found = only(info, [replace(repetition, flows=(both,))])
        assert (found[messages.READ_SHARE], found[messages.WRITE_SHARE], found[messages.SYNC]) == (0.25, 0.75, 0.25)
