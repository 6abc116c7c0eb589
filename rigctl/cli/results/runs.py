"""List the stored runs, the earliest first; remove some.

Examples:
  rigctl runs --scenario gigablox --since 2026-11-01
  rigctl runs prune --keep 90d
"""

import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from textwrap import shorten
from typing import Annotated, Final, Literal

import typer
from pydantic import AfterValidator, Field
from rich.cells import cell_len

from rigctl.base.errors import InputError
from rigctl.base.units import UnitError, format_duration, parse_duration
from rigctl.cli.options import Json, StoreAddress, complete_run, find_store_address, take_options
from rigctl.cli.output import LengthOf, Model, UtcText, Versioned, at, output_width, say
from rigctl.cli.stored_runs import Filters, RunInList, list_stored_runs, read_filters
from rigctl.findings.text import plural, some
from rigctl.records import ANSWER, BASELINE, RunInfo, RunStatus, tag_text, user_tags
from rigctl.runner.resume import Fate, fate
from rigctl.store import NoStoreError, open_store
from rigctl.store.store import short_id

_DAYS: Final = {"d": 1, "w": 7}
_DAY_S: Final = 86400.0
_HEADS: Final = ("When", "Run", "Scenario", "Tests", "Tags")
_LEAST_WIDTH: Final = 80
"""Smallest width of the table in characters; a narrower terminal wraps its lines."""
_LEAST_ANSWER: Final = 16
"""The column Answer is left out if less than this width in characters remains for it."""

runs_commands = typer.Typer(invoke_without_command=True, add_completion=False)


@runs_commands.callback()
@take_options(read_filters, "filters")
def list_runs(ctx: typer.Context, filters: Filters, store: StoreAddress = None, as_json: Json = False) -> None:
    if ctx.invoked_subcommand is not None:
        return
    stored: list[RunInList] = []
    damaged: list[str] = []
    with suppress(NoStoreError), open_store(store, create=False) as opened:
        stored, damaged = list_stored_runs(opened)
    chosen = [run for run in stored if filters.fit(run)]
    if as_json:
        print(RunsDocument.text_of(runs=chosen, damaged=damaged))
    elif chosen:
        print_runs(chosen)
    elif not damaged:
        empty = "No runs yet. Start one with `rigctl run SCENARIO`."
        say(f"No run of {len(stored)} fits {filters}." if stored else empty)
    if damaged:
        raise InputError("\n".join(damaged))


class StoredRun(Model):
    """One stored run."""

    run: str = at("info.run", "Id of the run.")
    title: str = at("info.plan.title")
    scenario: str = at("info.plan.scenario_name", "The scenario's name, without folder and ending.")
    rig: str = at("info.plan.rig_name")
    virtual: Literal["namespaces", "loopback", "machines"] | None = at("info.plan.virtual", "null: real hardware.")
    status: Literal["running", "died", "complete", "partial", "interrupted"] = at(
        "state", "died: the run is unfinished, and the process that measured it is gone."
    )
    started_at: UtcText = at("info.started_at")
    ended_at: UtcText | None = at("info.ended_at")
    tests: LengthOf = at("info.plan.cells", "Number of tests.")
    measured: dict[str, int] = Field(description="Number of tests with a repetition of this status: ok, invalid, …")
    overrides: list[str] = at("info.plan.overrides", "Options of the run.")
    tags: Annotated[dict[str, str], AfterValidator(lambda tags: dict(sorted(tags.items())))] = at(
        "info.tags", "Values by name; rigctl sets the tags whose names begin with `rigctl.` itself."
    )


class RunsDocument(Versioned):
    """The stored runs, the earliest first."""

    runs: list[StoredRun]
    damaged: list[str] = Field(description="A message for each run that cannot be read.")


