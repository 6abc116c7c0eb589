"""What a store keeps of its runs beside what they measured."""

from dataclasses import replace

import builders

from rigctl.records import Accepted, Night, NightOutcome
from rigctl.store import Store


def test_a_run_has_the_tags_it_was_given_last(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 1.0, tags={"firmware": "1.2.2"})
    other = store.begin(builders.plan(), {}, {}, 2.0)
    assert store.run(run).tags == {"firmware": "1.2.2"}
    store.history.tag(run, {"firmware": "1.2.3", "switch": "Grün 😀"})
    assert store.run(run).tags == {"firmware": "1.2.3", "switch": "Grün 😀"}
    store.history.untag(run, "firmware")
    assert store.run(run).tags == {"switch": "Grün 😀"}
    assert store.run(other).tags == {}


def test_accepted_levels_are_kept_with_who_when_and_why(store: Store) -> None:
    runs = [store.begin(builders.plan(), {}, {}, at) for at in (1.0, 2.0)]
    first = Accepted(runs[0], 10.5, "anna@lab", "new cable")
    second = Accepted(runs[1], 9.5, "bob@lab", "new switch")
    store.history.accept(first)
    store.history.accept(second)
    assert store.history.accepted() == [second, first]
    store.history.accept(replace(first, because="newer cable"))
    assert store.history.accepted() == [second, replace(first, because="newer cable")]


def test_a_night_is_kept_and_outlives_its_run(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 1.0)
    night = Night("gigablox", "lab", 86400.5, 86401.0, None, None, run, None)
    store.history.put_night(night)
    assert store.history.nights() == [night]
    ended = replace(night, ended_at=86500.0, outcome=NightOutcome.QUIET)
    store.history.put_night(ended)
    assert store.history.nights("gigablox", "lab") == [ended]
    assert store.history.nights("gigablox", "other") == []
    store.remove(run)
    assert store.history.nights() == [replace(ended, run=None)]


def test_what_belongs_to_a_run_goes_with_it(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {"pi1": {}}, 1.0, tags={"a": "b"})
    store.add(run, builders.repetition(builders.cell()))
    store.history.accept(Accepted(run, 1.0, "anna@lab", "first"))
    store.remove(run)
    assert (store.run_ids(), store.history.accepted(), store.repetitions(run)) == ([], [], [])


def test_a_text_with_a_nul_is_stored_with_a_mark_in_its_place(store: Store) -> None:
    run = store.begin(builders.plan(title="a\0b"), {"rigctl": "\0"}, {"pi1": {"kernel": "6\0"}}, 1.0)
    store.add(run, builders.failed(builders.cell(), "pi1: said \0"))
    store.history.tag(run, {"note": "\0"})
    info = store.run(run)
    assert (info.plan.title, info.versions, info.facts) == ("a?b", {"rigctl": "?"}, {"pi1": {"kernel": "6?"}})
    assert store.repetitions(run)[0].reason == "pi1: said ?"
    assert info.tags == {"note": "?"}
