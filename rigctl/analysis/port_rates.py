"""The rates that switches counted during a repetition: lines for a chart."""

from collections.abc import Sequence
from typing import NamedTuple

from rigctl.model.counters.places import Place, Spot, Wiring
from rigctl.model.counters.rises import mean_bps, rates, together
from rigctl.records import PortSeries, Repetition, RunPlan


class PortRate(NamedTuple):
    """A line for a chart: seconds from the start of the common window (middles of intervals), Mbit/s with headers."""

    name: str
    t_s: list[float]
    mbps: list[float]


def port_rates(plan: RunPlan, repetition: Repetition, most: int) -> list[PortRate]:
    """The counters' rate over time: the trunk's in each direction that data flow, or all senders' ports together.

    Neighbouring readings are put together where a line had more than `most` points.
    """
    if repetition.window_start_ns is None:
        return []
    series = {(one.switch, one.port): one for one in repetition.counters}
    crossings = Wiring(plan.ports, plan.trunk).crossings(repetition.flows)
    data = [place for place, crossing in crossings.items() if crossing.payload != 0]
    for spot in (Spot.TRUNK_OUT, Spot.TRUNK_IN, Spot.PORT_IN, Spot.PORT_OUT):
        places = [place for place in data if place.spot is spot]
        if not places or any((place.owner, port) not in series for place in places for port in place.ports):
            continue
        if spot in (Spot.TRUNK_OUT, Spot.TRUNK_IN):
            lines = [_line(f"trunk, {place} {place.way}", [place], series, repetition, most) for place in places]
        else:
            lines = [_line("switch ports, sum", places, series, repetition, most)]
        return [line for line in lines if line is not None]
    return []


def _line(
    name: str, places: Sequence[Place], series: dict[tuple[str, str], PortSeries], repetition: Repetition, most: int
) -> PortRate | None:
    """Several ports' rates summed over those intervals of the first one that lie within the common window."""
    every = [rates(series[place.owner, port], place.way) for place in places for port in place.ports]
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    if start_ns is None or end_ns is None or not every or not all(every):
        return None
    inside = together([one for one in every[0] if start_ns <= one.start_ns and one.end_ns <= end_ns], most)
    if not inside:
        return None
    summed = [(one, sum(mean_bps(other, one.start_ns, one.end_ns) for other in every)) for one in inside]
    return PortRate(
        name,
        [((one.start_ns + one.end_ns) / 2 - start_ns) / 1e9 for one, _ in summed],
        [bps / 1e6 for _, bps in summed],
    )