def status_text(stored: RunInList) -> str:
    """Return the state of a run, as `complete in 1m 14s` or `died, began 3h 05m ago`; `died? …` if uncertain."""
    info = stored.info
    if info.status is not RunStatus.RUNNING:
        took = f" in {format_duration(info.ended_at - info.started_at)}" if info.ended_at is not None else ""
        return f"{info.status}{took}"
    age = format_duration(stored.age_s)
    return {True: f"died, began {age} ago", None: f"died? began {age} ago"}.get(stored.has_died, f"running for {age}")


def print_runs(runs: Sequence[RunInList]) -> None:
    """Print a line for each run. `Answer` is the short answer of its report, or the state of the run."""
    print("\n".join(lines_of_runs(runs, max(output_width(), _LEAST_WIDTH))))


def lines_of_runs(runs: Sequence[RunInList], width: int) -> list[str]:
    """Return a line with the names of the columns, and a line for each run."""
    rigs = Counter(scenario for scenario, _ in {(run.info.plan.scenario_name, run.info.plan.rig_name) for run in runs})
    rows = []
    for run in runs:
        plan, when = run.info.plan, _when(run.info.started_at, run.now)
        scenario = f"{plan.scenario_name} on {plan.rig_name}" if rigs[plan.scenario_name] > 1 else plan.scenario_name
        tags = " ".join(tag_text(*each) for each in user_tags(run.info.tags).items())
        measured = f"{run.measured.get('ok', 0)}/{len(plan.cells)}"
        rows.append((when, short_id(run.info.run), _cut(scenario, width // 2), measured, tags))
    columns = {
        head: [head, *texts]
        for head, texts in zip(_HEADS, zip(*rows, strict=True), strict=True)
        if any(texts)  # without tags there is no such column
    }
    room = width - sum(max(map(cell_len, texts)) + 2 for texts in columns.values())
    if room >= _LEAST_ANSWER:
        answers = (run.info.tags.get(ANSWER) or status_text(run) for run in runs)
        columns["Answer"] = ["Answer", *(shorten(answer, room, placeholder="…") for answer in answers)]
    padded = [_padded(texts, right=head == "Tests") for head, texts in columns.items()]
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def _padded(texts: Sequence[str], *, right: bool) -> list[str]:
    width = max(map(cell_len, texts))
    blanks = [" " * (width - cell_len(text)) for text in texts]
    return [f"{blank}{text}" if right else f"{text}{blank}" for text, blank in zip(texts, blanks, strict=True)]


def _cut(text: str, most: int) -> str:
    return text if cell_len(text) <= most else f"{text[: most - 1]}…"


def _when(started_at: float, now: float) -> str:
    """Return the local start of a run: `29 Nov 12:55`, or `29 Nov  2025` for another year."""
    began = datetime.fromtimestamp(started_at)
    same_year = began.year == datetime.fromtimestamp(now).year
    return f"{began.day:>2} {began:%b} {f'{began:%H:%M}' if same_year else f'{began.year:>5}'}"


@runs_commands.command("prune")
def prune_runs(
    ctx: typer.Context,
    keep: Annotated[str, typer.Option("--keep", metavar="AGE", help="Keep runs younger than this, as 90d or 12w.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove the runs; without --yes only say which.")] = False,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    """Remove runs older than an age.

    Keeps runs tagged baseline, accepted runs, runs in progress, and the latest of each scenario and rig.
    """
    age_s = parse_age(keep)
    with open_store(find_store_address(ctx, store), create=False) as opened:
        stored, damaged = list_stored_runs(opened)
        old, kept = choose_old_runs(stored, {levels.run for levels in opened.history.accepted()}, age_s)
        sizes, infos = opened.sizes(), [run.info for run in old]
        if as_json:
            gone = [{"run": own.run, "started_at": own.started_at, "bytes": sizes.get(own.run)} for own in infos]
            print(PruneDocument.text_of(removed=yes, runs=gone, kept=[{"run": run, "why": kept[run]} for run in kept]))
        else:
            say(_prune_text(infos, sum(sizes.get(own.run, 0) for own in infos), kept, keep, removed=yes))
        for own in infos if yes else ():
            opened.remove(own.run)
    if damaged:
        raise InputError("\n".join(damaged))


class PrunedRun(Model):
    """A run that is old enough to be removed."""

    run: str
    started_at: UtcText
    bytes: int | None = Field(description="Approximate size in the store.")


class KeptRun(Model):
    """An old run that `prune` keeps."""

    run: str
    why: str


class PruneDocument(Versioned):
    """Runs that `runs prune` removes, and old runs that it keeps."""

    removed: bool = Field(description="false: nothing was removed, --yes was not given.")
    runs: list[PrunedRun]
    kept: list[KeptRun]


def choose_old_runs(
    stored: Sequence[RunInList], accepted: Collection[str], age_s: float
) -> tuple[list[RunInList], dict[str, str]]:
    """Return the runs older than `age_s` that may be removed, and a dict from each other old run to why it is kept."""
    latest = {(run.info.plan.scenario_name, run.info.plan.rig_name): run.info.run for run in stored}
    gone, kept = [], {}
    for run in (run for run in stored if run.age_s > age_s):
        reasons = {
            "baseline": BASELINE in run.info.tags,
            "accepted": run.info.run in accepted,
            "may still be running": run.may_run,
            "the latest of its scenario and rig": run.info.run in latest.values(),
        }
        why = next((reason for reason, holds in reasons.items() if holds), None)
        if why is not None:
            kept[run.info.run] = why
        else:
            gone.append(run)
    return gone, kept


def parse_age(text: str) -> float:
    """Return an age such as `90d`, `12w` or `36h` in seconds. Raises `InputError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([dw])\s*", text, re.ASCII)
    if match:
        return float(match[1]) * _DAYS[match[2]] * _DAY_S
    try:
        if text.strip()[-1:].isalpha():  # refuse a number without a unit, which would mean seconds
            return parse_duration(text)
    except UnitError:
        pass
    raise InputError(f'--keep "{text}": is no age. Write it as 90d, 12w or 36h')


def _prune_text(old: Sequence[RunInfo], size: int, kept: Mapping[str, str], keep: str, *, removed: bool) -> str:
    lines = [f"No run older than {keep} can be removed."]
    if old:
        about = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB"
        first, last = (f"{datetime.fromtimestamp(own.started_at):%Y-%m-%d}" for own in (old[0], old[-1]))
        what = f"{plural(len(old), 'run')} from {first} to {last}, about {about}"
        how = f"Would remove {what}. To remove: rigctl runs prune --keep {keep} --yes"
        lines = [f"Removing {what}." if removed else how]
    if kept:
        named = [f"{run} ({why})" for run, why in kept.items()]
        lines.append(f"Kept although older: {some(named, 8, last=', ')}")
    return "\n".join(lines)


@runs_commands.command("rm")
def remove_runs(
    ctx: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            help="Ids of runs, their beginnings or ends, or latest~N.",
            autocompletion=complete_run,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    store: StoreAddress = None,
) -> None:
    """Remove runs from the store, with all that was measured in them.

    Reports that were written stay.
    """
    with open_store(find_store_address(ctx, store), create=False) as opened:
        chosen = list(dict.fromkeys(opened.run_id(name) for name in names))
        controllers = opened.controllers()
        for run in chosen:
            if fate(controllers.get(run)) is Fate.ALIVE:
                raise InputError(f"run {run} is still running. Wait for it or stop it")
        if not yes:
            _confirm_removal(chosen)
        for run in chosen:
            opened.remove(run)
            print(f"{run}: removed")


def _confirm_removal(chosen: list[str]) -> None:
    if not sys.stdin.isatty():
        raise InputError(f"runs rm: standard input is no terminal. Give --yes to remove {', '.join(chosen)}")
    if not typer.confirm(f"Remove {', '.join(chosen)}?"):
        raise InputError("nothing was removed")
