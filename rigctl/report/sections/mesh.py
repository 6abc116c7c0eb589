"""Every node to every other, or to one and back: tables as the lab's page has them, and which nodes are slow."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import DIFFER, FAR, LEAST, SLOW, Ends, FarNode, Lopsided, Mesh, SlowNode, Way
from rigctl.base.units import format_bytes, format_rate
from rigctl.findings import Finding, Number, Severity, Subject, Weight
from rigctl.records import RunPlan
from rigctl.report.blocks import Column, Entry, HeatField, HeatMap, HeatMaps, Paragraph, Part, Row, Section, Table
from rigctl.report.charts.colours import HEAT_STEPS, heat_step
from rigctl.report.tables.columns import NumberText, alike, count_texts, digits_decimals, fixed
from rigctl.report.words.text import MOST_NAMED, UNKNOWN, listed, plural, settings_text

_DIRECTIONS: Final = (
    f"Directions of a pair are reported where they differ by over {100 * DIFFER:g} % and by more than their standard "
    "deviations."
)
_MESH: Final = (
    "A pair of a mesh is as fast as the slower of its ends, so nodes are compared by their highest goodput as sender "
    f"and as receiver. A node is slow where this is more than {100 * SLOW:g} % below the median of all; its pairs are "
    f"then not reported one by one. {_DIRECTIONS}"
)
_STAR: Final = (
    f"A node of a star is slow where its goodput is more than {100 * SLOW:g} % below the median in the same direction; "
    f"where no node is as fast in one direction as in the other, the centre is slow in that one. {_DIRECTIONS}"
)
_TRIPS: Final = (
    "Nodes are compared by their shortest median round trip: a pair is as slow as both its ends together. A node is "
    f"reported where it is more than {FAR:g} times that of the usual node."
)
_MANY_US: Final = 10_000.0
SERVERS_CHARACTERS: Final = 100
"""Width of the columns of one table; more servers go to a table of their own."""
_FEW_PAIRS: Final = 3
"""Pairs of one limit that are named."""
NARROWEST: Final = "Gbit/s"
"""Text that fits in every column."""
ITSELF: Final = "·"
"""Sign for the pair of a node with itself, which is not measured."""
MOST_PAIRS: Final = 6
"""Pairs whose directions differ that are reported one by one."""
_ROLES: Final = {
    ("sending",): "in sending to the others",
    ("receiving",): "in receiving from the others",
    ("sending", "receiving"): "in sending to the others and in receiving from them",
}


def part(view: RunView) -> Part | None:
    """Return the part of a run in which every node sent to every other, or to one and back; None for any other run."""
    found = view.meshes
    if not found:
        return None
    form = form_of(found)
    around = found[0].centre is not None
    return Part(
        findings=tuple(round_trip_findings(found, form) if form.trips else findings(view.plan, found, form.scale)),
        lead=tuple(tables(mesh, form, alone=len(found) == 1) for mesh in found),
        sections=() if around else (heat_maps(found, form),),
        method=(_TRIPS if form.trips else _STAR if around else _MESH,),
        leads=True,
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """One unit for all values of a run's meshes; `factor` is its size in Mbit/s or µs."""

    unit: str
    factor: float
    decimals: int

    def number(self, value: float) -> str:
        return f"{value / self.factor:.{self.decimals}f}"

    def text(self, value: float) -> str:
        return f"{self.number(value)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Form:
    """`value` of a way in Mbit/s or µs; `second` is printed beside it under `second_unit`."""

    what: str
    words: str  # both values, for the legend
    scale: Scale
    value: Callable[[Way], float | None]
    second_unit: str
    second: Callable[[Way], float | None]
    second_text: Callable[[Sequence[float | None]], NumberText]
    trips: bool = False


