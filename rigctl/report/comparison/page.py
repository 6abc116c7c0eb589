"""The document of a comparison: one sentence, the changes by size, a chart, and what else differs."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from rigctl.analysis.nights.comparison import Change, Comparison
from rigctl.base.version import __version__
from rigctl.findings import by_weight
from rigctl.model.statistics.samples import ALIKE, CONFIDENCE, NEGLIGIBLE, Verdict
from rigctl.records import Cell, RunInfo
from rigctl.report.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    Document,
    Entry,
    Folded,
    Items,
    Key,
    Paragraph,
    Row,
    Section,
    Table,
    Verbatim,
)
from rigctl.report.charts.plot import Axis, Mark, Plot, Points, Rule, Spans, plot
from rigctl.report.comparison.words import (
    findings,
    interval_text,
    named,
    signed,
    up,
    verdict_text,
    why,
)
from rigctl.report.document import MOST_ROWS, rig_words, when
from rigctl.report.tables import requested
from rigctl.report.tables.requested import SENDING, Requested
from rigctl.report.words.metrics import METRICS, sum_words
from rigctl.report.words.setup import setup_texts, setup_title, where_text
from rigctl.report.words.text import UNKNOWN, settings_text

MOST_PAIRS: Final = 200
"""Changes of pairs in the table; the JSON has all."""
_MARKS: Final[dict[Verdict, Literal["warn", "good"]]] = {Verdict.WORSE: "warn", Verdict.BETTER: "good"}
MOST_DRAWN: Final = 60
_ROWS: Final = 20
"""Rows of a chart: it then fits a telephone, and three stand side by side on a screen."""
_ROW: Final = 20
_WIDTH: Final = 400
_LOOKS: Final = {
    Verdict.WORSE: Key("worse", "s2"),
    Verdict.BETTER: Key("better", "s3"),
    Verdict.SAME: Key("same", "s1"),
    Verdict.INCONCLUSIVE: Key("inconclusive", "axis"),
}


def comparison_document(comparison: Comparison) -> Document:
    """Return the comparison as a document for every printer."""
    before, after = comparison.before, comparison.after
    against = after.plan.against if before.run == after.run else None
    title = after.plan.title or after.plan.scenario_name
    if against is not None:
        title += f": {against.setting} {against.after} against {against.before}"
        about: tuple[str, ...] = (rig_words(after.plan), when(after))
    else:
        title += ": two runs compared"
        about = (rig_words(after.plan), *(f"{which}: {when(info)}" for which, info in _sides(before, after)))
    return Document(
        title=title,
        run=after.run if against is not None else f"{before.run} and {after.run}",
        about=about,
        notes="",
        findings=by_weight(findings(comparison)),
        results=tuple(_results(comparison)),
        sections=tuple(_sections(comparison)),
        footer=f"Made by rigctl {__version__}. “–” is unknown. Rates are decimal.",
    )


def _sides(before: RunInfo, after: RunInfo) -> tuple[tuple[str, RunInfo], ...]:
    return ("before", before), ("after", after)


def _results(comparison: Comparison) -> Iterator[Section]:
    if comparison.tests:
        table = _table(comparison.tests, comparison.bound, "Changes")
        yield Section("Changes", (table,), brief=True)
    if comparison.streams:
        news = any(change.difference.verdict in _MARKS for change in comparison.streams)
        yield Section("Pairs", tuple(_pairs(comparison, open_=news)), brief=news)


def _pairs(comparison: Comparison, *, open_: bool) -> Iterator[Block]:
    """Yield the table of pairs, of very many the largest changes; folded where nothing is new."""
    count = len(comparison.streams)
    table = _table(comparison.streams[:MOST_PAIRS], comparison.bound, "Pairs")
    yield table if open_ and count <= MOST_ROWS else Folded(f"The {len(table.rows)} largest changes of pairs", (table,))
    if count > MOST_PAIRS:
        yield Paragraph(f"`rigctl compare --json` gives all {count}.", small=True)


def _table(changes: Sequence[Change], bound: float, label: str) -> Table:
    cells = [change.cell for change in changes]
    metrics = list(dict.fromkeys(change.metric for change in changes))
    hidden = SENDING if label == "Pairs" else None  # each row names its own pair
    asked = [
        item for item in requested.COMPARED if item is not hidden and len({item.value(cell) for cell in cells}) > 1
    ]
    unit = METRICS[metrics[0]].unit if len(metrics) == 1 else ""
    sums = "" if label == "Pairs" else next(filter(None, (sum_words(cells, metric) for metric in metrics)), "")
    of_all = f", {sums}" if sums else ""
    columns = [
        Column("Test", "", "requested"),
        *(item.column for item in asked),
        *([Column("Pair", "", "requested", words=True)] if label == "Pairs" else []),
        *([Column("Figure", "", "requested", words=True)] if len(metrics) > 1 else []),
        Column("Change", "%"),
        Column("Verdict", words=True),
        Column("Interval", "%"),
        Column(f"Before{of_all}", unit, "derived"),
        Column(f"After{of_all}", unit, "derived"),
        Column("Visible from", "%", "derived"),
    ]
    notes: dict[str, int] = {}
    texts = _values(changes)
    rows = []
    for change, values in zip(changes, texts, strict=True):
        said = why(change, bound) if change.difference.verdict is Verdict.INVALID else None
        number = () if said is None else (notes.setdefault(said, len(notes) + 1),)
        rows.append(_row(change, asked, values, label=label, several=len(metrics) > 1, notes=number))
    legend = (
        f"Medians of the repetitions that count; interval of their ratio, {100 * CONFIDENCE:g} %. "
        "Visible from: the smallest change that would have been seen, by the number of repetitions and their spread.",
    )
    return Table(tuple(columns), tuple(rows), tuple(notes), legend, label)


def _row(
    change: Change,
    asked: Sequence[Requested],
    values: tuple[Entry, Entry],
    *,
    label: str,
    several: bool,
    notes: tuple[int, ...],
) -> Row:
    difference = change.difference
    settings = [item.value(change.cell) for item in asked]
    words = METRICS[change.metric]
    entries = [
        Entry(str(change.cell.number), change.cell.number),
        *(
            Entry(item.unset if value is None else item.text(value), value)
            for item, value in zip(asked, settings, strict=True)
        ),
        *([Entry(str(change.stream), str(change.stream))] if label == "Pairs" else []),
        *([Entry(f"{words.name}, {words.unit}", change.metric.name)] if several else []),
        _percent(difference.change, None if difference.change is None else signed(difference.change)),
        Entry(verdict_text(change), str(difference.verdict), _MARKS.get(difference.verdict, "")),
        Entry(interval_text(difference), (_hundred(difference.low), _hundred(difference.high))),
        *values,
        _percent(difference.seeable, None if difference.seeable is None else up(difference.seeable)),
    ]
    return Row(tuple(entries), change.cell.number, notes, difference.verdict is not Verdict.INVALID)


def _percent(share: float | None, text: str | None) -> Entry:
    return Entry(UNKNOWN if text is None else text, _hundred(share))


def _hundred(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _values(changes: Sequence[Change]) -> list[tuple[Entry, Entry]]:
    medians = []
    for change in changes:
        factor = METRICS[change.metric].scale
        sides = (change.before.values, change.after.values)
        medians.append([median(side) * factor if side else None for side in sides])
    smallest = min((value for pair in medians for value in pair if value), default=100.0)
    decimals = max(0, 2 - int(f"{smallest:e}".partition("e")[2]))

    def entry(value: float | None) -> Entry:
        return Entry(UNKNOWN if value is None else f"{value:.{decimals}f}", value)

    return [(entry(before), entry(after)) for before, after in medians]


def _sections(comparison: Comparison) -> Iterator[Section]:
    cells = [change.cell for change in comparison.tests]
    several = len({change.metric for change in comparison.tests}) > 1
    names = [
        f"{named(change.cell, cells)}{', ' + METRICS[change.metric].name if several else ''}"
        for change in comparison.tests
    ]
    drawn = chart(comparison.tests, [name.removeprefix("test ") for name in names], comparison.bound)
    if drawn is not None:
        yield Section("The changes and their intervals", (drawn,))
    yield from _without_verdict(comparison, names)
    for title, only in (("first", comparison.only_before), ("second", comparison.only_after)):
        if only:
            yield Section(f"In the {title} run only", (Items(tuple(_one_of(cell) for cell in only)),), brief=True)
    if comparison.before.run != comparison.after.run or comparison.differs:
        yield Section("What else differs", tuple(_differs(comparison)), brief=True)
    yield Section("Method", (Items(tuple(_method(comparison))),))


def _one_of(cell: Cell) -> str:
    return f"Test {cell.number}: {settings_text(cell, 'names')}"


def _without_verdict(comparison: Comparison, names: Sequence[str]) -> Iterator[Section]:
    reasons = [
        f"{name[:1].upper()}{name[1:]}: {said[:1].lower()}{said[1:]}"
        for change, name in zip(comparison.tests, names, strict=True)
        if (said := why(change, comparison.bound)) is not None
    ]
    if reasons:
        listed = Items(tuple(reasons))
        block: Block = listed if len(reasons) <= 10 else Folded(f"All {len(reasons)}", (listed,))
        yield Section("Without a verdict", (block,))


def _differs(comparison: Comparison) -> Iterator[Block]:
    if not comparison.differs:
        yield Paragraph("Nothing that rigctl knows of: host facts, versions, rig, scenario and tags are the same.")
        return
    columns = tuple(Column(title, "", "derived", words=True) for title in ("What", "Where", "Before", "After"))
    rows = []
    for change in comparison.differs:
        shown = (setup_title(change), where_text(change), *setup_texts(change))
        values = (change.name, change.where, change.before, change.after)
        rows.append(Row(tuple(Entry(text, value) for text, value in zip(shown, values, strict=True))))
    yield Table(columns, tuple(rows), label="What else differs")
    plans = (comparison.before.plan, comparison.after.plan)
    for title, texts in (
        ("scenario", [plan.scenario_yaml for plan in plans]),
        ("rig file", [plan.rig_yaml for plan in plans]),
    ):
        if texts[0] != texts[1]:
            before, after = (text.splitlines() for text in texts)
            lines = difflib.unified_diff(before, after, "before", "after", lineterm="", n=1)
            yield Folded(f"Changes of the {title}", (Verbatim("\n".join(lines)),))


def _method(comparison: Comparison) -> Iterator[str]:
    bound, alike, negligible = (f"{100 * share * comparison.bound:g} %" for share in (1, ALIKE, NEGLIGIBLE))
    yield "Of each test the ratio of the medians over repetitions; its interval by bootstrap (10,000 resamples)."
    yield (
        f"Worse or better: a change of {bound} or more, all of its interval beyond {negligible}, that chance does not "
        f"explain: by Mann-Whitney's test, corrected for {len(comparison.tests)} tests (Benjamini and Hochberg), or by "
        "shuffling the repetitions of all tests."
    )
    yield f"Same: the interval lies within ±{alike} and contains 0, or within ±{negligible}. Else inconclusive."
    if comparison.after.plan.against is not None and comparison.before.run == comparison.after.run:
        yield "Both variants were measured in turn (ABBA), so that a slow drift acts on both alike."


@dataclass(frozen=True, slots=True)
class Share:
    """The change of one test with its interval, in percent."""

    test: str
    look: Key
    change: float
    low: float
    high: float


def chart(changes: Sequence[Change], names: Sequence[str], bound: float) -> Charts | None:
    """Return the changes that have an interval, the largest first; None where none has."""
    shares = [
        share for change, name in zip(changes, names, strict=True) if (share := _share(change, name)) is not None
    ][:MOST_DRAWN]
    if not shares:
        return None
    keys = tuple(look for look in _LOOKS.values() if look in {share.look for share in shares})
    ends = [end for share in shares for end in (share.low, share.high)]
    across = Axis("change [%]", min(-110 * bound, *ends), max(110 * bound, *ends))
    parts = [shares[at : at + _ROWS] for at in range(0, len(shares), _ROWS)]
    return Charts(tuple(Chart(_plot(part, across, bound), _label(part)) for part in parts), keys)


def _label(shares: Sequence[Share]) -> str:
    largest = f"{shares[0].test} {shares[0].change:+.1f} %"
    return f"Change of each test in percent, with its interval, the largest first: {largest}"


def _share(change: Change, name: str) -> Share | None:
    found = change.difference
    if found.low is None or found.high is None or found.change is None:
        return None
    return Share(name, _LOOKS[found.verdict], 100 * found.change, 100 * found.low, 100 * found.high)


def _plot(shares: Sequence[Share], across: Axis, bound: float) -> Plot:
    rules = (Rule(0, "x", dashed=False), Rule(-100 * bound, "x"), Rule(100 * bound, "x"))
    marks: list[Mark] = []
    for look in _LOOKS.values():
        own = [(number, share) for number, share in enumerate(shares) if share.look == look]
        if own:
            marks.append(Spans(tuple((n, share.low, share.high) for n, share in own), look.colour, across=True))
            marks.append(Points(tuple((share.change, n) for n, share in own), look.colour, size=8, hollow=True))
    tests = Axis(kind="names", names=tuple(share.test for share in shares))
    return plot(_WIDTH, _ROW * len(shares), across, tests, (*rules, *marks))
