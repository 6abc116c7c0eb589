"""Report part on a matrix of pairs and flows: total goodput by number of pairs, heat maps, and the shared limit.

A heat map is a table with coloured fields: readers can copy, search and hear its numbers, and it is ten times smaller
than a drawing. If the rig file gives the rate of the trunk, the text compares it with the measured limit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.matrix import (
    LEVEL,
    ConditionChange,
    ConditionPanels,
    FlowsColumn,
    PairsMatrix,
    PairsTrend,
    PanelSettings,
    SettingsPanel,
    columns,
    setting_changes,
    settings_of,
    trend,
)
from rigctl.base.texts import either
from rigctl.base.units import format_duration, format_rate, size_words
from rigctl.base.values import group_by, most
from rigctl.conditions.keys import RESIZE_SYSCTL
from rigctl.findings import Finding, Severity, Statement, Weight
from rigctl.findings.changes import change_text
from rigctl.findings.text import UNKNOWN, join_list, lower_first, percent_text, plural, span, upper_first
from rigctl.limits.hosts import PROCESSORS
from rigctl.records import Condition, Direction, RunInfo
from rigctl.report.blocks import Chart, Charts, HeatField, HeatMap, HeatMaps, Key, Paragraph, Part, Section
from rigctl.report.charts.plot import BESIDE, HEAT_STEPS, Axis, Guide, Line, Mark, Plot, heat_step, plot
from rigctl.settings import DEFAULT, DIRECTION, SETTINGS, WINDOW

_LOW: Final = 0.90
"""Total goodput with a window or number of flows is low if it is below this share of the best."""
_AGREES: Final = 0.03
_WINDOWS: Final = {"window_total_bytes": "window_total", "window_bytes": "window"}
"""Key of a window in `PanelSettings`, and its name in `SETTINGS`."""
_NAMES: Final = {"mtu": "MTU", "resize": "resizing of buffers"}
"""Printed names of a condition's settings; sysctls are printed as they are."""
LINE_COLOURS: Final = 10
"""Number of colours (`l0` to `l9`) for lines in ascending order, such as 1 to 10 flows."""
_HEIGHT: Final = 125
_MOST_PANELS: Final = 12
"""Most panels that are drawn, shared equally by the conditions; the panels with the largest windows are kept."""
_FEW_ROWS: Final = 16
"""Heat maps with more rows than this have a summary before them: the totals of the most pairs."""
_FEW_POINTS: Final = 60
"""A line with more points than this is drawn without dots."""
_MOST_COLUMNS: Final = 3
"""Most windows with lower total goodput that a sentence names; it counts the other settings."""


def matrix_findings(info: RunInfo, matrix: PairsMatrix) -> Iterator[Finding]:
    """Yield the answer, where total goodput stops growing, which windows stay low, and what conditions (MTU) change."""
    for number, (text, alike) in enumerate(_trend_sentences(info, matrix.conditions)):
        numbers = _numbers([own for _, own in alike])
        named = [condition for condition, _ in alike]
        if not number:
            answer = _answer(info, alike)
            answer = replace(answer, text=_under(named, matrix.conditions, answer.text), numbers=numbers)
            yield answer
        if but := _exceptions_text(alike):
            sentence = _under(named, matrix.conditions, but)
            yield Finding("matrix-not-reached", sentence, Weight.BOTTLENECK, Severity.WARNING)
        yield Finding("matrix-limit", text, Weight.BOTTLENECK, numbers=numbers)
    low = group_by(matrix.conditions, _low_text)
    stay_low = [_under(own, matrix.conditions, text) for text, own in low.items() if text]
    for text in [*stay_low, *_falling_text(matrix.conditions)]:
        yield Finding("matrix-trend", text, Weight.COMPARISON)
    for difference in matrix.differences:
        numbers = {"difference_mbps": difference.mean_mbps, "share": difference.change.share}
        yield Finding("condition-change", _difference_text(difference), Weight.COMPARISON, numbers=numbers)
        if text := _buffer_lock_text(difference):
            yield Finding("condition-locked", text, Weight.DETAIL)


