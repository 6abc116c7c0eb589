"""News of a run as a document: one sentence on top, tables of what changed and what stands. Also as JUnit XML."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.setup_changes import SetupChange
from rigctl.analysis.nights.shifts import Shift, Suspected
from rigctl.base.units import local_text
from rigctl.findings import Finding, Number, Severity, Subject, Weight
from rigctl.records import RunInfo
from rigctl.report.blocks import Column, Document, Entry, Paragraph, Row, Section, Table
from rigctl.report.printers.junit import Case, Suite, junit
from rigctl.report.printers.markdown import markdown
from rigctl.report.words.metrics import METRICS, sum_words
from rigctl.report.words.setup import setup_sentence
from rigctl.report.words.text import UNKNOWN, numbers_text, plural, settings_text, some, span

MOST_CHARACTERS: Final = 1024 * 1024
"""Limit of GitHub's job summaries (docs.github.com, "Adding a job summary")."""
MOST_BRIEF: Final = 65_536
"""Limit of GitHub's comments."""
_FEWEST_TOGETHER: Final = 3
"""Changes of fewer pairs are told one by one."""
_LENGTHS: Final = (None, 3000, 1000, 300, 100, 30, 10, 3, 1)


def document(regressions: Regressions, most: int | None = None) -> Document:
    """Return the document for every printer; `findings[0]` is the sentence on top. `most`: rows of a table."""
    info = regressions.run
    news, standing, suspected = regressions.news, regressions.standing, regressions.suspected
    last = len(regressions.nights.runs) - 1
    earlier = [own for own in regressions.history if own.found < last and own not in (*news, *standing)]
    latest = earlier[-most:] if most else earlier
    tables = (
        ("Not accepted since", changes_table(standing, regressions, most), len(standing)),
        ("One night only", _suspected(suspected, most), len(suspected)),
        ("Earlier changes of level", changes_table(latest, regressions, most), len(earlier)),
    )
    return Document(
        title=f"Regressions of {info.plan.title or info.plan.scenario_name}",
        run=info.run,
        about=(info.plan.rig_name, _date(info)),
        notes="",
        findings=tuple(_findings(regressions)),
        results=tuple(_sections([("News", changes_table(news, regressions, most), len(news))])),
        sections=(
            *_sections(tables),
            Section("Method", (Paragraph(_method(regressions), small=True),), brief=True),
        ),
        footer="",
    )


def _sections(tables: Iterable[tuple[str, Table, int]]) -> Iterator[Section]:
    """Yield a section for each table with rows, and how many of its rows were left out."""
    for title, table, count in tables:
        left = count - len(table.rows)
        more = [Paragraph(f"{left} more were left out.", small=True)] if left else []
        if table.rows:
            yield Section(title, (table, *more), brief=True)


