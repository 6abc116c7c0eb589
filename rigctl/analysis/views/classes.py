"""Judge traffic classes: with which marks packets arrived, and whether the path sends one class before others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rigctl.analysis.run_view import RunView
from rigctl.base.values import group_by, mean_of_all, total
from rigctl.figures.effective import COUNTED, count_seen
from rigctl.figures.probes import IDLE, LOADED
from rigctl.model.latency import has_grown
from rigctl.records import Cell, Flow, Status
from rigctl.results.summary import CellSummary
from rigctl.settings import Setting


@dataclass(frozen=True, slots=True)
class CountedValues:
    """A requested value of a setting (such as DSCP), and the values that `receiver` counted in packets of `sender`."""

    setting: Setting[Any]
    asked: str
    sender: str
    receiver: str
    units: str  # what is counted: packets, datagrams
    tests: tuple[int, ...]
    values: dict[str, int]  # number of packets by value, the most frequent value first

    @property
    def others(self) -> list[str]:
        """Return the values that arrived and were not requested."""
        return [value for value in self.values if value != self.asked]


def count_values(view: RunView) -> Iterator[CountedValues]:
    """Yield how often each node saw each value of a setting, summed over all tests with the same requested value."""
    cells = {cell.number: cell for cell in view.plan.cells}
    asking = {cell.number for cell in view.plan.cells if any(cell[setting] is not None for setting in COUNTED)}
    counted = [one for one in view.repetitions if one.status is Status.OK and one.cell in asking]
    flows = [(cells[repetition.cell], flow) for repetition in view.stored.whole(counted) for flow in repetition.flows]
    for setting in COUNTED:
        yield from _of_setting(setting, [(cell, flow) for cell, flow in flows if cell[setting] is not None])


def _of_setting(setting: Setting[Any], flows: Iterable[tuple[Cell, Flow]]) -> Iterator[CountedValues]:
    values: dict[tuple[str, str, str, str], Counter[str]] = {}
    tests: dict[tuple[str, str, str, str], set[int]] = {}
    for cell, flow in flows:
        ends = flow.stream.ends
        # The receiver of data counts the packets of the sender; the sender counts the answers.
        for sides, (sender, receiver) in ((flow.receiver, ends), (flow.sender, ends[::-1])):
            if sides is None or not (counts := count_seen(setting, (sides,))):
                continue
            key = (str(cell[setting]), sender, receiver, COUNTED[setting].units[cell.transport])
            values.setdefault(key, Counter()).update(counts)
            tests.setdefault(key, set()).add(cell.number)
    for key, counts in values.items():
        yield CountedValues(setting, *key, tuple(sorted(tests[key])), dict(counts.most_common()))


_MUCH_SHORTER: Final = 0.5  # a class that waits at most this share of the longest wait is sent before the slowest class
_ALIKE: Final = 0.8  # classes wait in the same queue if each waits at least this share of the longest waiting time


@dataclass(frozen=True, slots=True)
class ClassResult:
    """A traffic class with its median round-trip times, idle and under load, as means over pairs; None if unknown."""

    cell: CellSummary
    idle_us: float | None
    loaded_us: float | None

    @property
    def name(self) -> str:
        return self.cell.cell.traffic_class or ""

    @property
    def wait_us(self) -> float | None:
        """Return by how many µs the load lengthens the round-trip time of the class; None if unknown."""
        return None if self.idle_us is None or self.loaded_us is None else max(0.0, self.loaded_us - self.idle_us)

    @property
    def waits(self) -> bool:
        """Tell whether packets of the class wait in a queue: the round trip grows by more than busy processors add."""
        return has_grown(self.idle_us, self.wait_us)


@dataclass(frozen=True, slots=True)
class Together:
    """Traffic classes that were measured at the same time, in the order of the scenario."""

    classes: tuple[ClassResult, ...]

    @property
    def slowest(self) -> ClassResult | None:
        """Return the class with the longest waiting time; None if a waiting time is unknown."""
        if any(each.wait_us is None for each in self.classes):
            return None
        return max(self.classes, key=lambda each: each.wait_us or 0.0)

    @property
    def first(self) -> tuple[ClassResult, ...]:
        """Return the classes that are sent before the slowest class; empty if no class waits or a time is unknown."""
        slowest = self.slowest
        if slowest is None or not slowest.waits:
            return ()
        most_us = _MUCH_SHORTER * (slowest.wait_us or 0.0)
        return tuple(each for each in self.classes if (each.wait_us or 0.0) <= most_us)

    @property
    def alike(self) -> bool:
        """Tell whether all classes wait in the same queue."""
        slowest = self.slowest
        if slowest is None or not slowest.waits:
            return False
        return all((each.wait_us or 0.0) >= _ALIKE * (slowest.wait_us or 0.0) for each in self.classes)

    @property
    def goodput_mbps(self) -> float | None:
        """Return the goodput of all classes together in Mbit/s; None if unknown."""
        return total(None if own is None else own.mean for own in (each.cell.goodput_mbps for each in self.classes))


def of_classes(cells: Sequence[CellSummary]) -> list[Together]:
    """Return the groups of traffic classes measured together, without groups in which a class was not measured."""
    groups = group_by((cell for cell in cells if cell.cell.traffic_class is not None), lambda cell: cell.cell.first)
    return [Together(tuple(map(_result, own))) for own in groups.values() if all(cell.counted for cell in own)]


def _result(cell: CellSummary) -> ClassResult:
    probed = [stream for stream in cell.streams if stream.probed]
    idle_us, loaded_us = (mean_of_all(stream[figure] for stream in probed) for figure in (IDLE, LOADED))
    return ClassResult(cell, idle_us, loaded_us)
