"""Show the tests of SCENARIO, the time they take and the ceiling of each.

Contacts no node. Takes the options of run.

Examples:
  rigctl plan gigablox --set window=64K,1M
  rigctl plan das2 --all
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal

import typer
from pydantic import BeforeValidator, Field

from rigctl.base.errors import InputError
from rigctl.base.units import format_duration
from rigctl.base.values import group_by
from rigctl.cli.options import Json, RunOptions, ScenarioArgument, take_options
from rigctl.cli.output import InMbps, Model, Variants, Versioned, at, plain_console, print_table, say
from rigctl.findings.text import UNKNOWN, numbers_text, plural, span
from rigctl.model.trials import searched_setting
from rigctl.records import Cell, Condition, RunPlan, have_roles, several_sets
from rigctl.rig.inventory import Rig
from rigctl.scenario.duration import PlannedTime, longest_s, most_s, planned_time
from rigctl.scenario.forecast import all_forecasts, constants, notes, sum_ceiling_bps, table_axes
from rigctl.scenario.load import Overrides, load_plan
from rigctl.settings import (
    CONDITION,
    DEFAULT,
    ITERATIONS,
    PAIRS,
    PARALLEL,
    SETTINGS,
    WINDOW,
    WINDOW_TOTAL,
    Setting,
)

_MOST_LISTED: Final = 3
"""An axis with more values than this is shown by its first and last value."""
_BEYOND_S: Final = 0.4
"""Seconds that a test takes beyond its duration, measured on the virtual rig; a small real rig takes less."""


def overrides_of(options: RunOptions) -> Overrides:
    return Overrides(
        options.rig,
        tuple(options.sets or ()),
        options.duration,
        options.repeat,
        tuple(options.rig_sets or ()),
        tuple(options.capture or ()),
        options.against,
    )


def print_plan(
    scenario: ScenarioArgument,
    options: RunOptions,
    every: Annotated[bool, typer.Option("--all", help="Show every test, a row each.")] = False,
    as_json: Json = False,
) -> None:
    """Print the plan of a scenario. Raises `InputError`."""
    run_plan, resolved = load_plan(scenario, overrides_of(options))
    earlier, message_s = _known_times(run_plan, options.store)
    time = planned_time(run_plan, message_s)
    if as_json:
        print(_json(run_plan, resolved, time))
        return
    for line in _head(run_plan, resolved):
        say(line)
    parts = {name: run_plan.of_part(name) for name in run_plan.parts} or {"": run_plan}
    varies = [_print_tests(name, own, every=every) for name, own in parts.items()]
    say(_time_line(run_plan, time, earlier))
    remarks = dict.fromkeys(remark for own in parts.values() for remark in notes(own, own.ip_version))
    for line in remarks if every else [remark for remark in remarks if not remark.startswith("The ceiling ")]:
        say(line)
    if any(varies) and not every:
        say("Every test, a row each: --all.")


def _print_tests(name: str, run_plan: RunPlan, *, every: bool) -> bool:
    """Print what a plan, or one part of it, measures; with `every` a row for each test. Tell whether tests differ."""
    axes = table_axes(run_plan)
    columns = columns_by_head(run_plan, axes)
    varied = {head: texts for head, texts in columns.items() if len(set(texts)) > 1}
    if name:
        say(f"Part {name}:")
    for line in _summary(run_plan, axes, columns):
        say(f"  {line}" if name else line)
    if every and varied:
        print_table(plain_console(), [*varied], [*zip(*varied.values(), strict=True)], spare=(_ON_WIRE, "Duration"))
    return bool(varied)


show_plan = take_options(RunOptions, "options")(print_plan)

_WHERE: Final = {
    None: "real hardware",
    "namespaces": "virtual, made on this machine",
    "loopback": "loopback, unshaped",
    "machines": "virtual, machines on this machine",
}
_ON_WIRE: Final = "Payload\non wire"
_PER_PAIR: Final = "Ceiling\nper pair\n[Mbit/s]"
_OF_SUM: Final = "Ceiling\nof sum\n[Mbit/s]"


def columns_by_head(run_plan: RunPlan, axes: Sequence[Setting[Any]]) -> dict[str, list[str]]:
    """Return the columns of the plan's table by heading: a list with one text for each test."""
    cells = run_plan.cells
    expected = all_forecasts(run_plan)
    asked = [(own, cell.direction) for own, cell in zip(expected, cells, strict=True)]
    sums = {each: _mbps(sum_ceiling_bps(*each, run_plan)) for each in dict.fromkeys(asked)}
    sets, roles = several_sets(cells), have_roles(cells)
    return {
        "Test": [str(cell.number) for cell in cells],
        "Class": [cell.traffic_class or UNKNOWN for cell in cells],
        **{axis.header: [_value(axis, cell) for cell in cells] for axis in axes},
        "Pairs": [_shorten([*map(str, cell.pairs)]) if sets or roles else str(len(cell.pairs)) for cell in cells],
        "Duration": [format_duration(cell.duration_s) for cell in cells],
        "Sends": [_span_text(cell) for cell in cells],
        _ON_WIRE: [_distinct(UNKNOWN if pair.mss is None else str(pair.mss) for pair in own) for own in expected],
        _PER_PAIR: [_distinct(_mbps(pair.ceiling_bps) for pair in own) for own in expected],
        _OF_SUM: [sums[each] for each in asked],
    }


