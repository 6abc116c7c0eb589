"""Every node to every other: goodput and retransmits, client by server, as heat map too, and which nodes are slow."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rigctl.analysis.mesh import DIFFER, SLOW, Lopsided, Mesh, SlowNode, Way
from rigctl.analysis.run_view import RunView
from rigctl.findings import Finding, Number, Severity, Subject, Weight
from rigctl.records import RunPlan
from rigctl.report.blocks import Column, Entry, HeatField, HeatMap, HeatMaps, Paragraph, Part, Row, Section, Table
from rigctl.report.heat import HEAT_STEPS, heat_step
from rigctl.report.text import UNKNOWN, count_text, listed, plural, settings_text
from rigctl.units import format_rate

MOST_PAIRS: Final = 6
"""Pairs whose directions differ that are reported one by one."""
SERVERS_CHARACTERS: Final = 100
"""Width of the columns of one table; more servers go to a table of their own."""
NARROWEST: Final = "Gbit/s"
"""What a column is at least as wide as."""
_ROLES: Final = {
    ("sending",): "in sending to the others",
    ("receiving",): "in receiving from the others",
    ("sending", "receiving"): "in sending to the others and in receiving from them",
}
_METHOD: Final = (
    "A pair of a mesh is as fast as the slower of its ends, so nodes are compared by their highest goodput as sender "
    f"and as receiver. A node is slow where this is more than {100 * SLOW:g} % below the median of all; its pairs are "
    f"then not reported one by one. Directions of a pair are reported where they differ by over {100 * DIFFER:g} % "
    "and by more than their standard deviations."
)


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit for all rates of a mesh."""

    unit: str
    mbps: float
    decimals: int

    def number(self, mbps: float) -> str:
        return f"{mbps / self.mbps:.{self.decimals}f}"

    def text(self, mbps: float) -> str:
        return f"{self.number(mbps)} {self.unit}"


def part(view: RunView) -> Part | None:
    """Of a run in which every node sent to every other, one after the other; `None` of any other."""
    found = view.meshes
    if not found:
        return None
    known = [way.mbps for mesh in found for way in mesh.known if way.mbps is not None]
    scale, top_mbps = _scale(known), max(known)
    findings = [_answer(found, scale), *_slow(view.plan, found, scale), *_lopsided(found, scale)]
    return Part(
        findings=tuple(findings),
        lead=tuple(_tables(mesh, scale, alone=len(found) == 1) for mesh in found),
        sections=(_heat_maps(found, scale, top_mbps),),
        method=(_METHOD,),
        leads=True,
    )


def _scale(known: Sequence[float]) -> Scale:
    unit, mbps = ("Gbit/s", 1000.0) if max(known) >= 1000 else ("Mbit/s", 1.0)
    lowest = min(known) / mbps
    return Scale(unit, mbps, 0 if lowest >= 100 else 1 if lowest >= 10 and mbps == 1 else 2 if lowest >= 0.1 else 3)


def _answer(found: Sequence[Mesh], scale: Scale) -> Finding:
    ways = [(way.mbps or 0.0, way, mesh) for mesh in found for way in mesh.known]
    low, high = (choose(ways, key=lambda item: item[0]) for choose in (min, max))

    def place(way: Way, mesh: Mesh) -> str:
        return f"{way.sender} → {way.receiver}" + (f", {settings_text(mesh.point)}" if len(found) > 1 else "")

    names = list(dict.fromkeys(slow.node for mesh in found for slow in mesh.slow))
    said = "no node is slow with all others"
    if len(names) == 1:
        roles = tuple(dict.fromkeys(role for mesh in found for slow in mesh.slow for role in slow.roles))
        said = f"{names[0]} is slow in {listed(sorted(roles, reverse=True))}"
    elif names:
        said = f"{listed(names)} are slow"
    nodes, pairs = len(found[0].nodes), sum(len(mesh.ways) for mesh in found)
    missing = f"{len(ways)} of {pairs} pairs were measured; " if len(ways) < pairs else ""
    text = (
        f"Between {nodes} nodes, goodput is lowest at {scale.text(low[0])} ({place(low[1], low[2])}) and highest at "
        f"{scale.text(high[0])} ({place(high[1], high[2])}); {missing}{said}."
    )
    numbers = {"nodes": nodes, "lowest_mbps": low[0], "highest_mbps": high[0], "slow_nodes": len(names)}
    return Finding(text, Weight.ANSWER, subject=Subject("node", tuple(names)) if names else Subject(), numbers=numbers)


