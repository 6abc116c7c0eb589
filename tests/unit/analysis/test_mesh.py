"""Meshes: found among the tests of a run; slow nodes named once, pairs whose directions differ where no node is slow.

The constants were chosen on `TUNED`; `PROVED` has another seed, fixed before, and was only looked at afterwards.
"""

from dataclasses import astuple, replace
from itertools import permutations
from typing import Any

import pytest
from builders import asking, cell, changing, failed, plan, repetition, run
from cases import from_file
from known import known
from meshes import Made, made_meshes, messages_between

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import Mesh, MeshEnds, Way, far_nodes, find_lopsided, slow_nodes, small_frames
from rigctl.model.rounds import around, order_pairs
from rigctl.records import Cell, Direction, Pair, Series, Status
from rigctl.results.summary import Estimate
from rigctl.settings import WINDOW

TUNED, PROVED, COUNT = 1, 20260, 400
ABC = ("a", "b", "c", "d")
BOTH = ("sending", "receiving")
ROUNDS = [(Pair(a, b), Pair(c, d)) for a, b, c, d in ("abcd", "badc", "acbd", "cadb", "adbc", "dacb")]


def ways(rates: dict[str, float], spread: float | None = None) -> dict[MeshEnds, Way]:
    """All ways between four nodes at 9400 Mbit/s, but for `rates`: `ab` from a to b, `a>` all of a's, `>a` all to a."""
    found = {}
    for number, (sender, receiver) in enumerate(permutations(ABC, 2), 1):
        known = [rates[key] for key in (f"{sender}>", f">{receiver}", sender + receiver) if key in rates]
        found[sender, receiver] = Way(sender, receiver, number, Estimate(min(known, default=9400.0), spread), 0.0)
    return found


def pairs(rates: dict[str, float], spread: float | None = None) -> list[str]:
    made = ways(rates, spread)
    return ["".join(pair.slower.ends) for pair in find_lopsided(ABC, made, slow_nodes(ABC, made))]


@pytest.mark.parametrize("seed", [TUNED, PROVED])
def test_slow_nodes_and_faulty_pairs_of_made_up_meshes_are_named_and_no_others(seed: int) -> None:
    meshes = made_meshes(seed, COUNT)
    for number, made in enumerate(meshes):
        slow = slow_nodes(made.nodes, made.ways)
        assert {node.node: node.roles for node in slow} == made.slow, number
        found = {pair.slower.ends for pair in find_lopsided(made.nodes, made.ways, slow)}
        assert set(made.faults) <= found, number
        assert not [ends for ends in found - set(made.faults) if _slow_way(made, ends)], number
    assert sum(bool(made.slow) for made in meshes) > COUNT / 3
    assert sum(len(made.faults) for made in meshes) > COUNT / 3


def _slow_way(made: Made, ends: MeshEnds) -> bool:
    return "sending" in made.slow.get(ends[0], ()) or "receiving" in made.slow.get(ends[1], ())


@from_file
def test_a_node_is_slow_with_everybody_and_explains_directions_that_differ(rates: Any, slow: Any, differ: Any) -> None:
    assert {node.node: node.roles for node in slow_nodes(ABC, ways(rates))} == slow
    assert pairs(rates) == differ


def test_a_slow_node_has_the_medians_of_its_pairs_and_a_difference_within_the_spread_is_not_reported() -> None:
    (slow,) = slow_nodes(ABC, ways({"a>": 3000, "ab": 2800, "bc": 9300}))
    assert (slow.mbps, slow.others_mbps) == (3000, 9400)
    assert [pairs({"ab": 7000}, spread) for spread in (1100, 1300)] == [["ab"], []]


def meshes_of(cells: list[Cell], mbps: float = 900) -> tuple[Mesh, ...]:
    measured = [repetition(one, [mbps + 5 * one.number] * len(one.streams), [3] * len(one.streams)) for one in cells]
    return RunView.in_memory(run(plan(cells)), measured).meshes


def mesh_cells(nodes: str = "abc", *points: dict[str, object]) -> list[Cell]:
    ends = list(permutations(nodes, 2))
    made = [asking(cell(pairs=(Pair(*pair),)), **point) for pair in ends for point in points or ({},)]
    return [replace(each, number=number) for number, each in enumerate(made, 1)]


def test_a_run_of_every_ordered_pair_is_a_mesh_at_each_point_of_the_other_axes() -> None:
    (mesh,) = meshes_of(mesh_cells())
    way = mesh.ways["b", "a"]
    assert (mesh.nodes, len(mesh.ways)) == (("a", "b", "c"), 6)
    assert (way.test, round(way.mbps or 0), way.retransmits, way.limit is None) == (3, 915, 3, False)
    found = meshes_of(mesh_cells("abc", {"window_bytes": 65536}, {"window_bytes": 131072}))
    assert [(mesh.point[WINDOW], mesh.ways["a", "b"].test) for mesh in found] == [(65536, 1), (131072, 2)]


def test_rounds_of_disjoint_pairs_are_a_mesh_and_pairs_that_share_a_node_are_none() -> None:
    (mesh,) = meshes_of([cell(number, pairs=pairs) for number, pairs in enumerate(ROUNDS, 1)])
    assert len(mesh.ways) == 12
    assert mesh.ways["a", "b"].limit is not None
    shared = [cell(1, pairs=(Pair("a", "b"), Pair("a", "c"))), *mesh_cells()[2:]]
    assert meshes_of([replace(each, number=number) for number, each in enumerate(shared, 1)]) == ()


