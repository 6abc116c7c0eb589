"""Meshes: found among the tests of a run; slow nodes named once, pairs whose directions differ where no node is slow.

The constants were chosen on `TUNED`; `PROVED` has another seed, fixed before, and was only looked at afterwards.
"""

from dataclasses import replace
from itertools import permutations

import pytest
from builders import asking, cell, changing, failed, plan, repetition, run
from meshes import Made, made_meshes, messages_between

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import Estimate
from rigctl.analysis.views.mesh import DIFFER, Ends, Mesh, Way, far_nodes, lopsided, slow_nodes, small_frames
from rigctl.model.rounds import around, ordered
from rigctl.records import Cell, Direction, Link, Pair, Repetition, Series, Status
from rigctl.settings import WINDOW

TUNED, PROVED, COUNT = 1, 20260, 400
ABC = ("a", "b", "c", "d")
BOTH = ("sending", "receiving")
ROUNDS = [(Pair(a, b), Pair(c, d)) for a, b, c, d in ("abcd", "badc", "acbd", "cadb", "adbc", "dacb")]


def ways(rates: dict[str, float], spread: float | None = None) -> dict[Ends, Way]:
    """All ways between four nodes at 9400 Mbit/s, but for `rates`: `ab` from a to b, `a>` all of a's, `>a` all to a."""
    found = {}
    for number, (sender, receiver) in enumerate(permutations(ABC, 2), 1):
        known = [rates[key] for key in (f"{sender}>", f">{receiver}", sender + receiver) if key in rates]
        found[sender, receiver] = Way(sender, receiver, number, Estimate(min(known, default=9400.0), spread), 0.0)
    return found


def pairs(rates: dict[str, float], spread: float | None = None) -> list[str]:
    made = ways(rates, spread)
    return ["".join(pair.slower.ends) for pair in lopsided(ABC, made, slow_nodes(ABC, made))]


@pytest.mark.parametrize("seed", [TUNED, PROVED])
def test_slow_nodes_and_faulty_pairs_of_made_up_meshes_are_named_and_no_others(seed: int) -> None:
    meshes = made_meshes(seed, COUNT)
    for number, made in enumerate(meshes):
        slow = slow_nodes(made.nodes, made.ways)
        assert {node.node: node.roles for node in slow} == made.slow, number
        found = {pair.slower.ends for pair in lopsided(made.nodes, made.ways, slow)}
        assert set(made.faults) <= found, number
        assert not [ends for ends in found - set(made.faults) if _slow_way(made, ends)], number
    assert sum(bool(made.slow) for made in meshes) > COUNT / 3
    assert sum(len(made.faults) for made in meshes) > COUNT / 3


def _slow_way(made: Made, ends: Ends) -> bool:
    return "sending" in made.slow.get(ends[0], ()) or "receiving" in made.slow.get(ends[1], ())


@pytest.mark.parametrize(
    ("rates", "slow", "differ"),
    [
        ({}, {}, []),
        ({"a>": 3000}, {"a": ("sending",)}, []),
        ({">c": 3000}, {"c": ("receiving",)}, []),
        ({"b>": 3000, ">b": 2900}, {"b": BOTH}, []),
        ({"a>": 3000, ">a": 3000, "b>": 3000, ">b": 3000}, {"a": BOTH, "b": BOTH}, []),
        ({"a>": 3000, ">b": 2000}, {"a": ("sending",), "b": ("receiving",)}, []),
        ({"a>": 8800}, {}, []),
        ({"ab": 3000, "ac": 3000}, {}, ["ab", "ac"]),
        ({"ab": 3000, "ba": 3000, "cd": 3000, "dc": 3000}, {}, []),
        ({"ab": 8400}, {}, ["ab"]),
        ({"ab": 8500}, {}, []),
        ({"ab": 7000, "cd": 5000}, {}, ["cd", "ab"]),
        ({"a>": 3000, "ba": 2000}, {"a": ("sending",)}, ["ba"]),
        ({"a>": 3000, "ab": 1500}, {"a": ("sending",)}, ["ab"]),
        ({"a>": 3000, "ab": 2400}, {"a": ("sending",)}, []),
    ],
)
def test_a_node_is_slow_with_everybody_and_explains_directions_that_differ(
    rates: dict[str, float], slow: dict[str, tuple[str, ...]], differ: list[str]
) -> None:
    assert {node.node: node.roles for node in slow_nodes(ABC, ways(rates))} == slow
    assert pairs(rates) == differ


def test_a_slow_node_has_the_medians_of_its_pairs_and_of_those_without_slow_nodes() -> None:
    (slow,) = slow_nodes(ABC, ways({"a>": 3000, "ab": 2800, "bc": 9300}))
    assert (slow.mbps, slow.others_mbps) == (3000, 9400)


def test_a_difference_within_the_spread_of_repetitions_is_not_reported() -> None:
    assert pairs({"ab": 7000}, spread=1100) == ["ab"]
    assert pairs({"ab": 7000}, spread=1300) == []
    assert DIFFER < 1 - 7000 / 9400


def meshes_of(cells: list[Cell], mbps: float = 900) -> tuple[Mesh, ...]:
    measured = [repetition(one, [mbps + 5 * one.number] * len(one.streams), [3] * len(one.streams)) for one in cells]
    return RunView(run(plan(cells)), measured).meshes


def mesh_cells(nodes: str = "abc", *points: dict[str, object]) -> list[Cell]:
    ends = list(permutations(nodes, 2))
    made = [asking(cell(pairs=(Pair(*pair),)), **point) for pair in ends for point in points or ({},)]
    return [replace(each, number=number) for number, each in enumerate(made, 1)]


