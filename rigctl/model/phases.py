"""Phases of a class in a test: the times before, during and after other traffic classes send beside the class."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from rigctl.records import Cell

BEFORE: Final = "before"
DURING: Final = "during"
AFTER: Final = "after"
PHASES: Final = (BEFORE, DURING, AFTER)
_MOST_SETTLING_S: Final = 1.0
_SETTLING: Final = 0.1
"""Share of a phase, after a change of the load, in which queues and windows settle. Figures leave it out."""
_LEAST_EDGE_S: Final = 0.2
_EDGE: Final = 1 / 1500
"""Share of the test that figures leave out before a change: counters are sampled 3,000 times, and interpolated."""


class LoadPhase(NamedTuple):
    """A phase: its name, and when it starts and ends, in s after the start of the test."""

    name: str
    start_s: float
    end_s: float


def phases_of(cell: Cell, together: Iterable[Cell]) -> tuple[LoadPhase, ...]:
    """Return the phases of a class; empty if no class in `together` starts or stops while the class sends.

    The load of the others lasts from the first start to the last stop of those that start or stop meanwhile.
    """
    start_s, stop_s = cell.span_s
    spans_s = [other.span_s for other in together if other.traffic_class != cell.traffic_class]
    changing = [span for span in spans_s if any(start_s < moment_s < stop_s for moment_s in span)]
    if not changing:
        return ()
    first_s = max(start_s, min(begin_s for begin_s, _ in changing))
    last_s = min(stop_s, max(end_s for _, end_s in changing))
    parts = (LoadPhase(BEFORE, start_s, first_s), LoadPhase(DURING, first_s, last_s), LoadPhase(AFTER, last_s, stop_s))
    return tuple(part for part in parts if part.end_s > part.start_s)


def counted_ns(cell: Cell, phase: LoadPhase, window_ns: tuple[int, int]) -> tuple[int, int] | None:
    """Return the times in which figures of a phase count; None if nothing is left.

    `window_ns` is the measurement interval of the class. The figures leave out how the load settles after a change.
    """
    start_s, stop_s = cell.span_s
    origin_ns = window_ns[0] - round((start_s + cell.omit_s) * 1e9)
    settling_s = min(_MOST_SETTLING_S, _SETTLING * (phase.end_s - phase.start_s)) if phase.start_s > start_s else 0.0
    edge_s = max(_LEAST_EDGE_S, _EDGE * cell.duration_s) if phase.end_s < stop_s else 0.0
    begin_ns = max(window_ns[0], origin_ns + round((phase.start_s + settling_s) * 1e9))
    end_ns = min(window_ns[1], origin_ns + round((phase.end_s - edge_s) * 1e9))
    return (begin_ns, end_ns) if end_ns > begin_ns else None
