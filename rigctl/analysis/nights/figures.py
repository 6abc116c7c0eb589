"""Figures by which runs are compared: for each test and stream, one value per counted repetition.

A test is matched with tests of other runs by its settings and pairs, as numbers change if a scenario gets more tests.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rigctl.analysis.rows.cells import ExportRow
from rigctl.analysis.rows.frames import Frames
from rigctl.analysis.views.mesh import Role
from rigctl.figures import Figure, FlowGroup, combine_streams
from rigctl.figures.messages import ROUND_TRIP, THROUGHPUT, over_flows
from rigctl.figures.probes import LOADED
from rigctl.figures.streams import GOODPUT
from rigctl.records import Cell, Stream

WATCHED: Final = ("duration_s", "omit_s", "capture", "bin_us", "latency_ms")
"""Fields of a cell on how long and how closely a test is observed; tests that differ only in them are the same."""


@dataclass(frozen=True, slots=True)
class FigureSubject:
    """Identifies a figure in all runs: of a test, of one stream of a test, or of a node (as sender or receiver)."""

    test: str  # settings and pairs as canonical JSON; for a node the settings without pairs
    metric: Figure[float]
    stream: Stream | None = None
    node: str | None = None
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of one run. `values` are the known values of the counted repetitions, in order."""

    key: FigureSubject
    cell: Cell
    values: tuple[float, ...]


def keys_of_tests(cells: Sequence[Cell]) -> dict[int, str]:
    """Return a key for each cell number that is the same in every run. Equal cells differ by a counter in the key."""
    seen: Counter[str] = Counter()
    keys = {}
    for cell in cells:
        settings = {name: value for name, value in asdict(cell).items() if name not in ("number", "group", *WATCHED)}
        if cell.traffic_class is None:
            del settings["traffic_class"]
        text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
        seen[text] += 1
        keys[cell.number] = text if seen[text] == 1 else f"{text}#{seen[text]}"
    return keys


def figure_keys(cells: Sequence[Cell]) -> Iterator[tuple[Cell, FigureSubject]]:
    """Yield each cell with the keys of its figures: of the test, then of each stream; in the plan's order."""
    tests = keys_of_tests(cells)
    for cell in cells:
        for metric in _metrics(cell):
            for stream in (None, *cell.streams):
                yield cell, FigureSubject(tests[cell.number], metric, stream)


def figures(frames: Frames) -> list[RunFigure]:
    """Return all figures of a run in the order of `figure_keys`, including figures without a value."""
    by_cell: dict[int, list[Mapping[Stream | None, ExportRow]]] = {}
    for number, values in _values(frames):
        by_cell.setdefault(number, []).append(values)
    made = []
    for cell, key in figure_keys(frames.info.plan.cells):
        known = (own[key.stream][key.metric.name] for own in by_cell.get(cell.number, ()) if key.stream in own)
        made.append(RunFigure(key, cell, tuple(float(value) for value in known if value is not None)))
    return made


def _metrics(cell: Cell) -> list[Figure[float]]:
    if cell.in_messages:
        return [ROUND_TRIP] if cell.kind.round_trips else [THROUGHPUT]
    return [GOODPUT] if cell.latency_ms is None else [GOODPUT, LOADED]


def _values(frames: Frames) -> Iterator[tuple[int, Mapping[Stream | None, ExportRow]]]:
    """Yield the cell number of each counted repetition, and its values by stream; key None has those of the test."""
    for derived, rows in frames.derived.by_stream():
        cell = derived.cell
        if derived.counted and cell.in_messages:
            (metric,) = _metrics(cell)
            of_streams: dict[Stream | None, float | None] = {
                stream: over_flows(metric, (FlowGroup(cell, [flow]) for flow in derived.flows_of(stream)))
                for stream in cell.streams
            }
            values = {**of_streams, None: combine_streams(metric, of_streams.values())}
            yield cell.number, {stream: {metric.name: value} for stream, value in values.items()}
        elif derived.counted:
            yield cell.number, rows