def as_markdown(regressions: Regressions, *, brief: bool = False) -> str:
    """Return the document as Markdown, cut by weight to the limit of a job's summary or (`brief`) of a comment."""
    bound = MOST_BRIEF if brief else MOST_CHARACTERS
    for most in _LENGTHS:
        made = document(regressions, most)
        if most is not None:  # the findings are in the table, too
            made = replace(made, findings=made.findings[: max(most // 10, 1)])
        text = markdown(made)
        if len(text.encode()) < bound:
            return text
    return text


def as_junit(found: Regressions) -> str:
    """Return JUnit XML: a case for each test, pair and node in a role; a change for the worse has failed."""
    plan = found.run.plan
    group = f"regressions.{plan.scenario_name}.{plan.rig_name}"
    worse = {id(shift.series): shift for shift in (*found.standing, *found.news) if not shift.better}
    better = {id(shift.series): shift for shift in found.news if shift.better}
    cases = [
        _case(series, group, worse.get(id(series)), better.get(id(series)), found) for series in found.nights.series
    ]
    return junit([Suite(f"rigctl regress {plan.scenario_name} on {plan.rig_name}", cases, found.run.started_at)])


def _case(series: NightSeries, group: str, worse: Shift | None, better: Shift | None, found: Regressions) -> Case:
    which = f"{name(series)}: {series.subject.metric.name}"
    if worse is not None:
        return Case(which, group, "failed", f"{sentence(worse, found.baseline)}.")
    if series.points[-1].value is None:
        return Case(which, group, "skipped", "Not measured in this run.")
    return Case(which, group, "passed", f"{sentence(better, found.baseline)}." if better is not None else "")


def _findings(regressions: Regressions) -> Iterator[Finding]:
    level = Severity.WARNING if regressions.worse else Severity.NOTE if regressions.news else Severity.OK
    answer = Finding(_answer(regressions), Weight.ANSWER, level, remedy=_remedy(regressions))
    if regressions.news:
        first = _finding(regressions.news[0], regressions)
        answer = replace(answer, subject=first.subject, numbers=first.numbers)
    yield answer
    told = 0 if _together(regressions) else 1
    yield from (_finding(shift, regressions) for shift in regressions.news[told:])
    if regressions.accepted is not None:
        kept = regressions.accepted
        day = local_text(kept.accepted_at, "%Y-%m-%d")
        text = f"The levels of run {kept.run} were accepted by {kept.who} on {day}: {kept.because}"
        yield Finding(text, Weight.DETAIL)
    for message in regressions.nights.damaged:
        yield Finding(f"Left out: {message}", Weight.DETAIL, Severity.WARNING)


def _finding(shift: Shift, regressions: Regressions) -> Finding:
    node = shift.series.subject.node
    subject = Subject("node", (node,)) if node is not None else Subject("test", tuple(map(str, shift.series.tests)))
    numbers: dict[str, Number] = {
        "change_pct": round(100 * (shift.ratio - 1), 3),
        "before": shift.change.before,
        "after": shift.change.after,
        "noise_pct": round(100 * shift.change.noise, 4),
    }
    level = Severity.NOTE if shift.better else Severity.WARNING
    return Finding(f"{sentence(shift, regressions.baseline)}.", Weight.COMPARISON, level, subject, numbers)


def _answer(regressions: Regressions) -> str:
    news, standing, suspected = regressions.news, regressions.standing, len(regressions.suspected)
    if together := _together(regressions):
        return together
    if news:
        rest = f" {plural(len(news) - 1, 'more change')} below." if len(news) > 1 else ""
        return f"{sentence(news[0], regressions.baseline)}.{rest}"
    if not regressions.judged:
        nights = plural(len(regressions.nights.runs), "night")
        return f"Nothing can be said yet: {nights}, and fewer than six do not show the noise of a test."
    tests = {number for series in regressions.nights.series for number in series.tests}
    text = f"No change found in {plural(len(tests), 'test')}"
    if standing:
        largest = sentence(standing[0], regressions.baseline)
        text = f"{plural(len(standing), 'earlier change')} not accepted, the largest: {largest}; nothing else changed"
    if suspected:
        text += f"; {plural(suspected, 'figure differs', 'figures differ')} in this night only"
    share = regressions.visible
    if share is None or share <= 1.05 * regressions.rules.bound:
        return f"{text}."
    return f"{text}. The noise hides a change of less than {100 * share:.2g} % as yet."


def _together(regressions: Regressions) -> str:
    """Return one sentence on news that half of all pairs share (the figure, the side, the night), or nothing."""
    news, first = regressions.news, regressions.news[:1]
    alike = {(own.series.subject.metric, own.better, own.since.run, own.series.subject.node is None) for own in news}
    if len(news) < _FEWEST_TOGETHER or len(alike) > 1 or first[0].series.subject.node is not None:
        return ""
    metric = first[0].series.subject.metric
    every = [
        series
        for series in regressions.nights.series
        if (series.subject.metric, series.subject.node) == (metric, None)
        and (series.subject.stream is None) == (first[0].series.subject.stream is None)
        and series.points[-1].value is not None
    ]
    if 2 * len(news) < len(every):
        return ""
    which = f"All {len(news)}" if len(news) == len(every) else f"{len(news)} of {len(every)}"
    what = "tests" if len({own.series.cell.number for own in news}) == len(news) else "pairs"
    sizes = [abs(100 * (own.ratio - 1)) for own in news]
    shares = span([f"{min(sizes):.1f}", f"{max(sizes):.1f}"])
    against = f"run {regressions.baseline.run}" if regressions.baseline else f"the level before {_date(first[0].since)}"
    text = f"{which} {what}: {METRICS[metric].short} {shares} % {'above' if first[0].ratio > 1 else 'below'} {against}"
    common = [fact for fact in first[0].facts if all(fact in own.facts for own in news)]
    if not common:
        return f"{text}. Nothing that is recorded changed for all of them: look at what they share, as the switch."
    when = "Changed before that run" if regressions.baseline is None else "Changed as well"
    return f"{text}. {when}: {facts_text(common)}."


def _remedy(regressions: Regressions) -> str | None:
    if regressions.news or regressions.standing:
        return f"`rigctl accept {regressions.run.run} --because TEXT` makes the levels of this night the normal ones."
    if regressions.suspected and not regressions.confirmed:
        return "`rigctl regress --confirm` measures these tests again now; else the next night decides."
    return None


def sentence(shift: Shift, baseline: RunInfo | None = None) -> str:
    """Return what changed, by how much, against which level and since when, and what else changed then.

    `pi3 → pi4, test 1: goodput 845 Mbit/s, 9.6 % below the level before 2026-11-15 (935 Mbit/s). Changed before that
    run: net.ipv4.tcp_mtu_probing 0 → 1 on pi3`
    """
    series, words, change = shift.series, METRICS[shift.series.subject.metric], shift.change
    side = "above" if shift.ratio > 1 else "below"
    amount = f"{abs(100 * (shift.ratio - 1)):.1f} % {side}"
    against = f"run {baseline.run}" if baseline else f"the level before {_date(shift.since)}"
    if series.subject.node is not None:
        text = f"{name(series)}: {words.short} {amount} {against}, {numbers_text(series.tests)}"
    else:
        before, after = (f"{_number(words.scale * level)} {words.unit}" for level in (change.before, change.after))
        text = f"{name(series)}: {words.short} {after}, {amount} {against} ({before})"
    if change.gradual:
        text += ", a drift"
    if shift.returns is not None:
        text += f"; this is again the level before {_date(shift.returns)}"
    facts = facts_text(shift.facts)
    when = "Changed before that run" if baseline is None else "Changed as well"
    return f"{text}. {when}: {facts}" if facts else text


def name(series: NightSeries) -> str:
    """Return `old as sender`, `north → old, test 3` or `test 3 of all pairs (window 64 KiB)`."""
    subject, cell = series.subject, series.cell
    if subject.node is not None:
        return f"{subject.node} as {'sender' if subject.role == 'sending' else 'receiver'}"
    stream = subject.stream or (cell.streams[0] if len(cell.streams) == 1 else None)
    if stream is not None:
        return f"{stream.sender} → {stream.receiver}, test {cell.number}"
    of = sum_words([cell], subject.metric)
    return f"test {cell.number}{' ' if of else ''}{of} ({settings_text(cell)})"


def facts_text(facts: Sequence[SetupChange]) -> str:
    """Return `kernel 6.6 → 6.12 on n1 and n2, MTU 1500 → 9000 on 4 nodes`."""
    return some([setup_sentence(change) for change in facts])


def changes_table(shifts: Sequence[Shift], regressions: Regressions, most: int | None) -> Table:
    columns = (
        _words("What"),
        Column("Change", "%"),
        Column("Before"),
        Column("After"),
        _words("Figure"),
        _words("Since"),
        _words("Confirmed"),
        _words("Changed with it"),
    )
    by_nights = regressions.baseline is None
    return Table(columns, tuple(_row(shift, by_nights=by_nights) for shift in shifts[:most]), label="Changes")


def _row(shift: Shift, *, by_nights: bool) -> Row:
    change, series = shift.change, shift.series
    words = METRICS[series.subject.metric]
    is_node = series.subject.node is not None
    levels = [None if is_node else words.scale * level for level in (change.before, change.after)]
    tests = f" ({numbers_text(series.tests)})" if is_node else ""
    share = 100 * (shift.ratio - 1)
    since = f"{_date(shift.since)}{' (drift)' if change.gradual else ''}"
    return Row(
        (
            Entry(f"{name(series)}{tests}", name(series)),
            Entry(f"{share:+.1f}", round(share, 2), "good" if shift.better else "warn"),
            *(Entry(_number(level), level) for level in levels),
            Entry(words.short if is_node else f"{words.short} [{words.unit}]", series.subject.metric.name),
            Entry(since, shift.since.run),
            Entry("yes" if shift.confirmed else "by nights" if by_nights else "no", shift.confirmed),
            Entry(facts_text(shift.facts) or UNKNOWN, tuple(change.name for change in shift.facts)),
        ),
        test=series.tests[0] if len(series.tests) == 1 else None,
    )


def _suspected(found: Sequence[Suspected], most: int | None) -> Table:
    columns = (
        _words("What"),
        Column("Change", "%", "derived"),
        Column("Level"),
        Column("This night"),
        _words("Figure"),
    )
    rows = []
    for own in found[:most]:
        words = METRICS[own.series.subject.metric]
        levels = [words.scale * value for value in (own.suspicion.level, own.suspicion.value)]
        share = 100 * (own.suspicion.ratio - 1)
        entries = (
            Entry(name(own.series)),
            Entry(f"{share:+.1f}", round(share, 2)),
            *(Entry(_number(level), level) for level in levels),
            Entry(f"{words.short} [{words.unit}]", own.series.subject.metric.name),
        )
        rows.append(Row(entries, test=own.series.tests[0]))
    return Table(columns, tuple(rows), label="One night only")


def _words(title: str) -> Column:
    return Column(title, "", "requested", words=True)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _date(info: RunInfo) -> str:
    return local_text(info.started_at, "%Y-%m-%d")


def _method(regressions: Regressions) -> str:
    bound = f"{100 * regressions.rules.bound:g} %"
    if regressions.baseline is not None:
        text = f"Compared with run {regressions.baseline.run}; the noise is that of the nights before."
    else:
        before = plural(len(regressions.nights.runs) - 1, "night")
        text = (
            f"The levels of this night and the {before} before, segmented anew. "
            "A level has two nights, or one that a second measurement confirms."
        )
    if regressions.too_few:
        text += f" {plural(regressions.too_few, 'series', 'series')} with too few nights were not judged."
    return f"{text} Changes count that are larger than {bound} and than the noise from night to night."
