"""The pairs of a test that can be measured now: one node that is lost does not lose the results of the others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from rigctl.base.errors import NodeError, named, of_nodes
from rigctl.records import Cell, Pair
from rigctl.runner.nodes import Nodes
from rigctl.runner.orders import Order
from rigctl.settings import MAX_RATE, RATE

Blocked: TypeAlias = Mapping[tuple[int, Pair], str]
"""Pairs of tests, by the test's number, that cannot be measured although their nodes answer, with why."""


def pairs_without(cell: Cell, lost: Mapping[str, NodeError]) -> tuple[Pair, ...]:
    """The pairs of `cell` of which both nodes answer; none where the test makes sense as a whole only."""
    kept = tuple(pair for pair in cell.pairs if not lost.keys() & {pair.source, pair.destination})
    return () if lost and cell[RATE] == MAX_RATE else kept


async def measurable(order: Order, nodes: Nodes, blocked: Blocked) -> tuple[Order, str | None]:
    """Return the order without the pairs that cannot be measured, and which those are and why; None: all can.

    A test of which no pair can be measured stays as it is: it fails, with the reason.
    """
    cell = order.cell
    if len(cell.pairs) < 2:
        return order, None
    lost = await nodes.lost(cell.nodes)
    known = {pair: why for (number, pair), why in blocked.items() if number == cell.number}
    kept = tuple(pair for pair in pairs_without(cell, lost) if pair not in known)
    if not kept or len(kept) == len(cell.pairs) or cell[RATE] == MAX_RATE:
        return order, None
    left = [pair for pair in cell.pairs if pair not in kept]
    reasons = [*of_nodes(lost.values()), *dict.fromkeys(known[pair] for pair in left if pair in known)]
    which = named([f"{pair.source} → {pair.destination}" for pair in left])
    return replace(order, cell=replace(cell, pairs=kept)), f"not measured: {which} ({'; '.join(reasons)})"
