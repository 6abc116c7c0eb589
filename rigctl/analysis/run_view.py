"""Provide a stored run together with all results derived from it; a result is computed on first use."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from rigctl.analysis.views.matrix import PairsMatrix, matrix
from rigctl.analysis.views.mesh import Mesh, meshes, of_messages, of_streams
from rigctl.analysis.views.messages import MessageResult, message_results
from rigctl.model.search import Search, keep_deciding_trials
from rigctl.records import Cell, Repetition, RepetitionHead, RunInfo, RunPlan
from rigctl.results.run_results import RunResults, condensed_in_memory, without_retest
from rigctl.results.summary import CellSummary, summaries


class RunView:
    """A run, or some tests of the run for one section of a report. `every` has all stored repetitions of these tests.

    A view of some tests takes results from the view of the run (`whole`): traffic classes share links, so the limit
    of a class follows only from all classes.
    """

    def __init__(self, stored: RunResults, whole: "RunView | None" = None) -> None:
        self.stored, self._whole = stored, whole
        self.control: RunView | None = None  # the run whose figures are subtracted (`run --control`)
        self.info = stored.info
        self.plan = stored.info.plan
        self.every = stored.repetitions

    @classmethod
    def in_memory(cls, info: RunInfo, repetitions: Sequence[Repetition]) -> "RunView":
        """Return a view of repetitions with samples, whose results are computed now and kept nowhere."""
        return cls(condensed_in_memory(info, repetitions))

    @property
    def classed(self) -> bool:
        """Tell whether the tests are traffic classes. Classes may mix kinds of tests, such as TCP and UDP."""
        return any(cell.traffic_class is not None for cell in self.plan.cells)

    def of_section(self, section: str) -> "RunView | None":
        """Return a view of the tests that `section` of a report shows; None if there are none."""
        chosen = tuple(cell for cell in self.plan.cells if cell.kind.section == section)
        if not chosen or len(chosen) == len(self.plan.cells):
            return self if chosen else None
        plan = replace(self.plan, cells=chosen)
        return RunView(self.stored.of(plan, self._repetitions_of(plan)), self)

    def of_part(self, name: str) -> "RunView | None":
        """Return a view of one part of the scenario, as of a run of its own; None if the run has no such part.

        Its tests keep their numbers. If there is a control, it is the same part of the control.
        """
        plan = self.plan.of_part(name)
        if not plan.cells:
            return None
        view = RunView(self.stored.of(plan, self._repetitions_of(plan)))
        view.control = None if self.control is None else self.control.of_part(name)
        return view

    def of_streams(self) -> "RunView | None":
        """Return a view of the tests that count bytes over time; None if there are none."""
        plan = replace(self.plan, cells=tuple(cell for cell in self.plan.cells if not cell.in_messages))
        return RunView(self.stored.of(plan, self._repetitions_of(plan)), self) if plan.cells else None

    def _repetitions_of(self, plan: RunPlan) -> list[RepetitionHead]:
        numbers = {cell.number for cell in plan.cells}
        return [repetition for repetition in self.every if repetition.cell in numbers]

    @cached_property
    def planned(self) -> tuple[RepetitionHead, ...]:
        """Return the repetitions without those of a retest, which reports show separately."""
        return without_retest(self.plan, self.every)

    @cached_property
    def repetitions(self) -> tuple[RepetitionHead, ...]:
        """Return the repetitions of the results table: no retests, and of each search only the deciding trial."""
        return tuple(keep_deciding_trials(self.plan, self.planned, self.stored.trial))

    @cached_property
    def results(self) -> RunResults:
        """Return the results of the repetitions of the results table."""
        return self.stored.of(self.plan, self.repetitions) if self._whole is None else self._whole.results

    @cached_property
    def cells(self) -> tuple[CellSummary, ...]:
        if self._whole is None:
            return summaries(self.results)
        numbers = {cell.number for cell in self.plan.cells}
        return tuple(one for one in self._whole.cells if one.cell.number in numbers)

    @cached_property
    def messages(self) -> tuple[MessageResult, ...]:
        return tuple(message_results(self.info, self.stored.whole(self.repetitions)))

    @cached_property
    def all_messages(self) -> tuple[MessageResult, ...]:
        """Return the results of `messages` over all repetitions, those of retests included."""
        return (
            self.messages if self.retested is None else tuple(message_results(self.info, self.stored.whole(self.every)))
        )

    @cached_property
    def matrix(self) -> PairsMatrix | None:
        return None if self.classed else matrix(self.plan, self.cells, self.results.cells)

    @cached_property
    def meshes(self) -> tuple[Mesh, ...]:
        """Return one mesh (tests between all nodes) for each combination of settings; empty if pairs are missing."""
        measured = of_messages(self.messages) if self.plan.in_messages else of_streams(self.cells)
        return meshes(measured, self.plan.links)

    @property
    def searches(self) -> dict[int, Search]:
        """Return the searches for the highest load, by test number."""
        return self.stored.searches

    def values_of(self, cell: Cell, repetitions: Iterable[RepetitionHead]) -> list[float]:
        """Return the known values (elapsed time in s, or goodput in bit/s) of the repetitions of `cell`."""
        own = (self.stored.value(repetition) for repetition in repetitions if repetition.cell == cell.number)
        return [value for value in own if value is not None]

    @cached_property
    def retested(self) -> "RunView | None":
        """Return a view of the tests that were measured again, with only their retests; None without retests."""
        again = [repetition for repetition in self.every if repetition.repetition > self.plan.repeat]
        if self.plan.retest is None or not again:
            return None
        numbers = {repetition.cell for repetition in again}
        cells = tuple(cell for cell in self.plan.cells if cell.number in numbers)
        return RunView(self.stored.of(replace(self.plan, cells=cells, retest=None), again))
