"""Explain results above the ceiling, as far as the data allow."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.messages import MessageResult
from rigctl.analysis.views.shaping import carried_mbps, messages_carried_mbps, short_excess, short_messages_excess
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.model.unknowns import least
from rigctl.records import RunInfo
from rigctl.report.words.text import ceiling_text, numbers_text, percent_text

Measured: TypeAlias = CellSummary | MessageResult


class Cause(StrEnum):
    """Reason why a result exceeds its ceiling, as a part of a sentence."""

    SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
    SHORT = "the token buckets of virtual links pass 128 KiB at once, which counts in so short a test"
    UNKNOWN = "the rate in the rig file or a node is wrong. Compare that rate with the link"


def excess_cause(info: RunInfo, measured: Measured) -> Cause:
    """Return why a test exceeds its ceiling."""
    if info.plan.virtual != "namespaces":
        return Cause.UNKNOWN
    if isinstance(measured, MessageResult):
        carried = messages_carried_mbps(info, measured)
        ceiling = None if measured.ceiling_bps is None else measured.ceiling_bps / 1e6
        short = carried is not None and short_messages_excess(info, measured)
    else:
        carried, ceiling = carried_mbps(info, measured), least(stream.ceiling_mbps for stream in measured.streams)
        short = short_excess(info, measured)
    if carried is not None and ceiling is not None and carried > 1.005 * ceiling:
        return Cause.SHAPED
    return Cause.SHORT if short else Cause.UNKNOWN


def impossible(info: RunInfo, cell: CellSummary) -> bool:
    """Tell whether a test is above its ceiling and nothing explains it."""
    return cell.above_ceiling and excess_cause(info, cell) is Cause.UNKNOWN


def excess_note(info: RunInfo, measured: Measured) -> list[str]:
    """Return the note of a row above its ceiling; empty for any other row."""
    if not measured.above_ceiling:
        return []
    cause = excess_cause(info, measured)
    text = str(cause)
    if cause is Cause.SHAPED and isinstance(measured, CellSummary):
        each = " on each pair" if len(measured.streams) > 1 else ""
        text += f", {ceiling_text(carried_mbps(info, measured))} Mbit/s{each}"
    return [f"Test {measured.cell.number}: {percent_text(measured.efficiency)} % of the ceiling: {text}."]


def excess_findings(info: RunInfo, results: Sequence[Measured]) -> Iterator[Finding]:
    """Yield a finding for each cause, with the tests above their ceilings."""
    by_cause = grouped([each for each in results if each.above_ceiling], lambda each: excess_cause(info, each))
    for cause, above in by_cause.items():
        numbers = list(dict.fromkeys(result.cell.number for result in above))
        worst = max(result.efficiency or 0.0 for result in above)
        which = f"{numbers_text(numbers)}{', the highest' if len(numbers) > 1 else ''}"
        text = f"Above the ceiling: {which} at {percent_text(worst)} %: {cause}."
        remedy = "A longer test, or one of more bytes, reduces this." if cause is Cause.SHORT else None
        weight = Weight.IMPOSSIBLE if cause is Cause.UNKNOWN else Weight.SUSPECT
        yield Finding(text, weight, Severity.WARNING, tests(numbers), {"efficiency": worst}, remedy)
