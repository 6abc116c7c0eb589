"""Find conflicts between keys of a scenario, and with its rig. The schema has already checked each key alone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from rigctl.base.texts import either
from rigctl.base.units import format_bytes, format_duration
from rigctl.base.values import least_of_all
from rigctl.conditions.condition import condition_mistakes, condition_of
from rigctl.model.frames import Packet
from rigctl.model.trials import searched_setting
from rigctl.records import Cell, Condition, Pair
from rigctl.rig.inventory import Rig
from rigctl.scenario.classes import Test, class_clashes, place_of, setting_mistake
from rigctl.scenario.matrix import MAX_CELLS, AxisMatrix, Pattern, RowValues, count_tests, expand_product, pattern_of
from rigctl.scenario.pairs import choose_pairs, pair_mistakes
from rigctl.scenario.schema import MAX_DURATION_S, MOST_BINS, ScenarioKeys
from rigctl.settings import (
    CONDITION,
    ENGINE,
    GROUP,
    ITERATIONS,
    JOIN,
    LEAVE,
    MAX,
    MPTCP,
    PAIRS,
    PARALLEL,
    PER_SECOND,
    RATE,
    SETTINGS,
    SIZE,
    TRANSPORT,
    UNJOINED,
    WINDOW,
    WINDOW_TOTAL,
    ZEROCOPY,
    Setting,
    Settings,
)
from rigctl.settings.kinds import CAPABILITIES, KINDS, MAX_DATAGRAM, Kind
from rigctl.settings.sockets import CONNECTIONS, MIN_WINDOW
from rigctl.yamlfile import MOST_FOUND, FieldError, Mistake, Path, YamlDocument, suggestion

_BY_NAME: Final = sorted(SETTINGS.values(), key=lambda setting: setting.name)
_LEAST_OF_IPERF3: Final = 16
"""Least payload in bytes of a datagram of iperf3 (MIN_UDP_BLOCKSIZE)."""


def scenario_mistakes(document: YamlDocument, model: ScenarioKeys, rig: Rig) -> Iterator[Mistake]:
    """Yield all mistakes except those of the matrix and of its tests."""
    yield from islice(pair_mistakes(document, model.pairs, rig), MOST_FOUND)
    yield from _class_pair_mistakes(document, model, rig)
    yield from _time_mistakes(document, model)
    yield from _repeating_mistakes(document, model)
    axes: RowValues = model.matrix
    for setting in axes:
        if setting in model.settings:
            what = f"{setting.name}: is given for all tests, too, in line {document.keys[(setting.name,)].line}."
            yield document.mistake(("matrix", setting.name), f"{what} Keep one of them.", at_key=True)
    yield from islice(condition_mistakes(document, model.conditions, rig), MOST_FOUND)


def _class_pair_mistakes(document: YamlDocument, model: ScenarioKeys, rig: Rig) -> Iterator[Mistake]:
    """Yield mistakes in the pairs of classes. Pairs of the scenario may be missing if each class has its own."""
    own = {name: getattr(section, "pairs", ()) for name, section in model.classes.items()}
    for name, entries in own.items():
        yield from islice(pair_mistakes(document, entries, rig, ("classes", name, "pairs")), MOST_FOUND)
    if not model.pairs and not (own and all(own.values())):
        purpose = ScenarioKeys.model_fields["pairs"].description
        yield document.mistake((), f'"pairs" is missing. Expected: {purpose}', at_key=True)
    if model.pairs and own and all(own.values()):
        what = "pairs: unused, because each class has pairs of its own. Leave them out."
        yield document.mistake(("pairs",), what, at_key=True)


def cell_mistakes(
    document: YamlDocument, model: ScenarioKeys, matrix: AxisMatrix, tests: Sequence[Test]
) -> Iterator[Mistake]:
    """Yield mistakes for conflicting settings of tests: each conflict once, with its first test."""
    yield from _search_mistakes(document, model, tests)
    reported: set[tuple[str, tuple[str, ...] | None]] = set()
    resizing = {name for name, section in model.conditions.items() if condition_of(name, section).resize}
    numbered = {test.number: test for test in tests}
    for test in tests:
        row, kind = test.row, test.kind
        clashes = (
            *class_clashes(test, numbered[test.group or test.number], row[CONDITION] in resizing),
            *_row_clashes(row, test.pairs, list(model.conditions)),
            *_kind_clashes(row, kind),
            *_bin_clashes(test, model),
            *_schedule_clashes(test, model),
            *_multicast_clashes(test, model),
            *_engine_clashes(test.number, row, kind, model),
        )
        for name, what in clashes:
            own = place_of(document, matrix, test, SETTINGS[name]) if name in SETTINGS else None
            if (name, own) in reported:
                continue
            reported.add((name, own))
            sentence = f"{name}: {what} (test {test.number})."
            if own is None and name in SETTINGS:
                yield setting_mistake(document, SETTINGS[name], sentence)
            else:
                yield document.mistake(own or (name,), sentence)


def set_mistakes(document: YamlDocument, matrix: AxisMatrix, sets: int) -> Iterator[Mistake]:
    """Yield mistakes of a mesh or star: too many tests, or an axis `pairs`, which only a list of pairs can have."""
    cells = count_tests(matrix) * sets
    if cells > MAX_CELLS:
        what = f"pairs: {sets:,} sets of pairs make {cells:,} tests (at most {MAX_CELLS:,}). Name fewer nodes."
        yield document.mistake(("pairs",), what)
    paths: list[Path] = [("matrix", "pairs")] if document.has_key(("matrix", "pairs")) else []
    paths += [("include", number, "pairs") for number, row in enumerate(matrix.include) if PAIRS in row]
    if sets > 1 and paths:
        yield document.mistake(paths[0], "pairs: each test of a mesh or star has its own pairs. Leave this axis out.")


def fitting_bytes(rig: Rig, pairs: Sequence[Pair], condition: Condition | None) -> int | None:
    """Return the largest datagram payload in bytes that fits the MTU of all pairs; None if an MTU is unknown."""
    given = condition.mtu if condition is not None else None
    mtus = (given or rig.nodes[node].link.mtu for pair in pairs for node in (pair.source, pair.destination))
    mtu = least_of_all(mtus)
    return None if mtu is None else Packet("udp", rig.ip_version).largest_payload(mtu)


def datagram_mistakes(document: YamlDocument, tests: Sequence[Test], rig: Rig) -> Iterator[Mistake]:
    """Yield mistakes for tests without a size of datagrams if the rig file lacks an MTU to compute the size from."""
    unsized = [test for test in tests if test.kind.transport == "udp" and test.row[SIZE] is None]
    for test in {test.traffic_class: test for test in reversed(unsized)}.values():
        if any(fitting_bytes(rig, pairs, None) is None for pairs in {other.pairs for other in unsized}):
            what = "needs the size of its datagrams (as size: 1472), because the rig file has no MTU."
            path = ("test",) if test.traffic_class is None else ("classes", test.traffic_class)
            yield document.mistake(path, f"test: {test.kind.name} {what}")
    for test in tests:
        group = test.row[GROUP]
        if group is not None and rig.virtual is not None and (":" in group) != (rig.ip_version == 6):
            what = f"group {group}: the data addresses of rig {rig.name} are of IPv{rig.ip_version}. Give such a group."
            yield setting_mistake(document, GROUP, what)
            return


def receivers_at_once(cells: Iterable[Cell]) -> dict[str, tuple[int, int]]:
    """Map each node to the most streams and probes that it receives at once, and to the number of their test."""
    ends: dict[int, Counter[str]] = {}  # maps a test, or the first of simultaneous tests, to its receivers by node
    for cell in cells:
        receivers = [stream.receiver for stream in cell.streams]
        ends.setdefault(cell.first, Counter()).update(receivers if cell.latency_ms is None else receivers * 2)
    most: dict[str, tuple[int, int]] = {}
    for number, own in ends.items():
        for node, count in own.items():
            if count > most.get(node, (0, 0))[0]:
                most[node] = count, number
    return most


def port_mistakes(cells: Sequence[Cell], rig: Rig) -> Iterator[Mistake]:
    """Yield mistakes for nodes with fewer `data_ports` than streams and probes that a test sends to them at once."""
    receivers = receivers_at_once(cells)
    for name, node in rig.nodes.items():
        needed, number = receivers.get(name, (0, 0))
        if node.data_ports is not None and (has := node.data_ports[1] - node.data_ports[0] + 1) < needed:
            given = f"{node.data_ports[0]}-{node.data_ports[1]} has {has} port{'s' * (has > 1)}"
            what = f"data_ports: {given}; test {number} needs {needed} at once, one per stream and probe to this node"
            yield Mistake(f"{rig.source}: nodes.{name}", f"{what}. Give the node more ports.")


def capture_mistakes(document: YamlDocument, model: ScenarioKeys, cells: int) -> Iterator[Mistake]:
    """Yield a mistake for each number in `capture` that none of the run's tests has; `cells` is their count."""
    for number in model.capture if isinstance(model.capture, tuple) else ():
        if number > cells:
            yield document.mistake(("capture",), f"capture: there is no test {number}; the scenario has {cells}.")


