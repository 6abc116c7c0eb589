"""Compare RUN with the nights before it: what changed, since when.

Exit code 1 if something got worse.

Examples:
  rigctl regress
  rigctl regress --baseline firmware=1.2 --confirm
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer
from pydantic import BeforeValidator, Field, ValidationInfo
from rich.console import Console

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.regressions import Regressions, judge_run
from rigctl.analysis.nights.setup_changes import RIG_FILE, SCENARIO_FILE, ChangeSource, SetupChange
from rigctl.base.errors import InputError
from rigctl.cli import options
from rigctl.cli.options import FORMAT, BoundOption, JsonFormat, OutputFile, RunId, StoreAddress, Wait
from rigctl.cli.output import InPercent, LengthOf, Model, UtcText, Versioned, at, in_percent, of, write_output
from rigctl.cli.results.accept import night_of
from rigctl.model.statistics.changes import Rules
from rigctl.records import RunInfo
from rigctl.report.printers.terminal import print_document
from rigctl.report.regressions import MOST_ROWS_SHOWN, as_junit, as_markdown, regressions_document, series_name
from rigctl.scenario.load import Overrides, load_plan
from rigctl.store import Store, open_store


def show_regressions(
    run: RunId = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="RUN|TAG=VALUE|N",
            help="Compare with a run, the latest with a tag, or the last N nights (default: since the last accept).",
        ),
    ] = None,
    bound: BoundOption = 2.0,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm", help="Measure the changed tests again; report only changes that both measurements show."
        ),
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="SCENARIO",
            help="With --confirm: the scenario file of the run (default: the run's scenario, here or bundled).",
            autocompletion=options.complete_scenario,
        ),
    ] = None,
    form: Annotated[Literal["terminal", "json", "md", "junit"], FORMAT] = "terminal",
    as_json: JsonFormat = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="With --format md: only the most important changes, to fit into a comment.")
    ] = False,
    output: OutputFile = None,
    store: StoreAddress = None,
    wait: Wait = None,
) -> int:
    form = "json" if as_json else form
    if brief and form != "md":
        raise InputError(f"--brief: is for --format md, not {form}")
    rules, waiting_s = Rules(bound=bound / 100), options.parse_wait(wait)
    with open_store(store, create=False) as opened:
        found = judge_run(opened, night_of(opened, run), baseline=baseline, rules=rules)
        if confirm and found.to_confirm:
            found = _confirm(found, opened, scenario, waiting_s)
    _print(found, form, output, brief=brief)
    return int(found.failed)


def _confirm(found: Regressions, opened: Store, scenario: str | None, waiting_s: float) -> Regressions:
    from rigctl.nightly.confirm import confirm_night  # only --confirm needs the modules of a run

    stored = found.run.plan
    here = Path(f"{stored.scenario_name}.yaml")
    named = scenario or (str(here) if here.is_file() else stored.scenario_name)
    plan, rig = load_plan(named, Overrides.from_given(stored.overrides))
    return confirm_night(found, plan, rig, opened, Console(stderr=True), waiting_s)


def _print(found: Regressions, form: str, output: Path | None, *, brief: bool) -> None:
    markdown = partial(as_markdown, brief=brief)
    formats: dict[str, Callable[[Regressions], str]] = {"json": regress_json, "junit": as_junit, "md": markdown}
    if form != "terminal":
        write_output(formats[form](found), output)
    elif output is not None:
        raise InputError("-o: is for --format json, md and junit")
    else:
        print_document(regressions_document(found, MOST_ROWS_SHOWN), Console())


_Value: TypeAlias = str | int | float | bool | tuple[str, ...]
_OF_FILES: Final = {SCENARIO_FILE: "scenario", RIG_FILE: "rig file"}


class ChangedFact(Model):
    """A host fact, a file or a tag that changed from one run to the next."""

    node: str | None = Field(description="null: the fact belongs to the whole run, as the scenario or a tag.")
    fact: str = Field(description="Name as in docs/reference/host-facts.md, or of a sysctl or offload.")
    before: _Value
    after: _Value


def _facts(changes: tuple[SetupChange, ...]) -> list[dict[str, Any]]:
    facts = []
    for change in changes:
        before, after = ("" if value is None else value for value in (change.before, change.after))
        for node in change.where or (None,):
            facts.append({"node": node, "fact": _fact_name(change), "before": before, "after": after})
    return facts


def _fact_name(change: SetupChange) -> str:
    if change.source is ChangeSource.TAG:
        return f"tag {change.name}"
    if change.source is ChangeSource.RIG and change.name.startswith("link "):
        return f"rig file: {change.name.removeprefix('link ')}"
    return _OF_FILES.get(change.name, change.name)


class Compared(Model):
    """The test, pair or node that a series belongs to."""

    name: str
    kind: Literal["test", "pair", "node"]
    tests: list[int] = Field(description="Numbers of the tests.")
    source: str | None = Field(description="Sender of a pair; null for a test or node.")
    destination: str | None
    node: str | None
    role: Literal["sending", "receiving"] | None
    metric: str = Field(description="Column of exports with the unit of levels; of a node: ratios to its usual level.")


def _subject_of(series: NightSeries) -> dict[str, Any]:
    subject = series.subject
    single = subject.node is None and len(series.cell.streams) == 1
    stream = subject.stream or (series.cell.streams[0] if single else None)
    return {
        "name": series_name(series),
        "kind": "node" if subject.node is not None else "test" if stream is None else "pair",
        "tests": series.tests,
        "source": stream and stream.sender,
        "destination": stream and stream.receiver,
        "node": subject.node,
        "role": subject.role,
        "metric": subject.metric.name,
    }


def _run_of_night(night: int, validated: ValidationInfo) -> str:
    runs: Sequence[RunInfo] = validated.context or ()
    return runs[night].run


_Subject = Annotated[Compared, BeforeValidator(_subject_of)]
_ChangePct = Annotated[float, BeforeValidator(lambda ratio: in_percent(ratio - 1, 3))]
_RunId = Annotated[str | None, of("run")]


class ChangedLevel(Model):
    """A change of a series (a figure over the nights) from one level to another."""

    subject: _Subject = at("series")
    better: bool
    change_pct: _ChangePct = at("ratio")
    before: float = at("change.before")
    after: float = at("change.after")
    noise_pct: Annotated[float, BeforeValidator(lambda noise: in_percent(noise, 4))] = at(
        "change.noise", "Robust standard deviation of the values from night to night, in percent."
    )
    gradual: bool = at("change.gradual", "true: a slow drift; `since` is about where the drift began.")
    since: str = at("since.run", "The first run on the new level.")
    since_at: UtcText = at("since.started_at")
    found: Annotated[str, BeforeValidator(_run_of_night)] = Field(
        description="The run with which the change was found."
    )
    confirmed: bool = Field(description="true: a second measurement of that night agreed; false: several nights agree.")
    facts: Annotated[list[ChangedFact], BeforeValidator(_facts)] = Field(
        description="What changed since the last run on the old level."
    )
    explains: Annotated[list[str], BeforeValidator(lambda shifts: [series_name(own.series) for own in shifts])] = Field(
        description="Names of the pairs and tests whose changes follow from this change."
    )
    returns: _RunId = Field(description="The run whose change is undone (the level is as before that run); null: none.")


class OneNight(Model):
    """A series whose last night differs from its level. One night alone does not count as a change."""

    subject: _Subject = at("series")
    better: bool
    change_pct: _ChangePct = at("ratio")
    level: float = at("change.before")
    value: float = at("change.after")
    confirmed: bool


class WeeklyPattern(Model):
    """A series that is off on certain weekdays since at least four weeks. It is no change and never fails a run."""

    subject: _Subject = at("series")
    weekdays: Annotated[list[int], BeforeValidator(lambda ratios: [weekday + 1 for weekday in ratios])] = at(
        "pattern.ratios", "ISO weekdays, 1 is Monday, of local time."
    )
    change_pct: _ChangePct = at("pattern.ratio")
    since: str = at("since.run", "The first run in the pattern.")
    new: bool = Field(description="true: this run completed the pattern.")


class AcceptedLevels(Model):
    """The run whose levels were accepted last, and who accepted them."""

    run: str
    at: UtcText = at("accepted_at")
    who: str
    because: str


class RegressDocument(Versioned):
    """The changes that a run shows.

    Lists have changes for the worse first, each sorted by size; `changes` are in the order of their dates.
    """

    run: str = at("found.run.run")
    scenario: str = at("found.run.plan.scenario_name")
    rig: str = at("found.run.plan.rig_name")
    answer: str
    failed: bool = at("found.failed", "true: a level is worse than the accepted level (exit code 1).")
    baseline: _RunId = at("found.baseline", "Run of --baseline; null: compared with the nights before.")
    nights: LengthOf = at("found.nights.runs")
    judged: int = at("found.judged", "Number of series (figures over the nights) with enough nights for a verdict.")
    too_few: int = at("found.too_few", "Number of series with too few nights.")
    bound_pct: InPercent = at("found.rules.bound")
    visible_pct: Annotated[float, BeforeValidator(lambda share: in_percent(share, 3))] | None = at(
        "found.visible", "Smallest change that is found within seven nights even in the noisiest test or pair."
    )
    confirmed_by: str | None = Field(description="The run that repeated the measurement (--confirm).")
    accepted: AcceptedLevels | None = at("found.accepted")
    markdown: str = Field(description="The most important changes, as `--format md --brief` prints them.")
    news: list[ChangedLevel] = at("found.news")
    standing: list[ChangedLevel] = at("found.standing", "Changes found in earlier runs and not accepted since.")
    one_night: list[OneNight] = at("found.suspected")
    changes: list[ChangedLevel] = at("found.history")
    weekly: list[WeeklyPattern] = at("found.weekly", "Weekly patterns, which are no changes.")


def regress_json(found: Regressions) -> str:
    text = RegressDocument.text_of(
        context=found.nights.runs,
        indent=1,
        found=found,
        answer=regressions_document(found).answer,
        markdown=as_markdown(found, brief=True),
        confirmed_by=found.nights.confirmations.get(found.run.run),
    )
    return f"{text}\n"
