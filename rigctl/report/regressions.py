"""Makes the report on the regressions of a run: main sentence and table of lasting changes; also as JUnit XML."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.regressions import Regressions, Shift, WeeklySeries
from rigctl.analysis.nights.setup_changes import SetupChange
from rigctl.base.texts import sparkline
from rigctl.base.units import local_text
from rigctl.base.values import group_by, most
from rigctl.findings import Finding, Severity, Weight
from rigctl.findings.changes import ONE_NIGHT, share_text, sum_words, words_of
from rigctl.findings.text import UNKNOWN, join_list, lower_first, numbers_text, plural, settings_text, some, span
from rigctl.model.statistics.comparing import WhyNot
from rigctl.records import RunInfo
from rigctl.report.blocks import Column, Document, Entry, Paragraph, Row, Section, Table
from rigctl.report.printers.junit import Case, Suite, junit
from rigctl.report.printers.markdown import markdown
from rigctl.report.setup import setup_sentence

_MOST_OF_SUMMARY: Final = 1024 * 1024
"""Most bytes of a GitHub job summary (docs.github.com, "Adding a job summary")."""
_MOST_OF_COMMENT: Final = 65_536
"""Most bytes of a GitHub comment."""
MOST_ROWS_SHOWN: Final = 5
"""Most table rows in a terminal."""
_RUNS: Final = 13
"""Number of runs in a sparkline."""
_WEEKDAYS: Final = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_WHOLE_PCT: Final = 2.95  # shares of a weekly pattern are rounded to whole per cent from here on
_FEWEST_TOGETHER: Final = 3
"""Fewer changes than this are reported one by one."""


def regressions_document(regressions: Regressions, rows: int | None = None) -> Document:
    """Return the report for every printer. The table has at most `rows` rows; None: all rows."""
    info, lines = regressions.run, _lines(regressions)
    table = _table(lines[:rows], regressions, _names_told(regressions), min(_RUNS, len(regressions.nights.runs)))
    left = len(lines) - len(table.rows)
    more = (Paragraph(f"{left} more changes: `rigctl regress {info.run} --json` has all.", small=True),) if left else ()
    return Document(
        title=f"Regressions of {info.plan.title or info.plan.scenario_name}",
        run=info.run,
        about=(info.plan.rig_name, _basis_text(regressions)),
        notes="",
        findings=tuple(_findings(regressions)),
        results=(Section("Changes", (table, *more), brief=True),) if lines else (),
        sections=(),
        footer="",
    )


def as_markdown(regressions: Regressions, *, brief: bool = False) -> str:
    """Return the report as Markdown, shortened to the size limit of a GitHub job summary or, if `brief`, comment."""
    bound = _MOST_OF_COMMENT if brief else _MOST_OF_SUMMARY
    for rows in (None, 3000, 1000, 300, 100, 30, 10, 3, 1):
        text = markdown(regressions_document(regressions, rows))
        if len(text.encode()) < bound:
            return text
    return text


def as_junit(found: Regressions) -> str:
    """Return JUnit XML with a case for each test, pair, and node as sender or receiver. A regression fails its case."""
    plan = found.run.plan
    group = f"regressions.{plan.scenario_name}.{plan.rig_name}"
    worse = {shift.series.subject: shift for shift in (*found.standing, *found.news) if not shift.better}
    better = {shift.series.subject: shift for shift in found.news if shift.better}
    cases = [
        _case(series, group, worse.get(series.subject), better.get(series.subject), found)
        for series in found.nights.series
    ]
    return junit([Suite(f"rigctl regress {plan.scenario_name} on {plan.rig_name}", cases, found.run.started_at)])


def _case(series: NightSeries, group: str, worse: Shift | None, better: Shift | None, found: Regressions) -> Case:
    which = f"{series_name(series)}: {series.subject.metric.name}"
    if worse is not None:
        return Case(which, group, "failed", f"{shift_text(worse, found.baseline)}.")
    if series.points[-1].value is None:
        return Case(which, group, "skipped", "Not measured in this run.")
    return Case(which, group, "passed", f"{shift_text(better, found.baseline)}." if better is not None else "")


def _findings(regressions: Regressions) -> Iterator[Finding]:
    """Yield the answer, how to accept or confirm changes, the last accepted levels, and a warning on damaged runs."""
    level = Severity.OK
    if regressions.news or any(own.new for own in regressions.weekly):
        level = Severity.WARNING if regressions.failed else Severity.NOTE
    yield Finding("regression", _answer(regressions), Weight.ANSWER, level)
    if regressions.news or regressions.standing:
        remedy = f"To accept the new levels as normal: `rigctl accept {regressions.run.run} --because TEXT`"
        yield Finding("regression-next", remedy, Weight.DETAIL)
    elif regressions.suspected and not regressions.confirmed:
        remedy = "`rigctl regress --confirm` measures these tests again now; else the next run decides."
        yield Finding("regression-next", remedy, Weight.DETAIL)
    if (kept := regressions.accepted) is not None:
        day = local_text(kept.accepted_at, "%Y-%m-%d")
        text = f"The levels of run {kept.run} were accepted by {kept.who} on {day}: {kept.because}"
        yield Finding("levels-accepted", text, Weight.DETAIL)
    if damaged := regressions.nights.damaged:
        yield Finding("runs-damaged", f"Left out: {some(damaged, more='more runs')}", Weight.DETAIL, Severity.WARNING)


def _answer(regressions: Regressions) -> str:
    """Return the answer. What made the exit code leads it: a change for the worse, new or not accepted."""
    text = _changes_text(regressions) if regressions.news else _quiet_text(regressions)
    return " ".join([text, *(f"{sentence}." for sentence in weekly_texts(regressions))])


def _changes_text(regressions: Regressions) -> str:
    """Return the sentences on a run with new changes."""
    news = regressions.news
    text = _first_text(regressions, news)
    if regressions.failed and news[0].better:  # all news is good
        standing = _first_text(regressions, regressions.standing, within=True)
        return f"Not accepted: {standing} New: {_first_text(regressions, news, within=True)}"
    return text


def _first_text(regressions: Regressions, shifts: Sequence[Shift], *, within: bool = False) -> str:
    """Return the sentence on the first of several changes, or on all if they are alike, and how many are left.

    `within`: the sentence follows a colon.
    """
    alike = [own for own in shifts if own.better == shifts[0].better]
    if together := _together(regressions, alike):
        told, text = len(alike), lower_first(together) if within else together
    else:
        told, text = 1, shift_text(shifts[0], regressions.baseline)
    left = len(shifts) - told
    return f"{text}. {plural(left, 'more change')} below." if left else f"{text}."


def _quiet_text(regressions: Regressions) -> str:
    """Return the sentences on a run without a new change."""
    standing = regressions.standing
    if not regressions.judged:
        runs = plural(len(regressions.nights.runs), "run")
        return f"Nothing can be said yet after {runs}: the noise of a test is known only after six."
    tests = {number for series in regressions.nights.series for number in series.tests}
    text = f"No{' new' if _lines(regressions) else ''} change found in {plural(len(tests), 'test')}"
    if suspected := regressions.suspected:
        text += f"; {plural(len(suspected), 'figure differs', 'figures differ')} in {ONE_NIGHT}"
    if standing:
        text += f"; {plural(len(standing), 'earlier change')} not accepted"
        if together := _together(regressions, standing):
            text += f": {lower_first(together)}"
        else:
            largest = standing[0].weight == max(own.weight for own in standing)
            which = "" if len(standing) == 1 else ", the largest" if largest else ", the worst"
            text += f"{which}: {shift_text(standing[0], regressions.baseline)}"
    share = regressions.visible
    if share is None or share <= 1.05 * regressions.rules.bound:
        return f"{text}."
    return f"{text}. A change of less than {100 * share:.2g} % would not show in the noise yet."


def weekly_texts(regressions: Regressions) -> list[str]:
    """Return a phrase for each weekly pattern: `Saturdays and Sundays 5 % lower: goodput of a → b, test 1`."""
    groups = group_by(
        regressions.weekly,
        lambda own: (tuple(own.pattern.ratios), own.pattern.ratio > 1, own.series.subject.metric),
    )
    texts = []
    for (weekdays, higher, metric), patterns in groups.items():
        shares = [f"{size:.0f}" if size >= _WHOLE_PCT else f"{size:.1f}" for size in sorted(map(_size_pct, patterns))]
        days = join_list([_WEEKDAYS[weekday] for weekday in weekdays])
        where = some([series_name(own.series) for own in patterns])
        how = "higher" if higher else "lower"
        texts.append(f"{days} {span((shares[0], shares[-1]))} % {how}: {words_of(metric).short} of {where}")
    return texts


def _size_pct(own: WeeklySeries) -> float:
    return abs(100 * (own.pattern.ratio - 1))


def _together(regressions: Regressions, shifts: Sequence[Shift]) -> str:
    """Return a sentence without full stop if at least half of all pairs changed alike in the same run; else empty."""
    alike = {(own.series.subject.metric, own.better, own.since.run, own.series.subject.node is None) for own in shifts}
    if len(shifts) < _FEWEST_TOGETHER or len(alike) > 1 or shifts[0].series.subject.node is not None:
        return ""
    first = shifts[0]
    metric = first.series.subject.metric
    kind = (metric, None, first.series.subject.stream is None)
    measured = (own.subject for own in regressions.nights.series if own.points[-1].value is not None)
    every = [own for own in measured if (own.metric, own.node, own.stream is None) == kind]
    if 2 * len(shifts) < len(every):
        return ""
    which = f"All {len(shifts)}" if len(shifts) == len(every) else f"{len(shifts)} of {len(every)}"
    what = "tests" if len({own.series.cell.number for own in shifts}) == len(shifts) else "pairs"
    sizes = sorted(abs(100 * (own.ratio - 1)) for own in shifts)
    shares = span(f"{size:.1f}" for size in (sizes[0], sizes[-1]))
    against = f"run {regressions.baseline.run}" if regressions.baseline else f"the level before {run_day(first.since)}"
    text = f"{which} {what}: {words_of(metric).short} {shares} % {'above' if first.ratio > 1 else 'below'} {against}"
    common = _common(shifts)
    if not common:
        return f"{text}. No recorded setting changed for all of them: check what they share, such as the switch"
    when = "Changed before that run" if regressions.baseline is None else "Changed as well"
    return f"{text}. {when}: {facts_text(common)}"


def _common(shifts: Sequence[Shift]) -> list[SetupChange]:
    return [fact for fact in shifts[0].facts if all(fact in own.facts for own in shifts)]


def _names_told(regressions: Regressions) -> Sequence[SetupChange]:
    """Return the setup changes that the answer names, so that the table need not repeat them."""
    told: list[SetupChange] = []
    for shifts in _told_by_answer(regressions):
        alike = [own for own in shifts if own.better == shifts[0].better]
        told += _common(alike) if _together(regressions, alike) else shifts[0].facts
    return told


def _told_by_answer(regressions: Regressions) -> list[Sequence[Shift]]:
    news, standing = regressions.news, regressions.standing
    good_news = news and news[0].better and regressions.failed
    return [shifts for shifts in ((standing, news) if good_news else (news or standing,)) if shifts]


def shift_text(shift: Shift, baseline: RunInfo | None = None) -> str:
    """Return a sentence on a lasting change: which test, by how much, since when, and which settings changed then.

    `pi3 → pi4, test 1: goodput 845 Mbit/s, 9.6 % below the level before 2026-11-15 (935 Mbit/s). Changed before that
    run: net.ipv4.tcp_mtu_probing 0 → 1 on pi3`
    """
    series, words, change = shift.series, words_of(shift.series.subject.metric), shift.change
    amount = f"{abs(100 * (shift.ratio - 1)):.1f} % {'above' if shift.ratio > 1 else 'below'}"
    against = f"run {baseline.run}" if baseline else f"the level before {run_day(shift.since)}"
    if series.subject.node is not None:
        text = f"{series_name(series)}: {words.short} {amount} {against}, {numbers_text(series.tests)}"
    else:
        before, after = (f"{_number(words.scale * level)} {words.unit}" for level in (change.before, change.after))
        text = f"{series_name(series)}: {words.short} {after}, {amount} {against} ({before})"
    if change.gradual:
        text += ", a drift"
    if shift.returns is not None:
        text += f"; this is again the level before {run_day(shift.returns)}"
    facts = facts_text(shift.facts)
    when = "Changed before that run" if baseline is None else "Changed as well"
    return f"{text}. {when}: {facts}" if facts else text


def series_name(series: NightSeries) -> str:
    """Return a series' name: `old as sender`, `north → old, test 3` or `test 3 of all pairs (window 64 KiB)`."""
    subject, cell = series.subject, series.cell
    if subject.node is not None:
        return f"{subject.node} as {'sender' if subject.role == 'sending' else 'receiver'}"
    stream = subject.stream or (cell.streams[0] if len(cell.streams) == 1 else None)
    if stream is not None:
        return f"{stream.sender} → {stream.receiver}, test {cell.number}"
    of = sum_words([cell], subject.metric)
    return f"test {cell.number}{' ' if of else ''}{of} ({settings_text(cell)})"


