"""The UDP stream test: datagrams of one size at a set rate."""

from typing import Final

from rigctl.measure.test import Settings
from rigctl.records import Cell
from rigctl.settings import BURST, MAX_RATE, RATE, WINDOW

SEARCH_BURST_S: Final = 0.001
"""In a search the sender falls short of a rate rather than that a policer's small bucket drops its burst."""
_MOST_BURST: Final = 1_000_000


def burst(cell: Cell, rate_bps: int | None) -> int | None:
    """Return the longest burst to order for `rate_bps`; None: no rate, or the agent's own bound (10 ms)."""
    if rate_bps is None:
        return None
    if cell[RATE] != MAX_RATE or cell[BURST] is not None or cell.message_bytes is None:
        return cell[BURST]
    return min(_MOST_BURST, 1 + int(SEARCH_BURST_S * rate_bps / (8 * cell.message_bytes)))


def settings(cell: Cell, *, sender: bool = False) -> Settings:  # noqa: ARG001 — both sides are set alike
    """Buffers and size of `cell`; what belongs to TCP is left to the node. The rate goes with the start."""
    return Settings(
        flows=cell.parallel,
        window=cell[WINDOW],
        mss=None,
        congestion=None,
        nodelay=None,
        zerocopy=None,
        copy=None,
        transport=cell.kind.transport,
        test=None,
        size=cell.message_bytes,
        busy=None,
        disk=None,
        folder=None,
    )
