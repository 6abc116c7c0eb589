"""Compute the figures of a traffic class in each phase: before, during and after other classes send beside the class.

Agents count over time, so a phase is cut from their samples. A receiver of datagrams also samples the highest sequence
number, so the datagrams that were lost in a phase are known, however long they waited in queues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rigctl.figures import FlowGroup
from rigctl.figures.phases import PHASE_FIGURES
from rigctl.model.phases import LoadPhase, counted_ns, phases_of
from rigctl.model.window import CommonWindow, bytes_at, counted_at, cut_to_window
from rigctl.records import Cell, Flow, Repetition, Side, Stream
from rigctl.results.condensed import PhaseFigures


def phases_of_repetition(
    cell: Cell, together: Sequence[Cell], repetition: Repetition, flows: Mapping[Stream, Sequence[Flow]]
) -> tuple[PhaseFigures, ...]:
    """Return the figures of each phase of a class, of each stream and (None) of all; empty without an interval."""
    if repetition.window_ns is None:
        return ()
    found = []
    for phase in phases_of(cell, together):
        counted = counted_ns(cell, phase, repetition.window_ns)
        if counted is not None:
            found.append(_figures_of(cell, phase, counted, repetition, flows))
    return tuple(found)


def _figures_of(
    cell: Cell,
    phase: LoadPhase,
    window_ns: tuple[int, int],
    repetition: Repetition,
    flows: Mapping[Stream, Sequence[Flow]],
) -> PhaseFigures:
    window = CommonWindow(*window_ns, 0)
    cut = {stream: [_cut(flow, window) for flow in flows.get(stream, ())] for stream in cell.streams}
    groups: dict[Stream | None, FlowGroup] = {
        stream: FlowGroup(
            cell,
            own,
            len(own) == cell.parallel,
            [probes for probes in repetition.probes if probes.stream == stream],
            window_ns,
        )
        for stream, own in cut.items()
    }
    every = [flow for own in cut.values() for flow in own]
    whole = all(group.whole for group in groups.values())
    groups[None] = FlowGroup(cell, every, whole, repetition.probes, window_ns)
    values: dict[Stream | None, dict[str, Any]] = {
        stream: {figure.name: figure.of(group) for figure in PHASE_FIGURES} for stream, group in groups.items()
    }
    return PhaseFigures(phase.name, phase.start_s, phase.end_s, window.length_s, values)


def _cut(flow: Flow, window: CommonWindow) -> Flow:
    """Return a flow with bytes, retransmits and datagrams as counted within `window`."""
    cut = cut_to_window(flow, window)
    sender, receiver = flow.sender, flow.receiver
    if sender is None or receiver is None or sender.datagrams is None or receiver.datagrams is None:
        return cut
    sent, came = _numbered(receiver, window), _arrived(receiver, window)
    return replace(
        cut,
        sender=replace(sender, datagrams=None if sent is None else replace(sender.datagrams, count=sent)),
        receiver=replace(receiver, datagrams=None if came is None else replace(receiver.datagrams, count=came)),
    )


def _arrived(receiver: Side, window: CommonWindow) -> int | None:
    """Return how many datagrams arrived within `window`; None if unknown."""
    if receiver.datagrams is None or not receiver.bytes:
        return None
    at_start, at_end = bytes_at(receiver, window.start_ns, np.array([0.0, window.length_s]))
    return round(receiver.datagrams.count * float(at_end - at_start) / receiver.bytes)


def _numbered(receiver: Side, window: CommonWindow) -> int | None:
    """Return by how much the highest sequence number at the receiver rose within `window`; None if unknown.

    The rise counts the datagrams that were sent, as the receiver sees them: a queue on the way delays both its counts.
    """
    known = receiver.datagrams
    if receiver.first_byte_ns is None or receiver.last_byte_ns is None or known is None or known.highest is None:
        return None
    if not receiver.series.columns.get("highest"):
        return None
    whole_s = np.array([0.0, window.length_s])
    before, after = counted_at(receiver, "highest", known.highest, window.start_ns, whole_s)
    return round(float(after - before))
