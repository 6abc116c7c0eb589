"""The data of a product's page as JSON: what is claimed and why, the table, and a Dataset of schema.org.

https://schema.org/Dataset, https://schema.org/PropertyValue: `variableMeasured` is where measured values belong.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rigctl.base.version import __version__
from rigctl.report.blocks import Column, Entry, Row
from rigctl.report.product.claim import Claim, NoClaim
from rigctl.report.product.content import Product
from rigctl.report.product.table import values_of
from rigctl.report.product.theme import Theme

Value = float | int | str | bool | None
Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Model(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class ClaimData(Model):
    made: bool
    text: str | None = Field(description="The claim as it is published; null: none is made.")
    reasons: list[str] = Field(description="Why none is made.")
    tests: list[int] = Field(description="What it is made of.")
    goodput_mbps: float | None = Field(description="On each pair, at least.")
    ceiling_mbps: float | None
    share_pct: float | None
    repetitions: int | None


class ColumnData(Model):
    title: str
    unit: str


class RowData(Model):
    test: int | None
    texts: list[str]
    values: list[Value | list[Value]]


class TermData(Model):
    name: str
    text: str


class ProductDocument(Model):
    """product.json beside a fragment."""

    name: str = Field(description="Of the product, or of both.")
    maker: str | None
    url: str | None
    run: str
    measured_at: Instant
    rigctl: str
    virtual: bool = Field(description="Measured on a virtual rig: no product was connected.")
    claim: ClaimData | None = Field(description="null: the theme wants none.")
    verdict: list[str] = Field(description="Of two products side by side; else empty.")
    columns: list[ColumnData]
    rows: list[RowData]
    conditions: list[TermData]
    schema_org: dict[str, Any] = Field(description="A Dataset of schema.org, as it is in the fragment.")


def product_json(product: Product) -> str:
    """Return the text of product.json."""
    theme = product.theme
    document = ProductDocument(
        name=product.name,
        maker=theme.maker,
        url=theme.url,
        run=product.info.run,
        measured_at=_instant(product),
        rigctl=__version__,
        virtual=product.virtual,
        claim=_claim(product.claim),
        verdict=list(product.verdict),
        columns=[ColumnData(title=column.title, unit=column.unit) for column in product.table.columns],
        rows=[_row(row) for row in product.table.rows],
        conditions=[TermData(name=term.name, text=term.text) for term in product.conditions],
        schema_org=linked_data(product),
    )
    return document.model_dump_json(indent=2) + "\n"


def _claim(claim: Claim | NoClaim | None) -> ClaimData | None:
    if claim is None:
        return None
    made = claim if isinstance(claim, Claim) else None
    return ClaimData(
        made=made is not None,
        text=str(made) if made else None,
        reasons=[] if isinstance(claim, Claim) else list(claim.reasons),
        tests=list(made.tests) if made else [],
        goodput_mbps=made.mbps if made else None,
        ceiling_mbps=round(made.ceiling_mbps, 3) if made else None,
        share_pct=float(made.share) if made else None,
        repetitions=made.repetitions if made else None,
    )


def _row(row: Row) -> RowData:
    values = [list(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in row.entries]
    return RowData(test=row.test, texts=[entry.text for entry in row.entries], values=values)


def _instant(product: Product) -> str:
    return datetime.fromtimestamp(product.info.started_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def linked_data(product: Product) -> dict[str, Any]:
    """Return the page as a Dataset of schema.org. Figures of a virtual rig are about no product."""
    theme = product.theme
    claimed = str(product.claimed or next(iter(product.verdict), product.summary).rstrip("."))
    data: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": product.title,
        "description": f"{claimed}. {product.source} {product.technique}.",
        "identifier": product.info.run,
        "dateCreated": _instant(product),
        "measurementTechnique": product.technique,
        "isAccessibleForFree": True,
        "variableMeasured": [value for row in product.table.rows for value in _measured(product, row)],
    }
    if not product.virtual:
        about = [_about(own) for own in (theme, product.other) if own is not None]
        data["about"] = about if len(about) > 1 else about[0]
    if theme.maker:
        data["creator"] = {"@type": "Organization", "name": theme.maker}
    if theme.url:
        data["url"] = theme.url
    return data


def _about(theme: Theme) -> dict[str, Any]:
    about: dict[str, Any] = {"@type": "Product", "name": theme.name}
    if theme.maker:
        about["brand"] = {"@type": "Brand", "name": theme.maker}
    if theme.url:
        about["url"] = theme.url
    return about


def _measured(product: Product, row: Row) -> Iterator[dict[str, Any]]:
    streams = next((cell.streams for cell in product.info.plan.cells if cell.number == row.test), ())
    for column, entry in zip(product.table.columns, row.entries, strict=True):
        values = values_of(entry) if column.group == "measured" else ()
        for number, value in enumerate(values):
            if value is not None:
                which = f", {streams[number]}" if len(values) == len(streams) > 1 else ""
                name = f"Test {row.test}{which}: {column.title}"
                yield _property(column, name, _printed(entry, number, value))


def _printed(entry: Entry, number: int, value: Value) -> Value:
    """Return a value with the digits that the table prints: no others were measured."""
    texts = re.findall(r"[0-9][0-9.]*", entry.text)
    return float(texts[number]) if isinstance(value, int | float) and number < len(texts) else value


def _property(column: Column, name: str, value: Value) -> dict[str, Any]:
    unit = {"unitText": column.unit} if column.unit else {}
    return {"@type": "PropertyValue", "name": name, "value": value, **unit}
