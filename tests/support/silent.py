"""Repetitions in which streams receive nothing for a while, as the samples of their receivers show it."""

from dataclasses import replace
from typing import Any, Final

import builders

from rigctl.records import Cell, Flow, Pair, Repetition, Series

PAIR: Final = Pair("pi1", "pi2")
MS: Final = 1_000_000


def stream(number: int = 1, **settings: Any) -> Cell:
    return builders.cell(number, pairs=(PAIR,), duration_s=5.0, **settings)


def stopped(of: Flow, from_ms: int, to_ms: int) -> Flow:
    """`of` without what its receiver took from one time to the other, as it was at the last sample before."""
    side = of.receiver
    assert side is not None
    columns = side.series.columns
    within = [from_ms < (at - builders.BEGIN_NS) // MS <= to_ms for at in columns["t_ns"]]
    before = columns["bytes"][within.index(True) - 1]
    kept = [before if silent else count for silent, count in zip(within, columns["bytes"], strict=True)]
    return replace(of, receiver=replace(side, series=Series(columns | {"bytes": kept})))


def with_gap(cell: Cell, from_ms: int, to_ms: int, flows: slice = slice(None), **fields: Any) -> Repetition:
    """A repetition in which some flows of every stream got nothing for a while."""
    whole = builders.repetition(cell, [900.0] * len(cell.streams), **fields)
    silent = [stopped(flow, from_ms, to_ms) for flow in whole.flows[flows]]
    return replace(whole, flows=(*silent, *whole.flows[len(silent) :]))
