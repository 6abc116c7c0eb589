"""The commands that measure a run again and that give its data."""

import shlex

from rigctl.base.resources import scenarios
from rigctl.records import RunPlan
from rigctl.report.blocks import Paragraph, Section, Verbatim


def section(plan: RunPlan, run: str) -> Section:
    """Both commands; what a command names that does not come with rigctl is on the page."""
    files = "" if _bundled(plan) else f" {_file(plan)} is below, under “Scenario and rig file”."
    return Section(
        "Reproduce",
        (
            Paragraph(f"Measure the same again:{files}", small=True),
            Verbatim(run_command(plan)),
            Paragraph("Its data, a row for each test, repetition and pair:", small=True),
            Verbatim(export_command(run)),
        ),
    )


def run_command(plan: RunPlan) -> str:
    """`rigctl run gigablox --rig mylab.yaml --duration 60s --set window=64K`, as a shell takes it."""
    words = ["rigctl", "run", plan.scenario_name if _bundled(plan) else _file(plan)]
    for given in plan.overrides:
        option, _, value = given.partition(" ")
        words += [option, value] if value else [option]
    return shlex.join(words)


def export_command(run: str) -> str:
    return f"rigctl export {run} --format csv --level pairs -o {run}.csv"


def _file(plan: RunPlan) -> str:
    return f"{plan.scenario_name}.yaml"


def _bundled(plan: RunPlan) -> bool:
    """Whether rigctl brings this very scenario."""
    path = scenarios() / _file(plan)
    try:
        return "/" not in plan.scenario_name and path.read_text("utf-8") == plan.scenario_yaml
    except (OSError, ValueError):
        return False
