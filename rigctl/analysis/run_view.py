"""A stored run with all that is derived from it, each derived when it is first used."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from rigctl.analysis.rows.cells import planned
from rigctl.analysis.rows.frames import Frames, load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.analysis.views.mesh import Mesh, meshes, of_messages, of_streams
from rigctl.analysis.views.messages import MessageResult, message_results
from rigctl.analysis.views.panels import Matrix, matrix
from rigctl.model.search import Search, decided, search
from rigctl.records import Repetition, RunInfo
from rigctl.settings import MAX_RATE, RATE


class RunView:
    """A run as the sections of a report see it. `every` has all repetitions of the run, as stored."""

    def __init__(self, info: RunInfo, repetitions: Sequence[Repetition]) -> None:
        self.info = info
        self.plan = info.plan
        self.every = tuple(repetitions)

    @property
    def section(self) -> str:
        """The section that shows the results of this kind of test; a scenario has one kind."""
        return self.plan.cells[0].kind.section if self.plan.cells else ""

    @cached_property
    def planned(self) -> tuple[Repetition, ...]:
        """The repetitions of the results table: those of a retest are shown apart."""
        return planned(self.plan, self.every)

    @cached_property
    def repetitions(self) -> tuple[Repetition, ...]:
        """Those, without the trials of searches but the one that decides each."""
        return tuple(decided(self.plan, self.planned))

    @cached_property
    def frames(self) -> Frames:
        return load(self.info, self.repetitions)

    @cached_property
    def cells(self) -> tuple[CellSummary, ...]:
        return summaries(self.frames)

    @cached_property
    def messages(self) -> tuple[MessageResult, ...]:
        return tuple(message_results(self.info, self.repetitions))

    @cached_property
    def matrix(self) -> Matrix | None:
        return matrix(self.plan, self.cells)

    @cached_property
    def meshes(self) -> tuple[Mesh, ...]:
        """One for each point of the other axes; none of a run that is neither mesh nor star."""
        measured = of_messages(self.messages) if self.plan.in_messages else of_streams(self.cells)
        return meshes(measured, self.plan.links)

    @cached_property
    def searches(self) -> dict[int, Search]:
        """Of each test whose highest rate was searched for, by its number, what its trials say."""
        found = {}
        for cell in self.plan.cells:
            if cell[RATE] == MAX_RATE:
                last = {
                    repetition.repetition: repetition for repetition in self.every if repetition.cell == cell.number
                }
                found[cell.number] = search(self.plan, cell, last.values())
        return found

    @cached_property
    def again(self) -> "RunView | None":
        """The cells that were measured again, with those repetitions only; `None` where none was."""
        if self.plan.retest is None:
            return None
        again = [repetition for repetition in self.every if repetition.repetition > self.plan.repeat]
        numbers = {repetition.cell for repetition in again}
        if not again:
            return None
        cells = tuple(cell for cell in self.plan.cells if cell.number in numbers)
        return RunView(replace(self.info, plan=replace(self.plan, cells=cells, retest=None)), again)
