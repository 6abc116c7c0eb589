"""The report part on tests that begin requests at equal intervals: times, the sender's lateness, lost requests."""

from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import divide, group_by, most, total_of_known
from rigctl.figures import Figure
from rigctl.figures import requests as figures
from rigctl.findings import Finding, Sentence, Statement, Weight, tests
from rigctl.findings import latency as said
from rigctl.findings.text import (
    UNKNOWN,
    count_text,
    numbers_text,
    pct_text,
    plural,
    tests_named,
    time_text,
    upper_first,
)
from rigctl.model.latency import bounds_ns, percentile_ns
from rigctl.model.trials import Reason, max_latency_us
from rigctl.report.blocks import Column, Part, Section, Table
from rigctl.report.charts.requests import charts_of_requests
from rigctl.report.request_search import bound_text, request_search_findings, search_section, within_text
from rigctl.report.tables import requested
from rigctl.report.tables.columns import (
    ColumnOf,
    count_texts,
    number_column,
    table_of,
    to_digits,
)
from rigctl.report.tables.messages import PAIR_COLUMN, SIZE_COLUMN, microseconds, row_head_of, to_microseconds
from rigctl.settings import NODELAY, PARALLEL, PER_SECOND, REPLY

SECTION: Final = "requests"
_METHOD: Final = (
    "Each flow begins its requests at equal intervals, whether or not earlier ones were answered. The time of a "
    "request counts from the instant at which it was to begin until its whole reply has arrived, so that it includes "
    "any wait before."
)
_LATENESS: Final = (
    "Late: requests to which the sender's own thread came more than 1 ms after their time. Held: those that then "
    "waited for more than 1 ms, as the connection took no more bytes."
)
_PERCENTILES: Final = (
    "Percentiles come from a histogram, within 0.4 %, count requests without an answer as the longest, and are given "
    "where at least ten requests took longer."
)
_NOTABLE_SHARE: Final = 0.01
"""Share of late requests from which the printed p99 may be theirs."""
_NOTABLE_OF_MANY: Final = (10_000, 0.001)
"""The same for p99.9, and the number of requests from which it is printed."""
_PERCENTILES_OF: Final = {
    50: figures.REQUEST_P50,
    90: figures.REQUEST_P90,
    99: figures.REQUEST_P99,
    99.9: figures.REQUEST_P999,
}
_REACHED: Final = 0.99
"""Share of the offered rate that counts as reached."""
_LAST_REPLIES_S: Final = 0.1
"""Time after the last request was due in which the last replies may arrive: a pause there is no queue that grows."""


_STALL_US: Final = 50_000
"""By how much longer than the median a request takes that counts as stalled: a host at rest does not pause so long."""
_LEAST_STALLED: Final = 10
_LATE_SHARE: Final = 0.1
"""Share of a percentile from which the sender's lateness may have made it longer."""
_STALL_TRIPS: Final = 5
"""A stall takes at least so many times the median. Where a queue grows until the end, the median is half of it."""


def part(view: RunView) -> Part:
    """Return the report part on tests that begin requests at equal intervals; `view` has only these."""
    findings = [*_answer(view), *request_search_findings(view), *_findings(view.messages)]
    method = (_METHOD, _LATENESS, _PERCENTILES)
    over_rate, times = charts_of_requests(view.messages)
    by_percentile = (Section("Time of a request, by percentile", (times,), full=True),) if over_rate and times else ()
    return Part(
        findings=tuple(findings),
        results=_table(view),
        sections=(*search_section(view), *by_percentile),
        method=method,
        picture=over_rate or times,
    )


def _rate(result: MessageResult) -> float:
    return result[figures.ANSWERED_PER_S] or 0.0


def is_reached(result: MessageResult) -> bool:
    """Tell whether requests were answered as fast as they were due, apart from a short wait for the last replies."""
    rate, offered = _rate(result), result[figures.OFFERED_PER_S]
    due, unsent = result[figures.REQUESTS_DUE], result[figures.REQUESTS_UNSENT]
    if not rate or not offered or due is None or unsent:
        return False
    behind_s = due / len(result.elapsed_s) * (1 / rate - 1 / offered)
    return rate >= _REACHED * offered or behind_s <= _LAST_REPLIES_S


def _median_us(result: MessageResult) -> float | None:
    """Return the median time of the requests that were answered."""
    return divide(percentile_ns(result.group.trips, 50), 1e3)


def _is_behind(result: MessageResult) -> bool:
    """Tell whether requests were answered more slowly than they were due, and their times rose all the time.

    Replies that stop also lower the rate, but leave the median where it was.
    """
    median, longest, least = _median_us(result), result[figures.REQUEST_MAX], result[figures.REQUEST_MIN]
    if is_reached(result) or median is None or longest is None or least is None:
        return False
    spread = longest - least
    return spread >= 1e6 * _LAST_REPLIES_S and median - least >= spread / _STALL_TRIPS


