"""Figures of paths and hosts: ceiling, limit, processors, counters. `rigctl.analysis` computes their values."""

from typing import Final

from rigctl.base.values import most
from rigctl.figures.figure import TCP_AND_UDP, Figure
from rigctl.limits.limit import LIMITS
from rigctl.settings.setting import MEASURED, Level

_CELLS: Final = frozenset({Level.CELLS})
_PAIRS: Final = frozenset({Level.PAIRS})
_START_SKEW: Final[Figure[float]] = Figure(
    name="start_skew_us",
    unit="us",
    levels=MEASURED,
    meaning="time between the first bytes of the earliest and the latest flow",
    digits=0,
    kinds=TCP_AND_UDP,
)
CEILING: Final[Figure[float]] = Figure(
    name="ceiling_mbps",
    unit="Mbit/s",
    levels=MEASURED,
    meaning="highest goodput that the link allows with the test's frame size",
    digits=1,
)
EFFICIENCY: Final[Figure[float]] = Figure(
    name="efficiency",
    unit="",
    levels=MEASURED,
    meaning="goodput / ceiling",
    digits=3,
    kinds=("tcp", "udp", "blast", "file"),
)
LIMIT: Final[Figure[str]] = Figure(
    name="limit",
    unit="",
    levels=MEASURED,
    meaning="bottleneck of the pair; for a test, the bottleneck of the pair that is furthest below its ceiling: "
    + ", ".join(f"{limit.word} ({limit.meaning})" if limit.meaning else limit.word for limit in LIMITS.values()),
    is_text=True,
)
LIMIT_DETAIL: Final[Figure[str]] = Figure(
    name="limit_detail",
    unit="",
    levels=MEASURED,
    meaning="rule that named the limit, the values that the rule used, and the kinds of evidence that the nodes never "
    "report, if rules were skipped without them",
    is_text=True,
)


def _busy(name: str, meaning: str, kinds: tuple[str, ...] = ()) -> Figure[float]:
    return Figure(name=name, unit="%", levels=MEASURED, meaning=meaning, digits=1, over_streams=most, kinds=kinds)


_PROCESSORS: Final = (
    _busy(
        "cpu_source_pct",
        "busy share of all CPUs of the sender's node, softirq included; empty if measured for less than 0.2 s",
        TCP_AND_UDP,
    ),
    _busy("cpu_destination_pct", "busy share of all CPUs of the receiver's node, as in cpu_source_pct", TCP_AND_UDP),
    _busy("busiest_cpu_source_pct", "busy share of the busiest CPU of the sender's node, as in cpu_source_pct"),
    _busy("busiest_cpu_destination_pct", "busy share of the busiest CPU of the receiver's node"),
    _busy(
        "other_cpu_source_pct",
        "share of the CPUs of the sender's node (on a virtual rig: of the machine) that other programs took, without "
        "agents and interrupts; empty if measured for less than 0.2 s",
    ),
    _busy("other_cpu_destination_pct", "share of the CPUs of the receiver's node that other programs took"),
    _busy(
        "agent_cpu_source_pct",
        "CPU time of the sender's agent, as a share of what its threads, one for each flow, could have used",
    ),
    _busy("agent_cpu_destination_pct", "CPU time of the receiver's agent, as in agent_cpu_source_pct"),
)
_COUNTERS: Final[tuple[Figure[float], ...]] = (
    Figure(
        name="trunk_octets",
        unit="B",
        levels=_CELLS,
        meaning="octets that the switches counted on their trunk, in the direction of the data",
    ),
    Figure(
        name="trunk_expected_octets",
        unit="B",
        levels=_CELLS,
        meaning="payload, retransmits and headers that the flows sent over the trunk",
    ),
    Figure(
        name="counters_difference_pct",
        unit="%",
        levels=_CELLS,
        meaning="(counted - expected) ÷ expected octets on the trunk, or else at the senders' switch ports",
        digits=2,
    ),
    Figure(
        name="source_port_octets", unit="B", levels=_PAIRS, meaning="octets received by the switch at the sender's port"
    ),
    Figure(
        name="destination_port_octets",
        unit="B",
        levels=_PAIRS,
        meaning="octets sent by the switch at the receiver's port",
    ),
)
PATHS: Final = (_START_SKEW, CEILING, EFFICIENCY, LIMIT, LIMIT_DETAIL, *_PROCESSORS, *_COUNTERS)
"""Figures of paths and hosts, in the order of the column table."""
