"""Keep what a run was condensed to (`rigctl.results`) beside its measurements: a row per run and part.

The table is made at the first write, so a store of the same version may lack it. It holds nothing that cannot be
computed again: run files leave it out, and rows that do not fit the run (`stamp`) are ignored.
"""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    LargeBinary,
    MetaData,
    String,
    Table,
    delete,
    insert,
    inspect,
    select,
)

from rigctl.store.errors import explain_errors
from rigctl.store.schema import runs
from rigctl.store.store import Store, writing

kept_metadata: Final = MetaData()
kept_results: Final = Table(
    "kept_results",
    kept_metadata,
    Column("run", ForeignKey(runs.c.run, ondelete="CASCADE"), primary_key=True),
    Column("part", String(16), primary_key=True),
    # Digest of what the results follow from: rules, facts, and the repetitions of the run.
    Column("stamp", String(64), nullable=False),
    Column("packed", LargeBinary, nullable=False),
)


def read_kept(store: Store, run: str, stamp: str) -> dict[str, bytes]:
    """Return the kept parts of a run, by name; empty if none is kept, or if they were condensed from other records."""
    own = kept_results.c
    with explain_errors(store.place), store.engine.connect() as connection:
        if not _has_table(connection):
            return {}
        query = select(own.part, own.packed).where(own.run == run, own.stamp == stamp)
        # SQLite may have a text in any column.
        return {row.part: row.packed for row in connection.execute(query) if isinstance(row.packed, bytes)}


def write_kept(store: Store, run: str, stamp: str, parts: Mapping[str, bytes]) -> None:
    """Keep the parts of a run in place of earlier ones. Raise `RigError` if the store cannot be written."""
    with explain_errors(store.place, writing=True), writing(store.engine) as connection:
        kept_metadata.create_all(connection)
        connection.execute(delete(kept_results).where(kept_results.c.run == run))
        rows = [{"run": run, "part": part, "stamp": stamp, "packed": packed} for part, packed in parts.items()]
        connection.execute(insert(kept_results), rows)


def _has_table(connection: Connection) -> bool:
    return inspect(connection).has_table(kept_results.name)
