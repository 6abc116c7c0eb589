"""Report part on a mesh (every node to every other): tables of clients by servers, and the slow nodes."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import (
    DIFFER,
    FAR,
    SLOW,
    Mesh,
    MeshEnds,
    SlowNode,
    UnequalPair,
    Way,
)
from rigctl.base.units import format_bytes, format_rate
from rigctl.base.values import divide, group_by, most
from rigctl.findings import (
    RUN,
    Finding,
    FindingValue,
    Severity,
    Statement,
    Subject,
    Weight,
    about_nodes,
    about_pairs,
)
from rigctl.findings import nodes as said
from rigctl.findings.limits import LIMIT_SENTENCES
from rigctl.findings.mtu import MTU_SMALL
from rigctl.findings.text import MOST_NAMED, UNKNOWN, join_list, plural, settings_text, some, span, whole_decimals
from rigctl.limits.limit import UNKNOWN_LIMIT
from rigctl.records import RunPlan
from rigctl.report.blocks import Column, Entry, HeatField, HeatMap, HeatMaps, Paragraph, Part, Row, Section, Table
from rigctl.report.charts.plot import HEAT_STEPS, heat_step
from rigctl.report.tables.columns import NumberText, TextOf, alike, count_texts, digits_decimals, to_decimals

_MESH: Final = (
    "A pair of a mesh is as fast as the slower of its ends, so nodes are compared by their highest goodput as sender "
    f"and as receiver. A node is slow if one of them is more than {100 * SLOW:g} % below the median of all nodes; its "
    "pairs are then not reported one by one. The directions of a pair are reported if they differ by more than "
    f"{100 * DIFFER:g} % and by more than their standard deviations."
)
_TRIPS: Final = (
    "Nodes are compared by the shortest of their median round trips to other nodes, because the delays of both nodes "
    f"of a pair add up. A node is reported if its value is more than {FAR:g} times the median of all nodes."
)
_SERVERS_CHARACTERS: Final = 100
"""Most characters of a table's columns; a mesh with more servers is printed as a heat map of the first value."""
_MOST_PAIRS: Final = 6
"""At most this number of pairs whose directions differ have a finding each."""


def part(view: RunView) -> Part | None:
    """Return the report part on a mesh, or None if the run is no mesh."""
    meshes = view.meshes
    if not meshes:
        return None
    form = form_of(meshes)
    top = max(value for mesh in meshes for way in mesh.ways.values() if (value := form.value(way)) is not None)
    return Part(
        findings=tuple(mesh_round_trips(meshes, form) if form.trips else mesh_findings(view.plan, meshes, form)),
        lead=tuple(_tables(mesh, form, top, alone=len(meshes) == 1) for mesh in meshes),
        method=(_TRIPS if form.trips else _MESH,),
        leads=True,
    )


@dataclass(frozen=True, slots=True)
class Form:
    """Format of the two values of a pair: goodput with loss or retransmits, or median and p99 of round trips."""

    words: str  # names of both values, for the legend
    unit: str
    factor: float  # size of the printed unit in Mbit/s or µs
    decimals: int
    value: Callable[[Way], float | None]  # returns the first value of a pair in Mbit/s or µs; None: not measured
    second_unit: str
    second: Callable[[Way], float | None]
    second_text: TextOf
    trips: bool = False

    def number(self, value: float) -> str:
        return f"{value / self.factor:.{self.decimals}f}"

    def text(self, value: float | None) -> str:
        return f"{self.number(value or 0.0)} {self.unit}"


