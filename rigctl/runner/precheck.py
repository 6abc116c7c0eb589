"""Checks addresses, routes and paths before the first test of a run: the fast part of `rigctl check`.

If no test can be measured, the run ends here. If only some can, a message names the others.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from rigctl.base.errors import NodeError, RigError
from rigctl.check.judge import together
from rigctl.findings import Finding, Severity
from rigctl.hosts.facts import CHECK_FACTS
from rigctl.hosts.surroundings import Surroundings
from rigctl.paths.ends import ask_neighbours, look_around, pairs_to_probe, peers_of, same_family, spot_of
from rigctl.paths.link_rules import check_link, routes
from rigctl.paths.path_rules import addresses, check_families, paths_explained_elsewhere, ports, sizes
from rigctl.paths.probing import PathState, probe_paths
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell, RunPlan
from rigctl.runner.nodes import Nodes
from rigctl.runner.schedule import Blocked
from rigctl.settings import MSS
from rigctl.settings.kinds import KINDS


async def precheck(
    plan: RunPlan, nodes: Nodes, names: Collection[str], *, by_pair: bool = False
) -> tuple[list[str], Blocked]:
    """Return messages on what cannot be measured. Raise `RigError` if no test can be measured.

    With `by_pair`, check each pair of a test separately, and also return which cannot be measured, with reasons.
    """
    # Lost nodes are not opened again: their tests will fail with the error.
    outcomes = await nodes.open([name for name in names if nodes.is_open(name)])
    agents = {name: outcome[1] for name, outcome in outcomes.items() if not isinstance(outcome, NodeError)}
    facts = await nodes.facts(names)
    known = {name: NodeState(nodes.rig.nodes[name], facts.get(name, {})) for name in names}
    for name, each in known.items():
        with suppress(NodeError):
            each.address = nodes.data_address(name)
        each.program = agents[name].path if name in agents else None
    spots = {name: spot for name in agents if (spot := await spot_of(known[name])) is not None}
    pairs = same_family(pairs_to_probe(plan, []), spots)
    peers = {name: peers_of(name, known, pairs) for name in spots}
    asked = (look_around(nodes.shell(name), known[name], own, traffic=False) for name, own in peers.items())
    paths, _ = await asyncio.gather(probe_paths(agents, spots, pairs), asyncio.gather(*asked))
    if not all(path.whole for path in paths):
        await asyncio.gather(*(_ask_link(nodes, known[name]) for name in spots))
        await ask_neighbours({name: nodes.shell(name) for name in spots}, known, paths)
    state = RigState(nodes.rig, plan, known, paths)
    state = replace(state, explained=paths_explained_elsewhere(state))
    shared = [finding for finding in addresses(state) if finding.level is Severity.ERROR]
    tests = [replace(cell, pairs=(pair,)) for cell in plan.cells for pair in cell.pairs] if by_pair else plan.cells
    found = [(cell, errors_of(cell, state, shared)) for cell in tests]
    messages = list(dict.fromkeys(message for _, errors in found for message in errors))
    if messages and all(errors for _, errors in found):
        raise RigError("\n".join(["no test can be measured on the rig as it is (rigctl check says more):", *messages]))
    return messages, {(cell.number, cell.pairs[0]): errors[0] for cell, errors in found if errors} if by_pair else {}


def errors_of(cell: Cell, state: RigState, shared: Sequence[Finding] = ()) -> list[str]:
    """Return the errors that prevent measuring `cell`, with the address errors in `shared` that concern its nodes."""
    own = [finding for finding in shared if set(cell.nodes) & set(finding.subject.names)]
    errors = together([*own, *_errors(cell, state)], {})
    return [f"{error.text} {error.remedy or ''}".strip() for error in errors]


def _errors(cell: Cell, state: RigState) -> Iterator[Finding]:
    paths = [path for path in state.paths if path.ends in _ends(cell)]
    plan = replace(state.plan, cells=(cell,)) if state.plan is not None else None
    names = sorted(state.nodes.keys() & set(cell.nodes))
    alone = replace(
        state, plan=plan, nodes={name: _among(state.nodes[name], cell, state.nodes) for name in names}, paths=paths
    )
    rules = [check_link, check_families, routes, ports]
    rules += [] if _may_be_small(cell, alone, paths) else [sizes]
    yield from (finding for rule in rules for finding in rule(alone) if finding.level is Severity.ERROR)


def _among(each: NodeState, cell: Cell, nodes: Mapping[str, NodeState]) -> NodeState:
    if each.around is None:
        return each
    peers = peers_of(each.name, nodes, (ends for ends in _ends(cell) if set(ends) <= nodes.keys()))
    routes = {peer: way for peer, way in each.around.routes.items() if peer in peers}
    return replace(each, around=Surroundings(routes, above=each.around.above))


def _may_be_small(cell: Cell, state: RigState, paths: Sequence[PathState]) -> bool:
    """Tell whether packets of `cell` may fit into a path whose MTU is below that of the interfaces."""
    if state.plan is not None and state.plan.condition_mtu(cell.condition) is not None:
        return True
    if cell.transport != "tcp" or cell.test not in KINDS or cell.kind.in_messages:
        return True
    mss = cell[MSS]
    return mss is not None and all(mss + 40 <= (path.largest or 0) for path in paths)


def _ends(cell: Cell) -> set[tuple[str, str]]:
    """Return source and destination of all pairs, and the reverse, because TCP's acknowledgements flow back."""
    forward = {(pair.source, pair.destination) for pair in cell.pairs}
    return forward | {(destination, source) for source, destination in forward}


async def _ask_link(nodes: Nodes, state: NodeState) -> None:
    """Add to `state` whether the interface is up and has a link, facts that a run does not store."""
    with suppress(NodeError):
        facts = await nodes.ask_facts(state.name, CHECK_FACTS)
        state.facts = {**facts, **state.facts}
