"""What the documents that `--json` prints have in common."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Model(BaseModel):
    """A part of a document: its schema names every field, and there are no others."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


def instant(unix_s: float) -> str:
    """`2026-11-22T04:10:00Z`."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
