"""`rigctl check`: everything that can be known of a rig before traffic, as findings; 3 on an error."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rigctl.base.errors import InputError, RigError
from rigctl.cli.completion import rig_names, scenario_names
from rigctl.cli.options import Json, RigFile, RigSets, Sets

if TYPE_CHECKING:
    from rich.console import Console

    from rigctl.check.records import Seen
    from rigctl.findings import Finding
    from rigctl.records import RunPlan
    from rigctl.rig.inventory import Rig

_STYLES: Final = {"error": "red", "warning": "yellow"}


def _names(incomplete: str) -> list[str]:
    return sorted({*scenario_names(incomplete), *rig_names(incomplete)})


def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RIG|SCENARIO",
            help="A rig file or a scenario file, or the name of a bundled one (of both: the scenario).",
            autocompletion=_names,
        ),
    ],
    rig: RigFile = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    every: Annotated[bool, typer.Option("--all", help="Show what is in order, too.")] = False,
    as_json: Json = False,
) -> int:
    """Check a rig before traffic: access, links, MTU of the paths, firewalls, settings. Exit code 3 on an error."""
    from rich.console import Console

    from rigctl.check.judge import judged
    from rigctl.findings import Severity

    plan, inventory = _meant(what, rig, tuple(rig_sets or ()), tuple(sets or ()))
    seen = asyncio.run(_seen(plan, inventory))
    findings = judged(seen)
    if as_json:
        from rigctl.cli.check_document import check_json

        print(check_json(seen, findings))
    else:
        _print(seen, findings, Console(highlight=False, markup=False, soft_wrap=True), every=every)
    return RigError.exit_code if any(finding.level is Severity.ERROR for finding in findings) else 0


def _meant(
    what: str, rig: str | None, rig_sets: tuple[str, ...], sets: tuple[str, ...]
) -> "tuple[RunPlan | None, Rig]":
    """The plan and rig of a scenario, or a rig alone. Raises `InputError`."""
    from rigctl.rig.schema import bundled_folder, bundled_rigs, load_rig
    from rigctl.scenario.load import Overrides, bundled_scenarios, find_scenario, load_plan
    from rigctl.yamlfile import find, read_document

    if what in bundled_rigs() and what not in bundled_scenarios():
        path = find(what, what="rig", bundled=bundled_folder())
    else:
        try:
            path = find_scenario(what)
        except InputError as error:
            raise InputError(f"{error} Bundled rigs: {', '.join(bundled_rigs())}.") from error
    if not {"nodes", "slurm"} & read_document(path).data.keys():
        return load_plan(str(path), Overrides(rig, sets, rig_sets=rig_sets))
    if rig is not None or sets:
        raise InputError(f"{what}: is a rig file. --rig and --set are for scenarios; --rig-set is for both")
    return None, load_rig(str(path), sets=rig_sets)


async def _seen(plan: "RunPlan | None", inventory: "Rig") -> "Seen":
    from rigctl.check.gather import gathered
    from rigctl.runner.run import holder
    from rigctl.virtual import provided

    async with provided(inventory) as reachable:
        return await gathered(reachable, plan, holder())


def _print(seen: "Seen", findings: "tuple[Finding, ...]", console: "Console", *, every: bool) -> None:
    """The answer, the nodes, then what is found by weight, each with its remedy."""
    from rich.text import Text

    from rigctl.base.texts import printable_lines
    from rigctl.cli.check_document import check_document
    from rigctl.findings import Severity
    from rigctl.report.printers.terminal import print_document

    print_document(check_document(seen, findings), console)
    good = [finding for finding in findings if finding.level is Severity.OK]
    shown = [finding for finding in findings if every or finding.level is not Severity.OK]
    if shown:
        console.print()
    for finding in shown:
        line = printable_lines(f"{finding.level.value}: {finding.text}")
        console.print(Text(line, style=_STYLES.get(finding.level.value, "")))
        if finding.remedy is not None:
            console.print(Text(f"    {printable_lines(finding.remedy)}", style="dim"))
    if good and not every:
        console.print(Text(f"\nIn order: {len(good)} findings; --all shows them.", style="dim"))
