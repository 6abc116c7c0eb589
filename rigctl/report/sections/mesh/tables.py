"""Client by server as the lab's page has it, with a heat map; of a star a row for each node around its centre."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.views.mesh import DIFFER, Ends, Mesh
from rigctl.base.units import format_bytes
from rigctl.report.blocks import Column, Entry, HeatField, HeatMap, HeatMaps, Paragraph, Row, Section, Table
from rigctl.report.charts.heat import HEAT_STEPS, heat_step
from rigctl.report.sections.mesh.form import Form
from rigctl.report.words.text import UNKNOWN, plural, settings_text

SERVERS_CHARACTERS: Final = 100
"""Width of the columns of one table; more servers go to a table of their own."""
_FEW_PAIRS: Final = 3
"""Pairs of one limit that are named."""
NARROWEST: Final = "Gbit/s"
"""What a column is at least as wide as."""


ITSELF: Final = "·"
"""Sign for the pair of a node with itself, which is not measured."""


def point_text(mesh: Mesh) -> str:
    """The settings of its point, of messages with their size."""
    settings = settings_text(mesh.point)
    size = mesh.point.message_bytes
    return f"{settings}, messages of {format_bytes(size)}" if mesh.point.kind.in_messages and size else settings


def tables(mesh: Mesh, form: Form, *, alone: bool) -> Section:
    """Client in rows, server in columns; with many servers as tables below each other that fit paper."""
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
        yield f"Limits: {_limits(mesh)}."
    if mesh.lopsided:
        yield f"Marked: slower than the other direction by more than {100 * DIFFER:g} %."


def _limits(mesh: Mesh) -> str:
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
    """Both values to each of `servers`."""
    columns = [Column("Client", words=True)]
    for server in servers:
        columns += [Column(server, form.scale.unit), Column(server, form.second_unit)]
    rows = [
        Row((Entry(client, client), *(entry for server in servers for entry in _entries(mesh, form, (client, server)))))
        for client in mesh.nodes
    ]
    label = title if len(servers) == len(mesh.nodes) else f"{title}, {servers[0]} to {servers[-1]}"
    return Table(tuple(columns), tuple(rows), label=label)


def _star(mesh: Mesh, form: Form, title: str) -> Table:
    """A row for each node: both values and the limit, to the centre and from it."""
    limits = not mesh.point.kind.in_messages
    columns = [Column("Node", words=True)]
    for way in (f"to {mesh.centre}", f"from {mesh.centre}"):
        columns += [Column(way, form.scale.unit), Column(way, form.second_unit)]
        columns += [Column(way, "limit", words=True)] if limits else []
    rows = []
    for node in mesh.nodes:
        if node == mesh.centre:
            continue
        entries = [Entry(node, node)]
        for ends in ((node, mesh.centre or ""), (mesh.centre or "", node)):
            entries += _entries(mesh, form, ends)
            limit = mesh.ways[ends].limit
            entries += [Entry(limit or UNKNOWN, limit)] if limits else []
        rows.append(Row(tuple(entries)))
    return Table(tuple(columns), tuple(rows), label=title)


def _entries(mesh: Mesh, form: Form, ends: Ends) -> tuple[Entry, Entry]:
    way = mesh.ways.get(ends)
    value = None if way is None else form.value(way)
    if way is None or value is None:
        dash = Entry(ITSELF if ends[0] == ends[1] else UNKNOWN)
        return dash, dash
    slower = any(pair.slower.ends == ends for pair in mesh.lopsided)
    return Entry(form.scale.number(value), value / form.scale.factor, "warn" if slower else ""), form.second(way)


def heat_maps(found: Sequence[Mesh], form: Form) -> Section:
    """Of meshes; a star's table is short enough."""
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
