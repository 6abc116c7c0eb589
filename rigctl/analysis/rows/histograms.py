"""The histograms that agents keep, as rows of level `histogram`: round trips, and datagrams lost in a row."""

from rigctl.analysis.rows.derive import Row, picked, which_stream
from rigctl.columns import Level
from rigctl.model.histogram import bounds_ns
from rigctl.records import Cell, Flow, Repetition, RunInfo


def bucket_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[Row]:
    """One row per bucket of each flow; none of flows without a histogram."""
    return [row for flow in repetition.flows for row in _rows(info, cell, repetition, flow)]


def _rows(info: RunInfo, cell: Cell, repetition: Repetition, flow: Flow) -> list[Row]:
    trips = cell.kind.round_trips
    # Who sends a message waits for its answer; who receives datagrams misses some.
    side = flow.sender if trips else flow.receiver
    shared = which_stream(info, cell, repetition, flow.stream)
    shared |= {"flow": flow.number, "message_bytes": cell.message_bytes}
    rows = []
    for bucket, count in side.histogram if side is not None else ():
        low, high = bounds_ns(bucket)
        values = {
            "app_rtt_bucket_low_us": low / 1e3 if trips else None,
            "app_rtt_bucket_high_us": high / 1e3 if trips else None,
            "loss_burst_low": None if trips else low,
            "loss_burst_high": None if trips else high,
            "count": count,
        }
        rows.append(picked(Level.HISTOGRAM, shared | values))
    return rows
