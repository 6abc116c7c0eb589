"""`rigctl plan`: the tests of a scenario, the time they take and the ceiling of each; touches no node."""

import math
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rigctl.cli.options import (
    Against,
    Bound,
    Captures,
    Duration,
    Json,
    NoReport,
    Quiet,
    Repeat,
    ReportFile,
    Resume,
    RigFile,
    RigSets,
    RunTags,
    Scenario,
    Sets,
    StoreAddress,
    Wait,
    WithoutUnreachable,
)

if TYPE_CHECKING:
    from rich.table import Table

    from rigctl.records import Condition, Pair, RunPlan
    from rigctl.rig.inventory import Rig
    from rigctl.scenario.forecast import Forecast

MOST_ROWS: Final = 100
BEYOND_S: Final = 0.4
"""What a test costs beyond its duration, as measured on the virtual rig; a real one of a few nodes takes less."""


def plan(
    scenario: Scenario,
    rig: RigFile = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    duration: Duration = None,
    repeat: Repeat = None,
    capture: Captures = None,
    against: Against = None,
    every: Annotated[bool, typer.Option("--all", help="Show every test of a large matrix.")] = False,
    as_json: Json = False,
    # Of a run: accepted and unused, so that one command line serves both.
    store: StoreAddress = None,  # noqa: ARG001
    report: ReportFile = None,  # noqa: ARG001
    no_report: NoReport = False,  # noqa: ARG001
    resume: Resume = None,  # noqa: ARG001
    tag: RunTags = None,  # noqa: ARG001
    wait: Wait = None,  # noqa: ARG001
    without_unreachable: WithoutUnreachable = False,  # noqa: ARG001
    quiet: Quiet = False,  # noqa: ARG001
    bound: Bound = 2.0,  # noqa: ARG001
) -> None:
    """Show the tests, the time they take and the ceiling of each. Touches no node. Takes the options of run."""
    from rich.console import Console

    from rigctl.scenario.load import Overrides, load_plan

    overrides = Overrides(
        rig, tuple(sets or ()), duration, repeat, tuple(rig_sets or ()), tuple(capture or ()), against
    )
    run_plan, resolved = load_plan(scenario, overrides)
    if as_json:
        from rigctl.cli.documents import plan_json

        print(plan_json(run_plan, resolved))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 200  # a pipe or file has no width: nothing is to be cut
    for line in head_lines(run_plan, resolved):
        console.print(line)
    console.print(cell_table(run_plan, None if every else MOST_ROWS))
    for line in foot_lines(run_plan, None if every else MOST_ROWS):
        console.print(line)


def head_lines(run_plan: "RunPlan", rig: "Rig") -> list[str]:
    """What is measured, and where."""
    from rigctl.scenario.forecast import constants

    where = {
        None: "real hardware",
        "namespaces": "virtual, made on this machine",
        "loopback": "loopback, unshaped",
        "machines": "virtual, machines on this machine",
    }
    switch = f", switch {rig.switch}" if rig.switch else ""
    lines = [run_plan.title, f"Rig {rig.name}: {rig.title} ({where[rig.virtual]}{switch})"]
    same = constants(run_plan)
    lines += [f"Every test: {', '.join(same)}"] if same else []
    if run_plan.against is not None:
        against = run_plan.against
        lines.append(
            f"Each test with {against.setting} {against.before} and {against.after} in turn (ABBA), and compared."
        )
    return lines + [f"Condition {condition.name}: {condition_text(condition)}" for condition in run_plan.conditions]


def condition_text(condition: "Condition") -> str:
    """Its settings: `MTU 8192, net.ipv4.tcp_sack 0; windows are initial buffer sizes`."""
    words = [
        f"{setting.name or {'mtu': 'MTU'}.get(setting.kind, setting.kind)} {setting.value}"
        for setting in condition.settings
    ]
    buffers = "windows are initial buffer sizes" if condition.resize else "windows are fixed"
    return f"{', '.join(words) or 'nothing is set'}; {buffers}"


