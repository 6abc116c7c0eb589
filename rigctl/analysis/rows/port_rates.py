"""The rates that switches counted during a repetition: lines for a chart."""

from collections.abc import Sequence
from typing import NamedTuple

from rigctl.model.counters.points import CountingPoint, PointKind, Wiring
from rigctl.model.counters.rises import mean_bps, rates, together
from rigctl.records import PortSeries, Repetition, RunPlan


class PortRate(NamedTuple):
    """A line for a chart: seconds from the start of the measurement interval, Mbit/s with headers."""

    name: str
    t_s: list[float]
    mbps: list[float]


def port_rates(plan: RunPlan, repetition: Repetition, most: int) -> list[PortRate]:
    """The counters' rate over time: the trunk's in each direction that data flow, or all senders' ports together.

    Neighbouring readings are put together where a line had more than `most` points.
    """
    if repetition.window_start_ns is None:
        return []
    series = {(port.switch, port.port): port for port in repetition.counters}
    crossings = Wiring(plan.ports, plan.trunk).crossings(repetition.flows)
    data = [point for point, crossing in crossings.items() if crossing.payload != 0]
    for kind in (PointKind.TRUNK_OUT, PointKind.TRUNK_IN, PointKind.PORT_IN, PointKind.PORT_OUT):
        points = [point for point in data if point.kind is kind]
        if not points or any((point.owner, port) not in series for point in points for port in point.ports):
            continue
        if kind in (PointKind.TRUNK_OUT, PointKind.TRUNK_IN):
            lines = [_line(f"trunk, {point} {point.direction}", [point], series, repetition, most) for point in points]
        else:
            lines = [_line("switch ports, sum", points, series, repetition, most)]
        return [line for line in lines if line is not None]
    return []


def _line(
    name: str,
    points: Sequence[CountingPoint],
    series: dict[tuple[str, str], PortSeries],
    repetition: Repetition,
    most: int,
) -> PortRate | None:
    """Several ports' rates summed over those intervals of the first one that lie within the measurement interval."""
    every = [rates(series[point.owner, port], point.direction) for point in points for port in point.ports]
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    if start_ns is None or end_ns is None or not every or not all(every):
        return None
    inside = together(
        [interval for interval in every[0] if start_ns <= interval.start_ns and interval.end_ns <= end_ns], most
    )
    if not inside:
        return None
    summed = [
        (interval, sum(mean_bps(other, interval.start_ns, interval.end_ns) for other in every)) for interval in inside
    ]
    return PortRate(
        name,
        [((interval.start_ns + interval.end_ns) / 2 - start_ns) / 1e9 for interval, _ in summed],
        [bps / 1e6 for _, bps in summed],
    )
