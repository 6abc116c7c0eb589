"""All rules in one table, and their findings."""

from dataclasses import replace
from typing import Final

from rigctl.check.records import Seen
from rigctl.check.rules import access, causes, hardware, links, reach, settings
from rigctl.check.rules.findings import Rule, together
from rigctl.findings import Finding, Severity

RULES: Final[dict[str, Rule]] = {
    "reached": access.reached,
    "agent": access.agent,
    "rights": access.rights,
    "link": links.link,
    "addresses": causes.addresses,
    "routes": links.routes,
    "ports": reach.ports,
    "sizes": reach.sizes,
    "mtu": links.mtu,
    "congestion": settings.congestion,
    "disks": settings.disks,
    "windows": settings.windows,
    "scaling": settings.scaling,
    "buffers": settings.buffers,
    "traffic": links.traffic,
    "clock": access.clock,
    "unmade": access.unmade,
    "pcie": hardware.pcie,
    "card": hardware.card,
    "processor": hardware.processor,
}
"""One function each from what was seen to findings. Unknown facts give no finding."""
_LEVELS: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE, Severity.OK)


def judged(seen: Seen) -> tuple[Finding, ...]:
    """Return errors first, then warnings, notes and what is in order; within each in the order of `RULES`."""
    seen = replace(seen, explained=causes.explained(seen))
    everybody = {"node": len(seen.nodes), "pair": len(seen.paths)}
    findings = [finding for rule in RULES.values() for finding in together(rule(seen), everybody)]
    return tuple(sorted(findings, key=lambda finding: _LEVELS.index(finding.level)))


def answer(findings: tuple[Finding, ...], nodes: int) -> str:
    """Return the first sentence of a check."""
    counts = {level: sum(finding.level is level for finding in findings) for level in _LEVELS}
    parts = [
        f"{counts[level]} {word}{'s' if counts[level] > 1 else ''}"
        for level, word in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
        if counts[level]
    ]
    if not parts:
        return f"No error and no warning on {nodes} nodes: traffic can start."
    then = "mend the errors before a run" if counts[Severity.ERROR] else "traffic can start"
    return f"{' and '.join(parts)} on {nodes} nodes: {then}."
