"""Effective values that are counted, as the marks of packets that arrived: requested and seen, by pair."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rigctl.analysis.rows.flows import COUNTED, seen_of
from rigctl.analysis.run_view import RunView
from rigctl.records import Cell, Flow, Status
from rigctl.settings import Setting


@dataclass(frozen=True, slots=True)
class Seen:
    """One requested value of a setting, and what one node saw of it in what another node sent."""

    setting: Setting[Any]
    asked: str
    sender: str
    receiver: str
    units: str  # what was counted
    tests: tuple[int, ...]
    values: dict[str, int]  # with how often each was seen, the most frequent first

    @property
    def others(self) -> list[str]:
        """Return the values that were not requested."""
        return [value for value in self.values if value != self.asked]


def seen(view: RunView) -> Iterator[Seen]:
    """Yield what the nodes saw in the repetitions that count, all tests with the same request together."""
    cells = {cell.number: cell for cell in view.plan.cells}
    flows = [
        (cells[repetition.cell], flow)
        for repetition in view.repetitions
        if repetition.status is Status.OK
        for flow in repetition.flows
    ]
    for setting in COUNTED:
        asking = [(cell, flow) for cell, flow in flows if cell[setting] is not None]
        yield from _of_setting(setting, asking)


def _of_setting(setting: Setting[Any], flows: Iterable[tuple[Cell, Flow]]) -> Iterator[Seen]:
    values: dict[tuple[str, str, str, str], Counter[str]] = {}
    tests: dict[tuple[str, str, str, str], set[int]] = {}
    for cell, flow in flows:
        ends = flow.stream.ends
        # What the receiver saw came from the sender; what the sender saw are answers.
        for sides, (sender, receiver) in ((flow.receiver, ends), (flow.sender, ends[::-1])):
            if sides is None or not (counts := seen_of(setting, (sides,))):
                continue
            key = (str(cell[setting]), sender, receiver, COUNTED[setting].units[cell.transport])
            values.setdefault(key, Counter()).update(counts)
            tests.setdefault(key, set()).add(cell.number)
    for key, counts in values.items():
        asked, sender, receiver, units = key
        yield Seen(setting, asked, sender, receiver, units, tuple(sorted(tests[key])), dict(counts.most_common()))
