"""Lists all rules of a check, and merges their findings if several nodes have the same fault."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from rigctl.base.values import group_by
from rigctl.check.records import RigState
from rigctl.check.rules import hardware, nodes, paths, settings, windows
from rigctl.check.rules.findings import list_names
from rigctl.findings import Finding, FindingValue, Severity, Subject

CHECK_RULES: Final[tuple[Callable[[RigState], Iterable[Finding]], ...]] = (
    *(nodes.check_reach, nodes.agent, nodes.rights, nodes.conditions),
    *(nodes.check_link, paths.addresses, paths.check_families, nodes.routes),
    *(paths.listening, paths.ports, paths.sizes, nodes.mtu),
    *(settings.congestion, settings.disks, settings.windows, settings.scaling, settings.multipath, settings.buffers),
    *(nodes.traffic, nodes.clock, nodes.name_unchecked),
    *(windows.drivers, windows.power),
    *(hardware.pcie, hardware.check_card, hardware.interrupts, hardware.numa, hardware.pause),
    *(hardware.processor, hardware.idle),
)
"""Functions that return findings on the state of a rig. A rule gives no finding on an unknown fact."""
_PLURALS: Final[dict[str, str]] = {"node": "nodes", "pair": "paths"}
_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)


def judge_state(state: RigState) -> tuple[Finding, ...]:
    """Return the findings on a rig: errors, warnings, notes, then what is in order; each in `CHECK_RULES` order."""
    state = replace(state, explained=paths.paths_explained_elsewhere(state))
    everybody = {"node": len(state.nodes), "pair": len(state.paths)}
    findings = [finding for rule in CHECK_RULES for finding in together(rule(state), everybody)]
    return tuple(sorted(findings, key=lambda finding: _LEVELS.index(finding.level)))


def together(findings: Iterable[Finding], everybody: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the findings, merged if of equal text. `everybody`: number of nodes and of paths, for "all 4 nodes"."""
    groups = group_by(findings, lambda finding: (finding.level, finding.subject.kind, finding.text, finding.remedy))
    for same in groups.values():
        first, kind = same[0], same[0].subject.kind
        names = tuple(dict.fromkeys(name for finding in same for name in finding.subject.names))
        every = len(names) > 2 and len(names) == everybody.get(kind)
        who = f"all {len(names)} {_PLURALS[kind]}" if every else list_names(kind, names)
        numbers: dict[str, FindingValue] = {}
        for key in dict.fromkeys(key for finding in same for key in finding.numbers):
            values = {" ".join(finding.subject.names): finding.numbers.get(key) for finding in same}
            alike = len(set(values.values())) == 1  # if not, the key gets the name of the node or path
            numbers |= {key if alike else f"{key} {name}": value for name, value in values.items()}
        yield replace(first, text=f"{who}: {first.text}", subject=Subject(kind, names), numbers=numbers)


def check_answer(findings: tuple[Finding, ...], nodes: int) -> str:
    """Return the first sentence of a check: how many errors and warnings there are, and what to do."""
    counts = {level: sum(finding.level is level for finding in findings) for level in _LEVELS[:2]}
    parts = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts.items() if count]
    if not parts:
        return f"No error and no warning on {nodes} nodes: traffic can start."
    then = "mend the errors before a run" if counts[Severity.ERROR] else "traffic can start"
    return f"{' and '.join(parts)} on {nodes} nodes: {then}."
