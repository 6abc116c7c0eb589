"""The data of a product's page as JSON: what is claimed and why, the table, and a Dataset of schema.org.

https://schema.org/Dataset, https://schema.org/PropertyValue: `variableMeasured` is where measured values belong.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from rigctl.base.version import __version__
from rigctl.report.blocks import Row, Scalar
from rigctl.report.product.claim import Claim, NoClaim
from rigctl.report.product.content import Product
from rigctl.report.product.table import values_of
from rigctl.report.product.theme import Theme

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
    values: list[Scalar | list[Scalar]]


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
    document = ProductDocument(
        name=product.name,
        maker=product.theme.maker,
        url=product.theme.url,
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
    if isinstance(claim, NoClaim):
        unknown = dict.fromkeys(("text", "goodput_mbps", "ceiling_mbps", "share_pct", "repetitions"))
        return ClaimData.model_validate({"made": False, "reasons": claim.reasons, "tests": (), **unknown})
    return ClaimData(
        made=True,
        text=str(claim),
        reasons=[],
        tests=list(claim.tests),
        goodput_mbps=claim.mbps,
        ceiling_mbps=round(claim.ceiling_mbps, 3),
        share_pct=float(claim.share),
        repetitions=claim.repetitions,
    )


def _row(row: Row) -> RowData:
    values = [list(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in row.entries]
    return RowData(test=row.test, texts=[entry.text for entry in row.entries], values=values)


def _instant(product: Product) -> str:
    return f"{datetime.fromtimestamp(product.info.started_at, UTC):%Y-%m-%dT%H:%M:%SZ}"


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
        data["about"] = [_about(theme), _about(product.other)] if product.other else _about(theme)
    if theme.maker:
        data["creator"] = {"@type": "Organization", "name": theme.maker}
    if theme.url:
        data["url"] = theme.url
    return data


def _about(theme: Theme) -> dict[str, Any]:
    brand = {"brand": {"@type": "Brand", "name": theme.maker}} if theme.maker else {}
    return {"@type": "Product", "name": theme.name, **brand, **({"url": theme.url} if theme.url else {})}


def _measured(product: Product, row: Row) -> Iterator[dict[str, Any]]:
    """Yield the measured values of a row with the digits that the table prints: no others were measured."""
    streams = next((cell.streams for cell in product.info.plan.cells if cell.number == row.test), ())
    for column, entry in zip(product.table.columns, row.entries, strict=True):
        values = values_of(entry) if column.group == "measured" else ()
        printed = re.findall(r"[0-9][0-9.]*", entry.text)
        unit = {"unitText": column.unit} if column.unit else {}
        for number, value in enumerate(values):
            if value is not None:
                which = f", {streams[number]}" if len(values) == len(streams) > 1 else ""
                is_printed = isinstance(value, int | float) and number < len(printed)
                name = f"Test {row.test}{which}: {column.title}"
                shown = float(printed[number]) if is_printed else value
                yield {"@type": "PropertyValue", "name": name, "value": shown, **unit}
