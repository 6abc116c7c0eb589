"""What the eye sees in the panels of a matrix, in words: the shared limit, windows that stay low, what a condition did.

The limit is found from the sums (`shared_limit`); what is on the wire follows from the frames that were really sent.
The rig file is only named beside it, where it says something of the same thing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from rigctl.analysis.bottleneck import PROCESSORS
from rigctl.analysis.ceiling import ip_version
from rigctl.analysis.panels import ConditionPanels, Difference, Matrix, Panel, Place, changed, settings_of
from rigctl.analysis.plateau import growth, shared_limit
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.unknowns import agreed
from rigctl.model.ceilings import wire_bytes
from rigctl.records import RunInfo
from rigctl.report.text import UNKNOWN, listed, plural, size_words
from rigctl.units import format_rate

COUNTS_AS_DIFFERENCE: Final = 0.02
"""A mean difference below this share of the mean is called none."""

LOW: Final = 0.90
"""A panel whose best sum is below this share of its condition's best stays low."""

_AGREES: Final = 0.03
_RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"


def matrix_words(info: RunInfo, found: Matrix) -> list[str]:
    """The conclusions of a matrix, in the order in which a reader asks for them."""
    said = [*limit_words(info, found.conditions), *_low(found), *falling_words(found.conditions)]
    for one in found.differences:
        said += difference_words(one)
    if found.differences and info.plan.repeat == 1:
        said.append("Each test was measured once, so no significance is claimed for these differences.")
    return said


def gbps(mbps: float, sign: bool = False) -> str:
    """Mbit/s as Gbit/s with two decimals: `7.91`, with a sign `+0.12` or `−0.12`."""
    value = round(mbps / 1000, 2) + 0.0
    return f"{value:+.2f}".replace("-", "−") if sign else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a condition's sums tell: a plateau, straight growth, or neither. `wire_gbps` is the plateau on the wire."""

    kind: str  # "limit", "growth", "neither"
    pairs: int  # from which on, or up to which
    goodput_mbps: float
    each_mbps: float | None = None
    wire_gbps: str | None = None  # as it is printed: conditions with the same one have the same limit
    points: int = 0
    busy: bool = False  # processors are what limits in half of the plateau's cells or more

    @property
    def story(self) -> tuple[object, ...]:
        """What two conditions must have in common to be told of in one sentence."""
        return self.kind, self.pairs, self.wire_gbps, self.points == 1, self.busy


def finding(info: RunInfo, condition: ConditionPanels) -> Finding | None:
    """What is found in the sums of a condition; `None` for less than two numbers of pairs."""
    sums = condition.sums_by_pairs()
    plateau, straight = shared_limit(sums), growth(sums)
    if plateau is not None:
        cells = [cell for pairs, best in condition.best_by_pairs().items() if pairs >= plateau.pairs for cell in best]
        share = payload_share(info, cells)
        wire = f"{plateau.goodput_mbps / share / 1000:.1f}" if share else None
        busy = sum(cell.limit in PROCESSORS for cell in cells) * 2 >= len(cells)
        return Finding("limit", plateau.pairs, plateau.goodput_mbps, plateau.each_mbps, wire, plateau.points, busy)
    if straight is not None:
        return Finding("growth", straight.pairs, straight.goodput_mbps, straight.each_mbps, None, len(sums))
    if len(sums) < 2:
        return None
    top = max(sums, key=lambda pairs: sums[pairs])
    return Finding("neither", top, sums[top])


def limit_words(info: RunInfo, conditions: Sequence[ConditionPanels]) -> list[str]:
    """`From 8 pairs on, the sum stays at 7.91 Gbit/s: a shared limit of 8.0 Gbit/s on the wire.` Or that none is.

    Conditions with one story are told of together, with the range of their sums.
    """
    stories: dict[tuple[object, ...], list[tuple[str, Finding]]] = {}
    for condition in conditions:
        found = finding(info, condition)
        if found is not None:
            stories.setdefault(found.story, []).append((condition.name, found))
    said = []
    for told in stories.values():
        sentence = _sentence(info, [one for _, one in told])
        alone = len(told) == len(conditions)
        under = "" if alone else f"Under {listed([name or 'no condition' for name, _ in told])}: "
        said.append(under + (sentence if alone else sentence[:1].lower() + sentence[1:]))
    return said