def facts_text(facts: Sequence[SetupChange]) -> str:
    """Return setup changes as a phrase: `kernel 6.6 → 6.12 on n1 and n2, MTU 1500 → 9000 on 4 nodes`."""
    return some([setup_sentence(change) for change in facts])


_ACCEPTED: Final = "accepted"
_Line: TypeAlias = tuple[Shift, str]
"""A table row: a change, and its state: `new`, `accepted`, `over` or nothing."""


def _lines(regressions: Regressions) -> list[_Line]:
    """Return the rows: new and standing changes, the worse first; suspected ones; those that were accepted or ended."""
    news, standing = regressions.news, regressions.standing
    first = len(regressions.nights.runs) - _RUNS
    earlier = [own for own in regressions.history if own.change.at >= first and own not in (*news, *standing)]
    lasting = [*((shift, "new") for shift in news), *((shift, "") for shift in standing)]
    return [
        *sorted(lasting, key=lambda line: line[0].better),
        *((shift, "") for shift in regressions.suspected),
        *((shift, _ACCEPTED if _is_accepted(shift, regressions) else "over") for shift in reversed(earlier)),
    ]


def _since(shift: Shift, state: str) -> str:
    if shift.change.why_not is WhyNot.ONE_NIGHT:
        return ONE_NIGHT
    known = "" if state == _ACCEPTED else state  # a note tells that a change was accepted
    return ", ".join(filter(None, (run_day(shift.since), "drift" if shift.change.gradual else "", known)))


