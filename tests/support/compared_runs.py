"""Simulated runs to be compared: tests with one pair each, and random values with a fixed seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import builders

from rigctl.analysis.run_view import RunView
from rigctl.records import Cell, Pair, Repetition


def cells(count: int) -> tuple[Cell, ...]:
    """Return tests that differ only in their pair, from one hub to each of the other nodes."""
    return tuple(
        builders.cell(n, pairs=(Pair("hub", f"n{n:02}"),), window_bytes=None, mss=None, duration_s=2.0)
        for n in range(1, count + 1)
    )


def view(
    tests: Sequence[Cell],
    repeat: int = 6,
    spread: float = 0.002,
    seed: int = 1,
    factors: Mapping[int, float] | None = None,
    without: Mapping[int, Repetition] | None = None,
    plan: Mapping[str, Any] | None = None,
    **info: Any,
) -> RunView:
    """Return a run of `tests`. By test number: `factors` on goodput, `without` replaces all repetitions by one."""
    noise = random.Random(seed)
    repetitions = []
    for cell in tests:
        factor = (factors or {}).get(cell.number, 1.0)
        speeds = [[94.0 * factor * (1 + noise.gauss(0, spread)) for _ in cell.streams] for _ in range(repeat)]
        if without is not None and cell.number in without:
            repetitions.append(without[cell.number])
            continue
        repetitions += [builders.repetition(cell, speed, number=at) for at, speed in enumerate(speeds, 1)]
    return RunView.in_memory(
        builders.run(replace(builders.plan(tests, repeat=repeat), **(plan or {})), **info), repetitions
    )


def whole(view: RunView) -> list[Repetition]:
    """Return the repetitions of a run with their flows."""
    return list(view.stored.whole(view.every, samples=True))
