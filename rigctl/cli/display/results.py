"""Turns a report into what the rig's screen shows: the answer, the tables, the findings."""

from collections.abc import Iterator
from typing import Final

from rigctl.display.state import Column, Results, Said, Table, Total
from rigctl.report.blocks import Block, Document, HeatMaps
from rigctl.report.blocks import Table as ReportTable

MOST_ROWS: Final = 500
MOST_FINDINGS: Final = 12


def results_of(document: Document) -> Results:
    """Return what the screen shows after a run."""
    several = len(document.results) > 1
    tables = [
        table
        for section in document.results
        for block in section.blocks
        for table in _tables(section.title if several else "", block)
    ]
    findings = [
        Said(level=finding.level.value, text=" ".join(filter(None, (finding.text, finding.remedy))))
        for finding in document.findings[: MOST_FINDINGS + 1]
    ]
    answer = findings[0].text if findings else None
    return Results(answer=answer, totals=tuple(_totals(document)), findings=tuple(findings[1:]), tables=tuple(tables))


def _totals(document: Document) -> Iterator[Total]:
    """Yield the totals in the first column of measured rates of the first table that has one."""
    blocks = (block for section in document.results for block in section.blocks if isinstance(block, ReportTable))
    for block in blocks:
        rates = [at for at, each in enumerate(block.columns) if each.unit == "Mbit/s" and each.group == "measured"]
        if not rates:
            continue
        for row in block.rows[:MOST_ROWS]:
            value = row.entries[rates[0]].value
            parts = value if isinstance(value, tuple) else (value,)
            known = [part for part in parts if isinstance(part, int | float)]
            if row.test is not None and known and len(known) == len(parts):
                yield Total(test=row.test, goodput_mbps=sum(known))
        return


def _tables(title: str, block: Block) -> Iterator[Table]:
    if isinstance(block, ReportTable):
        shown = [*block.rows[:MOST_ROWS], *((block.total,) if block.total else ())]
        yield Table(
            title=title,
            columns=tuple(Column(title=each.title, unit=each.unit, words=each.words) for each in block.columns),
            rows=tuple(tuple(entry.text for entry in row.entries) for row in shown),
        )
    if isinstance(block, HeatMaps):
        for heat_map in block.maps:
            rows = heat_map.rows[:MOST_ROWS]
            yield Table(
                title=", ".join(filter(None, (title, heat_map.title, block.unit))),
                columns=tuple(Column(title=each) for each in (heat_map.corner, *heat_map.columns)),
                rows=tuple((label, *(field.text for field in fields)) for label, fields in rows),
            )
