"""Makes the report that compares two runs: main sentence, table of changes, chart, and other differences."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from rigctl.analysis.nights.comparison import FigureChange, RunComparison, compare_variants
from rigctl.analysis.run_view import RunView
from rigctl.base.values import group_by
from rigctl.base.version import __version__
from rigctl.findings import NOT_MET, Finding, Severity, Weight, by_weight, tests
from rigctl.findings.changes import (
    DECIDES,
    amount_text,
    change_text,
    inconclusive_text,
    interval_text,
    measurements_text,
    round_up,
    share_text,
    sum_words,
    verdict_text,
    words_of,
)
from rigctl.findings.text import (
    UNKNOWN,
    end_sentence,
    how_pairs_differ,
    join_list,
    lower_first,
    numbers_text,
    pairs_text,
    plural,
    settings_text,
    texts_that_vary,
    upper_first,
)
from rigctl.model.statistics.comparing import BOUND, CONFIDENCE, NEGLIGIBLE, SAME_SHARE, Comparison
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
from rigctl.report.charts.plot import NARROW, WIDE, Axis, Dots, Guide, Mark, Spans, plot
from rigctl.report.document import MOST_ROWS, document, rig_words, when
from rigctl.report.sections import expectations
from rigctl.report.setup import setup_texts, setup_title, where_text
from rigctl.report.tables.columns import ColumnOf, RowHead, each, entry_column, table_of
from rigctl.report.tables.requested import COMPARED, SENDING, Requested


def _reason(own: FigureChange, bound: float) -> str | None:
    """Return why a test is neither better, worse nor the same, or None if it is one of them."""
    if own.verdict is Comparison.INVALID:
        return end_sentence(upper_first(own.reason or "invalid"))
    return inconclusive_text(own.change, bound)


def test_names(changes: Sequence[FigureChange]) -> list[str]:
    """Return a name for the test of each change: `test 7 (n04 → hub)`, with the settings that tell tests apart."""
    cells = [own.cell for own in changes]
    if len(cells) == 1:
        return ["the test"]
    pairs = how_pairs_differ(cells)
    words = [pairs_text(cell.pairs) for cell in cells] if pairs == "names" else texts_that_vary(cells, pairs)
    return [f"test {cell.number}{f' ({own})' if own else ''}" for cell, own in zip(cells, words, strict=True)]


def _answer(comparison: RunComparison) -> Finding:
    """Return the answer: which tests got worse or better and by how much, or why that is not known."""
    changes = {verdict: comparison.with_verdict(verdict) for verdict in Comparison}
    subject = tests(own.cell.number for own in (*changes[Comparison.BETTER], *changes[Comparison.WORSE]))
    sentences = [_news(verdict, changes[verdict], comparison) for verdict in _MARKS if changes[verdict]]
    if not sentences:
        sentences.append(_reason_undecided(comparison) or "No test got better or worse.")
    rest = []
    if same := changes[Comparison.SAME]:
        widest = max(own.change.within or 0.0 for own in same)
        rest.append(f"{plural(len(same), 'is', 'are')} the same within {round_up(widest)} %")
    if (unclear := changes[Comparison.INCONCLUSIVE]) and any(_is_judged(own) for own in comparison.tests):
        lacks = "a larger `--repeat` may decide" if all(map(_is_judged, unclear)) else DECIDES
        rest.append(f"{plural(len(unclear), 'is', 'are')} inconclusive ({lacks})")
    if invalid := changes[Comparison.INVALID]:
        rest.append(f"{plural(len(invalid), 'is', 'are')} invalid")
    if rest:
        sentences.append(f"{join_list(rest)}.")
    level = Severity.WARNING if comparison.worse else Severity.NOTE
    numbers = {str(verdict): len(own) for verdict, own in changes.items()}
    return Finding("comparison", " ".join(sentences), Weight.ANSWER, level, subject, numbers)


def _is_judged(own: FigureChange) -> bool:
    """Tell whether both runs have enough repetitions of a test for a verdict."""
    return own.change.low is not None


def _reason_undecided(comparison: RunComparison) -> str:
    """Return a sentence on the measured changes if no test has enough repetitions for a verdict; else empty."""
    known = comparison.with_verdict(Comparison.INCONCLUSIVE)
    if not known or any(map(_is_judged, comparison.tests)):
        return ""
    first, changes = known[0], [own.change for own in known]
    text = change_text(first.change)
    if len(known) > 1:
        shares = [change.share or 0.0 for change in changes[1:]]
        which = test_names(comparison.tests)[comparison.tests.index(first)]
        others = " to ".join(dict.fromkeys(map(share_text, (min(shares), max(shares)))))
        text = f"{amount_text(first.change)} in {which}, {others} % in the other{'s' if shares[1:] else ''}"
        text += f" ({measurements_text(changes)})"
    return f"{upper_first(_name_of(first))} {text}; {DECIDES}."


def _news(verdict: Comparison, changes: Sequence[FigureChange], comparison: RunComparison) -> str:
    first, count = changes[0], len(comparison.tests)
    if count == 1:
        return f"{str(verdict).capitalize()}: {_change_text(first)}."
    which = test_names(comparison.tests)[comparison.tests.index(first)]
    then = f"; then {numbers_text([own.cell.number for own in changes[1:]])}" if len(changes) > 1 else ""
    return f"{len(changes)} of {count} tests got {verdict}: {which}, {_change_text(first)}{then}."


def _change_text(own: FigureChange) -> str:
    """Return a change with its interval: `goodput −9.8 % (−10.2 to −9.5 %)`."""
    return f"{_name_of(own)} {share_text(own.change.share or 0.0)} % ({interval_text(own.change)} %)"


def _name_of(own: FigureChange) -> str:
    sums = sum_words([own.cell], own.metric) if own.stream is None else ""
    return f"{words_of(own.metric).name} {sums}".strip()


def _findings(comparison: RunComparison) -> Iterator[Finding]:
    """Yield the answer, a finding on pairs that changed, and findings on tests of only one run."""
    yield _answer(comparison)
    yield from _of_streams(comparison)
    for cells, which in ((comparison.only_before, "first"), (comparison.only_after, "second")):
        if cells:
            numbers = upper_first(numbers_text([cell.number for cell in cells]))
            text = f"{numbers} {'is' if len(cells) == 1 else 'are'} in the {which} run only."
            yield Finding("tests-in-one-run", text, Weight.MISSING, Severity.WARNING)


def _of_streams(comparison: RunComparison) -> Iterator[Finding]:
    for verdict, level in ((Comparison.WORSE, Severity.WARNING), (Comparison.BETTER, Severity.NOTE)):
        if changes := [own for own in comparison.streams if own.verdict is verdict]:
            first, subject = changes[0], tests({own.cell.number for own in changes})
            text = f"{plural(len(changes), 'pair')} got {verdict}: {first.stream} of test {first.cell.number}"
            more = f"; {len(changes) - 1} more in the table of pairs" if len(changes) > 1 else ""
            text = f"{text}, {_change_text(first)}{more}."
            yield Finding("pairs-changed", text, Weight.BOTTLENECK, level, subject)


MOST_PAIR_ROWS: Final = 200
"""Most rows in the table of pairs; the JSON has all pairs."""
_MARKS: Final[dict[Comparison, Literal["warn", "good"]]] = {Comparison.WORSE: "warn", Comparison.BETTER: "good"}
_MOST_DRAWN: Final = 20
_ROW: Final = 20
_LOOKS: Final = {
    Comparison.WORSE: Key("worse", "s2"),
    Comparison.BETTER: Key("better", "s3"),
    Comparison.SAME: Key("same", "s1"),
    Comparison.INCONCLUSIVE: Key("inconclusive", "axis"),
}


def report_of(view: RunView, bound: float = BOUND) -> tuple[Document, bool]:
    """Return a run's report and False; if it has --against, the comparison and whether the second variant is worse."""
    if view.plan.against is None:
        return document(view), False
    compared, verdicts = compare_variants(view, bound), expectations.verdicts(view)
    missed = [each for each in expectations.expectation_findings(view.plan, verdicts) if each.code == NOT_MET]
    made = comparison_document(compared)
    return replace(made, verdicts=verdicts, findings=by_weight([*missed, *made.findings])), compared.worse


