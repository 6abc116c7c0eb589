"""The matrix of pairs and flows: heat maps, lines, differences of conditions, and the limit that pairs share.

A heat map is a table whose fields have a colour: its numbers can be read, copied, searched and heard, and it weighs a
tenth of a drawing. The rig file is only named beside what was measured, where it describes the same thing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from rigctl.analysis.limits.hosts import PROCESSORS
from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.matrix import (
    Column,
    ConditionPanels,
    Difference,
    Matrix,
    Panel,
    Place,
    Setting,
    Trend,
    changed,
    columns,
    settings_of,
    trend,
)
from rigctl.base.units import format_duration, format_rate, size_words
from rigctl.findings import Finding, Weight
from rigctl.model.unknowns import most
from rigctl.records import Condition, Direction, RunInfo
from rigctl.report.blocks import Block, Chart, HeatField, HeatMap, HeatMaps, Items, Key, Paragraph, Part, Section
from rigctl.report.charts.plot import HEAT_STEPS, Axis, Line, Plot, heat_step, plot
from rigctl.report.words.text import UNKNOWN, listed, percent_text, plural
from rigctl.settings import DEFAULT, DIRECTION, SETTINGS, WINDOW

COUNTS_AS_DIFFERENCE: Final = 0.02
"""A mean difference below this share of the mean is called none."""
LOW: Final = 0.90
"""A panel whose best sum is below this share of its condition's best stays low."""
_AGREES: Final = 0.03
_RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
MOST_GROUPS: Final = 2
"""Groups of columns that are named; of more, the number of columns is given."""


def matrix_findings(info: RunInfo, found: Matrix) -> Iterator[Finding]:
    """Yield the conclusions of a matrix; the first about a shared limit is the answer."""
    for number, (text, shown) in enumerate(limits(info, found.conditions)):
        yield Finding(text, Weight.ANSWER if number == 0 else Weight.BOTTLENECK, numbers=_numbers(shown))
    low = grouped(found.conditions, low_text)
    said = [_under(own, found.conditions, text) for text, own in low.items() if text]
    for text in [*said, *falling_text(found.conditions)]:
        yield Finding(text, Weight.COMPARISON)
    for difference in found.differences:
        numbers = {"difference_mbps": difference.mean_mbps, "share": difference.share}
        once = " Each test was measured once: no significance is claimed." if info.plan.repeat == 1 else ""
        yield Finding(difference_text(difference) + once, Weight.COMPARISON, numbers=numbers)
        if text := locked_text(difference):
            yield Finding(text, Weight.DETAIL)


def limits(info: RunInfo, conditions: Sequence[ConditionPanels]) -> list[tuple[str, list[Trend]]]:
    """Return where the sum stops growing with the pairs, or that there is no shared limit.

    Conditions that show the same are described together, with the range of their sums.
    """
    stories: list[list[tuple[ConditionPanels, Trend]]] = []
    for condition in conditions:
        shown = trend(info, condition)
        if shown is not None:
            alike = next((story for story in stories if story[0][1].like(shown)), [])
            stories += [] if alike else [alike]
            alike.append((condition, shown))
    said = []
    for named in sorted(stories, key=len, reverse=True):
        trends = [shown for _, shown in named]
        sentence = _sentence(info, trends)
        if trends[0].kind != "neither":
            sentence = f"{sentence} {exception_text([condition for condition, _ in named])}".rstrip()
        said.append((_under([condition for condition, _ in named], conditions, sentence), trends))
    return said


def _under(own: Sequence[ConditionPanels], every: Sequence[ConditionPanels], sentence: str) -> str:
    """Return a sentence with the conditions that it holds for, if it does not hold for all."""
    if len(own) == len(every):
        return sentence
    names = listed([condition.name or "no condition" for condition in own])
    return f"Under {names}: {sentence[:1].lower()}{sentence[1:]}"


def _numbers(trends: Sequence[Trend]) -> dict[str, float | None]:
    return {
        "pairs": trends[0].pairs,
        "goodput_mbps": max(shown.goodput_mbps for shown in trends),
        "each_mbps": most(shown.each_mbps for shown in trends),
        "wire_mbps": most(shown.wire_mbps for shown in trends),
    }