def test_a_run_of_every_ordered_pair_is_a_mesh_with_the_numbers_of_its_tests() -> None:
    (mesh,) = meshes_of(mesh_cells())
    way = mesh.ways["b", "a"]
    assert (mesh.nodes, len(mesh.ways)) == (("a", "b", "c"), 6)
    assert (way.test, round(way.mbps or 0), way.retransmits, way.limit is None) == (3, 915, 3, False)


def test_each_point_of_the_other_axes_is_a_mesh_of_its_own() -> None:
    found = meshes_of(mesh_cells("abc", {"window_bytes": 65536}, {"window_bytes": 131072}))
    assert [mesh.point[WINDOW] for mesh in found] == [65536, 131072]
    assert [mesh.ways["a", "b"].test for mesh in found] == [1, 2]


def test_rounds_of_disjoint_pairs_are_a_mesh_and_pairs_that_share_a_node_are_none() -> None:
    cells = [cell(number, pairs=pairs) for number, pairs in enumerate(ROUNDS, 1)]
    (mesh,) = meshes_of(cells)
    assert len(mesh.ways) == 12
    assert mesh.ways["a", "b"].limit is not None
    shared = [cell(1, pairs=(Pair("a", "b"), Pair("a", "c"))), *mesh_cells()[2:]]
    assert meshes_of([replace(each, number=number) for number, each in enumerate(shared, 1)]) == ()


def test_an_incomplete_mesh_two_nodes_one_direction_only_and_a_star_are_no_mesh() -> None:
    assert meshes_of(mesh_cells()[:-1]) == ()
    assert meshes_of(mesh_cells("ab")) == ()
    assert meshes_of([cell(1, pairs=(Pair("a", "b"),)), cell(2, pairs=(Pair("a", "c"),))]) == ()
    assert meshes_of([cell(number, pairs=(Pair(*ends),)) for number, (ends,) in enumerate(around("a", ABC), 1)]) == ()


def test_a_way_without_a_result_is_in_the_mesh_and_not_known() -> None:
    cells = mesh_cells()
    measured = [repetition(each, [900], [0]) for each in cells[1:]]
    (mesh,) = RunView(run(plan(cells)), [failed(cells[0]), *measured]).meshes
    assert mesh.ways["a", "b"].mbps is None
    assert len(mesh.known) == 5
    assert mesh.lopsided == ()


def test_a_run_without_any_result_is_no_mesh() -> None:
    cells = mesh_cells()
    assert RunView(run(plan(cells)), [failed(each) for each in cells]).meshes == ()
    assert RunView(run(plan(cells)), [repetition(each, [900], status=Status.INVALID) for each in cells]).meshes == ()


def test_with_both_directions_at_once_a_way_is_the_mean_of_its_two_tests() -> None:
    cells = mesh_cells("abc", {"direction": Direction.BOTH})
    speeds = {("a", "b"): [900, 500], ("b", "a"): [510, 910]}
    measured = [repetition(each, speeds.get(each.streams[0].ends, [900, 900]), [0, 0]) for each in cells]
    (mesh,) = RunView(run(plan(cells)), measured).meshes
    assert round(mesh.ways["a", "b"].mbps or 0) == 905
    assert [pair.slower.ends for pair in mesh.lopsided] == [("b", "a")]


def test_reverse_ways_are_those_of_the_data() -> None:
    cells = [asking(each, direction=Direction.REVERSE) for each in mesh_cells()]
    (mesh,) = meshes_of(cells)
    assert mesh.ways["b", "a"].test == 1


def test_unlike_pairs_of_one_round_have_limits_of_their_own() -> None:
    cells = [cell(number, pairs=pairs, window_bytes=None, mss=None) for number, pairs in enumerate(ROUNDS, 1)]

    def measured(each: Cell) -> Repetition:
        made = repetition(each, [300 if stream.ends == ("a", "b") else 941.4 for stream in each.streams], [0, 0])
        held = {"rwnd_limited_us": 9 * 10**6, "busy_us": 10**7, "series": Series()}
        flows = (changing(flow, sender=held if flow.stream.ends == ("a", "b") else {}) for flow in made.flows)
        return replace(made, flows=tuple(flows))

    links = dict.fromkeys("abcd", Link(10**9, 1500))
    (mesh,) = RunView(run(plan(cells, links=links)), [measured(each) for each in cells]).meshes
    assert (mesh.ways["a", "b"].limit, mesh.ways["c", "d"].limit) == ("window", "line-rate")


def test_a_mesh_of_messages_that_come_back_has_round_trips_and_no_goodput() -> None:
    times_s = dict.fromkeys([ends for (ends,) in ordered("abcd")], 0.002)
    late = {ends: 0.008 for ends in times_s if "d" in ends}
    (mesh,) = RunView(*messages_between("pingpong", times_s | late)).meshes
    assert mesh.ways["a", "b"].rtt_p50_us == pytest.approx(20, rel=0.01)
    assert (mesh.known, mesh.slow, mesh.lopsided) == ([], (), ())
    assert [(far.node, round(far.rtt_us), round(far.others_us)) for far in mesh.far] == [("d", 80, 20)]
    assert mesh.answered[-1].rtt_p50_us == pytest.approx(80, rel=0.01)


def test_no_node_is_far_whose_shortest_round_trip_is_the_usual_one() -> None:
    star = [ends for (ends,) in around("a", ABC)]
    trips = {ends: Way(*ends, 1, None, None, rtt_p50_us=90.0 if ends == ("a", "b") else 20.0) for ends in star}
    assert far_nodes(ABC, trips) == ()
    assert far_nodes(ABC, {}) == ()


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