def form_of(found: Sequence[Mesh]) -> Form:
    """Return the form that suits what was counted, which is the same in all tests of a run."""
    point = found[0].point
    if point.kind.round_trips:
        scale = _times([way.rtt_p50_us or 0.0 for mesh in found for way in mesh.answered])
        words = "the round trip of a message, median (p50) and 99th percentile"
        return Form(
            "Median round trip",
            words,
            scale,
            lambda way: way.rtt_p50_us,
            "p99",
            lambda way: None if way.rtt_p99_us is None else way.rtt_p99_us / scale.factor,
            lambda _: fixed(scale.decimals),
            trips=True,
        )
    scale = _rates([way.mbps or 0.0 for mesh in found for way in mesh.known])
    goodput = partial(Form, "Goodput", scale=scale, value=lambda way: way.mbps)
    if point.transport == "udp":
        return goodput(
            words="goodput and loss of datagrams",
            second_unit="loss %",
            second=lambda way: way.loss_pct,
            second_text=lambda values: alike(values, partial(digits_decimals, digits=2)),
        )
    return goodput(
        words="goodput and retransmits (Retr)",
        second_unit="Retr",
        second=lambda way: way.retransmits,
        second_text=count_texts,
    )


def _rates(known: Sequence[float]) -> Scale:
    unit, factor = ("Gbit/s", 1000.0) if max(known) >= 1000 else ("Mbit/s", 1.0)
    lowest = min(known) / factor
    return Scale(unit, factor, 0 if lowest >= 100 else 1 if lowest >= 10 and factor == 1 else 2 if lowest >= 0.1 else 3)


def _times(known: Sequence[float]) -> Scale:
    unit, factor = ("ms", 1000.0) if min(known) >= _MANY_US else ("µs", 1.0)
    return Scale(unit, factor, 0 if min(known) / factor >= 100 else 1)


def point_text(mesh: Mesh) -> str:
    """Return the settings of a mesh, for messages with their size."""
    settings = settings_text(mesh.point)
    size = mesh.point.message_bytes
    return f"{settings}, messages of {format_bytes(size)}" if mesh.point.kind.in_messages and size else settings


def tables(mesh: Mesh, form: Form, *, alone: bool) -> Section:
    """Return clients in rows and servers in columns; many servers make several tables that fit paper."""
    what = "Client by server" if mesh.centre is None else f"To and from {mesh.centre}"
    title = what if alone else f"{what}: {point_text(mesh)}"
    made = [_star(mesh, form, title)] if mesh.centre else list(_parts(mesh, form, title))
    return Section(title, (*made[:-1], replace(made[-1], legend=tuple(_legend(mesh, form)))), brief=True)


def _legend(mesh: Mesh, form: Form) -> Iterator[str]:
    then = f"{'the' if mesh.centre else 'each'} server {'answers' if form.trips else 'receives'}"
    if mesh.centre is None:
        yield f"The client, in a row, sends; {then}: {form.words}."
    else:
        ways = f"To {mesh.centre} it is the server, from {mesh.centre} the client"
        yield f"{ways}. The client sends; {then}: {form.words}."
    if mesh.centre is None and not mesh.point.kind.in_messages:
        yield f"Limits: {_limit_counts(mesh)}."
    if mesh.lopsided:
        yield f"Marked: slower than the other direction by more than {100 * DIFFER:g} %."


def _limit_counts(mesh: Mesh) -> str:
    """Return how many pairs have each limit, those of few pairs with their names: a star's table has a column."""
    by_limit: dict[str, list[Ends]] = {}
    for ends, way in mesh.ways.items():
        by_limit.setdefault(way.limit or UNKNOWN, []).append(ends)
    said = []
    for limit, pairs in sorted(by_limit.items(), key=lambda item: -len(item[1])):
        few = len(pairs) <= _FEW_PAIRS and len(by_limit) > 1
        names = f" ({', '.join(f'{source} → {destination}' for source, destination in pairs)})" if few else ""
        said.append(f"{limit} in {plural(len(pairs), 'pair')}{names}")
    return ", ".join(said)


