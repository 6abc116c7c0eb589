"""Messages to and from the agent: docs/reference/agent-protocol.md, version 4, as frozen records.

Times stay on the *node's* clock here; `rigctl.remote.sides` moves them to the controller's.
"""

from typing import Final

from rigctl.protocol.lines import (
    LINE_LIMIT,
    Answer,
    Captured,
    Ended,
    FlowBins,
    FlowBuckets,
    FlowDatagrams,
    FlowRows,
    FlowTotals,
    Hello,
    Message,
    Part,
    PcapPiece,
    Progress,
    parse_line,
    shown,
)
from rigctl.protocol.orders import (
    Clock,
    Close,
    Connect,
    Listen,
    Order,
    Ping,
    Probe,
    Probed,
    Quit,
    Ready,
    Report,
    Restore,
    Set,
    Sockets,
    Start,
    Stop,
    encoded,
)
from rigctl.protocol.report import ROWS_LIMIT, EndpointReport, FlowReport, endpoint_report

VERSION: Final = 4

__all__ = [
    "LINE_LIMIT",
    "ROWS_LIMIT",
    "VERSION",
    "Answer",
    "Captured",
    "Clock",
    "Close",
    "Connect",
    "Ended",
    "EndpointReport",
    "FlowBins",
    "FlowBuckets",
    "FlowDatagrams",
    "FlowReport",
    "FlowRows",
    "FlowTotals",
    "Hello",
    "Listen",
    "Message",
    "Order",
    "Part",
    "PcapPiece",
    "Ping",
    "Probe",
    "Probed",
    "Progress",
    "Quit",
    "Ready",
    "Report",
    "Restore",
    "Set",
    "Sockets",
    "Start",
    "Stop",
    "encoded",
    "endpoint_report",
    "parse_line",
    "shown",
]