def cell_table(run_plan: "RunPlan", most: int | None = MOST_ROWS) -> "Table":
    """One row per test, at most `most`. Axes beyond the page's three have a column only where they vary."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from rigctl.base.units import format_duration
    from rigctl.records import several_sets
    from rigctl.scenario.forecast import forecasts, sum_ceiling_bps, table_axes

    axes = table_axes(run_plan)
    headers = [
        "Test",
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
        values = ((axis, cell[axis]) for axis in axes)
        settings = ["–" if value is None else axis.text(value) for axis, value in values]
        counted = [_some(cell.pairs) if sets else str(len(cell.pairs)), format_duration(cell.duration_s)]
        bounds = [_segments(expected), _ceilings(expected), _mbps(sum_ceiling_bps(expected, run_plan))]
        rows.append([str(cell.number), *settings, *counted, *bounds])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header, column in zip(headers, zip(*rows, strict=True), strict=True):
        # A narrow terminal may break a header, never a number.
        table.add_column(header, justify="right", min_width=min(24, max(map(len, column))))
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    return table


def foot_lines(run_plan: "RunPlan", most: int | None = MOST_ROWS) -> list[str]:
    """The rows left out, the total time, and what the ceiling assumes."""
    from rigctl.base.units import format_duration
    from rigctl.scenario.forecast import bound, notes, total_s

    cells = len(run_plan.cells)
    hidden = cells - most if most is not None else 0
    lines = [f"… and {hidden:,} more tests: --all shows them."] if hidden > 0 else []
    lines.append(_pairs_line(run_plan))
    lines += _expected_lines(run_plan)
    times = "1 test" if cells == 1 else f"{cells:,} tests"
    repeated = f" × {run_plan.repeat} repetitions" if run_plan.repeat > 1 else ""
    beyond = format_duration(float(math.ceil(cells * run_plan.repeat * BEYOND_S)))
    total = f"{bound(run_plan)} {format_duration(total_s(run_plan))}".strip()
    lines.append(f"Total time: {total} ({times}{repeated}), without preparation (about {beyond}).")
    return lines + notes(run_plan, run_plan.ip_version)


def _pairs_line(run_plan: "RunPlan") -> str:
    """The largest set of pairs; of sets that take turns, as those of a mesh, how many they are."""
    from rigctl.records import several_sets

    if not several_sets(run_plan.cells):
        pairs = max((cell.pairs for cell in run_plan.cells), key=len)
        return f"Pairs ({len(pairs)}): {_some(pairs)}."
    sets = dict.fromkeys(cell.pairs for cell in run_plan.cells)
    pairs = tuple(dict.fromkeys(pair for together in sets for pair in together))
    most = max(map(len, sets))
    how = "one after the other" if most == 1 else f"in {len(sets)} rounds, {most} at once"
    return f"Pairs: {len(pairs)}, {how}."


def _expected_lines(run_plan: "RunPlan") -> list[str]:
    """What is expected of which tests: `Expected: goodput >= 930M, limit line-rate (tests 1 and 3).`"""
    from rigctl.report.words.text import numbers_text

    by_tests: dict[tuple[int, ...], list[str]] = {}
    for expected in run_plan.expectations:
        by_tests.setdefault(expected.tests, []).append(f"{expected.name} {expected.text}")
    every = len(run_plan.cells)
    return [
        f"Expected: {', '.join(texts)}" + ("." if len(numbers) == every else f" ({numbers_text(numbers)}).")
        for numbers, texts in by_tests.items()
    ]


def _some(pairs: "tuple[Pair, ...]") -> str:
    """Up to six pairs, or the first three and the last."""
    if len(pairs) <= 6:
        return ", ".join(map(str, pairs))
    return ", ".join(map(str, pairs[:3])) + f", … {pairs[-1]}"


def _segments(expected: "tuple[Forecast, ...]") -> str:
    return ", ".join(dict.fromkeys("–" if forecast.mss is None else str(forecast.mss) for forecast in expected))


def _mbps(rate_bps: float | None) -> str:
    return "–" if rate_bps is None else f"{rate_bps / 1e6:.1f}"


def _ceilings(expected: "tuple[Forecast, ...]") -> str:
    return ", ".join(dict.fromkeys(_mbps(forecast.ceiling_bps) for forecast in expected))
