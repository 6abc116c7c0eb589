"""What `compare --json` prints, as a model: the JSON Schema follows from it. docs/reference/json.md explains it."""

from typing import Any, Literal

from pydantic import Field

from rigctl.analysis.nights.comparison import Change, Comparison
from rigctl.analysis.nights.setup_changes import Value
from rigctl.cli.documents import Variants, variants_of
from rigctl.cli.json_model import Model
from rigctl.records import Cell, RunInfo
from rigctl.report.blocks import Document
from rigctl.report.printers.json import JsonFinding, finding_as_json
from rigctl.report.words.text import settings_text


class ComparedRun(Model):
    """One of both runs."""

    run: str
    title: str
    scenario: str
    rig: str
    tags: dict[str, str]


class ComparedStream(Model):
    source: str
    destination: str
    direction: str


class ComparedFigure(Model):
    """One figure of a test in both runs. Changes are percent of the value before."""

    test: int = Field(description="Number of the test in run B.")
    test_before: int = Field(description="Its number in run A.")
    settings: str
    stream: ComparedStream | None = Field(description="null: the test as a whole.")
    figure: str = Field(description="A column of docs/reference/columns.md, in whose unit the values are.")
    higher_is_better: bool
    before: list[float] = Field(description="Of each repetition that counts.")
    after: list[float]
    change_pct: float | None = Field(description="Of the medians.")
    low_pct: float | None = Field(description="The interval of the change.")
    high_pct: float | None
    verdict: Literal["better", "worse", "same", "inconclusive", "invalid"]
    same_within_pct: float | None = Field(description="Of the verdict same: the bound that the repetitions support.")
    visible_from_pct: float | None = Field(description="The smallest change that could have been seen.")
    chance: float | None = Field(description="How probable such a difference is by chance, corrected for many tests.")
    reason: str | None = Field(description="Of the verdict invalid.")


class OneSidedTest(Model):
    """A test that only one of the runs has."""

    test: int
    settings: str


class DifferentFact(Model):
    """Something that differs beside the figures."""

    source: Literal["scenario", "rig", "granted", "fact", "version", "tag"]
    name: str
    where: list[str] = Field(description="Nodes, or numbers of tests; empty: all.")
    before: float | int | str | bool | None
    after: float | int | str | bool | None


class CompareDocument(Model):
    """Two runs compared, or the two variants of one."""

    version: Literal[1] = 1
    before: ComparedRun
    after: ComparedRun
    against: Variants | None = Field(description="null: two runs.")
    bound_pct: float
    worse: bool = Field(description="The exit code is then 1.")
    findings: list[JsonFinding]
    tests: list[ComparedFigure] = Field(description="The largest change first.")
    streams: list[ComparedFigure] = Field(description="Of tests with several pairs or directions, each.")
    only_before: list[OneSidedTest]
    only_after: list[OneSidedTest]
    differs: list[DifferentFact]


def compare_json(comparison: Comparison, document: Document) -> str:
    one_run = comparison.before.run == comparison.after.run
    return CompareDocument(
        before=_run(comparison.before),
        after=_run(comparison.after),
        against=variants_of(comparison.after.plan) if one_run else None,
        bound_pct=100 * comparison.bound,
        worse=comparison.worse,
        findings=[finding_as_json(finding) for finding in document.findings],
        tests=[_figure(change) for change in comparison.tests],
        streams=[_figure(change) for change in comparison.streams],
        only_before=[_test(cell) for cell in comparison.only_before],
        only_after=[_test(cell) for cell in comparison.only_after],
        differs=[
            DifferentFact(
                source=change.source.value,
                name=change.name,
                where=[] if change.everywhere else list(change.where),
                before=_plain(change.before),
                after=_plain(change.after),
            )
            for change in comparison.differs
        ],
    ).model_dump_json(indent=2)


def _plain(value: Value) -> float | int | str | bool | None:
    return " ".join(value) if isinstance(value, tuple) else value


def _run(info: RunInfo) -> ComparedRun:
    plan = info.plan
    return ComparedRun(
        run=info.run, title=plan.title, scenario=plan.scenario_name, rig=plan.rig_name, tags=dict(info.tags)
    )


def _figure(change: Change) -> ComparedFigure:
    found, stream = change.difference, change.stream
    values: dict[str, Any] = {
        "change_pct": found.change,
        "low_pct": found.low,
        "high_pct": found.high,
        "same_within_pct": found.within if found.verdict.value == "same" else None,
        "visible_from_pct": found.seeable,
    }
    return ComparedFigure(
        test=change.cell.number,
        test_before=change.before.cell.number,
        settings=settings_text(change.cell, "names"),
        stream=stream
        and ComparedStream(
            source=stream.pair.source, destination=stream.pair.destination, direction=str(stream.direction)
        ),
        figure=change.metric.name,
        higher_is_better=change.metric.higher_is_better,
        before=list(change.before.values),
        after=list(change.after.values),
        verdict=found.verdict.value,
        chance=found.chance,
        reason=change.reason,
        **{name: None if share is None else round(100 * share, 6) for name, share in values.items()},
    )


def _test(cell: Cell) -> OneSidedTest:
    return OneSidedTest(test=cell.number, settings=settings_text(cell, "names"))
