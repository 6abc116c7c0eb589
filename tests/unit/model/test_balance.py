"""The balance of octets on a rig on paper: exact without losses; losses and other traffic are named where they are."""

from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from switched import BEGIN_NS, SECOND, STEPS, Paper

from rigctl.model.counters import points
from rigctl.model.counters.balance import (
    Framing,
    Reconciliation,
    _judge,
    other_traffic,
    reconcile,
    sort_points,
    sum_balances,
)
from rigctl.model.counters.losses import Attribution, Where, _names, _place, attribute
from rigctl.model.counters.points import CountingPoint, Crossing, PathKnowledge, PointKind, Wiring
from rigctl.model.counters.rises import PortCount
from rigctl.records import Datagrams, Direction, Flow, NodeUsage, Pair, PortSeries, Probes, Series, Side, TcpInfo

Fields: TypeAlias = dict[str, Any]

VIRTUAL = Framing(4, virtual_switch=True)


def balance_of(paper: Paper, **fields: Any) -> tuple[dict[CountingPoint, Reconciliation], list[Attribution]]:
    """Return the balance of each counting point, and where segments were lost."""
    repetition = paper.repetition(**fields)
    wiring = Wiring(paper.ports, paper.plan().trunk)
    start_ns, end_ns = traffic = known(points.traffic_of(repetition.flows))
    crossings = wiring.crossings(repetition.flows)
    counted = points.counts(repetition, traffic, wiring, crossings, PathKnowledge())
    balance = {point: reconcile(point, crossings, counted, (end_ns - start_ns) / 1e9, VIRTUAL) for point in counted}
    return balance, attribute(repetition.flows, wiring, counted, balance)


def attributed(paper: Paper, **fields: Any) -> list[Attribution]:
    return balance_of(paper, **fields)[1]


def test_without_losses_every_place_has_what_was_sent() -> None:
    balance, _ = balance_of(Paper())
    assert len(balance) == 4 * 2 + 4 * 2 + 2 * 2  # interfaces, ports, both ends of the trunk; in and out
    exact: Any = (pytest.approx(0, abs=0.001), False, None)
    assert [(one.difference_pct, one.flagged, one.why) for one in balance.values()] == [exact] * len(balance)


def test_other_traffic_is_flagged_with_its_own_direction_only() -> None:
    paper = Paper()
    balance, _ = balance_of(replace(paper, foreign_octets={("up", "out"): round(0.02 * 2 * paper.segments * 1514)}))
    flagged = {(point.kind, point.owner): one for point, one in balance.items() if one.flagged}
    assert set(flagged) == {(PointKind.TRUNK_OUT, "a"), (PointKind.TRUNK_OUT, "b")}
    assert flagged[PointKind.TRUNK_OUT, "a"].difference_pct == pytest.approx(2.0, rel=0.01)
    assert "other traffic" in str(flagged[PointKind.TRUNK_OUT, "a"].why)


@pytest.mark.parametrize(
    ("difference", "flagged", "why"),
    [
        (15.1, True, "more octets than the flows"),
        (15, False, "the counters may include traffic from before"),
        (10.1, False, "the counters may include traffic from before"),
        (10, False, ""),
        (-10, False, ""),
        (-10.1, False, "less than was sent; some of it was lost before this point"),
        (-13, False, "less than was sent; some of it was lost before this point"),
        (-13.1, False, "the last reading may be too old"),
        (-20, False, "the last reading may be too old"),
        (-20.1, True, "fewer octets than the flows"),
    ],
)
def test_a_difference_is_explained_by_losses_and_old_readings(difference: float, flagged: bool, why: str) -> None:
    found = _judge(difference, missing=7, extra=5, lost=3, most=10)
    assert found[0] is flagged
    assert (found[1] or "").startswith(why)
    assert (found[1] is None) == (why == "")


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1.0, 5.0, 15.0]), st.floats(0, 15))
def test_a_cache_alone_is_never_flagged(cache_s: float, phase_s: float) -> None:
    balance, _ = balance_of(Paper(duration_s=60, cache_s=cache_s, phase_s=phase_s))
    assert not any(one.flagged for one in balance.values())


