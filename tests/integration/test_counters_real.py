"""The balance of octets in a real small lab: exact without drops; drops injected at a known port are found there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from counted_lab import PORTS, Lab, Measured, counted_lab

from rigctl.model.counters.balance import Framing, Reconciliation, reconcile_all
from rigctl.model.counters.losses import Attribution, Where, attribute
from rigctl.model.counters.points import CountingPoint, PointKind, Wiring, counts, traffic_of
from rigctl.records import Repetition, Status
from rigctl.remote.build import build, host_machine


@pytest.fixture(scope="module")
def agent() -> Path:
    return build([host_machine()])[0].path


@pytest.fixture
def lab() -> Iterator[Lab]:
    with counted_lab() as made:
        yield made


def judged(measured: Measured) -> tuple[dict[CountingPoint, Reconciliation], list[Attribution]]:
    repetition = Repetition(
        1, 1, 1, Status.OK, None, 0.0, 1.0, flows=measured.flows, nodes=measured.nodes, counters=measured.counters
    )
    wiring = Wiring(PORTS, None)
    traffic = traffic_of(repetition.flows)
    assert traffic is not None
    counted = counts(repetition, wiring)
    balance = reconcile_all(wiring.crossings(repetition.flows), counted, traffic, Framing(4, virtual_switch=True))
    return balance, attribute(repetition.flows, wiring, counted, balance)


def sent_again(measured: Measured) -> int:
    return sum(flow.sender.tcp.retransmits or 0 for flow in measured.flows if flow.sender is not None)


def test_without_drops_every_place_counts_what_was_sent(lab: Lab, agent: Path) -> None:
    balance, _ = judged(lab.measure(agent))
    assert {(point.kind, point.owner) for point in balance} == {
        (kind, owner)
        for kind, owners in (
            (PointKind.NIC_OUT, ("n1", "n2")),
            (PointKind.NIC_IN, ("n1", "n2")),
            (PointKind.PORT_IN, ("sw",)),
            (PointKind.PORT_OUT, ("sw",)),
        )
        for owner in owners
    }
    for point, one in balance.items():
        assert not one.flagged, (point, one)
        if one.carries_data:
            assert one.difference_pct == pytest.approx(0, abs=0.2), point


@pytest.mark.parametrize(
    "chain",
    [
        "bridge type filter hook forward priority 0; oifname p2",  # on the way out to the receiver's port
        "netdev type filter hook ingress device p1 priority 0;",  # behind the counters of the sender's port
        "netdev type filter hook egress device p2 priority 0;",  # before those of the receiver's
    ],
)
def test_drops_in_the_switch_are_found_there(lab: Lab, agent: Path, chain: str) -> None:
    lab.drop_one_percent("sw", chain)
    measured = lab.measure(agent)
    balance, lost = judged(measured)
    assert sent_again(measured) > 0
    assert (lost[0].where, lost[0].name) == (Where.SWITCH, "switch sw, port p2")
    assert lost[0].segments_about >= 0.5 * sent_again(measured)
    assert {one.where for one in lost} <= {Where.SWITCH, Where.NOWHERE}
    assert not any(one.flagged for one in balance.values())


def test_drops_behind_the_receivers_interface_are_nobodys(lab: Lab, agent: Path) -> None:
    """A firewall on the receiver, say: everything came in at its interface."""
    lab.drop_one_percent("n2", "netdev type filter hook ingress device eth0 priority 0;")
    measured = lab.measure(agent)
    _, lost = judged(measured)
    assert [(one.where, one.segments_about) for one in lost] == [(Where.NOWHERE, sent_again(measured))]


def test_other_traffic_through_the_port_is_flagged(lab: Lab, agent: Path) -> None:
    """Pings of 1400 bytes beside the flows, from the node itself: over 1 % of their octets."""
    lab.shape("n1", "20mbit", burst="16kb")
    with lab.pinging("n1", "n2"):
        balance, _ = judged(lab.measure(agent))
    flagged = {point.kind for point, one in balance.items() if one.flagged}
    assert {PointKind.PORT_IN, PointKind.PORT_OUT} <= flagged
    assert all("other traffic" in str(one.why) for one in balance.values() if one.flagged)
