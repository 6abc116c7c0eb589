"""Expand a matrix to tests: the product of its axes, first axis slowest, without `exclude`; then `include`."""

import itertools
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, TypeAlias

from rigctl.base.units import parse_bytes
from rigctl.settings import CONDITION, PAIRS, SETTINGS, Setting, Settings
from rigctl.yamlfile import FieldError
from rigctl.yamlfile.fields import as_list, entry_errors, show_value

MAX_CELLS: Final = 100_000
MAX_VALUES: Final = 10_000
AT_TOP: Final = tuple(name for name in SETTINGS if name != PAIRS.name)
"""Settings that a scenario may set for all tests by a key at its top; there the key `pairs` is the list of pairs."""
RowValues: TypeAlias = Mapping[Setting[Any], Any]  # the settings of a row of `exclude` or `include`, with their values
Pattern: TypeAlias = tuple[tuple[Setting[Any], ...], tuple[Any, ...]]
_DASHED: Final = re.compile(r"\s*([0-9]+[kKmM]?)\s*[-–]\s*([0-9]+[kKmM]?)\s*")
_SPAN: Final = re.compile(r"\s*(?P<low>[^\s.]+)\s*\.\.\s*(?P<high>[^\s.]+)(?:\s+(?P<how>step|times)\s+(?P<by>\S+))?\s*")


@dataclass(frozen=True, slots=True)
class AxisMatrix:
    """The axes (settings with their values) of a matrix, and its rows. A setting that a row does not name is unset."""

    axes: Mapping[Setting[Any], Sequence[Any]] = field(default_factory=dict)
    exclude: Sequence[RowValues] = ()
    include: Sequence[RowValues] = ()


def with_settings(matrix: AxisMatrix, settings: RowValues) -> AxisMatrix:
    """Return `matrix` with settings for all tests; values of an axis or a row take precedence."""
    include = [{**settings, **row} for row in matrix.include]
    for_all = {} if include and not matrix.axes else {setting: [value] for setting, value in settings.items()}
    return replace(matrix, axes={**for_all, **matrix.axes}, include=include)


def with_conditions(matrix: AxisMatrix, names: Iterable[str]) -> AxisMatrix:
    """Return `matrix` with the axis condition as the first. If `matrix` lacks this axis, its values are `names`."""
    chosen = matrix.axes.get(CONDITION, tuple(names))
    if not chosen:
        return matrix
    include = [
        {CONDITION: name, **row} for row in matrix.include for name in (chosen if CONDITION not in row else [None])
    ]
    if not matrix.axes and matrix.include:
        return replace(matrix, include=include)
    others = {setting: values for setting, values in matrix.axes.items() if setting is not CONDITION}
    return replace(matrix, axes={CONDITION: chosen, **others}, include=include)


def with_axis(matrix: AxisMatrix, axis: Setting[Any], values: Sequence[Any]) -> AxisMatrix:
    """Return `matrix` with `values` for `axis`: in the product, if it has axes, and in each row of `include`."""
    axes = {} if matrix.include and not matrix.axes else {**matrix.axes, axis: values}
    rows = [{**row, axis: value} for row in matrix.include for value in values]
    unique: dict[Settings, RowValues] = {}
    for changed in rows:
        unique.setdefault(Settings(changed), changed)
    return replace(matrix, axes=axes, include=list(unique.values()))


def count_tests(matrix: AxisMatrix) -> int:
    """Return the number of tests before `exclude`, computed without expanding the matrix."""
    return _product_size(matrix) + len(matrix.include)


def expand_matrix(matrix: AxisMatrix) -> list[Settings]:
    """Return all tests without duplicates, grouped by condition. Callers must limit `count_tests` before."""
    rows = list(dict.fromkeys([*expand_product(matrix)[0], *map(Settings, matrix.include)]))
    order = {name: at for at, name in enumerate(dict.fromkeys(row[CONDITION] for row in rows))}
    return sorted(rows, key=lambda row: order[row[CONDITION]])


