"""The settings of a test, one record each. `SETTINGS` maps their names to the records, in the order of the JSON Schema.

`MSS` in `rigctl.settings.sockets` is an example with most fields; `Setting` in `rigctl.settings.setting` explains each.
"""

from typing import Any, Final

from rigctl.settings.placement import PLACEMENT
from rigctl.settings.setting import DEFAULT, MAX, NO_SETTINGS, Counts, Setting, Settings, Subflows
from rigctl.settings.shape import CONDITION, DIRECTION, ENGINE, PAIRS, PARALLEL, Direction, PairGrid
from rigctl.settings.sockets import (
    CONGESTION,
    COPY,
    DSCP,
    MPTCP,
    MSS,
    NODELAY,
    OF_CONNECTIONS,
    WINDOW,
    WINDOW_TOTAL,
    ZEROCOPY,
)
from rigctl.settings.traffic import (
    BURST,
    BUSY_POLL,
    CLOSE,
    GROUP,
    INTERVAL,
    ITERATIONS,
    JOIN,
    LATENCY,
    LEAVE,
    LENGTH,
    PER_SECOND,
    RATE,
    READ,
    REPLY,
    SIZE,
    TRANSPORT,
    TTL,
    UNJOINED,
    WRITE,
)

SETTINGS: Final[dict[str, Setting[Any]]] = {
    setting.name: setting
    for setting in (
        CONDITION,
        WINDOW,
        WINDOW_TOTAL,
        MSS,
        PARALLEL,
        PAIRS,
        SIZE,
        ITERATIONS,
        RATE,
        BURST,
        TRANSPORT,
        READ,
        WRITE,
        BUSY_POLL,
        CLOSE,
        REPLY,
        PER_SECOND,
        LENGTH,
        INTERVAL,
        UNJOINED,
        JOIN,
        LEAVE,
        GROUP,
        TTL,
        *OF_CONNECTIONS,
        PLACEMENT,
        DIRECTION,
        ENGINE,
        LATENCY,
    )
}


def setting_columns() -> dict[str, type | tuple[type, ...]]:
    """Map each column of exports that has a setting's requested or effective value to the type of its values."""
    asked = {setting.requested: setting.type for setting in SETTINGS.values() if setting.requested}
    effects = [setting.effective for setting in SETTINGS.values() if setting.effective is not None]
    found = {effective.column: effective.type for effective in effects if effective.column is not None}
    return asked | found | {column: str for effective in effects for column in effective.columns}
