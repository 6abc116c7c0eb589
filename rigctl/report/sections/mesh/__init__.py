"""Every node to every other, or to one and back: tables as the lab's page has them, and which nodes are slow."""

from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import DIFFER, FAR, SLOW
from rigctl.report.blocks import Part
from rigctl.report.sections.mesh.findings import findings
from rigctl.report.sections.mesh.form import form_of
from rigctl.report.sections.mesh.round_trips import round_trip_findings
from rigctl.report.sections.mesh.tables import heat_maps, tables

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


def part(view: RunView) -> Part | None:
    """Of a run in which every node sent to every other, or to one and back; `None` of any other."""
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