def _sentence(info: RunInfo, shown: Sequence[Trend]) -> str:
    first, sums = shown[0], _range([other.goodput_mbps for other in shown])
    each = _range([other.each_mbps for other in shown if other.each_mbps is not None])
    if first.kind == "growth":
        how = "with every pair" if first.points == first.pairs else "in proportion with the pairs"
        return f"The sum grows {how} up to {first.pairs}: {sums} Gbit/s, {each} for each; no shared limit was reached."
    if first.kind == "neither":
        share = (
            f", {percent_text(first.efficiency)} % of what the links of the rig file allow"
            if first.efficiency is not None
            else ""
        )
        highest = f"The sum is highest with {plural(first.pairs, 'pair')}: {sums} Gbit/s{share}"
        return f"{highest}; it neither grows in proportion with the pairs nor stays level."
    began = (
        f"With {plural(first.pairs, 'pair')}, the sum is only {sums} Gbit/s"
        if first.points == 1
        else f"From {plural(first.pairs, 'pair')} on, the sum stays at {sums} Gbit/s"
    )
    on_wire = [other.wire_mbps for other in shown if other.wire_mbps is not None]
    wire = f" of {_range(on_wire, 1)} Gbit/s on the wire" if on_wire else ""
    if first.busy:
        said = f"{began}, but processors were busy all the time: they may be what the pairs share, not a link."
    else:
        said = f"{began}: a shared limit{wire}."
        if on_wire:
            said += _beside_rig_file(info, max(on_wire))
    return f"{said} With fewer than {first.pairs}, each pair achieves {each} Gbit/s." if each else said


def _range(values: Sequence[float], decimals: int = 2) -> str:
    texts = sorted({f"{value / 1000:.{decimals}f}" for value in values}, key=float)
    return f"{texts[0]} to {texts[-1]}" if len(texts) > 1 else "".join(texts)


def _beside_rig_file(info: RunInfo, wire_mbps: float) -> str:
    trunk = info.plan.trunk
    if trunk is None or trunk.rate_bps is None:
        return ""
    rate = format_rate(float(trunk.rate_bps))
    if abs(wire_mbps * 1e6 / trunk.rate_bps - 1) <= _AGREES:
        return f" The rig file gives the same for the trunk, {rate}."
    return f" The rig file gives {rate} for the trunk: something else limits, or the trunk has another rate."


def low_text(condition: ConditionPanels) -> str:
    """Return the windows that stay low, with the sums of the fewest and of the most pairs; empty where none does.

    A window stays low where its best sum is below `LOW` of the condition's best for most numbers of pairs: with many
    pairs another limit may hold all windows alike.
    """
    sums = [(pairs, total) for panel in condition.panels for (pairs, _), total in panel.sums_mbps.items()]
    tops = {pairs: max(total for _, total in own) for pairs, own in grouped(sorted(sums), lambda sum_: sum_[0]).items()}
    low: list[tuple[str, Panel]] = []
    for panel in condition.panels:
        window = dict(panel.setting).get("window_total_bytes", dict(panel.setting).get("window_bytes"))
        own = _best_of(panel)
        if isinstance(window, int) and own and median(own[pairs][0] / tops[pairs] for pairs in own) < LOW:
            low.append((size_words(window), panel))
    if not low or len(low) == len(condition.panels):
        return ""
    total = any("window_total_bytes" in dict(panel.setting) for panel in condition.panels)
    shown = dict.fromkeys((min(tops), max(tops)))
    parts = [
        f"with {plural(pairs, 'pair')} they achieve at most {listed([_reached(panel, pairs) for _, panel in low])} "
        f"of {gbps(tops[pairs])} Gbit/s"
        for pairs in shown
    ]
    names = dict.fromkeys(name for name, _ in low)
    return f"{'Total windows' if total else 'Windows'} of {listed(list(names))} stay low: {listed(parts)}."


