"""A file of runs with values that no rigctl writes: refused whole; and a stored one stops no other run."""

import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import builders
import fuzz_targets
import pytest
from sites import weeks

from rigctl.analysis.nights.regressions import news
from rigctl.base.errors import InputError
from rigctl.cli.stored_runs import stored_runs
from rigctl.report.regressions import document
from rigctl.site.publish import publish
from rigctl.store import open_store
from rigctl.store.transfer import Line, packed

INSTANTS = (("runs", "ended_at"), ("runs", "started_at"), ("repetitions", "started_at"))
TIMES = (1e300, -1e300, 1e12, -1.0)
Change: TypeAlias = Callable[[str, dict[str, Any]], None]
"""Changes a row of a table."""


def _file(path: Path, change: Change) -> Path:
    """A run of a file, with the right digest, whose rows `change` has changed."""
    rows = [json.loads(line) for line in fuzz_targets.runs_lines()[1:-1]]
    assert {"runs", "facts", "repetitions", "flows"} <= {table for table, _ in rows}
    for table, row in rows:
        change(table, row)
    path.write_bytes(packed(["x"], [json.dumps(row).encode() for row in rows]))
    return path


def _set(wanted: str, **values: object) -> Change:
    def change(table: str, row: dict[str, Any]) -> None:
        if table == wanted:
            row |= values

    return change


def _plan(**values: object) -> Change:
    def change(table: str, row: dict[str, Any]) -> None:
        if table == "runs":
            plan = json.loads(row["plan"])
            for name, value in values.items():
                holder = plan if name in plan else plan["cells"][0]
                assert name in holder
                holder[name] = value
            row["plan"] = json.dumps(plan)

    return change


def _fact(**values: object) -> Change:
    def change(table: str, row: dict[str, Any]) -> None:
        if table == "facts":
            row["facts"] = json.dumps(json.loads(row["facts"]) | values)

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_set(table, **{name: at}) for table, name in INSTANTS for at in TIMES),
        _set("repetitions", window_start_ns=5, window_end_ns=4),
        _set("repetitions", cell=77),
        _set("flows", bytes=-1),
        *(_fact(speed_bps=value) for value in ("", "1000", -1, True, [1])),
        _fact(sysctls=[]),
        *(_plan(parallel=value) for value in (10**9, 10**7, 0, -1)),
        *(_plan(duration_s=value) for value in (1e12, -1.0, float("nan"), float("inf"))),
        _plan(repeat=10**15),
        _plan(pairs=[]),
    ],
)
def test_a_file_with_impossible_values_is_refused(tmp_path: Path, change: Change) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        with pytest.raises(InputError, match="Nothing was imported"):
            store.transfer.take([_file(tmp_path / "f.rigctl", change)])
        assert store.run_ids() == []


def test_an_impossible_time_of_acceptance_is_refused(tmp_path: Path) -> None:
    accepted = Line("accepted", {"accepted_at": 1e300, "who": "a", "because": "b"}).text()
    lines = fuzz_targets.runs_lines()[1:-1]
    at = next(number for number, line in enumerate(lines) if line.startswith(b'["repetitions"'))
    path = tmp_path / "f.rigctl"
    path.write_bytes(packed(["x"], [*lines[:at], accepted, *lines[at:]]))
    with open_store(str(tmp_path / "s.db")) as store, pytest.raises(InputError, match="accepted_at is not a time"):
        store.transfer.take([path])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET ended_at = 1e300 WHERE run = ?",
        "UPDATE repetitions SET started_at = 1e300 WHERE run = ?",
        "UPDATE runs SET plan = replace(plan, '\"parallel\": 1,', '\"parallel\": 1000000000,') WHERE run = ?",
        'UPDATE facts SET facts = \'{"speed_bps": ""}\' WHERE run = ?',
        "INSERT INTO accepted VALUES (?, 1e300, 'a', 'b')",
        "UPDATE nights SET due_at = 1e300 WHERE run = ?",
    ],
)
def test_a_stored_run_with_impossible_values_stops_no_other(tmp_path: Path, statement: str) -> None:
    with open_store(str(tmp_path / "s.db")) as store:
        weeks(store, range(3))
        first, _, last = store.run_ids()
        with closing(sqlite3.connect(tmp_path / "s.db")) as plain, plain:
            plain.execute("INSERT INTO facts VALUES (?, 'zz', '{}')", (first,))
            plain.execute(statement, (first,))
        done = publish(store, tmp_path / "site", builders.STARTED_AT + 7 * 86_400)
        assert (tmp_path / f"site/runs/{last}.html").is_file()
        is_run = not statement.startswith("INSERT") and "nights" not in statement
        assert [first in message for message in done.damaged] == [True] * is_run
        assert document(news(store, store.run(last))).findings
        assert last in [listed.info.run for listed in stored_runs(store)[0]]


def test_a_long_line_of_lists_takes_little_memory(tmp_path: Path) -> None:
    _, first, *_ = fuzz_targets.runs_lines()
    path = tmp_path / "f.rigctl"
    path.write_bytes(packed(["x"], [first, b"[" + b"[]," * (5 * 2**20) + b"[]]"]))
    with open_store(str(tmp_path / "s.db")) as store:
        tracemalloc.start()
        with pytest.raises(InputError, match="a line that is not a row"):
            store.transfer.take([path])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 80 * 2**20


def test_counts_below_0_are_unknown_to_a_store_and_leave_their_run_readable(tmp_path: Path) -> None:
    """Samples that fall give them: an agent's fault must not cost the other tests of its run."""
    cell = builders.cell()
    made = builders.repetition(cell)
    odd = tuple(replace(flow, bytes=-1, retransmits=-1) for flow in made.flows)
    with open_store(str(tmp_path / "s.db")) as store:
        run = store.begin(builders.plan([cell]), {}, {}, builders.STARTED_AT)
        store.add(run, replace(made, flows=odd, goodput_median_bps=-1.0))
        (read,) = store.repetitions(run)
    assert {(flow.bytes, flow.retransmits) for flow in read.flows} == {(None, None)}
    assert read.goodput_median_bps is None