def test_a_node_without_a_port_leaves_the_trunk_out() -> None:
    paper = Paper()
    ports = tuple(port for port in paper.ports if port.node != "n4")
    kinds = {point.kind for point in Wiring(ports, paper.plan().trunk).crossings(paper.flows())}
    assert kinds == {PointKind.NIC_OUT, PointKind.NIC_IN, PointKind.PORT_IN, PointKind.PORT_OUT}


SENT = Crossing(1_000_000, 50_000, 1000)
OCTETS = 1_000_000 + 1000 * 66
UNKNOWN: dict[str, Any] = {"expected": None, "difference_pct": None}
COARSE = {"coarse": True, **UNKNOWN}
TOO_COARSE = "too coarse: counters are refreshed every 60 s or less often; the flows took 10 s"


@pytest.mark.parametrize(
    ("sent", "counted", "found"),
    [
        (replace(SENT, retransmitted=None), (OCTETS, 1000), {"difference_pct": 0, "short_octets": 0}),
        # More packets than TCP sent segments are not all the flows'; what is short then has none of theirs.
        (SENT, (OCTETS, 1010), {"short_octets": 660}),
        (SENT, (OCTETS - 660, 990), {"expected": OCTETS - 660, "short_octets": 0}),
        (replace(SENT, segments=None), (OCTETS, None), UNKNOWN),
        (replace(SENT, payload=None), (OCTETS, 1000), UNKNOWN | {"why": "the agents did not report what they sent"}),
        (SENT, (OCTETS, None), {"difference_pct": 0, "short_octets": None}),
        (Crossing(0, 0, 0), (0, 0), UNKNOWN | {"expected": 0, "carries_data": False}),
        (replace(SENT, payload=0), (66_000, 1000), {"expected": 66_000, "carries_data": False, "short_octets": 0}),
        (SENT, (None, 1000), {"difference_pct": None}),
        # Of 10 s the last half may be missing, and a quarter of a second from before be included.
        (SENT, (OCTETS, 1000, None, None, None, 0.5, 0.25), {"uncertain_octets": OCTETS / 40}),
        (SENT, (OCTETS, 1000, None, None, 1.0, 0.5, 0.5), {"uncertain_octets": OCTETS / 10}),
        (SENT, (OCTETS, 1000, None, None, 1.0, 0.5, 0.51), COARSE | {"uncertain_octets": OCTETS * 0.101}),
        (SENT, (OCTETS, 1000, None, None, 60.0, 30.0), COARSE | {"uncertain_octets": OCTETS, "why": TOO_COARSE}),
        (SENT, (OCTETS, 1000, None, None, None, 9.0), {}),
        # Beyond 1 % of both directions' larger one, and what was retransmitted, a difference is flagged.
        (SENT, (OCTETS - 60_000, 1000), {"difference_pct": pytest.approx(-5.6285, rel=1e-4)}),
        (SENT, (OCTETS - 60_661, 1000), {"flagged": True}),
        (replace(SENT, retransmitted=None), (OCTETS - 10_661, 1000), {"flagged": True}),
    ],
)
def test_a_balance_is_of_octets_packets_and_the_age_of_readings(sent: Crossing, counted: Any, found: Fields) -> None:
    point = CountingPoint(PointKind.PORT_IN, "a", ("p1",))
    one = reconcile(point, {point: sent}, {point: PortCount(*counted)}, 10.0, VIRTUAL)
    wanted = {"expected": OCTETS, "counted": counted[0], "flagged": False, "coarse": False}
    wanted |= {"carries_data": True, "uncertain_octets": 0.0}
    wanted |= {"retransmitted": (sent.retransmitted or 0) if one.difference_pct is not None else 0} | found
    assert {name: getattr(one, name) for name in wanted} == pytest.approx(wanted)


def test_the_larger_direction_decides_what_a_small_difference_is() -> None:
    there, back = CountingPoint(PointKind.PORT_IN, "a", ("p1",)), CountingPoint(PointKind.PORT_OUT, "a", ("p1",))
    crossings = {there: Crossing(0, 0, 1000), back: SENT}
    counted = {there: PortCount(66_000 + 10_000, 1000), back: PortCount(OCTETS, 1000)}
    assert not reconcile(there, crossings, counted, 10.0, VIRTUAL).flagged
    assert reconcile(there, crossings, {there: counted[there]}, 10.0, VIRTUAL).flagged
    assert not reconcile(there, crossings, {there: PortCount(66_000, 1000, missing_s=1.0)}, 0.0, VIRTUAL).flagged


