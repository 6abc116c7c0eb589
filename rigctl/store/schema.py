"""Database tables with types that both SQLite and PostgreSQL have. docs/reference/store.md explains each table."""

from typing import Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

SCHEMA_VERSION: Final = 6
"""Incremented with every change of the tables. A store of another version is refused (`store.open`)."""

APPLICATION_ID: Final = 0x72696763
"""`rigc` in the header of the SQLite file, where file(1) shows it (sqlite.org/fileformat2.html, offset 68)."""

metadata: Final = MetaData()

versions: Final = Table("rigctl_schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

runs: Final = Table(
    "runs",
    metadata,
    Column("run", String(64), primary_key=True),
    Column("title", Text, nullable=False),
    Column("status", String(16), nullable=False),
    Column("started_at", Float(53), nullable=False),
    Column("ended_at", Float(53)),
    Column("plan", JSON, nullable=False),
    Column("versions", JSON, nullable=False),
    # The process that measures the run: host, process id, and the start of that process. NULL: the run has ended.
    Column("controller", String(255)),
)

facts: Final = Table(
    "facts",
    metadata,
    Column("run", ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True),
    Column("node", String(64), primary_key=True),
    Column("facts", JSON, nullable=False),
)

repetitions: Final = Table(
    "repetitions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", ForeignKey("runs.run", ondelete="CASCADE"), nullable=False),
    Column("cell", Integer, nullable=False),
    Column("repetition", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", Text),
    Column("started_at", Float(53), nullable=False),
    Column("wall_s", Float(53), nullable=False),
    Column("window_start_ns", BigInteger),
    Column("window_end_ns", BigInteger),
    Column("start_skew_us", Float(53)),
    Column("clock_error_us", Float(53)),
    Column("nodes", JSON, nullable=False),
    Column("goodput_median_bps", Float(53)),
    Column("counters_missing", JSON(none_as_null=True)),
    Column("rate_bps", BigInteger),
    Column("captures", JSON(none_as_null=True)),
    Index("repetitions_of_run", "run", "id"),
)

flows: Final = Table(
    "flows",
    metadata,
    Column("repetition_id", ForeignKey("repetitions.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("source", String(64), nullable=False),
    Column("destination", String(64), nullable=False),
    Column("direction", String(16), nullable=False),
    Column("number", Integer, nullable=False),
    Column("bytes", BigInteger),
    Column("retransmits", BigInteger),
    # none_as_null: a sender or receiver without a report is NULL in SQL, not the JSON text "null".
    Column("sender", JSON(none_as_null=True)),
    Column("receiver", JSON(none_as_null=True)),
    Column("sender_series", LargeBinary),
    Column("receiver_series", LargeBinary),
    Column("receiver_bins", LargeBinary),
)

counters: Final = Table(
    "counters",
    metadata,
    Column("repetition_id", ForeignKey("repetitions.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("switch", String(64), nullable=False),
    Column("port", String(255), nullable=False),
    Column("source", String(16), nullable=False),
    Column("series", LargeBinary, nullable=False),
)

probes: Final = Table(
    "probes",
    metadata,
    Column("repetition_id", ForeignKey("repetitions.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("source", String(64), nullable=False),
    Column("destination", String(64), nullable=False),
    Column("direction", String(16), nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("series", LargeBinary, nullable=False),
)

tags: Final = Table(
    "tags",
    metadata,
    Column("run", ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

accepted: Final = Table(
    "accepted",
    metadata,
    Column("run", ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True),
    Column("accepted_at", Float(53), nullable=False),
    Column("who", Text, nullable=False),
    Column("because", Text, nullable=False),
)

nights: Final = Table(
    "nights",
    metadata,
    Column("scenario", String(255), primary_key=True),
    Column("rig", String(255), primary_key=True),
    Column("due_at", Float(53), primary_key=True, autoincrement=False),
    Column("began_at", Float(53)),
    Column("ended_at", Float(53)),
    Column("outcome", String(16)),
    Column("run", ForeignKey("runs.run", ondelete="SET NULL")),
    Column("reason", Text),
    Column("in_part", Boolean, nullable=False),
    # JSON stored as text, so that a wrong value in one row does not end the reading of all rows.
    Column("unmet", Text, nullable=False),
    Column("news", Text),
    Column("next_due_at", Float(53)),
)

night_figures: Final = Table(
    "night_figures",
    metadata,
    Column("run", ForeignKey("runs.run", ondelete="CASCADE"), primary_key=True),
    # Written and read by earlier rigctl of this schema only; `store.kept_results` took its place.
    Column("rules", Integer, nullable=False),
    Column("figures", Text, nullable=False),
)
