"""The file transfer test: disk or memory → network → disk or memory, as an FTP put does it."""

from rigctl.measure import tcp
from rigctl.measure.test import Settings
from rigctl.protocol import encoded
from rigctl.records import Cell
from rigctl.settings import READ, WRITE


def settings(cell: Cell, *, sender: bool = False) -> Settings:
    """Socket settings as of the stream test; each side's own file, where it has one."""
    disk = (cell[READ] if sender else cell[WRITE]) == "disk"
    return {
        **tcp.settings(cell),
        "test": cell.kind.order,
        "size": cell.message_bytes,
        "disk": disk,
        "folder": encoded(cell.folder) if disk and cell.folder else None,
    }
