"""Two products side by side: a table, bars, and the verdict of `rigctl compare` in words that go no further than it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from rigctl.analysis.nights.comparison import Change, Comparison, compared
from rigctl.analysis.nights.figures import GOODPUT, THROUGHPUT, Metric
from rigctl.analysis.nights.setup_changes import SetupChange
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.model.statistics.comparing import Verdict
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.comparison.words import up
from rigctl.report.product.claim import decimals, floored
from rigctl.report.product.content import Bar, Product, Term, product
from rigctl.report.product.table import worded
from rigctl.report.product.theme import Theme
from rigctl.report.words.metrics import METRICS
from rigctl.report.words.setup import setup_texts, setup_title
from rigctl.report.words.text import UNKNOWN, numbers_text, plural

MOST_DIFFERENCES: Final = 8
_RATES: Final = (GOODPUT, THROUGHPUT)


def side_by_side(
    runs: tuple[RunInfo, RunInfo],
    repetitions: tuple[Sequence[Repetition], Sequence[Repetition]],
    themes: tuple[Theme, Theme],
) -> Product:
    """The first product beside the second. Raises `InputError` where they have no test in common."""
    first, second = (RunView(info, own) for info, own in zip(runs, repetitions, strict=True))
    comparison = compared(second, first)
    changes = _main(comparison, themes[0])
    if not changes:
        text = f"runs {runs[0].run} and {runs[1].run} have no test in common: the same settings and pairs of both rigs"
        raise InputError(text)
    plain = [replace(theme, columns=(), tests=None) for theme in themes]
    own, other = (product(runs[at], repetitions[at], plain[at]) for at in (0, 1))
    unfair = _unlike(comparison, themes)
    bars = tuple(_bars(own, changes))
    return replace(
        own,
        theme=themes[0],
        claim=None,
        table=_table(own, changes, themes, judged=unfair is None),
        bars=bars,
        conditions=tuple(_conditions(own, other, comparison, themes)),
        source=_source(own, other, themes),
        rates_of="all pairs together",
        keys=(themes[0].name, themes[1].name),
        other=themes[1],
        verdict=(unfair,) if unfair else tuple(_sentences(changes, themes)),
    )


def _main(comparison: Comparison, theme: Theme) -> list[Change]:
    """One figure of each test, in the order of the tests."""
    by_test: dict[int, Change] = {}
    for change in sorted(comparison.tests, key=lambda change: change.metric is not GOODPUT):
        by_test.setdefault(change.cell.number, change)
    return [by_test[number] for number in sorted(by_test) if theme.tests is None or number in theme.tests]


def _unlike(comparison: Comparison, themes: tuple[Theme, Theme]) -> str | None:
    """Why nothing is said of which one is faster."""
    virtual = [info.plan.virtual for info in (comparison.after, comparison.before)]
    if (virtual[0] is None) == (virtual[1] is None):
        return None
    which = themes[0 if virtual[0] is not None else 1].name
    return f"{which} was measured on a virtual rig and the other on hardware: their figures are not compared."


def _sentences(changes: Sequence[Change], themes: tuple[Theme, Theme]) -> Iterator[str]:
    names = themes[0].name, themes[1].name
    better = [change for change in changes if change.difference.verdict is Verdict.BETTER]
    worse = [change for change in changes if change.difference.verdict is Verdict.WORSE]
    for found, (winner, loser) in ((better, names), (worse, names[::-1])):
        if found:
            least = min(_times(change) for change in found)
            what = f"has {_least_text(least)} the {worded(METRICS[found[0].metric].name, themes[0])} of {loser}"
            if found[0].metric not in _RATES:
                what = f"has a {METRICS[found[0].metric].name} that is at least {_least_text(least)} shorter"
            where = f"in {_of(len(found), len(changes))}" if len(changes) > 1 else ""
            yield f"{winner} is faster than {loser}{f' {where}' if where else ''}: it {what}."
    rest = []
    for verdict in (Verdict.SAME, Verdict.INCONCLUSIVE, Verdict.INVALID):
        if found := [change for change in changes if change.difference.verdict is verdict]:
            which = numbers_text([change.cell.number for change in found]).capitalize()
            verb = "is" if len(found) == 1 else "are"
            if verdict is Verdict.SAME:
                within = up(max(change.difference.within or 0.0 for change in found))
                rest.append(f"{which} {verb} the same within {within} %.")
            else:
                rest.append(f"{which} {verb} {verdict}.")
    yield from rest


def _of(count: int, every: int) -> str:
    return f"all {every} tests" if count == every else f"{count} of {plural(every, 'test')}"


def _times(change: Change) -> float:
    """At least how many times as much (or as short) the better one has: the near end of the interval."""
    low, high = change.difference.low or 0.0, change.difference.high or 0.0
    ratios = sorted((1 + low, 1 + high))
    return ratios[0] if ratios[0] >= 1 else 1 / ratios[1]


def _least_text(times: float) -> str:
    return f"at least {floored(times, 1 if times >= 10 else 2):g} times"


def _verdict_text(change: Change) -> str:
    """Of the first product."""
    verdict = change.difference.verdict
    if verdict in (Verdict.BETTER, Verdict.WORSE):
        return "faster" if verdict is Verdict.BETTER else "slower"
    if verdict is Verdict.SAME and change.difference.within is not None:
        return f"same within {up(change.difference.within)} %"
    return str(verdict)


def _table(own: Product, changes: Sequence[Change], themes: tuple[Theme, Theme], *, judged: bool) -> Table:
    asked = [number for number, column in enumerate(own.table.columns) if column.group == "requested" or number == 0]
    rows = {row.test: row for row in own.table.rows}
    metric: Metric = changes[0].metric
    unit, factor = METRICS[metric].unit, METRICS[metric].scale
    columns = [own.table.columns[number] for number in asked]
    columns += [Column(theme.name, unit) for theme in themes]
    columns += [Column(f"{themes[0].name} is", "", "derived", words=True)] if judged else []
    made = []
    for change in changes:
        row = rows[change.cell.number]
        values = [[value * factor for value in figure.values] for figure in (change.after, change.before)]
        entries = [row.entries[number] for number in asked]
        entries += [_mean(own_values) for own_values in values]
        entries += [Entry(_verdict_text(change), str(change.difference.verdict))] if judged else []
        made.append(Row(tuple(entries), change.cell.number))
    return Table(tuple(columns), tuple(made), label=own.theme.words.results)


def _mean(values: Sequence[float]) -> Entry:
    if not values:
        return Entry(UNKNOWN)
    value = fmean(values)
    return Entry(f"{floored(value):.{decimals(value)}f}", value)


def _bars(own: Product, changes: Sequence[Change]) -> Iterator[Bar]:
    """Of each test the sum over the pairs of both products."""
    settings = {bar.test: bar.settings for bar in own.bars}
    for change in changes:
        if change.metric is GOODPUT:
            sums = tuple(fmean(figure.values) if figure.values else None for figure in (change.after, change.before))
            yield Bar(change.cell.number, settings.get(change.cell.number, ""), sums, None)


def _conditions(own: Product, other: Product, comparison: Comparison, themes: tuple[Theme, Theme]) -> Iterator[Term]:
    yield Term("Verdicts", "By the repetitions of both runs: a difference of 2 % or more that chance does not explain.")
    yield Term("Goodput", "Of all pairs together, means over repetitions, rounded down.")
    for made, theme in zip((own, other), themes, strict=True):
        for term in made.conditions:
            if term.name not in ("Claim", "Rounding", "Method"):
                yield Term(f"{term.name}, {theme.name}", term.text)
    if comparison.differs:
        texts = dict.fromkeys(map(_difference, comparison.differs))
        more = [f"{len(texts) - MOST_DIFFERENCES} more"] if len(texts) > MOST_DIFFERENCES else []
        yield Term("What else differs", "; ".join([*list(texts)[:MOST_DIFFERENCES], *more]) + ".")


def _difference(change: SetupChange) -> str:
    before, after = setup_texts(change)
    return setup_title(change) if before == UNKNOWN else f"{setup_title(change)} {after} and {before}"


def _source(own: Product, other: Product, themes: tuple[Theme, Theme]) -> str:
    if own.source == other.source:
        return own.source
    return f"{themes[0].name}: {own.source} {themes[1].name}: {other.source}"
