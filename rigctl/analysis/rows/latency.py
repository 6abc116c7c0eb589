"""Round trips of the probes beside streams: columns of levels `cells` and `pairs`."""

from typing import Any, Final

from rigctl.model.latency import Phase, idle, loaded
from rigctl.records import Repetition, Stream

NAMES: Final = (
    *("latency_idle_p50_us", "latency_idle_p99_us", "latency_loaded_p50_us", "latency_loaded_p99_us"),
    *("latency_rise_us", "latency_rpm", "latency_lost_pct"),
)


def latency_values(repetition: Repetition, stream: Stream | None = None) -> dict[str, Any]:
    """The columns of one stream, or of all probes together where none is named; unknown where there were none."""
    quiet, busy = Phase(), Phase()
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    for probes in repetition.probes:
        if stream is None or probes.stream == stream:
            quiet += idle(probes)
            if start_ns is not None and end_ns is not None:
                busy += loaded(probes, start_ns, end_ns)
    idle_us, loaded_us = quiet.percentile_us(50), busy.percentile_us(50)
    values = (
        *(idle_us, quiet.percentile_us(99), loaded_us, busy.percentile_us(99)),
        None if idle_us is None or loaded_us is None else loaded_us - idle_us,
        *(busy.per_minute, busy.lost_pct),
    )
    return dict(zip(NAMES, values, strict=True))