def _head(run_plan: RunPlan, rig: Rig) -> Iterator[str]:
    switch = f", switch {rig.switch}" if rig.switch else ""
    yield run_plan.title
    yield f"Rig {rig.name}: {rig.title} ({_WHERE[rig.virtual]}{switch})"


def _summary(run_plan: RunPlan, axes: Sequence[Setting[Any]], columns: Mapping[str, Sequence[str]]) -> list[str]:
    heads = ("Duration", "Class", *(axis.header for axis in axes))
    values_of = {head: [text for text in dict.fromkeys(columns[head]) if text != UNKNOWN] for head in heads}
    varied = [f"{_lower(head)} {_shorten(values)}" for head, values in values_of.items() if len(values) > 1]
    constant = {
        head: values for head, values in values_of.items() if len({*columns[head]}) == 1 and {*values} - {DEFAULT}
    }
    same = [*(f"{_lower(head)} {values[0]}" for head, values in constant.items()), *constants(run_plan, axes)]
    lines: list[str] = []
    tests = "1 test" if len(run_plan.cells) == 1 else f"{len(run_plan.cells):,} tests"
    if factors := _factors(run_plan, axes, columns):
        sets = several_sets(run_plan.cells)
        lines.append(f"{tests} = {' × '.join(_factor_text(*factor, sets=sets) for factor in factors.items())}.")
    else:
        lines.append(f"{tests}{': ' if varied else ''}{'; '.join(varied)}.")
    lines += [f"Every test: {', '.join(same)}."] if same else []
    lines += [] if factors else _multiplication_lines(run_plan, axes, values_of)
    if (against := run_plan.against) is not None:
        variants = f"{against.setting} {against.before} and {against.after}"
        lines.append(f"Comparison: each test runs with {variants} in turn (ABBA).")
    lines += [f"Condition {condition.name}: {_condition_text(condition)}." for condition in run_plan.conditions]
    lines += _class_lines(run_plan) if have_roles(run_plan.cells) else [_pairs_line(run_plan)]
    lines += _expectation_lines(run_plan)
    several = any(len(cell.pairs) > 1 for cell in run_plan.cells)
    of_sum = f" per pair, {_range(columns[_OF_SUM])} Mbit/s of the sum" if several else ""
    return [*lines, f"Ceiling: {_range(columns[_PER_PAIR])} Mbit/s{of_sum}."]