def comparison_document(comparison: RunComparison) -> Document:
    """Return the comparison as a document for every printer."""
    before, after, against = comparison.before, comparison.after, comparison.against
    what, run, times = "two runs compared", f"{before.run} and {after.run}", tuple[str, ...]()
    if against is not None:
        what = f"{against.setting} {against.after} against {against.before}"
        run, times = after.run, when(after)
    names = _names(comparison)
    return Document(
        title=f"{after.plan.title or after.plan.scenario_name}: {what}",
        run=run,
        about=(rig_words(after.plan), *times),
        notes="",
        findings=by_weight(_findings(comparison)),
        results=tuple(_results(comparison)),
        sections=tuple(_sections(comparison, names)),
        footer=f"Made by rigctl {__version__}. “–” is unknown. Rates are decimal.",
        picture=_chart(comparison.tests, names, comparison.bound),
    )


def _results(comparison: RunComparison) -> Iterator[Section]:
    yield Section("Changes", (_table(comparison.tests, comparison, "Changes"),), brief=True)
    if _tells_pairs(comparison):
        yield Section("Pairs", (_table(comparison.streams, comparison, "Pairs"),), brief=True)


def _tells_pairs(comparison: RunComparison) -> bool:
    """Tell whether the table of pairs is shown unfolded: it is short, and some pair got better or worse."""
    news = any(own.verdict in _MARKS for own in comparison.streams)
    return news and len(comparison.streams) <= MOST_ROWS


