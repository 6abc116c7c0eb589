"""What a store keeps of its runs beside what they measured."""

import re
from dataclasses import replace

import builders
import pytest
from sqlalchemy import text

from rigctl.base.errors import InputError, RigError
from rigctl.records import Accepted, Night, NightOutcome, Unmet
from rigctl.store import Store
from rigctl.store.history import writing


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


def test_what_a_night_found_is_kept_in_fields(store: Store) -> None:
    unmet = (Unmet("goodput >= 330M per pair", "goodput 286 Mbit/s in test 1, pc1 → pc4."), Unmet("b", "c"))
    night = Night("gigablox", "lab", 1.0, 2.0, 3.0, NightOutcome.UNEXPECTED, None, None, unmet, "slower", 4.0)
    store.history.put_night(night)
    assert store.history.nights() == [night]
    store.history.put_night(replace(night, unmet=(Unmet("\x1b[2J", "a \ud800 b"),)))
    assert store.history.nights()[0].unmet == (Unmet("?[2J", "a ? b"),)


@pytest.mark.parametrize("change", ["unmet='7'", "unmet='[1]'", "next_due_at=1e300", "outcome='odd'", "due_at=-1"])
def test_a_damaged_night_is_told_and_hides_none(store: Store, change: str, caplog: pytest.LogCaptureFixture) -> None:
    whole = Night("gigablox", "lab", 2.0, 3.0, 4.0, NightOutcome.QUIET, None, None)
    for night in (replace(whole, due_at=1.0), whole):
        store.history.put_night(night)
    with writing(store._engine) as connection:
        connection.execute(text(f"UPDATE nights SET {change} WHERE due_at = 1"))
    assert store.history.nights() == [whole]
    assert [bool(re.search(r"night 1 can't be read \(", each.getMessage())) for each in caplog.records] == [True]


def test_a_table_with_other_columns_is_one_clear_message(store: Store) -> None:
    with writing(store._engine) as connection:
        connection.execute(text("ALTER TABLE nights DROP COLUMN unmet"))
    with pytest.raises(InputError, match="another version of rigctl made it"):
        store.history.nights()
    with pytest.raises(RigError, match="another version of rigctl made it"):
        store.history.put_night(Night("gigablox", "lab", 1.0, None, None, None, None, None))


def test_what_belongs_to_a_run_goes_with_it(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {"pi1": {}}, 1.0, tags={"a": "b"})
    store.add(run, builders.repetition(builders.cell()))
    store.history.accept(Accepted(run, 1.0, "anna@lab", "first"))
    store.remove(run)
    assert (store.run_ids(), store.history.accepted(), store.repetitions(run)) == ([], [], [])


def test_a_fact_with_a_nul_is_stored_with_a_mark_in_its_place(store: Store) -> None:
    info = store.run(store.begin(builders.plan(notes="a\0b"), {"rigctl": "\0"}, {"pi1": {"kernel": "6\0"}}, 1.0))
    assert (info.plan.notes, info.versions, info.facts) == ("a?b", {"rigctl": "?"}, {"pi1": {"kernel": "6?"}})
