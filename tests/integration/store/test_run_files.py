"""Whole runs as one file: what goes out of one store comes into another as it was; what is damaged is left out."""

import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import builders
import probing
import pytest
from cases import from_file

from rigctl.records import Acceptance, Bins, PortSeries, Repetition, RunInfo, RunStatus
from rigctl.store import Store, open_store
from rigctl.store.run_files import RunFileOutcome, pack_runs, take

FUZZED = int(os.environ.get("RIGCTL_FUZZED", "120"))
CELL = builders.cell(parallel=2)


def filled(store: Store, title: str = "Nachts, im Rack", at: float = 1e9) -> str:
    """Store a run with all that a repetition may have; return its id."""
    plan, facts = builders.plan([CELL], title=title), {"pi1": {"kernel": "6.1", "mtu": 1500}}
    run = store.begin(plan, {"rigctl": "1"}, facts, at + 0.1)
    ports = PortSeries("sw", "g1", "snmp", {"t_ns": [1, 2], "in_octets": [2**63, 2**64 - 2]})
    first = builders.repetition(CELL, counters=(ports,), probes=(probing.probes([100], [3000, None]),))
    binned = builders.changing(first.flows[0], receiver={"bins": Bins(5, 1000, (1, 2, 3))})
    store.add(run, replace(first, flows=(binned, *first.flows[1:])))
    store.add(run, builders.failed(CELL, 'pi1: said "no" 😀', repetition=2))
    store.history.tag(run, {"firmware": "1.2.3", "rigctl.confirms": "x"})
    store.history.accept(Acceptance(run, 2e9, "anna@lab", "new cable"))
    store.finish(run, RunStatus.COMPLETE, at + 60)
    return run


def whole(store: Store, run: str) -> tuple[RunInfo, list[Repetition], list[Acceptance]]:
    accepted = [levels for levels in store.history.accepted() if levels.run == run]
    return store.run(run), store.repetitions(run), accepted


def taken(store: Store, *paths: Path) -> list[RunFileOutcome]:
    return list(take(store, paths))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Store]:
    """The store of another controller."""
    with open_store(str(tmp_path / "elsewhere.db")) as opened:
        yield opened


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """The file of one run."""
    path = tmp_path / "runs.rigctl"
    with open_store("sqlite://") as store:
        path.write_bytes(pack_runs(store, [filled(store)]))
    return path


@pytest.fixture
def run(exported: Path) -> str:
    with open_store(str(exported), create=False) as file:
        return file.run().run


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as plain, plain:
        for statement in statements:
            plain.execute(statement)


def test_runs_come_into_another_store_as_they_were_and_back(store: Store, elsewhere: Store, tmp_path: Path) -> None:
    runs = sorted([filled(store), filled(store, "the other")])
    before = {run: whole(store, run) for run in runs}
    path = tmp_path / "two.rigctl"
    path.write_bytes(pack_runs(store, runs))
    assert taken(elsewhere, path) == [RunFileOutcome(run, new=True) for run in runs]
    for run in runs:
        store.remove(run)
    path.write_bytes(pack_runs(elsewhere, runs))
    assert taken(store, path) == [RunFileOutcome(run, new=True) for run in runs]
    assert {run: whole(store, run) for run in runs} == {run: whole(elsewhere, run) for run in runs} == before


def test_importing_twice_changes_nothing_and_adds_only_what_is_given_later(
    store: Store, exported: Path, run: str
) -> None:
    with open_store(str(exported), create=False) as file:  # which is a store
        assert (file.run_ids(), len(file.repetitions(run))) == ([run], 2)
    assert taken(store, exported, exported) == [RunFileOutcome(run, new=True), RunFileOutcome(run)]
    before = whole(store, run)
    store.history.untag(run, "rigctl.confirms")
    store.history.tag(run, {"firmware": "2", "night": "7"})
    assert taken(store, exported) == [RunFileOutcome(run, added=("tag rigctl.confirms",))]
    assert store.run(run).tags == {"firmware": "2", "night": "7", "rigctl.confirms": "x"}
    assert store.repetitions(run) == before[1]
    changed(exported, "UPDATE accepted SET because = 'newer cable'")
    assert taken(store, exported) == [RunFileOutcome(run)]


