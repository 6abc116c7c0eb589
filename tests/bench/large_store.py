"""A store of a million pair rows: 400 nights of four scenarios, made by the store's own writer of rows, stored in bulk.

A mesh (20 tests of one pair), a cluster (8 tests of 12 pairs, half of them with 4 flows), a matrix (96 tests of 4
pairs) and a wide rig (4 tests of 50 pairs): 2,500 pair rows a night. Each test lasts 5 s, sampled every 100 ms. Of each
repetition a few forms are measured by the builders of the tests; a night draws among them, by a fixed seed. From night
300 on one node sends 8 % slower.
"""

import random
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import builders as make
from many_nights import DAY_S, FIRST_S

from rigctl.records import Cell, Pair, RunPlan
from rigctl.store import open_store
from rigctl.store.open import _json
from rigctl.store.rows import flow_row, plan_json, repetition_row
from rigctl.store.schema import facts, flows, repetitions, runs

NIGHTS: Final = 400
SLOWER: Final = 300
FORMS: Final = 8
SEED: Final = 20_261_122
DURATION_S: Final = 5.0
Values: TypeAlias = tuple[Any, ...]
COLUMNS: Final = {table.name: [column.name for column in table.c] for table in (runs, facts, repetitions, flows)}
_JSON: Final = frozenset({"plan", "versions", "facts", "nodes", "counters_missing", "captures", "sender", "receiver"})


@dataclass(frozen=True, slots=True)
class Measured:
    """A repetition as rows: its own, and those of its flows, without keys."""

    head: dict[str, Any]
    flows: tuple[dict[str, Any], ...]


class Sink(Protocol):
    """A store that takes rows of a table in bulk."""

    def put(self, table: str, rows: Iterable[Values]) -> None: ...


def mesh() -> RunPlan:
    nodes = [f"m{number}" for number in range(1, 6)]
    pairs = [Pair(left, right) for left in nodes for right in nodes if left != right]
    return _plan("mesh", [_cell(number, (pair,)) for number, pair in enumerate(pairs, 1)], 3)


def cluster() -> RunPlan:
    pairs = _pairs("c", 12)
    windows = (None, 65536, 262144, 1048576)
    settings = [(window, parallel) for window in windows for parallel in (1, 4)]
    cells = [_cell(n, pairs, window_bytes=window, parallel=own) for n, (window, own) in enumerate(settings, 1)]
    return _plan("cluster", cells, 3)


def matrix() -> RunPlan:
    pairs = _pairs("x", 4)
    windows = (None, *(2**size * 1024 for size in range(4, 11)))
    settings = [
        {"window_bytes": window, "mss": mss, "congestion": congestion, "nodelay": nodelay}
        for window in windows
        for mss in (536, 1460, 8960)
        for congestion in ("cubic", "reno")
        for nodelay in (False, True)
    ]
    return _plan("matrix", [_cell(number, pairs, **own) for number, own in enumerate(settings, 1)], 3)


def wide() -> RunPlan:
    pairs = _pairs("w", 50)
    return _plan("wide", [_cell(n, pairs, window_bytes=w) for n, w in enumerate((None, 65536, 131072, 524288), 1)], 5)


def plans() -> tuple[RunPlan, ...]:
    return mesh(), cluster(), matrix(), wide()


def _pairs(letter: str, count: int) -> tuple[Pair, ...]:
    return tuple(Pair(f"{letter}{2 * n - 1:03d}", f"{letter}{2 * n:03d}") for n in range(1, count + 1))


def _cell(number: int, pairs: tuple[Pair, ...], **settings: Any) -> Cell:
    return make.cell(number, pairs=pairs, duration_s=DURATION_S, **settings)


def _plan(name: str, cells: Sequence[Cell], repeat: int) -> RunPlan:
    named = {"scenario_name": name, "rig_name": "lab", "title": f"Every night: {name}", "virtual": None}
    return make.plan(cells, repeat=repeat, **named)


