"""The document of a comparison: one sentence, the changes by size, a chart, and what else differs."""

import difflib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Final, Literal, TypeAlias

from rigctl.analysis.nights.comparison import Change, Comparison
from rigctl.analysis.nights.figures import RunFigure
from rigctl.base.version import __version__
from rigctl.findings import Finding, Number, Severity, Weight, by_weight, tests
from rigctl.findings.metrics import METRICS, sum_words
from rigctl.findings.text import (
    UNKNOWN,
    listed,
    numbers_text,
    pairs_text,
    plural,
    sentence,
    settings_text,
    span,
    told_apart,
    varied_texts,
)
from rigctl.model.statistics.samples import ALIKE, CONFIDENCE, LEAST, NEGLIGIBLE, Difference, Verdict
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
from rigctl.report.charts.plot import Axis, Mark, Points, Rule, Spans, plot
from rigctl.report.document import MOST_ROWS, rig_words, when
from rigctl.report.setup import setup_texts, setup_title, where_text
from rigctl.report.tables import requested
from rigctl.report.tables.requested import SENDING, Requested


def signed(share: float, decimals: int = 1) -> str:
    """Return a change in percent: `+0.3`, `−9.8`."""
    text = f"{100 * share:+.{decimals}f}".replace("-", "−")
    return text if float(text[1:]) else f"{0:.{decimals}f}"


def interval_text(difference: Difference) -> str:
    """Return `−10.2 to −9.5`."""
    if difference.low is None or difference.high is None:
        return UNKNOWN
    return f"{signed(difference.low)} to {signed(difference.high)}"


