"""The balance of octets: of each repetition, of the whole run, and what of it tables and findings show."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import builders
import documents
import pytest
from known import known
from switched import SECOND, Paper, several

from rigctl.analysis.run_view import RunView
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.records import Capture, Direction, Pair, PortSeries, Repetition, RunInfo
from rigctl.report.blocks import Folded, Part, Table
from rigctl.report.sections.counters import part
from rigctl.results.counters import Balance, Balances, PortRate, port_octets, port_rates, trunk_total
from rigctl.settings import Subflows

FRAME, ACK = 1448 + 66, 66


def balance(paper: Paper, **fields: Any) -> Balance:
    (found,) = Balances(paper.run(), [paper.repetition(**fields)]).each
    return found


def point(found: Balances, kind: PointKind, owner: str, *ports: str) -> tuple[int | None, int | None, float | None]:
    """Over the whole run: octets expected, octets counted, difference."""
    reconciled, counted = found.whole()[CountingPoint(kind, owner, ports)]
    assert counted.octets == reconciled.counted
    return reconciled.expected, reconciled.counted, reconciled.difference_pct


def altered(repetition: Repetition, change: Callable[[PortSeries], PortSeries | None]) -> Repetition:
    series = tuple(made for port in repetition.counters if (made := change(port)) is not None)
    return replace(repetition, counters=series)


def without(repetition: Repetition, *ports: str) -> Repetition:
    return altered(repetition, lambda series: None if f"{series.switch} {series.port}" in ports else series)


DATA = 2 * Paper().segments * FRAME
LOST, P2 = {(1, "cable in"): 100}, {("p2", "in"): 500_000_000}
COARSE = {"coarse": True, "difference_pct": None, "flagged": False}
MORE = "more octets than the flows and their headers; other traffic passed here, or a counter is wrong"
EXACT = {"expected": pytest.approx(DATA, rel=1e-5), "difference_pct": pytest.approx(0, abs=0.001)}
FOREIGN = {("up", "out"): 50_000_000}
ABOVE = {"difference_pct": pytest.approx(100 * 50_000_000 / DATA, abs=0.001), "flagged": True, "why": MORE}


class TestTotal:
    @pytest.mark.parametrize(
        ("paper", "unread", "where", "total"),
        [
            # Without losses counters and flows agree.
            (Paper(), (), "trunk", EXACT | {"counted": DATA, "flagged": False, "coarse": False, "why": None}),
            # Without the trunk's first end it is what arrives over it, …
            (Paper(foreign_octets={("up", "in"): 50_000_000}), ("a up",), "trunk", {"counted": DATA + 50_000_000}),
            # … without a trunk the sum of the senders' ports, and without one of those of the receivers' ports.
            (Paper(trunk=False, losses=LOST), (), "ports", {"counted": DATA, "retransmitted": 100 * 1448}),
            (Paper(trunk=False, foreign_octets={("p3", "out"): 1000}), ("a p2",), "ports", {"counted": DATA + 1000}),
            # Other traffic is a difference in per cent of what was sent, and flagged: at one port that of the sum.
            (Paper(foreign_octets=FOREIGN), (), "trunk", ABOVE),
            (Paper(trunk=False, foreign_octets=P2), (), "ports", {"flagged": True, "why": MORE}),
            (Paper(duration_s=2, cache_s=15, phase_s=14), (), "trunk", COARSE),
        ],
    )
    def test_it_is_of_the_ports_that_carry_all_data(self, paper: Paper, unread: Any, where: str, total: Any) -> None:
        found = balance(paper, counters=without(paper.repetition(), *unread).counters)
        wanted = {"retransmitted": 0} | total
        assert found.where == where
        assert {name: getattr(found.total, name) for name in wanted} == wanted

    def test_a_part_of_the_ports_is_no_total_and_without_retransmits_the_expected_is_unknown(self) -> None:
        paper = Paper(trunk=False)
        assert balance(paper, counters=without(paper.repetition(), "a p2", "a p3").counters).total is None
        assert balance(paper, counters=()).total is None
        first, second = Paper().flows()
        unknown = {"retransmits": None, "retransmitted_bytes": None}
        flows = (first, builders.changing(second, sender=unknown, retransmits=None))
        total = known(balance(Paper(), flows=flows).total)
        assert (total.expected, total.difference_pct, total.counted) == (None, None, DATA)


class TestEach:
    def test_they_are_in_the_order_of_time_and_found_by_their_repetition_but_one_without_flows_has_none(self) -> None:
        info, measured = several(3, Paper())
        failed = builders.failed(info.plan.cells[0], repetition=2)
        found = Balances(info, [failed, *reversed([replace(one, started_at=at) for at, one in enumerate(measured)])])
        assert [each.repetition.cell for each in found.each] == [1, 2, 3]
        assert found.each[0].traffic_s == 10.0
        assert [known(found.of(repetition)).repetition.cell for repetition in measured] == [1, 2, 3]
        assert found.of(failed) is None

    def test_attempts_of_one_repetition_have_their_own(self) -> None:
        first, second = several(2, Paper())[1]
        attempts = [first, replace(second, cell=1, attempt=2)]
        found = Balances(Paper().run(), attempts)
        assert [known(found.of(one)).repetition.attempt for one in attempts] == [1, 2]


class TestColumns:
    def test_a_cell_shows_what_the_trunk_carried_and_without_one_the_difference_only(self) -> None:
        for port, trunk in ((("up", "out"), True), (("p1", "in"), False)):
            found = balance(Paper(trunk=trunk, foreign_octets={port: 50_000_000}))
            total = known(found.total)
            assert trunk_total(found) == {
                "trunk_octets": total.counted if trunk else None,
                "trunk_expected_octets": total.expected if trunk else None,
                "counters_difference_pct": total.difference_pct,
            }
            assert total.difference_pct == pytest.approx(2.2, abs=0.1)
        assert set(trunk_total(None).values()) == {None}
        assert port_octets(None, "n1", "n3") == {"source_port_octets": None, "destination_port_octets": None}

    def test_a_pair_shows_the_ports_of_its_ends_and_what_was_lost_is_attributed(self) -> None:
        paper = Paper(losses={(0, "switch out"): 300})
        found, data, back = balance(paper), paper.segments * FRAME, paper.segments // 2 * ACK
        for ends, octets in ((("n1", "n3"), (data + 300 * FRAME, data)), (("n3", "n1"), (back, back))):
            assert tuple(port_octets(found, *ends).values()) == octets
        (lost,) = found.lost
        assert lost.segments_about == pytest.approx(300, abs=3)
        assert "p3" in lost.name


def up_emptied(port: PortSeries) -> PortSeries:
    return replace(port, columns={name: [] for name in port.columns}) if port.port == "up" else port


class TestWhole:
    def test_a_port_and_an_interface_sum_the_repetitions_that_follow_each_other(self) -> None:
        paper = Paper(nic_drops={"n1": {"tx_dropped": 5, "queue_drops": 2}})
        found = Balances(*several(3, paper))
        expected, counted, difference = point(found, PointKind.TRUNK_OUT, "a", "up")
        assert counted == pytest.approx(3 * 2 * paper.segments * FRAME, abs=10)
        assert expected == pytest.approx(counted, rel=1e-5)
        assert difference == pytest.approx(0, abs=0.001)
        _, acks, _ = point(found, PointKind.TRUNK_IN, "a", "up")
        assert acks == pytest.approx(3 * 2 * (paper.segments // 2) * ACK, abs=10)
        sent, own = found.whole()[CountingPoint(PointKind.NIC_OUT, "n1")]
        assert (sent.counted, own.packets) == (3 * paper.segments * FRAME, 3 * paper.segments)
        assert (own.drops, own.damaged) == (21, 0)

    def test_a_repetition_without_a_port_or_its_readings_is_left_out(self) -> None:
        paper = Paper()
        info, (first, second, third) = several(3, paper)
        for silent in (without(second, "a up"), altered(second, up_emptied)):
            found = Balances(info, [first, silent, third])
            expected, counted, _ = point(found, PointKind.TRUNK_OUT, "a", "up")
            assert counted == pytest.approx(2 * 2 * paper.segments * FRAME, abs=10)
            assert expected == pytest.approx(counted, rel=1e-5)
            _, other, _ = point(found, PointKind.PORT_OUT, "b", "p3")
            assert other == pytest.approx(3 * paper.segments * FRAME, abs=10)

    def test_what_passed_between_two_sittings_of_a_run_does_not_count(self) -> None:
        paper = Paper(discards={("up", "out"): 7})
        info, (first, second) = several(2, paper, gap_s=600)

        def shifted(port: PortSeries) -> PortSeries:
            counted = {name: [value + 10**9 for value in port.columns[name]] for name in ("in_octets", "out_octets")}
            return replace(port, columns=port.columns | counted)

        found = Balances(info, [first, altered(second, shifted)]).whole()
        total, counted = found[CountingPoint(PointKind.TRUNK_OUT, "a", ("up",))]
        assert counted.octets == pytest.approx(2 * 2 * paper.segments * FRAME, abs=10)
        assert total.difference_pct == pytest.approx(0, abs=0.001)
        assert (counted.drops, counted.damaged) == (14, 0)
        assert counted.packets == pytest.approx(2 * 2 * paper.segments, abs=4)

    def test_a_point_that_was_never_read_is_not_there_and_none_is_without_flows(self) -> None:
        paper = Paper(nics=False)
        found = Balances(paper.run(), [without(paper.repetition(), "a up")]).whole()
        kinds = {point.kind for point in found if point.owner in ("a", "n1")}
        assert kinds == {PointKind.PORT_IN, PointKind.PORT_OUT}
        assert Balances(paper.run(), [builders.failed(paper.cell)]).whole() == {}


def test_data_that_may_have_gone_over_other_links_are_in_no_balance() -> None:
    info, measured = several(3, Paper())
    told = {"mptcp": Subflows([("10.0.0.1", "10.0.0.2", 9, 0)])}
    multipath = builders.changing_flows(measured[1], receiver=told)
    found = Balances(info, [measured[0], multipath, measured[2]])
    assert [found.of(each) is None for each in measured] == [False, True, False]
    assert found.whole() == {}


def test_how_often_a_switch_refreshes_is_seen_over_the_whole_run() -> None:
    """Most tests of 2 s alone show no refresh; the run shows that they are 15 s apart."""
    info, measured = several(12, Paper(duration_s=2))
    whole: dict[tuple[str, str], dict[str, list[int]]] = {}
    for port in (port for repetition in measured for port in repetition.counters):
        for name, values in port.columns.items():
            whole.setdefault((port.switch, port.port), {}).setdefault(name, []).extend(values)

    def cached(port: PortSeries) -> PortSeries:
        times, read = port.columns["t_ns"], whole[port.switch, port.port]
        shown = [max(0, bisect_right(read["t_ns"], t_ns - t_ns % (15 * SECOND)) - 1) for t_ns in times]
        columns = {name: [values[at] for at in shown] for name, values in read.items()}
        return replace(port, columns=columns | {"t_ns": times})

    found = Balances(info, [altered(repetition, cached) for repetition in measured])
    _, counted = found.whole()[CountingPoint(PointKind.TRUNK_OUT, "a", ("up",))]
    assert counted.refresh_s == pytest.approx(15, abs=5)
    assert [known(each.total).coarse for each in found.each] == [True] * 12


def rates(most: int = 180, **fields: Any) -> list[PortRate]:
    return port_rates(Paper().plan(), Paper().repetition(**fields), most)


def test_the_chart_has_the_trunks_rate_within_the_measurement_interval_in_means_of_many_readings() -> None:
    (every,), (few,) = rates(), rates(3)
    assert every.name == "trunk, a up out"
    inside = [mbps for t_s, mbps in zip(every.t_s, every.mbps, strict=True) if 1 < t_s < 9]
    assert inside == [pytest.approx(1882, rel=0.01)] * len(inside)
    assert len(inside) >= 7
    assert len(few.t_s) == 3 < len(every.t_s)
    assert every.t_s == pytest.approx([at + 1.3 for at in range(len(every.t_s))], abs=0.05)
    assert few.t_s[-1] < every.t_s[-1] < 10
    assert sum(few.mbps[:-1]) / (len(few.mbps) - 1) == pytest.approx(1882, rel=0.01)
    (half,) = rates(window_start_ns=builders.BEGIN_NS + 5 * SECOND)
    assert len(half.t_s) < len(every.t_s) - 3
    assert min(half.t_s) >= 0


def test_a_trunk_of_which_one_port_was_not_read_gives_way_to_the_senders_ports_and_those_to_no_line() -> None:
    (line,) = rates(counters=tuple(series for series in Paper().counters() if series.port != "up"))
    assert line.name == "switch ports, sum"
    assert max(line.mbps) == pytest.approx(1882, rel=0.01)
    assert rates(counters=()) == rates(window_start_ns=None) == []


def part_of(info: RunInfo, repetitions: Sequence[Repetition]) -> Part:
    return known(part(RunView.in_memory(info, repetitions)))


def made(paper: Paper) -> Part:
    return part_of(paper.run(), [paper.repetition()])


def codes(found: Part) -> list[str]:
    return [finding.code for finding in found.findings]


def test_traffic_at_one_port_only_is_not_taken_for_the_trunks() -> None:
    found = made(Paper(foreign_octets={("p3", "out"): 50_000_000}))
    assert "ports-differ" in codes(found)
    folded = [block for block in found.details[0].blocks if isinstance(block, Folded)]
    (table,) = next(block.blocks for block in folded if block.summary.startswith("Test by test"))
    assert isinstance(table, Table)
    assert not documents.rows_of(table)[0]["Difference"].endswith("!")


def test_of_a_few_retransmits_nothing_is_said() -> None:
    assert "loss-place" not in codes(made(Paper(losses={(0, "switch out"): 1})))


@pytest.mark.parametrize(("errors", "said"), [(17, ["17 frames with errors arrived at a p1 from n1."]), (4, [])])
def test_frames_that_came_with_errors_are_told_with_their_cable(errors: int, said: list[str]) -> None:
    def damaged(series: PortSeries) -> PortSeries:
        count = errors if series.port == "p1" else 0
        readings = len(series.columns["t_ns"])
        return replace(series, columns={**series.columns, "in_errors": [100, *[100 + count] * (readings - 1)]})

    found = part_of(Paper().run(), [altered(Paper().repetition(), damaged)]).findings
    assert [finding.text for finding in found if finding.code == "frames-damaged"] == said


def test_a_resumed_run_does_not_count_what_passed_meanwhile() -> None:
    """Ten minutes between two cells, with other traffic on the trunk: not the run's."""
    info, repetitions = several(2, Paper(), gap_s=600)

    def busier(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        return {name: [value + 10**9 * name.endswith("octets") for value in row] for name, row in columns.items()}

    later = tuple(replace(one, columns=busier(one.columns)) for one in repetitions[1].counters)
    found = part_of(info, [repetitions[0], replace(repetitions[1], counters=later)])
    assert codes(found) == ["counters"]


def test_a_full_file_is_not_compared() -> None:
    pair = Pair("pi1", "pi2")
    cell = builders.cell(pairs=(pair,), duration_s=1.0)
    full = Capture("pi1", pair, Direction.FORWARD, "r-pi1.pcap", 900, 0, True, None, 3)
    said = documents.codes(builders.run(builders.plan((cell,))), [builders.repetition(cell, [900.0], captures=(full,))])
    assert [code for code in said if code.startswith("captures")] == ["captures-full"]
