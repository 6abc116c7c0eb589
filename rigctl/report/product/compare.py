"""Two products side by side: a table, bars, and the verdict of `rigctl compare` in words that go no further than it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, TypeAlias

from rigctl.analysis.nights.comparison import Change, Comparison, compared
from rigctl.analysis.nights.figures import GOODPUT, THROUGHPUT
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.model.statistics.samples import Verdict
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.comparison.words import up, verdict_text
from rigctl.report.product.claim import floored, floored_text
from rigctl.report.product.content import Bar, Product, Term, product
from rigctl.report.product.table import worded
from rigctl.report.product.theme import Theme
from rigctl.report.words.setup import setup_texts, setup_title
from rigctl.report.words.text import METRICS, UNKNOWN, numbers_text

MOST_DIFFERENCES: Final = 8
Themes: TypeAlias = tuple[Theme, Theme]


def side_by_side(
    runs: tuple[RunInfo, RunInfo], repetitions: tuple[Sequence[Repetition], Sequence[Repetition]], themes: Themes
) -> Product:
    """Return the first product beside the second. Raise `InputError` if they have no test in common."""
    first, second = (RunView(info, own) for info, own in zip(runs, repetitions, strict=True))
    comparison = compared(second, first)
    by_test: dict[int, Change] = {}
    for change in sorted(comparison.tests, key=lambda change: change.metric is not GOODPUT):
        by_test.setdefault(change.cell.number, change)
    wanted = themes[0].tests or by_test
    changes = [by_test[number] for number in sorted(by_test) if number in wanted]
    if not changes:
        text = f"runs {runs[0].run} and {runs[1].run} have no test in common: the same settings and pairs of both rigs"
        raise InputError(text)
    own, other = (product(runs[at], repetitions[at], replace(themes[at], columns=(), tests=())) for at in (0, 1))
    verdict = tuple(_sentences(changes, themes))
    fair = own.virtual == other.virtual
    if not fair:
        which = themes[0 if own.virtual else 1].name
        verdict = (f"{which} was measured on a virtual rig and the other on hardware: their figures are not compared.",)
    return replace(
        own,
        theme=themes[0],
        claim=None,
        table=_table(own, changes, themes, judged=fair),
        bars=tuple(_bars(own, changes)),
        conditions=tuple(_conditions((own, other), comparison, themes)),
        source=own.source
        if own.source == other.source
        else f"{themes[0].name}: {own.source} {themes[1].name}: {other.source}",
        rates_of="all pairs together",
        keys=(themes[0].name, themes[1].name),
        other=themes[1],
        verdict=verdict,
    )


def _sentences(changes: Sequence[Change], themes: Themes) -> Iterator[str]:
    for verdict in Verdict:
        judged = [change for change in changes if change.difference.verdict is verdict]
        if judged and verdict in (Verdict.BETTER, Verdict.WORSE):
            winner, loser = (theme.name for theme in (themes if verdict is Verdict.BETTER else themes[::-1]))
            least, name = _least_text(judged), METRICS[judged[0].metric].name
            what = f"has a {name} that is at least {least} shorter"
            if judged[0].metric in (GOODPUT, THROUGHPUT):
                what = f"has at least {least} the {worded(name, themes[0])} of {loser}"
            count = f"all {len(judged)}" if len(judged) == len(changes) else f"{len(judged)} of {len(changes)}"
            where = f" in {count} tests" if len(changes) > 1 else ""
            yield f"{winner} is faster than {loser}{where}: it {what}."
        elif judged:
            which = numbers_text([change.cell.number for change in judged]).capitalize()
            within = up(max(change.difference.within or 0.0 for change in judged))
            text = f"the same within {within} %" if verdict is Verdict.SAME else str(verdict)
            yield f"{which} {'is' if len(judged) == 1 else 'are'} {text}."


def _least_text(judged: Sequence[Change]) -> str:
    """Return how many times as much (or as short) the better one has: the near end of the least interval."""
    ends = [sorted((1 + (own.difference.low or 0.0), 1 + (own.difference.high or 0.0))) for own in judged]
    times = min(low if low >= 1 else 1 / high for low, high in ends)
    return f"{floored(times, 1 if times >= 10 else 2):g} times"


def _table(own: Product, changes: Sequence[Change], themes: Themes, *, judged: bool) -> Table:
    kept = [at for at, column in enumerate(own.table.columns) if column.group == "requested" or at == 0]
    rows = {row.test: row for row in own.table.rows}
    columns = [own.table.columns[at] for at in kept]
    columns += [Column(theme.name, METRICS[changes[0].metric].unit) for theme in themes]
    columns += [Column(f"{themes[0].name} is", "", "derived", words=True)] if judged else []
    made = []
    for change in changes:
        verdict, scale = change.difference.verdict, METRICS[change.metric].scale
        words = {Verdict.BETTER: "faster", Verdict.WORSE: "slower"}.get(verdict, verdict_text(change))
        entries = [rows[change.cell.number].entries[at] for at in kept]
        entries += [_mean([value * scale for value in side.values]) for side in (change.after, change.before)]
        entries += [Entry(words, str(verdict))] if judged else []
        made.append(Row(tuple(entries), change.cell.number))
    return Table(tuple(columns), tuple(made), label=own.theme.words.results)


def _mean(values: Sequence[float]) -> Entry:
    value = fmean(values) if values else None
    return Entry(floored_text(value), value)


def _bars(own: Product, changes: Sequence[Change]) -> Iterator[Bar]:
    settings = {bar.test: bar.settings for bar in own.bars}
    for change in changes:
        if change.metric is GOODPUT:
            sums = tuple(fmean(side.values) if side.values else None for side in (change.after, change.before))
            yield Bar(change.cell.number, settings.get(change.cell.number, ""), sums, None)


def _conditions(products: tuple[Product, Product], comparison: Comparison, themes: Themes) -> Iterator[Term]:
    yield Term("Verdicts", "By the repetitions of both runs: a difference of 2 % or more that chance does not explain.")
    yield Term("Goodput", "Of all pairs together, means over repetitions, rounded down.")
    for one, theme in zip(products, themes, strict=True):
        for term in one.conditions:
            if term.name not in ("Claim", "Rounding", "Method"):
                yield Term(f"{term.name}, {theme.name}", term.text)
    texts: dict[str, None] = {}
    for change in comparison.differs:
        title, (before, after) = setup_title(change), setup_texts(change)
        texts[title if before == UNKNOWN else f"{title} {after} and {before}"] = None
    named, more = list(texts)[:MOST_DIFFERENCES], len(texts) - MOST_DIFFERENCES
    if named:
        yield Term("What else differs", "; ".join([*named, *([f"{more} more"] if more > 0 else [])]) + ".")
