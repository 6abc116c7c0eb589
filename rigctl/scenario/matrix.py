"""From axes to cells: the product (first axis slowest), less `exclude`, then the rows of `include`, order kept."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from rigctl.scenario.axes import AXES, AxisValue
from rigctl.scenario.spans import spread

MAX_CELLS: Final = 100_000
SETTINGS: Final = tuple(name for name in AXES if name != "pairs")
"""Axes that a scenario may also name at its top, with one value, for all tests; `pairs` is another key there."""
Row: TypeAlias = Mapping[str, AxisValue]
Pattern: TypeAlias = tuple[tuple[str, ...], tuple[AxisValue, ...]]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Values by axis name. A row names the axes it speaks of; the others have their `unset` value in a cell."""

    axes: Mapping[str, Sequence[AxisValue]] = field(default_factory=dict)
    exclude: Sequence[Row] = ()
    include: Sequence[Row] = ()


def matrix_of(data: Mapping[str, Any]) -> Matrix:
    """The matrix in a scenario's data. Raises `ValueError` where a value is wrong: the schema has told of it before."""
    settings = _row({name: data[name] for name in SETTINGS if name in data})
    axes = data.get("matrix") or {}
    include = [{**settings, **_row(row)} for row in data.get("include") or []]
    for_all = {} if include and not axes else {name: [value] for name, value in settings.items()}
    matrix = Matrix(
        axes={
            **for_all,
            **{name: [AXES[name].parse(name, one) for one in spread(name, values)] for name, values in axes.items()},
        },
        exclude=[_row(row) for row in data.get("exclude") or []],
        include=include,
    )
    return with_conditions(matrix, list(data.get("conditions") or {}))


def as_list(value: object) -> list[Any]:
    """A single value stands for a list of one."""
    return value if isinstance(value, list) else [value]


def with_conditions(matrix: Matrix, names: Sequence[str]) -> Matrix:
    """`matrix` under each condition of `names`, where it does not say under which; conditions change slowest."""
    if not names:
        return matrix
    chosen = matrix.axes.get("condition", names)
    include = [
        {"condition": name, **row} for row in matrix.include for name in (chosen if "condition" not in row else [None])
    ]
    if not matrix.axes and matrix.include:
        return replace(matrix, include=include)
    others = {name: values for name, values in matrix.axes.items() if name != "condition"}
    return replace(matrix, axes={"condition": chosen, **others}, include=include)


def by_condition(rows: Sequence[Row]) -> list[Row]:
    """Rows with those of a condition together, conditions in the order in which they first appear."""
    order = {name: at for at, name in enumerate(dict.fromkeys(row["condition"] for row in rows))}
    return sorted(rows, key=lambda row: order[row["condition"]])


def with_axis(matrix: Matrix, name: str, values: Sequence[AxisValue]) -> Matrix:
    """`matrix` with the values of one axis replaced, in the product and in every row of `include`.

    A row becomes one row per value; rows that are equal then are kept once. Where there are only rows, no axis is
    added to the product, so that no cell appears that the scenario did not have.
    """
    only_rows = matrix.include and not matrix.axes
    axes = dict(matrix.axes) if only_rows else {**matrix.axes, name: values}
    rows = [{**row, name: value} for row in matrix.include for value in values]
    return replace(matrix, axes=axes, include=_once(rows))


def count(matrix: Matrix) -> int:
    """Cells before `exclude`, by multiplying: nothing is expanded."""
    return _product_size(matrix) + len(matrix.include)


def expand(matrix: Matrix) -> list[Row]:
    """All cells in order, as full rows, each once. Check `count` first."""
    return by_condition(_once(product(matrix)[0] + [full(row) for row in matrix.include]))


def product(matrix: Matrix) -> tuple[list[Row], set[Pattern]]:
    """The cells of the product that no row of `exclude` drops, and the patterns of the rows that dropped one."""
    kept: list[Row] = []
    effective: set[Pattern] = set()
    if not _product_size(matrix):
        return kept, effective
    # By the axes they name, at most 2^9 groups: the work does not grow with the number of rows.
    groups: dict[tuple[str, ...], set[Pattern]] = {}
    for excluded in map(pattern_of, matrix.exclude):
        groups.setdefault(excluded[0], set()).add(excluded)
    for values in itertools.product(*matrix.axes.values()):
        row = full(dict(zip(matrix.axes, values, strict=True)))
        hits = {(names, tuple(row[name] for name in names)) for names in groups}
        hits = {hit for hit in hits if hit in groups[hit[0]]}
        if hits:
            effective |= hits
        else:
            kept.append(row)
    return kept, effective


def pattern_of(row: Row) -> Pattern:
    """The axes a row names and their values, in the order of `AXES`."""
    names = tuple(name for name in AXES if name in row)
    return names, tuple(row[name] for name in names)


def full(row: Row) -> Row:
    """`row` with the `unset` value of every axis it does not name, in the order of `AXES`."""
    return {name: row.get(name, axis.unset) for name, axis in AXES.items()}


def _product_size(matrix: Matrix) -> int:
    if not matrix.axes and matrix.include:
        return 0
    return math.prod(len(values) for values in matrix.axes.values())  # no axis: one cell, all as the nodes have it


def _once(rows: Iterable[Row]) -> list[Row]:
    """Of rows that make the same cell the first one."""
    unique: dict[Pattern, Row] = {}
    for row in rows:
        unique.setdefault(pattern_of(full(row)), row)
    return list(unique.values())


def _row(row: Mapping[str, Any]) -> Row:
    return {name: AXES[name].parse(name, value) for name, value in row.items()}
