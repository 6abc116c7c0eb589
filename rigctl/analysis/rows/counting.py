"""Which repetitions the results table averages."""

from collections.abc import Sequence
from typing import TypeAlias

from rigctl.model.search import decided
from rigctl.records import Repetition, RunPlan, Status

Key: TypeAlias = tuple[int, int, int]
"""Number of the cell, of the repetition and of the attempt."""


def key_of(repetition: Repetition) -> Key:
    return repetition.cell, repetition.repetition, repetition.attempt


def planned(plan: RunPlan, repetitions: Sequence[Repetition]) -> tuple[Repetition, ...]:
    """Without those of a retest, which are shown apart."""
    if plan.retest is None:
        return tuple(repetitions)
    return tuple(repetition for repetition in repetitions if repetition.repetition <= plan.repeat)


def counted_keys(plan: RunPlan, repetitions: Sequence[Repetition]) -> frozenset[Key]:
    """Those with a valid result; of a search for the highest rate only the trial that decides it."""
    kept = decided(plan, planned(plan, repetitions))
    return frozenset(key_of(repetition) for repetition in kept if repetition.status is Status.OK)