Alike: TypeAlias = Sequence[tuple[ConditionPanels, PairsTrend]]
"""Conditions with the same kind of trend, each with its trend."""


def _answer(info: RunInfo, alike: Alike) -> Finding:
    """Return the answer: `The trunk is full with 8 pairs or more: 19 of 24 settings reach 7.3–7.9 Gbit/s together`."""
    first, pairs = alike[0][1], plural(alike[0][1].pairs, "pair")
    if first.kind == "neither":
        rate = f"{_range([own.goodput_mbps for _, own in alike])} Gbit/s"
        tops = [(own.goodput_mbps, total) for condition, own in alike for total in _totals(condition, 1)]
        highest = Statement("Highest", tops, lambda row: row[1] <= row[0])
        text = f"Highest with {pairs}: {rate} together; it neither grows in proportion nor stays level"
        brief = f"highest with {pairs}: {rate}"
        return Finding("matrix", text, Weight.ANSWER, brief=brief, statements=(highest,))
    every = [(condition, column) for condition, own in alike for column in columns(condition, own)]
    reached = [place for place in every if place[1].reaches]
    values = [column.goodput_mbps for _, column in reached]
    if len(every) == 1:
        values = _totals(alike[0][0], 1 if first.kind == "level" else first.pairs)
    rate = f"{_range(values)} Gbit/s"
    all_of_them = "both" if len(every) == 2 else f"all {len(every)}"
    count = all_of_them if len(reached) == len(every) else f"{len(reached)} of {len(every)}"
    who = "" if len(every) == 1 else f"{count} settings reach "
    statements = (Statement(who, reached, lambda row: row[1].reaches, every), _fills(alike))
    if first.kind == "level":
        text = f"{who}{rate} together with every number of pairs, of which too few were measured to name a shared limit"
        brief = f"{rate} with every number of pairs"
        return Finding("matrix", upper_first(text), Weight.ANSWER, brief=brief, statements=statements)
    if first.kind == "growth":
        began = f"No shared limit up to {pairs}"
    else:
        wire_mbps, trunk = first.wire_mbps, info.plan.trunk
        agrees = trunk and trunk.rate_bps and wire_mbps and abs(wire_mbps * 1e6 / trunk.rate_bps - 1) <= _AGREES
        full = "Processors are busy" if first.busy else f"{'The trunk' if agrees else 'A shared link'} is full"
        began = f"{full} with {pairs}{'' if first.points == 1 else ' or more'}"
    brief = f"{lower_first(began.removeprefix('The ').replace(' is full', ' full'))}: {rate}"
    return Finding("matrix", f"{began}: {who}{rate} together", Weight.ANSWER, brief=brief, statements=statements)


def _totals(condition: ConditionPanels, pairs: int) -> list[float]:
    """Return the totals under a condition of all tests with at least `pairs` pairs, in Mbit/s."""
    fields = (field for panel in condition.panels for field in panel.sums_mbps.items())
    return [total for (count, _), total in fields if count >= pairs]


def _fills(alike: Alike) -> Statement:
    """Return the statement that the best totals are level from the trend's number of pairs on."""
    rows = [
        (total, own.goodput_mbps)
        for condition, own in alike
        for pairs, total in condition.sums_by_pairs().items()
        if pairs >= own.pairs
    ]
    return Statement("", rows, lambda row: abs(row[0] / row[1] - 1) <= LEVEL)


def _trend_sentences(info: RunInfo, conditions: Sequence[ConditionPanels]) -> Iterator[tuple[str, Alike]]:
    """Yield sentences on the number of pairs from which total goodput no longer grows, each with its conditions."""
    groups: list[list[tuple[ConditionPanels, PairsTrend]]] = []
    for condition in conditions:
        if (own := trend(info, condition)) is not None:
            alike = next((group for group in groups if group[0][1].like(own)), [])
            groups += [] if alike else [alike]
            alike.append((condition, own))
    for group in sorted(groups, key=len, reverse=True):
        named, trends = [condition for condition, _ in group], [own for _, own in group]
        yield _under(named, conditions, _sentence(info, trends)), group