def falling_text(conditions: Sequence[ConditionPanels]) -> list[str]:
    """Return a sentence for each window that achieves less the more flows share it, at the largest number of pairs."""
    stories: dict[tuple[int, int, int, int, bool], list[tuple[str, float, float]]] = {}
    for condition in conditions:
        for panel in condition.panels:
            window = dict(panel.setting).get("window_total_bytes")
            pairs = max((place[0] for place in panel.sums_mbps), default=0)
            row = {flows: total for (count, flows), total in sorted(panel.sums_mbps.items()) if count == pairs}
            if len(row) < 2 or not isinstance(window, int):
                continue
            few, many = min(row), max(row)
            if row[many] < LOW * row[few]:
                busy = panel.cells[pairs, many].limit in PROCESSORS
                stories.setdefault((window, pairs, few, many, busy), []).append((condition.name, row[few], row[many]))
    said = []
    for (window, pairs, few, many, busy), found in stories.items():
        names = [name or "no condition" for name, _, _ in found]
        under = f" under {listed(names)}" if len(found) < len(conditions) else ""
        first, last = ([gbps(value) for value in values] for values in list(zip(*found, strict=True))[1:])
        said.append(
            f"Total windows of {size_words(window)} achieve less the more flows share them{under}: "
            f"{plural(pairs, 'pair')} achieve {listed(first)} Gbit/s with {plural(few, 'flow')}, "
            f"{listed(last)} with {many} ({size_words(window // many)} each)"
            f"{', limited by processors' if busy else ''}."
        )
    return said


def _best_of(panel: Panel) -> dict[int, tuple[float, int]]:
    best: dict[int, tuple[float, int]] = {}
    for (pairs, flows), total in panel.sums_mbps.items():
        best[pairs] = max(best.get(pairs, (0.0, 0)), (total, flows))
    return best


def _reached(panel: Panel, pairs: int) -> str:
    found = _best_of(panel).get(pairs)
    return f"{gbps(found[0])} ({plural(found[1], 'flow')})" if found else UNKNOWN


def difference_text(difference: Difference) -> str:
    """Return what the later condition changed against the earlier, and by how much."""
    fields = sum(len(panel.mbps) for panel in difference.panels)
    earlier = difference.earlier.name or "no condition"
    began = f"{difference.later.name or 'No condition'} against {earlier}{_changes(difference)}"
    average = f"{gbps(difference.mean_mbps, sign=True)} Gbit/s on average over {plural(fields, 'test')}"
    mean = f"{average} ({_percent(difference.share)})"
    setting, place = difference.largest
    title = panel_title(setting)
    where = f"{title[:1].lower() + title[1:]}, {place_text(place)}" if title else place_text(place)
    largest = f"the largest difference is {gbps(difference.largest_mbps, sign=True)} ({where})"
    if abs(difference.share) < COUNTS_AS_DIFFERENCE:
        verdict = f"no difference, {mean}, below the bound of {100 * COUNTS_AS_DIFFERENCE:g} %"
    else:
        verdict = f"{'faster' if difference.share > 0 else 'slower'}, {mean}"
    return f"{began}: {verdict}; {largest}."


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")


def _changes(difference: Difference) -> str:
    """Return ` (MTU 8192 instead of 1500, resizing on instead of off)`."""
    if difference.earlier.condition is None or difference.later.condition is None:
        return ""
    parts = [
        f"{setting_name(name)} {after or 'not set'} instead of {before or 'not set'}"
        for name, (before, after) in changed(difference).items()
    ]
    return f" ({listed(parts)})" if parts else ""


def locked_text(difference: Difference) -> str:
    """Return why tcp_moderate_rcvbuf cannot explain a difference: Linux resizes no buffer that was set (tcp(7))."""
    earlier, later = difference.earlier.condition, difference.later.condition
    if earlier is None or later is None or earlier.resize or later.resize:
        return ""
    values = {settings_of(condition).get(_RESIZE_SYSCTL) for condition in (earlier, later)}
    asked = any(cell.cell[WINDOW] for panel in difference.later.panels for cell in panel.cells.values())
    if len(values) < 2 or not asked:
        return ""
    return (
        f"{_RESIZE_SYSCTL} differs between the two, but windows were set, and Linux locks a buffer that was set: it "
        "resized none in either. A condition with resize: true allows it."
    )


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
    """Return the columns for which the limit does not hold, and what they achieve; empty if it holds for all."""
    placed = [(condition.name or "no condition", column) for condition in conditions for column in columns(condition)]
    behind = [place for place in placed if place[1].is_behind]
    if not behind:
        return ""
    groups = sorted(_groups(behind), key=lambda group: group.worst.share)
    every = sorted({column.flows for _, column in placed})
    said = [
        f"with {_where(group, every, len(conditions))} ({_achieved(group.worst)})" for group in groups[:MOST_GROUPS]
    ]
    left = sum(len(group.columns) for group in groups[MOST_GROUPS:])
    more = f", nor in {plural(left, 'more column')} of {len(placed)}" if left else ""
    return f"This does not hold {', nor '.join(said)}{more}."


