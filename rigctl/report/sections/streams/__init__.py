"""TCP streams: the comparison table, the answer and findings of a run, and each test explained."""

from rigctl.analysis.run_view import RunView
from rigctl.report.blocks import Part
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.sections.streams.findings import stream_findings
from rigctl.report.sections.streams.words import explain
from rigctl.report.tables.details import details

SECTION = "streams"
_METHOD = (
    "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran (the "
    "measurement interval); retransmits are TCP segments retransmitted in that time."
)


def part(view: RunView) -> Part | None:
    """Of a run of TCP streams; `None` of any other."""
    if view.section != SECTION:
        return None
    return Part(
        findings=tuple(stream_findings(view)),
        results=comparison(view.info, view.cells),
        details=details(view, lambda cell: explain(view.info, cell)),
        method=(_METHOD,),
    )
