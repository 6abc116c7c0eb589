"""The cheap half of `rigctl check`, before the first test of a run: probes over the paths of its pairs.

Where no test can be measured the run is refused; where some cannot, that is said, and the others are measured.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rigctl.check.paths import PathSeen, Spot, literal, probed
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules import reach
from rigctl.check.rules.findings import together
from rigctl.errors import NodeError, RigError
from rigctl.findings import Finding, Severity
from rigctl.kinds import KINDS
from rigctl.records import Cell, RunPlan
from rigctl.runner.nodes import Nodes


async def prechecked(plan: RunPlan, nodes: Nodes, names: Collection[str]) -> list[str]:
    """What keeps some tests from being measured, a message each. Raises `RigError` where it keeps all of them."""
    # One that is lost is not waited for once more: its tests say so.
    outcomes = await nodes.open([name for name in names if nodes.is_open(name)])
    agents = {name: outcome[1] for name, outcome in outcomes.items() if not isinstance(outcome, NodeError)}
    spots = {name: spot for name in agents if (spot := await _spot(nodes, name)) is not None}
    pairs = sorted({ends for cell in plan.cells for ends in _ends(cell)})
    paths = await probed(agents, spots, [pair for pair in pairs if set(pair) <= spots.keys()])
    if all(path.whole for path in paths):
        return []
    facts = await nodes.facts(names)
    seen = Seen(nodes.rig, plan, {name: NodeSeen(nodes.rig.nodes[name], facts.get(name, {})) for name in names}, paths)
    found = [errors_of(cell, seen) for cell in plan.cells]
    messages = list(dict.fromkeys(message for errors in found for message in errors))
    if messages and all(found):
        raise RigError("\n".join(["no test can be measured on the rig as it is (rigctl check says more):", *messages]))
    return messages


def errors_of(cell: Cell, seen: Seen) -> list[str]:
    """What keeps `cell` from being measured, of what was seen of its paths."""
    return [f"{error.text} {error.remedy or ''}".strip() for error in together(_errors(cell, seen), {})]


def _errors(cell: Cell, seen: Seen) -> Iterator[Finding]:
    own = [path for path in seen.paths if (path.source, path.destination) in _ends(cell)]
    alone = replace(seen, plan=replace(seen.plan, cells=(cell,)) if seen.plan is not None else None, paths=own)
    rules = [reach.ports] if _may_be_small(cell, alone, own) else [reach.ports, reach.sizes]
    yield from (finding for rule in rules for finding in rule(alone) if finding.level is Severity.ERROR)


def _may_be_small(cell: Cell, seen: Seen, paths: Sequence[PathSeen]) -> bool:
    """Whether its packets may be smaller than what the interfaces allow now."""
    if seen.plan is not None and seen.plan.condition_mtu(cell.condition) is not None:
        return True
    if cell.transport != "tcp" or cell.test not in KINDS or cell.kind.in_messages:
        return True
    return cell.tcp.mss is not None and all(cell.tcp.mss + 40 <= (path.largest or 0) for path in paths)


def _ends(cell: Cell) -> set[tuple[str, str]]:
    """Both directions of its pairs: of TCP, acknowledgements go back."""
    there = {(pair.source, pair.destination) for pair in cell.pairs}
    return there | {(destination, source) for source, destination in there}


async def _spot(nodes: Nodes, name: str) -> Spot | None:
    facts = (await nodes.facts([name])).get(name, {})
    try:
        address = await literal(nodes.data_address(name))
    except NodeError:
        return None
    return None if address is None else Spot(name, address, facts.get("mtu"), nodes.rig.nodes[name].data_ports)