def _factors(
    run_plan: RunPlan, axes: Sequence[Setting[Any]], columns: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Return the varied axes with their values if all combinations of the values are tests; else nothing."""
    # A window that follows from the total window of the flows is no axis.
    derived = [WINDOW] if any(cell[WINDOW_TOTAL] is not None for cell in run_plan.cells) else []
    heads = ("Duration", "Class", *(axis.header for axis in axes if axis not in derived), "Pairs")
    distinct = {head: list(dict.fromkeys(columns[head])) for head in heads}
    factors = {head: values for head, values in distinct.items() if len(values) > 1}
    points = set(zip(*(columns[head] for head in factors), strict=True))
    multiplied = len(points) == len(run_plan.cells) == math.prod(map(len, factors.values()))
    return factors if multiplied and len(factors) > 1 else {}


def _factor_text(head: str, values: Sequence[str], *, sets: bool) -> str:
    """Return an axis with its number of values, as `4 conditions`, `flows 1–10` or `window 32K–256K (4)`."""
    if head == CONDITION.header or (head == "Pairs" and sets):
        return plural(len(values), head.lower().removesuffix("s"))
    name, ends = _lower(head), span((values[0], values[-1]))
    if len(values) > 2 and values[0].isdigit():
        first = int(values[0])
        if list(values) == [str(number) for number in range(first, first + len(values))]:
            return f"{name} {ends}"
    return f"{name} {', '.join(values)}" if len(values) <= _MOST_LISTED else f"{name} {ends} ({len(values)})"


def _known_times(run_plan: RunPlan, store: str | None) -> tuple[str, Mapping[int, float]]:
    """Return the last run of this scenario and the seconds per message that it measured; nothing without a store."""
    if all(cell[ITERATIONS] is None for cell in run_plan.cells):
        return "", {}
    from rigctl.results.message_times import last_message_times  # other plans do not need the store
    from rigctl.store import open_store

    with suppress(InputError), open_store(store, create=False) as opened:
        return last_message_times(opened, run_plan)
    return "", {}


def _multiplication_lines(
    run_plan: RunPlan, axes: Sequence[Setting[Any]], values: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield a line for each axis of --set whose values multiply the tests of the scenario's `include`."""
    given = [text.removeprefix("--set ").partition("=")[0] for text in run_plan.overrides if text.startswith("--set ")]
    for axis in (SETTINGS[name] for name in given if name in SETTINGS and "\ninclude:" in run_plan.scenario_yaml):
        rows = {tuple(cell[each] for each in axes if each != axis) for cell in run_plan.cells}
        others = [f"{_lower(head)} {_shorten(own)}" for head, own in values.items() if head != axis.header and own[1:]]
        if len(rows) > 1 and axis.header in values:
            count = plural(len(values[axis.header]), "value")
            yield f"--set {axis.name}: {count} × {len(rows)} rows of include ({'; '.join(others)})."


def _lower(head: str) -> str:
    if head == PARALLEL.header:
        return "flows"
    words = head.replace("\n", " ")
    return words if words[1:2].isupper() else words.lower()


def _range(texts: Sequence[str]) -> str:
    """Return the smallest and the largest of the numbers in these texts, as `1.2 to 941.5`; `–` if all are unknown."""
    known = sorted({text for texts_of in texts for text in texts_of.split(", ") if text != UNKNOWN}, key=float)
    return span([known[0], known[-1]]) if known else UNKNOWN


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _condition_text(condition: Condition) -> str:
    """Return a condition's settings, as `MTU 8192, net.ipv4.tcp_sack 0; windows are initial buffer sizes`."""
    words = [f"{'MTU' if setting.kind == 'mtu' else setting.label} {setting.value}" for setting in condition.settings]
    buffers = "windows are initial buffer sizes" if condition.resize else "windows are fixed"
    return f"{', '.join(words) or 'nothing is set'}; {buffers}"


def _value(axis: Setting[Any], cell: Cell) -> str:
    """Return the value of an axis in a test as scenarios write it; `–` if this kind of test does not have the axis."""
    if cell[axis] is not None:
        return axis.text(cell[axis])
    return axis.default if axis.takes(cell.kind) else UNKNOWN


def _time_line(run_plan: RunPlan, time: PlannedTime, earlier: str) -> str:
    cells = len(run_plan.cells)
    times, together = "1 test" if cells == 1 else f"{cells:,} tests", len({cell.first for cell in run_plan.cells})
    if run_plan.parts:
        times += f" in {plural(len(run_plan.parts), 'part')}"
    elif together < cells:
        times += f", {cells // together} at the same time"
    repeated = f" × {run_plan.repeat} repetitions" if run_plan.repeat > 1 else ""
    beyond = format_duration(float(math.ceil(together * run_plan.repeat * _BEYOND_S)))
    total = format_duration(time.total_s)
    if any(searched_setting(cell) is not None for cell in run_plan.cells):
        total = f"{total} to {format_duration(most_s(run_plan))}"
    elif time.exactness == "at most" and 0 < time.least_s < time.total_s:
        total = f"{format_duration(time.least_s)} to {total}"
    elif time.exactness != "exact":
        total = f"{time.exactness} {total}"
    known = f", at the pace of run {earlier}" if time.exactness == "about" and earlier else ""
    again = " and further repetitions" if run_plan.retest is not None or run_plan.until is not None else ""
    return f"Total time: {total} ({times}{repeated}{known}), without preparation (about {beyond}){again}."


def _pairs_line(run_plan: RunPlan) -> str:
    """Return a line that names the pairs; for a mesh or star only their number and how many run at once."""
    if not several_sets(run_plan.cells):
        pairs = max((cell.pairs for cell in run_plan.cells), key=len)
        return f"Pairs ({len(pairs)}): {_shorten(list(map(str, pairs)))}."
    sets = dict.fromkeys(cell.pairs for cell in run_plan.cells)
    pairs = tuple(dict.fromkeys(pair for together in sets for pair in together))
    most = max(map(len, sets))
    how = "one after the other" if most == 1 else f"in {len(sets)} rounds, {most} at once"
    return f"Pairs: {len(pairs)}, {how}."


def _class_lines(run_plan: RunPlan) -> list[str]:
    """Return a line for each class with its pairs, and with its times if the classes send at different times."""
    lines: dict[str | None, str] = {}
    for cell in run_plan.cells:
        times = f", from {_span_text(cell)}" if cell.sending_s < cell.duration_s else ""
        lines.setdefault(cell.traffic_class, f"Class {cell.traffic_class}: {_shorten([*map(str, cell.pairs)])}{times}.")
    return list(lines.values())


def _span_text(cell: Cell) -> str:
    start_s, stop_s = cell.span_s
    return f"{start_s:g} to {stop_s:g} s"


def _expectation_lines(run_plan: RunPlan) -> list[str]:
    """Return lines such as `Expected: goodput >= 930M, limit line-rate (tests 1 and 3)`."""
    lines = []
    for numbers, same in group_by(run_plan.expectations, lambda expected: expected.tests).items():
        which = "" if len(numbers) == len(run_plan.cells) else f" ({numbers_text(numbers)})"
        lines.append(f"Expected: {', '.join(f'{expected.name} {expected.text}' for expected in same)}{which}.")
    return lines


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= 6 else [*names[:3], f"… {names[-1]}"])