def _stalled(result: MessageResult) -> int:
    """Return how many requests took much longer than the median.

    As many as the sender came to late are left out, unless it was never so late that this explains their times.
    """
    median, longest = result[figures.REQUEST_P50], result[figures.REQUEST_MAX]
    if median is None or longest is None or longest < _STALL_TRIPS * median:
        return 0
    above_ns = 1e3 * (median + _STALL_US)
    slow = sum(count for bucket, count in result.group.trips if bounds_ns(bucket)[0] > above_ns)
    if (result[figures.LATE_MAX] or 0.0) > _STALL_US / 2:
        slow -= result[figures.REQUESTS_LATE] or 0
    return slow if slow >= _LEAST_STALLED else 0


def _is_late(result: MessageResult) -> bool:
    """Tell whether the sender's lateness may have made a percentile notably longer."""
    latest, due = result[figures.LATE_MAX], result[figures.REQUESTS_DUE]
    share = divide(result[figures.REQUESTS_LATE], due) or 0.0
    reached = [result[figure] for percent, figure in _PERCENTILES_OF.items() if share >= 1 - percent / 100]
    known = [value for value in (*reached, result[figures.REQUEST_MAX]) if value is not None]
    matters = latest is None or not known or latest >= _LATE_SHARE * min(known)
    return matters and _is_notable(result, figures.REQUESTS_LATE)


def _answer(view: RunView) -> Iterator[Finding]:
    """Yield the answer: the highest rate that a search found, else the times at the highest rate that was reached.

    If no rate was reached, the answer has the times at the highest rate.
    """
    results = view.messages
    found = {number: search.best for number, search in view.searches.items()}
    known = [result for result in results if _rate(result) and found.get(result.cell.number, True)]
    if not known:
        yield from _no_rate_found(view)
        return
    if searched := [result for result in known if found.get(result.cell.number)]:
        yield _answer_of_search(view, searched)
        return
    reached = [result for result in known if is_reached(result)]
    best, several = max(reached or known, key=_rate), len(known) > 1
    name, figure = next(
        ((name, figure) for name, figure in _NAMED.items() if best[figure] is not None), ("p50", figures.REQUEST_P50)
    )
    # With the digits of the table, so that it is found there.
    time = to_microseconds([result[figure] for result in results])(best[figure])
    brief = f"{name} {time} µs at {_rate(best):,.0f} requests/s"
    text = f"{best.stream}: {brief}"
    if several:
        text += f" ({plural(best.cell.parallel, 'flow')}), the highest rate {'reached' if reached else 'of all tests'}"
    statements = [Statement(text, [best], lambda own: _rate(own) >= _rate(best) or not is_reached(own))]
    lost = [result for result in known if _is_lossy(result)]
    words = "all were answered"
    if lost:
        words = f"not all were answered in {tests_named([f'test {own.cell.number}' for own in lost], 'as')}"
        words = words if several else "not all were answered"
    statements.append(Statement(words, lost or known, lambda own: _is_lossy(own) is bool(lost)))
    yield Finding(
        "requests",
        f"{text}; {words}",
        Weight.ANSWER,
        subject=tests([best.cell.number]),
        numbers={"requests_per_s": _rate(best), figure.name: best[figure]},
        brief=brief,
        statements=tuple(statements),
    )


def _no_rate_found(view: RunView) -> Iterator[Finding]:
    """Yield the answer of a run whose searches found no rate; nothing if no trial was measured."""
    tried = [number for number, search in view.searches.items() if search.above is not None]
    if tried:
        brief = f"no rate of requests within {bound_text(view)}"
        late = all(search.above and search.above.reason is Reason.LATE for search in view.searches.values())
        text = f"{brief}: the sender itself was late" if late else f"{brief} was found"
        yield Finding("requests", upper_first(text), Weight.ANSWER, subject=tests(tried), brief=brief)


def _answer_of_search(view: RunView, results: Sequence[MessageResult]) -> Finding:
    """Return the highest rate of all searches that found one, as measured in the trial that decided."""
    best = max(results, key=_rate)
    trial = view.searches[best.cell.number].best
    assert trial is not None
    brief = f"{_rate(best):,.0f} requests/s {within_text(view, trial)}"
    of_all = f", the most of {plural(len(results), 'search', 'searches')}" if len(results) > 1 else ""
    text = f"{best.stream}: {brief}{of_all}"
    return Finding(
        "requests",
        f"{text}; all were answered",
        Weight.ANSWER,
        subject=tests([best.cell.number]),
        numbers={"requests_per_s": _rate(best)},
        brief=brief,
        statements=(
            Statement(text, [best], lambda own: _rate(own) >= _rate(best)),
            Statement("all were answered", [best], lambda own: not _is_lossy(own)),
        ),
    )


_NAMED: Final = {"p99": figures.REQUEST_P99, "p50": figures.REQUEST_P50}
"""The percentiles that an answer may name, the preferred first."""


def _is_lossy(result: MessageResult) -> bool:
    return bool(result[figures.REQUESTS_UNANSWERED] or result[figures.REQUESTS_UNSENT])


