"""Checks addresses, routes and paths before the first test of a run: the fast part of `rigctl check`.

If no test can be measured, the run ends here. If only some can, a message names the others.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from rigctl.base.errors import NodeError, RigError
from rigctl.findings import Severity
from rigctl.hosts.facts import CHECK_FACTS
from rigctl.paths.disk_rules import folders_of
from rigctl.paths.ends import ask_neighbours, look_around, pairs_to_probe, peers_of, same_family, spot_of
from rigctl.paths.judging import errors_of
from rigctl.paths.path_rules import addresses, paths_explained_elsewhere
from rigctl.paths.probing import probe_paths
from rigctl.paths.state import NodeState, RigState
from rigctl.records import RunPlan
from rigctl.runner.nodes import Nodes
from rigctl.runner.schedule import Blocked


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
    folders = folders_of(plan.cells)
    asked = (look_around(nodes.shell(name), known[name], own, folders, traffic=False) for name, own in peers.items())
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


async def _ask_link(nodes: Nodes, state: NodeState) -> None:
    """Add to `state` whether the interface is up and has a link, facts that a run does not store."""
    with suppress(NodeError):
        facts = await nodes.ask_facts(state.name, CHECK_FACTS)
        state.facts = {**facts, **state.facts}
