"""Prints a document as JSON: all findings, and tables with texts and values. docs/reference/json.md has the schema."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from rigctl.figures.figure import FiguresOfTest
from rigctl.findings import Finding
from rigctl.report.blocks import Block, Chart, Charts, Document, Folded, HeatMaps, Section, Table, Verdict


@dataclass(frozen=True, slots=True)
class JsonSubject:
    kind: str
    names: list[str]


@dataclass(frozen=True, slots=True)
class JsonFinding:
    """A finding. Findings with a higher `weight` come first; the first finding is the answer."""

    code: str  # identifies the kind of finding; stays the same when the text changes
    text: str
    weight: int
    level: Literal["ok", "note", "warning", "error"]
    subject: JsonSubject
    numbers: dict[str, float | int | str | bool | None]
    remedy: str | None
    brief: str  # the answer in few words; "": the finding is no answer


@dataclass(frozen=True, slots=True)
class JsonSection:
    """A titled section.

    `blocks` are tables, charts (as text alternatives), heat maps and texts, each with its `kind`.
    """

    title: str
    blocks: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """The report of a run. A table has `columns`, and rows with `texts` and the `values` of these texts."""

    version: Literal[1]
    title: str
    run: str
    about: list[str]
    tags: dict[str, str]
    settings: dict[str, str]  # settings in effect, by name
    findings: list[JsonFinding]
    expectations: list[Verdict]
    figures: list[FiguresOfTest]  # known figures by the names of docs/reference/columns.md
    results: list[JsonSection]
    sections: list[JsonSection]


def as_json(document: Document) -> str:
    """Return the document as JSON. A chart is replaced by its text alternative."""
    figures = [asdict(own) for own in document.figures()]
    return json.dumps(document_json(document) | {"figures": figures}, ensure_ascii=False, indent=1) + "\n"


def finding_json(finding: Finding) -> dict[str, Any]:
    """Return the finding as JSON-compatible values, without `statements`, which are for tests."""
    made = asdict(replace(finding, statements=()))
    del made["statements"]
    return made


def document_json(document: Document) -> dict[str, Any]:
    """Return the document as JSON-compatible values."""
    return {
        "version": 1,
        "title": document.title,
        "run": document.run,
        "about": list(document.about),
        "tags": dict(document.tags),
        "settings": dict(document.settings),
        "findings": [finding_json(finding) for finding in document.findings],
        "expectations": [asdict(verdict) for verdict in document.verdicts],
        "results": [_section(section) for section in document.results],
        "sections": [_section(section) for section in document.sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {"title": section.title, "blocks": [_block(block) for block in section.blocks]}


def block_kind(block: Block) -> str:
    return type(block).__name__.lower()


def _block(block: Block) -> dict[str, Any]:
    kind = {"kind": block_kind(block)}
    match block:
        case Table():
            return kind | _table(block)
        case Charts():
            return kind | {"charts": [_chart(chart) for chart in block.charts]}
        case HeatMaps():
            maps = [asdict(heat_map) | {"chart": None} for heat_map in block.maps]
            return kind | {"unit": block.unit, "maps": maps}
        case Folded():
            return kind | {"summary": block.summary, "blocks": [_block(inner) for inner in block.blocks]}
        case _:
            return kind | asdict(block)


def _chart(chart: Chart) -> dict[str, str]:
    return {"heading": chart.heading, "caption": chart.caption, "label": chart.label}


def _table(table: Table) -> dict[str, Any]:
    rows = [
        {
            "test": row.test,
            **({} if row.part is None else {"part": row.part}),
            "counted": row.counted,
            "texts": [entry.text for entry in row.entries],
            "values": [list(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in row.entries],
            "notes": list(row.notes),
        }
        for row in table.rows
    ]
    columns = [{"title": column.title, "unit": column.unit, "group": column.group} for column in table.columns]
    return {"columns": columns, "rows": rows, "notes": list(table.notes), "legend": list(table.legend)}
