"""Listing and choosing stored runs: run states, the options that filter runs, and tags given as NAME=VALUE."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from rigctl.base.errors import InputError, RigError
from rigctl.base.texts import printable
from rigctl.cli.options import complete_rig, complete_scenario
from rigctl.records import ANSWER, CONTROL, OWN_TAGS, RunInfo, RunStatus, tag_text
from rigctl.runner.resume import Fate, fate
from rigctl.store import Store, open_store

if TYPE_CHECKING:
    from rigctl.analysis.run_view import RunView
    from rigctl.report.blocks import Document

_MOST_NAME: Final = 64  # characters; the width of the column in rigctl.store.schema
_MOST_VALUE: Final = 200
_TAG_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ](?P<minute>\d\d:\d\d)(?P<second>:\d\d)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII
)


RunState: TypeAlias = Literal["complete", "partial", "interrupted", "running", "died"]
"""A value of `--status`: the stored status of a run, or `died` if its process ended without finishing it."""


@dataclass(frozen=True, slots=True)
class RunInList:
    """A stored run. `measured` has the number of its tests by status; `fate` tells whether its process is alive."""

    info: RunInfo
    measured: Mapping[str, int]
    fate: Fate
    now: float  # Unix seconds

    @property
    def age_s(self) -> float:
        return max(0.0, self.now - self.info.started_at)

    @property
    def state(self) -> RunState:
        return "died" if self.has_died else self.info.status.value

    @property
    def may_run(self) -> bool:
        """Tell whether the run is unfinished and its process may still be alive."""
        return self.info.status is RunStatus.RUNNING and self.has_died is not True

    @property
    def has_died(self) -> bool | None:
        """Tell whether an unfinished run's process is gone; None if the process is unknown and the run is overdue."""
        if self.info.status is not RunStatus.RUNNING or self.fate is Fate.ALIVE:
            return False
        if self.fate is Fate.GONE:
            return True
        planned_s = self.info.plan.repeat * sum(cell.duration_s for cell in self.info.plan.cells)
        return None if self.age_s > 2 * planned_s + 300 else False  # such a run has most likely died


def list_stored_runs(opened: Store) -> tuple[list[RunInList], list[str]]:
    """Return the readable runs, the earliest first, and a message for each run that cannot be read."""
    damaged: dict[str, str] = {}
    infos = list(opened.latest_first(damaged))[::-1]
    measured, controllers, now = opened.measured(), opened.controllers(), time.time()
    runs = [RunInList(info, measured.get(info.run, {}), fate(controllers.get(info.run)), now) for info in infos]
    return runs, list(damaged.values())[::-1]


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a run must meet to be listed; None: no such condition."""

    scenario: str | None = None
    rig: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)  # maps the name of a tag to its value; None: any value
    since: float | None = None  # Unix time, seconds
    until: float | None = None
    status: RunState | None = None

    def fit(self, stored: RunInList) -> bool:
        info = stored.info
        return (
            self.scenario in (None, info.plan.scenario_name)
            and self.rig in (None, info.plan.rig_name)
            and (self.since is None or self.since <= info.started_at)
            and (self.until is None or info.started_at <= self.until)
            and self.status in (None, stored.state)
            and all(name in info.tags and value in (None, info.tags[name]) for name, value in self.tags.items())
        )

    def __str__(self) -> str:
        plain = (("scenario", self.scenario), ("rig", self.rig), ("status", self.status))
        words = [f"--{name} {value}" for name, value in plain if value is not None]
        words += [f"--tag {tag_text(name, value or '')}" for name, value in self.tags.items()]
        times = (("since", self.since), ("until", self.until))
        words += [f"--{name} {datetime.fromtimestamp(at):%Y-%m-%dT%H:%M}" for name, at in times if at is not None]
        return " ".join(words)


ANY_RUN: Final = Filters()


def read_filters(
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario", metavar="NAME", help="Only runs of this scenario.", autocompletion=complete_scenario
        ),
    ] = None,
    rig: Annotated[
        str | None, typer.Option("--rig", metavar="NAME", help="Only runs on this rig.", autocompletion=complete_rig)
    ] = None,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="NAME[=VALUE]", help="Only runs with this tag, or with all if repeated."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only runs since this time, as 2026-11-22[T04:10].")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="Only runs until this time, or the end of this day.")
    ] = None,
    status: Annotated[RunState | None, typer.Option("--status", help="Only runs of this status.")] = None,
) -> Filters:
    """Return the filters that the options give. Raises `InputError` for a malformed tag or date."""
    chosen: dict[str, str | None] = {}
    for given in tags or ():
        name, equals, value = given.partition("=")
        check_tag_name(name, "--tag", reserved=False)
        chosen[name] = value.strip() if equals else None
    return Filters(
        _name_in_store(scenario),
        _name_in_store(rig),
        chosen,
        None if since is None else parse_instant(since, "--since"),
        None if until is None else parse_instant(until, "--until", whole=True),
        status,
    )


def parse_instant(given: str, option: str, *, whole: bool = False) -> float:
    """Return a local time as Unix seconds; with `whole`, the end of its day, minute or second. Raises `InputError`."""
    form = _INSTANT.fullmatch(given.strip())
    try:
        if form is None:
            raise ValueError(given)
        at = datetime.fromisoformat(given.strip())
        lasts_s = 1 if form["second"] else 60 if form["minute"] else 86400
        return (at + timedelta(seconds=lasts_s, microseconds=-1) if whole else at).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(f'{option} "{given}": is no date. Write it as 2026-11-22 or 2026-11-22T04:10') from None


def _name_in_store(name: str | None) -> str | None:
    return None if name is None else Path(name).name.removesuffix(".yaml").removesuffix(".yml")


def parse_tags(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return values of tags by name, from texts `NAME=VALUE` or `NAME` (value ""). `option` is for error messages."""
    tags: dict[str, str] = {}
    for text in given or ():
        name, _, value = text.partition("=")
        value = value.strip()
        check_tag_name(name, option)
        if len(value) > _MOST_VALUE or printable(value) != value:
            raise InputError(
                f"{option} {name}=…: a value is one line of at most {_MOST_VALUE} characters, as in firmware=1.2.3"
            )
        if tags.get(name, value) != value:
            raise InputError(f'{option} {name}: is given twice, as "{tags[name]}" and "{value}". Name it once')
        tags[name] = value
    return tags


