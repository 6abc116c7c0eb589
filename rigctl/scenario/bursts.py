"""Tests of bursts: what they need to know of links, and the mistakes that only links and tests together show."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rigctl.base.errors import join_names
from rigctl.base.units import format_duration, format_rate
from rigctl.base.values import least, total
from rigctl.limits.links import trunk_between
from rigctl.model.bursts import drained_ms
from rigctl.model.frames import Packet
from rigctl.records import Cell, RunPlan
from rigctl.scenario.classes import Test, place_of, setting_mistake
from rigctl.scenario.matrix import AxisMatrix
from rigctl.settings import INTERVAL, ITERATIONS, LENGTH, SIZE, Setting
from rigctl.yamlfile import Mistake, YamlDocument


def with_frame_times(plan: RunPlan) -> RunPlan:
    """Return the plan with the time for which the slowest link carries a datagram, for each test of bursts."""
    return replace(
        plan, cells=tuple(_with_frame_time(plan, cell) if cell.kind.by_burst else cell for cell in plan.cells)
    )


def _with_frame_time(plan: RunPlan, cell: Cell) -> Cell:
    trunk_bps = plan.trunk.rate_bps if plan.trunk is not None else None
    slowest_bps = least((*(plan.links[node].rate_bps for node in cell.nodes), trunk_bps))
    wire_bits = 8 * Packet("udp", plan.ip_version).wire_bytes(cell.message_bytes or 0)
    return replace(cell, frame_ns=None if slowest_bps is None else math.ceil(wire_bits * 1e9 / slowest_bps))


def burst_mistakes(
    document: YamlDocument, matrix: AxisMatrix, tests: Sequence[Test], plan: RunPlan
) -> Iterator[Mistake]:
    """Yield the mistakes of tests of bursts: each once, with its first test."""
    reported = set()
    numbered = {cell.number: cell for cell in plan.cells}
    for test in tests:
        cell = numbered[test.number]
        if not cell.kind.by_burst:
            continue
        for setting, what in _clashes(plan, cell):
            path = ("pairs",) if setting is None else place_of(document, matrix, test, setting)
            if (setting, path) in reported:
                continue
            reported.add((setting, path))
            sentence = f"{'pairs' if setting is None else setting.name}: {what} (test {cell.number})."
            if path is None and setting is not None:
                yield setting_mistake(document, setting, sentence)
            else:
                yield document.mistake(path or ("duration",), sentence)


def _clashes(plan: RunPlan, cell: Cell) -> Iterator[tuple[Setting[Any] | None, str]]:
    """Yield (setting, message); without a setting, the pairs are wrong."""
    interval_ms = drained_ms(cell)
    needed_s = interval_ms * (cell[ITERATIONS] or 1) / 1e3
    if needed_s > cell.duration_s:
        count = f"{cell[ITERATIONS]:,} bursts" if (cell[ITERATIONS] or 1) > 1 else "a burst"
        takes = f"{count} every {format_duration(interval_ms / 1e3)} {'take' if count != 'a burst' else 'takes'}"
        what = f"{takes} {format_duration(needed_s)}, and the test {format_duration(cell.duration_s)}. Give it longer"
        yield (ITERATIONS if cell[ITERATIONS] is not None else INTERVAL if cell[INTERVAL] is not None else LENGTH), what
    mtu = least(_mtu(plan, cell, node) for node in cell.nodes)
    fits = None if mtu is None else Packet("udp", plan.ip_version).largest_payload(mtu)
    if fits is not None and (cell.message_bytes or 0) > fits:
        yield SIZE, f"{cell.message_bytes} bytes are sent in fragments; at most {fits} fit into an MTU of {mtu}"
    if (port := _unfilled(plan, cell)) is not None:
        yield None, port


def _mtu(plan: RunPlan, cell: Cell, node: str) -> int | None:
    return plan.condition_mtu(cell.condition) or plan.links[node].mtu


def _unfilled(plan: RunPlan, cell: Cell) -> str | None:
    """Return why bursts cannot fill the port to a receiver; None if they fill all ports, or if a rate is unknown."""
    crossing = {stream.sender for stream in cell.streams if trunk_between(plan, stream.ends)}
    for receiver in dict.fromkeys(stream.receiver for stream in cell.streams):
        senders = tuple(dict.fromkeys(stream.sender for stream in cell.streams if stream.receiver == receiver))
        drain_bps = plan.links[receiver].rate_bps
        own = [sender for sender in senders if trunk_between(plan, (sender, receiver))]
        near = total([0, *(plan.links[sender].rate_bps for sender in senders if sender not in own)])
        far = total([0, *(plan.links[sender].rate_bps for sender in own)])
        if drain_bps is None or near is None or far is None or _has_unknown_trunk(plan, senders, receiver):
            continue
        trunk_bps = plan.trunk.rate_bps if plan.trunk is not None and own else None
        if own and trunk_bps is not None:
            over = total(plan.links[sender].rate_bps for sender in crossing)
            if over is None or over > trunk_bps:
                continue
            far = min(far, trunk_bps)
        if near + far <= drain_bps:
            verb = "sends" if len(senders) == 1 else "send"
            return (
                f"{join_names(senders)} {verb} at {format_rate(near + far)} to {receiver}, whose link carries "
                f"{format_rate(drain_bps)}: no queue grows there, however long a burst is. Name further senders to "
                f"{receiver}, or a receiver with a slower link"
            )
    return None


def _has_unknown_trunk(plan: RunPlan, senders: Sequence[str], receiver: str) -> bool:
    """Tell whether data may pass a link between switches whose rate the rig file does not give."""
    if plan.trunk is None or plan.trunk.rate_bps is not None:
        return False
    return any(plan.links[sender].switch != plan.links[receiver].switch for sender in senders)
