"""For which columns of a matrix a sentence about its best sums does not hold, and what they achieve instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.views.panels import ConditionPanels, Setting
from rigctl.analysis.views.trend import Column, columns
from rigctl.report.sections.matrix.titles import gbps, panel_title
from rigctl.report.words.text import listed, plural

MOST_GROUPS: Final = 2
"""Groups of columns that are named; of more, the number of columns is given."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns that one phrase names: some numbers of flows of some panels, under some conditions."""

    flows: tuple[int, ...]
    names: tuple[str, ...]  # of conditions
    settings: tuple[Setting, ...]
    columns: tuple[Column, ...]

    @property
    def worst(self) -> Column:
        return min(self.columns, key=lambda column: column.share)


def exception_text(conditions: Sequence[ConditionPanels]) -> str:
    """`This does not hold with total window 32 KiB and 4 or 10 flows (12 pairs: 1.17 of 7.50 Gbit/s).` Or nothing."""
    placed = [(condition.name or "no condition", column) for condition in conditions for column in columns(condition)]
    behind = [place for place in placed if place[1].is_behind]
    if not behind:
        return ""
    groups = sorted(_groups(behind), key=lambda group: group.worst.share)
    kept = _groups([place for place in placed if not place[1].is_behind])
    every = sorted({column.flows for _, column in placed})
    if len(kept) == 1 and (len(groups) > MOST_GROUPS or 2 * len(behind) > len(placed)):
        where = _where(kept[0], every, len(conditions))
        return f"This holds only with {where}; elsewhere the sum is lower ({_achieved(groups[0].worst)})."
    said = [
        f"with {_where(group, every, len(conditions))} ({_achieved(group.worst)})" for group in groups[:MOST_GROUPS]
    ]
    left = sum(len(group.columns) for group in groups[MOST_GROUPS:])
    more = f", nor in {plural(left, 'more column')} of {len(placed)}" if left else ""
    return f"This does not hold {', nor '.join(said)}{more}."


def _groups(placed: Sequence[tuple[str, Column]]) -> list[_Group]:
    """Put together the columns of a panel, conditions with the same columns, and panels with the same conditions."""
    of_panel: dict[tuple[Setting, str], list[Column]] = {}
    for name, column in placed:
        of_panel.setdefault((column.setting, name), []).append(column)
    named: dict[tuple[Setting, tuple[int, ...]], list[tuple[str, list[Column]]]] = {}
    for (setting, name), own in of_panel.items():
        flows = tuple(sorted(column.flows for column in own))
        named.setdefault((setting, flows), []).append((name, own))
    grouped: dict[tuple[tuple[int, ...], tuple[str, ...]], list[tuple[Setting, list[Column]]]] = {}
    for (setting, flows), found in named.items():
        names = tuple(name for name, _ in found)
        grouped.setdefault((flows, names), []).append((setting, [column for _, own in found for column in own]))
    made = []
    for (flows, names), panels in grouped.items():
        every = tuple(column for _, own in panels for column in own)
        made.append(_Group(flows, names, tuple(setting for setting, _ in panels), every))
    return made


def _where(group: _Group, every: Sequence[int], conditions: int) -> str:
    """`total window 32 KiB and 4 or 10 flows under no resize 1500`."""
    titles = [title[:1].lower() + title[1:] for setting in group.settings if (title := panel_title(setting))]
    words = [listed(titles)] if titles else []
    if list(group.flows) != list(every):
        words.append(_flows_text(group.flows, every))
    under = f" under {listed(group.names)}" if len(group.names) < conditions else ""
    return (" and ".join(words) or "all settings") + under


def _flows_text(flows: Sequence[int], every: Sequence[int]) -> str:
    """`1 flow`, `4 or 10 flows`; neighbours among the values of the axis as a range, `4 to 10 flows`."""
    first = every.index(flows[0])
    if len(flows) > 2 and list(every[first : first + len(flows)]) == list(flows):
        return f"{flows[0]} to {flows[-1]} flows"
    words = [str(number) for number in flows]
    return plural(flows[0], "flow") if len(flows) == 1 else f"{', '.join(words[:-1])} or {words[-1]} flows"


def _achieved(column: Column) -> str:
    return f"{plural(column.pairs, 'pair')}: {gbps(column.goodput_mbps)} of {gbps(column.best_mbps)} Gbit/s"
