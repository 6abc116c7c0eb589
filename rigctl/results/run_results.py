"""The results of a run on reading: each repetition with its rows, and its whole records for those who need them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from rigctl.model.search import Search, keep_deciding_trials, search
from rigctl.model.trials import Trial, searched_setting
from rigctl.records import Repetition, RepetitionHead, RunInfo, RunPlan, Status
from rigctl.results.condense import condense
from rigctl.results.condensed import CondensedRun, Gap, RepetitionKey, RunCounters
from rigctl.results.rows import ExportRow, RepetitionResults, search_columns


class RepetitionReader(Protocol):
    """Reads repetitions of a run with their flows, readings and probes, and with samples if asked for."""

    def __call__(self, keys: Iterable[RepetitionKey], *, samples: bool) -> Sequence[Repetition]: ...


class RunResults:
    """The results of `repetitions`: all repetitions of a run, or some of them for one part of a report.

    What is kept of a repetition was condensed together with all repetitions of its run, whichever are chosen here.
    Searches, too, are made of all repetitions of the run (`every`).
    """

    def __init__(
        self,
        info: RunInfo,
        repetitions: Iterable[RepetitionHead],
        kept: CondensedRun,
        reader: RepetitionReader,
        every: Sequence[RepetitionHead] | None = None,
    ) -> None:
        self.info, self.repetitions = info, tuple(repetitions)
        self._every = self.repetitions if every is None else every
        self.kept, self._reader = kept, reader

    def of(self, plan: RunPlan, repetitions: Iterable[RepetitionHead]) -> "RunResults":
        """Return the results of some repetitions, for a report on some tests of the plan."""
        return RunResults(replace(self.info, plan=plan), repetitions, self.kept, self._reader, self._every)

    @cached_property
    def each(self) -> tuple[RepetitionResults, ...]:
        """Return the results of each repetition, in the order in which they were measured."""
        cells = {cell.number: cell for cell in self.info.plan.cells}
        counted = self._keys_that_count
        found = {number: search_columns(own, self.spent_s(number)) for number, own in self.searches.items()}
        return tuple(
            RepetitionResults(
                self.info, cells[one.cell], one, self.kept, found.get(one.cell, {}), counted=one.key in counted
            )
            for one in self.repetitions
        )

    @cached_property
    def cells(self) -> list[ExportRow]:
        """Return a row for each test and repetition."""
        return [one.rows[None] for one in self.each]

    @cached_property
    def pairs(self) -> list[ExportRow]:
        """Return a row for each test, repetition, pair and direction, in the order of the scenario."""
        return [one.rows[stream] for one in self.each for stream in one.cell.streams]

    @cached_property
    def flows(self) -> list[ExportRow]:
        """Return a row for each flow. Reads the flows of all repetitions."""
        whole = {one.key: one for one in self.whole(self.repetitions)}
        return [row for one in self.each for row in one.flow_rows(whole[one.repetition.key])]

    @cached_property
    def counters(self) -> RunCounters:
        """Return what was counted in these repetitions, and over the whole run."""
        keys, every = {one.key for one in self.repetitions}, self.kept.counters
        return replace(every, each=tuple(one for one in every.each if one.key in keys))

    def whole(self, repetitions: Iterable[RepetitionHead], *, samples: bool = False) -> Sequence[Repetition]:
        """Return repetitions with their flows, readings and probes, and with samples over time if asked for."""
        return self._reader([one.key for one in repetitions], samples=samples)

    def trial(self, repetition: RepetitionHead) -> Trial:
        """Return a repetition as a trial of a search."""
        known = self.kept.details[repetition.key].trial
        return Trial(repetition.repetition, repetition.load, None, repetition.load) if known is None else known

    @cached_property
    def searches(self) -> dict[int, Search]:
        """Return the searches for the highest load, by test number."""
        searches = {}
        for cell in self.info.plan.cells:
            if (searched := searched_setting(cell)) is not None:
                last = {one.repetition: one for one in self._every if one.cell == cell.number}
                searches[cell.number] = search(searched, map(self.trial, last.values()), self.info.plan.repeat)
        return searches

    def spent_s(self, number: int) -> float:
        """Return how long all repetitions of a test took together, those included that were measured again."""
        return sum(one.wall_s for one in self._every if one.cell == number)

    def value(self, repetition: RepetitionHead) -> float | None:
        """Return the elapsed time in s (messages) or the goodput in bit/s (streams); None if invalid or unknown."""
        return self.kept.details[repetition.key].value

    def gaps(self, repetition: RepetitionHead) -> tuple[Gap, ...]:
        """Return the times in which a stream of a repetition received nothing."""
        return self.kept.details[repetition.key].gaps

    @cached_property
    def _keys_that_count(self) -> frozenset[RepetitionKey]:
        """Return the keys of the valid repetitions; of a search only its deciding trial."""
        plan = self.info.plan
        kept = keep_deciding_trials(plan, without_retest(plan, self.repetitions), self.trial)
        return frozenset(repetition.key for repetition in kept if repetition.status is Status.OK)


def without_retest(plan: RunPlan, repetitions: Sequence[RepetitionHead]) -> tuple[RepetitionHead, ...]:
    """Return the repetitions without those of a retest, which reports show separately."""
    if plan.retest is None:
        return tuple(repetitions)
    return tuple(repetition for repetition in repetitions if repetition.repetition <= plan.repeat)


def condensed_in_memory(info: RunInfo, repetitions: Iterable[Repetition]) -> RunResults:
    """Return the results of repetitions with samples, without keeping them."""
    every = tuple(repetitions)
    by_key = {repetition.key: repetition for repetition in every}

    def read(keys: Iterable[RepetitionKey], *, samples: bool) -> Sequence[Repetition]:  # noqa: ARG001 — all are here
        return [by_key[key] for key in keys]

    return RunResults(info, every, condense(info, every), read)