def _under(own: Sequence[ConditionPanels], every: Sequence[ConditionPanels], sentence: str) -> str:
    """Return the sentence, with `Under NAMES:` before it if it does not hold for all conditions."""
    if len(own) == len(every):
        return sentence
    return f"Under {join_list(list(map(_name_of, own)))}: {lower_first(sentence)}"


def _name_of(condition: ConditionPanels) -> str:
    return condition.name or "no condition"


def _numbers(trends: Sequence[PairsTrend]) -> dict[str, float | None]:
    return {
        "pairs": trends[0].pairs,
        "goodput_mbps": max(own.goodput_mbps for own in trends),
        "each_mbps": most(own.each_mbps for own in trends),
        "wire_mbps": most(own.wire_mbps for own in trends),
    }


def _sentence(info: RunInfo, trends: Sequence[PairsTrend]) -> str:
    first, sums = trends[0], _range([own.goodput_mbps for own in trends])
    each = _range([own.each_mbps for own in trends if own.each_mbps is not None])
    if first.kind == "growth":
        how = "with every pair" if first.points == first.pairs else "in proportion with the pairs"
        rates = f"{sums} Gbit/s, {each} per pair"
        return f"Total goodput grows {how} up to {plural(first.pairs, 'pair')}: {rates}; no shared limit was reached."
    if first.kind == "level":
        few = f"{first.points} different numbers of pairs, which are too few to name a shared limit"
        return f"Total goodput stays at {sums} Gbit/s with {few}."
    if first.kind == "neither":
        allowed = f", {percent_text(first.efficiency)} % of what the links of the rig file allow"
        highest = f"Total goodput is highest with {plural(first.pairs, 'pair')}: {sums} Gbit/s"
        rest = "it neither grows in proportion with the pairs nor stays level."
        return f"{highest}{allowed if first.efficiency is not None else ''}; {rest}"
    began = (
        f"With {plural(first.pairs, 'pair')}, total goodput is only {sums} Gbit/s"
        if first.points == 1
        else f"From {plural(first.pairs, 'pair')} on, total goodput stays at {sums} Gbit/s"
    )
    on_wire = [own.wire_mbps for own in trends if own.wire_mbps is not None]
    if first.busy:
        text = f"{began}, but processors were busy all the time: they may be what the pairs share, not a link."
    elif on_wire:
        text = f"{began}: a shared limit of {_range(on_wire, 1)} Gbit/s on the wire."
        text += _beside_rig_file(info, max(on_wire))
    else:
        text = f"{began}: a shared limit."
    return f"{text} With fewer than {first.pairs} pairs, each pair achieves {each} Gbit/s." if each else text


def _range(values: Sequence[float], decimals: int = 2) -> str:
    return span(f"{end / 1000:.{decimals}f}" for end in (min(values), max(values))) if values else ""


def _beside_rig_file(info: RunInfo, wire_mbps: float) -> str:
    trunk = info.plan.trunk
    if trunk is None or trunk.rate_bps is None:
        return ""
    rate = format_rate(float(trunk.rate_bps))
    if abs(wire_mbps * 1e6 / trunk.rate_bps - 1) <= _AGREES:
        return f" The rig file gives the same for the trunk, {rate}."
    return f" The rig file gives {rate} for the trunk: something else limits, or the trunk has another rate."