def _sentence(info: RunInfo, found: Sequence[Finding]) -> str:
    one, sums = found[0], _range([other.goodput_mbps for other in found])
    each = _range([other.each_mbps for other in found if other.each_mbps is not None])
    if one.kind == "growth":
        how = "with every pair" if one.points == one.pairs else "in proportion with the pairs"
        return f"The sum grows {how} up to {one.pairs}: {sums} Gbit/s, {each} for each; no shared limit was reached."
    if one.kind == "neither":
        return (
            f"The sum is highest with {plural(one.pairs, 'pair')}: {sums} Gbit/s; it neither grows in proportion "
            "with the pairs nor stays level, so a shared limit can't be told from other causes."
        )
    began = (
        f"With {plural(one.pairs, 'pair')}, the sum is only {sums} Gbit/s"
        if one.points == 1
        else f"From {plural(one.pairs, 'pair')} on, the sum stays at {sums} Gbit/s"
    )
    wire = f" of {one.wire_gbps} Gbit/s on the wire" if one.wire_gbps else ""
    if one.busy:
        said = f"{began}, but processors were busy all the time: they may be what the pairs share, not a link."
    else:
        said = f"{began}: a shared limit{wire}."
    if one.wire_gbps and not one.busy:
        said += _beside_rig_file(info, float(one.wire_gbps) * 1000)
    return f"{said} With fewer, every pair brings {each} Gbit/s." if each else said


def _range(values: Sequence[float]) -> str:
    texts = sorted({gbps(value) for value in values}, key=float)
    return f"{texts[0]} to {texts[-1]}" if len(texts) > 1 else "".join(texts)


def _beside_rig_file(info: RunInfo, wire_mbps: float) -> str:
    trunk = info.plan.trunk
    if trunk is None or trunk.rate_bps is None:
        return ""
    rate = format_rate(float(trunk.rate_bps))
    if abs(wire_mbps * 1e6 / trunk.rate_bps - 1) <= _AGREES:
        return f" That is what the rig file gives for the trunk, {rate}."
    return f" The rig file gives {rate} for the trunk, so something else binds or the trunk is not what it says."


def payload_share(info: RunInfo, cells: Sequence[CellSummary]) -> float | None:
    """Payload of a full frame as a share of its wire time, as sent; `None` where the frames differ or are not known."""
    streams = [stream for cell in cells for stream in cell.streams]
    sizes = {stream.mss_effective for stream in streams}
    timestamps = agreed(stream.timestamps for stream in streams) is not False
    mss = sizes.pop() if len(sizes) == 1 else None
    return mss / wire_bytes(mss, ip_version(info), timestamps) if mss else None


def _low(found: Matrix) -> Iterator[str]:
    stories: dict[str, list[str]] = {}
    for condition in found.conditions:
        stories.setdefault(low_words(condition), []).append(condition.name)
    for said, names in stories.items():
        if said and len(names) == len(found.conditions):
            yield said
        elif said:
            yield f"Under {listed([name or 'no condition' for name in names])}: {said[:1].lower()}{said[1:]}"


def low_words(condition: ConditionPanels) -> str:
    """Which windows stay low, with what they reach with the fewest pairs and with the most; empty where none does.

    A window stays low where its best sum is below `LOW` of the condition's best for most numbers of pairs: with many
    pairs another limit may hold all windows alike.
    """
    counts = sorted({place[0] for panel in condition.panels for place in panel.sums_mbps})
    tops = {pairs: max(_sums(condition, pairs)) for pairs in counts}
    low: list[tuple[str, Panel]] = []
    for panel in condition.panels:
        window = dict(panel.setting).get("window_total_bytes", dict(panel.setting).get("window_bytes"))
        own = _best_of(panel)
        if isinstance(window, int) and own and median(own[pairs][0] / tops[pairs] for pairs in own) < LOW:
            low.append((size_words(window), panel))
    if not low or len(low) == len(condition.panels):
        return ""
    total = " in all" if any("window_total_bytes" in dict(panel.setting) for panel in condition.panels) else ""
    shown = dict.fromkeys((min(tops), max(tops)))
    parts = [
        f"with {plural(pairs, 'pair')} they reach at most {listed([_reached(panel, pairs) for _, panel in low])} "
        f"of {gbps(tops[pairs])} Gbit/s"
        for pairs in shown
    ]
    names = dict.fromkeys(name for name, _ in low)
    return f"Windows of {listed(list(names))}{total} stay low: {listed(parts)}."