class Source:
    """The rows of a scenario's nights."""

    def __init__(self, number: int, plan: RunPlan) -> None:
        self._number, self._plan = number, plan
        self._slow = plan.cells[0].pairs[0].source
        self._text = _json(plan_json(plan))
        self._forms = {
            (cell.number, repetition, slower): [
                self._measured(cell, repetition, form, slower=slower) for form in range(FORMS)
            ]
            for cell in plan.cells
            for repetition in range(1, plan.repeat + 1)
            for slower in (False, True)
        }

    def _measured(self, cell: Cell, repetition: int, form: int, *, slower: bool) -> Measured:
        noise = random.Random(f"{SEED} {self._number} {cell.number} {repetition} {form} {slower}")
        level = 940.0 / max(1, len(cell.pairs) // 12)
        speeds = [
            level * (1 + noise.gauss(0, 0.002)) * (0.92 if slower and pair.source == self._slow else 1.0)
            for pair in cell.pairs
        ]
        made = make.repetition(cell, speeds, [noise.randrange(20) for _ in cell.pairs], number=repetition)
        parts = (flow_row(0, position, flow) for position, flow in enumerate(made.flows))
        return Measured(_stored(repetition_row("", made)), tuple(map(_stored, parts)))

    def night(self, night: int, key: int) -> Iterator[tuple[str, Values]]:
        """All rows of one run; the ids of its repetitions are those from `key` on."""
        at = FIRST_S + (night - NIGHTS) * DAY_S + 600 * self._number
        run = f"{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M%S}-{self._number:04x}"
        draws = random.Random(f"{SEED} {self._number} {night}")
        own = {
            "run": run,
            "title": self._plan.title,
            "status": "complete",
            "started_at": at,
            "ended_at": at + 500,
            "plan": self._text,
            "versions": _json({"rigctl": "0.3.0", "python": "3.11.2", "protocol": "1"}),
            "controller": None,
        }
        yield runs.name, _values(runs.name, own)
        for place, node in enumerate(sorted(self._plan.links)):
            known = make.facts(mac=f"02:00:00:00:{self._number:02x}:{place:02x}", boot_id=f"{night // 7:032x}")
            yield facts.name, (run, node, _json(known))
        for cell in self._plan.cells:
            for repetition in range(1, self._plan.repeat + 1):
                made = draws.choice(self._forms[cell.number, repetition, night >= SLOWER])
                head = made.head | {"id": key, "run": run, "started_at": at + cell.number}
                yield repetitions.name, _values(repetitions.name, head)
                for flow in made.flows:
                    yield flows.name, _values(flows.name, flow | {"repetition_id": key})
                key += 1


@cache
def sources() -> tuple[Source, ...]:
    """Of all scenarios: half a minute to make."""
    return tuple(Source(number, plan) for number, plan in enumerate(plans()))


def _stored(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _json(value) if name in _JSON and value is not None else value for name, value in row.items()}


def _values(table: str, row: dict[str, Any]) -> Values:
    return tuple(row.get(name) for name in COLUMNS[table])


def fill(sink: Sink, sources: Sequence[Source], nights: Iterable[int], key: int) -> int:
    """Store these nights; gives the next free id of a repetition."""
    for night in nights:
        for source in sources:
            held: dict[str, list[Values]] = {name: [] for name in COLUMNS}
            for table, values in source.night(night, key):
                held[table].append(values)
            for table, rows in held.items():
                sink.put(table, rows)
            key += len(held[repetitions.name])
    return key


class SqliteSink:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, table: str, rows: Iterable[Values]) -> None:
        names = COLUMNS[table]
        self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            rows,
        )


class PostgresqlSink:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def put(self, table: str, rows: Iterable[Values]) -> None:
        names = ", ".join(COLUMNS[table])
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def fill_sqlite(path: Path, sources: Sequence[Source], nights: Sequence[int]) -> None:
    """Add these nights to the store at `path`, which is made where there is none."""
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        (key,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM repetitions").fetchone()
        with connection:
            fill(SqliteSink(connection), sources, nights, key)


def fill_postgresql(url: str, sources: Sequence[Source], nights: Sequence[int]) -> None:
    import psycopg

    open_store(url).close()
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM repetitions").fetchone()
        assert row is not None
        key = fill(PostgresqlSink(connection), sources, nights, row[0])
        connection.execute("SELECT setval(pg_get_serial_sequence('repetitions', 'id'), %s)", (key,))