def expand_product(matrix: AxisMatrix) -> tuple[list[Settings], set[Pattern]]:
    """Return the tests of the product that no row of `exclude` drops, and the rows (`pattern_of`) that drop some."""
    kept: list[Settings] = []
    effective: set[Pattern] = set()
    if not _product_size(matrix):
        return kept, effective
    # Rows that name the same settings need one look-up for each test, however many rows there are.
    groups: dict[tuple[Setting[Any], ...], set[Pattern]] = {}
    for excluded in map(pattern_of, matrix.exclude):
        groups.setdefault(excluded[0], set()).add(excluded)
    for values in itertools.product(*matrix.axes.values()):
        row = Settings(zip(matrix.axes, values, strict=True))
        hits = {(axes, tuple(row[axis] for axis in axes)) for axes in groups}
        hits = {hit for hit in hits if hit in groups[hit[0]]}
        if hits:
            effective |= hits
        else:
            kept.append(row)
    return kept, effective


def pattern_of(row: RowValues) -> Pattern:
    """Return the settings of a row and their values, in the order of `SETTINGS`."""
    axes = tuple(setting for setting in SETTINGS.values() if setting in row)
    return axes, tuple(row[axis] for axis in axes)


def _product_size(matrix: AxisMatrix) -> int:
    # Without axes and rows, there is one test with all settings unset.
    return 0 if not matrix.axes and matrix.include else math.prod(map(len, matrix.axes.values()))


def parse_axis(axis: Setting[Any], value: object) -> tuple[Any, ...]:
    """Return the values of an axis, given as one entry or a list. Raise `ValueError` with all mistakes."""
    entries, many = as_list(value), 0
    if not entries:
        raise FieldError(f"{axis.name}: an empty axis. Give it at least one value, or leave it out")
    first: dict[Any, Any] = {}  # maps each value to the entry that has it
    wrong: dict[int, ValueError] = {}
    for at, entry in enumerate(entries):
        try:
            spread = expand_range(axis, entry)
            many += len(spread)
            if many > max(MAX_VALUES, len(entries)):  # a list without ranges is limited by `count_tests` later
                break
            values = [axis.parse(axis.name, one) for one in spread]
        except ValueError as error:
            wrong[at] = error
            continue
        again = [one for one in values if one in first]  # a value may be None, for `default`
        if again:
            known = f'contains {axis.text(again[0])}, there as "{first[again[0]]}" already'
            what = f'is given twice, first as "{first[again[0]]}"' if len(values) == 1 else known
            wrong[at] = FieldError(f'{axis.name} "{entry}": {what}. To measure more often use repeat')
        first |= {one: entry for one in values if one not in first}
    if many > max(MAX_VALUES, len(entries)):
        raise FieldError(f"{axis.name}: more than {MAX_VALUES:,} values")
    if wrong:
        raise entry_errors(wrong)
    return tuple(first)


def expand_range(axis: Setting[Any], value: object) -> list[Any]:
    """Return the values of an entry of an axis, which may be a range. Raise `FieldError` if the range is invalid.

    A range is `1..12`, `1..9 step 2` or `32K..256K times 2`, with both ends included.
    """
    if not isinstance(value, str) or axis.spans is None:
        return [value]
    name, sizes = axis.name, axis.spans == "sizes"
    dashed = _DASHED.fullmatch(value)
    if dashed is not None:
        raise FieldError(
            f"{name} {show_value(value)}: a range is written {dashed[1]}..{dashed[2]}{' times 2' if sizes else ''}"
        )
    if ".." not in value:
        return [value]
    match = _SPAN.fullmatch(value)
    if match is None:
        example = "32K..256K times 2" if sizes else "1..12 or 1..9 step 2"
        raise FieldError(f"{name} {show_value(value)}: expected a range as in {example}")

    def number(text: str, *, size: bool = sizes) -> int:
        try:
            return parse_bytes(text) if size else int(text)
        except (ValueError, OverflowError):
            raise FieldError(f"{name} {show_value(value)}: {show_value(text)} is not a number") from None

    low, high, multiply = number(match["low"]), number(match["high"]), match["how"] == "times"
    by = 1 if match["by"] is None else number(match["by"], size=sizes and not multiply)
    if low > high:
        raise FieldError(f"{name} {show_value(value)}: runs backwards. Write {match['high']}..{match['low']}")
    if by < 1 or (multiply and (by < 2 or low < 1)):
        raise FieldError(f"{name} {show_value(value)}: never reaches its end. Use step 1 or more, times 2 or more")
    if match["how"] is None and sizes and high > low:
        raise FieldError(f"{name} {show_value(value)}: needs a step, as in {value.strip()} times 2")
    values = itertools.accumulate(itertools.repeat(by), operator.mul if multiply else operator.add, initial=low)
    return list(islice(itertools.takewhile(high.__ge__, values), MAX_VALUES + 1))
