"""Results above the ceiling: what explains them, or that nothing does."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.shaping import carried_mbps, short_excess
from rigctl.analysis.summary import CellSummary
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.unknowns import least
from rigctl.records import RunInfo
from rigctl.report.text import ceiling_text, numbers_text, percent_text

_SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
_SHORT = "the token buckets of virtual links pass 128 KiB at once, which counts in so short a test"
_UNKNOWN = "the cause is unknown: compare the rates in the rig file with the links"


def excess_cause(info: RunInfo, cell: CellSummary) -> str:
    """Why a test exceeds its ceiling; what to compare where the cause is unknown."""
    if info.plan.virtual == "namespaces":
        carried_each, ceiling_each = carried_mbps(info, cell), least(stream.ceiling_mbps for stream in cell.streams)
        if carried_each is not None and ceiling_each is not None and carried_each > 1.005 * ceiling_each:
            return _SHAPED
        if short_excess(info, cell):
            return _SHORT
    return _UNKNOWN


def excess_note(info: RunInfo, cell: CellSummary) -> list[str]:
    """The note of a row above its ceiling."""
    if not cell.above_ceiling:
        return []
    cause, carried_each = excess_cause(info, cell), carried_mbps(info, cell)
    if cause == _SHAPED and carried_each is not None:
        cause += f", {ceiling_text(carried_each)} Mbit/s{' on each pair' if len(cell.streams) > 1 else ''}"
    return [f"Test {cell.cell.number}: {percent_text(cell.efficiency)} % of the ceiling: {cause}."]


def excess_findings(info: RunInfo, cells: Sequence[CellSummary]) -> Iterator[Finding]:
    """Tests above the ceiling, by their cause."""
    causes: dict[str, list[CellSummary]] = {}
    for cell in cells:
        if cell.above_ceiling:
            causes.setdefault(excess_cause(info, cell), []).append(cell)
    for cause, above in causes.items():
        numbers = [cell.cell.number for cell in above]
        worst = max(cell.efficiency or 0.0 for cell in above)
        text = f"Above the ceiling: {numbers_text(numbers)}, {percent_text(worst)} % at most: {cause}."
        yield Finding(text, Weight.SUSPECT, Severity.WARNING, tests(numbers), {"efficiency": worst})
