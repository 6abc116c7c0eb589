"""Results above the ceiling: what explains them, or that nothing does."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.messages import MessageResult
from rigctl.analysis.views.shaping import carried_mbps, messages_carried_mbps, short_excess, short_messages_excess
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.unknowns import least
from rigctl.records import RunInfo
from rigctl.report.words.text import ceiling_text, numbers_text, percent_text

_SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
_SHORT = "the token buckets of virtual links pass 128 KiB at once, which counts in so short a test"
_LONGER = "A longer test, or one of more bytes, reduces this."
_UNKNOWN = "the rate in the rig file or a node is wrong. Compare that rate with the link"


def excess_cause(info: RunInfo, cell: CellSummary) -> str:
    """Why a test exceeds its ceiling; what to compare where nothing explains it."""
    if info.plan.virtual == "namespaces":
        carried_each, ceiling_each = carried_mbps(info, cell), least(stream.ceiling_mbps for stream in cell.streams)
        if carried_each is not None and ceiling_each is not None and carried_each > 1.005 * ceiling_each:
            return _SHAPED
        if short_excess(info, cell):
            return _SHORT
    return _UNKNOWN


def impossible(info: RunInfo, cell: CellSummary) -> bool:
    """Tell whether a test is above its ceiling and nothing explains it."""
    return cell.above_ceiling and excess_cause(info, cell) == _UNKNOWN


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
    yield from _findings(
        [(cell.cell.number, cell.efficiency, excess_cause(info, cell)) for cell in cells if cell.above_ceiling]
    )


def message_excess_cause(info: RunInfo, result: MessageResult) -> str:
    """The same of a test that counts messages."""
    carried, ceiling_bps = messages_carried_mbps(info, result), result.ceiling_bps
    if info.plan.virtual == "namespaces" and carried is not None and ceiling_bps is not None:
        if carried * 1e6 > 1.005 * ceiling_bps:
            return _SHAPED
        if short_messages_excess(info, result):
            return _SHORT
    return _UNKNOWN


def message_excess_note(info: RunInfo, result: MessageResult) -> list[str]:
    """The note of a row above its ceiling."""
    if not result.above_ceiling:
        return []
    cause = message_excess_cause(info, result)
    return [f"Test {result.cell.number}: {percent_text(result.efficiency)} % of the ceiling: {cause}."]


def message_excess_findings(info: RunInfo, results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Tests above the ceiling, by their cause."""
    yield from _findings(
        [
            (result.cell.number, result.efficiency, message_excess_cause(info, result))
            for result in results
            if result.above_ceiling
        ]
    )


def _findings(above: Sequence[tuple[int, float | None, str]]) -> Iterator[Finding]:
    """Of the numbers, efficiencies and causes of tests: one finding for each cause."""
    for cause in dict.fromkeys(found for _, _, found in above):
        numbers = list(dict.fromkeys(number for number, _, found in above if found == cause))
        worst = max(share or 0.0 for _, share, found in above if found == cause)
        which = f"{numbers_text(numbers)}{', the highest' if len(numbers) > 1 else ''}"
        text = f"Above the ceiling: {which} at {percent_text(worst)} %: {cause}."
        remedy = _LONGER if cause == _SHORT else None
        weight = Weight.IMPOSSIBLE if cause == _UNKNOWN else Weight.SUSPECT
        yield Finding(text, weight, Severity.WARNING, tests(numbers), {"efficiency": worst}, remedy)
