"""A document as JSON: findings whole, tables with texts and values. docs/json.md has the schema."""

import json
from dataclasses import asdict
from typing import Any

from rigctl.report.blocks import Block, Chart, Charts, Document, Folded, HeatMaps, Section, Table


def as_json(document: Document) -> str:
    """The whole document, charts by their text alternatives only."""
    whole = {
        "title": document.title,
        "run": document.run,
        "about": list(document.about),
        "findings": [asdict(finding) | {"weight": int(finding.weight)} for finding in document.findings],
        "results": [_section(section) for section in document.results],
        "sections": [_section(section) for section in document.sections],
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _section(section: Section) -> dict[str, Any]:
    return {"title": section.title, "blocks": [_block(block) for block in section.blocks]}


def _block(block: Block) -> dict[str, Any]:
    kind = {"kind": type(block).__name__.lower()}
    match block:
        case Table():
            return kind | _table(block)
        case Charts():
            return kind | {"charts": [_chart(chart) for chart in block.charts]}
        case HeatMaps():
            maps = [asdict(heat_map) | {"chart": heat_map.chart and _chart(heat_map.chart)} for heat_map in block.maps]
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
            "counted": row.counted,
            "texts": [entry.text for entry in row.entries],
            "values": [list(entry.value) if isinstance(entry.value, tuple) else entry.value for entry in row.entries],
            "notes": list(row.notes),
        }
        for row in table.rows
    ]
    columns = [{"title": column.title, "unit": column.unit, "group": column.group} for column in table.columns]
    return {"columns": columns, "rows": rows, "notes": list(table.notes), "legend": list(table.legend)}
