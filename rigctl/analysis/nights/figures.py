"""The figures by which runs are compared: of each test and each of its streams, one value per repetition that counts.

A test is known in other runs by its settings and pairs, not by its number: a scenario may have got more tests.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.frames import Frames
from rigctl.analysis.rows.messages import message_values
from rigctl.model.unknowns import mean_of_all, total
from rigctl.records import Cell, Flow, Stream

WATCHED: Final = ("duration_s", "omit_s", "capture", "bin_us", "latency_ms")
"""Fields of a cell that say how long and how closely it is watched, not what it measures."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is compared: a column, in whose unit the values are."""

    name: str
    higher_is_better: bool


GOODPUT: Final = Metric("goodput_mbps", True)
ROUND_TRIP: Final = Metric("app_rtt_mean_us", False)  # the percentiles are of buckets: steps of some percent
THROUGHPUT: Final = Metric("throughput_bytes_per_s", True)
LOADED_LATENCY: Final = Metric("latency_loaded_p50_us", False)


@dataclass(frozen=True, slots=True)
class FigureKey:
    """What makes a figure the same one in another run."""

    test: str  # settings and pairs, as canonical JSON
    stream: Stream | None  # None: the test as a whole
    metric: Metric
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Kept: the nights of a year look each key up a thousand times.
        object.__setattr__(self, "_hash", hash((self.test, self.stream, self.metric)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["FigureKey"], tuple[str, Stream | None, Metric]]:
        """Made anew in another process, where texts have other hashes."""
        return FigureKey, (self.test, self.stream, self.metric)


@dataclass(frozen=True, slots=True)
class Figure:
    """`values`: one per repetition that counts and whose value is known, in their order."""

    key: FigureKey
    cell: Cell
    values: tuple[float, ...]


def keys_of_tests(cells: Sequence[Cell]) -> dict[int, str]:
    """Of each cell, by its number, what it is known by in other runs. Equal cells are told apart by their order."""
    seen: Counter[str] = Counter()
    keys = {}
    for cell in cells:
        settings = {name: value for name, value in asdict(cell).items() if name not in ("number", *WATCHED)}
        text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
        seen[text] += 1
        keys[cell.number] = text if seen[text] == 1 else f"{text}#{seen[text]}"
    return keys


def figures(frames: Frames) -> list[Figure]:
    """Of each test as a whole, then of each of its streams, in the plan's order; also those without any value."""
    keys = keys_of_tests(frames.info.plan.cells)
    by_cell: dict[int, list[dict[Stream | None, Row]]] = {}
    for cell, values in _values(frames):
        by_cell.setdefault(cell, []).append(values)
    return [
        figure
        for cell in frames.info.plan.cells
        for figure in _of_cell(cell, keys[cell.number], by_cell.get(cell.number, []))
    ]


def _of_cell(cell: Cell, test: str, values: Sequence[dict[Stream | None, Row]]) -> Iterator[Figure]:
    for metric in _metrics(cell):
        for stream in (None, *cell.streams):
            known = (own[stream][metric.name] for own in values if stream in own)
            figured = tuple(float(value) for value in known if value is not None)
            yield Figure(FigureKey(test, stream, metric), cell, figured)


def _metrics(cell: Cell) -> list[Metric]:
    if cell.in_messages:
        return [ROUND_TRIP] if cell.kind.round_trips else [THROUGHPUT]
    return [GOODPUT] if cell.latency_ms is None else [GOODPUT, LOADED_LATENCY]


def _values(frames: Frames) -> Iterator[tuple[int, dict[Stream | None, Row]]]:
    """Of each repetition that counts: its cell, and the values of its streams and, under `None`, of all of them."""
    for derived, rows in frames.derived.by_stream():
        cell = derived.cell
        if derived.counted and cell.in_messages:
            own: dict[Stream | None, Row] = {
                stream: _of_messages(cell, derived.flows_of(stream)) for stream in cell.streams
            }
            yield cell.number, own | {None: _together(list(own.values()))}
        elif derived.counted:
            yield cell.number, rows


def _of_messages(cell: Cell, flows: Sequence[Flow]) -> Row:
    return _together([message_values(cell, flow) for flow in flows])


def _together(rows: Sequence[Row]) -> Row:
    return {
        ROUND_TRIP.name: mean_of_all(row[ROUND_TRIP.name] for row in rows),
        THROUGHPUT.name: total(row[THROUGHPUT.name] for row in rows),
    }
