"""The base of the documents that `--json` prints: models that read their fields from rigctl's records.

A field has the value of the record's attribute of that name, or of the one that `at` names. The JSON Schemas in
docs/schemas follow from the models (docs/reference/json.md). Fields may be added; none is renamed or removed while
`version` stays the same. null is unknown, never 0.
"""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field


class Model(BaseModel):
    """A part of a document: its schema names every field, and there are no others."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    @classmethod
    def text_of(cls, *, context: object = None, indent: int = 2, **records: object) -> str:
        """Return the document with these records, as JSON."""
        return cls.model_validate(SimpleNamespace(**records), context=context).model_dump_json(indent=indent)


def at(path: str, description: str | None = None) -> Any:  # noqa: ANN401 — takes the place of a value, as Field does
    """Return a field that is read from this attribute of the record, as `info.plan.title`."""
    return Field(validation_alias=AliasPath(*path.split(".")), description=description)


def of(attribute: str) -> BeforeValidator:
    """Read this attribute of a record that may be None: null then."""
    return BeforeValidator(lambda record: None if record is None else getattr(record, attribute))


def instant(unix_s: float) -> str:
    """Write Unix seconds as `2026-11-22T04:10:00Z`."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def percent(share: float, digits: int = 6) -> float:
    """Return a share in percent, rounded."""
    return round(100 * share, digits)


Instant = Annotated[str, BeforeValidator(instant), Field(json_schema_extra={"format": "date-time"})]
"""From Unix seconds."""
Mbps = Annotated[float, BeforeValidator(lambda rate_bps: round(rate_bps / 1e6, 3))]
"""From bit/s."""
Percent = Annotated[float, BeforeValidator(percent)]
"""From a share."""
Count = Annotated[int, BeforeValidator(len)]
"""From what is counted."""


class Variants(Model):
    """The two variants of every test of a run with --against."""

    setting: str = Field(description="An axis, condition among them.")
    before: str
    after: str
