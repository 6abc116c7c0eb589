"""Figures of the phases of a traffic class: `during.loss_pct` is its loss while other classes send.

Every figure of the export level `phases` has one for each phase. They have no columns of their own in exports.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from rigctl.figures import BY_NAME, FIGURES, DataColumn
from rigctl.figures.figure import TCP_AND_UDP, Figure
from rigctl.model.phases import AFTER, BEFORE, DURING, PHASES
from rigctl.settings.setting import Level

_T = TypeVar("_T")
_WHEN: Final = {
    BEFORE: "before other classes send",
    DURING: "while other classes send",
    AFTER: "after other classes have sent",
}
PHASE_FIGURES: Final = tuple(figure for figure in FIGURES.values() if Level.PHASES in figure.levels)
"""The figures that a phase has, in the order of the column table."""


def _of_phase(figure: Figure[Any], phase: str) -> Figure[Any]:
    compared = figure.compared
    if compared is not None:
        compared = replace(compared, name=f"{compared.name} {phase}", short=f"{compared.short} {phase}")
    return replace(
        figure,
        name=f"{phase}.{figure.name}",
        meaning=f"{figure.meaning}; {_WHEN[phase]}",
        compute=None,
        kinds=tuple(kind for kind in figure.kinds if kind in TCP_AND_UDP),  # only these kinds have classes
        alias=figure.alias and f"{phase}.{figure.alias}",
        watched=False,
        compared=compared,
        shown=None,
    )


OF_PHASES: Final[Mapping[str, Figure[Any]]] = {
    own.name: own for phase in PHASES for own in (_of_phase(figure, phase) for figure in PHASE_FIGURES)
}
"""Maps names such as `during.loss_pct` to figures."""


def in_phase(figure: Figure[_T], phase: str) -> Figure[_T]:
    """Return the figure of one phase."""
    return OF_PHASES[f"{phase}.{figure.name}"]


def column_named(name: str) -> DataColumn:
    """Return the column, or the figure of a phase, with this name."""
    return OF_PHASES.get(name) or BY_NAME[name]
