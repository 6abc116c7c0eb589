"""Exports the slow nodes of a mesh as Slurm commands for an administrator to read and run. rigctl runs none of them."""

import re
import shlex
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.findings import Severity
from rigctl.report.sections.mesh import form_of, slow_findings
from rigctl.rig.fields import NODE_NAME

_NUMBERED: Final = re.compile(r"node\d+", re.ASCII)
_ALLOCATION: Final = re.compile(r"^slurm:", re.MULTILINE)


def drain_commands(view: RunView) -> tuple[list[str], list[str]]:
    """Return a `scontrol` command for each slow node of a mesh, and notes for standard error.

    A node with a lower link rate in the rig file is expected to be slow: it gets a note instead. Raise `InputError` if
    the run is no mesh.
    """
    run, found = view.info.run, view.meshes
    if not found or (form := form_of(found)).trips:
        raise InputError(
            f"export: run {run} is no mesh of streams, so slow nodes are not known. Run a scenario with `pairs: mesh`"
        )
    commands, notes = [], []
    for finding in slow_findings(view.plan, found, form):
        (node,), numbers = finding.subject.names, finding.numbers
        if finding.level is not Severity.WARNING:
            notes.append(f"left out: {finding.text}")
            continue
        if not NODE_NAME.fullmatch(node) or node.upper() == "ALL":  # scontrol(1) takes ALL for all nodes
            notes.append(f"left out: {shlex.quote(node)} is slow, but Slurm may take this name for several nodes")
            continue
        rates = f"{form.text(_mbps(numbers['goodput_mbps']))}, others {form.text(_mbps(numbers['others_mbps']))}"
        reason = f"rigctl {run}: slow in {numbers['roles']}, {rates}"
        commands.append(shlex.join(["scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}"]))
    if not commands:
        few = (
            ""
            if all(mesh.is_comparable for mesh in found)
            else ", but too few pairs were measured to compare all nodes"
        )
        notes.append(f"run {run}: no slow node to drain{few}")
    elif _ALLOCATION.search(view.plan.rig_yaml) and all(_NUMBERED.fullmatch(node) for node in view.plan.nodes):
        notes.append(
            "check the names: rigctl calls the nodes node1, node2, … in the order of Slurm's list if it cannot use "
            "their names in Slurm"
        )
    return commands, notes


def _mbps(value: object) -> float | None:
    return value if isinstance(value, float) else None
