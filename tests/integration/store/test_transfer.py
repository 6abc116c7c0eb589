"""Whole runs as one file: what goes out of one store comes into another as it was, or not at all."""

import base64
import gzip
import hashlib
import json
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import builders
import probing
import pytest

from rigctl.base.errors import InputError
from rigctl.records import Accepted, Bins, PortSeries, Repetition, RunInfo, RunStatus, Series
from rigctl.store import Store, open_store
from rigctl.store.rows import pack, plan_json
from rigctl.store.transfer import Taken, packed

FUZZED = int(os.environ.get("RIGCTL_FUZZED", "120"))
Change: TypeAlias = Callable[[list[Any]], list[Any]]
"""Changes the lines of a file."""
CELL = builders.cell(parallel=2)


def filled(store: Store, title: str = "Nachts, im Rack") -> str:
    """Store a run with all that a repetition may have; return its id."""
    plan, facts = builders.plan([CELL], title=title), {"pi1": {"kernel": "6.1", "mtu": 1500}}
    run = store.begin(plan, {"rigctl": "1"}, facts, 1e9 + 0.1)
    ports = PortSeries("sw", "g1", "snmp", {"t_ns": [1, 2], "in_octets": [2**63, 2**64 - 1]})
    first = builders.repetition(CELL, counters=(ports,), probes=(probing.probes([100], [3000, None]),))
    binned = builders.changing(first.flows[0], receiver={"bins": Bins(5, 1000, (1, 2, 3))})
    store.add(run, replace(first, flows=(binned, *first.flows[1:])))
    store.add(run, builders.failed(CELL, 'pi1: said "no" 😀', repetition=2))
    store.history.tag(run, {"firmware": "1.2.3", "rigctl.confirms": "x"})
    store.history.accept(Accepted(run, 2e9, "anna@lab", "new cable"))
    store.finish(run, RunStatus.COMPLETE, 1e9 + 60)
    return run


def whole(store: Store, run: str) -> tuple[RunInfo, list[Repetition], list[Accepted]]:
    accepted = [levels for levels in store.history.accepted() if levels.run == run]
    return store.run(run), store.repetitions(run), accepted


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Store]:
    """The store of another controller."""
    with open_store(str(tmp_path / "elsewhere.db")) as opened:
        yield opened


@pytest.fixture
def exported(store: Store, tmp_path: Path) -> Path:
    path = tmp_path / "runs.rigctl"
    path.write_bytes(store.transfer.packed([filled(store)]))
    return path


def test_runs_come_into_another_store_as_they_were_and_back(store: Store, elsewhere: Store, tmp_path: Path) -> None:
    runs = sorted([filled(store), filled(store, "the other")])
    path = tmp_path / "two.rigctl"
    path.write_bytes(store.transfer.packed(runs))
    assert elsewhere.transfer.take([path]) == [Taken(run, True) for run in runs]
    before = {run: whole(store, run) for run in runs}
    assert {run: whole(elsewhere, run) for run in runs} == before
    for run in runs:
        store.remove(run)
    assert elsewhere.transfer.packed(runs) == path.read_bytes()
    path.write_bytes(elsewhere.transfer.packed(runs))
    store.transfer.take([path])
    assert {run: whole(store, run) for run in runs} == before


def test_importing_twice_changes_nothing(store: Store, exported: Path, elsewhere: Store) -> None:
    (run,) = store.run_ids()
    assert store.transfer.take([exported]) == [Taken(run, False)]
    elsewhere.transfer.take([exported])
    before = elsewhere.transfer.packed([run])
    assert elsewhere.transfer.take([exported, exported]) == [Taken(run, False)] * 2
    assert elsewhere.transfer.packed([run]) == before


def test_a_run_that_is_there_gets_tags_it_lacks_and_keeps_its(store: Store, exported: Path, elsewhere: Store) -> None:
    (run,) = store.run_ids()
    elsewhere.transfer.take([exported])
    store.history.untag(run, "rigctl.confirms")
    store.history.tag(run, {"firmware": "2", "night": "7"})
    assert store.transfer.take([exported]) == [Taken(run, False, ("tag rigctl.confirms",))]
    assert store.run(run).tags == {"firmware": "2", "night": "7", "rigctl.confirms": "x"}


