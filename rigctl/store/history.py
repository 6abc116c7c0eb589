"""Tags, accepted levels, nights and their figures: what a store keeps besides measurements."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, Table, delete, insert, select

from rigctl.base.errors import InputError
from rigctl.records import Acceptance, Night
from rigctl.store.errors import explain_errors, make_record
from rigctl.store.rows import acceptance_from, night_from
from rigctl.store.schema import accepted, night_figures, nights, tags

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def writing(engine: Engine) -> AbstractContextManager[Connection]:
    """Return a transaction that writes. Its start waits for another writer."""
    return engine.execution_options(rigctl_write=True).begin()


def put_tags(connection: Connection, run: str, values: Mapping[str, str]) -> None:
    if values:
        connection.execute(insert(tags), [{"run": run, "name": name, "value": value} for name, value in values.items()])


class History:
    """Part of a `Store`. A method that writes raises `RigError`; a method that reads raises `InputError`."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    def tag(self, run: str, values: Mapping[str, str]) -> None:
        """Give `run` these tags. A tag with the same name is replaced."""
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(tags).where(tags.c.run == run, tags.c.name.in_(list(values))))
            put_tags(connection, run, values)

    def untag(self, run: str, name: str) -> None:
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(tags).where(tags.c.run == run, tags.c.name == name))

    def accept(self, levels: Acceptance) -> None:
        """Store that the levels of a run are accepted. An earlier acceptance of the same run is replaced."""
        self._replace(accepted, asdict(levels))

    def accepted(self) -> list[Acceptance]:
        """Return all accepted levels, earliest acceptance first."""
        return self._readable("accepted level", select(accepted).order_by(accepted.c.accepted_at), acceptance_from)

    def put_night(self, night: Night) -> None:
        """Store a night, in place of an earlier record with the same scenario, rig and due time."""
        outcome = None if night.outcome is None else str(night.outcome)
        unmet = json.dumps([asdict(own) for own in night.unmet], ensure_ascii=False)
        unmet = unmet.encode("utf-8", "replace").decode()  # lone surrogates are unreadable
        self._replace(nights, asdict(night) | {"outcome": outcome, "unmet": unmet})

    def nights(self, scenario: str | None = None, rig: str | None = None) -> list[Night]:
        """Return the nights of a scenario on a rig, or of all, earliest first."""
        query = select(nights).order_by(nights.c.due_at)
        if scenario is not None:
            query = query.where(nights.c.scenario == scenario)
        if rig is not None:
            query = query.where(nights.c.rig == rig)
        return self._readable("night", query, night_from)

    def put_figures(self, run: str, rules: int, figures: str) -> None:
        """Store a run's figures for regressions, as JSON; `rules` is the version of the rules that made them."""
        self._replace(night_figures, {"run": run, "rules": rules, "figures": figures})

    def figures(self, names: Sequence[str], rules: int) -> dict[str, str]:
        """Return the runs' figures as JSON by run; figures made by another version of the rules are left out."""
        own = night_figures.c
        query = select(own.run, own.figures).where(own.run.in_(names), own.rules == rules)
        with explain_errors(self._place), self._engine.connect() as connection:
            return {row.run: row.figures for row in connection.execute(query)}

    def _replace(self, table: Table, row: dict[str, Any]) -> None:
        """Insert a row in place of the row with the same primary key."""
        same = [column == row[column.name] for column in table.primary_key]
        with explain_errors(self._place, writing=True), writing(self._engine) as connection:
            connection.execute(delete(table).where(*same))
            connection.execute(insert(table).values(**row))

    def _readable(self, what: str, query: Select[Any], make: Callable[[dict[str, Any]], _T]) -> list[_T]:
        """Return the records of a query. A damaged row is logged and left out."""
        records = []
        with explain_errors(self._place), self._engine.connect() as connection:
            for number, row in enumerate(connection.execute(query).mappings(), 1):
                try:
                    records.append(make_record(self._place, f"{what} {number}", row, make))
                except InputError as error:
                    _log.warning("%s", error)
        return records