def test_headers_have_timestamps_as_far_as_the_flows_use_them() -> None:
    port, nic = CountingPoint(PointKind.PORT_IN, "a", ("p1",)), CountingPoint(PointKind.NIC_OUT, "a")
    quarter = Crossing(stamps=4, stamped=1)
    assert [Framing(version).header_bytes(port, quarter) for version in (4, 6)] == [14 + 40 + 3 + 4, 14 + 60 + 3 + 4]
    assert Framing().header_bytes(nic, Crossing(stamps=2)) == 54
    tagged = Framing(tags={(port.owner, name): 1 for name in port.ports})  # of a node whose data interface is a VLAN
    assert tagged.header_bytes(port, quarter) - Framing().header_bytes(port, quarter) == 4
    assert tagged.header_bytes(nic, quarter) == Framing().header_bytes(nic, quarter)
    assert VIRTUAL.header_bytes(port, Crossing()) == 66
    # Half of the segments are UDP datagrams, with 42 bytes of headers instead of 66.
    assert VIRTUAL.header_bytes(port, Crossing(segments=100, stamps=1, stamped=1, udp=True, datagrams=50)) == 54


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([(1000, 990), (200, 240)], Reconciliation(1200, 1230, 2.5)),
        ([(1000, 990), (None, 240)], Reconciliation(None, 1230)),
        ([(1000, 990), (200, None)], Reconciliation(1200, None)),
        ([(0, 5)], Reconciliation(0, 5)),
        ([(10, 0)], Reconciliation(10, 0, -100.0)),
        ([(1, 1, 0.0, False, True, "coarse"), (1, 1)], Reconciliation(2, 2, None, False, True, "coarse")),
        ([(1, 1, 0, False, False, "old"), (1, 1, 0, True, False, "more")], Reconciliation(2, 2, 0, True, why="more")),
    ],
)
def test_balances_of_several_points_are_added(parts: list[tuple[Any, ...]], whole: Reconciliation) -> None:
    given = [replace(Reconciliation(*part), retransmitted=3) for part in parts]
    assert sum_balances(given) == replace(whole, retransmitted=3 * len(given))


def test_points_stand_in_the_order_of_the_path_with_data_first() -> None:
    kinds = (PointKind.NIC_OUT, PointKind.TRUNK_IN, PointKind.NIC_IN)
    places = [CountingPoint(kind, owner) for kind in kinds for owner in ("z", "a")]
    crossings = {point: Crossing(0 if point.owner == "a" else 1) for point in places}
    assert sort_points(crossings, sorted(places, key=str)) == places


def test_several_trunk_ports_are_one_place() -> None:
    paper = Paper()
    ports = (*paper.ports, replace(paper.ports[-2], name="up2"))
    point = Wiring(ports, paper.plan().trunk).path("n1", "n3")[2]
    assert (point.kind, point.ports, str(point)) == (PointKind.TRUNK_OUT, ("up", "up2"), "a up+up2")


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


@pytest.mark.parametrize(
    ("paper", "evidence"),
    [
        ({"losses": {(0, "queue"): 300}}, "its interface sent less than the flows did, by as much"),
        ({"losses": {(0, "cable in"): 300}}, "octets counted before and after it differ by as much"),
        (
            {"losses": {(0, "switch out"): 300}, "discards": {("p3", "out"): 290}},
            "its octets in and out differ by as much, and b p3 counted 290 drops",
        ),
        ({"losses": {(0, "queue"): 300}, "nics": False, "cache_s": 5.0, "duration_s": 60.0}, "no counter shows where"),
    ],
)
def test_the_evidence_of_a_loss_is_what_its_counters_show(paper: Fields, evidence: str) -> None:
    assert [one.evidence for one in attributed(Paper(**paper))] == [evidence]


N3, N4 = ((Where.RECEIVER, f"{node}'s interface") for node in ("n3", "n4"))
LOST = {(0, "switch out"): 300}
BOTH_LOST, QUEUED = LOST | {(1, "switch out"): 300}, {(0, "queue"): 300}
UNREAD: dict[str, Any] = {"counters": ()}
DROPPED = {node: {"rx_dropped": 300} for node in ("n3", "n4")}
P3, P4 = ((Where.SWITCH, f"switch b, port {port}") for port in ("p3", "p4"))
UNATTRIBUTED, NOWHERE = (Where.UNATTRIBUTED, "unattributed"), (Where.NOWHERE, "nowhere on the path")


