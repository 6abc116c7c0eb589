"""The axis `latency`: on, off, or the time between probes."""

from contextlib import suppress

from rigctl.base.units import parse_duration
from rigctl.model.latency import DEFAULT_MS, MAX_MS, MIN_MS
from rigctl.rig.fields import FieldError, parse_flag, shown


def parse_latency(name: str, value: object) -> int | None:
    """Milliseconds between probes; None: no probes. Raises `FieldError`."""
    with suppress(FieldError):
        return DEFAULT_MS if parse_flag(name, value) else None
    interval_ms = 0.0
    if isinstance(value, str | float | int):
        with suppress(ValueError):
            interval_ms = round(parse_duration(value) * 1e3, 6)
    if not MIN_MS <= interval_ms <= MAX_MS or interval_ms != int(interval_ms):
        raise FieldError(
            f"{name} {shown(value)}: expected true, false or the time between probes, "
            f"{MIN_MS} ms to {MAX_MS} ms in whole ms, as in 20ms"
        )
    return int(interval_ms)