def _groups(placed: Sequence[tuple[str, Column]]) -> list[_Group]:
    """Put together the columns of a panel, conditions with the same columns, and panels with the same conditions."""
    panels = grouped(placed, lambda place: (place[1].setting, place[0]))
    alike = grouped(panels, lambda key: (key[0], tuple(sorted(column.flows for _, column in panels[key]))))
    same = grouped(alike, lambda key: (key[1], tuple(name for _, name in alike[key])))
    made = []
    for (flows, names), keys in same.items():
        columns_ = tuple(column for key in keys for panel in alike[key] for _, column in panels[panel])
        made.append(_Group(flows, names, tuple(setting for setting, _ in keys), columns_))
    return made


def _where(group: _Group, every: Sequence[int], conditions: int) -> str:
    """Return `total window 32 KiB and 4 or 10 flows under no resize 1500`."""
    titles = [title[:1].lower() + title[1:] for setting in group.settings if (title := panel_title(setting))]
    words = [listed(titles)] if titles else []
    if list(group.flows) != list(every):
        words.append(_flows_text(group.flows))
    under = f" under {listed(group.names)}" if len(group.names) < conditions else ""
    return (" and ".join(words) or "all settings") + under


def _flows_text(flows: Sequence[int]) -> str:
    """Return `1 flow` or `1, 4 or 10 flows`."""
    words = [str(number) for number in flows]
    return plural(flows[0], "flow") if len(flows) == 1 else f"{', '.join(words[:-1])} or {words[-1]} flows"


def _achieved(column: Column) -> str:
    return f"{plural(column.pairs, 'pair')}: {gbps(column.goodput_mbps)} of {gbps(column.best_mbps)} Gbit/s"


_WINDOWS: Final = {"window_total_bytes": "window_total", "window_bytes": "window"}
"""Names of windows in a panel and in `SETTINGS`."""
_NAMES: Final = {"mtu": "MTU", "resize": "resizing of buffers"}
DIFFERENCE_STEPS: Final = 5
LINE_COLOURS: Final = 10
"""Colours of lines in an order, as 1 to 10 flows: `l0` to `l9`."""
PALE: Final = 0.10
"""The colours of differences reach at least to this share of the highest sum."""
_WIDTH: Final = 400
_HEIGHT: Final = 250
_FEW_POINTS: Final = 60
"""A line with more points than this has no dots."""


def panel_title(setting: Setting) -> str:
    """Return the settings of a panel: `Total window 64 KiB`, `Window 64 KiB, MSS 1460`; empty for a lone one."""
    windows = [name for name, _ in setting if name in _WINDOWS]
    shown = [name for name, value in setting if name in _WINDOWS and value is not None] or windows[:1]
    words = [_part(name, value) for name, value in setting if name not in _WINDOWS or name in shown]
    title = ", ".join(words)
    return title[:1].upper() + title[1:]


def _part(name: str, value: object) -> str:
    setting = SETTINGS.get(_WINDOWS.get(name, name))
    if name in ("duration_s", "omit_s") and isinstance(value, float | int):
        return f"{format_duration(value)}{' omitted' if name == 'omit_s' else ''}"
    if setting is None or setting.said in (None, str) or value == Direction.FORWARD:
        return str(value) if setting is DIRECTION else f"{name} {DEFAULT if value is None else value}"
    if value is None:
        return "window not set" if name in _WINDOWS else f"{setting.called or name} {setting.default}"
    return setting.said(value)


def setting_name(name: str) -> str:
    """Return the name of a condition's setting: a sysctl has its own."""
    return _NAMES.get(name, name)


def condition_text(condition: Condition | None) -> str:
    """Return the settings of a condition: `MTU 1500, resizing of buffers off.`"""
    if condition is None:
        return ""
    words = ", ".join(f"{setting_name(name)} {value}" for name, value in settings_of(condition).items())
    return f"{words[:1].upper()}{words[1:]}."


