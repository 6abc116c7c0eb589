"""The lines of a chart against the size of a message: one for each pair and each other setting that varies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.messages import MessageResult
from rigctl.report.blocks import Key
from rigctl.report.charts.plot import MOST_COLOURS
from rigctl.report.words.text import plural
from rigctl.settings import BUSY_POLL, CONGESTION, MSS, NODELAY, WINDOW

_VARIED: Final[tuple[Callable[[MessageResult], str], ...]] = (
    lambda result: str(result.stream),
    lambda result: result.cell.condition or "no condition",
    lambda result: result.cell.transport.upper(),
    lambda result: {None: "polling default", True: "busy polling", False: "no busy polling"}[result.cell[BUSY_POLL]],
    lambda result: {None: "nodelay default", True: "nodelay", False: "no nodelay"}[result.cell[NODELAY]],
    lambda result: plural(result.cell.parallel, "flow"),
    lambda result: result.cell[CONGESTION] or "congestion control default",
    lambda result: f"window {result.cell[WINDOW]}" if result.cell[WINDOW] else "window default",
    lambda result: f"MSS {result.cell[MSS]}" if result.cell[MSS] else "MSS default",
    lambda result: str(result.cell.direction),
)


@dataclass(frozen=True, slots=True)
class Line:
    """Results that differ in their size only; `name` is empty where there is one line."""

    name: str
    results: tuple[MessageResult, ...]


def lines(results: Sequence[MessageResult]) -> tuple[Line, ...]:
    """By everything that varies besides the size, in the order of the results."""
    varied = [name for name in _VARIED if len({name(result) for result in results}) > 1]
    grouped: dict[str, list[MessageResult]] = {}
    for result in results:
        grouped.setdefault(", ".join(name(result) for name in varied), []).append(result)
    return tuple(Line(name, tuple(sorted(own, key=lambda result: result.size))) for name, own in grouped.items())


def keys(drawn: Sequence[Line]) -> tuple[Key, ...]:
    """The legend; empty where one line needs none, or there are more lines than colours."""
    if not 1 < len(drawn) <= MOST_COLOURS:
        return ()
    return tuple(Key(line.name, f"s{number}") for number, line in enumerate(drawn, 1))