def up(share: float) -> str:
    """Return a bound in percent, rounded up: a change within 0.31 % is within 0.4 %, not within 0.3 %."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f}"


def verdict_text(change: Change) -> str:
    difference = change.difference
    if difference.verdict is Verdict.SAME and difference.within is not None:
        return f"same ±{up(difference.within)} %"
    return str(difference.verdict)


def why(change: Change, bound: float) -> str | None:
    """Return why a test has no verdict; None if it has one."""
    difference = change.difference
    if difference.verdict is Verdict.INVALID:
        return sentence(f"Invalid: {change.reason}") if change.reason else "Invalid."
    if difference.verdict is not Verdict.INCONCLUSIVE:
        return None
    if difference.low is None or difference.high is None:
        few = min(len(change.before.values), len(change.after.values))
        reason = f"{plural(few, 'repetition')}; a verdict needs {LEAST} on either side"
    elif difference.low <= 0 <= difference.high:
        reason = "the repetitions differ too much"
    elif abs(difference.change or 0.0) < bound:
        return f"Inconclusive: a difference, but smaller than the bound of {100 * bound:g} %."
    else:
        reason = "a difference that chance may explain"
    visible = "Their spread is unknown."
    if difference.seeable is not None:
        visible = f"Changes from {up(difference.seeable)} % on could have been seen."
    return f"Inconclusive: {reason}. {visible}"


def names_of(changes: Sequence[Change]) -> list[str]:
    """Return `test 7 (n04 → hub)` for each change: its test with the settings that tell it apart from the others."""
    cells = [change.cell for change in changes]
    if len(cells) == 1:
        return ["the test"]
    pairs = told_apart(cells)
    words = [pairs_text(cell.pairs) for cell in cells] if pairs == "names" else varied_texts(cells, pairs)
    return [f"test {cell.number}{f' ({own})' if own else ''}" for cell, own in zip(cells, words, strict=True)]


def answer(comparison: Comparison) -> Finding:
    """Return the headline: what got worse or better and by how much, or what a verdict lacks."""
    changes = {verdict: comparison.with_verdict(verdict) for verdict in Verdict}
    news = [*changes[Verdict.BETTER], *changes[Verdict.WORSE]]
    sentences = [
        _news(verdict, changes[verdict], comparison) for verdict in (Verdict.WORSE, Verdict.BETTER) if changes[verdict]
    ]
    sentences += [_undecided(comparison) or "No test got better or worse."] if not news else []
    rest = []
    if same := changes[Verdict.SAME]:
        widest = max(change.difference.within or 0.0 for change in same)
        rest.append(f"{plural(len(same), 'is', 'are')} the same within {up(widest)} %")
    if (unclear := changes[Verdict.INCONCLUSIVE]) and any(_is_judged(change) for change in comparison.tests):
        few = any(not _is_judged(change) for change in unclear)
        lacks = f"`--repeat {LEAST}` decides" if few else "a larger `--repeat` may decide"
        rest.append(f"{plural(len(unclear), 'is', 'are')} inconclusive ({lacks})")
    if invalid := changes[Verdict.INVALID]:
        rest.append(f"{plural(len(invalid), 'is', 'are')} invalid")
    if rest:
        sentences.append(f"{listed(rest)}.")
    level = Severity.WARNING if comparison.worse else Severity.NOTE
    numbers: dict[str, Number] = {str(verdict): len(changes[verdict]) for verdict in Verdict}
    return Finding(
        "comparison", " ".join(sentences), Weight.ANSWER, level, tests(change.cell.number for change in news), numbers
    )


def _is_judged(change: Change) -> bool:
    """Tell whether both runs have enough repetitions of a test for a verdict."""
    return change.difference.low is not None


def _undecided(comparison: Comparison) -> str:
    """Return what no verdict can be given for lack of repetitions: the changes as measured; empty if one can."""
    known = [own for own in comparison.tests if own.difference.verdict is Verdict.INCONCLUSIVE]
    if not known or any(map(_is_judged, comparison.tests)):
        return ""
    counts = [
        span(map(_times_measured, sorted({len(figure.values) for figure in side})))
        for side in ([own.before for own in known], [own.after for own in known])
    ]
    how = f"{counts[0]} each" if counts[0] == counts[1] else f"{counts[0]} before and {counts[1]} after"
    texts = [signed(own.difference.change or 0.0) for own in known]
    told = f"{texts[0]} %"
    if len(known) > 1:
        ends = sorted(own.difference.change or 0.0 for own in known[1:])
        told += f" in {names_of(comparison.tests)[comparison.tests.index(known[0])]}"
        others = " to ".join(dict.fromkeys((signed(ends[0]), signed(ends[-1]))))
        told += f", {others} % in the other{'s' if len(ends) > 1 else ''}"
    return f"Measured {how}; as measured {told}; `--repeat {LEAST}` decides."


def _times_measured(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _news(verdict: Verdict, changes: Sequence[Change], comparison: Comparison) -> str:
    first, count = changes[0], len(comparison.tests)
    if count == 1:
        return f"{str(verdict).capitalize()}: {_changed(first)}."
    which = names_of(comparison.tests)[comparison.tests.index(first)]
    then = f"; then {numbers_text([change.cell.number for change in changes[1:]])}" if len(changes) > 1 else ""
    return f"{len(changes)} of {count} tests got {verdict}: {which}, {_changed(first)}{then}."


def _changed(change: Change) -> str:
    """Return `goodput −9.8 % (−10.2 to −9.5 %)`, as the table has it."""
    sums = sum_words([change.cell], change.metric) if change.stream is None else ""
    name = f"{METRICS[change.metric].name} {sums}".strip()
    return f"{name} {signed(change.difference.change or 0.0)} % ({interval_text(change.difference)} %)"


def findings(comparison: Comparison) -> Iterator[Finding]:
    """Yield the answer, the pairs with changes, and tests in one run only."""
    yield answer(comparison)
    yield from _of_streams(comparison)
    for cells, which in ((comparison.only_before, "first"), (comparison.only_after, "second")):
        if cells:
            numbers = numbers_text([cell.number for cell in cells])
            are = "is" if len(cells) == 1 else "are"
            text = f"{numbers[:1].upper()}{numbers[1:]} of the {which} run {are} in that run only."
            yield Finding("tests-in-one-run", text, Weight.MISSING, Severity.WARNING)


def _of_streams(comparison: Comparison) -> Iterator[Finding]:
    for verdict, level in ((Verdict.WORSE, Severity.WARNING), (Verdict.BETTER, Severity.NOTE)):
        changes = [change for change in comparison.streams if change.difference.verdict is verdict]
        if changes:
            first = changes[0]
            which = f"{first.stream} of test {first.cell.number}"
            text = f"{plural(len(changes), 'pair')} got {verdict}: {which}, {_changed(first)}"
            more = f"; {len(changes) - 1} more in the table of pairs" if len(changes) > 1 else ""
            yield Finding(
                "pairs-changed",
                f"{text}{more}.",
                Weight.BOTTLENECK,
                level,
                tests({change.cell.number for change in changes}),
            )


EntryOf: TypeAlias = Callable[[Change], Entry]
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
        about: tuple[str, ...] = (rig_words(after.plan), *when(after))
    else:
        title += ": two runs compared"
        about = (rig_words(after.plan),)
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


def _results(comparison: Comparison) -> Iterator[Section]:
    yield Section("Changes", (_table(comparison.tests, comparison, "Changes"),), brief=True)
    if _tells_pairs(comparison):
        yield Section("Pairs", (_table(comparison.streams, comparison, "Pairs"),), brief=True)


def _tells_pairs(comparison: Comparison) -> bool:
    """Tell whether the table of pairs is short and has news; else it is folded away."""
    news = any(change.difference.verdict in _MARKS for change in comparison.streams)
    return news and len(comparison.streams) <= MOST_ROWS


def _table(changes: Sequence[Change], comparison: Comparison, label: str) -> Table:
    cells = [change.cell for change in changes]
    metrics = list(dict.fromkeys(change.metric for change in changes))
    pairs = label == "Pairs"  # then each row names its own pair
    asked = [
        item
        for item in requested.COMPARED
        if not (pairs and item is SENDING) and len({item.value(cell) for cell in cells}) > 1
    ]
    unit = METRICS[metrics[0]].unit if len(metrics) == 1 else ""
    sums = "" if pairs or len(metrics) > 1 else sum_words(cells, metrics[0])
    before, after = _sides(comparison)
    columns: list[tuple[Column, EntryOf]] = [
        (Column("Test", "", "requested"), lambda change: Entry(str(change.cell.number), change.cell.number)),
        *((item.column, partial(_asked, item)) for item in asked),
    ]
    if pairs:
        columns.append(
            (Column("Pair", "", "requested", words=True), lambda own: Entry(str(own.stream), str(own.stream)))
        )
    if len(metrics) > 1:
        columns.append((Column("RunFigure", "", "requested", words=True), _figure))
    decimals = _decimals(changes)
    columns += [
        (Column(before, unit), lambda own: _median(own, own.before, decimals)),
        (Column(after, unit), lambda own: _median(own, own.after, decimals)),
        (Column("Change", "%", minor=-1), lambda own: _percent(own.difference.change, signed)),
    ]
    judged = any(map(_is_judged, changes))
    if judged:
        columns += [(Column("Verdict", words=True), _verdict), (Column("Interval", "%", "derived", minor=1), _interval)]
    notes: dict[str, int] = {}
    rows = []
    for change in changes:
        counted = change.difference.verdict is not Verdict.INVALID
        reason = None if counted else why(change, comparison.bound)
        numbers = () if reason is None else (notes.setdefault(reason, len(notes) + 1),)
        rows.append(Row(tuple(entry(change) for _, entry in columns), change.cell.number, numbers, counted))
    legend = [f"{METRICS[metrics[0]].name.capitalize()} {sums}."] if sums else []
    legend += [f"Medians of the repetitions; interval of their ratio, {100 * CONFIDENCE:g} %."] if judged else []
    return Table(tuple(column for column, _ in columns), tuple(rows), tuple(notes), tuple(legend), label)


def _sides(comparison: Comparison) -> tuple[str, str]:
    """Return the heads of both medians: the values of --against, as `cubic` and `mss 536`, or before and after."""
    against = comparison.after.plan.against if comparison.before.run == comparison.after.run else None
    if against is None:
        return "Before", "After"
    values = (against.before, against.after)
    before, after = (value if value[:1].isalpha() else f"{against.setting} {value}" for value in values)
    return before, after


def _asked(item: Requested, change: Change) -> Entry:
    value = item.value(change.cell)
    return Entry(item.unset if value is None else item.text(value), value)


def _figure(change: Change) -> Entry:
    words = METRICS[change.metric]
    return Entry(f"{words.name}, {words.unit}", change.metric.name)


def _verdict(change: Change) -> Entry:
    verdict = change.difference.verdict
    return Entry(verdict_text(change), str(verdict), _MARKS.get(verdict, ""))


def _interval(change: Change) -> Entry:
    ends = (change.difference.low, change.difference.high)
    return Entry(interval_text(change.difference), tuple(None if end is None else 100 * end for end in ends))


def _percent(share: float | None, text: Callable[[float], str]) -> Entry:
    return Entry(UNKNOWN) if share is None else Entry(text(share), 100 * share)


def _median(change: Change, figure: RunFigure, decimals: int) -> Entry:
    if not figure.values:
        return Entry(UNKNOWN)
    value = median(figure.values) * METRICS[change.metric].scale
    return Entry(f"{value:.{decimals}f}", value)


def _decimals(changes: Sequence[Change]) -> int:
    """Return the decimals that give the smallest median three digits."""
    medians = [
        median(figure.values) * METRICS[change.metric].scale
        for change in changes
        for figure in (change.before, change.after)
        if figure.values
    ]
    smallest = min(filter(None, medians), default=100.0)
    return max(0, 2 - int(f"{smallest:e}".partition("e")[2]))


def _sections(comparison: Comparison) -> Iterator[Section]:
    several = len({change.metric for change in comparison.tests}) > 1
    names = [
        f"{name}{', ' + METRICS[change.metric].name if several else ''}"
        for change, name in zip(comparison.tests, names_of(comparison.tests), strict=True)
    ]
    if comparison.streams and not _tells_pairs(comparison):
        table = _table(comparison.streams[:MOST_PAIRS], comparison, "Pairs")
        summary = f"The {len(table.rows)} largest of {len(comparison.streams)} changes of pairs"
        yield Section("Pairs", (Folded(summary, (table,)),))
    charts = chart(comparison.tests, [name.removeprefix("test ") for name in names], comparison.bound)
    if charts is not None:
        yield Section("The changes and their intervals", (charts,))
    reasons = tuple(
        f"{name[:1].upper()}{name[1:]}: {reason[:1].lower()}{reason[1:]}"
        for change, name in zip(comparison.tests, names, strict=True)
        if (reason := why(change, comparison.bound)) is not None
    )
    if reasons:
        listed = Items(reasons)
        block: Block = listed if len(reasons) <= 10 else Folded(f"All {len(reasons)}", (listed,))
        yield Section("Without a verdict", (block,))
    for title, only in (("first", comparison.only_before), ("second", comparison.only_after)):
        if only:
            tests = (f"Test {cell.number}: {settings_text(cell, 'names')}" for cell in only)
            yield Section(f"In the {title} run only", (Items(tuple(tests)),))
    if comparison.before.run != comparison.after.run or comparison.differs:
        yield Section("What else differs", tuple(_differs(comparison)), brief=True)
    yield Section("Method", (Items(tuple(_method(comparison))),))


def _differs(comparison: Comparison) -> Iterator[Block]:
    if not comparison.differs:
        yield Paragraph("Nothing that rigctl knows of: host facts, versions, rig, scenario and tags are the same.")
        return
    places = any(where_text(change) != "all" for change in comparison.differs)
    titles = ("What", *(["Where"] if places else []), "Before", "After")
    columns = tuple(Column(title, "", "derived", words=True) for title in titles)
    rows = []
    for change in comparison.differs:
        texts = (setup_title(change), *([where_text(change)] if places else []), *setup_texts(change))
        values = (change.name, *([change.where] if places else []), change.before, change.after)
        rows.append(Row(tuple(map(Entry, texts, values))))
    yield Table(columns, tuple(rows), label="What else differs")
    plans = (comparison.before.plan, comparison.after.plan)
    for title, (before, after) in (
        ("scenario", [plan.scenario_yaml for plan in plans]),
        ("rig file", [plan.rig_yaml for plan in plans]),
    ):
        if before != after:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=1)
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


def chart(changes: Sequence[Change], names: Sequence[str], bound: float) -> Charts | None:
    """Return a chart of the changes that have an interval, the largest first; None if no change has one."""
    drawn = [
        (name, own.verdict, 100 * own.change, 100 * own.low, 100 * own.high)
        for name, own in zip(names, (change.difference for change in changes), strict=True)
        if own.change is not None and own.low is not None and own.high is not None
    ][:MOST_DRAWN]
    if not drawn:
        return None
    keys = tuple(key for verdict, key in _LOOKS.items() if verdict in {verdict for _, verdict, *_ in drawn})
    ends = [end for *_, low, high in drawn for end in (low, high)]
    across = Axis("change [%]", min(-110 * bound, *ends), max(110 * bound, *ends))
    rules = (Rule(0, "x", dashed=False), Rule(-100 * bound, "x"), Rule(100 * bound, "x"))
    charts = []
    for part in (drawn[at : at + _ROWS] for at in range(0, len(drawn), _ROWS)):
        marks: list[Mark] = [*rules]
        for verdict, key in _LOOKS.items():
            own = [(number, *ends) for number, (_, found, *ends) in enumerate(part) if found is verdict]
            if own:
                spans = tuple((number, low, high) for number, _, low, high in own)
                marks.append(Spans(spans, key.colour, across=True))
                points = tuple((change, number) for number, change, _, _ in own)
                marks.append(Points(points, key.colour, size=8, hollow=True))
        tests = Axis(kind="names", names=tuple(name for name, *_ in part))
        label = (
            f"Change of each test in percent, with its interval, the largest first: {part[0][0]} {part[0][2]:+.1f} %"
        )
        charts.append(Chart(plot(_WIDTH, _ROW * len(part), across, tests, tuple(marks)), label))
    return Charts(tuple(charts), keys)