def test_an_incomplete_mesh_two_nodes_one_direction_only_and_a_star_are_no_mesh() -> None:
    star = [cell(number, pairs=(Pair(*ends),)) for number, (ends,) in enumerate(around("a", ABC), 1)]
    forward = [cell(number, pairs=(Pair("a", other),)) for number, other in enumerate("bc", 1)]
    assert [meshes_of(cells) for cells in (mesh_cells()[:-1], mesh_cells("ab"), forward, star)] == [()] * 4


def test_a_way_without_a_result_is_in_the_mesh_and_not_known_and_a_run_without_any_is_none() -> None:
    cells = mesh_cells()
    info, measured = run(plan(cells)), [repetition(each, [900], [0]) for each in cells]
    (mesh,) = RunView.in_memory(info, [failed(cells[0]), *measured[1:]]).meshes
    assert (mesh.ways["a", "b"].mbps, len(mesh.known), mesh.lopsided) == (None, 5, ())
    assert RunView.in_memory(info, [failed(each) for each in cells]).meshes == ()
    assert RunView.in_memory(info, [replace(each, status=Status.INVALID) for each in measured]).meshes == ()


def test_both_directions_at_once_give_a_way_the_mean_of_two_tests_and_reverse_ways_are_those_of_the_data() -> None:
    cells = mesh_cells("abc", {"direction": Direction.BOTH})
    speeds = {("a", "b"): [900, 500], ("b", "a"): [510, 910]}
    measured = [repetition(each, speeds.get(each.streams[0].ends, [900, 900]), [0, 0]) for each in cells]
    (mesh,) = RunView.in_memory(run(plan(cells)), measured).meshes
    assert round(mesh.ways["a", "b"].mbps or 0) == 905
    assert [pair.slower.ends for pair in mesh.lopsided] == [("b", "a")]
    (back,) = meshes_of([asking(each, direction=Direction.REVERSE) for each in mesh_cells()])
    assert back.ways["b", "a"].test == 1


def test_unlike_pairs_of_one_round_have_limits_of_their_own() -> None:
    cells = [cell(number, pairs=pairs, window_bytes=None, mss=None) for number, pairs in enumerate(ROUNDS, 1)]
    first, *others = (repetition(each, [300 if each == cells[0] else 941.4, 941.4], [0, 0]) for each in cells)
    held = {"rwnd_limited_us": 9 * 10**6, "busy_us": 10**7, "rtt_us": None, "series": Series()}
    first = replace(first, flows=(changing(first.flows[0], sender=held), first.flows[1]))
    (mesh,) = RunView.in_memory(run(plan(cells)), [first, *others]).meshes
    assert (mesh.ways["a", "b"].limit, mesh.ways["c", "d"].limit) == ("window", "line-rate")


def test_a_mesh_of_messages_that_come_back_has_round_trips_and_far_nodes_by_the_shortest_one() -> None:
    times_s = {ends: 0.008 if "d" in ends else 0.002 for (ends,) in order_pairs("abcd")}
    (mesh,) = RunView.in_memory(*messages_between("pingpong", times_s)).meshes
    trips = [mesh.ways["a", "b"].rtt_p50_us, mesh.answered[-1].rtt_p50_us]
    assert trips == pytest.approx([20, 80], rel=0.01)
    assert (mesh.known, mesh.slow, mesh.lopsided) == ([], (), ())
    assert [(far.node, round(far.rtt_us), round(far.others_us)) for far in mesh.far] == [("d", 80, 20)]
    (mesh,) = RunView.in_memory(*messages_between("blast", times_s)).meshes
    assert [known(mesh.ways[ends].goodput_mbps).mean for ends in (("a", "b"), ("a", "d"))] == [25.6, 6.4]
    assert [way.test for way in mesh.ways.values()] == list(range(1, 13))
    star = [ends for (ends,) in around("a", ABC)]
    late = {ends: Way(*ends, 1, None, None, rtt_p50_us=90.0 if ends == ("a", "b") else 20.0) for ends in star}
    assert far_nodes(ABC, late) == far_nodes(ABC, {}) == ()


def small(**sizes: int) -> list[tuple[Any, ...]]:
    """Return what is found; a sender's path MTU is that of its own interface, and its ceiling that of both ends."""
    ways = {}
    for (ends,) in order_pairs(tuple(sizes)):
        ceiling = 990.0 if min(sizes[node] for node in ends) > 1500 else 941.0
        ways[ends] = Way(*ends, 1, Estimate(900), 0.0, mtu=sizes[ends[0]], ceiling_mbps=ceiling)
    return [astuple(found) for found in small_frames(tuple(sizes), ways)]


def test_nodes_whose_paths_have_a_smaller_mtu_than_others_are_found_once() -> None:
    assert small(a=9000, b=9000, c=1500, d=9000) == [(("c",), 1500, 9000, 941, 990)]
    assert small(a=9000, b=1500, c=1500, d=9000) == [(("b", "c"), 1500, 9000, 941, 990)]
    assert small(a=1500, b=1500, c=1500) == []