def form_of(meshes: Sequence[Mesh]) -> Form:
    """Return how to print the two values of a pair, in one unit for all meshes of the run."""
    point = meshes[0].point
    if point.kind.round_trips:
        shortest = min(way.rtt_p50_us or 0.0 for mesh in meshes for way in mesh.answered)
        unit, factor = ("ms", 1000.0) if shortest >= 10_000 else ("µs", 1.0)
        decimals = 0 if shortest / factor >= 100 else 1
        words = "the round trip of a message, median (p50) and 99th percentile"
        second = ("p99", lambda way: divide(way.rtt_p99_us, factor), to_decimals(decimals))
        return Form(words, unit, factor, decimals, lambda way: way.rtt_p50_us, *second, trips=True)
    known = [way.mbps or 0.0 for mesh in meshes for way in mesh.known]
    unit, factor = ("Gbit/s", 1000.0) if max(known) >= 1000 else ("Mbit/s", 1.0)
    low = min(known) / factor
    decimals = 0 if low >= 100 else 1 if low >= 10 and factor == 1 else 2 if low >= 0.1 else 3
    if point.transport == "udp":
        words, second = "goodput and loss of datagrams", ("loss %", lambda way: way.loss_pct, _loss_texts)
    else:
        words = "goodput and retransmits (Retr)"
        second = ("Retr", lambda way: way.retransmits, count_texts)
    return Form(words, unit, factor, decimals, lambda way: way.mbps, *second)


def _loss_texts(values: Sequence[float | None]) -> NumberText:
    return alike(values, lambda pct: max(digits_decimals(pct, 2), whole_decimals(pct)))


def point_text(mesh: Mesh) -> str:
    """Return the settings of a mesh as text; for ping-pong tests, with the message size."""
    size = mesh.point.message_bytes if mesh.point.kind.in_messages else None
    return settings_text(mesh.point) + (f", messages of {format_bytes(size)}" if size else "")


def _tables(mesh: Mesh, form: Form, top: float, *, alone: bool) -> Section:
    """Return the section of a mesh: clients in rows, servers in columns, coloured on a scale from 0 to `top`."""
    title = "Client by server" if alone else f"Client by server: {point_text(mesh)}"
    legend = tuple(_legend(mesh, form))
    column = max(len("Gbit/s"), *map(len, mesh.nodes)) + 2
    if 2 * len(mesh.nodes) * column > _SERVERS_CHARACTERS:
        return Section(title, (_heat_map(mesh, form, top), *(Paragraph(line, True) for line in legend)), brief=True)
    return Section(title, (replace(_table(mesh, form, title, top), legend=legend),), brief=True)


def _legend(mesh: Mesh, form: Form) -> Iterator[str]:
    yield f"Clients (rows) send, servers (columns) {'answer' if form.trips else 'receive'}: {form.words}."
    if not mesh.point.kind.in_messages:
        yield f"Limits: {', '.join(_limit_counts(mesh))}."
    if mesh.lopsided:
        names = some([f"{pair.slower.sender} → {pair.slower.receiver}" for pair in mesh.lopsided])
        yield f"Slower than the other direction by more than {100 * DIFFER:g} %: {names}."


def _limit_counts(mesh: Mesh) -> Iterator[str]:
    """Yield how many pairs have each limit, with names if the pairs are few."""
    by_limit = group_by(mesh.ways, lambda ends: mesh.ways[ends].limit or UNKNOWN)
    for limit, pairs in sorted(by_limit.items(), key=lambda item: -len(item[1])):
        few = len(pairs) <= MOST_NAMED and len(by_limit) > 1
        names = f" ({', '.join(f'{source} → {destination}' for source, destination in pairs)})" if few else ""
        yield f"{limit} in {plural(len(pairs), 'pair')}{names}"


def _table(mesh: Mesh, form: Form, title: str, top: float) -> Table:
    columns, entries = [Column("Client", words=True)], [[Entry(client, client) for client in mesh.nodes]]
    for server in mesh.nodes:
        columns += [Column(server, form.unit, minor=-1), Column(server, form.second_unit, minor=2)]
        entries += _entries(mesh, form, [(client, server) for client in mesh.nodes], top)
    return Table(tuple(columns), tuple(map(Row, zip(*entries, strict=True))), label=title)


