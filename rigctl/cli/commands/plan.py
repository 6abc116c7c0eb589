"""`rigctl plan`: the tests of a scenario, the time they take and the ceiling of each; touches no node."""

import math
from types import SimpleNamespace
from typing import Annotated, Any, Final, Literal

import typer
from pydantic import BeforeValidator, Field
from rich.table import Table

from rigctl.base.units import format_duration
from rigctl.cli.options import Json, RunOptions, Scenario, with_run_options
from rigctl.cli.output import Mbps, Model, Variants, Versioned, at, plain_console, text_table
from rigctl.records import Cell, Condition, Pair, RunPlan, several_sets
from rigctl.report.words.text import numbers_text
from rigctl.rig.inventory import Rig
from rigctl.scenario.forecast import (
    bound,
    constants,
    forecasts,
    notes,
    sum_ceiling_bps,
    table_axes,
    total_s,
)
from rigctl.scenario.load import Overrides, load_plan
from rigctl.settings import CONDITION, DEFAULT, PAIRS, SETTINGS, Setting

MOST_ROWS: Final = 100
BEYOND_S: Final = 0.4
"""Time of a test beyond its duration, measured on the virtual rig; a real rig of a few nodes takes less."""


@with_run_options
def plan(
    scenario: Scenario,
    options: RunOptions,
    every: Annotated[bool, typer.Option("--all", help="Show every test of a large matrix.")] = False,
    as_json: Json = False,
) -> None:
    """Show the tests of SCENARIO, the time they take and the ceiling of each.

    Touches no node. Takes the options of run.
    """
    print_plan(scenario, options, every=every, as_json=as_json)


def overrides_of(options: RunOptions) -> Overrides:
    """Return the changes to a scenario that the options ask for."""
    return Overrides(
        options.rig,
        tuple(options.sets or ()),
        options.duration,
        options.repeat,
        tuple(options.rig_sets or ()),
        tuple(options.capture or ()),
        options.against,
    )


def print_plan(scenario: str, options: RunOptions, *, every: bool = False, as_json: bool = False) -> None:
    """Print the plan of a scenario. Raises `InputError`."""
    run_plan, resolved = load_plan(scenario, overrides_of(options))
    if as_json:
        print(plan_json(run_plan, resolved))
        return
    console = plain_console()
    for line in head_lines(run_plan, resolved):
        console.print(line)
    console.print(cell_table(run_plan, None if every else MOST_ROWS))
    for line in foot_lines(run_plan, None if every else MOST_ROWS):
        console.print(line)


_WHERE: Final = {
    None: "real hardware",
    "namespaces": "virtual, made on this machine",
    "loopback": "loopback, unshaped",
    "machines": "virtual, machines on this machine",
}


def head_lines(run_plan: RunPlan, rig: Rig) -> list[str]:
    """Return the lines above the table: title, rig, what all tests share, the comparison and the conditions."""
    switch = f", switch {rig.switch}" if rig.switch else ""
    lines = [run_plan.title, f"Rig {rig.name}: {rig.title} ({_WHERE[rig.virtual]}{switch})"]
    same = constants(run_plan)
    lines += [f"Every test: {', '.join(same)}"] if same else []
    if run_plan.against is not None:
        against = run_plan.against
        lines.append(
            f"Each test with {against.setting} {against.before} and {against.after} in turn (ABBA), and compared."
        )
    return lines + [f"Condition {condition.name}: {condition_text(condition)}" for condition in run_plan.conditions]


def condition_text(condition: Condition) -> str:
    """Return the settings of a condition: `MTU 8192, net.ipv4.tcp_sack 0; windows are initial buffer sizes`."""
    words = [f"{'MTU' if setting.kind == 'mtu' else setting.label} {setting.value}" for setting in condition.settings]
    buffers = "windows are initial buffer sizes" if condition.resize else "windows are fixed"
    return f"{', '.join(words) or 'nothing is set'}; {buffers}"