@pytest.mark.parametrize(
    ("paper", "fields", "found"),
    [
        ({"nics": False, "losses": QUEUED}, {}, [(Where.BETWEEN, "before a p1", 300)]),
        ({"losses": LOST}, UNREAD, [(Where.BETWEEN, "between n1's interface and n3's interface", 300)]),
        ({"nics": False, "losses": LOST}, UNREAD, [(*UNATTRIBUTED, 300)]),
        ({"needless": 300, "nic_drops": DROPPED}, {}, [(*N3, 300), (*N4, 300)]),
        ({"needless": 200, "losses": BOTH_LOST}, {}, [(*P3, 300), (*P4, 300), (*NOWHERE, 400)]),
        # More octets than the flows' at the port in: whether the 300 were lost before it can't be seen.
        ({"losses": QUEUED, "nics": False, "foreign_octets": {("p1", "in"): 868_800}}, {}, [(*UNATTRIBUTED, 300)]),
        # TCP would have retransmitted as much as this hole.
        ({"losses": {(0, "switch out"): 5}, "foreign_octets": {("p3", "out"): -5_000_000}}, {}, [(*UNATTRIBUTED, 5)]),
    ],
)
def test_a_loss_is_named_as_far_as_counters_show_it(paper: Fields, fields: Fields, found: list[Any]) -> None:
    named: list[tuple[Any, ...]] = [
        (one.where, one.name, one.segments_about) for one in attributed(Paper(**paper), **fields)
    ]
    assert named == [(where, name, pytest.approx(number, abs=6)) for where, name, number in found]


def test_up_to_three_points_are_named_and_ports_of_a_trunk_together() -> None:
    ports = [CountingPoint(PointKind.PORT_IN, "a", (f"p{at}",)) for at in range(4)]
    nics = [CountingPoint(PointKind.NIC_OUT, f"n{at}") for at in range(4)]
    assert [_names(places) for places in (ports[:3], ports, nics, [*ports, *nics])] == [
        "a p0, a p1, a p2", "4 ports", "4 interfaces", "8 interfaces and ports",
    ]  # fmt: skip
    trunk = CountingPoint(PointKind.TRUNK_OUT, "a", ("up", "up2"))
    assert _place(Where.SWITCH, [trunk, ports[0]]) == "switch a, port up+up2, p0"
    assert _place(Where.QUEUE, nics[:2]) == "the queue of n0, n1"
    assert _place(Where.RECEIVER, nics[:2]) == "n0's interface"


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
    flows = (replace(paper.flows()[0], sender=None), paper.flows()[1])
    assert attribute(flows, Wiring(paper.ports, None), {}, {}) == []


def test_datagrams_have_the_headers_of_udp_and_nothing_is_sent_again() -> None:
    reports = Datagrams(100), Datagrams(97)
    sender, receiver = (Side(one.count * 1000, 1, 2, datagrams=one) for one in reports)
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, sender, receiver)
    crossing = points.data_of([flow])
    assert crossing == Crossing(100_000, 3000, 100, udp=True, datagrams=100)
    assert Framing().header_bytes(CountingPoint(PointKind.NIC_OUT, "a"), crossing) == 14 + 20 + 8
    assert points.acknowledgements_of([flow]) == Crossing(udp=True)
    stream = Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(9, 1, 2, tcp=TcpInfo(retransmits=0, segs_out=7)), None)
    assert points.data_of([stream, flow]) == Crossing(100_009, 3000, 107, udp=True, datagrams=100)
    acknowledged = replace(stream, receiver=Side(9, 1, 2, tcp=TcpInfo(segs_out=5)))
    assert points.acknowledgements_of([acknowledged, flow]) == Crossing(segments=5, udp=True)
    assert points.data_of([replace(flow, sender=None)]).payload is None
    assert points.data_of([replace(flow, receiver=None)]) == replace(crossing, retransmitted=None)
    assert points.data_of([replace(flow, receiver=replace(receiver, bytes=200_000))]).retransmitted == 0


