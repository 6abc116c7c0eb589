"""What `rigctl regress --format json` prints, as models: docs/schemas/regress.schema.json follows from them."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from pydantic import Field

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.setup_changes import RIG_FILE, SCENARIO_FILE, SetupChange, Source
from rigctl.analysis.nights.shifts import Shift, Suspected
from rigctl.cli.json_model import Instant, Model, instant
from rigctl.report.nights.page import document, name

Value: TypeAlias = str | int | float | bool | tuple[str, ...]

_OF_FILES: Final = {SCENARIO_FILE: "scenario", RIG_FILE: "rig file"}


class ChangedFact(Model):
    """Something of the rig that is not the same as in the run before."""

    node: str | None = Field(description="null: of the run as a whole, as the scenario, or a tag.")
    fact: str = Field(description="As in docs/reference/host-facts.md; sysctls and offloads by their names.")
    before: Value
    after: Value


class Compared(Model):
    """What a series is of."""

    name: str
    kind: Literal["test", "pair", "node"]
    tests: list[int] = Field(description="Numbers of the tests.")
    source: str | None = Field(description="Of a pair.")
    destination: str | None
    node: str | None
    role: Literal["sending", "receiving"] | None
    metric: str = Field(description="A column, in whose unit the levels are; of a node they are ratios.")


class ChangedLevel(Model):
    """A series that changed."""

    subject: Compared
    better: bool
    change_pct: float
    before: float
    after: float
    noise_pct: float = Field(description="Standard deviation from night to night, robust.")
    gradual: bool = Field(description="A step of a drift; since is about where it began.")
    since: str = Field(description="The first run on the new level.")
    since_at: Instant
    found: str = Field(description="The run in whose night it was found.")
    confirmed: bool = Field(description="That night was measured twice; false: several nights agree.")
    facts: list[ChangedFact] = Field(description="What changed since the last run on the old level.")
    explains: list[str] = Field(description="Names of pairs and tests that changed with it.")
    returns: str | None = Field(description="The level is again that before this run.")


class OneNight(Model):
    """A series whose last night differs, which one night does not decide."""

    subject: Compared
    better: bool
    change_pct: float
    level: float
    value: float
    confirmed: bool


class AcceptedLevels(Model):
    """The latest accepted levels."""

    run: str
    at: Instant
    who: str
    because: str


class RegressDocument(Model):
    """What is news in a run. Lists have the largest change first; `changes` are in the order of their dates."""

    version: Literal[1] = 1
    run: str
    scenario: str
    rig: str
    answer: str
    failed: bool = Field(description="Something is worse than the accepted level: exit code 1.")
    baseline: str | None = Field(description="The run that it was compared with; null: the nights before.")
    nights: int
    judged: int = Field(description="Series with enough nights.")
    too_few: int = Field(description="Series with too few.")
    bound_pct: float
    visible_pct: float | None = Field(
        description="In the noisiest test or pair a smaller change would not be found within seven nights."
    )
    confirmed_by: str | None = Field(description="The run that measured it again.")
    accepted: AcceptedLevels | None
    news: list[ChangedLevel]
    standing: list[ChangedLevel] = Field(description="Found in earlier runs and not accepted since.")
    one_night: list[OneNight]
    changes: list[ChangedLevel]


def regress_json(found: Regressions) -> str:
    kept = found.accepted
    made = RegressDocument(
        run=found.run.run,
        scenario=found.run.plan.scenario_name,
        rig=found.run.plan.rig_name,
        answer=document(found).answer,
        failed=found.failed,
        baseline=found.baseline and found.baseline.run,
        nights=len(found.nights.runs),
        judged=found.judged,
        too_few=found.too_few,
        bound_pct=round(100 * found.rules.bound, 6),
        visible_pct=None if found.visible is None else round(100 * found.visible, 3),
        confirmed_by=found.nights.confirmations.get(found.run.run),
        accepted=kept
        and AcceptedLevels(run=kept.run, at=instant(kept.accepted_at), who=kept.who, because=kept.because),
        news=_levels(found.news, found),
        standing=_levels(found.standing, found),
        one_night=[_one_night(own) for own in found.suspected],
        changes=_levels(found.history, found),
    )
    return made.model_dump_json(indent=1) + "\n"


def _levels(shifts: Sequence[Shift], found: Regressions) -> list[ChangedLevel]:
    return [
        ChangedLevel(
            subject=_subject(shift.series),
            better=shift.better,
            change_pct=round(100 * (shift.ratio - 1), 3),
            before=shift.change.before,
            after=shift.change.after,
            noise_pct=round(100 * shift.change.noise, 4),
            gradual=shift.change.gradual,
            since=shift.since.run,
            since_at=instant(shift.since.started_at),
            found=found.nights.runs[shift.found].run,
            confirmed=shift.confirmed,
            facts=[fact for change in shift.facts for fact in _facts(change)],
            explains=[name(own.series) for own in shift.explains],
            returns=shift.returns and shift.returns.run,
        )
        for shift in shifts
    ]


def _facts(change: SetupChange) -> list[ChangedFact]:
    """One for each node."""
    before, after = ("" if value is None else value for value in (change.before, change.after))
    nodes = change.where or (None,)
    return [ChangedFact(node=node, fact=_fact_name(change), before=before, after=after) for node in nodes]


def _fact_name(change: SetupChange) -> str:
    if change.source is Source.TAG:
        return f"tag {change.name}"
    if change.source is Source.RIG and change.name.startswith("link "):
        return f"rig file: {change.name.removeprefix('link ')}"
    return _OF_FILES.get(change.name, change.name)


def _one_night(own: Suspected) -> OneNight:
    seen = own.suspicion
    return OneNight(
        subject=_subject(own.series),
        better=own.better,
        change_pct=round(100 * (seen.ratio - 1), 3),
        level=seen.level,
        value=seen.value,
        confirmed=seen.confirmed,
    )


def _subject(series: NightSeries) -> Compared:
    subject = series.subject
    stream = subject.stream or (series.cell.streams[0] if subject.node is None and _single(series) else None)
    return Compared(
        name=name(series),
        kind="node" if subject.node is not None else "test" if stream is None else "pair",
        tests=list(series.tests),
        source=stream and stream.sender,
        destination=stream and stream.receiver,
        node=subject.node,
        role=subject.role,
        metric=subject.metric.name,
    )


def _single(series: NightSeries) -> bool:
    return len(series.cell.streams) == 1