def place_text(place: Place) -> str:
    return f"{plural(place[0], 'pair')}, {plural(place[1], 'flow')}"


def gbps(mbps: float, sign: bool = False) -> str:
    """Return Mbit/s as Gbit/s with two decimals: `7.91`, with a sign `+0.12` or `−0.12`."""
    value = round(mbps / 1000, 2) + 0.0
    return f"{value:+.2f}".replace("-", "−") if sign else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Grid:
    """Values by row and column; `axis` names the columns: `flows` or `window`."""

    title: str
    axis: str
    rows: tuple[int, ...]  # numbers of pairs
    columns: tuple[str, ...]
    mbps: Mapping[tuple[int, int], float]

    @property
    def names(self) -> list[str]:
        """Return the columns with their unit: `5 flows`."""
        if self.axis != "flows":
            return list(self.columns)
        return [f"{name} {'flow' if name == '1' else 'flows'}" for name in self.columns]


def condition_grids(found: Matrix, condition: ConditionPanels) -> list[Grid]:
    """Return a grid per panel, or one over all panels where there is only one number of flows."""
    return _grids(found, [(panel.setting, panel.sums_mbps) for panel in condition.panels])


def difference_grids(found: Matrix, difference: Difference) -> list[Grid]:
    """Return the grids of a difference of conditions."""
    return _grids(found, [(panel.setting, panel.mbps) for panel in difference.panels])


def _grids(found: Matrix, panels: Sequence[tuple[Setting, Mapping[Place, float]]]) -> list[Grid]:
    def grid(title: str, axis: str, names: Sequence[str], columns: Sequence[tuple[Mapping[Place, float], int]]) -> Grid:
        mbps = {
            (row, column): sums[pairs, flows]
            for column, (sums, flows) in enumerate(columns)
            for row, pairs in enumerate(found.pairs)
            if (pairs, flows) in sums
        }
        return Grid(title, axis, found.pairs, tuple(names), mbps)

    if len(found.flows) > 1 or len(panels) == 1:
        names = [str(flows) for flows in found.flows]
        return [
            grid(panel_title(setting), "flows", names, [(sums, flows) for flows in found.flows])
            for setting, sums in panels
        ]
    return [
        grid("", "window", [_short(setting) for setting, _ in panels], [(sums, found.flows[0]) for _, sums in panels])
    ]


def _short(setting: Setting) -> str:
    """Return a column's head: the window alone where nothing else tells the panels apart."""
    (name, value), *others = setting
    if others or name not in _WINDOWS:
        return panel_title(setting)
    return size_words(value) if isinstance(value, int) else "not set"


def difference_step(mbps: float, most_mbps: float) -> int:
    """Return a colour from −`DIFFERENCE_STEPS` to `DIFFERENCE_STEPS`; 0 is next to no difference."""
    if most_mbps <= 0:
        return 0
    steps = round(DIFFERENCE_STEPS * abs(mbps) / most_mbps)
    return steps if mbps > 0 else -steps


def condition_maps(found: Matrix, condition: ConditionPanels) -> HeatMaps:
    """Return the sums of one condition as heat maps, with lines beside each."""
    grids = condition_grids(found, condition)
    first = grids[0]
    names = first.names
    keys = tuple(Key(name, f"l{colour_of(number, len(names))}") for number, name in enumerate(names))
    return HeatMaps(
        maps=tuple(_heat_map(grid, found.top_mbps) for grid in grids),
        unit=f"Gbit/s by pairs and {first.axis}",
        scale=tuple(HeatField(gbps(found.top_mbps * step / HEAT_STEPS), f"h{step}") for step in range(HEAT_STEPS)),
        keys=keys if len(keys) > 1 else (),
    )


def colour_of(number: int, count: int) -> int:
    """Return the colour of line `number` of `count`: they are spread over all `LINE_COLOURS`."""
    return round(number * (LINE_COLOURS - 1) / (count - 1)) if count > 1 else 0


def _heat_map(grid: Grid, top_mbps: float) -> HeatMap:
    highest = f", {gbps(max(grid.mbps.values()))} Gbit/s at most" if grid.mbps else ""
    label = f"Total goodput by the number of pairs{f': {grid.title}' if grid.title else ''}{highest}"
    chart = Chart(lines(grid, top_mbps), label) if grid.mbps else None
    return _coloured(grid, lambda mbps: HeatField(gbps(mbps), f"h{heat_step(mbps, top_mbps)}", mbps), chart)