def _mbps(rate_bps: float | None) -> str:
    return UNKNOWN if rate_bps is None else f"{rate_bps / 1e6:.1f}"


class PlannedPair(Model):
    """A pair of nodes in a test."""

    source: str = at("pair.source")
    destination: str = at("pair.destination")
    payload_bytes: int | None = at("mss", "Payload bytes of a full segment, or of a datagram.")
    ceiling_mbps: InMbps | None = at("ceiling_bps", "Highest goodput of this pair alone, in each direction.")


class PlannedExpectation(Model):
    """An expected result: a bound of a figure, or the expected bottlenecks."""

    figure: str = at("name", "Name of the figure in the scenario, as goodput.")
    expected: str = at("text", "The bound in the scenario, as >= 930M per pair.")
    column: str = Field(description="Name of the column of exports, as goodput_mbps.")
    bound: float | None = Field(description="In the unit of the column; null: `words` has the allowed bottlenecks.")
    words: list[str]
    per_pair: bool


def _settings(cell: Cell) -> dict[str, Any]:
    return {name: cell[setting] for name, setting in SETTINGS.items() if setting not in (PAIRS, CONDITION)}


class PlannedTest(Model):
    """One test: a point of the matrix."""

    test: int = at("cell.number", "Number of the test, from 1.")
    kind: str = at("cell.test", "tcp, udp, pingpong, blast, file, connect, requests, burst or multicast.")
    part: str | None = at("cell.part", "Name of the part of the scenario; null: without `parts`.")
    traffic_class: str | None = at("cell.traffic_class", "Name of the class of traffic; null: without `classes`.")
    condition: str | None = at("cell.condition")
    duration_s: float = at("cell.duration_s")
    start_s: float = at("cell.start_s", "When a class starts to send, in s after the start of the test.")
    stop_s: float | None = at("cell.stop_s", "When a class stops; null: at the end of the test.")
    omit_s: float = at("cell.omit_s")
    settings: Annotated[dict[str, Any], BeforeValidator(_settings)] = at(
        "cell", "Value of each setting by its name; null: the node's default."
    )
    pairs: list[PlannedPair]
    ceiling_mbps: InMbps | None = Field(description="Highest goodput of all pairs at once, in one direction.")
    expected: list[PlannedExpectation] = Field(description="The scenario's expectations of the test.")


class PlanDocument(Versioned):
    """The tests that a run of a scenario would measure."""

    title: str = at("plan.title")
    notes: str = at("plan.notes")
    scenario: str = at("plan.scenario_name")
    rig: str = at("rig.name")
    virtual: Literal["namespaces", "loopback", "machines"] | None = at("rig.virtual", "null: real hardware.")
    ip_version: Literal[4, 6] = at("rig.ip_version")
    repeat: int = at("plan.repeat")
    total_s: float = Field(description="Seconds of traffic, without preparation and further repetitions.")
    total_is: Literal["exact", "at least", "at most", "about"]
    longest_s: float = Field(description="Most seconds of a run, with every re-test and trial: a night's deadline.")
    against: Variants | None = at("plan.against", "The variants of a run with --against; null: no comparison.")
    tests: list[PlannedTest]
    remarks: list[str] = Field(description="What the ceilings assume.")


def _json(plan: RunPlan, rig: Rig, time: PlannedTime) -> str:
    tests = []
    for cell, pairs in zip(plan.cells, all_forecasts(plan), strict=True):
        total_bps = sum_ceiling_bps(pairs, cell.direction, plan)
        expected = [each for each in plan.expectations if cell.number in each.tests]
        tests.append(SimpleNamespace(cell=cell, pairs=pairs, ceiling_mbps=total_bps, expected=expected))
    return PlanDocument.text_of(
        plan=plan,
        rig=rig,
        total_s=round(time.total_s, 3),
        total_is=time.exactness,
        longest_s=longest_s(plan),
        tests=tests,
        remarks=notes(plan, plan.ip_version),
    )
