"""Stores runs and what belongs to them: measurements, tags, accepted levels, nights. Each method is a transaction."""

import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    Text,
    cast,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    true,
    update,
)

from rigctl.base.errors import InputError, join_names
from rigctl.base.texts import printable
from rigctl.records import Acceptance, Facts, Night, Repetition, RepetitionHead, RunInfo, RunPlan, RunStatus, Status
from rigctl.store.bounds import harmless_row
from rigctl.store.errors import explain_errors, make_record
from rigctl.store.rows import (
    StoreRow,
    acceptance_from,
    counters_from,
    counters_row,
    facts_from,
    flow_from,
    flow_row,
    head_from,
    info_from,
    night_from,
    plan_json,
    probes_from,
    probes_row,
    repetition_from,
    repetition_row,
)
from rigctl.store.schema import accepted, counters, flows, nights, probes, repetitions, runs, tags
from rigctl.store.schema import facts as facts_table

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_BATCH: Final = 50
_LATEST: Final = re.compile(r"latest(?:~([0-9]{1,6}))?", re.ASCII)
_MOST_NAMED: Final = 5
"""Most runs named in the message about an ambiguous run id."""
_PARTS: Final = 1 << 16
_CLOCKS_DIFFER_S: Final = 60.0
_CLOCKS_APART_S: Final = 86_400.0
"""A run that starts more than this after now was stored under a wrong clock."""


def new_run_id(started_at: float, further: int = 0) -> str:
    """Return a run id such as 20261120-214501-3f9a: the start time in UTC, by which ids sort.

    The last four digits are the fraction of the second in 65,536ths, so of two runs that start in one second, the later
    run has the larger id. `further` is added to these digits if the store has the id already.
    """
    start = datetime.fromtimestamp(started_at, UTC)
    part = (start.microsecond * _PARTS // 1_000_000 + further) % _PARTS
    return f"{start:%Y%m%d-%H%M%S}-{part:04x}"


def short_id(run: str) -> str:
    """Return the last part of a run's id, such as 3f9a, by which `Store.run_id` finds the run too."""
    return run.rpartition("-")[2]


def writing(engine: Engine) -> AbstractContextManager[Connection]:
    """Return a write transaction, which first waits until no other writer is active."""
    return engine.execution_options(rigctl_write=True).begin()


def insert_rows(connection: Connection, table: Table, rows: Iterable[StoreRow]) -> None:
    if made := list(rows):
        connection.execute(insert(table), made)


def _put_tags(connection: Connection, run: str, values: Mapping[str, str]) -> None:
    insert_rows(connection, tags, ({"run": run, "name": name, "value": value} for name, value in values.items()))


class History:
    """Tags, accepted levels and nights. A failed write raises `RigError`, a failed read `InputError`."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    def tag(self, run: str, values: Mapping[str, str]) -> None:
        """Store tags of `run` by name. A tag with the same name is replaced."""
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(tags).where(tags.c.run == run, tags.c.name.in_(list(values))))
            _put_tags(connection, run, values)

    def untag(self, run: str, name: str) -> None:
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(tags).where(tags.c.run == run, tags.c.name == name))

    def accept(self, levels: Acceptance) -> None:
        """Store that a run's levels are accepted as normal. An earlier acceptance of the same run is replaced."""
        self._replace_row(accepted, asdict(levels))

    def accepted(self) -> list[Acceptance]:
        """Return all accepted levels, earliest acceptance first."""
        return self._readable("accepted level", select(accepted).order_by(accepted.c.accepted_at), acceptance_from)

    def put_night(self, night: Night) -> None:
        """Store a night, in place of an earlier record with the same scenario, rig and due time."""
        outcome = None if night.outcome is None else str(night.outcome)
        unmet = json.dumps([asdict(own) for own in night.unmet], ensure_ascii=False)
        unmet = unmet.encode("utf-8", "replace").decode()  # JSON parsers reject lone surrogates
        self._replace_row(nights, asdict(night) | {"outcome": outcome, "unmet": unmet})

    def nights(self, scenario: str | None = None, rig: str | None = None) -> list[Night]:
        """Return the stored nights of a scenario and a rig, earliest first. None means all scenarios or rigs."""
        query = select(nights).order_by(nights.c.due_at)
        if scenario is not None:
            query = query.where(nights.c.scenario == scenario)
        if rig is not None:
            query = query.where(nights.c.rig == rig)
        return self._readable("night", query, night_from)

    def _replace_row(self, table: Table, row: dict[str, Any]) -> None:
        same = [column == row[column.name] for column in table.primary_key]
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(table).where(*same))
            connection.execute(insert(table).values(**row))

    def _readable(self, what: str, query: Select[Any], make: Callable[[dict[str, Any]], _T]) -> list[_T]:
        """Return a record for each row of a query; log and leave out damaged rows."""
        records = []
        with explain_errors(self._place), self._engine.connect() as connection:
            for number, row in enumerate(connection.execute(query).mappings(), 1):
                try:
                    records.append(make_record(self._place, f"{what} {number}", row, make))
                except InputError as error:
                    _log.warning("%s", error)
        return records