def _slow(plan: RunPlan, found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    """Each slow node once, at the point of the other axes where it falls furthest behind."""
    grouped: dict[str, list[tuple[Mesh, SlowNode]]] = {}
    for mesh in found:
        for slow in mesh.slow:
            grouped.setdefault(slow.node, []).append((mesh, slow))
    for node, places in grouped.items():
        mesh, slow = min(places, key=lambda place: place[1].mbps / place[1].others_mbps)
        link = _narrow(plan, node)
        cause = f" Its link in the rig file has only {link}." if link else _limits(mesh, slow)
        text = (
            f"{node} is slow {_ROLES[slow.roles]}: {scale.text(slow.mbps)} (median); pairs without a slow node have "
            f"{scale.text(slow.others_mbps)}{_where(found, mesh, len(places))}.{cause}"
        )
        numbers: dict[str, Number] = {
            "goodput_mbps": slow.mbps,
            "others_mbps": slow.others_mbps,
            "roles": " and ".join(slow.roles),
        }
        level = Severity.NOTE if link else Severity.WARNING
        yield Finding(text, Weight.BOTTLENECK, level, Subject("node", (node,)), numbers)


def _narrow(plan: RunPlan, node: str) -> str:
    """The rate of a node's link where it is below every other's."""
    own = plan.links[node].rate_bps if node in plan.links else None
    others = [link.rate_bps for name, link in plan.links.items() if name != node]
    known = [rate for rate in others if rate is not None]
    return f"{format_rate(own)}" if own and known and own < (1 - SLOW) * max(known) else ""


def _limits(mesh: Mesh, slow: SlowNode) -> str:
    """What limited its tests, the most frequent first."""
    own = [way for way in mesh.known if _of(way, slow) and way.limit not in (None, "unknown")]
    counts = Counter(way.limit for way in own)
    said = [f"{limit} ({plural(count, 'pair')})" for limit, count in counts.most_common()]
    return f" Its pairs are limited by: {listed(said)}." if said else ""


def _of(way: Way, slow: SlowNode) -> bool:
    return ("sending" in slow.roles and way.sender == slow.node) or (
        "receiving" in slow.roles and way.receiver == slow.node
    )


def _where(found: Sequence[Mesh], mesh: Mesh, places: int) -> str:
    return f" (with {settings_text(mesh.point)}; in {places} of {len(found)} settings)" if len(found) > 1 else ""


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


def _heat_maps(found: Sequence[Mesh], scale: Scale, top_mbps: float) -> Section:
    maps = tuple(_heat(mesh, scale, top_mbps, "" if len(found) == 1 else settings_text(mesh.point)) for mesh in found)
    steps = tuple(HeatField(scale.number(top_mbps * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS))
    unit = f"{scale.unit} from client (row) to server (column)"
    blocks = (
        HeatMaps(maps, unit, steps, side_by_side=len(maps) > 1),
        Paragraph("Rows: clients; columns: servers. “–” is unknown.", small=True),
    )
    return Section("Goodput from every node to every other", blocks)


def _tables(mesh: Mesh, scale: Scale, *, alone: bool) -> Section:
    """Client in rows, server in columns; with many servers as tables below each other that fit paper."""
    title = "Client by server" if alone else f"Client by server: {settings_text(mesh.point)}"
    width = 2 * (max(len(NARROWEST), *map(len, mesh.nodes)) + 2)
    count = -(-len(mesh.nodes) * width // SERVERS_CHARACTERS)
    size = -(-len(mesh.nodes) // count)
    tables = [_table(mesh, scale, mesh.nodes[at : at + size], title) for at in range(0, len(mesh.nodes), size)]
    second = "loss of datagrams" if mesh.point.transport == "udp" else "retransmits (Retr)"
    legend = [f"The client, in a row, sends; each server receives: goodput and {second}."]
    if mesh.lopsided:
        legend.append(f"Marked: slower than the other direction by more than {100 * DIFFER:g} %.")
    return Section(title, (*tables[:-1], replace(tables[-1], legend=tuple(legend))), brief=True)


def _table(mesh: Mesh, scale: Scale, servers: Sequence[str], title: str) -> Table:
    """Goodput and retransmits (of datagrams: their loss) to each of `servers`."""
    datagrams = mesh.point.transport == "udp"
    slower = {pair.slower.ends for pair in mesh.lopsided}
    columns = [Column("Client", words=True)]
    for server in servers:
        columns += [Column(server, scale.unit), Column(server, "loss %" if datagrams else "Retr")]
    second: Callable[[Way], Entry] = _loss if datagrams else _again
    rows = []
    for client in mesh.nodes:
        entries = [Entry(client, client)]
        for server in servers:
            way = mesh.ways.get((client, server))
            if way is None or way.mbps is None:
                entries += [Entry(UNKNOWN), Entry(UNKNOWN)]
                continue
            entries += [_goodput(way.mbps, scale, slower=way.ends in slower), second(way)]
        rows.append(Row(tuple(entries)))
    label = title if len(servers) == len(mesh.nodes) else f"{title}, {servers[0]} to {servers[-1]}"
    return Table(tuple(columns), tuple(rows), label=label)


def _goodput(mbps: float, scale: Scale, *, slower: bool) -> Entry:
    return Entry(scale.number(mbps), mbps / scale.mbps, "warn" if slower else "")


def _again(way: Way) -> Entry:
    return Entry(count_text(way.retransmits), way.retransmits)


def _loss(way: Way) -> Entry:
    return Entry(UNKNOWN if way.loss_pct is None else f"{way.loss_pct:.2g}", way.loss_pct)


def _heat(mesh: Mesh, scale: Scale, top_mbps: float, title: str) -> HeatMap:
    def field(client: str, server: str) -> HeatField:
        way = mesh.ways.get((client, server))
        if way is None or way.mbps is None:
            return HeatField(UNKNOWN, "")
        return HeatField(scale.number(way.mbps), f"h{heat_step(way.mbps, top_mbps)}", way.mbps)

    rows = tuple((client, tuple(field(client, server) for server in mesh.nodes)) for client in mesh.nodes)
    return HeatMap(title, "client", mesh.nodes, rows)
