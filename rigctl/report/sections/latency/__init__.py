"""Latency under load: round trips of the probes beside streams, idle and under load, and what they say of the queue."""

from rigctl.analysis.run_view import RunView
from rigctl.model.latency import KEPT, PROBE_BYTES
from rigctl.report.blocks import Block, Part, Section
from rigctl.report.sections.latency.chart import charts
from rigctl.report.sections.latency.table import results, table
from rigctl.report.sections.latency.words import findings

METHOD = (
    f"Round trips: UDP probes of {PROBE_BYTES} bytes at a steady pace from the sender of the data to the receiver and "
    "back, by threads of their own, first without the streams (idle), then beside them (loaded). Round trips per "
    f"minute are 60 s over the mean of the shortest {100 * KEPT:.0f} % of the loaded ones."
)


def part(view: RunView) -> Part | None:
    """Of tests with probes; `None` where none was measured."""
    found = results(view)
    if not found:
        return None
    blocks: list[Block] = [table(found)]
    drawn = charts(view)
    if drawn is not None:
        blocks.append(drawn)
    section = Section("Latency under load", tuple(blocks), brief=True)
    return Part(findings=tuple(findings(found)), sections=(section,), method=(METHOD,))