def _table(changes: Sequence[FigureChange], comparison: RunComparison, label: str) -> Table:
    cells = [own.cell for own in changes]
    metrics = list(dict.fromkeys(own.metric for own in changes))
    pairs = label == "Pairs"  # the table of pairs names the pair in each row
    varied = (item for item in COMPARED if len({item.value(cell) for cell in cells}) > 1)
    asked = [item for item in varied if not (pairs and item is SENDING)]
    unit = words_of(metrics[0]).unit if len(metrics) == 1 else ""
    sums = "" if pairs or len(metrics) > 1 else sum_words(cells, metrics[0])
    before, after = _sides(comparison)
    decimals, judged = _decimals(changes), any(map(_is_judged, changes))
    columns: list[ColumnOf[FigureChange]] = [
        each(Column("Test", "", "requested"), lambda own: own.cell.number),
        *(entry_column(item.column, partial(_requested_entry, item)) for item in asked),
    ]
    if pairs:
        columns.append(each(Column("Pair", "", "requested", words=True), lambda own: str(own.stream)))
    if len(metrics) > 1:
        columns.append(entry_column(Column("Figure", "", "requested", words=True), _figure))
    columns += [
        entry_column(Column(before, unit, minor=-1), lambda own: _level(own, own.change.before, decimals)),
        entry_column(Column(after, unit, minor=-1), lambda own: _level(own, own.change.after, decimals)),
        entry_column(Column("Change", "%", minor=-1), _share),
    ]
    if judged:
        columns.append(entry_column(Column("Verdict", words=True, minor=-1), _verdict))
        columns.append(entry_column(Column("Interval", "%", "derived", minor=1), _interval))

    def head(own: FigureChange) -> RowHead:
        valid = own.verdict is not Comparison.INVALID
        reason = None if valid else _reason(own, comparison.bound)
        return RowHead(own.cell.number, (reason,) if reason else (), valid)

    legend = [f"{words_of(metrics[0]).name.capitalize()} {sums}."] if sums else []
    legend += [f"Medians of the repetitions, and the {100 * CONFIDENCE:g} % interval of their ratio."] if judged else []
    return table_of(changes, columns, head, legend, label)


