"""The TCP stream test: as many bytes as each flow can move in a fixed time."""

from rigctl.measure.test import Settings
from rigctl.records import Cell
from rigctl.settings import CONGESTION, COPY, MSS, NODELAY, WINDOW, ZEROCOPY


def settings(cell: Cell, *, sender: bool = False) -> Settings:
    """Socket settings of `cell`; what was not asked for is left to the node.

    Where the kernel is to resize buffers, none is set on a socket: that would lock it (tcp(7), tcp_moderate_rcvbuf).
    Where they start is then a host setting (`runner.conditions`).
    """
    return Settings(
        flows=cell.parallel,
        window=None if cell.resize else cell[WINDOW],
        mss=cell[MSS],
        congestion=cell[CONGESTION],
        nodelay=cell[NODELAY],
        zerocopy=cell[ZEROCOPY] if sender else None,
        copy=None if sender else cell[COPY],
        transport=None,
        test=None,
        size=None,
        busy=None,
        disk=None,
        folder=None,
    )
