"""Merges findings on the same fault, and names the errors that prevent measuring a test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rigctl.base.values import group_by
from rigctl.findings import Finding, FindingValue, Severity, Subject
from rigctl.hosts.surroundings import Surroundings
from rigctl.paths.commands import list_names
from rigctl.paths.disk_rules import disks
from rigctl.paths.ends import both_ways, peers_of
from rigctl.paths.link_rules import check_link, routes
from rigctl.paths.path_rules import check_families, ports, sizes
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell

_PLURALS: Final[dict[str, str]] = {"node": "nodes", "pair": "paths"}


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


def errors_of(cell: Cell, state: RigState, shared: Sequence[Finding] = ()) -> list[str]:
    """Return the errors that prevent measuring `cell`, with the address errors in `shared` that concern its nodes."""
    own = [finding for finding in shared if set(cell.nodes) & set(finding.subject.names)]
    errors = together([*own, *_errors(cell, state)], {})
    return [f"{error.text} {error.remedy or ''}".strip() for error in errors]


def _errors(cell: Cell, state: RigState) -> Iterator[Finding]:
    paths = [path for path in state.paths if path.ends in both_ways(cell)]
    plan = replace(state.plan, cells=(cell,)) if state.plan is not None else None
    names = sorted(state.nodes.keys() & set(cell.nodes))
    alone = replace(
        state, plan=plan, nodes={name: _among(state.nodes[name], cell, state.nodes) for name in names}, paths=paths
    )
    rules = (check_link, check_families, routes, ports, sizes, disks)
    yield from (finding for rule in rules for finding in rule(alone) if finding.level is Severity.ERROR)


def _among(each: NodeState, cell: Cell, nodes: Mapping[str, NodeState]) -> NodeState:
    if each.around is None:
        return each
    peers = peers_of(each.name, nodes, (ends for ends in both_ways(cell) if set(ends) <= nodes.keys()))
    routes = {peer: way for peer, way in each.around.routes.items() if peer in peers}
    return replace(each, around=Surroundings(routes, disks=each.around.disks, above=each.around.above))