def _sides(comparison: RunComparison) -> tuple[str, str]:
    """Return the titles of the two medians: the values of --against such as `cubic`, else `Before` and `After`."""
    against = comparison.against
    if against is None:
        return "Before", "After"
    values = (against.before, against.after)
    before, after = (value if value[:1].isalpha() else f"{against.setting} {value}" for value in values)
    return before, after


def _requested_entry(item: Requested, own: FigureChange) -> Entry:
    value = item.value(own.cell)
    return Entry(item.unset if value is None else item.text(value), value)


def _figure(own: FigureChange) -> Entry:
    words = words_of(own.metric)
    return Entry(f"{words.name}, {words.unit}", own.metric.name)


def _verdict(own: FigureChange) -> Entry:
    return Entry(verdict_text(own.change), str(own.verdict), _MARKS.get(own.verdict, ""))


def _interval(own: FigureChange) -> Entry:
    ends = (own.change.low, own.change.high)
    return Entry(interval_text(own.change), tuple(None if end is None else 100 * end for end in ends))


def _share(own: FigureChange) -> Entry:
    share = own.change.share
    return Entry(UNKNOWN) if share is None else Entry(share_text(share), 100 * share)


def _level(own: FigureChange, level: float | None, decimals: int) -> Entry:
    value = None if level is None else level * words_of(own.metric).scale
    return Entry(UNKNOWN if value is None else f"{value:.{decimals}f}", value)


def _decimals(changes: Sequence[FigureChange]) -> int:
    """Return the decimals that give the smallest median three significant digits."""
    levels = [(own, level) for own in changes for level in (own.change.before, own.change.after)]
    medians = [level * words_of(own.metric).scale for own, level in levels if level]
    return max(0, 2 - int(f"{min(medians, default=100.0):e}".partition("e")[2]))


def _names(comparison: RunComparison) -> list[str]:
    """Return the name of each test, with its figure if the tests have different figures."""
    several = len({own.metric for own in comparison.tests}) > 1
    return [
        f"{name}{', ' + words_of(own.metric).name if several else ''}"
        for own, name in zip(comparison.tests, test_names(comparison.tests), strict=True)
    ]


def _sections(comparison: RunComparison, names: Sequence[str]) -> Iterator[Section]:
    if comparison.streams and not _tells_pairs(comparison):
        table = _table(comparison.streams[:MOST_PAIR_ROWS], comparison, "Pairs")
        summary = f"The {len(table.rows)} largest of {len(comparison.streams)} changes of pairs"
        yield Section("Pairs", (Folded(summary, (table,)),))
    without = zip(comparison.tests, names, strict=True)
    by_reason = group_by(without, lambda own: _reason(own[0], comparison.bound))
    reasons = tuple(
        f"{upper_first(own[0][1] if len(own) == 1 else numbers_text([one.cell.number for one, _ in own]))}: "
        f"{lower_first(reason)}"
        for reason, own in by_reason.items()
        if reason is not None
    )
    if reasons:
        listed = Items(reasons)
        block: Block = listed if len(reasons) <= 10 else Folded(f"All {len(reasons)}", (listed,))
        yield Section("Without a verdict", (block,))
    for which, only in (("first", comparison.only_before), ("second", comparison.only_after)):
        if only:
            texts = (f"Test {cell.number}: {settings_text(cell, 'names')}" for cell in only)
            yield Section(f"In the {which} run only", (Items(tuple(texts)),))
    if comparison.before.run != comparison.after.run or comparison.differs:
        yield Section("What else differs", tuple(_differs(comparison)), brief=True)
    yield Section("Method", (Items(tuple(_method(comparison))),))


