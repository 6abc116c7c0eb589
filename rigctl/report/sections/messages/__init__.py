"""Ping-pong and blast: what a message of each size takes, in the form of a lab's page, and what that says."""

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Weight
from rigctl.report.blocks import Charts, Paragraph, Part, Section
from rigctl.report.sections.messages.chart import message_chart
from rigctl.report.sections.messages.lines import keys, lines
from rigctl.report.sections.messages.round_trips import round_trip_findings
from rigctl.report.sections.messages.table import table
from rigctl.report.sections.messages.words import message_findings, shaping_text
from rigctl.report.words.above_ceiling import message_excess_note

SECTION = "messages"
_BLAST_METHOD = (
    "The sender sends messages one after the other; the receiver takes them and sends one byte when it has all of "
    "them. Elapsed: from the first send to that byte, on the sender's clock."
)
_TRIP_METHOD = (
    "Each message is sent back when it has arrived whole, and the next one is sent when it is back. Elapsed: from the "
    "first send to the last answer, on the sender's clock. Mean, least and largest round trip are exact; percentiles "
    "are of a histogram, within 0.4 %."
)
_PLACES = (
    "Without busy polling both ends sleep while they wait. Where a pair has one flow, each end runs on the processor "
    "that its packets arrive at, if its system tells which: one that has to be woken for each message takes longer."
)
_CONNECTIONS = "Each repetition has a connection of its own; the time of its handshake is not counted."


def part(view: RunView) -> Part | None:
    """Of a run of messages; `None` of any other."""
    if view.section != SECTION:
        return None
    results = view.messages
    trips = view.plan.cells[0].kind.round_trips
    findings = [*message_findings(view), *round_trip_findings(results)]
    shaping = shaping_text(view.info, trips)
    if shaping:
        findings.append(Finding(shaping, Weight.RIG))
    return Part(
        findings=tuple(findings),
        results=table(results, lambda result: message_excess_note(view.info, result)),
        sections=_charts(view, trips),
        method=(_TRIP_METHOD, _PLACES, _CONNECTIONS) if trips else (_BLAST_METHOD, _CONNECTIONS),
    )


def _charts(view: RunView, trips: bool) -> tuple[Section, ...]:
    drawn = lines(view.messages)
    chart = message_chart(drawn, trips=trips)
    if chart is None:
        return ()
    note = (
        "Means; the bars reach from the median to the 99th percentile."
        if trips
        else "Throughput at the sender, until the receiver acknowledged the last byte; the dashed line is the ceiling."
    )
    title = "Round-trip time against message size" if trips else "Throughput against message size"
    return (Section(title, (Charts((chart,), keys(drawn), wide=True), Paragraph(note, small=True))),)
