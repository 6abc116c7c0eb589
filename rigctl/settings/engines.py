"""The engines, which make and measure the traffic of a test, and what else than settings each of them takes.

What an engine does is in `rigctl.runner`; the settings that it takes are in their records.
"""

from dataclasses import dataclass
from typing import Final

from rigctl.settings.kinds import TCP, UDP, Kind

AGENT: Final = "agent"
IPERF3: Final = "iperf3"


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine other than the agent takes."""

    kinds: tuple[Kind, ...]
    keys: dict[str, str]  # of a scenario, those that it cannot have, each with why


LIMITS: Final[dict[str, Limits | None]] = {
    AGENT: None,
    IPERF3: Limits(
        kinds=(TCP, UDP),
        keys={
            "max_skew": "it does not report when a flow began",
            "bins": "its shortest interval is 100 ms",
            "capture": "it captures nothing",
        },
    ),
}
"""By the name of the engine, as the setting `engine` has it. None: it takes everything."""
