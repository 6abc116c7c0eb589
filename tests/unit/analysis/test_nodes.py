"""Which pair or node a change is said to be of: meshes of 3 to 12 nodes with faults of known truth, in every order."""

from collections.abc import Sequence

import pytest
from mesh_histories import Fault, History, Place, generate, judge, place, wrong_subjects

from rigctl.analysis.nights.regressions import Shift

MESH = ("a", "b", "c", "d")
A_SENDS = ("a", "sending")
LARGE = tuple("abcdefghijkl")


def named(shifts: Sequence[Shift]) -> list[tuple[Place, tuple[int, ...]]]:
    """Return what changed and the tests that are named, the worst first."""
    return [(place(shift), shift.series.tests) for shift in shifts]


def history(*faults: Fault, nodes: Sequence[str] = MESH, sigma: float = 0.001) -> History:
    last = max(at for own in faults for at in (own.begin, own.end) if at is not None)
    return History(tuple(nodes), last + 8, sigma, faults, "by hand")


PROOFS = 200
ALWAYS = 40
"""Number of generated histories, and how many of these are judged in `make test` too."""
MORE = (pytest.mark.torture, pytest.mark.long)


@pytest.mark.parametrize("seed", [*range(ALWAYS), *(pytest.param(seed, marks=MORE) for seed in range(ALWAYS, PROOFS))])
def test_no_wrong_subject_is_named_in_generated_histories(seed: int) -> None:
    made = generate(f"proof {seed}")
    assert wrong_subjects(made, made.asked()) == []


@pytest.mark.parametrize(
    ("faults", "nodes"),
    [
        # The case that was seen: two pairs of one sender, each for its own reason.
        ([Fault(("a", "b"), 0.92, 20), Fault(("a", "c"), 0.88, 35)], MESH),
        ([Fault(("b", "receiving"), 0.92, 20), Fault(("a", "c"), 0.88, 35)], MESH),
        ([Fault(("a", "b"), 0.92, 20), Fault(("a", "c"), 0.88, 35), Fault(("a", "d"), 0.9, 50)], MESH),
        ([Fault(("a", "c"), 0.80, 14), Fault(("a", "b"), 0.95, 19)], ("a", "b", "c")),
        ([Fault(A_SENDS, 0.92, 20), Fault(("a", "c"), 0.94, 30)], MESH),
        ([Fault(("a", "c"), 0.94, 20), Fault(A_SENDS, 0.92, 30)], MESH),
        ([Fault(A_SENDS, 0.92, 20, 40), Fault(("a", "c"), 0.94, 30)], MESH),
        ([Fault(("a", own), 0.90, 20) for own in "bcdef"], LARGE),
        # Made after the fix.
        ([Fault(("b", "a"), 1.07, 18), Fault(("c", "a"), 0.85, 26), Fault(("d", "a"), 0.93, 33)], MESH),
        ([Fault(("a", "receiving"), 0.93, 18), Fault(A_SENDS, 0.9, 25), Fault(("b", "a"), 0.9, 33)], ("a", "b", "c")),
        ([Fault(A_SENDS, 0.9, 20), Fault(("b", "sending"), 0.9, 20)], MESH),
    ],
)
def test_each_pair_is_judged_from_its_own_last_level(faults: list[Fault], nodes: Sequence[str]) -> None:
    made = history(*faults, nodes=nodes)
    assert wrong_subjects(made, made.every()) == []


def test_the_pair_that_changed_is_named_and_not_the_node_nor_the_test_that_did_not_change() -> None:
    seen = history(Fault(("a", "b"), 0.92, 20), Fault(("a", "c"), 0.88, 35)).seen()
    found = judge(seen, 36)
    assert named(found.news) == [(("a", "c"), (2,))]
    assert named(found.standing) == [(("a", "b"), (1,))]
    assert found.news[0].ratio == pytest.approx(0.88, abs=0.005)


@pytest.mark.parametrize(
    ("pairs", "nodes", "news"),
    [
        ("bcd", MESH, [(A_SENDS, (1, 2, 3))]),
        ("bc", MESH, [(A_SENDS, (1, 2))]),  # two of three
        ("b", MESH, [(("a", "b"), (1,))]),
        ("bc", ("a", "b", "c"), [(A_SENDS, (1, 2))]),
        ("bc", "abcde", [(("a", "b"), (1,)), (("a", "c"), (2,))]),  # two of four: not more than half
        ("bcd", "abcde", [(A_SENDS, (1, 2, 3))]),
        ("bcdef", LARGE, [((("a", own)), (number,)) for number, own in enumerate("bcdef", 1)]),
        ("bcdefg", LARGE, [(A_SENDS, (1, 2, 3, 4, 5, 6))]),
    ],
)
def test_a_node_is_named_only_if_more_than_half_of_its_pairs_changed_together(
    pairs: str, nodes: Sequence[str], news: list[tuple[Place, tuple[int, ...]]]
) -> None:
    made = history(*(Fault(("a", own), 0.9, 20) for own in pairs), nodes=nodes)
    assert sorted(named(judge(made.seen(), 21).news)) == news


def test_a_pair_that_changed_more_than_its_node_is_named_beside_it() -> None:
    seen = history(Fault(A_SENDS, 0.92, 20), Fault(("a", "d"), 0.85, 20)).seen()
    found = judge(seen, 21)
    assert {place(own) for own in found.news} == {A_SENDS, ("a", "d")}


def test_what_stands_of_a_pair_is_its_own_part_since_its_own_night() -> None:
    seen = history(Fault(A_SENDS, 0.92, 20), Fault(("a", "c"), 0.94, 30)).seen()
    found = judge(seen, 37)
    assert {place(own): own.change.at for own in found.standing} == {A_SENDS: 20, ("a", "c"): 30}
    pair = next(own for own in found.standing if place(own) == ("a", "c"))
    assert pair.ratio == pytest.approx(0.94, abs=0.005)
    assert pair.change.after == pytest.approx(940 * 0.92 * 0.94, rel=0.005)


@pytest.mark.parametrize(
    ("faults", "gradual"),
    [
        ([Fault(A_SENDS, 0.92, 20), Fault(("a", "c"), 0.88, 32)], False),
        ([Fault(("c", "receiving"), 0.95, 15), Fault(("a", "c"), 0.9, 32)], False),
        ([Fault(("a", "c"), 0.92, 20), Fault(("a", "c"), 0.88, 32)], True),
        ([Fault(("b", "c"), 0.92, 20), Fault(("a", "c"), 0.88, 32)], False),
    ],
)
def test_a_step_after_that_of_its_node_is_no_drift(faults: list[Fault], gradual: bool) -> None:
    found = judge(history(*faults).seen(), 33)
    [shift] = found.news
    assert (place(shift), shift.change.gradual) == (("a", "c"), gradual)