def _row_clashes(row: Settings, pairs: tuple[Pair, ...], conditions: Sequence[str]) -> Iterator[tuple[str, str]]:
    total, parallel = row[WINDOW_TOTAL], row[PARALLEL]
    if total is not None and row[WINDOW] is not None:
        yield "window_total", "window is set too. Choose one: the window of each flow, or the sum of all flows"
    if total is not None and (share := total // parallel) < MIN_WINDOW:
        yield "window_total", f"{total} bytes over {parallel} flows are {share} each; a window is {MIN_WINDOW} at least"
    condition = row[CONDITION]
    if condition is not None and condition not in conditions:
        hint = suggestion(condition, list(conditions))
        yield "condition", f'there is no condition "{condition}".{hint}'.removesuffix(".")
    try:
        choose_pairs(pairs, row[PAIRS])
    except FieldError as error:
        yield "pairs", str(error)


def _kind_clashes(row: Settings, kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for missing settings, invalid sizes, and settings that this kind does not take."""
    for setting in _BY_NAME:
        if kind in setting.needed_by and row[setting] is None:
            examples = " or ".join(f"{setting.name}: {example}" for example in setting.schema["examples"])
            yield setting.name, f"test: {kind.name} needs one, as in {examples}"
    size = row[SIZE]
    if "udp" in (kind.transport, row[TRANSPORT]):
        least = kind.sizes[0]
        if size is not None and not least <= size <= MAX_DATAGRAM:
            yield "size", f"{size} bytes are not the payload of a datagram, which has {least} to {MAX_DATAGRAM}"
        for setting in _BY_NAME:
            if setting.kinds == CONNECTIONS and row[setting] is not None:
                yield setting.name, "only for TCP; this test sends datagrams"
    elif size is not None and SIZE.takes(kind) and size > kind.sizes[1]:
        yield "size", f"{size} bytes are too many; a message has at most {format_bytes(kind.sizes[1])}"
    apart: tuple[Setting[Any], ...] = (RATE, ZEROCOPY)
    for other in apart if MPTCP.takes(kind) and row[MPTCP] else ():
        if row[other]:
            yield "mptcp", f"{other.name} is set too, which Linux lacks for Multipath TCP. Leave one of them out"
    for setting in _BY_NAME:
        if not setting.takes(kind) and row[setting] != setting.unset:
            takers = either(other.name for other in KINDS.values() if setting.takes(other))
            yield setting.name, f"only for test: {takers}{setting.hint}"
        elif setting.refused is not None and (why := setting.refused(row[setting], kind)) is not None:
            yield setting.name, why


def _engine_clashes(number: int, row: Settings, kind: Kind, model: ScenarioKeys) -> Iterator[tuple[str, str]]:
    engine = row[ENGINE]
    limits = CAPABILITIES[engine]
    if limits is None:
        return
    if kind not in limits.kinds:
        takers = " and ".join(sorted(taken.name for taken in limits.kinds))
        yield "engine", f"{engine} can run test: {takers}, not {kind.name}"
        return
    for setting in _BY_NAME:
        if engine not in setting.engines and row[setting] != setting.unset:
            yield setting.name, f"engine: {engine} has no such setting"
    if (row[SIZE] or MAX_DATAGRAM) < _LEAST_OF_IPERF3:
        yield "size", f"engine: {engine} sends datagrams of {_LEAST_OF_IPERF3} bytes or more"
    if model.duration != int(model.duration):
        yield "duration", f"engine: {engine} measures whole seconds, 1s to {MAX_DURATION_S:.0f}s"
    for key, why in limits.keys.items():
        asked = getattr(model, key)
        if asked is not None and asked is not False and not (isinstance(asked, tuple) and number not in asked):
            yield key, f"not with engine: {engine}, {why}"


def _bin_clashes(test: Test, model: ScenarioKeys) -> Iterator[tuple[str, str]]:
    if model.bins is None:
        return
    if not test.kind.bins:
        yield "bins", f"only for test: {either(kind.name for kind in KINDS.values() if kind.bins)}"
    bins = model.duration / model.bins * len(test.pairs) * test.row[PARALLEL]
    if bins > MOST_BINS:
        yield ("bins", f"{bins:,.0f} bins over all flows; at most {MOST_BINS:,}. Make them wider, or the test shorter")


def _schedule_clashes(test: Test, model: ScenarioKeys) -> Iterator[tuple[str, str]]:
    """Yield (key, message) if the last of the requested requests would be due after the end of the test."""
    count, per_second = test.row[ITERATIONS], test.row[PER_SECOND]
    if not test.kind.scheduled or count is None or per_second is None:
        return
    if not isinstance(per_second, int):
        yield "iterations", "not with per_second: max, whose trials take the whole duration. Leave iterations out"
        return
    last_s = (count * test.row[PARALLEL] - 1) / per_second
    if last_s >= model.duration:
        due = f"at per_second: {per_second} the last of {count:,} requests of each flow is due after {last_s:,.6g} s"
        yield "iterations", f"{due}, and the test takes {model.duration:g} s. Give it longer, or request fewer"


def default_moments(row: Settings, duration_s: float) -> dict[Setting[Any], Any]:
    """Return when the receivers of a multicast test join and leave, in ms after the start and before the end."""
    join_ms, leave_ms = round(min(1000.0, 100 * duration_s)), round(min(3000.0, 300 * duration_s))
    return {
        JOIN: join_ms if row[JOIN] is None else row[JOIN],
        LEAVE: leave_ms if row[LEAVE] is None else row[LEAVE],
    }


def _multicast_clashes(test: Test, model: ScenarioKeys) -> Iterator[tuple[str, str]]:
    """Yield (key, message) if a multicast test has several sources, nobody who joins, or no time in between."""
    if not test.kind.multicast:
        return
    with suppress(FieldError):  # told by `_row_clashes`
        pairs = choose_pairs(test.pairs, test.row[PAIRS])
        sources = list(dict.fromkeys(pair.source for pair in pairs))
        if len(sources) > 1:
            yield (
                "pairs",
                f"test: multicast has one source, not {len(sources)}, as in {sources[0]} -> …, {sources[0]} -> …",
            )
        if (unjoined := test.row[UNJOINED] or 0) >= len(pairs):
            yield (
                "unjoined",
                f"{unjoined} of {len(pairs)} pairs do not join, so that no receiver is left. Name more pairs",
            )
    moments = default_moments(test.row, model.duration)
    if (moments[JOIN] + moments[LEAVE]) / 1e3 >= model.duration:
        name = "join" if test.row[JOIN] is not None else "leave"
        what = f"from join, {format_duration(moments[JOIN] / 1e3)}, to leave, {format_duration(moments[LEAVE] / 1e3)}"
        yield name, f"{what} before the end, no time is left of {format_duration(model.duration)}. Give it longer"


def _time_mistakes(document: YamlDocument, model: ScenarioKeys) -> Iterator[Mistake]:
    if model.omit >= model.duration:
        at = ("duration",) if ("duration",) in document.origins else ("omit",)
        shorter = f"expected less than the duration, {format_duration(model.duration)}."
        yield document.mistake(at, f"omit is {format_duration(model.omit)}: {shorter}")


def matrix_mistakes(document: YamlDocument, matrix: AxisMatrix, *, overridden: bool) -> Iterator[Mistake]:
    """Yield mistakes for too many or no tests and, unless options set axes (`overridden`), for rows that do nothing."""
    cells = count_tests(matrix)
    if cells > MAX_CELLS:
        path = ("matrix",) if document.has_key(("matrix",)) else ("include",)
        what = f"the matrix has {cells:,} tests (at most {MAX_CELLS:,}). Give its axes fewer values."
        yield document.mistake(path, what, at_key=True)
        return
    left, effective = expand_product(matrix)
    if not overridden:
        yield from islice(_row_mistakes(document, matrix, left, effective), MOST_FOUND)
    if not left and not matrix.include:
        what = "exclude: drops every test of the matrix. Nothing is left to measure."
        yield document.mistake(("exclude",), what, at_key=True)


def _row_mistakes(
    document: YamlDocument, matrix: AxisMatrix, left: list[Settings], effective: set[Pattern]
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


def _search_mistakes(document: YamlDocument, model: ScenarioKeys, tests: Sequence[Test]) -> Iterator[Mistake]:
    yield from _latency_mistakes(document, model, tests)
    searched = next(filter(None, (searched_setting(test.row) for test in tests)), None)
    if searched is None:
        return
    for key in ("retest", "until"):
        if getattr(model, key) is not None:
            what = f"{key}: not for {searched.setting.name}: max, which searches. Leave {key} out."
            yield document.mistake((key,), what, at_key=True)


def _latency_mistakes(document: YamlDocument, model: ScenarioKeys, tests: Sequence[Test]) -> Iterator[Mistake]:
    """Yield a mistake if `max_latency` is missing, or unused in the scenario as it is written, without options."""
    searching = any(test.row[PER_SECOND] == MAX for test in tests)
    if searching and model.max_latency is None:
        what = "per_second: max needs the longest time that requests may take (p99), as in max_latency: 2ms."
        yield setting_mistake(document, PER_SECOND, what)
    axes: RowValues = model.matrix
    rows: list[RowValues] = [model.settings, *model.include]
    written = MAX in axes.get(PER_SECOND, ()) or any(row.get(PER_SECOND) == MAX for row in rows)
    if model.max_latency is not None and not searching and not written:
        what = "max_latency: only for per_second: max, which searches the most requests per second. Leave it out."
        yield document.mistake(("max_latency",), what, at_key=True)


def _repeating_mistakes(document: YamlDocument, model: ScenarioKeys) -> Iterator[Mistake]:
    given = [key for key in ("retest", "until") if getattr(model, key) is not None]
    if len(given) > 1:
        yield document.mistake(("until",), "until: retest is given too. Choose one of them.", at_key=True)
    # With --repeat 1 on the command line, the user does not want retests.
    once = model.repeat == 1 and ("repeat",) not in document.origins
    for key in given if once else ():
        what = f"{key}: a variation needs two repetitions. Give repeat: 2 or more."
        yield document.mistake((key,), what, at_key=True)
