"""The UDP stream test: datagrams of one size at a set rate."""

from rigctl.measure.test import Settings
from rigctl.records import Cell


def settings(cell: Cell, *, sender: bool = False) -> Settings:  # noqa: ARG001 — both sides are set alike
    """Buffers and size of `cell`; what belongs to TCP is left to the node. The rate goes with the start."""
    return Settings(
        flows=cell.parallel,
        window=cell.window.bytes,
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
