"""Compare run B with run A test by test; exit with 1 if something got worse.

Examples:
  rigctl compare
  rigctl compare 20261121 latest -o change.html
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer
from pydantic import BeforeValidator, Field
from rich.console import Console

from rigctl.analysis.nights.comparison import RunComparison, compare_runs, compare_variants
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.cli.options import FORMAT, BoundOption, JsonFormat, StoreAddress, complete_run
from rigctl.cli.output import InPercent, Model, Variants, Versioned, at, in_percent, write_output
from rigctl.findings.text import settings_text
from rigctl.model.statistics.comparing import Change, Comparison
from rigctl.records import RunInfo, RunStatus
from rigctl.report.blocks import Document
from rigctl.report.comparison import comparison_document
from rigctl.report.printers.html import page
from rigctl.report.printers.json import JsonFinding, finding_json
from rigctl.report.printers.markdown import markdown
from rigctl.report.printers.terminal import print_document
from rigctl.results.read import read_results
from rigctl.store import Store, open_store

_Format: TypeAlias = Literal["terminal", "html", "md", "json"]
_BY_ENDING: Final[dict[str, _Format]] = {".html": "html", ".htm": "html", ".md": "md", ".json": "json"}


def compare_two_runs(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="Id of the earlier run, or latest~N (default: the run before B with the same scenario and rig). If B "
            "is not given and A is a run with --against, compare its variants.",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="Id of the later run, or latest~N (default: latest).",
            autocompletion=complete_run,
            show_default=False,
        ),
    ] = None,
    form: Annotated[_Format, FORMAT] = "terminal",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file, in the format of its ending."),
    ] = None,
    bound: BoundOption = 2.0,
    as_json: JsonFormat = False,
    store: StoreAddress = None,
) -> int:
    form = "json" if as_json else form
    if output is not None and form == "terminal":
        if output.suffix.lower() not in _BY_ENDING:
            raise InputError(f"{output}: the ending names no format. Give --format html, md or json")
        form = _BY_ENDING[output.suffix.lower()]
    with open_store(store, create=False) as opened:
        comparison = _comparison(opened, before, after, bound / 100)
    _put(comparison, form, output)
    return int(comparison.worse)


def _comparison(opened: Store, before: str | None, after: str | None, bound: float) -> RunComparison:
    if after is None:
        first = opened.run(before)
        if first.plan.against is not None:
            return compare_variants(_view(opened, first), bound)
    second = opened.run(after)
    first = _previous(opened, second) if before is None else opened.run(before)
    if first.run == second.run:
        raise InputError(f"run {second.run} is both A and B. Name two runs; `rigctl runs` lists them")
    return compare_runs(_view(opened, first), _view(opened, second), bound)


def _previous(opened: Store, run: RunInfo) -> RunInfo:
    """Return the latest ended run before `run` with the same scenario and rig. Raise `InputError` if there is none."""
    kind = (run.plan.scenario_name, run.plan.rig_name)
    for info in opened.latest_first({}):
        ended = info.run < run.run and info.status is not RunStatus.RUNNING
        if ended and (info.plan.scenario_name, info.plan.rig_name) == kind:
            return info
    raise InputError(f"no run of {kind[0]} on {kind[1]} before {run.run}. Name two runs; `rigctl runs` lists them")


def _view(opened: Store, info: RunInfo) -> RunView:
    return RunView(read_results(opened, info))


def _put(comparison: RunComparison, form: _Format, output: Path | None) -> None:
    document = comparison_document(comparison)
    if form == "terminal":
        print_document(document, Console())
        return
    formats: dict[str, Callable[[Document], str]] = {"html": page, "md": markdown}
    write_output(compare_json(comparison, document) if form == "json" else formats[form](document), output)
    if output is not None:
        print(output.resolve())


class ComparedRun(Model):
    """One of the two runs that are compared."""

    run: str
    title: str = at("plan.title")
    scenario: str = at("plan.scenario_name")
    rig: str = at("plan.rig_name")
    tags: dict[str, str]


class ComparedStream(Model):
    source: str = at("pair.source")
    destination: str = at("pair.destination")
    direction: str


def _same_within(change: Change) -> float | None:
    return None if change.verdict is not Comparison.SAME or change.within is None else in_percent(change.within)


_Settings = Annotated[str, BeforeValidator(lambda cell: settings_text(cell, "names"))]
_Words = Annotated[
    float | int | str | bool | None,
    BeforeValidator(lambda value: " ".join(value) if isinstance(value, tuple) else value),
]


class ComparedFigure(Model):
    """One figure of a test in both runs. Changes are in percent of the value in run A."""

    test: int = at("cell.number", "Number of the test in run B.")
    test_before: int = at("before.cell.number", "Number of the test in run A.")
    settings: _Settings = at("cell")
    stream: ComparedStream | None = Field(description="null: the test as a whole.")
    figure: str = at("metric.name", "A column of docs/reference/columns.md, which gives the unit.")
    higher_is_better: bool = at("metric.higher_is_better")
    before: list[float] = at("before.values", "The value of each valid repetition.")
    after: list[float] = at("after.values")
    change_pct: InPercent | None = at("change.share", "Change of the median.")
    low_pct: InPercent | None = at("change.low", "Lower end of the confidence interval of the change.")
    high_pct: InPercent | None = at("change.high")
    verdict: Literal["better", "worse", "same", "inconclusive", "invalid"] = at("change.verdict")
    same_within_pct: Annotated[float | None, BeforeValidator(_same_within)] = at(
        "change", "Largest difference that the data allow; null if verdict is not same."
    )
    visible_from_pct: InPercent | None = at(
        "change.seeable", "Smallest change that these repetitions can detect; null: too few for a verdict."
    )
    chance: float | None = at("change.chance", "p value of the difference, corrected for the number of tests.")
    reason: str | None = Field(description="Why the verdict is invalid.")


class OneSidedTest(Model):
    """A test that only one of the runs has."""

    test: int
    settings: str


class DifferentFact(Model):
    """A difference in the setup of the runs: in scenario, rig, host facts, versions or tags."""

    source: Literal["scenario", "rig", "granted", "fact", "version", "tag"]
    name: str
    where: list[str] = Field(description="Names of nodes, or the tests' numbers, that differ; empty: all.")
    before: _Words
    after: _Words


_OneSided = Annotated[
    OneSidedTest, BeforeValidator(lambda cell: {"test": cell.number, "settings": settings_text(cell, "names")})
]
_Different = Annotated[
    DifferentFact, BeforeValidator(lambda change: replace(change, where=()) if change.everywhere else change)
]


class CompareDocument(Versioned):
    """Comparison of two runs, or of the two variants of one run."""

    before: ComparedRun = at("compared.before")
    after: ComparedRun = at("compared.after")
    against: Variants | None = at("compared.against", "null: two runs.")
    bound_pct: InPercent = at("compared.bound")
    worse: bool = at("compared.worse", "The exit code is then 1.")
    findings: list[Annotated[JsonFinding, BeforeValidator(finding_json)]]
    tests: list[ComparedFigure] = at("compared.tests", "The largest change first.")
    streams: list[ComparedFigure] = at("compared.streams", "Changes per pair and direction, if a test has several.")
    only_before: list[_OneSided] = at("compared.only_before")
    only_after: list[_OneSided] = at("compared.only_after")
    differs: list[_Different] = at("compared.differs")


def compare_json(comparison: RunComparison, document: Document) -> str:
    return CompareDocument.text_of(compared=comparison, findings=document.findings) + "\n"
