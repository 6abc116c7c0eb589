"""What a scenario's shape cannot say: mistakes between its values, and between it and its rig.

Each check looks at the data as read and skips what the schema has refused already, so that a file with one wrong
value still gets every other mistake told.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from rigctl.base.units import format_bytes, format_duration
from rigctl.kinds import KINDS, MAX_DATAGRAM, OWN_AXES, TCP_AXES, Kind
from rigctl.records import Pair
from rigctl.rig.fields import FieldError
from rigctl.rig.inventory import Rig
from rigctl.scenario.axes import AXES, MIN_WINDOW
from rigctl.scenario.conditions import condition_mistakes
from rigctl.scenario.engine_mistakes import KEYS, engine_clashes
from rigctl.scenario.matrix import MAX_CELLS, SETTINGS, Matrix, Pattern, Row, as_list, count, full, pattern_of, product
from rigctl.scenario.meshes import PairSet
from rigctl.scenario.pairs import chosen, pair_mistakes
from rigctl.scenario.repeating import repeating_mistakes, search_mistakes
from rigctl.scenario.schema import MOST_BINS, parse_bins, parse_duration_field, parse_omit
from rigctl.scenario.spans import spread
from rigctl.yamlfile import Document, Mistake, Path, suggestion
from rigctl.yamlfile.mistakes import MOST_FOUND

_T = TypeVar("_T")
_HINTS: Final = {
    "rate": ". The others send as fast as they can",
    "iterations": ". To measure more often use repeat",
}
"""What to do instead of setting an axis that a test does not take."""


def mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """Every mistake but those of the shape and of the matrix as a whole. Without a rig its nodes are not asked for."""
    yield from islice(pair_mistakes(document, rig), MOST_FOUND)
    yield from time_mistakes(document)
    yield from repeating_mistakes(document)
    yield from islice(axis_mistakes(document), MOST_FOUND)
    yield from islice(condition_mistakes(document, rig), MOST_FOUND)


def cell_mistakes(
    document: Document, tests: Sequence[tuple[Row, PairSet]], options: Mapping[str, str]
) -> Iterator[Mistake]:
    """Settings of a cell that do not go together, each kind told once, with the first test it is in.

    `options` maps an axis to the option that set it, which is named in place of the file.
    """
    yield from _capture_mistakes(document, len(tests))
    yield from search_mistakes(document, [row for row, _ in tests])
    told: set[str] = set()
    conditions = document.data.get("conditions") or {}
    for number, (row, pairs) in enumerate(tests, 1):
        clashes = (
            *_row_clashes(row, pairs, list(conditions)),
            *_kind_clashes(row, KINDS[document.data.get("test", "tcp")]),
            *_bin_clashes(row, pairs, document),
            *engine_clashes(number, row, document.data),
        )
        for name, what in clashes:
            if (kind := what.partition(":")[0]) not in told:
                told.add(kind)
                path = ("matrix", name) if name in (document.data.get("matrix") or {}) else ("include",)
                path = (name,) if name in KEYS or (name in SETTINGS and name in document.data) else path
                mistaken = f"{what} (test {number})."
                yield Mistake(options[name], mistaken) if name in options else document.mistake(path, mistaken)


def set_mistakes(document: Document, matrix: Matrix, sets: int, options: Mapping[str, str]) -> Iterator[Mistake]:
    """Of a mesh or star, `sets` of pairs: too many tests, and the axis that takes some pairs of a list."""
    cells = count(matrix) * sets
    if cells > MAX_CELLS:
        what = f"pairs: {sets:,} sets of pairs make {cells:,} tests: at most {MAX_CELLS:,}. Name fewer nodes."
        yield document.mistake(("pairs",), what)
    paths: list[Path] = [("matrix", "pairs")] if "pairs" in matrix.axes else []
    paths += [("include", number, "pairs") for number, row in enumerate(matrix.include) if "pairs" in row]
    if sets > 1 and paths:
        what = "pairs: each test of a mesh or star has its own pairs. Leave this axis out."
        yield Mistake(options["pairs"], what) if "pairs" in options else document.mistake(paths[0], what)


def _capture_mistakes(document: Document, cells: int) -> Iterator[Mistake]:
    asked = document.data.get("capture")
    for number in asked if isinstance(asked, list) else []:
        if isinstance(number, int) and number > cells:
            what = f"capture: there is no test {number}; the scenario has {cells}."
            yield document.mistake(("capture",), what)


def _row_clashes(row: Row, pairs: tuple[Pair, ...], conditions: Sequence[str]) -> Iterator[tuple[str, str]]:
    total, parallel = row["window_total"], row["parallel"]
    if total is not None and row["window"] is not None:
        yield "window_total", "window_total: window is set too. A window is each flow's own, or shared: choose one"
    if isinstance(total, int) and isinstance(parallel, int) and total // parallel < MIN_WINDOW:
        share = f"{total} bytes over {parallel} flows are {total // parallel} each"
        yield "window_total", f"window_total: {share}; a window is {MIN_WINDOW} at least"
    if row["condition"] is not None and row["condition"] not in conditions:
        hint = suggestion(str(row["condition"]), list(conditions))
        yield "condition", f'condition: there is no condition "{row["condition"]}".{hint}'.removesuffix(".")
    try:
        chosen(pairs, row["pairs"])
    except FieldError as error:
        yield "pairs", f"pairs: {error}"


def _kind_clashes(row: Row, kind: Kind) -> Iterator[tuple[str, str]]:
    """Axes that the test lacks, sizes that it cannot have, and axes that are another test's."""
    datagrams = "udp" in (kind.transport, row["transport"])
    for name in sorted(kind.needs):
        if row[name] is None:
            examples = " or ".join(f"{name}: {example}" for example in AXES[name].schema["examples"])
            yield name, f"{name}: test: {kind.name} needs one, as in {examples}"
    if datagrams:
        yield from _datagram_clashes(row, kind)
    elif isinstance(row["size"], int) and "size" in kind.axes and row["size"] > kind.sizes[1]:
        yield "size", f"size: {row['size']} bytes are more than the {format_bytes(kind.sizes[1])} of a message"
    for name in sorted(OWN_AXES - kind.axes):
        if row[name] != AXES[name].unset:
            takers = _listed(other.name for other in KINDS.values() if name in other.axes)
            yield name, f"{name}: only for test: {takers}{_HINTS.get(name, '')}"


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _bin_clashes(row: Row, pairs: tuple[Pair, ...], document: Document) -> Iterator[tuple[str, str]]:
    """Bins of messages, or too many of them."""
    bins_s = _parsed(parse_bins, "bins", document.data.get("bins"))
    duration_s = _parsed(parse_duration_field, "duration", document.data.get("duration", "10s"))
    if bins_s is None or duration_s is None:
        return
    if not KINDS[document.data.get("test", "tcp")].bins:
        yield "bins", f"bins: only for test: {_listed(kind.name for kind in KINDS.values() if kind.bins)}"
    flows = len(pairs) * (row["parallel"] if isinstance(row["parallel"], int) else 1)
    if duration_s / bins_s * flows > MOST_BINS:
        count = f"{round(duration_s / bins_s * flows):,} bins over all flows"
        yield "bins", f"bins: {count}; at most {MOST_BINS:,}. Make them wider, or the test shorter"


