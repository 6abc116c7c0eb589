"""The engines, one entry each: who makes and measures the traffic of a test, and what it can be asked for.

What an engine does is in `rigctl.runner`; this table is what scenarios are checked against.
"""

from dataclasses import dataclass
from typing import Final

AGENT: Final = "agent"
IPERF3: Final = "iperf3"


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine other than the agent takes: names of kinds, and of those axes that not every kind has."""

    kinds: frozenset[str]
    axes: frozenset[str]
    keys: dict[str, str]  # of a scenario, those that it cannot have, each with why


LIMITS: Final[dict[str, Limits | None]] = {
    AGENT: None,
    IPERF3: Limits(
        kinds=frozenset({"tcp", "udp"}),
        axes=frozenset({"mss", "congestion", "nodelay", "size", "rate"}),
        keys={
            "max_skew": "it does not report when a flow began",
            "bins": "its shortest interval is 100 ms",
            "capture": "it captures nothing",
        },
    ),
}
"""By the name of the engine, as the axis `engine` has it. None: it takes everything."""