def _findings(results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield for each pair what is to be known of its times: late senders, full connections, lost requests, rates."""
    for stream, own in group_by(results, lambda result: result.stream).items():
        if late := [result for result in own if _is_late(result)]:
            longest = time_text(most(result[figures.LATE_MAX] for result in late))
            yield _say(said.SENDER_LATE, late, figures.REQUESTS_LATE, stream=stream, most=longest)
        if held := [result for result in own if _is_notable(result, figures.REQUESTS_HELD)]:
            yield _say(said.REQUESTS_HELD_BACK, held, figures.REQUESTS_HELD, stream=stream)
        if lost := [result for result in own if result[figures.REQUESTS_UNANSWERED]]:
            yield _say(said.REQUESTS_LOST, lost, figures.REQUESTS_UNANSWERED, stream=stream, receiver=stream.receiver)
        if stalled := [result for result in own if _stalled(result)]:
            yield _stall(stalled)
        if slow := [result for result in own if _rate(result) and _is_behind(result)]:
            worst = min(slow, key=lambda result: divide(_rate(result), result[figures.OFFERED_PER_S]) or 0.0)
            words = {"rate": f"{_rate(worst):,.0f}", "offered": f"{worst[figures.OFFERED_PER_S]:,.0f}"}
            words["which"] = f" (test {worst.cell.number})" if len(slow) > 1 else ""
            yield _say(said.RATE_NOT_REACHED, slow, figures.REQUESTS_ANSWERED, stream=stream, **words)


def _stall(results: Sequence[MessageResult]) -> Finding:
    """Return the finding on tests of a pair in which replies stopped."""
    count, stream = sum(map(_stalled, results)), results[0].stream
    longest = most((result[figures.REQUEST_MAX] or 0.0) - (result[figures.REQUEST_P50] or 0.0) for result in results)
    numbers = sorted(result.cell.number for result in results)
    words = {"stream": stream, "receiver": stream.receiver, "time": time_text(longest), "tests": numbers_text(numbers)}
    return said.REQUESTS_STALLED.say(tests(numbers), {"requests_stalled": count}, count=count_text(count), **words)


def _is_notable(result: MessageResult, figure: Figure[int]) -> bool:
    due = result[figures.REQUESTS_DUE] or 0
    share = divide(result[figure], due) or 0.0
    return share >= _NOTABLE_SHARE or (due >= _NOTABLE_OF_MANY[0] and share >= _NOTABLE_OF_MANY[1])


def _say(sentence: Sentence, results: Sequence[MessageResult], figure: Figure[int], **words: object) -> Finding:
    """Return a finding on tests of a pair, with the sum of a count and its share of the requests that were due."""
    count = total_of_known(result[figure] for result in results) or 0
    due = total_of_known(result[figures.REQUESTS_DUE] for result in results) or 0
    numbers = sorted(result.cell.number for result in results)
    pct = pct_text(100 * (divide(count, due) or 0.0), 2)
    return sentence.say(
        tests(numbers),
        {figure.name: count},
        count=count_text(count),
        due=count_text(due),
        pct=pct,
        tests=numbers_text(numbers),
        **words,
    )


def _table(view: RunView) -> Table:
    """Return the table with a row for each test and pair."""
    results = view.messages
    most = requested.Requested(
        Column("Max latency", "µs", "requested"), partial(max_latency_us, view.plan), unset=UNKNOWN
    )
    columns: list[ColumnOf[MessageResult]] = [
        requested.TEST_COLUMN.of,
        requested.CONDITION_COLUMN.of,
        PAIR_COLUMN,
        SIZE_COLUMN,
        requested.requested_column(REPLY, "Reply", "B").of,
        requested.varying_column(PARALLEL, "Flows").of,
        requested.requested_column(PER_SECOND, "Offered/s").of,
        most.of,
        requested.varying_column(NODELAY).of,
        *(setting.of for setting in requested.OF_ALL),
        requested.PLACEMENT_COLUMN.of,
        number_column("Requests/s", "", itemgetter(figures.ANSWERED_PER_S), to_digits(3, 0), "measured", -1),
        microseconds("p50", itemgetter(figures.REQUEST_P50), -1),
        microseconds("p90", itemgetter(figures.REQUEST_P90), 1),
        microseconds("p99", itemgetter(figures.REQUEST_P99), -1),
        microseconds("p99.9", itemgetter(figures.REQUEST_P999), 0),
        microseconds("p99.99", itemgetter(figures.REQUEST_P9999), 2),
        microseconds("max", itemgetter(figures.REQUEST_MAX), 1),
        number_column("In flight", "", itemgetter(figures.IN_FLIGHT), count_texts, "measured", 2),
        number_column("Late", "", itemgetter(figures.REQUESTS_LATE), count_texts, "measured", 1),
        microseconds("Most late", itemgetter(figures.LATE_MAX), 1),
        number_column("Unanswered", "", itemgetter(figures.REQUESTS_UNANSWERED), count_texts, "measured", 0),
    ]
    if any(result[figures.REQUESTS_HELD] for result in results):
        columns.append(number_column("Held", "", itemgetter(figures.REQUESTS_HELD), count_texts, "measured", 2))
    return table_of(results, columns, row_head_of(results), label="Requests")
