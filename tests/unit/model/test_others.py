"""Other traffic at a counting point: octets, frames and time, worked out by hand for each case."""

from typing import Any

import pytest

from rigctl.model.counters.balance import Framing, Reconciliation, other_traffic
from rigctl.model.counters.points import CountingPoint, Crossing, PointKind, Wiring
from rigctl.model.counters.rises import Counted
from rigctl.records import (
    Datagrams,
    Direction,
    Flow,
    NodeUsage,
    Pair,
    PortSeries,
    Probes,
    Repetition,
    Series,
    Side,
    Status,
    TcpInfo,
)

SECOND = 10**9
PAIR = Pair("a", "b")
SENT = CountingPoint(PointKind.NIC_OUT, "a")
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
    repetition = Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, **measured)
    found = other_traffic(
        repetition,
        (SECOND, end_ns),
        Wiring((), None),
        {point: Crossing(payload, 0, segments)},
        {point: Counted(octets, packets)},
        {point: balance or Reconciliation(None, octets)},
        framing or Framing(),
        1500,
    )
    return found[point] * 1e6 / 8 if found else None


@pytest.mark.parametrize(
    ("octets", "fields", "others"),
    [
        (OWN, {}, 0),
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
def test_what_an_interface_counted_beyond_the_flows_is_other_traffic(
    octets: int | None, fields: dict[str, Any], others: float | None
) -> None:
    assert beside(SENT, octets, **fields) == (others if others is None else pytest.approx(others))


@pytest.mark.parametrize(
    ("framing", "octets", "others"),
    [
        (Framing(), OWN + 4000 + 15_180, 15_180 + 10 * 20),  # a real switch counts the frame check sequence
        (Framing(virtual_switch=True), OWN + 15_140, 15_140 + 10 * 24),
    ],
)
@pytest.mark.parametrize(("times_s", "span_s"), [((), 1.0), ((0.25, 0.5, 2.5), 2.0), ((1.5, 3.5), 2.0), ((1, 1.5), 1)])
def test_a_port_counts_from_the_last_reading_before_the_traffic(
    framing: Framing, octets: int, others: float, times_s: tuple[float, ...], span_s: float
) -> None:
    far = {"t_ns": [0, 10 * SECOND]}
    columns = {"t_ns": [round(at * SECOND) for at in times_s]}
    counters = (
        PortSeries("s", "p1", "snmp", columns),
        PortSeries("s", "p2", "snmp", far),
        PortSeries("t", "p1", "", far),
    )
    found = beside(PORT, octets, framing=framing, counters=counters, nodes=(NodeUsage("s", 9_000_000),))
    assert found == pytest.approx(others / span_s)


TCP = TcpInfo(mss=1000, retransmitted_bytes=20_000)


@pytest.mark.parametrize(
    ("sender", "receiver", "payload"),
    [
        # The bytes received and all that may have come twice, but no more than the segments that came.
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2), 920_000),
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=910)), 910_000),
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=930)), 920_000),
        (Side(9, 1, 2, tcp=TCP), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=10)), 900_000),
        (Side(9, 1, 2, tcp=TcpInfo(retransmits=0)), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=10)), 900_000),
        # Unknown: all that was sent.
        (Side(9, 1, 2), Side(900_000, 1, 2, tcp=TcpInfo(segs_in=910)), 1_000_000),
        (None, Side(900_000, 1, 2), 1_000_000),
        (Side(9, 1, 2, tcp=TCP), None, 1_000_000),
        (Side(9, 1, 2, tcp=TCP), Side(2_000_000, 1, 2), 1_000_000),
        # Datagrams: those that came twice, or that nobody waited for.
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, strays=18, overflow=0)), 927_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, strays=18, overflow=1)), 1_000_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(900, duplicates=9, overflow=0)), 1_000_000),
        (None, Side(900_000, 1, 2, datagrams=Datagrams(0, duplicates=0, strays=0, overflow=0)), 1_000_000),
    ],
)
def test_behind_the_bottleneck_only_what_arrived_is_the_flows(
    sender: Side | None, receiver: Side | None, payload: int
) -> None:
    flows = (Flow(PAIR, Direction.FORWARD, 1, sender, receiver),)
    octets = payload + 1000 * 66 + 1514
    assert beside(ARRIVED, octets, flows=flows) == pytest.approx(1514 + 24)
    assert beside(SENT, OWN + 1514, flows=flows) == pytest.approx(1514 + 24)


def test_what_several_flows_brought_is_added_and_unknown_if_one_is() -> None:
    side = Side(9, 1, 2, tcp=TcpInfo(retransmits=0))
    flows = [Flow(PAIR, Direction.FORWARD, at, side, Side(300_000, 1, 2)) for at in (1, 2)]
    assert beside(ARRIVED, 600_000 + 66_000 + 1514, flows=tuple(flows)) == pytest.approx(1514 + 24)
    assert beside(ARRIVED, OWN + 1514, flows=(*flows, Flow(PAIR, Direction.FORWARD, 3, side, None))) == pytest.approx(
        1538
    )