def test_an_id_with_other_content_is_refused_and_nothing_stored(store: Store, exported: Path, tmp_path: Path) -> None:
    (run,) = store.run_ids()
    other = tmp_path / "other.rigctl"
    extra = filled(store, "another")
    other.write_bytes(store.transfer.packed([extra]))
    store.remove(extra)
    store.add(run, replace(builders.failed(CELL), repetition=9))
    refusal = rf"{exported}: has run {run}, which the store has with other content.*Nothing"
    with pytest.raises(InputError, match=refusal):
        store.transfer.take([other, exported])
    assert store.run_ids() == [run]


def test_two_files_that_disagree_about_a_run_are_refused(store: Store, exported: Path, elsewhere: Store) -> None:
    (run,) = store.run_ids()
    store.add(run, replace(builders.failed(CELL), repetition=9))
    other = exported.with_name("later.rigctl")
    other.write_bytes(store.transfer.packed([run]))
    with pytest.raises(InputError, match=f"{other}: has run {run}, which another of these files has with other"):
        elsewhere.transfer.take([exported, other])
    assert elsewhere.run_ids() == []


def remade(path: Path, change: Change) -> None:
    """Change the lines of a file, and give it the SHA-256 of what it then has."""
    *lines, _ = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in change(lines)]
    path.write_bytes(sealed(b"".join(text + b"\n" for text in texts)))


