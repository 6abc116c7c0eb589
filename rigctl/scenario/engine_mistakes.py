"""What an engine other than the agent cannot do, refused by name before anything is touched."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rigctl.engines import LIMITS
from rigctl.kinds import OWN_AXES
from rigctl.scenario.axes import AXES, AxisValue
from rigctl.scenario.schema import parse_duration_field

KEYS: Final = frozenset({"duration", *(key for limits in LIMITS.values() if limits for key in limits.keys)})
"""Keys of a scenario that some engine cannot have."""
LONGEST_S: Final = 86400
"""Of iperf3 -t, which takes whole seconds."""


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
    if (wrong := _duration(data.get("duration", "10s"))) is not None:
        yield "duration", f"duration: engine: {engine} {wrong}"
    for key, why in limits.keys.items():
        asked = data.get(key)
        if asked is not None and asked is not False and not (isinstance(asked, list) and number not in asked):
            yield key, f"{key}: not with engine: {engine}, {why}"


def _duration(given: object) -> str | None:
    try:
        duration_s = parse_duration_field("duration", given)
    except ValueError:
        return None  # the schema has told
    if duration_s == int(duration_s) and duration_s <= LONGEST_S:
        return None
    return f"measures whole seconds, 1s to {LONGEST_S}s"
