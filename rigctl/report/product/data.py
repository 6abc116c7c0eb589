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
from rigctl.report.product.claim import Claim
from rigctl.report.product.content import Product
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
    theme = product.theme
    document = ProductDocument(
        name=product.name,
        maker=theme.maker,
        url=theme.url,
        run=product.info.run,
        measured_at=_instant(product),
        rigctl=__version__,
        virtual=product.virtual,
        claim=_claim(product),
        verdict=list(product.verdict),
        columns=[ColumnData(title=column.title, unit=column.unit) for column in product.table.columns],
        rows=[_row(row) for row in product.table.rows],
        conditions=[TermData(name=term.name, text=term.text) for term in product.conditions],
        schema_org=linked_data(product),
    )
    return document.model_dump_json(indent=2) + "\n"


def _claim(product: Product) -> ClaimData | None:
    found = product.claim
    if found is None:
        return None
    if isinstance(found, Claim):
        return ClaimData(
            made=True,
            text=str(found),
            reasons=[],
            tests=list(found.tests),
            goodput_mbps=found.mbps,
            ceiling_mbps=round(found.ceiling_mbps, 3),
            share_pct=float(found.share),
            repetitions=found.repetitions,
        )
    return ClaimData(
        made=False, text=None, reasons=list(found.reasons), tests=[], goodput_mbps=None, ceiling_mbps=None,
        share_pct=None, repetitions=None,
    )  # fmt: skip


def _row(row: Row) -> RowData:
    values = [list(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in row.entries]
    return RowData(test=row.test, texts=[entry.text for entry in row.entries], values=values)


def _instant(product: Product) -> str:
    return datetime.fromtimestamp(product.info.started_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def linked_data(product: Product) -> dict[str, Any]:
    theme = product.theme
    maker = {"@type": "Organization", "name": theme.maker} if theme.maker else None
    about = [_about(own) for own in (theme, product.other) if own is not None]
    claimed = _said(product)
    made: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": product.title,
        "description": f"{claimed}. {product.source} {product.technique}.",
        "identifier": product.info.run,
        "dateCreated": _instant(product),
        "measurementTechnique": product.technique,
        "isAccessibleForFree": True,
        "variableMeasured": [value for row in product.table.rows for value in _values(product, row)],
    }
    if not product.virtual:  # a virtual rig's figures are about no product
        made["about"] = about if len(about) > 1 else about[0]
    if maker:
        made["creator"] = maker
    if theme.url:
        made["url"] = theme.url
    return made


def _said(product: Product) -> str:
    if isinstance(product.claim, Claim):
        return str(product.claim)
    return product.verdict[0].rstrip(".") if product.verdict else product.summary


def _about(theme: Theme) -> dict[str, Any]:
    about: dict[str, Any] = {"@type": "Product", "name": theme.name}
    if theme.maker:
        about["brand"] = {"@type": "Brand", "name": theme.maker}
    if theme.url:
        about["url"] = theme.url
    return about


def _values(product: Product, row: Row) -> Iterator[dict[str, Any]]:
    """What was measured of a test, each pair by itself."""
    streams = next((cell.streams for cell in product.info.plan.cells if cell.number == row.test), ())
    for column, entry in zip(product.table.columns, row.entries, strict=True):
        if column.group != "measured":
            continue
        values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
        for number, value in enumerate(values):
            if value is None:
                continue
            which = f", {streams[number]}" if len(values) == len(streams) > 1 else ""
            yield _value(column, entry, value, f"Test {row.test}{which}: {column.title}", number)


def _value(column: Column, entry: Entry, value: Value, name: str, number: int) -> dict[str, Any]:
    """The value as it is printed, not with digits that were not measured."""
    texts = re.findall(r"[0-9][0-9.]*", entry.text)
    printed = float(texts[number]) if isinstance(value, int | float) and number < len(texts) else value
    made = {"@type": "PropertyValue", "name": name, "value": printed}
    return made | ({"unitText": column.unit} if column.unit else {})
