"""Figures of paths and hosts: ceiling, limit, processors, counters. `rigctl.analysis` computes their values."""

from typing import Final

from rigctl.base.values import most
from rigctl.figures.figure import TCP_AND_UDP, Figure
from rigctl.limits.rules import LIMITS
from rigctl.settings.setting import MEASURED, Level

_CELLS: Final = frozenset({Level.CELLS})
_PAIRS: Final = frozenset({Level.PAIRS})
_START_SKEW: Final[Figure[float]] = Figure(
    *("start_skew_us", "us", MEASURED, "time between the first bytes of the earliest and the latest flow", 0),
    kinds=TCP_AND_UDP,
)
CEILING: Final[Figure[float]] = Figure(
    "ceiling_mbps", "Mbit/s", MEASURED, "highest goodput that the link allows with the test's frame size", 1
)
EFFICIENCY: Final[Figure[float]] = Figure(
    *("efficiency", "", MEASURED, "goodput / ceiling", 3), kinds=("tcp", "udp", "blast", "file")
)
LIMIT: Final[Figure[str]] = Figure(
    *("limit", "", MEASURED),
    "bottleneck of the pair; for a test, the bottleneck of the pair that is furthest below its ceiling: "
    + ", ".join(f"{limit.word} ({limit.meaning})" if limit.meaning else limit.word for limit in LIMITS.values()),
    is_text=True,
)
LIMIT_DETAIL: Final[Figure[str]] = Figure(
    "limit_detail", "", MEASURED, "rule that named the limit, and the values that the rule used", is_text=True
)


def _busy(name: str, meaning: str, kinds: tuple[str, ...] = ()) -> Figure[float]:
    return Figure(name, "%", MEASURED, meaning, 1, over_streams=most, kinds=kinds)


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
        "trunk_octets", "B", _CELLS, "octets that the switches counted on their trunk, in the direction of the data"
    ),
    Figure("trunk_expected_octets", "B", _CELLS, "payload, retransmits and headers that the flows sent over the trunk"),
    Figure(
        *("counters_difference_pct", "%", _CELLS),
        "(counted - expected) ÷ expected octets on the trunk, or else at the senders' switch ports",
        2,
    ),
    Figure("source_port_octets", "B", _PAIRS, "octets received by the switch at the sender's port"),
    Figure("destination_port_octets", "B", _PAIRS, "octets sent by the switch at the receiver's port"),
)
PATHS: Final = (_START_SKEW, CEILING, EFFICIENCY, LIMIT, LIMIT_DETAIL, *_PROCESSORS, *_COUNTERS)
"""Figures of paths and hosts, in the order of the column table."""
