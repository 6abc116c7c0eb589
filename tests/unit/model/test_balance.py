"""The balance of octets along their way, on a rig on paper: exact without losses, and losses named where they are."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switched import STEPS, Paper

from rigctl.model.counters.balance import Framing, Reconciliation, _judge, reconcile
from rigctl.model.counters.losses import Attribution, Where, attribute
from rigctl.model.counters.points import (
    CountingPoint,
    Crossing,
    Known,
    PointKind,
    Wiring,
    acknowledgements_of,
    counts,
    data_of,
    traffic_of,
)
from rigctl.model.counters.rises import Counted
from rigctl.records import Datagrams, Direction, Flow, Pair, Port, Repetition, Side

VIRTUAL = Framing(4, virtual_switch=True)


def balance_of(
    paper: Paper, framing: Framing = VIRTUAL, **fields: Any
) -> tuple[dict[CountingPoint, Reconciliation], dict[CountingPoint, Counted], Repetition, Wiring]:
    repetition = paper.repetition(**fields)
    wiring = Wiring(paper.ports, paper.plan().trunk)
    traffic = traffic_of(repetition.flows)
    assert traffic is not None
    crossings = wiring.crossings(repetition.flows)
    counted = counts(repetition, traffic, wiring, crossings, Known())
    traffic_s = (traffic[1] - traffic[0]) / 1e9
    balance = {point: reconcile(point, crossings, counted, traffic_s, framing) for point in counted}
    return balance, counted, repetition, wiring


def attributed(paper: Paper, **fields: Any) -> list[Attribution]:
    balance, counted, repetition, wiring = balance_of(paper, **fields)
    return attribute(repetition.flows, wiring, counted, balance)


def at(balance: dict[CountingPoint, Reconciliation], kind: PointKind, owner: str) -> Reconciliation:
    found = [one for point, one in balance.items() if point.kind is kind and point.owner == owner]
    assert len(found) == 1
    return found[0]


def test_without_losses_every_place_has_what_was_sent() -> None:
    balance, *_ = balance_of(Paper())
    assert len(balance) == 4 * 2 + 4 * 2 + 2 * 2  # interfaces, ports, both ends of the trunk; in and out
    for one in balance.values():
        assert one.difference_pct == pytest.approx(0, abs=0.001)
        assert not one.flagged
        assert one.why is None


def test_the_trunk_carries_the_sum_of_all_pairs() -> None:
    paper = Paper()
    balance, *_ = balance_of(paper)
    assert at(balance, PointKind.TRUNK_OUT, "a").counted == 2 * paper.segments * (1448 + 66)


def test_a_real_switch_counts_the_frame_check_and_an_interface_does_not() -> None:
    balance, *_ = balance_of(Paper(check_bytes=4), Framing(4, virtual_switch=False))
    assert all(abs(one.difference_pct or 0) < 0.001 for one in balance.values())
    wrong, *_ = balance_of(Paper(check_bytes=4), VIRTUAL)
    assert at(wrong, PointKind.TRUNK_OUT, "a").difference_pct == pytest.approx(100 * 4 / 1514, rel=0.01)


def test_super_packets_have_one_header_each() -> None:
    """Linux counts what segmentation offload made of 44 segments as one packet."""
    paper = Paper(trunk=False)
    repetition = paper.repetition()
    merged = []
    for usage in repetition.nodes:
        nic = usage.nic
        assert nic is not None
        assert nic.tx_packets is not None
        assert nic.tx_bytes is not None
        packets = nic.tx_packets // 44
        merged.append(
            replace(
                usage, nic=replace(nic, tx_packets=packets, tx_bytes=nic.tx_bytes - 66 * (nic.tx_packets - packets))
            )
        )
    balance, *_ = balance_of(paper, nodes=tuple(merged))
    assert at(balance, PointKind.NIC_OUT, "n1").difference_pct == pytest.approx(0, abs=0.001)


def test_other_traffic_is_flagged_with_its_own_direction_only() -> None:
    paper = Paper()
    total = 2 * paper.segments * 1514
    balance, *_ = balance_of(replace(paper, foreign_octets={("up", "out"): round(0.02 * total)}))
    flagged = [point for point, one in balance.items() if one.flagged]
    assert {(point.kind, point.owner) for point in flagged} == {(PointKind.TRUNK_OUT, "a"), (PointKind.TRUNK_OUT, "b")}
    assert at(balance, PointKind.TRUNK_OUT, "a").difference_pct == pytest.approx(2.0, rel=0.01)
    assert "other traffic" in str(at(balance, PointKind.TRUNK_OUT, "a").why)


@pytest.mark.parametrize(("share", "why"), [(0.009, None), (-0.05, "less than the flows with their headers")])
def test_a_difference_above_one_percent_is_flagged(share: float, why: str | None) -> None:
    paper = Paper(poll_s=0.05)
    octets = round(share * 2 * paper.segments * 1514)
    one = at(balance_of(replace(paper, foreign_octets={("up", "out"): octets}))[0], PointKind.TRUNK_OUT, "a")
    assert (one.flagged, why is None or (one.why or "").startswith(why)) == (why is not None, True)


@pytest.mark.parametrize(
    ("difference", "flagged", "why"),
    [
        (15.1, True, "more than the flows"),
        (15, False, "it may include traffic from before"),
        (10.1, False, "it may include traffic from before"),
        (10, False, ""),
        (-10, False, ""),
        (-10.1, False, "less than was sent; some"),
        (-13, False, "less than was sent; some"),
        (-13.1, False, "the last reading may be too old"),
        (-20, False, "the last reading may be too old"),
        (-20.1, True, "less than the flows"),
    ],
)
def test_a_difference_is_explained_by_losses_and_the_age_of_the_readings(
    difference: float, flagged: bool, why: str
) -> None:
    found = _judge(difference, missing=7, extra=5, lost=3, most=10)
    assert found[0] is flagged
    assert (found[1] or "").startswith(why)
    assert (found[1] is None) == (why == "")


def test_segments_lost_before_a_place_are_no_flag_behind_it() -> None:
    paper = Paper(losses={(0, "queue"): 20_000})
    balance, *_ = balance_of(paper)
    assert not any(one.flagged for one in balance.values())
    assert "lost before this point" in str(at_port(balance, "p1").why)


def at_port(
    balance: dict[CountingPoint, Reconciliation], port: str, kind: PointKind = PointKind.PORT_IN
) -> Reconciliation:
    return next(one for point, one in balance.items() if point.ports == (port,) and point.kind is kind)


def test_a_cache_longer_than_the_cell_is_too_coarse_and_no_flag() -> None:
    balance, *_ = balance_of(Paper(duration_s=2, cache_s=15, phase_s=1))
    one = at(balance, PointKind.TRUNK_OUT, "a")
    assert one.coarse
    assert not one.flagged
    assert one.difference_pct is None


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1.0, 5.0, 15.0]), st.floats(0, 15))
def test_a_cache_alone_is_never_flagged(cache_s: float, phase_s: float) -> None:
    balance, *_ = balance_of(Paper(duration_s=60, cache_s=cache_s, phase_s=phase_s))
    assert not any(one.flagged for one in balance.values())


def test_unknown_retransmits_leave_the_expectation_unknown() -> None:
    paper = Paper()
    flows = [
        replace(flow, sender=builders.counting(flow.sender, retransmitted_bytes=None, retransmits=None))
        for flow in paper.flows()
        if flow.sender is not None
    ]
    balance, *_ = balance_of(paper, flows=tuple(flows))
    one = at(balance, PointKind.TRUNK_OUT, "a")
    assert (one.expected, one.difference_pct, one.flagged) == (None, None, False)


def test_a_node_without_a_port_leaves_the_trunk_out() -> None:
    paper = Paper()
    ports = tuple(port for port in paper.ports if port.node != "n4")
    points = Wiring(ports, paper.plan().trunk).crossings(paper.flows())
    assert not any(point.kind in (PointKind.TRUNK_OUT, PointKind.TRUNK_IN) for point in points)
    assert any(point.kind is PointKind.PORT_IN for point in points)


def test_several_trunk_ports_are_one_place() -> None:
    paper = Paper()
    ports = (*paper.ports, Port("a", "up2", peer="b"))
    point = Wiring(ports, paper.plan().trunk).path("n1", "n3")[2]
    assert (point.kind, point.ports) == (PointKind.TRUNK_OUT, ("up", "up2"))


# Where segments are lost.

EXPECTED = {
    "queue": (Where.QUEUE, "the queue of n1"),
    "cable in": (Where.CABLE, "the cable from n1's interface to a p1"),
    "switch in": (Where.SWITCH, "switch a, port up"),
    "trunk": (Where.CABLE, "the cable from a up to b up"),
    "switch out": (Where.SWITCH, "switch b, port p3"),
    "cable out": (Where.RECEIVER, "the cable from b p3 to n3's interface, or that interface"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("lost", [5, 300, 20_000])
def test_losses_are_attributed_to_their_place_and_no_other(step: str, lost: int) -> None:
    found = attributed(Paper(losses={(0, step): lost}))
    assert [(one.where, one.name) for one in found] == [EXPECTED[step]]
    assert found[0].segments_about == pytest.approx(lost, rel=0.02, abs=1)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STEPS), st.sampled_from(STEPS), st.integers(100, 5000), st.integers(100, 5000))
def test_losses_of_two_pairs_at_two_places_are_both_found(one: str, other: str, some: int, more: int) -> None:
    if max(some, more) > 2 * min(some, more):
        some, more = 100, 150
    found = attributed(Paper(losses={(0, one): some, (1, other): more}))
    assert sum(item.segments_about for item in found) == pytest.approx(some + more, rel=0.05)
    wanted = {EXPECTED[one][0], EXPECTED[other][0]}
    assert {item.where for item in found} == wanted


def test_each_of_many_pairs_has_its_own_port() -> None:
    pairs = tuple(Pair(f"n{at}", f"n{at + 12}") for at in range(1, 13))
    found = attributed(Paper(pairs, mbps=600, losses={(at, "switch out"): 100 + at for at in range(12)}))
    assert [one.name for one in found] == [f"switch b, port p{at}" for at in range(13, 25)]
    assert [one.segments_about for one in found] == [pytest.approx(100 + at, abs=1) for at in range(12)]


def test_discards_that_a_port_counted_are_evidence_beside_the_hole() -> None:
    found = attributed(Paper(losses={(0, "switch out"): 300}, discards={("p3", "out"): 290}))
    assert found[0].evidence.endswith("b p3 counted 290 drops")


BETWEEN = "between n1's interface and n3's interface"


@pytest.mark.parametrize(
    ("paper", "fields", "found"),
    [
        (Paper(nics=False, losses={(0, "switch out"): 300}), {}, [(*EXPECTED["switch out"], 300)]),
        (Paper(nics=False, losses={(0, "queue"): 300}), {}, [(Where.BETWEEN, "before a p1", 300)]),
        (Paper(losses={(0, "switch out"): 300}), {"counters": ()}, [(Where.BETWEEN, BETWEEN, 300)]),
        (
            Paper(nics=False, losses={(0, "switch out"): 300}),
            {"counters": ()},
            [(Where.UNATTRIBUTED, "unattributed", 300)],
        ),
        (
            Paper(needless=300, nic_drops={"n3": {"rx_dropped": 300}, "n4": {"rx_dropped": 300}}),
            {},
            [(Where.RECEIVER, "n3's interface", 300), (Where.RECEIVER, "n4's interface", 300)],
        ),
        (Paper(needless=300), {}, [(Where.NOWHERE, "nowhere on the path", 600)]),
        (
            Paper(needless=200, losses={(0, "switch out"): 300, (1, "switch out"): 300}),
            {},
            [
                (Where.SWITCH, "switch b, port p3", 300),
                (Where.SWITCH, "switch b, port p4", 300),
                (Where.NOWHERE, "nowhere on the path", 400),
            ],
        ),
        (Paper(), {}, []),
        # More octets than the flows' at the port in: whether the 300 were lost before it can't be seen.
        (
            Paper(losses={(0, "queue"): 300}, nics=False, foreign_octets={("p1", "in"): 600 * 1448}),
            {},
            [(Where.UNATTRIBUTED, "unattributed", 300)],
        ),
        # TCP would have retransmitted as much as this hole.
        (
            Paper(losses={(0, "switch out"): 5}, foreign_octets={("p3", "out"): -5_000_000}),
            {},
            [(Where.UNATTRIBUTED, "unattributed", 5)],
        ),
    ],
)
def test_a_loss_is_named_as_far_as_the_counters_show_it(
    paper: Paper, fields: dict[str, Any], found: list[tuple[Where, str, int]]
) -> None:
    assert [(one.where, one.name) for one in attributed(paper, **fields)] == [(where, name) for where, name, _ in found]
    segments = [one.segments_about for one in attributed(paper, **fields)]
    assert segments == [pytest.approx(number, abs=6) for _, _, number in found]


def test_many_places_are_counted_not_listed() -> None:
    pairs = tuple(Pair(f"n{at}", f"n{at + 12}") for at in range(1, 13))
    paper = Paper(pairs, mbps=600, losses={(0, "cable in"): 300})
    trunk = tuple(one for one in paper.repetition().counters if one.port == "up")
    assert trunk
    (found,) = attributed(paper, counters=trunk)
    assert (found.where, found.name) == (Where.BETWEEN, "between 12 interfaces and a up")


def test_a_queue_that_counts_drops_is_named_where_no_balance_is_known() -> None:
    paper = Paper(losses={(0, "queue"): 300})
    nodes = tuple(
        replace(usage, nic=replace(usage.nic, tx_bytes=None, queue_drops=280 if usage.node == "n1" else 0))
        for usage in paper.usages()
        if usage.nic is not None
    )
    found = attributed(paper, nodes=nodes, counters=())
    assert (found[0].where, found[0].segments_about) == (Where.QUEUE, 280)


def test_other_traffic_at_one_port_leaves_the_losses_at_others_known() -> None:
    pairs = tuple(Pair(f"n{at}", f"n{at + 12}") for at in range(1, 13))
    losses = {(at, "switch out"): 100 for at in range(12)}
    found = attributed(Paper(pairs, mbps=600, losses=losses, foreign_octets={("p14", "out"): 20_000_000}))
    assert [one.name for one in found[:11]] == [f"switch b, port p{at}" for at in range(13, 25) if at != 14]
    assert [(one.where, one.segments_about) for one in found[11:]] in ([], [(Where.UNATTRIBUTED, 100)])


def test_flows_that_were_not_reported_attribute_nothing() -> None:
    paper = Paper(losses={(0, "switch out"): 5})
    flows: tuple[Flow, ...] = (replace(paper.flows()[0], sender=None), paper.flows()[1])
    wiring = Wiring(paper.ports, None)
    assert attribute(flows, wiring, {}, {}) == []


def test_datagrams_have_the_headers_of_udp_and_nothing_is_sent_again() -> None:
    counts = Datagrams(100), Datagrams(97)
    sender, receiver = (Side(one.count * 1000, 1, 2, datagrams=one) for one in counts)
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, sender, receiver)
    crossing = data_of([flow])
    assert crossing == Crossing(100_000, 3000, 100, udp=True)
    point = CountingPoint(PointKind.NIC_OUT, "a")
    assert Framing().header_bytes(point, crossing) == 14 + 20 + 8
    assert acknowledgements_of([flow]).payload == 0
    assert data_of([replace(flow, sender=None)]).payload is None
