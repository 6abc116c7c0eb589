"""From the tables of an older rigctl to today's: a step per schema version, by Alembic's operations.

A step names its columns in full: `store.schema` says what they are today. All steps are one transaction.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    Text,
    update,
)

from rigctl.store.schema import SCHEMA_VERSION, versions

if TYPE_CHECKING:
    from alembic.operations import Operations

Step: TypeAlias = Callable[["Operations"], None]


def _to_2(op: "Operations") -> None:
    """Switch counters, the interval analysis, and who is measuring a run (rigctl 0.2)."""
    op.add_column("repetitions", Column("goodput_median_bps", Float(53)))
    op.add_column("repetitions", Column("counters_missing", JSON))
    op.add_column("runs", Column("controller", String(255)))
    op.create_table(
        "counters",
        _of_repetition(),
        Column("position", Integer, primary_key=True, autoincrement=False),
        Column("switch", String(64), nullable=False),
        Column("port", String(255), nullable=False),
        Column("source", String(16), nullable=False),
        Column("series", LargeBinary, nullable=False),
    )


def _to_3(op: "Operations") -> None:
    """The rate of a trial in the search for the highest; captures; throughput in fine bins."""
    op.add_column("repetitions", Column("rate_bps", BigInteger))
    op.add_column("repetitions", Column("captures", JSON))
    op.add_column("flows", Column("receiver_bins", LargeBinary))


def _to_4(op: "Operations") -> None:
    """Round trips beside streams."""
    op.create_table(
        "probes",
        _of_repetition(),
        Column("position", Integer, primary_key=True, autoincrement=False),
        Column("source", String(64), nullable=False),
        Column("destination", String(64), nullable=False),
        Column("direction", String(16), nullable=False),
        Column("started_ns", BigInteger, nullable=False),
        Column("series", LargeBinary, nullable=False),
    )


def _to_5(op: "Operations") -> None:
    """Tags, accepted levels, nights (rigctl 0.3)."""
    op.create_table(
        "tags",
        _of_run(),
        Column("name", String(64), primary_key=True),
        Column("value", Text, nullable=False),
    )
    op.create_table(
        "accepted",
        _of_run(),
        Column("accepted_at", Float(53), nullable=False),
        Column("who", Text, nullable=False),
        Column("because", Text, nullable=False),
    )
    op.create_table(
        "nights",
        Column("scenario", String(255), primary_key=True),
        Column("rig", String(255), primary_key=True),
        Column("due_at", Float(53), primary_key=True, autoincrement=False),
        Column("began_at", Float(53)),
        Column("ended_at", Float(53)),
        Column("outcome", String(16)),
        Column("run", String(64), ForeignKey("runs.run", ondelete="SET NULL")),
        Column("reason", Text),
        Column("unmet", Text, nullable=False),
        Column("news", Text),
        Column("next_due_at", Float(53)),
    )


STEPS: Final[dict[int, Step]] = {2: _to_2, 3: _to_3, 4: _to_4, 5: _to_5}
"""Step N makes a store of version N out of one of version N - 1."""


def migrate(connection: Connection, version: int) -> None:
    """Bring a store of `version` up to `SCHEMA_VERSION`: columns and tables are added, nothing is changed."""
    # Alembic takes 0.3 s to import; hardly any store needs it.
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    op = Operations(MigrationContext.configure(connection))
    for step in range(version + 1, SCHEMA_VERSION + 1):
        STEPS[step](op)
    connection.execute(update(versions).values(version=SCHEMA_VERSION))


def _of_run() -> "Column[str]":
    return Column("run", String(64), ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True)


def _of_repetition() -> "Column[int]":
    return Column("repetition_id", Integer, ForeignKey("repetitions.id", ondelete="CASCADE"), primary_key=True)
