"""The bins of each stream of a repetition, over the time that counts, and as rows of level `bins`."""

from collections.abc import Sequence
from dataclasses import dataclass

from rigctl.analysis.rows.derive import Row, picked, which_stream
from rigctl.columns import Level
from rigctl.model.gaps import BinSeries, together
from rigctl.records import Cell, Repetition, RunInfo, Side, Status, Stream


@dataclass(frozen=True, slots=True)
class StreamBins:
    """What the receivers of a pair's flows took in each bin, together."""

    stream: Stream
    series: BinSeries


def stream_bins(cell: Cell, repetition: Repetition) -> list[StreamBins]:
    """In the scenario's order; without the streams whose bins are not known."""
    made = []
    for stream in cell.streams:
        sides = [flow.receiver for flow in repetition.flows if flow.stream == stream]
        known = [side for side in sides if side is not None and side.bins is not None]
        span = _span(repetition, known)
        if len(known) < cell.parallel or span is None:
            continue
        series = together([side.bins for side in known if side.bins is not None], *span)
        if series is not None:
            made.append(StreamBins(stream, series))
    return made


def bin_rows(info: RunInfo, cell: Cell, repetition: Repetition) -> list[Row]:
    """The rows of level `bins` of one repetition; none where no bins were requested, or it does not count."""
    if cell.bin_us is None or repetition.status is not Status.OK:
        return []
    return [row for bins in stream_bins(cell, repetition) for row in _rows(info, cell, repetition, bins)]


def _rows(info: RunInfo, cell: Cell, repetition: Repetition, one: StreamBins) -> list[Row]:
    series = one.series
    shared = which_stream(info, cell, repetition, one.stream)
    return [
        picked(
            Level.BINS,
            shared
            | {
                "t_s": round(at * series.width_s, 9),
                "bytes": taken,
                "goodput_mbps": rate * 8e-6,
                "cumulative_mbps": cumulative * 8e-6,
            },
        )
        for at, (taken, rate, cumulative) in enumerate(
            zip(series.bytes, series.bytes_per_s, series.cumulative, strict=True), 1
        )
    ]


def _span(shown: Repetition, sides: Sequence[Side]) -> tuple[int, int] | None:
    """The time that counts: the measurement interval; of a file, which has none, from its first byte to its last."""
    if shown.window_start_ns is not None and shown.window_end_ns is not None:
        return shown.window_start_ns, shown.window_end_ns
    firsts = [side.first_byte_ns for side in sides if side.first_byte_ns is not None]
    lasts = [side.last_byte_ns for side in sides if side.last_byte_ns is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None