def _datagram_clashes(row: Row, kind: Kind) -> Iterator[tuple[str, str]]:
    """Sizes that a datagram cannot have, and settings that only TCP has."""
    least, size = kind.sizes[0], row["size"]
    if isinstance(size, int) and not least <= size <= MAX_DATAGRAM:
        yield "size", f"size: {size} bytes are not the payload of a datagram, which has {least} to {MAX_DATAGRAM}"
    for name in sorted(TCP_AXES):
        if row[name] is not None:
            yield name, f"{name}: only for TCP; this test sends datagrams"


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
        if name in SETTINGS and name in document.data:
            there = document.keys.get((name,))
            line = f", in line {there.line}" if there is not None else ""
            yield document.mistake(path, f"{name}: is given for all tests, too{line}. Keep one of them.", at_key=True)
        if values == []:
            yield document.mistake(path, f"{name}: an empty axis. Give it at least one value, or leave it out.")
        yield from _twice(document, name, values)
    for key in ("exclude", "include"):
        rows = document.data.get(key)
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            if row == {}:
                yield document.mistake((key, index), f"{key}: a row that names no axis. Name one, as in window: 64K.")


def _twice(document: Document, name: str, values: object) -> Iterator[Mistake]:
    """Entries of an axis that name a value once more: once per entry, which may be a range."""
    seen: dict[Any, Any] = {}
    for index, given in enumerate(as_list(values)):
        try:
            parsed = [AXES[name].parse(name, value) for value in spread(name, given)]
        except ValueError:
            continue  # the schema has told
        again = [value for value in parsed if value in seen]  # None is a value, too: that of default
        if again:
            first = seen[again[0]]
            known = f'{AXES[name].text(again[0])}, there as "{first}" already'
            twice = f'"{given}": is given twice, first as "{first}"'
            what = twice if len(parsed) == 1 else f'"{given}": contains {known}'
            yield document.mistake(("matrix", name, index), f"{name} {what}. To measure more often use repeat.")
        seen.update(dict.fromkeys((value for value in parsed if value not in seen), given))


def matrix_mistakes(document: Document, matrix: Matrix, *, overridden: bool) -> Iterator[Mistake]:
    """Too many cells (told by counting), rows without effect, nothing left. For a matrix whose values are right.

    With axes replaced on the command line (`overridden`) a row may lose its effect without anyone's mistake.
    """
    cells = count(matrix)
    if cells > MAX_CELLS:
        path = ("matrix",) if "matrix" in document.data else ("include",)
        what = f"the matrix has {cells:,} tests: at most {MAX_CELLS:,}. Give its axes fewer values."
        yield document.mistake(path, what, at_key=True)
        return
    left, effective = product(matrix)
    if not overridden:
        yield from islice(_row_mistakes(document, matrix, left, effective), MOST_FOUND)
    if not left and not matrix.include:
        what = "exclude: drops every test of the matrix. Nothing is left to measure."
        yield document.mistake(("exclude",), what, at_key=True)


def _row_mistakes(document: Document, matrix: Matrix, left: list[Row], effective: set[Pattern]) -> Iterator[Mistake]:
    for index, row in enumerate(matrix.exclude):
        if row and pattern_of(row) not in effective:
            yield document.mistake(("exclude", index), "exclude: no test of the matrix has these values.")
    seen = {pattern_of(row): f"test {number} of the matrix" for number, row in enumerate(left, 1)}
    for index, row in enumerate(matrix.include):
        key = pattern_of(full(row))
        if key in seen:
            what = f"include: the same test as {seen[key]}. To measure more often use repeat."
            yield document.mistake(("include", index), what)
        seen.setdefault(key, f"row {index + 1} of include")


def _parsed(parse: Callable[[str, object], _T], name: str, value: object) -> _T | None:
    try:
        return parse(name, value)
    except ValueError:
        return None
