"""Goodput over time: the raw counters of a flow cut at its sample times, within the measurement interval only."""

import numpy as np
from numpy.typing import NDArray

from rigctl.analysis.rows.derive import Row, picked, which_stream
from rigctl.columns import Level
from rigctl.model.intervals import Times, received_at
from rigctl.records import Cell, Flow, Repetition, RunInfo, Side


def edges_of(side: Side, repetition: Repetition) -> Times:
    """The ends of the intervals: the receiver's sample times, from the measurement interval's start to its end."""
    start_ns, end_ns = repetition.window_start_ns, repetition.window_end_ns
    if start_ns is None or end_ns is None:
        return np.zeros(0)
    times = np.array(side.series.columns.get("t_ns", []), dtype=np.int64)
    steps = np.diff(times)
    # A sample next to an edge would make an interval too short to have a rate.
    apart = int(np.median(steps)) // 2 if steps.size else 0
    inside = times[(times > start_ns + apart) & (times < end_ns - apart)]
    edges: Times = (np.concatenate(([start_ns], inside, [end_ns])) - start_ns) / 1e9
    return edges


def interval_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[Row]:
    """The rows of level `intervals` of one repetition; none where there is no measurement interval."""
    order = {stream: at for at, stream in enumerate(cell.streams)}
    flows = sorted(repetition.flows, key=lambda flow: (order[flow.stream], flow.number))
    return [row for flow in flows for row in _flow_rows(info, cell, repetition, flow)]


def _flow_rows(info: RunInfo, cell: Cell, repetition: Repetition, flow: Flow) -> list[Row]:
    if flow.receiver is None or repetition.window_start_ns is None:
        return []
    edges = edges_of(flow.receiver, repetition)
    counted = received_at(flow.receiver, repetition.window_start_ns, edges)
    # Rounded once, from the start: so the intervals' bytes add up to the flow's.
    whole = np.rint(counted - counted[0]).astype(np.int64)
    sent_again = _gauge(flow.sender, "retransmits", repetition.window_start_ns, edges)
    if sent_again is not None and flow.retransmits is not None:
        sent_again[-1] = sent_again[0] + flow.retransmits
    cwnd = _gauge(flow.sender, "cwnd", repetition.window_start_ns, edges)
    rtt_us = _gauge(flow.sender, "rtt_us", repetition.window_start_ns, edges)
    shared = which_stream(info, cell, repetition, flow.stream) | {"flow": flow.number}
    return [
        picked(
            Level.INTERVALS,
            shared
            | {
                "t_s": float(edges[at]),
                "bytes": int(whole[at] - whole[at - 1]),
                "goodput_mbps": float((whole[at] - whole[at - 1]) * 8e-6 / (edges[at] - edges[at - 1])),
                "retransmits": None if sent_again is None else int(sent_again[at] - sent_again[at - 1]),
                "rtt_us": None if rtt_us is None else float(rtt_us[at]),
                "cwnd": None if cwnd is None else int(cwnd[at]),
            },
        )
        for at in range(1, len(edges))
    ]


def _gauge(side: Side | None, name: str, start_ns: int, at_s: Times) -> NDArray[np.int64] | None:
    """The value of the last sample at or before each of `at_s`; 0 before the first of a counter."""
    if side is None or not side.series.columns.get(name):
        return None
    times = (np.array(side.series.columns["t_ns"], dtype=np.int64) - start_ns) / 1e9
    values = np.array(side.series.columns[name], dtype=np.int64)
    # The two clocks differ by tens of microseconds: a sample just after an edge belongs to it. Not so at the start,
    # where `rigctl.model.window` counts from the last sample before.
    late = np.full_like(at_s, 1e-3)
    late[:1] = 0.0
    index = np.searchsorted(times, at_s + late, side="right") - 1
    before = 0 if name == "retransmits" else values[0]
    result: NDArray[np.int64] = np.where(index >= 0, values[index], before)
    return result