def cell_table(run_plan: RunPlan, most: int | None = MOST_ROWS) -> Table:
    """Return a table with a row for each of the first `most` tests."""
    axes = table_axes(run_plan)
    classed = any(cell.traffic_class is not None for cell in run_plan.cells)
    heads = [
        *(["Test", "Class"] if classed else ["Test"]),
        *(axis.header for axis in axes),
        "Pairs",
        "Duration",
        "Payload\non wire" if any(cell.transport == "udp" for cell in run_plan.cells) else "MSS\non wire",
        "Ceiling\nper pair\n[Mbit/s]",
        "Ceiling\nof the sum\n[Mbit/s]",
    ]
    rows = []
    sets = several_sets(run_plan.cells)
    for cell in run_plan.cells[:most]:
        expected = forecasts(cell, run_plan, run_plan.ip_version)
        settings = [_value(axis, cell[axis]) for axis in axes]
        counted = [_some(cell.pairs) if sets else str(len(cell.pairs)), format_duration(cell.duration_s)]
        payloads = dict.fromkeys("–" if forecast.mss is None else str(forecast.mss) for forecast in expected)
        ceilings = dict.fromkeys(_mbps(forecast.ceiling_bps) for forecast in expected)
        bounds = [", ".join(payloads), ", ".join(ceilings), _mbps(sum_ceiling_bps(expected, run_plan))]
        names = [cell.traffic_class or "–"] if classed else []
        rows.append([str(cell.number), *names, *settings, *counted, *bounds])
    return text_table(heads, rows)


def _value(axis: Setting[Any], value: object) -> str:
    """Return a value as it is written in a scenario; a dash if the node's own default holds."""
    return axis.text(value) if value is not None else "–" if axis.default == DEFAULT else axis.default


def foot_lines(run_plan: RunPlan, most: int | None = MOST_ROWS) -> list[str]:
    """Return the lines below the table: rows left out, pairs, expectations, total time, assumptions of the ceiling."""
    cells = len(run_plan.cells)
    hidden = cells - most if most is not None else 0
    lines = [f"… and {hidden:,} more tests: --all shows them."] if hidden > 0 else []
    lines.append(_pairs_line(run_plan))
    lines += _expected_lines(run_plan)
    times, together = "1 test" if cells == 1 else f"{cells:,} tests", len({cell.first for cell in run_plan.cells})
    if together < cells:
        times += f", {cells // together} at the same time"
    repeated = f" × {run_plan.repeat} repetitions" if run_plan.repeat > 1 else ""
    beyond = format_duration(float(math.ceil(together * run_plan.repeat * BEYOND_S)))
    total = f"{bound(run_plan)} {format_duration(total_s(run_plan))}".strip()
    lines.append(f"Total time: {total} ({times}{repeated}), without preparation (about {beyond}).")
    return lines + notes(run_plan, run_plan.ip_version)


def _pairs_line(run_plan: RunPlan) -> str:
    """Return a line with the largest set of pairs, or with their number if sets take turns, as in a mesh."""
    if not several_sets(run_plan.cells):
        pairs = max((cell.pairs for cell in run_plan.cells), key=len)
        return f"Pairs ({len(pairs)}): {_some(pairs)}."
    sets = dict.fromkeys(cell.pairs for cell in run_plan.cells)
    pairs = tuple(dict.fromkeys(pair for together in sets for pair in together))
    most = max(map(len, sets))
    how = "one after the other" if most == 1 else f"in {len(sets)} rounds, {most} at once"
    return f"Pairs: {len(pairs)}, {how}."


def _expected_lines(run_plan: RunPlan) -> list[str]:
    """Return lines such as `Expected: goodput >= 930M, limit line-rate (tests 1 and 3)`."""
    by_tests: dict[tuple[int, ...], list[str]] = {}
    for expected in run_plan.expectations:
        by_tests.setdefault(expected.tests, []).append(f"{expected.name} {expected.text}")
    every = len(run_plan.cells)
    return [
        f"Expected: {', '.join(texts)}" + ("." if len(numbers) == every else f" ({numbers_text(numbers)}).")
        for numbers, texts in by_tests.items()
    ]


