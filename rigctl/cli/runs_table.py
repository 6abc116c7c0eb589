"""The list of runs, a line each: ids are never cut, whatever the width of the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rigctl.base.units import format_duration, local_text
from rigctl.records import RunInfo, RunStatus, given_tags, tag_text
from rigctl.runner.resume import Fate

_OVERDUE: Final = 2.0
"""A run still `running` after this many times its planned time, and a few minutes, has most likely died."""
_GRACE_S: Final = 300.0
_WIDTH: Final = 200
"""Of what is no terminal: a pipe or file has no width."""
_LEAST_WIDTH: Final = 80
"""A narrower terminal breaks the lines itself: nothing is cut."""
EMPTY: Final = "No runs yet. Start one with `rigctl run SCENARIO`."


@dataclass(frozen=True, slots=True)
class Listed:
    """A run with its tests by status, what became of the process that measured it, and the time of the list."""

    info: RunInfo
    measured: Mapping[str, int]
    fate: Fate
    now: float  # Unix seconds

    @property
    def age_s(self) -> float:
        return max(0.0, self.now - self.info.started_at)

    @property
    def may_run(self) -> bool:
        """Nobody has finished it, and that it died is not certain."""
        return self.info.status is RunStatus.RUNNING and self.died is not True

    @property
    def died(self) -> bool | None:
        """A run that was never finished and that nobody measures any more; `None`: not known for certain."""
        if self.info.status is not RunStatus.RUNNING or self.fate is Fate.ALIVE:
            return False
        if self.fate is Fate.GONE:
            return True
        planned_s = self.info.plan.repeat * sum(cell.duration_s for cell in self.info.plan.cells)
        return None if self.age_s > _OVERDUE * planned_s + _GRACE_S else False


def status_text(listed: Listed) -> str:
    """`complete in 1m 14s`, `running for 20 s`, `died, began 3h 05m ago`; with `?` where it is only likely."""
    info = listed.info
    if info.status is not RunStatus.RUNNING:
        took = f" in {format_duration(info.ended_at - info.started_at)}" if info.ended_at is not None else ""
        return f"{info.status}{took}"
    age = format_duration(listed.age_s)
    return {True: f"died, began {age} ago", None: f"died? began {age} ago"}.get(listed.died, f"running for {age}")


def print_runs(runs: Sequence[Listed], console: Console | None = None) -> None:
    """One line per run: id, start, how many tests have a result that counts, what became of it, rig, title."""
    console = console or Console(highlight=False)
    console.width = max(console.width, _LEAST_WIDTH if console.is_terminal else _WIDTH)
    if not runs:
        console.print(EMPTY)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    rows = [_row(listed) for listed in runs]
    for at, (head, kept) in enumerate((("Run", True), ("Started", True), ("Tests", True), ("Status", False))):
        width = max(len(head), *(len(row[at]) for row in rows)) if kept else None
        table.add_column(head, no_wrap=kept, min_width=width, justify="right" if head == "Tests" else "left")
    table.add_column("Rig", overflow="fold")
    table.add_column("Title", overflow="fold")
    tags = [[tag_text(*each) for each in given_tags(listed.info.tags).items()] for listed in runs]
    if any(tags):
        table.add_column("Tags", overflow="fold")
    for row, given in zip(rows, tags, strict=True):
        table.add_row(*map(Text, row), *([Text(" ".join(given))] if any(tags) else []))
    console.print(table, crop=False)


def _row(listed: Listed) -> tuple[str, ...]:
    plan = listed.info.plan
    return (
        listed.info.run,
        local_text(listed.info.started_at, "%Y-%m-%d %H:%M"),
        f"{listed.measured.get('ok', 0)}/{len(plan.cells)}",
        status_text(listed),
        plan.rig_name,
        plan.title or plan.scenario_name,
    )