def _low_text(condition: ConditionPanels) -> str:
    """Return a sentence on the windows with low total goodput; empty if there are none.

    A window is low if its goodput, in the median over numbers of pairs, is below `_LOW` of the best window's. With many
    pairs it may be as good, because they reach another limit.
    """
    sums = [(pairs, total) for panel in condition.panels for (pairs, _), total in panel.sums_mbps.items()]
    tops = dict(sorted(sums))  # of equal keys, the last and highest remains
    low: list[tuple[str, SettingsPanel]] = []
    for panel in condition.panels:
        window = dict(panel.setting).get("window_total_bytes", dict(panel.setting).get("window_bytes"))
        own = _best_of(panel)
        if isinstance(window, int) and own and median(own[pairs][0] / tops[pairs] for pairs in own) < _LOW:
            low.append((size_words(window), panel))
    if not low or len(low) == len(condition.panels):
        return ""
    total = any("window_total_bytes" in dict(panel.setting) for panel in condition.panels)
    parts = [
        f"with {plural(pairs, 'pair')} they achieve at most {join_list([_reach(panel, pairs) for _, panel in low])} "
        f"of {gbps(tops[pairs])} Gbit/s"
        for pairs in sorted({min(tops), max(tops)})
    ]
    names = list(dict.fromkeys(name for name, _ in low))
    return f"{'Total windows' if total else 'Windows'} of {join_list(names)} stay low: {join_list(parts)}."


def _falling_text(conditions: Sequence[ConditionPanels]) -> Iterator[str]:
    """Yield a sentence per `window_total` that achieves less if more flows share it, at the largest number of pairs."""
    falls: list[tuple[str, tuple[int, int, int, int, bool], float, float]] = []
    for condition in conditions:
        for panel in condition.panels:
            window = dict(panel.setting).get("window_total_bytes")
            pairs = max((place[0] for place in panel.sums_mbps), default=0)
            row = {flows: total for (count, flows), total in panel.sums_mbps.items() if count == pairs}
            few, many = min(row, default=0), max(row, default=0)
            if isinstance(window, int) and row and row[many] < _LOW * row[few]:
                busy = panel.cells[pairs, many].limit in PROCESSORS
                falls.append((_name_of(condition), (window, pairs, few, many, busy), row[few], row[many]))
    for (window, pairs, few, many, busy), own in group_by(falls, lambda fall: fall[1]).items():
        under = f" under {join_list([name for name, *_ in own])}" if len(own) < len(conditions) else ""
        yield (
            f"Total windows of {size_words(window)} achieve less the more flows share them{under}: "
            f"{plural(pairs, 'pair')} achieve {join_list([gbps(first) for *_, first, _ in own])} Gbit/s with "
            f"{plural(few, 'flow')}, {join_list([gbps(last) for *_, last in own])} with {many} "
            f"({size_words(window // many)} each){', limited by processors' if busy else ''}."
        )


def _best_of(panel: SettingsPanel) -> dict[int, tuple[float, int]]:
    """Return the highest total goodput by number of pairs, with the number of flows that achieves it."""
    ranked = sorted((pairs, total, flows) for (pairs, flows), total in panel.sums_mbps.items())
    return {pairs: (total, flows) for pairs, total, flows in ranked}


def _reach(panel: SettingsPanel, pairs: int) -> str:
    best = _best_of(panel).get(pairs)
    return f"{gbps(best[0])} ({plural(best[1], 'flow')})" if best else UNKNOWN


def _difference_text(difference: ConditionChange) -> str:
    """Return a sentence on how total goodput changed from the earlier condition to the later one."""
    fields, mean = sum(map(len, difference.panels.values())), difference.mean_mbps
    began = f"{difference.later.name or 'No condition'} against {_name_of(difference.earlier)}{_changes(difference)}"
    average = "" if mean is None else f", {gbps(mean, sign=True)} Gbit/s on average over {plural(fields, 'test')}"
    setting, (pairs, flows) = difference.largest
    where = ", ".join(filter(None, (lower_first(panel_title(setting)), plural(pairs, "pair"), plural(flows, "flow"))))
    largest = f"the largest difference is {gbps(difference.largest_mbps, sign=True)} ({where})"
    return f"{began}: {change_text(difference.change)}{average}; {largest}."


def _changes(difference: ConditionChange) -> str:
    """Return what differs between two conditions: ` (MTU 8192 instead of 1500, resizing on instead of off)`."""
    if difference.earlier.condition is None or difference.later.condition is None:
        return ""
    parts = [
        f"{_NAMES.get(name, name)} {after or 'not set'} instead of {before or 'not set'}"
        for name, (before, after) in setting_changes(difference.earlier, difference.later).items()
    ]
    return f" ({join_list(parts)})" if parts else ""


