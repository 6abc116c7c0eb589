"""The list of runs, a line each. A run that died is told from one that goes on by its age."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rigctl.records import RunInfo, RunStatus
from rigctl.units import format_duration

_OVERDUE: Final = 2.0
"""A run still `running` after this many times its planned time, and a few minutes, has most likely died."""
_GRACE_S: Final = 300.0


def print_runs(
    infos: Sequence[RunInfo], measured: Mapping[str, Mapping[str, int]], now: float, console: Console
) -> None:
    """Print one line per run: id, start, title, rig, how many cells have a result that counts, what became of it."""
    if not infos:
        console.print("No run yet. `rigctl run SCENARIO` makes one.", highlight=False)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("Run", no_wrap=True)
    table.add_column("Started", no_wrap=True)
    table.add_column("Tests", justify="right", no_wrap=True)
    table.add_column("Status", no_wrap=True)
    table.add_column("Rig", no_wrap=True)
    table.add_column("Title", overflow="fold")
    for info in infos:
        started = datetime.fromtimestamp(info.started_at).astimezone()
        ok = measured.get(info.run, {}).get("ok", 0)
        table.add_row(
            info.run,
            f"{started:%Y-%m-%d %H:%M}",
            f"{ok}/{len(info.plan.cells)}",
            status_text(info, now),
            Text(info.plan.rig_name),
            Text(info.plan.title or info.plan.scenario_name),
        )
    console.print(table)


def status_text(info: RunInfo, now: float) -> str:
    """`complete in 1m 14s`, `running for 20 s`, `died? began 3h 05m ago`; `now` in Unix seconds."""
    if info.status is not RunStatus.RUNNING:
        took = f" in {format_duration(info.ended_at - info.started_at)}" if info.ended_at is not None else ""
        return f"{info.status}{took}"
    age_s = max(0.0, now - info.started_at)
    planned_s = info.plan.repeat * sum(cell.duration_s for cell in info.plan.cells)
    if age_s > _OVERDUE * planned_s + _GRACE_S:
        return f"died? began {format_duration(age_s)} ago"
    return f"running for {format_duration(age_s)}"
