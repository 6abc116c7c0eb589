"""Messages of one size: ping-pong, each sent back whole, and blast, one way and acknowledged at the end."""

from rigctl.measure import tcp
from rigctl.measure.test import Settings
from rigctl.records import Cell
from rigctl.settings import BUSY_POLL
from rigctl.settings.kinds import Kind


class Messages:
    """A test of messages of a kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def settings(self, cell: Cell, *, sender: bool = False) -> Settings:  # noqa: ARG002 — both sides are set alike
        """Socket settings as of the stream test, and the messages' size."""
        return {
            **tcp.settings(cell),
            "transport": None if cell.transport == "tcp" else cell.transport,
            "test": self._kind.order,
            "size": cell.message_bytes,
            "busy": cell[BUSY_POLL] if "busy_poll" in self._kind.axes else None,
        }