def _differs(comparison: RunComparison) -> Iterator[Block]:
    if not comparison.differs:
        yield Paragraph("No other difference is known: host facts, versions, rig, scenario and tags are the same.")
        return
    places = any(where_text(change) != "all" for change in comparison.differs)
    titles = ("What", *(["Where"] if places else []), "Before", "After")
    columns = tuple(Column(title, "", "derived", words=True) for title in titles)
    rows = []
    # Options of the command line (`overrides`) get a row only if nothing else differs.
    for change in [one for one in comparison.differs if one.name != "overrides"] or comparison.differs:
        texts = (setup_title(change), *([where_text(change)] if places else []), *setup_texts(change))
        values = (change.name, *([change.where] if places else []), change.before, change.after)
        rows.append(Row(tuple(map(Entry, texts, values))))
    yield Table(columns, tuple(rows), label="What else differs")
    one, other = comparison.before.plan, comparison.after.plan
    files = {"scenario": (one.scenario_yaml, other.scenario_yaml), "rig file": (one.rig_yaml, other.rig_yaml)}
    for title, (before, after) in files.items():
        if before != after:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=1)
            yield Folded(f"Changes of the {title}", (Verbatim("\n".join(lines)),))


def _method(comparison: RunComparison) -> Iterator[str]:
    bound, alike, negligible = (f"{100 * share * comparison.bound:g} %" for share in (1, SAME_SHARE, NEGLIGIBLE))
    yield "A change is the ratio of a test's medians over repetitions; its interval is by bootstrap (10,000 resamples)."
    yield (
        f"A test is worse or better if its change is {bound} or more, the whole interval is beyond {negligible}, and "
        f"the change is significant: by Mann-Whitney's test, corrected for {len(comparison.tests)} tests "
        "(Benjamini and Hochberg), or by shuffling the repetitions of all tests."
    )
    yield f"A test is the same if its interval is within ±{negligible}, or contains 0 and is within ±{alike}."
    yield "All other tests are inconclusive."
    if comparison.against is not None:
        yield "Both variants were measured in turn (ABBA), so that a slow drift acts on both alike."


def _chart(changes: Sequence[FigureChange], names: Sequence[str], bound: float) -> Charts | None:
    """Return a chart of the largest changes with an interval; None if no change has an interval."""
    drawn = [
        (name, own.cell.number, change.verdict, 100 * change.share, 100 * change.low, 100 * change.high)
        for name, own, change in zip(names, changes, (own.change for own in changes), strict=True)
        if change.share is not None and change.low is not None and change.high is not None
    ]
    if not drawn:
        return None
    shown = drawn[:_MOST_DRAWN]
    ends = [end for *_, low, high in shown for end in (low, high)]
    across = Axis("change [%]", min(-110 * bound, *ends), max(110 * bound, *ends))
    marks: list[Mark] = [Guide(0, "x", dashed=False), Guide(-100 * bound, "x"), Guide(100 * bound, "x")]
    keys = []
    for verdict, key in _LOOKS.items():
        if own := [(number, *ends) for number, (_, _, found, *ends) in enumerate(shown) if found is verdict]:
            keys.append(key)
            marks.append(Spans(tuple((number, low, high) for number, _, low, high in own), key.colour, across=True))
            points = tuple((change, number) for number, change, _, _ in own)
            marks.append(Dots(points, key.colour, size=8, hollow=True))
    label = f"Change of each test in percent, with its interval, the largest first: {shown[0][0]} {shown[0][3]:+.1f} %"
    wide, narrow = (
        plot(width, _ROW * len(shown), across, Axis(kind="names", names=tests), tuple(marks))
        for width, tests in (
            (WIDE, tuple(upper_first(name) for name, *_ in shown)),
            (NARROW, tuple(f"Test {number}" for _, number, *_ in shown)),
        )
    )
    caption = f"The {len(shown)} largest of {len(drawn)} changes." if len(drawn) > len(shown) else ""
    return Charts((Chart(wide, label, caption, narrow=narrow),), tuple(keys), wide=True)