def sealed(body: bytes) -> bytes:
    return gzip.compress(body + json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n", 1)


def rows_of(table: str, lines: list[Any]) -> list[Any]:
    return [line for line in lines[1:] if line[0] == table]


def with_row(table: str, **values: Any) -> Change:
    def change(lines: list[Any]) -> list[Any]:
        row = rows_of(table, lines)[0][1]
        row.update(values)
        for name in [name for name, value in values.items() if value is ...]:
            del row[name]
        return lines

    return change


PLAN = json.dumps(plan_json(builders.plan([CELL])))


def with_head(**values: Any) -> Change:
    return lambda lines: [lines[0] | values, *lines[1:]]


def with_plan(**values: Any) -> Change:
    plan = json.loads(PLAN)
    for name, value in values.items():
        holder = plan if name in plan else plan["cells"][0]
        assert name in holder
        holder[name] = value
    return with_row("runs", plan=json.dumps(plan))


INSTANTS = (("runs", "ended_at"), ("runs", "started_at"), ("repetitions", "started_at"), ("accepted", "accepted_at"))
HOSTILE: dict[str, tuple[Change, str]] = {
    "a newer version": (with_head(version=2), "was written by a newer rigctl"),
    "a newer schema": (with_head(schema=99), "was written by a newer rigctl"),
    "a version that is none": (with_head(version="1"), "has no valid version"),
    "another kind of file": (with_head(rigctl="plans"), "is no file of runs"),
    "no head": (lambda lines: lines[1:], "is no file of runs"),
    "no runs": (lambda lines: lines[:1], "has no runs"),
    "a run twice": (lambda lines: [*lines, *lines[1:]], "twice"),
    "rows without a run": (lambda lines: [lines[0], *lines[2:]], "belong to no run"),
    "a path as id": (with_row("runs", run="../../etc/passwd"), "with an invalid id"),
    "a title with an escape": (with_row("runs", title="\x1b[2J"), "control characters"),
    "a plan with an escape": (with_row("runs", plan='{"title": "\\u001b[2J"}'), "control characters"),
    "half a character": (with_row("runs", title="\ud800"), "can't be read (title: "),
    "half a character in JSON": (with_row("facts", facts='{"kernel": "\\ud800"}'), "can't be read"),
    "a test that is none": (with_row("runs", plan=PLAN.replace('"tcp"', '"' + "x" * 5000 + '"')), "no such test"),
    "a controller": (with_row("runs", controller="here 1 1"), "row of runs that can't be read (controller: "),
    "a key of its own": (with_row("repetitions", id=1), "row of repetitions that can't be read (id: "),
    "a table that is not a run's": (lambda lines: [*lines, ["rigctl_schema", {"version": 9}]], "an unknown table"),
    "a boolean as number": (with_row("repetitions", cell=True), "can't be read (cell: "),
    "a huge number": (with_row("repetitions", cell=2**31), "can't be read (cell: "),
    "a number of 5000 digits": (lambda lines: [*lines, b'["tags",{"name":' + b"9" * 5000 + b"}]"], "damaged"),
    "an endless number": (lambda lines: [*lines, b'["repetitions",{"wall_s":1e999}]'], "has a row of repetitions"),
    "text that is not base64": (with_row("flows", sender_series="???"), "can't be read (sender_series: "),
    "no status": (with_row("repetitions", status=...), "can't be read (status: "),
    "a status that is none": (with_row("repetitions", status="fine"), "can't be read"),
    "a plan that is none": (with_row("runs", plan="{}"), "can't be read"),
    "a plan that nests": (with_row("runs", plan="[" * 100_000), "can't be read"),
    "a line that nests": (lambda lines: [*lines, b"[" * 60_000], "damaged"),
    "a name that is long": (with_row("tags", name="n" * 65), "can't be read (name: "),
    "a tag twice": (lambda lines: [*lines[:2], *2 * [["tags", {"name": "a", "value": "b"}]]], "tags twice or out"),
    "a repetition twice": (lambda lines: [*lines, *rows_of("repetitions", lines)], "twice"),
    "a flow out of its place": (with_row("flows", position=7), "out of its place"),
    "a flow without repetition": (lambda lines: [*lines[:2], *rows_of("flows", lines)], "out of its place"),
    "a tag behind": (lambda lines: [*lines, ["tags", {"name": "z", "value": ""}]], "tags twice or out of its place"),
    "a list": (lambda lines: [*lines, []], "not a row"),
    "a text": (lambda lines: [*lines, "x"], "not a row"),
    "bytes that are no text": (lambda lines: [*lines, b'["tags",{"name":"\xff","value":"x"}]'], "damaged"),
    "a series that is a bomb": (lambda lines: [*lines[:-1], *_bombs(lines)], "unpacks to far more"),
    "an interval that ends first": (with_row("repetitions", window_start_ns=5, window_end_ns=4), "interval is not"),
    "another run's test": (with_row("repetitions", cell=77), "has a repetition of test 77, which its run does not"),
    "less than no bytes": (with_row("flows", bytes=-1), "bytes is not within 0 and "),
    "sysctls that are a list": (with_row("facts", facts='{"sysctls": []}'), "sysctls is a list, not a dict"),
    "a speed that is a text": (with_row("facts", facts='{"speed_bps": "1000"}'), "speed_bps is a str, not a"),
    "a speed that is yes": (with_row("facts", facts='{"speed_bps": true}'), "speed_bps is a bool, not a"),
    "a speed below 0": (with_row("facts", facts='{"speed_bps": -1}'), "speed_bps is below 0"),
    "a duration without end": (with_plan(duration_s=float("inf")), "can't be read"),
    "a test without pairs": (with_plan(pairs=[]), "can't be read"),
    "many repetitions": (with_plan(repeat=100_001), "repeat is not within 1 and 100000"),
    **{f"{count} flows": (with_plan(parallel=count), "parallel is not within 1 and 1000") for count in (10_001, 0, -1)},
    **{f"{time_s} seconds": (with_plan(duration_s=time_s), "duration_s is not within 0") for time_s in (1e12, -1.0)},
    **{f"{name} of {table} at {at}": (with_row(table, **{name: at}), f"{name} is not a time between 1970 and 2200")
       for table, name in INSTANTS for at in (1e300, -1e300, 1e12, -1.0)},
}  # fmt: skip


def _bombs(lines: list[Any]) -> list[Any]:
    """Repetitions with flows whose series unpack to 16 MB each."""
    packed = base64.b64encode(pack(Series({"t_ns": [0] * 2**20, "bytes": [0] * 2**20}))).decode()
    head, flow = (rows_of(table, lines)[0][1] for table in ("repetitions", "flows"))
    bombed = [["repetitions", head | {"repetition": 99}]]
    return bombed + [["flows", flow | {"position": at, "sender_series": packed}] for at in range(3)]


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_with_one_message_and_nothing_is_stored(
    tmp_path: Path, elsewhere: Store, what: str
) -> None:
    change, words = HOSTILE[what]
    with open_store("sqlite://") as store:
        path = tmp_path / "runs.rigctl"
        path.write_bytes(store.transfer.packed([filled(store)]))
    remade(path, change)
    with pytest.raises(InputError) as raised:
        elsewhere.transfer.take([path])
    text = str(raised.value)
    assert text.startswith(f"{path}: ")
    assert words in text
    assert text.endswith(". Nothing was imported")
    assert text.isprintable()
    assert len(text) < 400 + len(str(path))
    assert elsewhere.run_ids() == []


def test_a_bomb_is_refused_before_it_is_unpacked(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "bomb.rigctl"
    with gzip.open(path, "wb") as file:
        file.write(b'{"rigctl":"runs","version":1,"schema":5,"runs":[]}\n')
        for _ in range(64):
            file.write(b"[" + b" " * 2**20)
    with pytest.raises(InputError, match="unpacks to far more than its size"):
        elsewhere.transfer.take([path])


def test_a_long_line_of_lists_takes_little_memory(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "lists.rigctl"
    path.write_bytes(packed(["x"], [b"[" + b"[]," * (5 * 2**20) + b"[]]"]))
    tracemalloc.start()
    with pytest.raises(InputError, match="a line that is not a row"):
        elsewhere.transfer.take([path])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 80 * 2**20


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no file of runs"),
        (b"PK\x03\x04 a zip", "is no file of runs"),
        (b'{\n\t"start":\t{}}\n', "Results of iperf3 need --format iperf3"),
        (b"\x1f\x8b", "is damaged or cut off"),
        (gzip.compress(b""), "is cut off"),
        (gzip.compress(b"{}\n"), "is no file of runs"),
    ],
    ids=["empty", "a zip", "of iperf3", "two bytes", "nothing in it", "another JSON"],
)
def test_what_is_no_file_of_runs_is_refused(elsewhere: Store, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.rigctl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        elsewhere.transfer.take([path])


def test_a_folder_a_pipe_and_a_file_that_is_not_there_are_refused(elsewhere: Store, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("", "is no file"), ("pipe", "is no file"), ("none", "No such file")):
        with pytest.raises(InputError, match=f"{words}.*Nothing was imported"):
            elsewhere.transfer.take([tmp_path / name])


def test_a_file_without_its_end_or_with_more_is_refused(store: Store, exported: Path, elsewhere: Store) -> None:
    content = exported.read_bytes()
    unpacked = gzip.decompress(content)
    *lines, _ = unpacked.splitlines(keepends=True)
    for changed in (
        gzip.compress(b"".join(lines)),
        gzip.compress(unpacked + b"\n"),
        gzip.compress(unpacked.replace(b"new cable", b"old cable")),
        content + b"more",
        content[:-1],
    ):
        exported.write_bytes(changed)
        with pytest.raises(InputError, match="Nothing was imported"):
            elsewhere.transfer.take([exported])
    assert elsewhere.run_ids() == []


def test_no_damage_of_a_file_is_a_traceback_or_a_store_that_cannot_be_read(tmp_path: Path, elsewhere: Store) -> None:
    """Fuzzed: bytes changed, cut out and put in, in the file and in what it holds."""
    exported = tmp_path / "runs.rigctl"
    with open_store("sqlite://") as store:
        content = store.transfer.packed([filled(store)])
    chance, stored = random.Random(5417), 0
    unpacked = gzip.decompress(content)
    for turn in range(FUZZED):
        inside = turn % 2
        damaged = bytearray(unpacked if inside else content)
        for _ in range(chance.choice((1, 1, 3, 20))):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.choice((0, 1, 1, 30))] = chance.randbytes(chance.choice((0, 1, 1, 4)))
        changed = bytes(damaged)
        if inside:  # with the SHA-256 of what it now has: only the checks of the rows are left
            changed = sealed(changed[: changed.rfind(b"\n", 0, -1) + 1])
        exported.write_bytes(changed)
        try:
            taken = elsewhere.transfer.take([exported])
        except InputError as error:
            assert str(error).isprintable()
            assert elsewhere.run_ids() == []
        else:  # harmless: another digit, another letter, or a byte that gzip does not look at
            stored += 1
            for each in taken:
                whole(elsewhere, each.run)
                elsewhere.remove(each.run)
    assert stored < FUZZED / 2
