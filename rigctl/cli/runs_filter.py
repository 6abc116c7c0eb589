"""Which of the stored runs `rigctl runs` lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from rigctl.base.errors import InputError
from rigctl.cli.completion import rig_names, scenario_names
from rigctl.cli.tags import check_name
from rigctl.records import tag_text

if TYPE_CHECKING:
    from rigctl.cli.runs_table import Listed

_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ](?P<minute>\d\d:\d\d)(?P<second>:\d\d)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII
)


class RunState(StrEnum):
    """What `--status` takes: a run's status, or what became of one that was never finished."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    DIED = "died"


OfScenario: TypeAlias = Annotated[
    str | None,
    typer.Option("--scenario", metavar="NAME", help="Only runs of this scenario.", autocompletion=scenario_names),
]
OnRig: TypeAlias = Annotated[
    str | None, typer.Option("--rig", metavar="NAME", help="Only runs on this rig.", autocompletion=rig_names)
]
WithTags: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="NAME[=VALUE]", help="Only runs with this tag; repeatable: with all of them."),
]
Since: TypeAlias = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="Only runs from then on, as 2026-11-22[T04:10].")
]
Until: TypeAlias = Annotated[
    str | None, typer.Option("--until", metavar="DATE", help="Only runs until then; a day is included.")
]
OfStatus: TypeAlias = Annotated[RunState | None, typer.Option("--status", help="Only runs of this status.")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run is listed when it fits all that is given; `None`: whatever it is."""

    scenario: str | None = None
    rig: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)  # by name; None: any value
    since: float | None = None  # Unix time, seconds
    until: float | None = None
    status: RunState | None = None

    def takes(self, listed: "Listed") -> bool:
        info = listed.info
        state = RunState.DIED if listed.died else RunState(str(info.status))
        return (
            self.scenario in (None, info.plan.scenario_name)
            and self.rig in (None, info.plan.rig_name)
            and (self.since is None or self.since <= info.started_at)
            and (self.until is None or info.started_at <= self.until)
            and self.status in (None, state)
            and all(name in info.tags and value in (None, info.tags[name]) for name, value in self.tags.items())
        )

    def __str__(self) -> str:
        """The options it was made of, for a message."""
        plain = (("scenario", self.scenario), ("rig", self.rig), ("status", self.status))
        words = [f"--{name} {value}" for name, value in plain if value is not None]
        words += [f"--tag {tag_text(name, value or '')}" for name, value in self.tags.items()]
        times = (("since", self.since), ("until", self.until))
        words += [f"--{name} {datetime.fromtimestamp(at):%Y-%m-%dT%H:%M}" for name, at in times if at is not None]
        return " ".join(words)


def wanted(
    scenario: str | None,
    rig: str | None,
    tags: Sequence[str] | None,
    since: str | None,
    until: str | None,
    status: RunState | None,
) -> Wanted:
    """What the options ask for. Raises `InputError`."""
    chosen: dict[str, str | None] = {}
    for given in tags or ():
        name, equals, value = given.partition("=")
        check_name(name, "--tag", reserved=False)
        chosen[name] = value.strip() if equals else None
    return Wanted(
        _plain(scenario),
        _plain(rig),
        chosen,
        None if since is None else instant(since, "--since"),
        None if until is None else instant(until, "--until", whole=True),
        status,
    )


def instant(given: str, option: str, *, whole: bool = False) -> float:
    """Unix seconds of `2026-11-22` or `2026-11-22T04:10`, local time; with `whole` of the end of that day or minute."""
    form = _INSTANT.fullmatch(given.strip())
    try:
        if form is None:
            raise ValueError(given)
        found = datetime.fromisoformat(given.strip())
        lasts_s = 1 if form["second"] else 60 if form["minute"] else 86400
        return (found + timedelta(seconds=lasts_s, microseconds=-1) if whole else found).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(f'{option} "{given}": is no date. Write it as 2026-11-22 or 2026-11-22T04:10') from None


def _plain(name: str | None) -> str | None:
    """A scenario or rig as runs have it: without folder and ending."""
    return None if name is None else Path(name).name.removesuffix(".yaml").removesuffix(".yml")