def _is_accepted(shift: Shift, regressions: Regressions) -> bool:
    runs = [info.run for info in regressions.nights.runs]
    return any(runs.index(level.run) >= shift.found for level in regressions.levels)


def changes_table(regressions: Regressions) -> Table:
    """Return a table with a row for each lasting change, earliest first."""
    return _table([(shift, "") for shift in regressions.history], regressions)


def _table(lines: Sequence[_Line], regressions: Regressions, told: Sequence[SetupChange] = (), runs: int = 0) -> Table:
    """Return a table of changes with sparklines of `runs` runs, and notes on the setup changes not in `told`."""
    units = {words_of(own.series.subject.metric).unit for own, _ in lines}
    unit = next(iter(units)) if len(units) == 1 else ""
    drawn = [_Drawn(own, own_unit=not unit) for own, _ in lines]
    tops = {own.top for own in drawn}
    heights = f"0 to {next(iter(tops))}" if len(tops) == 1 else "from 0"
    heads = (f"Last {runs} runs,", heights)
    blocks = (Column(" ".join(heads), words=True, minor=1, short="\n".join(heads)),) if runs else ()
    when = "just before" if regressions.baseline is None else "as well"
    notes: dict[str, int] = {}
    rows = []
    for (shift, state), line in zip(lines, drawn, strict=True):
        facts = facts_text([fact for fact in shift.facts if fact not in told])
        changed = f"Changed {when}: {facts}." if facts else ""
        sentences = [text for text in ("Accepted." if state == _ACCEPTED else "", changed) if text]
        numbers = (notes.setdefault(" ".join(sentences), len(notes) + 1),) if sentences else ()
        share, tests = shift.ratio - 1, shift.series.tests
        entries = (
            Entry(_short(shift), series_name(shift.series)),
            line.level(shift.change.before),
            line.level(shift.change.after),
            Entry(share_text(share), round(100 * share, 2), "good" if shift.better else "warn"),
            Entry(_since(shift, state)),
            *(Entry(line.blocks) for _ in blocks),
        )
        rows.append(Row(entries, tests[0] if len(tests) == 1 else None, numbers))
    series, since = Column("Series", "", "requested", words=True), Column("Since", "", "derived", words=True)
    levels = (Column(title, unit, minor=-1) for title in ("Before", "Now"))
    columns = (series, *levels, Column("Change", "%", minor=-1), since, *blocks)
    return Table(columns, tuple(rows), tuple(notes), label="Changes")