def _parts(mesh: Mesh, form: Form, title: str) -> Iterator[Table]:
    width = 2 * (max(len(NARROWEST), *map(len, mesh.nodes)) + 2)
    count = -(-len(mesh.nodes) * width // SERVERS_CHARACTERS)
    size = -(-len(mesh.nodes) // count)
    for at in range(0, len(mesh.nodes), size):
        yield _table(mesh, form, mesh.nodes[at : at + size], title)


def _table(mesh: Mesh, form: Form, servers: Sequence[str], title: str) -> Table:
    """Return both values to each of `servers`."""
    columns, entries = [Column("Client", words=True)], [[Entry(client, client) for client in mesh.nodes]]
    for server in servers:
        columns += [Column(server, form.scale.unit), Column(server, form.second_unit)]
        entries += _entries(mesh, form, [(client, server) for client in mesh.nodes])
    label = title if len(servers) == len(mesh.nodes) else f"{title}, {servers[0]} to {servers[-1]}"
    return Table(tuple(columns), tuple(map(Row, zip(*entries, strict=True))), label=label)


def _star(mesh: Mesh, form: Form, title: str) -> Table:
    """Return a row for each node: both values and the limit, to the centre and from it."""
    limits, centre = not mesh.point.kind.in_messages, mesh.centre or ""
    others = [node for node in mesh.nodes if node != centre]
    columns, entries = [Column("Node", words=True)], [[Entry(node, node) for node in others]]
    for way, ends in (
        (f"to {centre}", [(node, centre) for node in others]),
        (f"from {centre}", [(centre, node) for node in others]),
    ):
        columns += [Column(way, form.scale.unit), Column(way, form.second_unit)]
        entries += _entries(mesh, form, ends)
        if limits:
            columns.append(Column(way, "limit", words=True))
            entries.append([Entry(mesh.ways[each].limit or UNKNOWN, mesh.ways[each].limit) for each in ends])
    return Table(tuple(columns), tuple(map(Row, zip(*entries, strict=True))), label=title)


def _entries(mesh: Mesh, form: Form, column: Sequence[Ends]) -> tuple[list[Entry], list[Entry]]:
    """Return the entries of two columns: both values of each of these ways."""
    slower = {pair.slower.ends for pair in mesh.lopsided}
    measured = {
        ends: (value, form.second(way))
        for ends in column
        if (way := mesh.ways.get(ends)) is not None and (value := form.value(way)) is not None
    }
    text = form.second_text([second for _, second in measured.values()])
    first, second = [], []
    for ends in column:
        if ends not in measured:
            dash = Entry(ITSELF if ends[0] == ends[1] else UNKNOWN)
            first.append(dash)
            second.append(dash)
            continue
        value, beside = measured[ends]
        first.append(Entry(form.scale.number(value), value / form.scale.factor, "warn" if ends in slower else ""))
        second.append(Entry(text(beside), beside))
    return first, second


def heat_maps(found: Sequence[Mesh], form: Form) -> Section:
    """Return the section with a heat map of each mesh; a star has none."""
    values = [value for mesh in found for way in mesh.ways.values() if (value := form.value(way)) is not None]
    top = max(values)
    maps = tuple(_heat(mesh, form, top, "" if len(found) == 1 else point_text(mesh)) for mesh in found)
    steps = tuple(HeatField(form.scale.number(top * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS))
    unit = f"{form.scale.unit} from client (row) to server (column)"
    blocks = (
        HeatMaps(maps, unit, steps, side_by_side=len(maps) > 1),
        Paragraph("Rows: clients; columns: servers. “–” was not measured.", small=True),
    )
    return Section(f"{form.what} from every node to every other", blocks)


def _heat(mesh: Mesh, form: Form, top: float, title: str) -> HeatMap:
    def field(client: str, server: str) -> HeatField:
        way = mesh.ways.get((client, server))
        value = None if way is None else form.value(way)
        if value is None:
            return HeatField(ITSELF if client == server else UNKNOWN, "self" if client == server else "")
        return HeatField(form.scale.number(value), f"h{heat_step(value, top)}", value)

    rows = tuple((client, tuple(field(client, server) for server in mesh.nodes)) for client in mesh.nodes)
    return HeatMap(title, "client ↓ server →", mesh.nodes, rows)


def between(mesh: Mesh) -> str:
    """Return `Between 4 nodes`, or for a star `Between n1 and 3 other nodes`."""
    count = len(mesh.nodes)
    return f"Between {mesh.centre} and {count - 1} other nodes" if mesh.centre else f"Between {count} nodes"


def findings(plan: RunPlan, found: Sequence[Mesh], scale: Scale) -> Iterator[Finding]:
    """Yield the findings of goodput, the answer first."""
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
    """Return `11 of 12 pairs were measured; `, or nothing if all were."""
    pairs = sum(len(mesh.ways) for mesh in found)
    return f"{measured} of {pairs} pairs {'was' if measured == 1 else 'were'} measured; " if measured < pairs else ""


def _named(found: Sequence[Mesh]) -> str:
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
        (first, own), *others = ((node, listed(sorted(own, reverse=True))) for node, own in roles.items())
        said = ", ".join([f"{first} is slow in {own}", *(f"{node} in {roles_}" for node, roles_ in others)])
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
    own = plan.links[node].rate_bps if node in plan.links else None
    others = [link.rate_bps for name, link in plan.links.items() if name != node]
    known = [rate for rate in others if rate is not None]
    return f"{format_rate(own)}" if own and known and own < (1 - SLOW) * max(known) else ""


def _limits(own: Sequence[Way]) -> str:
    counts = Counter(way.limit for way in own)
    said = []
    for limit, count in counts.most_common():
        known = {"path": "; a firewall, a shaper or a slower hop", "other-traffic": "; traffic that is not this run's"}
        why = (known | {"window": _bounded(own)}).get(str(limit), "")
        said.append(f"{limit} ({plural(count, 'pair')}{why})")
    return f" Its pairs are limited by: {listed(said)}." if said else ""


def _bounded(own: Sequence[Way]) -> str:
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


def round_trip_findings(found: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    """Yield the findings of round trips, the answer first."""
    ways = [(way.rtt_p50_us or 0.0, way, mesh) for mesh in found for way in mesh.answered]
    low, high = (choose(ways, key=lambda item: item[0]) for choose in (min, max))

    def place(way: Way, mesh: Mesh) -> str:
        return f"{way.sender} → {way.receiver}" + (f", {point_text(mesh)}" if len(found) > 1 else "")

    grouped: dict[str, list[tuple[Mesh, FarNode]]] = {}
    for mesh in found:
        for far in mesh.far:
            grouped.setdefault(far.node, []).append((mesh, far))
    said = f"{listed(list(grouped))} answer{'s' * (len(grouped) == 1)} late" if grouped else "no node answers late"
    shortest, longest = (f"{form.scale.text(us)} ({place(way, mesh)})" for us, way, mesh in (low, high))
    text = (
        f"{between(found[0])}, the median round trip is shortest at {shortest} and longest at {longest}; "
        f"{measured_text(found, len(ways))}{said}."
    )
    numbers = {"nodes": len(found[0].nodes), "shortest_us": low[0], "longest_us": high[0], "late_nodes": len(grouped)}
    yield Finding(
        text, Weight.ANSWER, subject=Subject("node", tuple(grouped)) if grouped else Subject(), numbers=numbers
    )
    for node, places in grouped.items():
        mesh, far = max(places, key=lambda item: item[1].rtt_us / item[1].others_us)
        where = f" (with {point_text(mesh)}; in {len(places)} of {len(found)} settings)" if len(found) > 1 else ""
        text = (
            f"{node} answers late: its shortest median round trip is {form.scale.text(far.rtt_us)}, that of the usual "
            f"node {form.scale.text(far.others_us)}{where}."
        )
        own = {"rtt_us": far.rtt_us, "others_us": far.others_us}
        yield Finding(text, Weight.BOTTLENECK, Severity.WARNING, Subject("node", (node,)), own)
