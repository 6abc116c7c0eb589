"""Sentences on the panels of a matrix: the shared limit, windows that stay low, differences of conditions.

The rig file is only named beside what was found, where it describes the same thing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from rigctl.analysis.limits.processors import PROCESSORS
from rigctl.analysis.rows.cells import grouped
from rigctl.analysis.views.panels import ConditionPanels, Difference, Matrix, Panel, Setting, changed, settings_of
from rigctl.analysis.views.trend import Column, Trend, columns, trend
from rigctl.base.units import format_rate, size_words
from rigctl.findings import Finding, Weight
from rigctl.model.unknowns import most
from rigctl.records import RunInfo
from rigctl.report.sections.matrix.panels import gbps, panel_title, place_text, setting_name
from rigctl.report.words.text import UNKNOWN, listed, percent_text, plural
from rigctl.settings import WINDOW

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