@from_file
def test_a_run_that_cannot_be_taken_is_left_out_and_named_and_the_others_come(
    elsewhere: Store, exported: Path, run: str, tmp_path: Path, statement: str, why: str
) -> None:
    other = tmp_path / "other.rigctl"
    with open_store("sqlite://") as store:
        beside = filled(store, "beside it", 1.1e9)
        other.write_bytes(pack_runs(store, [beside]))
    assert taken(elsewhere, exported) == [RunFileOutcome(run, new=True)]
    if "differs" not in why:
        elsewhere.remove(run)
    before = {known: whole(elsewhere, known) for known in elsewhere.run_ids()}
    changed(exported, statement)
    odd, good = taken(elsewhere, exported, other)
    assert why.replace("RUN", run) in odd.left_out
    assert str(exported) in odd.left_out
    assert odd.left_out.isprintable()
    assert good == RunFileOutcome(beside, new=True)
    assert {known: whole(elsewhere, known) for known in elsewhere.run_ids() if known != beside} == before


@from_file
def test_a_run_with_impossible_values_is_left_out(elsewhere: Store, exported: Path, statement: str) -> None:
    changed(exported, statement)
    assert [bool(each.left_out) for each in take(elsewhere, [exported])] == [True]
    assert elsewhere.run_ids() == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no file of runs: `rigctl export --format rigctl` writes such files"),
        (b"PK\x03\x04 a zip", "is no file of runs: `rigctl export"),
        (b'{\n\t"start":\t{}}\n', "Results of iperf3 need --format iperf3"),
        (b"\x1f\x8b\x08 and more", "compressed text of an early version"),
        (b"SQLite format 3\0 and no more", "is not a SQLite database"),
    ],
    ids=["empty", "a zip", "of iperf3", "of an early version", "cut off"],
)  # fmt: skip
def test_what_is_no_file_of_runs_is_named(elsewhere: Store, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.rigctl"
    path.write_bytes(content)
    (odd,) = taken(elsewhere, path)
    assert str(path) in odd.left_out
    assert words in odd.left_out


def test_a_newer_file_and_an_empty_one_are_named(elsewhere: Store, exported: Path) -> None:
    for statement, why in (
        ("UPDATE rigctl_schema SET version = 99", "was written by a newer rigctl"),
        ("UPDATE rigctl_schema SET version = 6", ""),
        ("DELETE FROM runs", "has no runs in it"),
    ):
        changed(exported, statement)
        assert why in taken(elsewhere, exported)[0].left_out


def test_a_folder_a_pipe_and_a_file_that_is_not_there_are_named(elsewhere: Store, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = taken(elsewhere, tmp_path, tmp_path / "pipe", tmp_path / "none")
    assert [each.left_out.partition(": ")[2] for each in found] == [
        *("is no file", "is no file", "cannot be read: No such file or directory")
    ]


def test_no_damage_of_a_file_is_a_traceback_or_a_store_that_cannot_be_read(elsewhere: Store, exported: Path) -> None:
    """Fuzzed: bytes changed, cut out and put in."""
    chance, content = random.Random(5417), exported.read_bytes()
    for _ in range(FUZZED):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 1, 3, 20))):
            at = chance.randrange(len(damaged))
            match chance.randrange(3):
                case 0:
                    damaged[at] = chance.randrange(256)
                case 1:
                    del damaged[at : at + chance.randrange(1, 50)]
                case _:
                    damaged[at:at] = chance.randbytes(chance.randrange(1, 5))
        exported.write_bytes(bytes(damaged))
        for each in taken(elsewhere, exported):
            assert each.left_out.isprintable()
            if each.new:
                whole(elsewhere, each.run)
                elsewhere.remove(each.run)
        assert elsewhere.run_ids() == []
