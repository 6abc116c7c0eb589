"""Lists all rules of a check, judges a rig by them, and sums up their findings in one sentence."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from rigctl.check.rules import hardware, nodes, settings, windows
from rigctl.check.rules.rehearsed import judge_rehearsal
from rigctl.findings import Finding, Severity
from rigctl.paths import link_rules, path_rules
from rigctl.paths.disk_rules import disks
from rigctl.paths.judging import together
from rigctl.paths.state import RigState

CHECK_RULES: Final[tuple[Callable[[RigState], Iterable[Finding]], ...]] = (
    nodes.check_reach,
    nodes.agent,
    nodes.rights,
    nodes.conditions,
    link_rules.check_link,
    path_rules.addresses,
    path_rules.check_families,
    link_rules.routes,
    path_rules.listening,
    path_rules.ports,
    path_rules.sizes,
    nodes.mtu,
    settings.congestion,
    disks,
    nodes.iperf3,
    settings.windows,
    settings.scaling,
    settings.multipath,
    settings.buffers,
    nodes.traffic,
    nodes.clock,
    nodes.name_unchecked,
    windows.drivers,
    windows.power,
    hardware.pcie,
    hardware.check_card,
    hardware.interrupts,
    hardware.numa,
    hardware.pause,
    hardware.processor,
    hardware.idle,
    hardware.eee,
)
"""Functions that return findings on the state of a rig. A rule gives no finding on an unknown fact."""
_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)


def judge_state(state: RigState) -> tuple[Finding, ...]:
    """Return the findings on a rig: errors, warnings, notes, then what is in order; each in `CHECK_RULES` order."""
    state = replace(state, explained=path_rules.paths_explained_elsewhere(state))
    everybody = {"node": len(state.nodes), "pair": len(state.paths)}
    findings = [finding for rule in CHECK_RULES for finding in together(rule(state), everybody)]
    wrong = [finding for finding in findings if finding.level is Severity.ERROR]
    errors = {(finding.code, name) for finding in wrong for name in finding.subject.names}
    findings += together(judge_rehearsal(state, errors), everybody)
    return tuple(sorted(findings, key=lambda finding: _LEVELS.index(finding.level)))


def check_answer(findings: tuple[Finding, ...], nodes: int) -> str:
    """Return the first sentence of a check: how many errors and warnings there are, and what to do."""
    counts = {level: sum(finding.level is level for finding in findings) for level in _LEVELS[:2]}
    parts = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts.items() if count]
    if not parts:
        return f"No error and no warning on {nodes} nodes: traffic can start."
    then = "mend the errors before a run" if counts[Severity.ERROR] else "traffic can start"
    return f"{' and '.join(parts)} on {nodes} nodes: {then}."
