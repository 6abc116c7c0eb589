"""`rigctl runs prune`: remove old runs, except those that others are compared with."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rigctl.base.errors import InputError
from rigctl.base.units import UnitError, parse_duration
from rigctl.cli.options import Json, StoreAddress
from rigctl.records import BASELINE

if TYPE_CHECKING:
    from rigctl.cli.runs_table import Listed

_DAYS: Final = {"d": 1, "w": 7}
_DAY_S: Final = 86400.0
_MOST_NAMED: Final = 8


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is to go, and which runs stay although they are as old, each with why."""

    gone: "tuple[Listed, ...]"
    kept: Mapping[str, str]


def prune(
    ctx: typer.Context,
    keep: Annotated[str, typer.Option("--keep", metavar="AGE", help="Keep runs younger than this, as 90d or 12w.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them; else only say what would be removed.")] = False,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    """Remove runs older than an age; never a baseline, an accepted run, one that runs, or the latest of its kind."""
    from rigctl.cli.stored import stored_runs
    from rigctl.store import open_store

    address = store or (ctx.parent.params.get("store") if ctx.parent is not None else None)
    age_s = age(keep)
    with open_store(address, create=False) as opened:
        stored, damaged = stored_runs(opened)
        accepted = {levels.run for levels in opened.history.accepted()}
        found = pruning(stored, accepted, age_s)
        sizes = opened.sizes()
        print(_json(found, sizes, removed=yes) if as_json else _words(found, sizes, keep, removed=yes))
        if yes:
            for listed in found.gone:
                opened.remove(listed.info.run)
    if damaged:
        raise InputError("\n".join(damaged))


def pruning(stored: "Sequence[Listed]", accepted: Collection[str], age_s: float) -> Pruning:
    """Which of `stored` are older than `age_s` and nobody's measure."""
    by_kind = {(listed.info.plan.scenario_name, listed.info.plan.rig_name): listed.info.run for listed in stored}
    latest = set(by_kind.values())
    gone, kept = [], {}
    for listed in stored:
        info = listed.info
        if listed.age_s <= age_s:
            continue
        if BASELINE in info.tags:
            kept[info.run] = "baseline"
        elif info.run in accepted:
            kept[info.run] = "accepted"
        elif listed.may_run:
            kept[info.run] = "may still be running"
        elif info.run in latest:
            kept[info.run] = "the latest of its scenario and rig"
        else:
            gone.append(listed)
    return Pruning(tuple(gone), kept)


def age(text: str) -> float:
    """Seconds of `90d`, `12w`, or a duration as elsewhere. Raises `InputError`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([dw])\s*", text, re.ASCII)
    if match:
        return float(match[1]) * _DAYS[match[2]] * _DAY_S
    try:
        if text.strip()[-1:].isalpha():  # a bare number would be seconds
            return parse_duration(text)
    except UnitError:
        pass
    raise InputError(f'--keep "{text}": is no age. Write it as 90d, 12w or 36h')


def _json(found: Pruning, sizes: Mapping[str, int], *, removed: bool) -> str:
    from rigctl.cli.json_model import instant
    from rigctl.cli.short_documents import KeptRun, PruneDocument, PrunedRun

    gone = [
        PrunedRun(run=listed.info.run, started_at=instant(listed.info.started_at), bytes=sizes.get(listed.info.run))
        for listed in found.gone
    ]
    kept = [KeptRun(run=run, why=why) for run, why in found.kept.items()]
    return PruneDocument(removed=removed, runs=gone, kept=kept).model_dump_json(indent=2)


def _words(found: Pruning, sizes: Mapping[str, int], keep: str, *, removed: bool) -> str:
    from rigctl.report.words.text import plural

    lines = []
    if found.gone:
        days = [f"{datetime.fromtimestamp(listed.info.started_at):%Y-%m-%d}" for listed in found.gone]
        size = sum(sizes.get(listed.info.run, 0) for listed in found.gone)
        what = f"{plural(len(found.gone), 'run')} from {days[0]} to {days[-1]}, about {_size(size)}"
        lines.append(
            f"Removing {what}." if removed else f"Would remove {what}. To remove: rigctl runs prune --keep {keep} --yes"
        )
    else:
        lines.append(f"No run older than {keep} can be removed.")
    if found.kept:
        named = [f"{run} ({why})" for run, why in list(found.kept.items())[:_MOST_NAMED]]
        more = [f"{len(found.kept) - _MOST_NAMED} more"] if len(found.kept) > _MOST_NAMED else []
        lines.append(f"Kept although older: {', '.join([*named, *more])}")
    return "\n".join(lines)


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB"
