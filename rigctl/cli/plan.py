"""`rigctl plan`: the cells of a scenario, the time they take and the ceiling of each; touches no node."""

import math
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rigctl.cli.options import Duration, Repeat, RigFile, RigSets, Sets

if TYPE_CHECKING:
    from rich.table import Table

    from rigctl.records import Condition, Pair, RunPlan
    from rigctl.rig.inventory import Rig
    from rigctl.scenario.forecast import Forecast

MOST_ROWS: Final = 100
BEYOND_S: Final = 0.4
"""What a cell costs beyond its duration, as measured on the virtual rig; a real one of a few nodes takes less."""


def plan(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or the name of a bundled one.")],
    rig: RigFile = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    duration: Duration = None,
    repeat: Repeat = None,
    every: Annotated[bool, typer.Option("--all", help="Show every cell of a large matrix.")] = False,
) -> None:
    """Show the cells, the time they take and the ceiling of each. Touches no node."""
    from rich.console import Console

    from rigctl.scenario.load import Overrides, load_plan

    run_plan, resolved = load_plan(scenario, Overrides(rig, tuple(sets or ()), duration, repeat, tuple(rig_sets or ())))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 200  # a pipe or file has no width: nothing is to be cut
    for line in head_lines(run_plan, resolved):
        console.print(line)
    console.print(cell_table(run_plan, resolved, None if every else MOST_ROWS))
    for line in foot_lines(run_plan, resolved, None if every else MOST_ROWS):
        console.print(line)


def head_lines(run_plan: "RunPlan", rig: "Rig") -> list[str]:
    """What is measured, and where."""
    from rigctl.scenario.forecast import constants

    where = {None: "real hardware", "namespaces": "virtual, made on this machine", "loopback": "loopback, unshaped"}
    switch = f", switch {rig.switch}" if rig.switch else ""
    lines = [run_plan.title, f"Rig {rig.name}: {rig.title} ({where[rig.virtual]}{switch})"]
    same = constants(run_plan)
    lines += [f"Every cell: {', '.join(same)}"] if same else []
    return lines + [f"Condition {condition.name}: {condition_text(condition)}" for condition in run_plan.conditions]


def condition_text(condition: "Condition") -> str:
    """Its settings: `MTU 8192, net.ipv4.tcp_sack 0; windows are where buffers start`."""
    words = [
        f"{setting.name or {'mtu': 'MTU'}.get(setting.kind, setting.kind)} {setting.value}"
        for setting in condition.settings
    ]
    buffers = "windows are where buffers start" if condition.resize else "windows are set and locked"
    return f"{', '.join(words) or 'nothing is set'}; {buffers}"


def cell_table(run_plan: "RunPlan", rig: "Rig", most: int | None = MOST_ROWS) -> "Table":
    """One row per cell, at most `most`. Axes beyond the page's three have a column only where they vary."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from rigctl.scenario.axes import AXES
    from rigctl.scenario.forecast import forecasts, setting, sum_ceiling_bps, table_axes
    from rigctl.units import format_duration

    axes = [AXES[name] for name in table_axes(run_plan)]
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
    for cell in run_plan.cells[:most]:
        expected = forecasts(cell, run_plan, ip_version(rig))
        values = ((axis, setting(cell, axis.name)) for axis in axes)
        settings = ["–" if value is None else axis.text(value) for axis, value in values]
        counted = [str(len(cell.pairs)), format_duration(cell.duration_s)]
        bounds = [_segments(expected), _ceilings(expected), _sum_ceiling(sum_ceiling_bps(expected, run_plan))]
        rows.append([str(cell.number), *settings, *counted, *bounds])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for header, column in zip(headers, zip(*rows, strict=True), strict=True):
        # A narrow terminal may break a header, never a number.
        table.add_column(header, justify="right", min_width=min(24, max(map(len, column))))
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    return table


def foot_lines(run_plan: "RunPlan", rig: "Rig", most: int | None = MOST_ROWS) -> list[str]:
    """The rows left out, the total time, and what the ceiling assumes."""
    from rigctl.scenario.forecast import notes, total_s
    from rigctl.units import format_duration

    cells = len(run_plan.cells)
    hidden = cells - most if most is not None else 0
    lines = [f"… and {hidden:,} more cells: --all shows them."] if hidden > 0 else []
    pairs = max((cell.pairs for cell in run_plan.cells), key=len)
    lines.append(f"Pairs ({len(pairs)}): {_some(pairs)}.")
    times = "1 cell" if cells == 1 else f"{cells:,} cells"
    repeated = f" × {run_plan.repeat} repetitions" if run_plan.repeat > 1 else ""
    beyond = format_duration(float(math.ceil(cells * run_plan.repeat * BEYOND_S)))
    # Messages that are counted need their time, or less.
    bound = "at most " if any(cell.messages.iterations is not None for cell in run_plan.cells) else ""
    total = bound + format_duration(total_s(run_plan))
    lines.append(f"Total time: {total} ({times}{repeated}), preparing not counted (about {beyond}).")
    return lines + notes(run_plan, ip_version(rig))


def _some(pairs: "tuple[Pair, ...]") -> str:
    """Up to six pairs, or the first three and the last."""
    if len(pairs) <= 6:
        return ", ".join(map(str, pairs))
    return ", ".join(map(str, pairs[:3])) + f", … {pairs[-1]}"


def ip_version(rig: "Rig") -> int:
    """Of the data addresses, as far as the rig file says: 4 where it does not."""
    addresses = [node.data_address or node.address for node in rig.nodes.values()]
    return 6 if rig.ip_version == 6 or all(":" in address for address in addresses) else 4


def _segments(expected: "tuple[Forecast, ...]") -> str:
    return ", ".join(dict.fromkeys("–" if one.mss is None else str(one.mss) for one in expected))


def _sum_ceiling(most_bps: float | None) -> str:
    return "–" if most_bps is None else f"{most_bps / 1e6:.1f}"


def _ceilings(expected: "tuple[Forecast, ...]") -> str:
    return ", ".join(
        dict.fromkeys("–" if one.ceiling_bps is None else f"{one.ceiling_bps / 1e6:.1f}" for one in expected)
    )