class Store:
    """A database of runs, opened by `rigctl.store.open_store`; usable as a context manager.

    A failed write raises `RigError`, and a failed read raises `InputError`; the message names the store.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.engine = engine
        self.place = place
        self.history = History(engine, place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.engine.dispose()

    def begin(
        self,
        plan: RunPlan,
        versions: Mapping[str, str],
        facts: Mapping[str, Facts],
        started_at: float,
        controller: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> str:
        """Store a run with status `running`, started at the Unix time `started_at`, and return its id.

        `controller` identifies the process that measures the run, so that `resume` can tell whether that process lives.
        """
        row = {
            "title": plan.title,
            "status": str(RunStatus.RUNNING),
            "started_at": started_at,
            "plan": plan_json(plan),
            "versions": dict(versions),
            "controller": controller,
        }
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            ids = (new_run_id(started_at, further) for further in range(_PARTS))
            run = next(each for each in ids if connection.scalar(select(runs.c.run).where(runs.c.run == each)) is None)
            connection.execute(insert(runs).values(run=run, **row))
            _put_facts(connection, run, facts)
            _put_tags(connection, run, tags or {})
        return run

    def resume(self, run: str, controller: str) -> None:
        """Mark a run that ended or died as running again."""
        values = {"status": str(RunStatus.RUNNING), "ended_at": None, "controller": controller}
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            connection.execute(update(runs).where(runs.c.run == run).values(**values))

    def set_facts(self, run: str, facts: Mapping[str, Facts], versions: Mapping[str, str]) -> None:
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            connection.execute(update(runs).where(runs.c.run == run).values(versions=dict(versions)))
            connection.execute(delete(facts_table).where(facts_table.c.run == run))
            _put_facts(connection, run, facts)

    def add(self, run: str, *measured: Repetition) -> None:
        """Store repetitions with their flows and series: completely and durably on return, or not at all.

        In a resumed run, a repetition replaces the failed or incomplete one with the same numbers. A failed or
        incomplete repetition is dropped if the stored one has more flows.
        """
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            for repetition in measured:
                self._add(connection, run, repetition)

    def _add(self, connection: Connection, run: str, repetition: Repetition) -> None:
        row = repetition_row(run, repetition)
        own = [repetitions.c[name] == row[name] for name in ("run", "cell", "repetition")]
        valid, same = repetitions.c.status == str(Status.OK), repetitions.c.attempt == row["attempt"]
        if repetition.status is not Status.OK or repetition.reason is not None:
            measured = select(func.count()).select_from(flows).join(repetitions).where(*own, valid)
            measured = measured.group_by(repetitions.c.id)
            fewest = len(repetition.flows) if repetition.status is Status.OK else 0
            if any(count > fewest for count in connection.scalars(measured)):
                return
        replaced = or_(same, valid) if repetition.status is Status.OK else same
        connection.execute(delete(repetitions).where(*own, replaced))
        self._insert(connection, run, repetition)

    def _insert(self, connection: Connection, run: str, repetition: Repetition) -> None:
        row = repetition_row(run, repetition)
        key = connection.execute(insert(repetitions).values(**row)).inserted_primary_key
        own_key = {"repetition_id": key and key[0]}
        parts: dict[Table, Iterable[StoreRow]] = {
            flows: map(flow_row, repetition.flows),
            counters: map(counters_row, repetition.counters),
            probes: map(probes_row, repetition.probes),
        }
        for table, rows in parts.items():
            insert_rows(connection, table, (own_key | {"position": at} | row for at, row in enumerate(rows)))

    def put(self, info: RunInfo, measured: Iterable[Repetition]) -> None:
        """Store a whole run under its own id, without the process that measures it."""
        row: StoreRow = {"run": info.run, "title": info.plan.title, "status": str(info.status)}
        row |= {
            "plan": plan_json(info.plan),
            "versions": info.versions,
            "started_at": info.started_at,
            "ended_at": info.ended_at,
        }
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            connection.execute(insert(runs).values(**row))
            _put_facts(connection, info.run, info.facts)
            _put_tags(connection, info.run, info.tags)
            for repetition in measured:
                self._insert(connection, info.run, repetition)

    def finish(self, run: str, status: RunStatus, ended_at: float) -> None:
        """Mark `run` as ended. A run whose controller dies first stays `running`."""
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            values = {"status": str(status), "ended_at": ended_at, "controller": None}
            connection.execute(update(runs).where(runs.c.run == run).values(**values))

    def remove(self, run: str) -> None:
        """Remove `run` with its facts and measurements."""
        with explain_errors(self.place, writing=True), writing(self.engine) as connection:
            connection.execute(delete(runs).where(runs.c.run == run))  # ON DELETE CASCADE removes the other rows

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, earliest first. Raise `InputError` for an id that is no printable text."""
        with explain_errors(self.place), self.engine.connect() as connection:
            found = list(connection.scalars(select(runs.c.run).order_by(runs.c.run)))
        if all(isinstance(run, str) and run.isprintable() for run in found):
            return found
        raise InputError(
            f"store {self.place}: the id of a run is no printable text. It is damaged, or another program changed it: "
            "name a run, or an older copy with --store"
        )

    def runs(self, names: Sequence[str] | None = None) -> list[RunInfo]:
        """Return the runs in `names`, or all runs, earliest first. Raise `InputError` if one is damaged."""
        wanted = true() if names is None else runs.c.run.in_(names)
        with explain_errors(self.place), self.engine.connect() as connection:
            return self._infos(connection, wanted)

    def latest_first(self, damaged: dict[str, str] | None = None) -> Iterator[RunInfo]:
        """Yield all readable runs, latest first. `damaged` gets a message for each unreadable run."""
        names = self.run_ids()[::-1]
        for at in range(0, len(names), _BATCH):
            batch = names[at : at + _BATCH]
            try:
                found = self.runs(batch)
            except InputError:  # some run in the batch is damaged
                for run in batch:
                    try:
                        yield self.run(run)
                    except InputError as error:
                        if damaged is not None:
                            damaged[run] = str(error)
            else:
                yield from reversed(found)

    def controllers(self) -> dict[str, str]:
        """Return the `controller` given to `begin` or `resume` for each run that has not ended, by run id."""
        query = select(runs.c.run, runs.c.controller).where(runs.c.controller.is_not(None))
        with explain_errors(self.place), self.engine.connect() as connection:
            return {row.run: row.controller for row in connection.execute(query)}

    def sizes(self) -> dict[str, int]:
        """Return the approximate size of each run in bytes: series, flow reports and plan, without indexes."""
        sides = [_bytes(cast(column, Text)) for column in (flows.c.sender, flows.c.receiver)]
        packed = [_bytes(column) for column in (flows.c.sender_series, flows.c.receiver_series, flows.c.receiver_bins)]
        columns = {flows: [*sides, *packed], counters: [_bytes(counters.c.series)], probes: [_bytes(probes.c.series)]}
        with explain_errors(self.place), self.engine.connect() as connection:
            plans = connection.execute(select(runs.c.run, _bytes(cast(runs.c.plan, Text))))
            sizes = {run: int(length) for run, length in plans}
            for table, lengths in columns.items():
                query = select(repetitions.c.run, *map(func.sum, lengths)).join_from(repetitions, table)
                for run, *found in connection.execute(query.group_by(repetitions.c.run)):
                    sizes[run] = sizes.get(run, 0) + sum(map(int, found))
        return sizes

    def run(self, reference: str | None = None) -> RunInfo:
        """Return the run that `reference` means as in `run_id`, by default the latest. Raise `InputError` if none."""
        wanted = runs.c.run == self.run_id("latest" if reference is None else reference)
        with explain_errors(self.place), self.engine.connect() as connection:
            found = self._infos(connection, wanted)
        if found:
            return found[0]
        raise self._no_runs()

    def run_id(self, reference: str) -> str:
        """Return the id of the one run with this beginning or end of its id, or of `latest~N`. Raise `InputError`."""
        if (latest := _LATEST.fullmatch(reference)) is not None:
            return self._counted_back(reference, int(latest[1] or 0))
        fitting = or_(
            runs.c.run.startswith(reference, autoescape=True), runs.c.run.endswith(f"-{reference}", autoescape=True)
        )
        query = select(runs.c.run).where(fitting).order_by(runs.c.run.desc())
        with explain_errors(self.place), self.engine.connect() as connection:
            found: list[str] = list(connection.scalars(query))
        if reference in found:
            return reference
        if len(found) == 1:
            return found[0]
        if not found:
            raise InputError(f'no run "{reference}" in store {self.place}. `rigctl runs` lists them')
        several = join_names(found, _MOST_NAMED)
        raise InputError(f'run "{reference}" is not unique: {several} (latest first). Give more characters of its id')

    def _counted_back(self, reference: str, back: int) -> str:
        ids, tomorrow = self.run_ids(), new_run_id(time.time() + _CLOCKS_APART_S)
        # A run that starts over a day in the future was stored under a wrong clock, so it sorts as the earliest.
        ids.sort(key=lambda run: (run <= tomorrow, run))
        if back < len(ids):
            return ids[-1 - back]
        if not ids:
            raise self._no_runs()
        count = "1 run" if len(ids) == 1 else f"{len(ids)} runs"
        raise InputError(f"{reference}: the store has {count}. `rigctl runs` lists them")

    def later_run(self, started_at: float) -> str | None:
        """Return the last run by id if it began, by its clock, over a minute after the Unix time `started_at`."""
        query = select(func.max(runs.c.run))
        with explain_errors(self.place), self.engine.connect() as connection:
            last = connection.scalar(query)
        is_later = isinstance(last, str) and last > new_run_id(started_at + _CLOCKS_DIFFER_S)
        return printable(last) if is_later else None

    def _no_runs(self) -> InputError:
        return InputError(f"store {self.place} has no runs yet. Start one with `rigctl run`")

    def heads(self, run: str) -> list[RepetitionHead]:
        """Return the stored repetitions of `run` without flows, readings and probes, in the order of `repetitions`."""
        with explain_errors(self.place), self.engine.connect() as connection:
            return self._numbered(connection, _select_repetitions(run, None), "repetition", run, head_from)

    def repetitions(self, run: str, cells: Collection[int] | None = None, *, samples: bool = True) -> list[Repetition]:
        """Return the stored repetitions of `run`, in the order in which a run measures them.

        With `cells`, return only those of the tests with these numbers. Without `samples`, the samples of flows over
        time, which are most of a store, are not read, and are empty.
        """
        with explain_errors(self.place), self.engine.connect() as connection, connection.begin():
            flows_by = self._by_repetition(connection, _select_flows(run, cells, samples), "flow", run, flow_from)
            own = _select_of(run, cells, counters)
            counters_by = self._by_repetition(connection, own, "port series", run, counters_from)
            probes_by = self._by_repetition(connection, _select_of(run, cells, probes), "probes", run, probes_from)

            def with_parts(row: StoreRow) -> Repetition:
                key = row["id"]
                return repetition_from(row, tuple(flows_by[key]), tuple(counters_by[key]), tuple(probes_by[key]))

            return self._numbered(connection, _select_repetitions(run, cells), "repetition", run, with_parts)

    def statuses(self, run: str) -> dict[tuple[int, int, int], Status]:
        """Return the status of each repetition of `run` by cell, repetition and attempt.

        A repetition that lacks some pairs counts as FAILED, so that it is measured again.
        """
        own = repetitions.c
        query = select(own.cell, own.repetition, own.attempt, own.status, own.reason).where(own.run == run)
        with explain_errors(self.place), self.engine.connect() as connection:
            return dict(self._numbered(connection, query, "repetition", run, _status_from))

    def measured(self) -> dict[str, dict[str, int]]:
        """Return for each run how many of its cells have a repetition of each status, such as {"ok": 7}."""
        count = func.count(repetitions.c.cell.distinct())
        query = select(repetitions.c.run, repetitions.c.status, count).group_by(repetitions.c.run, repetitions.c.status)
        counts: dict[str, dict[str, int]] = {}
        with explain_errors(self.place), self.engine.connect() as connection:
            for run, status, cells in connection.execute(query):
                counts.setdefault(run, {})[status] = cells
        return counts

    def _infos(self, connection: Connection, wanted: ColumnElement[bool]) -> list[RunInfo]:
        chosen = select(runs.c.run).where(wanted)
        tags_by: defaultdict[str, dict[str, str]] = defaultdict(dict)
        query: Select[Any] = select(tags).where(tags.c.run.in_(chosen)).order_by(tags.c.run, tags.c.name)
        for row in map(harmless_row, connection.execute(query).mappings()):
            tags_by[row["run"]][row["name"]] = row["value"]
        facts_by: defaultdict[str, dict[str, Facts]] = defaultdict(dict)
        query = select(facts_table).where(facts_table.c.run.in_(chosen)).order_by(facts_table.c.run, facts_table.c.node)
        for row in map(harmless_row, connection.execute(query).mappings()):
            known = make_record(self.place, f"facts of run {row['run']}", row, lambda row: facts_from(row["facts"]))
            facts_by[row["run"]][row["node"]] = known

        def info(row: StoreRow) -> RunInfo:
            return info_from(row, facts_by[row["run"]], tags_by[row["run"]])

        query = select(runs).where(wanted).order_by(runs.c.run)
        rows = connection.execute(query).mappings()
        return [make_record(self.place, f"run {row['run']}", row, info) for row in rows]

    def _by_repetition(
        self, connection: Connection, query: Select[Any], what: str, run: str, make: Callable[[StoreRow], _T]
    ) -> defaultdict[int, list[_T]]:
        parts: defaultdict[int, list[_T]] = defaultdict(list)
        for key, part in self._numbered(connection, query, what, run, lambda row: (row["repetition_id"], make(row))):
            parts[key].append(part)
        return parts

    def _numbered(
        self, connection: Connection, query: Select[Any], what: str, run: str, make: Callable[[StoreRow], _T]
    ) -> list[_T]:
        """Return a record for each row of a query. An error names the damaged row by its number, from 1."""
        rows = enumerate(connection.execute(query).mappings(), 1)
        return [make_record(self.place, f"{what} {number} of run {run}", row, make) for number, row in rows]


