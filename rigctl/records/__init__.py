"""Frozen records of what was requested, granted and counted. All rooms exchange these records.

None means unknown, or in a request "not requested"; an unknown value is never 0. Times whose name ends with `_ns` are
nanoseconds on the *controller's* monotonic clock, corrected by the measured clock offset, unless a docstring says
otherwise.
"""

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
    REQUESTED,
    Against,
    Cell,
    Condition,
    Expectation,
    HostSetting,
    Link,
    Operator,
    Pair,
    Port,
    Retest,
    RunPlan,
    Stream,
    Trunk,
    Until,
    settings_words,
    several_sets,
)
from rigctl.records.run import (
    ANSWER,
    BASELINE,
    CONFIRMS,
    OWN_TAGS,
    Acceptance,
    Facts,
    Night,
    NightOutcome,
    Repetition,
    RunInfo,
    RunStatus,
    Status,
    Unmet,
    tag_text,
    user_tags,
)
from rigctl.settings import Direction