@pytest.mark.parametrize(
    ("counted", "again"),
    [
        (TcpInfo(retransmits=3, retransmitted_bytes=100, mss=10), 100),
        (TcpInfo(retransmits=3, mss=10), 30),
        (TcpInfo(retransmits=0), 0),
        (TcpInfo(retransmits=3), None),
        (TcpInfo(mss=10), None),
    ],
)
def test_streams_cross_with_what_was_sent_again_and_their_segments(counted: TcpInfo, again: int | None) -> None:
    sender = Side(1000, 1, 2, tcp=replace(counted, segs_out=7, timestamps=True))
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, sender, Side(1000, 1, 2, tcp=TcpInfo(segs_out=5)))
    assert points.data_of([flow]) == Crossing(None if again is None else 1000 + again, again, 7, 1, 1)
    assert points.acknowledgements_of([flow]) == Crossing(0, 0, 5, 1, 1)
    assert points.acknowledgements_of([flow, replace(flow, receiver=None)]) == Crossing(0, 0, None, 2, 2)


def test_traffic_lasts_from_the_first_byte_sent_to_the_last_byte_of_any_end() -> None:
    flow = Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(9, 3, 5), Side(9, 4, 8))
    silent = replace(flow, sender=None)
    assert [points.traffic_of(flows) for flows in ([flow, flow], [flow, silent], [])] == [(3, 8), None, None]


def test_a_port_has_the_rate_of_its_link_and_the_age_of_its_switch() -> None:
    paper = Paper()
    wiring = Wiring(paper.ports, paper.plan().trunk)
    own, strange = (CountingPoint(PointKind.PORT_IN, "a", (port,)) for port in ("p1", "p9"))
    trunk = CountingPoint(PointKind.TRUNK_OUT, "a", ("up",))
    assert [wiring.rate_bps(point, {"n1": 5}) for point in (own, trunk, strange)] == [5, 8 * 10**9, None]
    assert Wiring(paper.ports, None).rate_bps(trunk, {}) is None
    traffic, age = (BEGIN_NS, BEGIN_NS + 10 * SECOND), PathKnowledge({}, {"a": 5.0}, BEGIN_NS - SECOND)
    found = points.counts(paper.repetition(), traffic, wiring, [own, trunk], age)
    assert [each for one in found.values() for each in (one.refresh_s, one.extra_s)] == pytest.approx([5.0, 4.2] * 2)


PAIR = Pair("a", "b")
SENDS = CountingPoint(PointKind.NIC_OUT, "a")
PORT = CountingPoint(PointKind.PORT_IN, "s", ("p1",))
ARRIVED = CountingPoint(PointKind.NIC_IN, "b")
PROBES = tuple(Probes(PAIR, Direction.FORWARD, 0, Series(columns)) for columns in ({"t_ns": [0] * 3}, {}))
OWN = 1_000_000 + 1000 * 66  # octets of the flows at an interface: payload and headers of 1000 segments


def beside(
    point: CountingPoint,
    octets: int | None,
    packets: int | None = 1000,
    *,
    payload: int | None = 1_000_000,
    segments: int | None = 1000,
    framing: Framing | None = None,
    end_ns: int = 2 * SECOND,
    balance: Reconciliation | None = None,
    **measured: Any,
) -> float | None:
    """Return the bytes per second at `point` that are not of the run, whose traffic takes 1 s."""
    repetition = Paper().repetition(**{"flows": (), "nodes": (), "counters": (), **measured})
    found = other_traffic(
        repetition,
        (SECOND, end_ns),
        Wiring((), None),
        {point: Crossing(payload, 0, segments)},
        {point: PortCount(octets, packets)},
        {point: balance or Reconciliation(None, octets)},
        framing or Framing(),
        1500,
    )
    return found[point] * 1e6 / 8 if found else None


