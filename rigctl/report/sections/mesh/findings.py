"""What a mesh or star says: the lowest and highest goodput, slow nodes once each, pairs whose directions differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.views.mesh import DIFFER, LEAST, SLOW, Lopsided, Mesh, SlowNode, Way
from rigctl.base.units import format_rate
from rigctl.findings import Finding, Number, Severity, Subject, Weight
from rigctl.records import RunPlan
from rigctl.report.sections.mesh.form import Scale
from rigctl.report.sections.mesh.tables import point_text
from rigctl.report.words.text import listed, plural

MOST_NAMED: Final = 3
"""Slow nodes that the answer names with what they are slow in."""
MOST_PAIRS: Final = 6
"""Pairs whose directions differ that are reported one by one."""
_ROLES: Final = {
    ("sending",): "in sending to the others",
    ("receiving",): "in receiving from the others",
    ("sending", "receiving"): "in sending to the others and in receiving from them",
}


def between(mesh: Mesh) -> str:
    """Whose pairs they are: `Between 4 nodes`, of a star `Between n1 and 3 other nodes`."""
    count = len(mesh.nodes)
    return f"Between {mesh.centre} and {count - 1} other nodes" if mesh.centre else f"Between {count} nodes"


def findings(plan: RunPlan, found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    """The answer first."""
    yield _answer(found, scale)
    yield from _slow(plan, found, scale)
    yield from _small(found, scale)
    yield from _lopsided(found, scale)


def _answer(found: Sequence[Mesh], scale: Scale) -> Finding:
    ways = [(way.mbps or 0.0, way, mesh) for mesh in found for way in mesh.known]
    low, high = (choose(ways, key=lambda item: item[0]) for choose in (min, max))

    def place(way: Way, mesh: Mesh) -> str:
        return f"{way.sender} → {way.receiver}" + (f", {point_text(mesh)}" if len(found) > 1 else "")

    names = list(dict.fromkeys(slow.node for mesh in found for slow in mesh.slow))
    ends = (
        f"is lowest at {scale.text(low[0])} ({place(low[1], low[2])}) and highest at {scale.text(high[0])} "
        f"({place(high[1], high[2])})"
    )
    if len(ways) == 1:
        ends = f"is {scale.text(low[0])} ({place(low[1], low[2])})"
    elif scale.text(low[0]) == scale.text(high[0]):
        ends = f"is {scale.text(low[0])} on each pair"
    text = f"{between(found[0])}, goodput {ends}; {measured_text(found, len(ways))}{_named(found)}."
    numbers = {"nodes": len(found[0].nodes), "lowest_mbps": low[0], "highest_mbps": high[0], "slow_nodes": len(names)}
    return Finding(text, Weight.ANSWER, subject=Subject("node", tuple(names)) if names else Subject(), numbers=numbers)


def measured_text(found: Sequence[Mesh], measured: int) -> str:
    """`11 of 12 pairs were measured; `; empty if all were."""
    pairs = sum(len(mesh.ways) for mesh in found)
    return f"{measured} of {pairs} pairs {'was' if measured == 1 else 'were'} measured; " if measured < pairs else ""


def _named(found: Sequence[Mesh]) -> str:
    """Which nodes are slow, in what, and which have a smaller MTU."""
    roles: dict[str, set[str]] = {}
    for mesh in found:
        for slow in mesh.slow:
            roles.setdefault(slow.node, set()).update(slow.roles)
    small = list(dict.fromkeys(node for mesh in found for each in mesh.small for node in each.nodes))
    if not roles and not all(_comparable(mesh) for mesh in found):
        said = "these are too few to tell whether a node is slow"
    elif not roles:
        said = "no node is slow" if found[0].centre else "no node is slow with all others"
    elif len(roles) <= MOST_NAMED:
        words = [f"{node} in {listed(sorted(own, reverse=True))}" for node, own in roles.items()]
        said = ", ".join(words).replace(" in ", " is slow in ", 1)
    else:
        said = f"{listed(list(roles))} are slow"
    return f"{said}; {listed(small)} {'has' if len(small) == 1 else 'have'} a smaller MTU" if small else said


def _comparable(mesh: Mesh) -> bool:
    """Tell whether every node was measured with enough others in each role, the others of a star with the centre."""
    known = mesh.known
    senders, receivers = Counter(way.sender for way in known), Counter(way.receiver for way in known)
    if mesh.centre:
        return min(senders[mesh.centre], receivers[mesh.centre]) >= LEAST
    return all(min(senders[node], receivers[node]) >= LEAST for node in mesh.nodes)


def _slow(plan: RunPlan, found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    """Each slow node once, at the point of the other axes where it falls furthest behind."""
    grouped: dict[str, list[tuple[Mesh, SlowNode]]] = {}
    for mesh in found:
        for slow in mesh.slow:
            grouped.setdefault(slow.node, []).append((mesh, slow))
    for node, places in grouped.items():
        mesh, slow = min(places, key=lambda place: place[1].mbps / place[1].others_mbps)
        link = _narrow(plan, node)
        own = [way for way in mesh.known if _of(way, slow) and way.limit not in (None, "unknown")]
        cause = f" Its link in the rig file has only {link}." if link else _limits(own)
        where = _where(found, mesh, len(places))
        text = f"{node} is slow {_compared(mesh, slow, scale)} {scale.text(slow.others_mbps)}{where}.{cause}"
        numbers: dict[str, Number] = {
            "goodput_mbps": slow.mbps,
            "others_mbps": slow.others_mbps,
            "roles": " and ".join(slow.roles),
        }
        level = Severity.NOTE if link else Severity.WARNING
        remedy = None if link else _remedy(node, own)
        yield Finding(text, Weight.BOTTLENECK, level, Subject("node", (node,)), numbers, remedy)


def _compared(mesh: Mesh, slow: SlowNode, scale: Scale) -> str:
    """In what, with its goodput, and whose it is compared with."""
    usual = "pairs without a slow node have"
    said = f"{_ROLES[slow.roles]}: {scale.text(slow.mbps)} (median)"
    if mesh.centre == slow.node:
        usual = f"{'receiving' if slow.roles == ('sending',) else 'sending'}, it has"
    elif mesh.centre:
        words = {"sending": f"in sending to {mesh.centre}", "receiving": f"in receiving from {mesh.centre}"}
        said = f"{listed([words[role] for role in slow.roles])}: {scale.text(slow.mbps)}"
        usual = "the others have"
    return f"{said}; {usual}"


def _narrow(plan: RunPlan, node: str) -> str:
    """The rate of a node's link where it is below every other's."""
    own = plan.links[node].rate_bps if node in plan.links else None
    others = [link.rate_bps for name, link in plan.links.items() if name != node]
    known = [rate for rate in others if rate is not None]
    return f"{format_rate(own)}" if own and known and own < (1 - SLOW) * max(known) else ""


def _limits(own: Sequence[Way]) -> str:
    """What limited its tests, the most frequent first."""
    counts = Counter(way.limit for way in own)
    said = []
    for limit, count in counts.most_common():
        known = {"path": "; a firewall, a shaper or a slower hop", "other-traffic": "; traffic that is not this run's"}
        why = (known | {"window": _bounded(own)}).get(str(limit), "")
        said.append(f"{limit} ({plural(count, 'pair')}{why})")
    return f" Its pairs are limited by: {listed(said)}." if said else ""


def _bounded(own: Sequence[Way]) -> str:
    """Which sysctls allow no more, on which nodes."""
    causes = [way.window for way in own if way.window is not None and way.window.sysctl]
    names = list(dict.fromkeys(f"{cause.sysctl} of {cause.node} allows no more" for cause in causes))
    return f"; {listed(names)}" if names else ""


def _remedy(node: str, own: Sequence[Way]) -> str | None:
    limit = next(iter(Counter(way.limit for way in own).most_common(1)), (None, 0))[0]
    if limit == "path":
        return f"Look at what is before {node}: firewall, shaper, switch port; or correct the rate in the rig file."
    causes = [way.window for way in own if way.limit == "window" and way.window is not None and way.window.sysctl]
    if limit == "window" and causes:
        third = " (its third value)" if str(causes[0].sysctl).startswith("net.ipv4") else ""
        return f"Raise {causes[0].sysctl}{third} on {causes[0].node}."
    return None


def _small(found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    """Nodes with a smaller MTU, each once."""
    once = {(small.nodes, small.mtu): small for mesh in reversed(found) for small in mesh.small}
    for small in once.values():
        have = "has" if len(small.nodes) == 1 else "have"
        text = f"{listed(small.nodes)} {have} paths of MTU {small.mtu} only, others of {small.others_mtu}"
        ceilings = (small.ceiling_mbps, small.others_ceiling_mbps)
        if None not in ceilings:
            most, others = (scale.text(mbps or 0.0) for mbps in ceilings)
            text += f": at most {most} in place of {others}"
        numbers: dict[str, Number] = {"mtu": small.mtu, "others_mtu": small.others_mtu}
        numbers |= {"ceiling_mbps": small.ceiling_mbps, "others_ceiling_mbps": small.others_ceiling_mbps}
        remedy = f"Give {listed(small.nodes)} and the way there an MTU of {small.others_mtu}."
        yield Finding(f"{text}.", Weight.BOTTLENECK, Severity.WARNING, Subject("node", small.nodes), numbers, remedy)


def _of(way: Way, slow: SlowNode) -> bool:
    return ("sending" in slow.roles and way.sender == slow.node) or (
        "receiving" in slow.roles and way.receiver == slow.node
    )


def _where(found: Sequence[Mesh], mesh: Mesh, places: int) -> str:
    return f" (with {point_text(mesh)}; in {places} of {len(found)} settings)" if len(found) > 1 else ""


def _lopsided(found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    grouped: dict[tuple[str, str], list[tuple[Mesh, Lopsided]]] = {}
    for mesh in found:
        for pair in mesh.lopsided:
            grouped.setdefault(pair.slower.ends, []).append((mesh, pair))
    ranked = sorted(grouped.values(), key=lambda places: -max(pair.share for _, pair in places))
    for places in ranked[:MOST_PAIRS]:
        mesh, pair = max(places, key=lambda place: place[1].share)
        slower, faster = pair.slower, pair.faster
        text = (
            f"{slower.sender} → {slower.receiver} has {scale.text(slower.mbps or 0.0)}, {100 * pair.share:.0f} % less "
            f"than the other direction with {scale.text(faster.mbps or 0.0)}{_where(found, mesh, len(places))}."
        )
        numbers = {"slower_mbps": slower.mbps, "faster_mbps": faster.mbps, "difference_pct": 100 * pair.share}
        yield Finding(text, Weight.COMPARISON, Severity.WARNING, _pairs(places), numbers)
    if len(ranked) > MOST_PAIRS:
        left = ranked[MOST_PAIRS:]
        more = plural(len(left), "more pair differs", "more pairs differ")
        text = f"{more} by over {100 * DIFFER:g} % between the directions; the table marks the slower ones."
        yield Finding(text, Weight.COMPARISON, Severity.WARNING, _pairs([places[0] for places in left]))


def _pairs(places: Sequence[tuple[Mesh, Lopsided]]) -> Subject:
    return Subject("pair", tuple(dict.fromkeys(" -> ".join(pair.slower.ends) for _, pair in places)))