def falling_words(conditions: Sequence[ConditionPanels]) -> list[str]:
    """Windows that bring less the more flows share them, at the largest number of pairs: a sentence per window."""
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
    for (window, pairs, few, many, busy), told in stories.items():
        names = [name or "no condition" for name, _, _ in told]
        under = f" under {listed(names)}" if len(told) < len(conditions) else ""
        first, last = ([gbps(value) for value in values] for values in list(zip(*told, strict=True))[1:])
        said.append(
            f"Windows of {size_words(window)} in all bring less the more flows share them{under}: "
            f"{plural(pairs, 'pair')} reach {listed(first)} Gbit/s with {plural(few, 'flow')}, "
            f"{listed(last)} with {many} ({size_words(window // many)} each)"
            f"{', where processors are what limits' if busy else ''}."
        )
    return said


def _sums(condition: ConditionPanels, pairs: int) -> list[float]:
    return [total for panel in condition.panels for place, total in panel.sums_mbps.items() if place[0] == pairs]


def _best_of(panel: Panel) -> dict[int, tuple[float, int]]:
    """For each number of pairs the highest sum and its number of flows."""
    best: dict[int, tuple[float, int]] = {}
    for (pairs, flows), total in panel.sums_mbps.items():
        best[pairs] = max(best.get(pairs, (0.0, 0)), (total, flows))
    return best


def _reached(panel: Panel, pairs: int) -> str:
    found = _best_of(panel).get(pairs)
    return f"{gbps(found[0])} ({plural(found[1], 'flow')})" if found else UNKNOWN


def place_words(place: Place) -> str:
    """`12 pairs, 1 flow`."""
    return f"{plural(place[0], 'pair')}, {plural(place[1], 'flow')}"


def difference_words(one: Difference) -> list[str]:
    """What the later condition changed against the earlier, and how much that did."""
    fields = sum(len(panel.mbps) for panel in one.panels)
    began = f"{one.later.name or 'No condition'} against {one.earlier.name or 'no condition'}{_changes(one)}"
    mean = f"{gbps(one.mean_mbps, sign=True)} Gbit/s on average over {plural(fields, 'test')} ({_percent(one.share)})"
    title, place = one.largest
    where = f"{title[:1].lower() + title[1:]}, {place_words(place)}" if title else place_words(place)
    largest = f"the largest difference is {gbps(one.largest_mbps, sign=True)} ({where})"
    if abs(one.share) < COUNTS_AS_DIFFERENCE:
        verdict = (
            f"no difference on the whole, {mean}, below the {100 * COUNTS_AS_DIFFERENCE:g} % that count as one here"
        )
    else:
        verdict = f"{'faster' if one.share > 0 else 'slower'}, {mean}"
    return [f"{began}: {verdict}; {largest}.", *_locked(one)]


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")


def _changes(one: Difference) -> str:
    """What the two conditions set differently: ` (MTU 8192 instead of 1500, resizing on instead of off)`."""
    if one.earlier.condition is None or one.later.condition is None:
        return ""
    parts = [
        f"{name} {after or 'not set'} instead of {before or 'not set'}"
        for name, (before, after) in changed(one).items()
    ]
    return f" ({listed(parts)})" if parts else ""


def settings_words(condition: ConditionPanels) -> str:
    """What a condition sets, in one line: `MTU 1500, resizing of buffers off.`"""
    if condition.condition is None:
        return ""
    words = ", ".join(f"{name} {value}" for name, value in settings_of(condition.condition).items())
    return f"{words[:1].upper()}{words[1:]}."


def _locked(one: Difference) -> list[str]:
    """Linux does not resize a buffer that was set: tcp_moderate_rcvbuf can't explain a difference then (tcp(7))."""
    earlier, later = one.earlier.condition, one.later.condition
    if earlier is None or later is None or earlier.resize or later.resize:
        return []
    values = {settings_of(condition).get(_RESIZE_SYSCTL) for condition in (earlier, later)}
    asked = any(cell.cell.window.bytes for panel in one.later.panels for cell in panel.cells.values())
    if len(values) < 2 or not asked:
        return []
    return [
        f"{_RESIZE_SYSCTL} differs between the two, but windows were set, and Linux locks a buffer that was set: "
        "it resized none in either. A condition with resize: true lets it."
    ]