def _buffer_lock_text(difference: ConditionChange) -> str:
    """Return a sentence if tcp_moderate_rcvbuf differs without effect, as buffers were set (tcp(7)); else empty."""
    earlier, later = difference.earlier.condition, difference.later.condition
    if earlier is None or later is None or earlier.resize or later.resize:
        return ""
    values = {settings_of(condition).get(RESIZE_SYSCTL) for condition in (earlier, later)}
    asked = any(cell.cell[WINDOW] for panel in difference.later.panels for cell in panel.cells.values())
    if len(values) < 2 or not asked:
        return ""
    return (
        f"{RESIZE_SYSCTL} differs between the two without effect: windows were set, and Linux never resizes a buffer "
        "that was set. A condition with resize: true allows it."
    )


def _exceptions_text(alike: Alike) -> str:
    """Return a sentence on the settings that do not reach the level of their condition's trend, or empty text."""
    if alike[0][1].kind == "neither":
        return ""
    every = [(condition, column) for condition, own in alike for column in columns(condition, own)]
    flows_vary = len({column.flows for _, column in every}) > 1
    low = [place for place in every if not place[1].reaches]
    groups = list(group_by(low, lambda place: (place[0].name, place[1].setting)).values())
    groups.sort(key=lambda own: min(column.goodput_mbps / column.level_mbps for _, column in own))
    texts = [_column_text(own, flows_vary, len(alike)) for own in groups[:_MOST_COLUMNS]]
    left = sum(len(own) for own in groups[_MOST_COLUMNS:])
    more = f"; and in {plural(left, 'more setting')}" if left else ""
    return f"Total goodput stays lower with {'; with '.join(texts)}{more}." if texts else ""


def _column_text(own: Sequence[tuple[ConditionPanels, FlowsColumn]], flows_vary: bool, conditions: int) -> str:
    """Return settings with their highest totals: `total window 32 KiB and 4 or 10 flows (3.56 and 1.19 Gbit/s)`."""
    condition, first = own[0]
    counts = [str(column.flows) for _, column in own]
    flows = f"{either(counts)} flow{'' if counts == ['1'] else 's'}"
    words = [lower_first(panel_title(first.setting)), flows if flows_vary else ""]
    under = f" under {_name_of(condition)}" if conditions > 1 else ""
    rates = join_list([gbps(column.goodput_mbps) for _, column in own])
    settings = " and ".join(filter(None, words)) or "all settings"
    return f"{settings}{under} (at most {rates} of {gbps(first.level_mbps)} Gbit/s)"


def panel_title(setting: PanelSettings) -> str:
    """Return settings as a title: `Total window 64 KiB`, `Window 64 KiB, MSS 1460`; empty if there are none."""
    windows = [name for name, _ in setting if name in _WINDOWS]
    shown = [name for name, value in setting if name in _WINDOWS and value is not None] or windows[:1]
    words = [_part(name, value) for name, value in setting if name not in _WINDOWS or name in shown]
    return upper_first(", ".join(words))


def _part(name: str, value: object) -> str:
    setting = SETTINGS.get(_WINDOWS.get(name, name))
    if name in ("duration_s", "omit_s") and isinstance(value, float | int):
        return f"{format_duration(value)}{' omitted' if name == 'omit_s' else ''}"
    if setting is None or setting.phrase in (None, str) or value == Direction.FORWARD:
        return str(value) if setting is DIRECTION else f"{name} {DEFAULT if value is None else value}"
    if value is None:
        return "window not set" if name in _WINDOWS else f"{setting.noun or name} {setting.default}"
    return setting.phrase(value)


def _condition_note(condition: Condition) -> str:
    """Return the settings of a condition: `MTU 1500, resizing of buffers off`."""
    return ", ".join(f"{_NAMES.get(name, name)} {value}" for name, value in settings_of(condition).items())


