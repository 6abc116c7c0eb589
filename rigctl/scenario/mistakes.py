"""Mistakes between the values of a scenario, and between a scenario and its rig, which its schema cannot find.

Each check looks at the data as read and skips what the schema has refused. So a file with one wrong value still gets
every other mistake reported.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from rigctl.base.units import format_bytes, format_duration
from rigctl.conditions.condition import condition_mistakes
from rigctl.model.frames import Packet
from rigctl.records import Cell, Condition, Pair
from rigctl.rig.inventory import Rig
from rigctl.scenario.classes import Test, class_clashes, place_of, setting_mistake
from rigctl.scenario.matrix import AT_TOP, MAX_CELLS, Matrix, Pattern, as_list, count, pattern_of, product, spread
from rigctl.scenario.pairs import chosen, pair_mistakes
from rigctl.scenario.schema import MOST_BINS, parse_bins, parse_duration_field, parse_omit
from rigctl.settings import (
    CONDITION,
    ENGINE,
    MAX_RATE,
    MPTCP,
    PAIRS,
    PARALLEL,
    RATE,
    SETTINGS,
    SIZE,
    TRANSPORT,
    WINDOW,
    WINDOW_TOTAL,
    ZEROCOPY,
    Setting,
    Settings,
)
from rigctl.settings.kinds import KINDS, LIMITS, MAX_DATAGRAM, Kind
from rigctl.settings.sockets import CONNECTIONS, MIN_WINDOW
from rigctl.yamlfile import MOST_FOUND, Document, FieldError, Mistake, Path, suggestion

_T = TypeVar("_T")
_BY_NAME: Final = sorted(SETTINGS.values(), key=lambda setting: setting.name)
_LONGEST_S: Final = 86400
"""Upper bound of iperf3 -t, which takes whole seconds."""


def mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """Yield every mistake but those of the schema and of the matrix as a whole. Without a rig no node is checked."""
    yield from islice(pair_mistakes(document, rig), MOST_FOUND)
    yield from _time_mistakes(document)
    yield from _repeating_mistakes(document)
    yield from islice(_axis_mistakes(document), MOST_FOUND)
    yield from islice(condition_mistakes(document, rig), MOST_FOUND)


def cell_mistakes(document: Document, tests: Sequence[Test], options: Mapping[Setting[Any], str]) -> Iterator[Mistake]:
    """Yield settings of a test that conflict: each conflict once, with the first test that has it.

    `options` maps an axis to the option that set it. A mistake then names the option in place of the file.
    """
    yield from _capture_mistakes(document, len(tests))
    yield from _search_mistakes(document, [test.row for test in tests])
    reported: set[tuple[str, tuple[str, ...] | None]] = set()
    conditions = document.data.get("conditions") or {}
    for number, test in enumerate(tests, 1):
        row, kind = test.row, test.kind
        clashes = (
            *class_clashes(test, tests[(test.group or number) - 1], _resizes(conditions, row)),
            *_row_clashes(row, test.pairs, list(conditions)),
            *_kind_clashes(row, kind),
            *_bin_clashes(test, document),
            *_engine_clashes(number, row, kind, document.data),
        )
        for name, what in clashes:
            own = place_of(document, test, name) if name in SETTINGS else None
            if (about := (what.partition(":")[0], own)) in reported:
                continue
            reported.add(about)
            sentence = f"{what} (test {number})."
            if own is None and name in SETTINGS:
                yield setting_mistake(document, SETTINGS[name], sentence, options)
            else:
                yield document.mistake(own or (name,), sentence)


def _resizes(conditions: Mapping[str, Any], row: Settings) -> bool:
    return bool((conditions.get(row[CONDITION] or "") or {}).get("resize"))


def set_mistakes(
    document: Document, matrix: Matrix, sets: int, options: Mapping[Setting[Any], str]
) -> Iterator[Mistake]:
    """Yield the mistakes of a mesh or star: too many tests, and a setting that takes some pairs of a list."""
    cells = count(matrix) * sets
    if cells > MAX_CELLS:
        what = f"pairs: {sets:,} sets of pairs make {cells:,} tests: at most {MAX_CELLS:,}. Name fewer nodes."
        yield document.mistake(("pairs",), what)
    paths: list[Path] = [("matrix", "pairs")] if PAIRS in matrix.axes else []
    paths += [("include", number, "pairs") for number, row in enumerate(matrix.include) if PAIRS in row]
    if sets > 1 and paths:
        what = "pairs: each test of a mesh or star has its own pairs. Leave this axis out."
        yield Mistake(options[PAIRS], what) if PAIRS in options else document.mistake(paths[0], what)


def fitting_bytes(rig: Rig, pairs: Sequence[Pair], condition: Condition | None) -> int | None:
    """Return the payload of the largest datagram that no pair has to cut up; None if the rig file lacks an MTU."""
    given = condition.mtu if condition is not None else None
    mtus = [given or rig.nodes[node].link.mtu for pair in pairs for node in (pair.source, pair.destination)]
    known = [mtu for mtu in mtus if mtu is not None]
    if not known or len(known) < len(mtus):
        return None
    return Packet("udp", rig.ip_version).largest_payload(min(known))


def datagram_mistakes(document: Document, tests: Sequence[Test], rig: Rig) -> Iterator[Mistake]:
    """Yield datagrams without a size if the rig file lacks the MTU of a link."""
    unsized = [test for test in tests if test.kind.counts == "datagrams" and test.row[SIZE] is None]
    for test in {test.traffic_class: test for test in reversed(unsized)}.values():
        if any(fitting_bytes(rig, pairs, None) is None for pairs in {other.pairs for other in unsized}):
            what = "needs the size of its datagrams, as in size: 1472: the rig file lacks an MTU."
            path = ("test",) if test.traffic_class is None else ("classes", test.traffic_class)
            yield document.mistake(path, f"test: {test.kind.name} {what}")


def port_mistakes(cells: Iterable[Cell], rig: Rig) -> Iterator[Mistake]:
    """Yield nodes whose `data_ports` are fewer than the streams and probes that a test sends to them at once."""
    ends: dict[int, Counter[str]] = {}  # by the number of the first cell that is measured together with it
    for cell in cells:
        each = 1 if cell.latency_ms is None else 2
        ends.setdefault(cell.first, Counter()).update(
            {node: each * count for node, count in Counter(stream.receiver for stream in cell.streams).items()}
        )
    for name, node in rig.nodes.items():
        number, needed = max(((number, own[name]) for number, own in ends.items()), key=lambda one: one[1])
        if node.data_ports is not None and (has := node.data_ports[1] - node.data_ports[0] + 1) < needed:
            given = f"{node.data_ports[0]}-{node.data_ports[1]} has {has} port{'s' * (has > 1)}"
            what = (
                f"data_ports: {given}; test {number} needs {needed} at once, one per stream and probe that ends there"
            )
            yield Mistake(f"{rig.source}: nodes.{name}", f"{what}. Give it more.")


def _capture_mistakes(document: Document, cells: int) -> Iterator[Mistake]:
    asked = document.data.get("capture")
    for number in asked if isinstance(asked, list) else []:
        if isinstance(number, int) and number > cells:
            what = f"capture: there is no test {number}; the scenario has {cells}."
            yield document.mistake(("capture",), what)


def _row_clashes(row: Settings, pairs: tuple[Pair, ...], conditions: Sequence[str]) -> Iterator[tuple[str, str]]:
    total, parallel = row[WINDOW_TOTAL], row[PARALLEL]
    if total is not None and row[WINDOW] is not None:
        yield "window_total", "window_total: window is set too. A window is each flow's own, or shared: choose one"
    if total is not None and total // parallel < MIN_WINDOW:
        share = f"{total} bytes over {parallel} flows are {total // parallel} each"
        yield "window_total", f"window_total: {share}; a window is {MIN_WINDOW} at least"
    condition = row[CONDITION]
    if condition is not None and condition not in conditions:
        hint = suggestion(condition, list(conditions))
        yield "condition", f'condition: there is no condition "{condition}".{hint}'.removesuffix(".")
    try:
        chosen(pairs, row[PAIRS])
    except FieldError as error:
        yield "pairs", f"pairs: {error}"


def _kind_clashes(row: Settings, kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield settings that a kind of test lacks, sizes that it cannot have, and settings of other kinds."""
    for setting in _BY_NAME:
        if kind in setting.needed_by and row[setting] is None:
            examples = " or ".join(f"{setting.name}: {example}" for example in setting.schema["examples"])
            yield setting.name, f"{setting.name}: test: {kind.name} needs one, as in {examples}"
    size = row[SIZE]
    if "udp" in (kind.transport, row[TRANSPORT]):
        least = kind.sizes[0]
        if size is not None and not least <= size <= MAX_DATAGRAM:
            yield "size", f"size: {size} bytes are not the payload of a datagram, which has {least} to {MAX_DATAGRAM}"
        for setting in _BY_NAME:
            if setting.kinds == CONNECTIONS and row[setting] is not None:
                yield setting.name, f"{setting.name}: only for TCP; this test sends datagrams"
    elif size is not None and SIZE.takes(kind) and size > kind.sizes[1]:
        yield "size", f"size: {size} bytes are more than the {format_bytes(kind.sizes[1])} of a message"
    apart: tuple[Setting[Any], ...] = (RATE, ZEROCOPY)
    for other in apart if MPTCP.takes(kind) and row[MPTCP] else ():
        if row[other]:
            yield "mptcp", f"mptcp: {other.name} is set too. Linux has none for Multipath TCP: leave one of them out"
    for setting in _BY_NAME:
        if not setting.takes(kind) and row[setting] != setting.unset:
            takers = _listed(other.name for other in KINDS.values() if setting.takes(other))
            yield setting.name, f"{setting.name}: only for test: {takers}{setting.hint}"
        elif setting.refused is not None and (why := setting.refused(row[setting], kind)) is not None:
            yield setting.name, f"{setting.name}: {why}"


