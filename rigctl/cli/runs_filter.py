"""Which of the stored runs `rigctl runs` lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from rigctl.cli.runs_table import Listed
from rigctl.cli.tags import check_name
from rigctl.errors import InputError
from rigctl.records import tag_text

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LAST_MICROSECOND: Final = timedelta(days=1) - timedelta(microseconds=1)


class RunState(StrEnum):
    """What `--status` takes: a run's status, or what became of one that was never finished."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    INTERRUPTED = "interrupted"
    RUNNING = "running"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run is listed when it fits all that is given; `None`: whatever it is."""

    scenario: str | None = None
    rig: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)  # by name; None: any value
    since: float | None = None  # Unix time, seconds
    until: float | None = None
    status: RunState | None = None

    def takes(self, listed: Listed) -> bool:
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
        None if until is None else instant(until, "--until", whole_day=True),
        status,
    )


def instant(given: str, option: str, *, whole_day: bool = False) -> float:
    """Unix seconds of `2026-11-22` (its beginning, or with `whole_day` its end) or `2026-11-22T04:10`, local time."""
    try:
        found = datetime.fromisoformat(given.strip())
        if whole_day and _DAY.fullmatch(given.strip()):
            found += _LAST_MICROSECOND
        return found.timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(f'{option} "{given}": is no date. Write it as 2026-11-22 or 2026-11-22T04:10') from None


def _plain(name: str | None) -> str | None:
    """A scenario or rig as runs have it: without folder and ending."""
    return None if name is None else Path(name).name.removesuffix(".yaml").removesuffix(".yml")
