"""How a run was measured, in sentences: times, start skew, clock error, what counts and what does not."""

import shlex
from collections.abc import Sequence
from statistics import median

from rigctl.base.resources import scenarios
from rigctl.base.units import format_duration
from rigctl.records import Repetition, RunInfo, RunPlan, Status
from rigctl.remote.build import KERNELS
from rigctl.report.blocks import Paragraph, Section, Verbatim
from rigctl.report.words.text import plural, span
from rigctl.settings import ITERATIONS


def sentences(info: RunInfo, repetitions: Sequence[Repetition], own: Sequence[str]) -> list[str]:
    """Return how a run was measured; `own` are the sentences of its kind of test."""
    return [_times(info), *own, *_quality(repetitions), *_measured_with(info)]


def _times(info: RunInfo) -> str:
    durations = sorted({cell.duration_s for cell in info.plan.cells})
    omitted = sorted({cell.omit_s for cell in info.plan.cells})
    counted = f"{plural(len(info.plan.cells), 'test')}, {plural(info.plan.repeat, 'repetition')} each"
    if any(cell[ITERATIONS] is not None for cell in info.plan.cells) or not durations:
        return f"{counted}."
    each = span(format_duration(duration_s) for duration_s in (durations[0], durations[-1]))
    omit = f"; the first {format_duration(omitted[-1])} of each are omitted" if omitted[-1] > 0 else ""
    return f"{counted}, of {each}{omit}."


def _quality(repetitions: Sequence[Repetition]) -> list[str]:
    said = []
    skews = [repetition.start_skew_us for repetition in repetitions if repetition.start_skew_us is not None]
    known = [repetition for repetition in repetitions if repetition.clock_error_us is not None]
    starts = [repetition.clock_error_us or 0.0 for repetition in known if _start_unknown(repetition)]
    errors = [repetition.clock_error_us or 0.0 for repetition in known if not _start_unknown(repetition)]
    if skews:
        said.append(f"Start skew: {median(skews) / 1e3:.2f} ms (median), {max(skews) / 1e3:.2f} ms at most.")
    if errors:
        said.append(f"Clock offsets between nodes are known within {max(errors) / 1e3:.2f} ms.")
    if starts:
        bound_ms = max(starts) / 1e3
        said.append(f"Where the start skew is unknown, the start of each pair is known within {bound_ms:.2f} ms.")
    invalid = sum(repetition.status is Status.INVALID for repetition in repetitions)
    failed = sum(repetition.status is Status.FAILED for repetition in repetitions)
    strangers = sum(usage.strangers for repetition in repetitions for usage in repetition.nodes)
    if invalid or failed:
        said.append(f"{invalid} invalid and {failed} failed repetitions are listed with the reason and not averaged.")
    if strangers:
        said.append(
            f"{plural(strangers, 'connection')} without the test's token reached a data port and got no answer."
        )
    return said


def _start_unknown(repetition: Repetition) -> bool:
    """Tell whether the streams were measured by a program that does not report when they began."""
    return repetition.window_start_ns is not None and repetition.start_skew_us is None


def _measured_with(info: RunInfo) -> list[str]:
    unused = _unused_agents(info)
    versions = ", ".join(f"{name} {value[:12]}" for name, value in info.versions.items() if name not in unused)
    return [f"Measured with {versions}."] if versions else []


def _unused_agents(info: RunInfo) -> set[str]:
    """Return the versions of agents for machines that no node is; empty if some node's machine is unknown."""
    kernels = [str(facts.get("kernel") or "").split() for facts in info.facts.values()]
    used = {KERNELS.get(f"{words[0]} {words[-1]}") if words else None for words in kernels}
    return set() if None in used or not used else {f"agent {each} sha256" for each in {*KERNELS.values()} - used}


def reproduce(plan: RunPlan, run: str) -> Section:
    """Return the section with the commands that measure the run again and export its data."""
    data = (Paragraph("Its data, a row for each test, repetition and pair:", small=True), Verbatim(export_command(run)))
    if plan.imported:
        return Section("Data", data)
    files = "" if _bundled(plan) else f" {_file(plan)} is below, under “Scenario and rig file”."
    return Section(
        "Reproduce",
        (
            Paragraph(f"Measure the same again:{files}", small=True),
            Verbatim(run_command(plan)),
            *data,
        ),
    )


def run_command(plan: RunPlan) -> str:
    """Return `rigctl run gigablox --rig mylab.yaml --duration 60s --set window=64K`, quoted for a shell."""
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
    path = scenarios() / _file(plan)
    try:
        return "/" not in plan.scenario_name and path.read_text("utf-8") == plan.scenario_yaml
    except (OSError, ValueError):
        return False
