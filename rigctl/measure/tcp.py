"""The TCP stream test: as many bytes as each flow can move in a fixed time."""

from rigctl.measure.test import Settings
from rigctl.records import Cell


def settings(cell: Cell) -> Settings:
    """Socket settings of `cell`; what was not asked for is left to the node."""
    return Settings(
        flows=cell.parallel,
        window=cell.window_bytes,
        mss=cell.mss,
        congestion=cell.congestion,
        nodelay=cell.nodelay,
    )
