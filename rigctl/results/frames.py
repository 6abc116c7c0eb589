"""Provide a stored run as rows and pandas frames, one for each export level (tests, pairs, flows, intervals …)."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from rigctl.figures import Level, columns_at, dtype
from rigctl.model.latency import bounds_ns
from rigctl.model.window import BinSeries, Times, bytes_at, sum_bins
from rigctl.records import Cell, Flow, Repetition, RunInfo, Side, Status, Stream
from rigctl.results.rows import ExportRow, of_stream, pick_columns, which_repetition
from rigctl.results.run_results import RunResults, condensed_in_memory

if TYPE_CHECKING:
    import pandas as pd


def edges_of(side: Side, repetition: Repetition) -> Times:
    """Return the bounds of intervals in s: start of the measurement interval, times of the receiver's samples, end."""
    if repetition.window_ns is None:
        return np.zeros(0)
    start_ns, end_ns = repetition.window_ns
    times = np.array(side.series.columns.get("t_ns", []), dtype=np.int64)
    steps = np.diff(times)
    # Samples close to the start or the end are left out: the interval would be too short to compute a rate.
    apart = int(np.median(steps)) // 2 if steps.size else 0
    inside = times[(times > start_ns + apart) & (times < end_ns - apart)]
    edges: Times = (np.concatenate(([start_ns], inside, [end_ns])) - start_ns) / 1e9
    return edges


def interval_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[ExportRow]:
    """Return a row for each interval of each flow; an empty list without a measurement interval."""
    order = {stream: at for at, stream in enumerate(cell.streams)}
    flows = sorted(repetition.flows, key=lambda flow: (order[flow.stream], flow.number))
    return [row for flow in flows for row in _flow_rows(info, cell, repetition, flow)]


