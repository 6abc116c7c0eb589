"""Runs of a store: found, listed, written by several at once, on a full disk; what is kept beside what they hold."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import builders
import pytest
import writes
from many_nights import change
from processes import DEADLINE_S, mounted
from sites import weeks

from rigctl.base.errors import InputError, RigError
from rigctl.records import Acceptance, Night, NightOutcome, RunStatus, Unmet
from rigctl.store import Store, open_store, run_files
from rigctl.store.run_files import pack_runs, take
from rigctl.store.store import new_run_id, short_id, writing

RUNS = 3
NAMES = ("one", "other")


def test_an_open_store_is_read_and_written_by_others_and_leaves_nothing_when_it_is_closed(address: str) -> None:
    with open_store(address) as writer:
        run = writer.begin(builders.plan(), {}, {}, 1.0)
        with open_store(address) as other:
            writer.add(run, builders.failed(builders.cell()))
            assert len(other.repetitions(run)) == 1
            later = other.begin(builders.plan(), {}, {}, 2.0)
        assert writer.run_ids() == [run, later]
    if "://" not in address:
        assert [path.name for path in Path(address).parent.glob(f"{Path(address).name}*")] == [Path(address).name]


def test_ids_sort_by_time_and_a_run_is_found_by_any_unique_beginning_and_by_its_end(store: Store) -> None:
    assert new_run_id(builders.STARTED_AT).startswith("20261120-214501-")
    with pytest.raises(InputError, match=r"has no runs yet. Start one with `rigctl run`"):
        store.run(None)
    early = store.begin(builders.plan(), {}, {}, builders.STARTED_AT)
    late = store.begin(builders.plan(), {}, {}, builders.STARTED_AT + 86400.5)
    assert store.run(None).run == late
    assert store.run("20261120").run == early
    assert store.run(early).run == early
    assert [store.run_id(name) for name in ("latest", "latest~0", "latest~1")] == [late, late, early]
    assert store.run_id(short_id(early)) == early
    refusals = {"2026": "is not unique: .*Give more", "%": 'no run "%"'}
    refusals |= {"latest~2": "the store has 2 runs", "latest~x": 'no run "latest~x"'}
    for name, refusal in refusals.items():
        with pytest.raises(InputError, match=refusal):
            store.run(name)
    wrong_clock = store.begin(builders.plan(), {}, {}, time.time() + 400 * 86400)
    assert [store.run_id(name) for name in ("latest", "latest~1", "latest~2")] == [late, early, wrong_clock]


def test_how_many_cells_were_measured_is_known_without_reading_their_series(store: Store, run: str) -> None:
    for cell, number in ((1, 1), (2, 1), (2, 2)):
        store.add(run, builders.repetition(builders.cell(cell), number=number))
    store.add(run, builders.failed(builders.cell(3)))
    assert store.measured() == {run: {"ok": 2, "failed": 1}}


def test_two_controllers_that_write_at_once_to_a_new_store_lose_nothing(address: str) -> None:
    spawning = get_context("spawn")
    ready = spawning.Barrier(len(NAMES))
    both = [spawning.Process(target=writes.write, args=(address, name, RUNS, ready), daemon=True) for name in NAMES]
    for process in both:
        process.start()
    for process in both:
        process.join(DEADLINE_S)
    assert [process.exitcode for process in both] == [0, 0]
    cells = [builders.cell(number) for number in range(1, writes.CELLS + 1)]
    with open_store(address, create=False) as store:
        infos = [store.run(run) for run in store.run_ids()]
        every = [(name, str(number)) for name in NAMES for number in range(RUNS)]
        assert sorted((info.plan.title, info.tags["number"]) for info in infos) == every
        for info in infos:
            assert info.status is RunStatus.COMPLETE
            assert info.tags["by"] == info.plan.title == info.facts["pi1"]["by"]
            assert store.repetitions(info.run) == [builders.repetition(cell) for cell in cells]
        assert len(store.history.accepted()) == len(NAMES) * RUNS
        assert [night.due_at for night in store.history.nights()] == [float(number) for number in range(RUNS)]


def test_a_writer_that_waits_too_long_says_who_holds_the_store(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rigctl.store.open._BUSY_MS", 50)
    monkeypatch.setattr("rigctl.store.postgresql._WAIT_MS", 50)
    with open_store(address) as one, open_store(address) as other:
        run = one.begin(builders.plan(), {}, {}, 1.0)
        with writing(one.engine), pytest.raises(RigError, match=r"is locked by another"):
            other.add(run, builders.failed(builders.cell()))
        other.add(run, builders.failed(builders.cell()))
        assert len(one.repetitions(run)) == 1


def test_a_run_has_the_tags_it_was_given_last(store: Store) -> None:
    run = store.begin(builders.plan(), {}, {}, 1.0, tags={"firmware": "1.2.2"})
    other = store.begin(builders.plan(), {}, {}, 2.0)
    assert store.run(run).tags == {"firmware": "1.2.2"}
    store.history.tag(run, {"firmware": "1.2.3", "switch": "Grün 😀"})
    assert store.run(run).tags == {"firmware": "1.2.3", "switch": "Grün 😀"}
    store.history.untag(run, "firmware")
    assert store.run(run).tags == {"switch": "Grün 😀"}
    assert store.run(other).tags == {}


def test_accepted_levels_are_kept_with_who_when_and_why_and_all_of_a_run_goes_with_it(store: Store) -> None:
    runs = [store.begin(builders.plan(), {}, {"pi1": {}}, at, tags={"a": "b"}) for at in (1.0, 2.0)]
    store.add(runs[0], builders.repetition(builders.cell()))
    first = Acceptance(runs[0], 10.5, "anna@lab", "new cable")
    second = Acceptance(runs[1], 9.5, "bob@lab", "new switch")
    store.history.accept(first)
    store.history.accept(second)
    assert store.history.accepted() == [second, first]
    store.history.accept(replace(first, because="newer cable"))
    assert store.history.accepted() == [second, replace(first, because="newer cable")]
    store.remove(runs[0])
    assert (store.run_ids(), store.history.accepted(), store.repetitions(runs[0])) == (runs[1:], [second], [])


def test_a_night_is_kept_and_outlives_its_run(store: Store, run: str) -> None:
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


@pytest.mark.parametrize("damage", ["unmet='7'", "unmet='[1]'", "next_due_at=1e300", "outcome='odd'", "due_at=-1"])
def test_a_damaged_night_is_told_and_hides_none(store: Store, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    whole = Night("gigablox", "lab", 2.0, 3.0, 4.0, NightOutcome.QUIET, None, None)
    for night in (replace(whole, due_at=1.0), whole):
        store.history.put_night(night)
    change(store, f"UPDATE nights SET {damage} WHERE due_at = 1")
    assert store.history.nights() == [whole]
    assert [bool(re.search(r"night 1 can't be read \(", each.getMessage())) for each in caplog.records] == [True]


def test_a_table_with_other_columns_is_one_clear_message(store: Store) -> None:
    change(store, "ALTER TABLE nights DROP COLUMN unmet")
    with pytest.raises(InputError, match="another version of rigctl made it"):
        store.history.nights()
    with pytest.raises(RigError, match="another version of rigctl made it"):
        store.history.put_night(Night("gigablox", "lab", 1.0, None, None, None, None, None))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounts a file system")
    with mounted(tmp_path / "small", "size=400k") as made:
        yield made


def test_an_import_keeps_what_it_has_stored_and_goes_on(
    tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(tmp_path / "all.db")) as store:
        weeks(store, range(20))
        names = store.run_ids()
        (tmp_path / "f.rigctl").write_bytes(pack_runs(store, names))
    with open_store(str(disk / "store.db")) as store:
        assert ["twice the file is needed" in each.left_out for each in take(store, [tmp_path / "f.rigctl"])] == [True]
        assert store.run_ids() == []
        came = []
        # As if another program filled the disk afterwards.
        monkeypatch.setattr(run_files, "disk_usage", lambda _: SimpleNamespace(free=2**40))
        with pytest.raises(RigError, match="disk is full"):
            for each in take(store, [tmp_path / "f.rigctl"]):
                came.append(each.run)
        assert 0 < len(came) < len(names)
        assert store.run_ids() == came
        os.system(f"mount -o remount,size=8m {disk}")
        assert [each.new for each in take(store, [tmp_path / "f.rigctl"])] == [run not in came for run in names]
        assert store.run_ids() == names


def test_tags_and_removals_say_that_the_disk_is_full(disk: Path) -> None:
    with open_store(str(disk / "store.db")) as store:
        (run,) = weeks(store, [0])
    with (disk / "filling").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(1024))
    for done in ("tag", "remove"):
        with pytest.raises((RigError, InputError), match="the disk is full"):
            with open_store(str(disk / "store.db"), create=False) as store:
                store.history.tag(run, {"a": "b" * 5000}) if done == "tag" else store.remove(run)
    (disk / "filling").unlink()
    with open_store(str(disk / "store.db"), create=False) as store:
        assert store.run_ids() == [run]


@pytest.mark.parametrize(("ahead_s", "is_later"), [(-1.0, False), (30.0, False), (90.0, True), (1.99e8, True)])
def test_a_run_that_is_later_by_its_clock_is_named(store: Store, ahead_s: float, is_later: bool) -> None:
    now_s = 1_595_959_285.0  # 2020-07-28, of a Raspberry Pi that has just started
    assert store.later_run(now_s) is None
    store.begin(builders.plan(), {}, {}, now_s - 9e6)
    assert store.later_run(now_s) is None
    run = store.begin(builders.plan(), {}, {}, now_s + ahead_s)
    assert store.later_run(now_s) == (run if is_later else None)
