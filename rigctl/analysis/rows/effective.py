"""The columns of what kernels made of the requested settings, for flows, pairs and tests."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rigctl.model.unknowns import agreed, joined, least, total
from rigctl.records import Flow
from rigctl.settings import SETTINGS

_COMBINED: Final[dict[type, Callable[[Iterable[Any]], Any]]] = {int: least, str: joined, bool: agreed}
"""Combines the values of several flows into that of a row: the smallest number, all names, a flag if all agree."""
_COLUMNS: Final = {
    setting.effective.column: (setting, setting.effective)
    for setting in SETTINGS.values()
    if setting.effective is not None and setting.effective.column is not None
}


def effective_values(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the effective values of settings for `flows`, by their columns."""
    sides = [side for flow in flows for side in (flow.sender, flow.receiver) if side is not None]
    return {
        name: _COMBINED[effective.type](side[setting] for side in sides if effective.ends.has(sender=side.sending))
        for name, (setting, effective) in _COLUMNS.items()
    }


def effective_of_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the effective values of a test, from the rows of its pairs."""
    return {name: _COMBINED[effective.type](row[name] for row in rows) for name, (_, effective) in _COLUMNS.items()}


def zerocopy_share(flows: Sequence[Flow]) -> dict[str, Any]:
    """Return the column `zerocopy_effective`: the share of sends without a copy; None: not known, or not asked."""
    asked = [flow.sender.copying for flow in flows if flow.sender and flow.sender.copying.uncopied_sends is not None]
    sends = total(side.sends for side in asked)
    uncopied = total(side.uncopied_sends for side in asked)
    return {"zerocopy_effective": uncopied / sends if sends and uncopied is not None else None}
