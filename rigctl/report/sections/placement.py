"""Placement of the flows: threads and cards on different NUMA nodes, and flows that share a processor.

Both are told where a placement was requested, and where the processors of that end limited the test.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.records import Cell, Repetition, Side
from rigctl.report.blocks import Part
from rigctl.report.words.text import numbers_text
from rigctl.settings import PLACEMENT
from rigctl.settings.placement import NIC, of_end

MAINLY: Final = 0.5
"""A thread ran on a processor if it did in more than this share of its samples."""
_ENDS: Final = ((True, "sender"), (False, "receiver"))
_FEW: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def part(view: RunView) -> Part | None:
    """Return the findings on where flows ran; None if there are none."""
    findings = (*_apart(view), *_shared(view))
    return Part(findings=findings) if findings else None


def _sides(view: RunView) -> Iterator[tuple[Repetition, str, Side, str]]:
    """Yield the ends of flows for which their place matters: repetition, node, side, and the end's name."""
    cells = {cell.number: cell for cell in view.plan.cells}
    limits = {(row["cell"], row["repetition"]): row["limit"] for row in view.frames.derived.cells}
    for repetition in view.repetitions:
        cell, limit = cells[repetition.cell], limits.get((repetition.cell, repetition.repetition))
        for flow in repetition.flows:
            for sends, end in _ENDS:
                side = flow.sender if sends else flow.receiver
                if side is not None and (_asked(cell, sends) or limit == end):
                    yield repetition, flow.stream.sender if sends else flow.stream.receiver, side, end


def _asked(cell: Cell, sends: bool) -> bool:
    return of_end(cell[PLACEMENT], sends) is not None


def _apart(view: RunView) -> Iterator[Finding]:
    found: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    for repetition, node, side, end in _sides(view):
        if side.numa.node is not None and side.numa.card is not None and side.numa.node != side.numa.card:
            found[node, end, side.numa.node, side.numa.card].add(repetition.cell)
    for (node, end, own, card), tests in found.items():
        text = (
            f"{end.capitalize()} and card of {node} are on different NUMA nodes, {own} and {card}: "
            f"{numbers_text(sorted(tests))}."
        )
        remedy = f"placement: {{{end}: {NIC}}} runs the {end} on the node of its card."
        numbers = {"numa_node": own, "card_numa_node": card}
        yield Finding(text, Weight.GRANTED, Severity.WARNING, Subject("node", (node,)), numbers, remedy)


def _shared(view: RunView) -> Iterator[Finding]:
    """Yield the processors on which several flows ran, with the most flows in one repetition."""
    flows = Counter[tuple[str, int, int, int]]()
    for repetition, node, side, _ in _sides(view):
        if (processor := _mainly(side)) is not None:
            flows[node, processor, repetition.cell, repetition.repetition] += 1
    found: dict[tuple[str, int, int], set[int]] = defaultdict(set)
    for (node, processor, cell, _), count in flows.items():
        if count > 1:
            found[node, processor, count].add(cell)
    for (node, processor, count), tests in found.items():
        many = _FEW[count] if count < len(_FEW) else str(count)
        text = f"{many} flows share processor {processor} of {node}: {numbers_text(sorted(tests))}."
        remedy = "Give placement as many processors as there are flows, or leave it to the scheduler."
        numbers = {"processor": processor, "flows": count}
        yield Finding(text, Weight.GRANTED, Severity.NOTE, Subject("node", (node,)), numbers, remedy)


def _mainly(side: Side) -> int | None:
    counts = side.counts(PLACEMENT) or ()
    whole = sum(count for _, count in counts)
    return next((processor for processor, count in counts if count > MAINLY * whole), None)
