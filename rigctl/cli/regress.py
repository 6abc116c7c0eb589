"""`rigctl regress`: what got slower or faster, since when, and what else changed then."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rigctl.cli.completion import scenario_names
from rigctl.cli.options import Bound, RunId, StoreAddress, Wait, wait_s

if TYPE_CHECKING:
    from rigctl.analysis.nights.regressions import Regressions
    from rigctl.records import RunInfo
    from rigctl.store import Store


def regress(
    run: RunId = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="RUN|TAG=VALUE|N",
            help="Compare with this run, the latest with this tag, or N nights (default: the nights of this level).",
        ),
    ] = None,
    bound: Bound = 2.0,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Measure the tests that changed once more, and believe only both.")
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="SCENARIO",
            help="With --confirm: the scenario file of the run (default: the run's scenario, here or bundled).",
            autocompletion=scenario_names,
        ),
    ] = None,
    form: Annotated[
        Literal["terminal", "json", "md", "junit"], typer.Option("--format", help="Print this format.")
    ] = "terminal",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="With --format md: the weightiest only, to fit into a comment.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE instead of printing.")
    ] = None,
    store: StoreAddress = None,
    wait: Wait = None,
) -> int:
    """Compare RUN with the nights before it: what changed, since when. Exit code 1 where something got worse."""
    from rigctl.analysis.nights.regressions import news
    from rigctl.base.errors import InputError
    from rigctl.model.statistics.changes import Rules
    from rigctl.store import open_store

    form = "json" if as_json else form
    if brief and form != "md":
        raise InputError(f"--brief: is for --format md, not {form}")
    rules, waiting_s = Rules(bound=bound / 100), wait_s(wait)
    with open_store(store, create=False) as opened:
        found = news(opened, night_of(opened, run), baseline=baseline, rules=rules)
        if confirm and found.to_confirm:
            found = _confirmed(found, opened, scenario, waiting_s)
    _tell(found, form, output, brief=brief)
    return int(found.failed)


def night_of(opened: "Store", run: str | None) -> "RunInfo":
    """The run that is meant; of one that confirms another, that one."""
    from rigctl.records import CONFIRMS

    info = opened.run(run)
    return opened.run(info.tags[CONFIRMS]) if CONFIRMS in info.tags else info


def _confirmed(found: "Regressions", opened: "Store", scenario: str | None, waiting_s: float) -> "Regressions":
    from rich.console import Console

    from rigctl.nightly.confirm import confirmed
    from rigctl.scenario.load import Overrides, load_plan

    stored = found.run.plan
    here = Path(f"{stored.scenario_name}.yaml")
    named = scenario or (str(here) if here.is_file() else stored.scenario_name)
    plan, rig = load_plan(named, Overrides.from_given(stored.overrides))
    return confirmed(found, plan, rig, opened, Console(stderr=True), waiting_s)


def _tell(found: "Regressions", form: str, output: Path | None, *, brief: bool) -> None:
    from rigctl.report.nights.page import as_markdown, document
    from rigctl.report.printers.files import write_whole

    if form == "terminal" and output is None:
        from rich.console import Console

        from rigctl.report.printers.terminal import print_document

        print_document(document(found), Console(), everything=True)
        return
    if form == "terminal":
        from rigctl.base.errors import InputError

        raise InputError("-o: is for --format json, md and junit")
    if form == "json":
        from rigctl.cli.regress_document import regress_json

        text = regress_json(found)
    elif form == "junit":
        from rigctl.report.nights.junit import as_junit

        text = as_junit(found)
    else:
        text = as_markdown(found, brief=brief)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        write_whole(output, text.encode())
