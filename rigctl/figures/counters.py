"""Figures on what switches counted while a test ran. `rigctl.analysis` computes their values."""

from typing import Final

from rigctl.figures.figure import Figure
from rigctl.settings.setting import Level

_CELLS: Final = frozenset({Level.CELLS})
_PAIRS: Final = frozenset({Level.PAIRS})
SENDER_PAUSED: Final[Figure[float]] = Figure(
    name="sender_paused",
    unit="",
    levels=_PAIRS,
    meaning="pause frames to the sender during the repetition, as its switch port or its card counted",
)
COUNTER_FIGURES: Final[tuple[Figure[float], ...]] = (
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
        name="source_port_octets",
        unit="B",
        levels=_PAIRS,
        meaning="octets received by the switch at the sender's port",
    ),
    Figure(
        name="destination_port_octets",
        unit="B",
        levels=_PAIRS,
        meaning="octets sent by the switch at the receiver's port",
    ),
    SENDER_PAUSED,
    Figure(
        name="receiver_asks_pause",
        unit="",
        levels=_PAIRS,
        meaning="pause frames that the receiver sent during the repetition, as its switch port or its card counted",
    ),
    Figure(
        name="damaged_frames",
        unit="",
        levels=_PAIRS,
        meaning="frames with a wrong checksum or alignment on the cables of both ends, by switch ports and cards",
    ),
)
"""Figures of switch counters, in the order of the column table."""