def _select_repetitions(run: str, cells: Collection[int] | None) -> Select[Any]:
    order = (repetitions.c.cell, repetitions.c.repetition, repetitions.c.attempt, repetitions.c.id)
    return _of_cells(select(repetitions).where(repetitions.c.run == run), cells).order_by(*order)


def _select_flows(run: str, cells: Collection[int] | None, samples: bool) -> Select[Any]:
    packed = (flows.c.sender_series, flows.c.receiver_series, flows.c.receiver_bins)
    others: list[ColumnElement[Any]] = [column for column in flows.c if column not in packed]
    return _select_of(run, cells, flows, *others, *(packed if samples else (null().label(one.name) for one in packed)))


def _select_of(run: str, cells: Collection[int] | None, table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    query = select(*(columns or table.c)).join_from(table, repetitions).where(repetitions.c.run == run)
    return _of_cells(query, cells).order_by(table.c.repetition_id, table.c.position)


def _of_cells(query: Select[Any], cells: Collection[int] | None) -> Select[Any]:
    return query if cells is None else query.where(repetitions.c.cell.in_(cells))


def _status_from(row: StoreRow) -> tuple[tuple[int, int, int], Status]:
    status = Status(row["status"])
    in_part = status is Status.OK and row["reason"] is not None
    return (row["cell"], row["repetition"], row["attempt"]), Status.FAILED if in_part else status


def _put_facts(connection: Connection, run: str, facts: Mapping[str, Facts]) -> None:
    insert_rows(connection, facts_table, ({"run": run, "node": node, "facts": known} for node, known in facts.items()))


def _bytes(value: ColumnElement[Any]) -> ColumnElement[int]:
    return func.coalesce(func.length(value), 0)