def gbps(mbps: float, sign: bool = False) -> str:
    """Return Mbit/s as Gbit/s with two decimals: `7.91`, with a sign `+0.12` or `−0.12`."""
    value = round(mbps / 1000, 2) + 0.0
    return f"{value:+.2f}".replace("-", "−") if sign else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class SumGrid:
    """Total goodput in Mbit/s: a row per number of pairs, a column per number of flows or window, as `axis` says."""

    title: str
    axis: str
    pairs: tuple[int, ...]
    columns: tuple[tuple[str, Mapping[int, float]], ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns: `5 flows`, or a window."""
        return [plural(int(name), "flow") if self.axis == "flows" else name for name, _ in self.columns]

    @property
    def mbps(self) -> list[float]:
        """Return the values of all columns in Mbit/s."""
        return [mbps for _, values in self.columns for mbps in values.values()]


def condition_grids(matrix: PairsMatrix, condition: ConditionPanels) -> list[SumGrid]:
    """Return a grid per window with a column per number of flows; if this number never varies, one grid of windows."""
    panels = condition.panels

    def column(panel: SettingsPanel, flows: int) -> dict[int, float]:
        return {pairs: mbps for (pairs, own), mbps in sorted(panel.sums_mbps.items()) if own == flows}

    if len(matrix.flows) == 1 and len(panels) > 1:
        by_window = tuple((_short(panel.setting), column(panel, matrix.flows[0])) for panel in panels)
        return [SumGrid("", "window", matrix.pairs, by_window)]
    by_flows = (tuple((str(flows), column(panel, flows)) for flows in matrix.flows) for panel in panels)
    titles = (panel_title(panel.setting) for panel in panels)
    return [SumGrid(title, "flows", matrix.pairs, own) for title, own in zip(titles, by_flows, strict=True)]


def _short(setting: PanelSettings) -> str:
    """Return a column head: the window, or all settings if not only the window differs."""
    (name, value), *others = setting
    if others or name not in _WINDOWS:
        return panel_title(setting)
    return size_words(value) if isinstance(value, int) else "not set"


def _summary(matrix: PairsMatrix) -> HeatMaps:
    """Return heat maps of total goodput with the most pairs: a row per condition, or per window if there is only one.

    Where windows limit goodput, more pairs do not help; with fewer pairs, the links of the pairs may be the limit.
    """
    grids = [(_name_of(own), grid) for own in matrix.conditions for grid in condition_grids(matrix, own)]
    several = len(matrix.conditions) > 1
    maps = []
    for title, own in group_by(grids, lambda one: one[1].title if several else "").items():
        axis, names = own[0][1].axis, tuple(name for name, _ in own[0][1].columns)
        rows = tuple(
            (
                name if several else grid.title,
                tuple(_heat_field(values.get(matrix.pairs[-1]), matrix.top_mbps) for _, values in grid.columns),
            )
            for name, grid in own
        )
        maps.append(HeatMap(lower_first(title), f"{'condition' if several else 'window'} ↓ {axis} →", names, rows))
    return HeatMaps(tuple(maps), "Gbit/s", _scale(matrix))


def _heat_maps(matrix: PairsMatrix) -> HeatMaps:
    """Return heat maps of total goodput under all conditions, with one colour scale."""
    grids = [(own.name, grid) for own in matrix.conditions for grid in condition_grids(matrix, own)]
    maps = tuple(_heat_map(grid, name, matrix.top_mbps) for name, grid in grids)
    return HeatMaps(maps, "Gbit/s", _scale(matrix), folded=True)


def _scale(matrix: PairsMatrix) -> tuple[HeatField, ...]:
    return tuple(HeatField(gbps(matrix.top_mbps * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS))


def _heat_map(grid: SumGrid, name: str, top_mbps: float) -> HeatMap:
    rows = tuple(
        (str(pairs), tuple(_heat_field(values.get(pairs), top_mbps) for _, values in grid.columns))
        for pairs in grid.pairs
    )
    title = ", ".join(filter(None, (name, lower_first(grid.title) if name else grid.title)))
    return HeatMap(title, f"pairs ↓ {grid.axis} →", tuple(column for column, _ in grid.columns), rows)


def _heat_field(mbps: float | None, top_mbps: float) -> HeatField:
    return HeatField(UNKNOWN, "") if mbps is None else HeatField(gbps(mbps), f"h{heat_step(mbps, top_mbps)}", mbps)


def _picture(view: RunView, matrix: PairsMatrix) -> Charts:
    """Return charts of total goodput by number of pairs: one per condition and window, a line per number of flows."""
    each = max(1, _MOST_PANELS // len(matrix.conditions))
    charts, names = [], list[str]()
    trunk = "the trunk's ceiling" if view.plan.trunk else "ceiling of the shared link"
    for condition in matrix.conditions:
        grids = [grid for grid in condition_grids(matrix, condition) if grid.mbps]
        every = [cell for panel in condition.panels for cell in panel.cells.values()]
        shared = most(cell.ceiling_mbps for cell in every if cell.shared)
        for grid in grids[-each:]:
            names = grid.names
            words = lower_first(grid.title) if condition.name else grid.title
            which = ", ".join(filter(None, (condition.name, words)))
            what = f"Total goodput by the number of pairs{which and f', {which}'}"
            label = f"{what}: {gbps(max(grid.mbps))} Gbit/s at most"
            rule = () if shared is None else (Guide(shared / 1000, name=trunk),)
            drawn = _sum_lines(grid, max(matrix.top_mbps, shared or 0.0), rule)
            charts.append(Chart(drawn, label, words, condition.name))
    keys = [Key(name, f"l{_colour_of(number, len(names))}") for number, name in enumerate(names)]
    if any(isinstance(mark, Guide) for chart in charts for mark in chart.plot.panels[0].marks):
        keys.append(Key(trunk, "ceiling"))
    return Charts(tuple(charts), tuple(keys))


def _colour_of(number: int, count: int) -> int:
    """Return the index of the colour for line `number` of `count`, spread over all `LINE_COLOURS`."""
    return round(number * (LINE_COLOURS - 1) / (count - 1)) if count > 1 else 0


def _sum_lines(grid: SumGrid, top_mbps: float, rule: tuple[Guide, ...]) -> Plot:
    """Return a plot of total goodput by number of pairs, with a line per column of the grid."""
    marks: list[Mark] = [*rule]
    for number, (name, (_, values)) in enumerate(zip(grid.names, grid.columns, strict=True)):
        points = tuple((float(pairs), mbps / 1000) for pairs, mbps in values.items())
        colour = f"l{_colour_of(number, len(grid.columns))}"
        marks.append(Line(points, colour, width=1.5, dots=len(grid.mbps) <= _FEW_POINTS, name=name))
    pairs = Axis("pairs", 0, grid.pairs[-1], ticks=min(6, grid.pairs[-1]))
    return plot(BESIDE, _HEIGHT, pairs, Axis("Gbit/s", 0, top_mbps * 1.03 / 1000, ticks=4), tuple(marks))


def part(view: RunView) -> Part | None:
    """Return the report part on a matrix, or None if the tests do not differ in the number of pairs."""
    matrix = None if view.plan.in_messages else view.matrix
    if matrix is None:
        return None
    texts = [f"{own.name}: {_condition_note(own.condition)}." for own in matrix.conditions if own.condition]
    maps = _heat_maps(matrix)
    if any(field.value is None for one in maps.maps for _, fields in one.rows for field in fields):
        texts.insert(0, "“–” was not measured.")
    notes = (Paragraph(" ".join(texts), small=True),) if texts else ()
    is_long = sum(len(own.rows) for own in maps.maps) > _FEW_ROWS
    lead = [Section("Total goodput", (maps, *notes), brief=not is_long, full=True)]
    if is_long:
        title = f"Total goodput with {plural(matrix.pairs[-1], 'pair')}"
        lead.insert(0, Section(title, (_summary(matrix),), brief=True))
    return Part(
        findings=tuple(matrix_findings(view.info, matrix)),
        lead=tuple(lead),
        picture=_picture(view, matrix),
        leads=True,
    )