def _engine_clashes(number: int, row: Settings, kind: Kind, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    engine = row[ENGINE]
    limits = LIMITS[engine]
    if limits is None:
        return
    if kind not in limits.kinds:
        takers = " and ".join(sorted(taken.name for taken in limits.kinds))
        yield "engine", f"engine: {engine} can run test: {takers}, not {kind.name}"
        return
    for setting in _BY_NAME:
        if engine not in setting.engines and row[setting] != setting.unset:
            yield setting.name, f"{setting.name}: engine: {engine} has no such setting"
    duration_s = _parsed(parse_duration_field, "duration", data.get("duration", "10s"))
    if duration_s is not None and (duration_s != int(duration_s) or duration_s > _LONGEST_S):
        yield "duration", f"duration: engine: {engine} measures whole seconds, 1s to {_LONGEST_S}s"
    for key, why in limits.keys.items():
        asked = data.get(key)
        if asked is not None and asked is not False and not (isinstance(asked, list) and number not in asked):
            yield key, f"{key}: not with engine: {engine}, {why}"


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _bin_clashes(test: Test, document: Document) -> Iterator[tuple[str, str]]:
    bins_s = _parsed(parse_bins, "bins", document.data.get("bins"))
    duration_s = _parsed(parse_duration_field, "duration", document.data.get("duration", "10s"))
    if bins_s is None or duration_s is None:
        return
    if not test.kind.bins:
        yield "bins", f"bins: only for test: {_listed(kind.name for kind in KINDS.values() if kind.bins)}"
    flows = len(test.pairs) * test.row[PARALLEL]
    if duration_s / bins_s * flows > MOST_BINS:
        count = f"{round(duration_s / bins_s * flows):,} bins over all flows"
        yield "bins", f"bins: {count}; at most {MOST_BINS:,}. Make them wider, or the test shorter"


def _time_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield an `omit` that is as long as the duration."""
    data = document.data
    duration_s = _parsed(parse_duration_field, "duration", data.get("duration", "10s"))
    omit_s = _parsed(parse_omit, "omit", data.get("omit", 0))
    if duration_s is None or omit_s is None or omit_s < duration_s:
        return
    at = ("duration",) if ("duration",) in document.origins else ("omit",)
    what = f"omit is {format_duration(omit_s)}: it must be shorter than the duration, {format_duration(duration_s)}."
    yield document.mistake(at, what)


def _axis_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield axes without a value, values that are given twice, and rows without a setting."""
    matrix = document.data.get("matrix")
    for name, values in (matrix if isinstance(matrix, dict) else {}).items():
        if name not in SETTINGS:
            continue
        path = ("matrix", name)
        if name in AT_TOP and name in document.data:
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
    """Yield the entries of an axis, values or ranges, that repeat a value."""
    axis, seen = SETTINGS[name], dict[Any, Any]()
    for index, given in enumerate(as_list(values)):
        try:
            parsed = [axis.parse(name, value) for value in spread(axis, [given])]
        except ValueError:
            continue  # reported by the schema
        again = [value for value in parsed if value in seen]  # None is the value of `default`
        if again:
            first = seen[again[0]]
            known = f'{axis.text(again[0])}, there as "{first}" already'
            twice = f'"{given}": is given twice, first as "{first}"'
            what = twice if len(parsed) == 1 else f'"{given}": contains {known}'
            yield document.mistake(("matrix", name, index), f"{name} {what}. To measure more often use repeat.")
        seen.update(dict.fromkeys((value for value in parsed if value not in seen), given))


def matrix_mistakes(document: Document, matrix: Matrix, *, overridden: bool) -> Iterator[Mistake]:
    """Yield too many tests, rows without effect, and an `exclude` that drops every test.

    `overridden`: the command line replaced axes, so a row may have lost its effect. That is no mistake.
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


def _row_mistakes(
    document: Document, matrix: Matrix, left: list[Settings], effective: set[Pattern]
) -> Iterator[Mistake]:
    for index, row in enumerate(matrix.exclude):
        if row and pattern_of(row) not in effective:
            yield document.mistake(("exclude", index), "exclude: no test of the matrix has these values.")
    seen = {row: f"test {number} of the matrix" for number, row in enumerate(left, 1)}
    for index, row in enumerate(matrix.include):
        key = Settings(row)
        if key in seen:
            what = f"include: the same test as {seen[key]}. To measure more often use repeat."
            yield document.mistake(("include", index), what)
        seen.setdefault(key, f"row {index + 1} of include")


def _search_mistakes(document: Document, rows: Sequence[Settings]) -> Iterator[Mistake]:
    """Yield repetitions given beside a search for the highest rate, which repeats its trials by itself."""
    if not any(row[RATE] == MAX_RATE for row in rows):
        return
    for key in ("retest", "until", "repeat"):
        if str(document.data.get(key)).strip() not in ("None", "1"):
            yield document.mistake((key,), f"{key}: rate: max is searched once, trial by trial.", at_key=True)


def _repeating_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield `retest` given together with `until`, and either of them with `repeat: 1`."""
    given = [key for key in ("retest", "until") if document.data.get(key) is not None]
    if len(given) > 1:
        yield document.mistake(("until",), "until: retest is given too. Choose one of them.", at_key=True)
    # With --repeat 1 nobody asks for it any more.
    once = str(document.data.get("repeat")).strip() == "1" and ("repeat",) not in document.origins
    for key in given:
        if once:
            what = f"{key}: a variation needs two repetitions. Give repeat: 2 or more."
            yield document.mistake((key,), what, at_key=True)


def _parsed(parse: Callable[[str, object], _T], name: str, value: object) -> _T | None:
    try:
        return parse(name, value)
    except ValueError:
        return None