class _Drawn:
    """The levels and the sparkline of a change, in the unit of its figure. A node has the median of its pairs."""

    def __init__(self, shift: Shift, *, own_unit: bool) -> None:
        words = words_of(shift.series.subject.metric)
        self._unit = f" {words.unit}" if own_unit else ""
        usual = shift.usual
        self._scale = None if usual is None else words.scale * usual
        values = [point.value for point in shift.series.points[-_RUNS:]]
        self._values = [None if value is None or self._scale is None else self._scale * value for value in values]

    def level(self, level: float) -> Entry:
        value = None if self._scale is None else self._scale * level
        return Entry(UNKNOWN if value is None else f"{_number(value)}{self._unit}", value)

    @property
    def top(self) -> str:
        """Return the upper end of the sparkline's scale, which begins at 0, with its unit if rows differ in it."""
        top = most(self._values)
        return UNKNOWN if top is None else f"{_number(top)}{self._unit}"

    @property
    def blocks(self) -> str:
        """Return the last runs and the value of the last one, as `████▇▇  847`."""
        top, last = most(self._values), self._values[-1]
        if not top:
            return UNKNOWN
        return f"{sparkline(self._values, 0.0, top)}  {UNKNOWN if last is None else _number(last)}"


def _short(shift: Shift) -> str:
    series = shift.series
    if series.subject.node is not None:
        return f"{series_name(series)} ({len(shift.pairs)})"
    whole = series.subject.stream is None and len(series.cell.streams) > 1
    return f"test {series.cell.number}, {len(series.cell.streams)} pairs" if whole else series_name(series)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.3g}"


def run_day(info: RunInfo) -> str:
    return local_text(info.started_at, "%Y-%m-%d")


def _basis_text(regressions: Regressions) -> str:
    """Return a phrase on what the run is compared with: `18 runs before, changes from 2 %`."""
    before = regressions.baseline and f"against run {regressions.baseline.run}"
    runs = plural(len(regressions.nights.runs) - 1, "run before", "runs before")
    return f"{before or runs}, changes from {100 * regressions.rules.bound:g} %"