def _some(pairs: tuple[Pair, ...]) -> str:
    """Return the names of up to six pairs, or of the first three and the last."""
    if len(pairs) <= 6:
        return ", ".join(map(str, pairs))
    return ", ".join(map(str, pairs[:3])) + f", … {pairs[-1]}"


def _mbps(rate_bps: float | None) -> str:
    return "–" if rate_bps is None else f"{rate_bps / 1e6:.1f}"


class PlannedPair(Model):
    """A pair of a test."""

    source: str = at("pair.source")
    destination: str = at("pair.destination")
    payload_bytes: int | None = at("mss", "Of a full segment, or of a datagram.")
    ceiling_mbps: Mbps | None = at("ceiling_bps", "Highest goodput of this pair by itself, each direction.")


class Expected(Model):
    """A bound of a figure, or the bottlenecks that are expected."""

    figure: str = at("name", "As in the scenario: goodput.")
    expected: str = at("text", "As in the scenario: >= 930M per pair.")
    column: str = Field(description="docs/reference/columns.md: goodput_mbps.")
    bound: float | None = Field(description="In the unit of the column; null: words are expected.")
    words: list[str]
    per_pair: bool


_NOT_SETTINGS: Final = (PAIRS, CONDITION)  # fields beside the settings of a test


def _settings(cell: Cell) -> dict[str, Any]:
    return {name: cell[setting] for name, setting in SETTINGS.items() if setting not in _NOT_SETTINGS}


class PlannedTest(Model):
    """One test: a point of the matrix."""

    test: int = at("cell.number", "Number of the test, from 1.")
    kind: str = at("cell.test", "tcp, udp, pingpong, blast or file.")
    traffic_class: str | None = at("cell.traffic_class", "Measured at the same time as the others of its row; or null.")
    condition: str | None = at("cell.condition")
    duration_s: float = at("cell.duration_s")
    omit_s: float = at("cell.omit_s")
    settings: Annotated[dict[str, Any], BeforeValidator(_settings)] = at(
        "cell", "Values of the axes; null: the node's default."
    )
    pairs: list[PlannedPair]
    ceiling_mbps: Mbps | None = Field(description="Highest goodput of all pairs at once, in one direction.")
    expected: list[Expected] = Field(description="What the scenario expects of it.")


class PlanDocument(Versioned):
    """The tests that a run of a scenario would measure."""

    title: str = at("plan.title")
    notes: str = at("plan.notes")
    scenario: str = at("plan.scenario_name")
    rig: str = at("rig.name")
    virtual: Literal["namespaces", "loopback", "machines"] | None = at("rig.virtual", "null: real hardware.")
    ip_version: Literal[4, 6] = at("rig.ip_version")
    repeat: int = at("plan.repeat")
    total_s: float = Field(description="Seconds of traffic, without preparation.")
    total_is: Literal["exact", "at least", "at most", "about"]
    against: Variants | None = at("plan.against", "Two variants of every test, in turn; null: no comparison.")
    tests: list[PlannedTest]
    remarks: list[str] = Field(description="What the ceilings assume.")


def plan_json(plan: RunPlan, rig: Rig) -> str:
    """Return what `--json` prints."""
    tests = []
    for cell in plan.cells:
        pairs = forecasts(cell, plan, plan.ip_version)
        total_bps = sum_ceiling_bps(pairs, plan)
        expected = [each for each in plan.expectations if cell.number in each.tests]
        tests.append(SimpleNamespace(cell=cell, pairs=pairs, ceiling_mbps=total_bps, expected=expected))
    return PlanDocument.text_of(
        plan=plan,
        rig=rig,
        total_s=total_s(plan),
        total_is=bound(plan) or "exact",
        tests=tests,
        remarks=notes(plan, plan.ip_version),
    )
