"""Pack what a run was condensed to into compressed JSON for the store, and unpack it.

Figures are columns: a value for each stream of each repetition, in the order of the plan, then one for the test.
Details are a row for each repetition. A row in the store counts only while its stamp fits, so a run is condensed again
after it was resumed, and with a rigctl that has other figures or evidence.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from rigctl.figures import Figure, dtype
from rigctl.figures.phases import PHASE_FIGURES
from rigctl.limits.kinds import EvidenceKind
from rigctl.limits.rules import Evidence
from rigctl.model.trials import Trial
from rigctl.records import RepetitionHead, RunInfo, RunPlan, Stream
from rigctl.results.condense import KEPT_FIGURES
from rigctl.results.condensed import (
    CondensedRun,
    CounterTotals,
    Details,
    FiguresOfRepetition,
    Gap,
    PhaseFigures,
    PointTotals,
    RepetitionKey,
    RunCounters,
    StreamNotes,
)

RESULTS_VERSION: Final = 3
"""To be incremented when the meaning of a figure, of evidence or of another detail changes."""
_MOST_BYTES: Final = 1 << 28
_LEVEL: Final = 6
_FIGURES, _DETAILS, _COUNTERS = "figures", "details", "counters"
PARTS: Final = frozenset({_FIGURES, _DETAILS, _COUNTERS})


_Number = bool | int | float | str | None
_Evidence = tuple[list[_Number], list[EvidenceKind], list[EvidenceKind]]
"""The numbers and words of an `Evidence` in the order of its fields, then the kinds that nodes give and lack."""


class _PhaseRow(NamedTuple):
    """A phase; figures are in the order of `PHASE_FIGURES`: of each stream in the order of the plan, then of all."""

    name: str
    start_s: float
    end_s: float
    counted_s: float
    figures: list[list[_Number]]


class _DetailRow(NamedTuple):
    """The details of a repetition; what belongs to streams is in the order of the plan."""

    evidence: list[_Evidence | None]
    notes: list[StreamNotes]
    gaps: list[tuple[int, float, float]]  # place of the stream, start and length in s
    value: float | None
    trial: Trial | None
    phases: tuple[_PhaseRow, ...] = ()


_TEXTS: Final = TypeAdapter(list[str | None])
_NUMBERS: Final = TypeAdapter(list[bool | int | float | None])
_COLUMNS: Final = TypeAdapter(dict[str, list[Any]])
_ROWS: Final = TypeAdapter(list[_DetailRow])
_RUN_COUNTERS: Final = TypeAdapter(tuple[tuple[CounterTotals, ...], tuple[PointTotals, ...], bool])


def stamp_of(info: RunInfo, repetitions: Iterable[RepetitionHead]) -> str:
    """Return a digest of what the results of a run follow from, besides its plan, which never changes."""
    heads = [(*one.key, str(one.status), one.started_at, one.wall_s) for one in repetitions]
    names = [figure.name for figure in KEPT_FIGURES], Evidence._fields
    text = json.dumps(
        [RESULTS_VERSION, names, info.started_at, info.ended_at, info.facts, heads], sort_keys=True, default=str
    )
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def pack_run(info: RunInfo, repetitions: Sequence[RepetitionHead], run: CondensedRun) -> dict[str, bytes]:
    """Return the parts of what is kept of a run, by name."""
    streams = _streams_by_repetition(info.plan, repetitions)
    each = list(zip(repetitions, streams, strict=True))
    places = [(one.key, stream) for one, own in each for stream in (*own, None)]
    columns = {
        figure.name: [run.figures[key][stream].get(figure.name) for key, stream in places] for figure in KEPT_FIGURES
    }
    known = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    rows = [_row_of(own, run.details[one.key]) for one, own in each]
    counters = (run.counters.each, run.counters.whole, run.counters.ports_read)
    return {
        _FIGURES: _deflate(json.dumps(known, default=_plain).encode()),
        _DETAILS: _deflate(_ROWS.dump_json(rows, fallback=_plain)),
        _COUNTERS: _deflate(_RUN_COUNTERS.dump_json(counters, fallback=_plain)),
    }


def unpack_run(info: RunInfo, repetitions: Sequence[RepetitionHead], parts: Mapping[str, bytes]) -> CondensedRun | None:
    """Return what is kept of a run; None if a part is missing or damaged."""
    if parts.keys() != PARTS:
        return None
    try:
        streams = _streams_by_repetition(info.plan, repetitions)
        keys = [one.key for one in repetitions]
        figures = _figures_from(keys, streams, _COLUMNS.validate_json(_inflate(parts[_FIGURES])))
        rows = _ROWS.validate_json(_inflate(parts[_DETAILS]))
        details = {key: _details_from(own, row) for key, own, row in zip(keys, streams, rows, strict=True)}
        counters = RunCounters(*_RUN_COUNTERS.validate_json(_inflate(parts[_COUNTERS])))
    except (ValidationError, ValueError, LookupError, zlib.error):
        return None
    return CondensedRun(figures, lambda: details, lambda: counters)


def _streams_by_repetition(plan: RunPlan, repetitions: Sequence[RepetitionHead]) -> list[tuple[Stream, ...]]:
    """Return the streams of each repetition, in the order of the plan."""
    streams = {cell.number: cell.streams for cell in plan.cells}
    return [streams[one.cell] for one in repetitions]


def _row_of(streams: Sequence[Stream], own: Details) -> _DetailRow:
    places = {stream: at for at, stream in enumerate(streams)}
    return _DetailRow(
        evidence=[_packed(own.evidence.get(stream)) for stream in streams],
        notes=[own.notes[stream] for stream in streams],
        gaps=[(places[gap.stream], gap.start_s, gap.length_s) for gap in own.gaps],
        value=own.value,
        trial=own.trial,
        phases=tuple(_packed_phase(streams, phase) for phase in own.phases),
    )


def _packed_phase(streams: Sequence[Stream], phase: PhaseFigures) -> _PhaseRow:
    values = [[phase.figures[stream][figure.name] for figure in PHASE_FIGURES] for stream in (*streams, None)]
    return _PhaseRow(phase.name, phase.start_s, phase.end_s, phase.counted_s, values)


def _phase_from(streams: Sequence[Stream], row: _PhaseRow) -> PhaseFigures:
    """Return a phase. Raise `ValueError` if the row has another number of streams or figures."""
    names = [figure.name for figure in PHASE_FIGURES]
    each = zip((*streams, None), row.figures, strict=True)
    figures = {stream: dict(zip(names, values, strict=True)) for stream, values in each}
    return PhaseFigures(row.name, row.start_s, row.end_s, row.counted_s, figures)


def _details_from(streams: Sequence[Stream], row: _DetailRow) -> Details:
    seen = zip(streams, row.evidence, strict=True)
    return Details(
        evidence={stream: _unpacked(*evidence) for stream, evidence in seen if evidence is not None},
        notes=dict(zip(streams, row.notes, strict=True)),
        gaps=tuple(Gap(streams[at], start_s, length_s) for at, start_s, length_s in row.gaps),
        value=row.value,
        trial=row.trial,
        phases=tuple(_phase_from(streams, phase) for phase in row.phases),
    )


def _packed(seen: Evidence | None) -> _Evidence | None:
    if seen is None:
        return None
    *values, gives, lacks = seen
    return values, sorted(gives), sorted(lacks)


def _unpacked(values: list[_Number], gives: list[EvidenceKind], lacks: list[EvidenceKind]) -> Evidence:
    """Return the evidence. Raise `ValueError` if it has another number of fields."""
    if len(values) != len(Evidence._fields) - 2:
        raise ValueError("evidence with another number of fields")
    fields: list[Any] = [*values, frozenset(gives), frozenset(lacks)]
    return Evidence(*fields)


class _FigureRow:
    """The figures of a stream or a test: a row of columns."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Mapping[str, Sequence[Any]], at: int) -> None:
        self._columns, self._at = columns, at

    def get(self, name: str) -> Any:  # noqa: ANN401 — figures have values of any type
        column = self._columns.get(name)
        return None if column is None else column[self._at]


