"""Stars: found among the tests of a run, the slow node or the slow centre named; round trips of meshes and stars."""

import pytest
from builders import asking, cell, plan, repetition, run
from meshes import messages_between

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import Estimate
from rigctl.analysis.views.mesh import Ends, Mesh, Way, far_nodes, lopsided, slow_around, small_frames
from rigctl.model.rounds import around, ordered
from rigctl.records import Direction, Pair

NODES = ("c", "x", "y", "z")
STAR = [ends for (ends,) in around("c", NODES)]


def ways(rates: dict[str, float]) -> dict[Ends, Way]:
    """The ways of a star around c at 9400 Mbit/s, but for `rates`: `cx` from c to x, `c>` all of c's, `>c` all to c."""
    found = {}
    for number, (sender, receiver) in enumerate(STAR, 1):
        mbps = min(
            [rates[key] for key in (f"{sender}>", f">{receiver}", sender + receiver) if key in rates] or [9400.0]
        )
        found[sender, receiver] = Way(sender, receiver, number, Estimate(mbps), 0.0)
    return found


def mesh_of(ends: list[tuple[str, str]], **settings: object) -> Mesh | None:
    cells = [asking(cell(number, pairs=(Pair(*pair),)), **settings) for number, pair in enumerate(ends, 1)]
    measured = [repetition(each, [900] * len(each.streams), [2] * len(each.streams)) for each in cells]
    return next(iter(RunView(run(plan(cells)), measured).meshes), None)


@pytest.mark.parametrize(
    ("rates", "slow"),
    [
        ({}, {}),
        ({"xc": 3000}, {"x": ("sending",)}),
        ({"cx": 3000, "xc": 3100}, {"x": ("sending", "receiving")}),
        ({"cx": 3000, "zc": 3100}, {"x": ("receiving",), "z": ("sending",)}),
        ({"c>": 3000}, {"c": ("sending",)}),
        ({">c": 3000}, {"c": ("receiving",)}),
        ({">c": 3000, "cx": 2000}, {"c": ("receiving",), "x": ("receiving",)}),
        ({"c>": 3000, ">c": 3000}, {}),
        ({"xc": 8100}, {}),
        ({"xc": 7900}, {"x": ("sending",)}),
    ],
)
def test_a_node_that_differs_from_the_others_is_slow_and_the_centre_where_all_do(
    rates: dict[str, float], slow: dict[str, tuple[str, ...]]
) -> None:
    assert {node.node: node.roles for node in slow_around("c", NODES, ways(rates))} == slow


def test_a_slow_node_is_beside_the_others_and_a_slow_centre_beside_its_other_direction() -> None:
    (leaf,) = slow_around("c", NODES, ways({"xc": 3000, "cx": 2000}))
    assert (leaf.mbps, leaf.others_mbps) == (2500, 9400)
    (centre,) = slow_around("c", NODES, ways({"c>": 3000, "cx": 2600, "xc": 9000}))
    assert (centre.mbps, centre.others_mbps) == (3000, 9400)


def test_directions_that_differ_are_reported_unless_a_slow_node_or_the_centre_explains_it() -> None:
    def found(rates: dict[str, float]) -> list[Ends]:
        made = ways(rates)
        return [pair.slower.ends for pair in lopsided(NODES, made, slow_around("c", NODES, made))]

    assert found({"xc": 8100}) == [("x", "c")]
    assert found({"xc": 3000}) == []
    assert found({"c>": 3000}) == []
    assert found({"c>": 3000, "cx": 2000}) == [("c", "x")]


def test_every_node_to_one_and_back_is_a_star_with_the_limit_of_each_way() -> None:
    star = mesh_of(STAR)
    assert star is not None
    assert (star.centre, len(star.ways)) == ("c", 6)
    assert star.ways["y", "c"].limit is not None
    assert star.ways["y", "c"].retransmits == 2


def test_one_direction_only_two_nodes_and_a_missing_way_are_no_star() -> None:
    assert mesh_of([("c", "x"), ("c", "y"), ("c", "z")]) is None
    assert mesh_of([("c", "x"), ("x", "c")]) is None
    assert mesh_of(STAR[:-1]) is None
    assert mesh_of([*STAR, ("x", "y")]) is None


def test_a_mesh_has_no_centre_and_a_star_of_pairs_in_both_directions_has_one() -> None:
    mesh = mesh_of([ends for (ends,) in ordered("abc")])
    assert mesh is not None
    assert mesh.centre is None
    both = mesh_of([("c", "x"), ("c", "y")], direction=Direction.BOTH)
    assert both is not None
    assert both.centre == "c"


def test_a_mesh_of_messages_that_come_back_has_round_trips_and_no_goodput() -> None:
    times_s = dict.fromkeys([ends for (ends,) in ordered("abcd")], 0.002)
    late = {ends: 0.008 for ends in times_s if "d" in ends}
    (mesh,) = RunView(*messages_between("pingpong", times_s | late)).meshes
    assert mesh.ways["a", "b"].rtt_p50_us == pytest.approx(20, rel=0.01)
    assert (mesh.known, mesh.slow, mesh.lopsided) == ([], (), ())
    assert [(far.node, round(far.rtt_us), round(far.others_us)) for far in mesh.far] == [("d", 80, 20)]
    assert mesh.answered[-1].rtt_p50_us == pytest.approx(80, rel=0.01)


def test_no_node_is_far_whose_shortest_round_trip_is_the_usual_one() -> None:
    trips = {ends: Way(*ends, 1, None, None, rtt_p50_us=90.0 if ends == ("a", "b") else 20.0) for ends in STAR}
    assert far_nodes(NODES, trips) == ()
    assert far_nodes(NODES, {}) == ()


def test_a_star_of_blasts_has_the_goodput_of_its_messages() -> None:
    times_s = {ends: 0.01 if "z" in ends else 0.001 for ends in STAR}
    (star,) = RunView(*messages_between("blast", times_s, size=1000)).meshes
    assert star.ways["c", "x"].mbps == pytest.approx(800)
    assert [(slow.node, slow.roles) for slow in star.slow] == [("z", ("sending", "receiving"))]


def jumbo(sizes: dict[str, int]) -> dict[Ends, Way]:
    """The ways of a mesh; a sender's path MTU is that of its own interface, and its ceiling that of both."""
    mtus = {ends: min(sizes[ends[0]], sizes[ends[1]]) for (ends,) in ordered(tuple(sizes))}
    return {
        ends: Way(*ends, 1, Estimate(900), 0.0, mtu=sizes[ends[0]], ceiling_mbps=990.0 if mtu > 1500 else 941.0)
        for ends, mtu in mtus.items()
    }


def test_a_node_whose_paths_have_a_smaller_mtu_than_others_is_found_once() -> None:
    sizes = {"a": 9000, "b": 9000, "c": 1500, "d": 9000}
    (small,) = small_frames(tuple(sizes), jumbo(sizes))
    assert (small.nodes, small.mtu, small.others_mtu) == (("c",), 1500, 9000)
    assert (small.ceiling_mbps, small.others_ceiling_mbps) == (941, 990)


def test_nodes_with_the_same_smaller_mtu_are_named_together_and_equal_or_unknown_ones_not_at_all() -> None:
    sizes = {"a": 9000, "b": 1500, "c": 1500, "d": 9000}
    assert [small.nodes for small in small_frames(tuple(sizes), jumbo(sizes))] == [("b", "c")]
    equal = dict.fromkeys("abc", 1500)
    assert small_frames(tuple(equal), jumbo(equal)) == ()
    assert small_frames(NODES, ways({})) == ()