def _flow_rows(info: RunInfo, cell: Cell, repetition: Repetition, flow: Flow) -> list[ExportRow]:
    if flow.receiver is None or repetition.window_start_ns is None:
        return []
    edges = edges_of(flow.receiver, repetition)
    counted = bytes_at(flow.receiver, repetition.window_start_ns, edges)
    # Rounding the running sum, not each interval, makes intervals add up to the bytes of the flow.
    whole = np.rint(counted - counted[0]).astype(np.int64)
    sent_again = _gauge(flow.sender, "retransmits", repetition.window_start_ns, edges)
    if sent_again is not None and flow.retransmits is not None:
        sent_again[-1] = sent_again[0] + flow.retransmits
    cwnd = _gauge(flow.sender, "cwnd", repetition.window_start_ns, edges)
    rtt_us = _gauge(flow.sender, "rtt_us", repetition.window_start_ns, edges)
    shared = which_repetition(info, cell, repetition) | of_stream(flow.stream) | {"flow": flow.number}
    return [
        pick_columns(
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
    """Return at each time of `at_s` (s after `start_ns`) the value of the last sample before; None without samples."""
    if side is None or not side.series.columns.get(name):
        return None
    times = (np.array(side.series.columns["t_ns"], dtype=np.int64) - start_ns) / 1e9
    values = np.array(side.series.columns[name], dtype=np.int64)
    # Clocks of nodes differ by tens of microseconds, so a sample counts for a time up to 1 ms before the sample.
    # The first time, the start, needs an earlier sample: `rigctl.model.window` counts from the last one before it.
    late = np.full_like(at_s, 1e-3)
    late[:1] = 0.0
    index = np.searchsorted(times, at_s + late, side="right") - 1
    before = 0 if name == "retransmits" else values[0]
    result: NDArray[np.int64] = np.where(index >= 0, values[index], before)
    return result


def stream_bins(cell: Cell, repetition: Repetition) -> dict[Stream, BinSeries]:
    """Return the bytes received in each bin, by stream, without streams whose bins are unknown."""
    found = {}
    for stream in cell.streams:
        sides = [flow.receiver for flow in repetition.flows if flow.stream == stream and flow.receiver is not None]
        bins = [side.bins for side in sides if side.bins is not None]
        span = _span(repetition, [side for side in sides if side.bins is not None])
        series = sum_bins(bins, *span) if span is not None and len(bins) >= cell.parallel else None
        if series is not None:
            found[stream] = series
    return found


def bin_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[ExportRow]:
    """Return a row for each bin of each stream; an empty list without bins, or if the repetition is invalid."""
    if cell.bin_us is None or repetition.status is not Status.OK:
        return []
    return [
        pick_columns(
            Level.BINS,
            which_repetition(info, cell, repetition)
            | of_stream(stream)
            | {
                "t_s": round(at * series.width_s, 9),
                "bytes": taken,
                "goodput_mbps": rate * 8e-6,
                "cumulative_mbps": cumulative * 8e-6,
            },
        )
        for stream, series in stream_bins(cell, repetition).items()
        for at, (taken, rate, cumulative) in enumerate(
            zip(series.bytes, series.bytes_per_s, series.cumulative, strict=True), 1
        )
    ]


def _span(repetition: Repetition, sides: Sequence[Side]) -> tuple[int, int] | None:
    """Return the measurement interval in ns, else the times of the first and the last byte; None if unknown."""
    if repetition.window_ns is not None:
        return repetition.window_ns
    firsts = [side.first_byte_ns for side in sides if side.first_byte_ns is not None]
    lasts = [side.last_byte_ns for side in sides if side.last_byte_ns is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def bucket_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[ExportRow]:
    """Return a row for each bucket of the histogram of each flow."""
    rows, trips = [], cell.kind.timed
    for flow in repetition.flows:
        # The sender has the histogram of round-trip times; without round trips, a UDP receiver has that of loss bursts.
        side = flow.sender if trips else flow.receiver
        shared = which_repetition(info, cell, repetition) | of_stream(flow.stream)
        shared |= {"flow": flow.number, "message_bytes": cell.message_bytes}
        for bucket, count in side.histogram if side is not None else ():
            low, high = bounds_ns(bucket)
            values = {
                "app_rtt_bucket_low_us": low / 1e3 if trips else None,
                "app_rtt_bucket_high_us": high / 1e3 if trips else None,
                "loss_burst_low": None if trips else low,
                "loss_burst_high": None if trips else high,
                "count": count,
            }
            rows.append(pick_columns(Level.HISTOGRAM, shared | values))
    return rows


_OF_EACH: Final = {Level.INTERVALS: interval_rows, Level.BINS: bin_rows, Level.HISTOGRAM: bucket_rows}
"""Maps a level to the function that computes the rows of a repetition; these rows are computed on every use."""


def frame_of(rows: Iterable[ExportRow], level: Level) -> "pd.DataFrame":
    """Return rows of one or more runs as a pandas frame with the columns of `columns_at(level)`."""
    import pandas as pd

    types = {column.name: dtype(column) for column in columns_at(level)}
    return pd.DataFrame([[row[name] for name in types] for row in rows], columns=list(types)).astype(types)


def _frame(level: Level) -> "cached_property[pd.DataFrame]":
    def frame(frames: "Frames") -> "pd.DataFrame":
        return frame_of(frames.rows(level), level)

    return cached_property(frame)


class Frames:
    """A run as rows and as pandas frames, at each export level."""

    def __init__(self, results: RunResults) -> None:
        self.results = results

    def rows(self, level: Level) -> list[ExportRow]:
        """Return the rows of a level. Rows of intervals, bins and histograms are computed again on every call."""
        if level in (Level.CELLS, Level.PAIRS):
            return self.results.cells if level is Level.CELLS else self.results.pairs
        if level is Level.FLOWS:
            return self.results.flows
        if level is Level.PHASES:
            return [row for one in self.results.each for row in one.phase_rows()]
        info = self.results.info
        cells = {cell.number: cell for cell in info.plan.cells}
        whole = self.results.whole(self.results.repetitions, samples=level is not Level.HISTOGRAM)
        each = ((cells[repetition.cell], repetition) for repetition in whole)
        return [row for cell, repetition in each for row in _OF_EACH[level](info, cell, repetition)]

    cells = _frame(Level.CELLS)
    pairs = _frame(Level.PAIRS)
    flows = _frame(Level.FLOWS)
    intervals = _frame(Level.INTERVALS)
    bins = _frame(Level.BINS)
    histogram = _frame(Level.HISTOGRAM)
    phases = _frame(Level.PHASES)


def load_frames(info: RunInfo, repetitions: Iterable[Repetition]) -> Frames:
    """Return the frames of repetitions with samples. Raise `InputError` if records are inconsistent."""
    return Frames(condensed_in_memory(info, repetitions))