@pytest.mark.parametrize(
    ("octets", "fields", "others"),
    [
        (OWN - 1, {}, 0),
        (OWN, {"packets": 1005}, 0),
        # Full frames of 1500 + 14, each with 24 bytes more on the wire; or as many frames as were counted.
        (OWN + 15_140, {}, 15_140 + 10 * 24),
        (OWN + 15_140, {"packets": 1030}, 15_140 + 30 * 24),
        (OWN + 15_140 - 5 * 66, {"packets": 995}, 15_140 + 10 * 24),
        (OWN + 15_140, {"packets": 1010, "segments": None}, (15_140 - 660) * (1 + 24 / 1514)),
        (OWN + 15_140 + 3 * 164, {"probes": PROBES}, 15_140 + 10 * 24),
        (OWN + 15_140 + 500, {"balance": Reconciliation(None, None, uncertain_octets=500.0)}, 15_140 + 10 * 24),
        (OWN + 15_140, {"balance": Reconciliation(None, None, coarse=True)}, None),
        (OWN + 15_140, {"payload": None}, None),
        (OWN + 15_140, {"packets": None}, None),
        (None, {}, None),
        (OWN + 15_140, {"end_ns": SECOND}, None),
        # The time that the counters of this node cover, and not those of another.
        (OWN + 15_140, {"nodes": (NodeUsage("a", 2_000_000), NodeUsage("b", 4_000_000))}, 15_140 / 2 + 5 * 24),
        (OWN + 15_140, {"nodes": (NodeUsage("a", 500_000), NodeUsage("a"))}, 15_140 + 10 * 24),
    ],
)
def test_what_counts_beyond_flows_is_other_traffic(octets: int | None, fields: Fields, others: float | None) -> None:
    assert beside(SENDS, octets, **fields) == (others if others is None else pytest.approx(others))


@pytest.mark.parametrize(
    ("framing", "octets", "others"),
    [
        (Framing(), OWN + 4000 + 15_180, 15_180 + 10 * 20),  # a real switch counts the frame check sequence
        (Framing(virtual_switch=True), OWN + 15_140, 15_140 + 10 * 24),
    ],
)
@pytest.mark.parametrize(("times_s", "span_s"), [((), 1), ((0.5, 1.5, 2.5), 2), ((1.5, 3.5), 2), ((1, 1.5), 1)])
def test_a_port_counts_from_the_last_reading_before_the_traffic(
    framing: Framing, octets: int, others: float, times_s: tuple[float, ...], span_s: float
) -> None:
    far = {"t_ns": [0, 10 * SECOND]}
    columns = {"t_ns": [round(at * SECOND) for at in times_s]}
    elsewhere = (PortSeries("s", "p2", "snmp", far), PortSeries("t", "p1", "", far))
    counters = (PortSeries("s", "p1", "snmp", columns), *elsewhere)
    found = beside(PORT, octets, framing=framing, counters=counters, nodes=(NodeUsage("s", 9_000_000),))
    assert found == pytest.approx(others / span_s)


TCP = TcpInfo(mss=1000, retransmitted_bytes=20_000)


@pytest.mark.parametrize(
    ("sender", "receiver", "payload"),
    [
        # The bytes received and all that may have come twice, but no more than the segments that came.
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2), 920_000),
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=910)), 910_000),
        (Side(9, 1, 2, tcp=TcpInfo(retransmits=0)), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=10)), 900_000),
        # Unknown: all that was sent.
        (Side(9, 1, 2), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=910)), 1_000_000),
        (Side(9, 1, 2, tcp=TCP), None, 1_000_000),
        (Side(9, 1, 2, tcp=TCP), Side(2_000_000, 1, 2), 1_000_000),
        # Datagrams: those that came twice, or that nobody waited for.
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, strays=18, overflow=0)), 927_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, strays=18, overflow=1)), 1_000_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, overflow=0)), 1_000_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(0, duplicates=0, strays=0, overflow=0)), 1_000_000),
    ],
)
def test_behind_a_bottleneck_flows_are_what_arrived(sender: Side | None, receiver: Side | None, payload: int) -> None:
    flows = (Flow(PAIR, Direction.FORWARD, 1, sender, receiver),)
    octets = payload + 1000 * 66 + 1514
    assert beside(ARRIVED, octets, flows=flows) == pytest.approx(1514 + 24)
    assert beside(SENDS, OWN + 1514, flows=flows) == pytest.approx(1514 + 24)


def test_what_several_flows_brought_is_added_and_unknown_if_one_is() -> None:
    side = Side(9, 1, 2, tcp=TcpInfo(retransmits=0))
    flows = tuple(Flow(PAIR, Direction.FORWARD, at, side, Side(300_000, 1, 2)) for at in (1, 2))
    unknown = Flow(PAIR, Direction.FORWARD, 3, side, None)
    assert beside(ARRIVED, 600_000 + 66_000 + 1514, flows=flows) == pytest.approx(1514 + 24)
    assert beside(ARRIVED, OWN + 1514, flows=(*flows, unknown)) == pytest.approx(1514 + 24)
