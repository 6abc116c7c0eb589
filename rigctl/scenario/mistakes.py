"""What a scenario's shape cannot say: mistakes between its values, and between it and its rig.

Each check looks at the data as read and skips what the schema has refused already, so that a file with one wrong
value still gets every other mistake told.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from rigctl.records import Pair
from rigctl.rig.inventory import Rig
from rigctl.scenario.axes import AXES
from rigctl.scenario.matrix import MAX_CELLS, Matrix, Pattern, Row, as_list, count, full, pattern_of, product
from rigctl.scenario.schema import parse_duration_field, parse_omit, parse_pair
from rigctl.units import format_duration
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.mistakes import MOST_FOUND

_T = TypeVar("_T")


def mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """Every mistake but those of the shape and of the matrix as a whole. Without a rig its nodes are not asked for."""
    yield from islice(pair_mistakes(document, rig), MOST_FOUND)
    yield from time_mistakes(document)
    yield from islice(axis_mistakes(document), MOST_FOUND)


def pair_mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """No pair at all, unknown nodes, a node with itself, the same pair twice."""
    if "pairs" not in document.data:
        return
    pairs = as_list(document.data["pairs"])
    if not pairs:
        yield document.mistake(("pairs",), "pairs: the list is empty. Name at least one, as in pi1 -> pi2.")
    seen: dict[Pair, int] = {}
    for index, value in enumerate(pairs):
        path = ("pairs", index)
        pair = _parsed(parse_pair, "pairs", value)
        if pair is None:
            continue
        if pair.source == pair.destination:
            yield document.mistake(path, f'pair "{value}": a node with itself. Name two different nodes.')
        if pair in seen:
            yield document.mistake(path, f'pair "{value}": is there twice. More flows: use the axis parallel.')
        seen[pair] = index
        if rig is not None:
            for node in dict.fromkeys((pair.source, pair.destination)):
                if node not in rig.nodes:
                    hint = suggestion(node, list(rig.nodes))
                    what = f'pair "{value}": unknown node "{node}" in rig {rig.name}.{hint}'
                    yield document.mistake(path, what)


def time_mistakes(document: Document) -> Iterator[Mistake]:
    """Nothing left of the duration once `omit` is cut off."""
    data = document.data
    duration_s = _parsed(parse_duration_field, "duration", data.get("duration", "10s"))
    omit_s = _parsed(parse_omit, "omit", data.get("omit", 0))
    if duration_s is None or omit_s is None or omit_s < duration_s:
        return
    at = ("duration",) if ("duration",) in document.origins else ("omit",)
    what = f"omit is {format_duration(omit_s)}: it must be shorter than the duration, {format_duration(duration_s)}."
    yield document.mistake(at, what)


def axis_mistakes(document: Document) -> Iterator[Mistake]:
    """Axes without a value, values that are there twice, rows that say nothing."""
    matrix = document.data.get("matrix")
    for name, values in (matrix if isinstance(matrix, dict) else {}).items():
        if name not in AXES:
            continue
        path = ("matrix", name)
        if values == []:
            yield document.mistake(path, f"{name}: an empty axis. Give it at least one value, or leave it out.")
        seen: dict[Any, Any] = {}
        for index, value in enumerate(as_list(values)):
            try:
                parsed = AXES[name].parse(name, value)
            except ValueError:
                continue
            if parsed in seen:
                what = f'{name} "{value}": is there twice, first as "{seen[parsed]}". To measure more often use repeat.'
                yield document.mistake((*path, index), what)
            seen.setdefault(parsed, value)
    for key in ("exclude", "include"):
        rows = document.data.get(key)
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            if row == {}:
                yield document.mistake((key, index), f"{key}: a row that names no axis. Name one, as in window: 64K.")


def matrix_mistakes(document: Document, matrix: Matrix, *, overridden: bool) -> Iterator[Mistake]:
    """Too many cells (told by counting), rows without effect, nothing left. For a matrix whose values are right.

    With axes replaced on the command line (`overridden`) a row may lose its effect without anyone's mistake.
    """
    cells = count(matrix)
    if cells > MAX_CELLS:
        path = ("matrix",) if "matrix" in document.data else ("include",)
        what = f"the matrix has {cells:,} cells: at most {MAX_CELLS:,}. Give its axes fewer values."
        yield document.mistake(path, what, at_key=True)
        return
    left, effective = product(matrix)
    if not overridden:
        yield from islice(_row_mistakes(document, matrix, left, effective), MOST_FOUND)
    if not left and not matrix.include:
        what = "exclude: drops every cell of the matrix. Nothing is left to measure."
        yield document.mistake(("exclude",), what, at_key=True)


def _row_mistakes(document: Document, matrix: Matrix, left: list[Row], effective: set[Pattern]) -> Iterator[Mistake]:
    for index, row in enumerate(matrix.exclude):
        if row and pattern_of(row) not in effective:
            yield document.mistake(("exclude", index), "exclude: no cell of the matrix has these values.")
    seen = {pattern_of(row): f"cell {number} of the matrix" for number, row in enumerate(left, 1)}
    for index, row in enumerate(matrix.include):
        key = pattern_of(full(row))
        if key in seen:
            what = f"include: the same cell as {seen[key]}. To measure more often use repeat."
            yield document.mistake(("include", index), what)
        seen.setdefault(key, f"row {index + 1} of include")


def _parsed(parse: Callable[[str, object], _T], name: str, value: object) -> _T | None:
    try:
        return parse(name, value)
    except ValueError:
        return None