def _coloured(grid: Grid, field: Callable[[float], HeatField], chart: Chart | None = None) -> HeatMap:
    rows = [
        (str(pairs), [grid.mbps.get((row, column)) for column in range(len(grid.columns))])
        for row, pairs in enumerate(grid.rows)
    ]
    fields = tuple(
        (label, tuple(HeatField(UNKNOWN, "") if mbps is None else field(mbps) for mbps in values))
        for label, values in rows
    )
    return HeatMap(grid.title, f"pairs ↓ {grid.axis} →", grid.columns, fields, chart)


def difference_maps(found: Matrix, difference: Difference) -> HeatMaps:
    """Return the difference of two conditions as heat maps on one scale, which does not shrink to noise."""
    most = max(abs(difference.largest_mbps), PALE * found.top_mbps)

    def field(mbps: float) -> HeatField:
        step = difference_step(mbps, most)
        return HeatField(gbps(mbps, sign=True), f"{'p' if step > 0 else 'm' if step < 0 else 'z'}{abs(step)}", mbps)

    maps = tuple(_coloured(grid, field) for grid in difference_grids(found, difference))
    return HeatMaps(maps, "Gbit/s", side_by_side=True)


def lines(grid: Grid, top_mbps: float) -> Plot:
    """Return the sum as a function of the pairs, one line per column of the grid."""
    dots = len(grid.mbps) <= _FEW_POINTS
    marks = []
    for column in range(len(grid.columns)):
        points = tuple(
            (float(grid.rows[row]), mbps / 1000) for (row, at), mbps in sorted(grid.mbps.items()) if at == column
        )
        colour = f"l{colour_of(column, len(grid.columns))}"
        marks.append(Line(points, colour, width=1.5, dots=dots, name=grid.names[column]))
    pairs = Axis("pairs", 0, grid.rows[-1], ticks=min(12, grid.rows[-1]))
    return plot(_WIDTH, _HEIGHT, pairs, Axis("Gbit/s", 0, top_mbps * 1.03 / 1000, ticks=6), tuple(marks))


def part(view: RunView) -> Part | None:
    """Return the part of a run whose tests differ in the number of pairs; None for any other run."""
    found = None if view.plan.in_messages else view.matrix
    if found is None:
        return None
    return Part(
        findings=tuple(matrix_findings(view.info, found)),
        lead=tuple(_condition(view, found, condition) for condition in found.conditions),
        sections=_differences(found),
    )


def _condition(view: RunView, found: Matrix, condition: ConditionPanels) -> Section:
    title = f"Total goodput: {condition.name}" if condition.name else "Total goodput"
    said = [condition_text(condition.condition)]
    if len(found.conditions) > 1:  # of a single one the answer has just said it
        said += [*(text for text, _ in limits(view.info, [condition])), low_text(condition)]
    maps = condition_maps(found, condition)
    alike = " and conditions" if len(found.conditions) > 1 else ""
    columns = "flows of a pair" if condition_grids(found, condition)[0].axis == "flows" else "windows"
    note = (
        f"Goodput summed over all pairs, in Gbit/s. Rows: pairs at once; columns: {columns}; the same colours and "
        f"scales in all panels{alike}. “–” was not measured."
    )
    sentences = Items(tuple(filter(None, said)))
    blocks: list[Block] = [*((sentences,) if sentences.sentences else ()), maps, Paragraph(note, small=True)]
    return Section(title, tuple(blocks), brief=True)


def _differences(found: Matrix) -> tuple[Section, ...]:
    note = (
        "Difference of the sums in Gbit/s: blue where the first named is faster, orange where it is slower; the same "
        "colours in all panels. “–” was not measured under both."
    )
    made = []
    for difference in found.differences:
        title = f"Difference: {difference.later.name or 'no condition'} − {difference.earlier.name or 'no condition'}"
        said = Items(tuple(filter(None, (difference_text(difference), locked_text(difference)))))
        made.append(Section(title, (said, difference_maps(found, difference), Paragraph(note, small=True))))
    return tuple(made)
