"""What pairs can have at once where they share a node's link or a trunk, worked out by hand for each case."""

from dataclasses import replace

import builders
import pytest

from rigctl.model.limits.ceilings import DataPath, Links, TrunkLink, trunk_link
from rigctl.records import Link, Trunk

GIGABIT = 10**9
TRUNK = TrunkLink(1_500_000_000, {"a": "left", "b": "right", "c": "left", "d": "right", "e": "left", "x": None})


def path(sender: str, receiver: str, rate_bps: int | None = GIGABIT, share: float = 0.9) -> DataPath:
    """Of whose rate `share` is payload."""
    return DataPath(sender, receiver, rate_bps, None if rate_bps is None else rate_bps * share / 1e6)


def at_once(*paths: DataPath, trunk: TrunkLink | None = None, **rates: int | None) -> float | None:
    nodes = {node for one in paths for node in (one.sender, one.receiver)}
    return Links(dict.fromkeys(nodes, GIGABIT) | rates, trunk).together_mbps(paths)


def test_no_path_and_a_path_of_unknown_ceiling_have_no_sum() -> None:
    assert at_once() is None
    assert at_once(path("a", "b"), path("c", "d", None)) is None
    assert at_once(path("a", "b"), DataPath("c", "d", GIGABIT, None)) is None
    assert at_once(path("a", "b"), DataPath("c", "d", None, 900.0)) is None


def test_pairs_of_their_own_add_up() -> None:
    assert at_once(path("a", "b")) == pytest.approx(900)
    assert at_once(path("a", "b"), path("c", "d"), path("e", "f")) == pytest.approx(2700)


def test_a_node_that_sends_twice_or_receives_twice_has_one_link_for_both() -> None:
    assert at_once(path("a", "b"), path("a", "c")) == pytest.approx(900)
    assert at_once(path("b", "a"), path("c", "a")) == pytest.approx(900)
    assert at_once(path("a", "b"), path("a", "b")) == pytest.approx(900)
    assert at_once(path("a", "b"), path("a", "b"), a=2 * GIGABIT, b=2 * GIGABIT) == pytest.approx(1800)


def test_a_link_carries_its_rate_in_each_direction() -> None:
    assert at_once(path("a", "b"), path("b", "a")) == pytest.approx(1800)
    assert at_once(path("a", "b"), path("b", "c"), path("c", "a")) == pytest.approx(2700)


def test_a_faster_link_is_shared_by_as_many_slower_ones_as_it_holds() -> None:
    paths = [path("s", node) for node in "abc"]
    assert at_once(*paths, s=10 * GIGABIT) == pytest.approx(2700)
    assert at_once(*paths, s=2 * GIGABIT) == pytest.approx(1800)
    assert at_once(*[path(node, "s") for node in "abc"], s=2 * GIGABIT) == pytest.approx(1800)


def test_a_node_whose_rate_is_not_known_is_taken_to_have_that_of_its_path() -> None:
    assert at_once(path("a", "b"), path("a", "c"), a=None) == pytest.approx(900)


def test_what_one_sender_leaves_another_takes() -> None:
    # a feeds b and c, d feeds c: a → b and d → c, or the sum would be half as large.
    assert at_once(path("a", "c"), path("a", "b"), path("d", "c")) == pytest.approx(1800)
    # The same in a chain, where an early choice has to be taken back.
    chain = [path("a", "x"), path("a", "y"), path("b", "x"), path("b", "z"), path("c", "y")]
    assert at_once(*chain) == pytest.approx(2700)


def test_the_smaller_share_of_payload_is_that_of_its_own_path() -> None:
    assert at_once(path("a", "b", share=0.5), path("c", "d", share=0.9)) == pytest.approx(1400)
    assert at_once(path("a", "b", share=0.9), path("a", "c", share=0.5)) == pytest.approx(900)


def test_pairs_over_a_trunk_share_it_in_each_direction() -> None:
    there = [path("a", "b"), path("c", "d")]
    assert at_once(there[0], trunk=TRUNK) == pytest.approx(900)
    assert at_once(*there, trunk=TRUNK) == pytest.approx(1350)
    assert at_once(path("b", "a"), path("d", "c"), trunk=TRUNK) == pytest.approx(1350)
    assert at_once(path("a", "b"), path("d", "c"), trunk=TRUNK) == pytest.approx(1800)
    assert at_once(*there, path("b", "a"), path("d", "c"), trunk=TRUNK) == pytest.approx(2700)


def test_what_does_not_cross_the_trunk_is_free_of_it() -> None:
    assert at_once(path("a", "c"), path("c", "a"), trunk=TRUNK) == pytest.approx(1800)
    assert at_once(path("a", "b"), path("c", "d"), path("b", "x"), trunk=TRUNK) == pytest.approx(1350 + 900)
    slow = replace(TRUNK, rate_bps=100_000_000)
    assert at_once(path("a", "c"), path("c", "e"), trunk=slow) == pytest.approx(1800)
    assert at_once(path("a", "b"), path("c", "e"), trunk=slow) == pytest.approx(90 + 900)


def test_a_trunk_wider_than_all_links_limits_nothing() -> None:
    wide = replace(TRUNK, rate_bps=10**10)
    assert at_once(path("a", "b"), path("c", "d"), trunk=wide) == pytest.approx(1800)
    # Through the trunk any sender could reach any receiver: the links of the pairs still hold.
    assert at_once(path("a", "b"), path("a", "d"), trunk=wide) == pytest.approx(900)


@pytest.mark.parametrize(
    ("sender", "receiver", "way"),
    [
        ("a", "b", ("left", "right")),
        ("b", "a", ("right", "left")),
        ("a", "c", None),
        ("a", "x", None),
        ("x", "a", None),
        ("nobody", "a", None),
        ("a", "nobody", None),
    ],
)
def test_a_path_crosses_the_trunk_between_two_switches(sender: str, receiver: str, way: tuple[str, str] | None) -> None:
    assert TRUNK.way(path(sender, receiver)) == way


def test_the_trunk_of_a_plan_holds_the_nodes_at_its_ends() -> None:
    links = {"a": Link(1, 1, switch="s"), "b": Link(1, 1, switch="t"), "c": Link(1, 1, switch="u"), "d": Link(1, 1)}
    plan = replace(builders.plan(), links=links, trunk=Trunk(("s", "t"), 5))
    assert trunk_link(plan) == TrunkLink(5, {"a": "s", "b": "t"})
    assert trunk_link(replace(plan, trunk=Trunk(("s", "t"), None))) is None
    assert trunk_link(replace(plan, trunk=None)) is None


def test_the_load_of_a_path_is_that_of_the_fullest_link_that_it_shares() -> None:
    paths = [path("a", "b"), path("a", "c"), path("d", "c"), path("c", "e")]
    links = Links(dict.fromkeys("abcde", GIGABIT), TRUNK)
    taken = links.taken(zip(paths, (300.0, 450.0, None, 90.0), strict=True))
    assert taken["from a"] == pytest.approx([1 / 3, 1 / 2])
    assert taken["to c"] == [pytest.approx(1 / 2), None]
    assert taken["trunk left to right"] == pytest.approx([300 / 900 / 1.5])
    loads = [links.load(own, taken) for own in paths]
    assert [load and (load.link, round(load.share, 3)) for load in loads] == [
        ("from a", 0.833),
        ("from a", 0.833),
        None,  # what another pair takes of its link is unknown
        None,  # no link is shared
    ]
