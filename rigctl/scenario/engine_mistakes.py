"""What an engine other than the agent cannot do, refused by name before anything is touched."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rigctl.engines import LIMITS
from rigctl.kinds import OWN_AXES
from rigctl.scenario.axes import AXES, AxisValue

KEYS: Final = frozenset(key for limits in LIMITS.values() if limits for key in limits.keys)
"""Keys of a scenario that some engine cannot have."""


def engine_clashes(number: int, row: Mapping[str, AxisValue], data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Of the test `number` with the axes of `row`: each name that its engine does not take, and the mistake."""
    engine = str(row["engine"])
    limits, test = LIMITS[engine], data.get("test", "tcp")
    if limits is None:
        return
    if test not in limits.kinds:
        yield "engine", f"engine: {engine} can run test: {' and '.join(sorted(limits.kinds))}, not {test}"
        return
    for name in sorted(OWN_AXES - limits.axes):
        if row[name] != AXES[name].unset:
            yield name, f"{name}: engine: {engine} has no such setting"
    for key, why in limits.keys.items():
        asked = data.get(key)
        if asked is not None and asked is not False and not (isinstance(asked, list) and number not in asked):
            yield key, f"{key}: not with engine: {engine}, {why}"
