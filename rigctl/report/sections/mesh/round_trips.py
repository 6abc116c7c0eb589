"""What a mesh or star of round trips says: the shortest and the longest, and nodes that are far from all."""

from collections.abc import Iterator, Sequence

from rigctl.analysis.views.mesh import FarNode, Mesh, Way
from rigctl.findings import Finding, Severity, Subject, Weight
from rigctl.report.sections.mesh.findings import between, measured_text
from rigctl.report.sections.mesh.form import Form
from rigctl.report.sections.mesh.tables import point_text
from rigctl.report.words.text import listed


def round_trip_findings(found: Sequence[Mesh], form: Form) -> Iterator[Finding]:
    """The answer first."""
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
