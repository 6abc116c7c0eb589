"""Fills a store with simulated nights of a mesh of nodes, with noise, and with changes that a test asks for."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import builders as make
from sqlalchemy import text

from rigctl.records import CONFIRMS, Cell, Pair, RunPlan, RunStatus
from rigctl.store import Store
from rigctl.store.store import writing

DAY_S: Final = 86_400.0
FIRST_S: Final = 1_793_500_200.0  # 2026-11-01 02:30 UTC
LEVEL: Final = 940.0
Change: TypeAlias = Callable[[int, Pair], float]
"""Returns the goodput of a pair in a night, as a multiple of the usual goodput."""


def steady(night: int, pair: Pair) -> float:
    return 1.0


def mesh_plan(nodes: Sequence[str] = ("a", "b", "c", "d"), repeat: int = 1, **fields: Any) -> RunPlan:
    """Return a plan that measures each ordered pair of nodes for a second, one pair after the other."""
    pairs = [Pair(left, right) for left in nodes for right in nodes if left != right]
    cells = [make.cell(number, pairs=(pair,), duration_s=1.0) for number, pair in enumerate(pairs, 1)]
    named = {"scenario_name": "nightly", "rig_name": "lab", "virtual": None, "title": "Every host", "repeat": repeat}
    return make.plan(cells, **named | fields)


def measure(
    store: Store,
    plan: RunPlan,
    night: int,
    change: Change = steady,
    *,
    facts: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
    cells: Sequence[Cell] | None = None,
) -> str:
    """Store a run of this night with noise of 0.2 %, and return its id. `cells`: tests to measure, by default all."""
    noise = random.Random(f"{night} 0 {tags}")
    kept = replace(plan, cells=tuple(cells or plan.cells))
    at = FIRST_S + night * DAY_S + 600 * bool(tags)
    known = {node: make.facts(**dict(facts or {})) for node in plan.links}
    run = store.begin(kept, {"rigctl": "0.1.0"}, known, at)
    for cell in kept.cells:
        for number in range(1, kept.repeat + 1):
            speeds = [LEVEL * change(night, pair) * (1 + noise.gauss(0, 0.002)) for pair in cell.pairs]
            store.add(run, make.repetition(cell, speeds, number=number))
    store.finish(run, RunStatus.COMPLETE, at + 60)
    if tags:
        store.history.tag(run, tags)
    return run


def confirm(store: Store, plan: RunPlan, night: int, run: str, change: Change = steady) -> str:
    return measure(store, plan, night, change, tags={CONFIRMS: run})


def change(store: Store, statement: str, **values: Any) -> None:
    """Change a store as nothing of rigctl would."""
    with writing(store.engine) as connection:
        assert connection.execute(text(statement), values).rowcount
