"""Define frozen records of what a user requested, kernels granted and agents counted; all packages exchange them.

None means unknown (never 0), or in a request "not requested". Names ending in `_ns` are times in nanoseconds on the
monotonic clock of the *controller*, corrected by the measured clock offset, unless a docstring says otherwise.
"""

from rigctl.records.kind_counts import (
    KIND_COUNTS,
    Connections,
    GroupSent,
    KindCounts,
    MulticastCounts,
    RequestCounts,
    connect_failures,
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
    StackCounters,
    TcpInfo,
    by_stream,
)
from rigctl.records.plan import (
    LEAST_SKEW_S,
    MAX_LOSS,
    MOST_TRIALS,
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
    have_roles,
    nodes_of_tests,
    settings_words,
    several_sets,
)
from rigctl.records.run import (
    ANSWER,
    BASELINE,
    CONFIRMS,
    CONTROL,
    OWN_TAGS,
    Acceptance,
    Facts,
    Night,
    NightOutcome,
    Repetition,
    RepetitionHead,
    RunInfo,
    RunStatus,
    Status,
    Unmet,
    host_system,
    tag_text,
    user_tags,
)
from rigctl.settings import Direction
