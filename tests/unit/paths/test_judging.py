"""What a run refuses before its first test: tests whose paths, routes or addresses cannot carry them."""

from dataclasses import replace

from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.hosts.surroundings import Route, Surroundings
from rigctl.paths.judging import errors_of
from rigctl.paths.probing import PathState
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell, Condition, Direction, HostSetting, Link, Pair, RunPlan
from rigctl.rig.inventory import Node, Rig
from rigctl.settings import ITERATIONS, MSS, Settings

ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"}
NODES = {
    name: NodeState(Node(name, address, Link(None, None)), {"interface": "eth1"}, address=address)
    for name, address in ADDRESSES.items()
}
GOOD = PathState("a", "b", 4, 1500, port=1, heard={128, 1500}, stream="0")
HOLE = replace(GOOD, heard={128, 1000}, lost={1001, 1500})
SHUT = replace(GOOD, heard=set(), lost={128, 1500}, stream=None)
STREAM = Cell(1, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1)
UDP = replace(STREAM, test="udp", transport="udp", message_bytes=64)
LOW = Condition("low", (HostSetting("mtu", "1280"),))


def state(path: PathState) -> RigState:
    plan = RunPlan("t", "", "s", "", "r", "", (), 1, (STREAM,), conditions=(LOW,))
    back = replace(GOOD, source="b", destination="a")
    return RigState(Rig("r", "r", {}, None), plan, NODES, (path, back))


def test_a_stream_over_a_black_hole_or_through_a_closed_port_cannot_work() -> None:
    assert errors_of(STREAM, state(GOOD)) == []
    (hole,) = errors_of(STREAM, state(HOLE))
    assert hole.startswith("a -> b: black hole: IP packets of 1000 bytes")
    (shut,) = errors_of(STREAM, state(SHUT))
    assert shut.startswith("a -> b: TCP and UDP to port 1: dropped without an answer.")
    assert errors_of(replace(STREAM, pairs=(Pair("b", "a"),)), state(SHUT)) == []  # answers to a connection pass
    both = replace(STREAM, pairs=(Pair("b", "a"),), direction=Direction.BOTH)
    assert len(errors_of(both, state(SHUT))) == 1


def test_what_may_send_smaller_packets_is_not_refused_for_a_black_hole() -> None:
    messages = replace(STREAM, test="pingpong", message_bytes=64, settings=Settings({ITERATIONS: 10}))
    smaller = (replace(STREAM, settings=Settings({MSS: 900})), messages, UDP, replace(STREAM, condition="low"))
    assert [errors_of(cell, state(HOLE)) for cell in smaller] == [[]] * 4
    assert len(errors_of(replace(STREAM, settings=Settings({MSS: 1400})), state(HOLE))) == 1


def test_a_route_that_leads_elsewhere_keeps_the_tests_of_its_own_pair_only() -> None:
    away = Surroundings({"10.0.0.2": Route("10.0.0.2", "eth0")})
    whole = replace(state(GOOD), nodes={**NODES, "a": replace(NODES["a"], around=away)})
    (wrong,) = errors_of(STREAM, whole)
    assert wrong.startswith("a: data to b (10.0.0.2) leave by eth0, not by eth1.")
    assert len(errors_of(replace(STREAM, pairs=(Pair("b", "a"),)), whole)) == 1
    assert errors_of(replace(STREAM, pairs=(Pair("a", "c"),)), whole) == []


def test_an_address_held_twice_keeps_the_tests_of_the_nodes_that_hold_it() -> None:
    shared = Finding("address-shared", "x is held twice", Weight.MISSING, Severity.ERROR, Subject("node", ("b", "c")))
    assert errors_of(STREAM, state(GOOD), [shared]) == ["b, c: x is held twice"]
    assert errors_of(replace(STREAM, pairs=(Pair("a", "d"),)), state(GOOD), [shared]) == []


def test_another_pairs_closed_port_does_not_matter_and_udp_only_to_tests_of_datagrams() -> None:
    assert errors_of(replace(STREAM, pairs=(Pair("c", "d"),)), state(SHUT)) == []
    deaf = replace(GOOD, heard=set(), lost={128, 1500})
    assert errors_of(STREAM, state(deaf)) == []
    assert len(errors_of(UDP, state(deaf))) == 1