def _entries(mesh: Mesh, form: Form, column: Sequence[MeshEnds], top: float) -> tuple[list[Entry], list[Entry]]:
    """Return the entries of both columns of a server: the coloured first values, and the second values."""
    slower = {pair.slower.ends for pair in mesh.lopsided}
    measured = [
        (form.value(way), form.second(way)) if (way := mesh.ways.get(ends)) else (None, None) for ends in column
    ]
    text = form.second_text([second for value, second in measured if value is not None])
    first, second = [], []
    for ends, (value, beside) in zip(column, measured, strict=True):
        if value is None:
            first.append(Entry(_dash(ends)))
            second.append(Entry(_dash(ends)))
        else:
            colour = f"h{heat_step(value, top)}"
            first.append(Entry(form.number(value), value / form.factor, "warn" if ends in slower else "", colour))
            second.append(Entry(text(beside), beside))
    return first, second


def _dash(ends: MeshEnds) -> str:
    """Return the text for a pair that was not measured: a dot for a node and itself, else a dash."""
    return "·" if ends[0] == ends[1] else UNKNOWN


def _heat_map(mesh: Mesh, form: Form, top: float) -> HeatMaps:
    def field(client: str, server: str) -> HeatField:
        way = mesh.ways.get((client, server))
        value = None if way is None else form.value(way)
        if value is None:
            return HeatField(_dash((client, server)), "self" if client == server else "")
        return HeatField(form.number(value), f"h{heat_step(value, top)}", value)

    rows = tuple((client, tuple(field(client, server) for server in mesh.nodes)) for client in mesh.nodes)
    steps = tuple(HeatField(form.number(top * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS))
    unit = f"{form.unit} from client (row) to server (column)"
    return HeatMaps((HeatMap("", "client ↓ server →", mesh.nodes, rows),), unit, steps)


def mesh_findings(plan: RunPlan, meshes: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    """Yield the findings on the goodput between nodes, the answer first."""
    known, slow = _values_by_way(meshes, form), _worst_first(plan, meshes)
    behind = [] if slow else [(mesh, each) for mesh in meshes for each in mesh.behind]
    names = list(dict.fromkeys(each.node for _, each in slow or behind))
    ends = _range([value for value, _, _ in known], form)
    statements: tuple[Statement, ...]
    if names:
        holds, who = (_is_slow, _slow_text(slow)) if slow else (_is_behind, _behind_text(behind))
        text, statements = _against(known, slow or behind, form, holds, who)
        places = len({id(mesh) for mesh, _ in slow or behind})
        text += f" in {places} of {len(meshes)} settings" if places < len(meshes) else ""
        verb = "slow" if slow else "behind"
        brief = f"{some(names, 2)} {verb}, {_range([row[0] for row in known if holds(row[1], row[2])], form)}"
    elif all(mesh.is_comparable for mesh in meshes):
        text, statements = _none_slow(known, meshes, form)
        brief = f"no slow node, {ends}"
    else:
        text, brief = f"{ends} between {len(meshes[0].nodes)} nodes, too few measured pairs to tell a slow node", ends
        statements = ()
    if small := list(dict.fromkeys(node for mesh in meshes for each in mesh.small for node in each.nodes)):
        text += f"; {some(small)} {'has' if len(small) == 1 else 'have'} a smaller MTU"
    numbers = {"lowest_mbps": min(value for value, _, _ in known), "highest_mbps": max(value for value, _, _ in known)}
    numbers |= {"slow_nodes": len(names) if slow else 0}
    yield replace(_answer(meshes, form, text, names, numbers, brief), statements=statements)
    yield from slow_findings(plan, meshes, form)
    yield from _behind_findings(meshes, behind, form)
    yield from _small(meshes, form)
    yield from _unequal_pairs(meshes, form)


_Row: TypeAlias = tuple[float, Way, Mesh]
"""The value of a pair, with its mesh."""


def _against(
    known: Sequence[_Row],
    nodes: Sequence[tuple[Mesh, SlowNode]],
    form: Form,
    holds: Callable[[Way, Mesh], bool],
    who: str,
) -> tuple[str, tuple[Statement, ...]]:
    """Return the answer about slower nodes, with the values of their pairs against those of the other pairs."""
    own, others = ([row for row in known if holds(row[1], row[2]) is wanted] for wanted in (True, False))
    slowest, usual = (_range([value for value, *_ in rows], form) if rows else "" for rows in (own, others))
    beside = f" against {usual}" if usual else ""
    text = f"{who}: {slowest.removesuffix(f' {form.unit}' * bool(usual))}{beside}"
    below = Statement(who, own, lambda row: row[0] < max(each.others_mbps for mesh, each in nodes if mesh is row[2]))
    return text, (below, Statement(who, own, lambda row: holds(row[1], row[2]), known))


def _none_slow(known: Sequence[_Row], meshes: Sequence[Mesh], form: Form) -> tuple[str, tuple[Statement, ...]]:
    """Return the answer that no node is slow; it names the pairs that are nevertheless slow, or counts them."""

    def holds(row: _Row) -> bool:
        value, _, mesh = row
        return value >= (1 - SLOW) * mesh.usual_mbps

    usual, low = ([row for row in known if holds(row) is wanted] for wanted in (True, False))
    text = f"No node is slow: {_range([value for value, *_ in usual], form)}"
    statement = Statement("No node is slow", usual, holds, known)
    if not low:
        return f"{text} between {len(meshes[0].nodes)} nodes", (statement,)
    if len(low) <= MOST_NAMED and len(meshes) == 1:
        pairs = join_list([f"{way.sender} → {way.receiver} {form.number(value)}" for value, way, _ in low])
        return f"{text} between {len(meshes[0].nodes)} nodes, but {pairs}", (statement,)
    rest = _range([value for value, *_ in low], form)
    return f"{text} in {len(usual)} of {len(known)} pairs, {rest} in the others", (statement,)


def _is_behind(way: Way, mesh: Mesh) -> bool:
    return any(way.ends[role == "receiving"] == each.node for each in mesh.behind for role in each.roles)


def _behind_text(behind: Sequence[tuple[Mesh, SlowNode]]) -> str:
    """Return which nodes are behind, and by how much: `pi3 sends 10 % less than the others`."""
    shares = span(dict.fromkeys(f"{pct:.0f}" for pct in sorted(_behind_pct(each) for _, each in behind)))
    names = list(dict.fromkeys(each.node for _, each in behind))
    one = len(names) == 1
    roles = {role for _, each in behind for role in each.roles}
    verb = {"sending": "send", "receiving": "receive"}.get(" ".join(roles), "achieve")
    return f"{some(names)} {verb}{'s' if one else ''} {shares} % less than the others"


def _behind_pct(each: SlowNode) -> float:
    return 100 * (1 - each.mbps / each.others_mbps)


def _behind_findings(meshes: Sequence[Mesh], behind: Sequence[tuple[Mesh, SlowNode]], form: Form) -> Iterator[Finding]:
    for node, places in group_by(behind, lambda place: place[1].node).items():
        mesh, each = min(places, key=lambda place: place[1].mbps / place[1].others_mbps)
        numbers = {"goodput_mbps": each.mbps, "others_mbps": each.others_mbps}
        words = {"rate": form.text(each.mbps), "others": form.text(each.others_mbps), "pct": _behind_pct(each)}
        words |= {"directions": _directions(each.roles), "where": _where(meshes, mesh, len(places))}
        yield said.NODE_BEHIND.say(about_nodes([node]), numbers, node=node, **words)


def _is_slow(way: Way, mesh: Mesh) -> bool:
    return any(way.ends[role == "receiving"] == slow.node for slow in mesh.slow for role in slow.roles)


def mesh_round_trips(meshes: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    """Yield the findings on the round trips between nodes, the answer first."""
    known = [value for value, _, _ in _values_by_way(meshes, form)]
    far_nodes = group_by([(mesh, far) for mesh in meshes for far in mesh.far], lambda place: place[1].node)
    ends = _range(known, form)
    verb = "answers" if len(far_nodes) == 1 else "answer"
    late = f"{some(list(far_nodes))} {verb} late" if far_nodes else "No node answers late"
    text = f"{late}: median round trips of {ends} between {len(meshes[0].nodes)} nodes"
    numbers = {"shortest_us": min(known), "longest_us": max(known), "late_nodes": len(far_nodes)}
    brief = f"{some(list(far_nodes), 2)} late, {ends}" if far_nodes else f"round trips {ends}"
    usual = [node for node in meshes[0].nodes if node not in far_nodes]
    statement = Statement(late, usual, lambda node: all(node != far.node for mesh in meshes for far in mesh.far))
    yield replace(_answer(meshes, form, text, far_nodes, numbers, brief), statements=(statement,))
    for node, places in far_nodes.items():
        mesh, far = max(places, key=lambda item: item[1].rtt_us / item[1].others_us)
        own = {"rtt_us": far.rtt_us, "others_us": far.others_us}
        words = {"rtt": form.text(far.rtt_us), "usual": form.text(far.others_us)}
        yield said.NODE_LATE.say(about_nodes([node]), own, node=node, where=_where(meshes, mesh, len(places)), **words)


def _values_by_way(meshes: Sequence[Mesh], form: Form) -> list[tuple[float, Way, Mesh]]:
    ways = [(form.value(way), way, mesh) for mesh in meshes for way in (mesh.answered if form.trips else mesh.known)]
    return [(value, way, mesh) for value, way, mesh in ways if value is not None]


def _range(values: Sequence[float], form: Form) -> str:
    return f"{span([form.number(min(values)), form.number(max(values))])} {form.unit}"


def _answer(
    meshes: Sequence[Mesh], form: Form, text: str, nodes: Collection[str], numbers: dict[str, float], brief: str
) -> Finding:
    """Return the answer about `nodes`; its text says how many pairs were measured if some were not."""
    measured, pairs = len(_values_by_way(meshes, form)), sum(len(mesh.ways) for mesh in meshes)
    part = f"; {measured} of {pairs} pairs measured" if measured < pairs else ""
    subject = about_nodes(nodes) if nodes else RUN
    every = {"nodes": len(meshes[0].nodes), **numbers}
    return Finding("mesh", f"{text}{part}", Weight.ANSWER, subject=subject, numbers=every, brief=brief)


def _worst_first(plan: RunPlan, meshes: Sequence[Mesh]) -> list[tuple[Mesh, SlowNode]]:
    """Return the slow nodes, lowest goodput first; nodes with a slower link in the rig file come last."""
    slow = [(mesh, slow) for mesh in meshes for slow in mesh.slow]
    return sorted(slow, key=lambda place: (bool(_narrow(plan, place[1].node)), place[1].mbps))


def _slow_text(slow: Sequence[tuple[Mesh, SlowNode]]) -> str:
    """Return which nodes are slow, and in which direction: `n1 is slow in sending to the others`."""
    by_node = group_by((each for _, each in slow), lambda each: each.node)
    roles = {node: sorted({role for each in own for role in each.roles}) for node, own in by_node.items()}
    names, verb = [*roles], "is" if len(roles) == 1 else "are"
    if len({*map(tuple, roles.values())}) > 1:
        return f"{some([f'{node} ({join_list(own)})' for node, own in roles.items()])} {verb} slow"
    return f"{some(names)} {verb} slow {_directions(roles[names[0]])}"


def _directions(roles: Sequence[str]) -> str:
    if len(roles) > 1:
        return "in both directions"
    return "in sending to the others" if roles[0] == "sending" else "in receiving from the others"


def slow_findings(plan: RunPlan, meshes: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    """Yield a finding for each slow node; only a note if the rig file gives its link a lower rate."""
    places_of = group_by(_worst_first(plan, meshes), lambda place: place[1].node)
    for node, places in places_of.items():
        mesh, slow = min(places, key=lambda place: place[1].mbps / place[1].others_mbps)
        link = _narrow(plan, node)
        cause, remedy = (f" Its link in the rig file has only {link}.", None) if link else _limits(mesh, slow)
        words = {"rate": form.text(slow.mbps), "directions": _directions(slow.roles), "cause": cause, "remedy": remedy}
        words |= {"others": form.text(slow.others_mbps), "where": _where(meshes, mesh, len(places))}
        numbers: dict[str, FindingValue] = {"goodput_mbps": slow.mbps, "others_mbps": slow.others_mbps}
        numbers["roles"] = " and ".join(slow.roles)
        sentence = said.NODE_SLOW.at(Severity.NOTE if link else Severity.WARNING).advising(remedy is not None)
        yield sentence.say(about_nodes([node]), numbers, node=node, **words)


def _narrow(plan: RunPlan, node: str) -> str:
    own = plan.links[node].rate_bps if node in plan.links else None
    highest = most(link.rate_bps for name, link in plan.links.items() if name != node)
    return format_rate(own) if own and highest and own < (1 - SLOW) * highest else ""


def _limits(mesh: Mesh, slow: SlowNode) -> tuple[str, str | None]:
    """Return a sentence on the limits of a slow node's pairs, and a remedy for the most frequent limit, or None."""
    node = slow.node
    every = [way for way in mesh.known if any(way.ends[role == "receiving"] == node for role in slow.roles)]
    own = [way for way in every if way.limit not in (None, UNKNOWN_LIMIT.word)]
    counts = Counter(str(way.limit) for way in own)
    if 2 * len(own) <= len(every):  # limits of half the pairs or fewer justify no advice
        return "", f"Compare the link speed, processors and driver of {node} with those of the others."
    beside = {limit: LIMIT_SENTENCES[limit].beside(own) for limit in counts}
    texts = [
        f"{limit} ({'; '.join(filter(None, (plural(count, 'pair'), beside[limit])))})"
        for limit, count in counts.most_common()
    ]
    first, count = counts.most_common(1)[0]
    remedy = LIMIT_SENTENCES[first].advice(node, own) if 2 * count > len(every) else None
    return f" Its pairs are limited by: {join_list(texts)}.", remedy


def _small(meshes: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    once = {(small.nodes, small.mtu): small for mesh in reversed(meshes) for small in mesh.small}
    for small in once.values():
        ceiling = ""
        if small.ceiling_mbps is not None and small.others_ceiling_mbps is not None:
            ceiling = f": at most {form.text(small.ceiling_mbps)} instead of {form.text(small.others_ceiling_mbps)}"
        numbers: dict[str, FindingValue] = {"mtu": small.mtu, "others_mtu": small.others_mtu}
        numbers |= {"ceiling_mbps": small.ceiling_mbps, "others_ceiling_mbps": small.others_ceiling_mbps}
        yield MTU_SMALL.say(about_nodes(small.nodes), numbers, nodes=join_list(small.nodes), ceiling=ceiling)


def _where(meshes: Sequence[Mesh], mesh: Mesh, places: int) -> str:
    return f" (with {point_text(mesh)}; in {places} of {len(meshes)} settings)" if len(meshes) > 1 else ""


def _unequal_pairs(meshes: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    by_pair = group_by([(mesh, pair) for mesh in meshes for pair in mesh.lopsided], lambda place: place[1].slower.ends)
    ranked = sorted(by_pair.values(), key=lambda places: min(pair.slower.mbps or 0.0 for _, pair in places))
    for places in ranked[:_MOST_PAIRS]:
        mesh, pair = max(places, key=lambda place: place[1].share)
        slower, faster = pair.slower, pair.faster
        words = {"source": slower.sender, "destination": slower.receiver, "where": _where(meshes, mesh, len(places))}
        words |= {"slower": form.text(slower.mbps), "faster": form.text(faster.mbps)}
        numbers = {"slower_mbps": slower.mbps, "faster_mbps": faster.mbps, "difference_pct": 100 * pair.share}
        yield said.DIRECTIONS.say(_pairs([pair]), numbers, **words)
    if left := [places[0][1] for places in ranked[_MOST_PAIRS:]]:
        more = plural(len(left), "more pair differs", "more pairs differ")
        yield said.MORE_DIRECTIONS.say(_pairs(left), more=more, bound=100 * DIFFER)


def _pairs(pairs: Sequence[UnequalPair]) -> Subject:
    return about_pairs(" -> ".join(pair.slower.ends) for pair in pairs)
