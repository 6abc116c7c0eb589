"""Frozen records: what is asked, what was granted, what was counted. They are the seam between all rooms.

Asked and granted travel together. `None` means unknown (or, in a request, "not asked for"); it is never 0.
Times named `_ns` are nanoseconds on the *controller's* monotonic clock, after correction by the measured clock offset,
unless a docstring says otherwise.
"""

from rigctl.records.cell import (
    MAX_RATE,
    UNLIMITED,
    Cell,
    Condition,
    DatagramSettings,
    Direction,
    FileSettings,
    MessageSettings,
    Pair,
    Setting,
    Stream,
    TcpSettings,
    WindowSettings,
)
from rigctl.records.counted import (
    Bins,
    Capture,
    Datagrams,
    DiskTimes,
    Flow,
    NicCounters,
    NodeUsage,
    PortSeries,
    Probes,
    RoundTrips,
    Series,
    Side,
    TcpInfo,
)
from rigctl.records.plan import Link, Port, Retest, RunPlan, Trunk, Until
from rigctl.records.run import Facts, Repetition, RunInfo, RunStatus, Status

__all__ = [
    "MAX_RATE",
    "UNLIMITED",
    "Bins",
    "Capture",
    "Cell",
    "Condition",
    "DatagramSettings",
    "Datagrams",
    "Direction",
    "DiskTimes",
    "Facts",
    "FileSettings",
    "Flow",
    "Link",
    "MessageSettings",
    "NicCounters",
    "NodeUsage",
    "Pair",
    "Port",
    "PortSeries",
    "Probes",
    "Repetition",
    "Retest",
    "RoundTrips",
    "RunInfo",
    "RunPlan",
    "RunStatus",
    "Series",
    "Setting",
    "Side",
    "Status",
    "Stream",
    "TcpInfo",
    "TcpSettings",
    "Trunk",
    "Until",
    "WindowSettings",
]
