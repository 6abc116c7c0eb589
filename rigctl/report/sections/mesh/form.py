"""How the ways of a mesh or star are shown: goodput with retransmits or losses, or round trips of messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.mesh import Mesh, Way
from rigctl.report.blocks import Entry
from rigctl.report.words.text import UNKNOWN, count_text


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit for all values of a run's meshes; `factor`: how much of Mbit/s or µs it is."""

    unit: str
    factor: float
    decimals: int

    def number(self, value: float) -> str:
        return f"{value / self.factor:.{self.decimals}f}"

    def text(self, value: float) -> str:
        return f"{self.number(value)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Form:
    """`value` of a way in Mbit/s or µs, `second` what stands beside it under `second_unit`."""

    what: str
    words: str  # both values, for the legend
    scale: Scale
    value: Callable[[Way], float | None]
    second_unit: str
    second: Callable[[Way], Entry]
    trips: bool = False


def form_of(found: Sequence[Mesh]) -> Form:
    """By what was counted, which is the same in all tests of a run."""
    point = found[0].point
    if point.kind.round_trips:
        values = [way.rtt_p50_us or 0.0 for mesh in found for way in mesh.answered]
        scale = _times(values)

        def late(way: Way) -> Entry:
            us = way.rtt_p99_us
            return Entry(UNKNOWN) if us is None else Entry(scale.number(us), us / scale.factor)

        words = "the round trip of a message, median (p50) and 99th percentile"
        return Form("Median round trip", words, scale, lambda way: way.rtt_p50_us, "p99", late, trips=True)
    scale = _rates([way.mbps or 0.0 for mesh in found for way in mesh.known])
    if point.transport == "udp":
        return Form("Goodput", "goodput and loss of datagrams", scale, lambda way: way.mbps, "loss %", _loss)
    return Form("Goodput", "goodput and retransmits (Retr)", scale, lambda way: way.mbps, "Retr", _again)


def _rates(known: Sequence[float]) -> Scale:
    unit, factor = ("Gbit/s", 1000.0) if max(known) >= 1000 else ("Mbit/s", 1.0)
    lowest = min(known) / factor
    return Scale(unit, factor, 0 if lowest >= 100 else 1 if lowest >= 10 and factor == 1 else 2 if lowest >= 0.1 else 3)


_MANY_US: Final = 10_000.0


def _times(known: Sequence[float]) -> Scale:
    unit, factor = ("ms", 1000.0) if min(known) >= _MANY_US else ("µs", 1.0)
    return Scale(unit, factor, 0 if min(known) / factor >= 100 else 1)


def _again(way: Way) -> Entry:
    return Entry(count_text(way.retransmits), way.retransmits)


def _loss(way: Way) -> Entry:
    return Entry(UNKNOWN if way.loss_pct is None else f"{way.loss_pct:.2g}", way.loss_pct)
