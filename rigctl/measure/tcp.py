"""The TCP stream test: as many bytes as each flow can move in a fixed time."""

from rigctl.records import Cell


def settings(cell: Cell) -> dict[str, str | int]:
    """Socket settings of `cell`; what was not asked for is left to the node."""
    asked: dict[str, str | int | None] = {
        "flows": cell.parallel,
        "window": cell.window_bytes,
        "mss": cell.mss,
        "congestion": cell.congestion,
        "nodelay": None if cell.nodelay is None else int(cell.nodelay),
    }
    return {name: value for name, value in asked.items() if value is not None}