def check_tag_name(name: str, option: str, reserved: bool = True) -> None:
    """Raise `InputError` for an invalid tag name; with `reserved`, also for a name that rigctl sets itself."""
    if len(name) > _MOST_NAME or not _TAG_NAME.fullmatch(name):
        shown = printable(name[: _MOST_NAME + 1])
        raise InputError(
            f'{option} "{shown}": is no tag. A tag is NAME=VALUE; its name has letters, digits, ".", "_" and "-", '
            f"at most {_MOST_NAME}, as in firmware=1.2.3"
        )
    if reserved and name.lower().startswith(OWN_TAGS):
        raise InputError(f'{option} {name}: names that begin with "{OWN_TAGS}" are for rigctl itself. Choose another')


def read_view(opened: Store, reference: str | None) -> "RunView":
    """Return a stored run with its results, and with its control if the store has it."""
    from rigctl.analysis.run_view import RunView  # imports numpy, which a list of runs does not need
    from rigctl.results.read import read_results

    view = RunView(read_results(opened, opened.run(reference)))
    control = view.info.tags.get(CONTROL)
    if control in opened.run_ids():
        view.control = RunView(read_results(opened, opened.run(control)))
    return view


@contextmanager
def readable_store(opened: Store, runs: Sequence[str], *, anonymous: bool, together: bool = False) -> "Iterator[Store]":
    """Yield the store, or with `anonymous` a store in memory with anonymous copies of these runs.

    The letters of a run do not depend on the other runs; with `together`, a node has the same letter in all runs.
    """
    if not anonymous:
        yield opened
        return
    from rigctl.records.anonymous import Anonymizer

    letters = Anonymizer()
    with open_store("sqlite://") as copies:
        for run in runs:
            letters = letters if together else Anonymizer()
            info = opened.run(run)
            own = letters.info(info)
            cells = (cell.number for cell in info.plan.cells)
            each = (repetition for cell in cells for repetition in opened.repetitions(run, cells=[cell]))
            copies.put(own, map(letters.repetition, each))
        yield copies


def store_answer(opened: Store, run: str, report: "Document") -> None:
    """Store the short answer of a report with its run, for the list of runs; on a full disk the list lacks it."""
    with suppress(RigError):
        opened.history.tag(run, {ANSWER: report.findings[0].brief or report.answer})
