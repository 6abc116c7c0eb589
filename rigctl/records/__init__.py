"""Frozen records: what is asked, what was granted, what was counted. They are the seam between all rooms.

Asked and granted travel together. `None` means unknown (or, in a request, "not asked for"); it is never 0.
Times named `_ns` are nanoseconds on the *controller's* monotonic clock, after correction by the measured clock offset,
unless a docstring says otherwise.
"""

from rigctl.records.cell import (
    REQUESTED,
    Cell,
    Condition,
    HostSetting,
    Pair,
    Stream,
    settings_words,
    several_sets,
)
from rigctl.records.history import (
    ANSWER,
    BASELINE,
    CONFIRMS,
    OWN_TAGS,
    Accepted,
    Night,
    NightOutcome,
    Unmet,
    given_tags,
    tag_text,
)
from rigctl.records.measured import (
    Bins,
    Capture,
    Copying,
    Datagrams,
    DiskTimes,
    Flow,
    NicCounters,
    NodeUsage,
    Numa,
    PortSeries,
    Probes,
    RoundTrips,
    Series,
    Side,
    TcpInfo,
    by_stream,
)
from rigctl.records.plan import (
    LEAST_SKEW_S,
    MAX_LOSS,
    Against,
    Expectation,
    Link,
    Operator,
    Port,
    Retest,
    RunPlan,
    Trunk,
    Until,
)
from rigctl.records.run import Facts, Repetition, RunInfo, RunStatus, Status
from rigctl.settings import Direction
