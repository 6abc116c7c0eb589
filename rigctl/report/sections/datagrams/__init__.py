"""Datagrams: what was sent, what arrived and how; the highest rate with a given loss."""

from rigctl.analysis.run_view import RunView
from rigctl.report.blocks import Part, Section
from rigctl.report.sections.datagrams.findings import datagram_findings
from rigctl.report.sections.datagrams.search import search_table
from rigctl.report.sections.datagrams.table import datagram_table
from rigctl.report.sections.datagrams.words import explain
from rigctl.report.tables.details import details

SECTION = "datagrams"
_METHOD = (
    "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran (the "
    "measurement interval); a duplicate counts once. Loss, order and jitter are of all that a test sent.",
    "Each datagram carries a number and the time it was handed over. Jitter is that of RFC 3550 as it stood at the "
    "end; datagrams that a kernel handed over together arrived at one instant.",
)


def part(view: RunView) -> Part | None:
    """Of a run of UDP streams; `None` of any other."""
    if view.section != SECTION:
        return None
    trials = search_table(view)
    title = "The search for the highest rate, trial by trial"
    return Part(
        findings=tuple(datagram_findings(view)),
        results=datagram_table(view.info, view.cells),
        sections=(Section(title, (trials,), brief=True),) if trials is not None else (),
        details=details(view, lambda cell: explain(view.info, cell)),
        method=_METHOD,
    )