def _figures_from(
    keys: Sequence[RepetitionKey], streams: Sequence[Sequence[Stream]], stored: Mapping[str, list[Any]]
) -> dict[RepetitionKey, FiguresOfRepetition]:
    """Return the figures of each repetition. Raise `ValueError` unless each column has values of its figure's type."""
    columns = {figure.name: _values_of(figure, stored[figure.name]) for figure in KEPT_FIGURES if figure.name in stored}
    figures: dict[RepetitionKey, FiguresOfRepetition] = {}
    at = 0
    for key, own in zip(keys, streams, strict=True):
        figures[key] = {stream: _FigureRow(columns, at + place) for place, stream in enumerate((*own, None))}
        at += len(own) + 1
    if any(len(column) != at for column in columns.values()):
        raise ValueError("a column has another number of rows than the run")
    return figures


def _values_of(figure: Figure[Any], column: list[Any]) -> Sequence[Any]:
    return (_TEXTS if dtype(figure) == "string" else _NUMBERS).validate_python(column, strict=True)


def _plain(value: Any) -> Any:  # noqa: ANN401 — numpy's numbers as Python's
    return value.item()


def _deflate(text: bytes) -> bytes:
    return zlib.compress(text, _LEVEL)


def _inflate(packed: bytes) -> bytes:
    inflater = zlib.decompressobj()
    text = inflater.decompress(packed, _MOST_BYTES)
    if not inflater.eof:
        raise ValueError("a part that is truncated or too large")
    return text
