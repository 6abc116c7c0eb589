"""The report part on tests that open connections: rate, time to connect, and why connections failed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import divide, group_by, total, total_of_known
from rigctl.figures import Figure
from rigctl.figures import connections as figures
from rigctl.figures.messages import times_of
from rigctl.findings import Finding, Sentence, Statement, Weight, tests
from rigctl.findings import connections as said
from rigctl.findings.text import (
    UNKNOWN,
    count_text,
    numbers_text,
    pct_text,
    plural,
    tests_named,
    texts_that_vary,
    upper_first,
)
from rigctl.records import StackCounters, Status, Stream
from rigctl.report.blocks import Charts, Column, Part, Section, Table
from rigctl.report.charts.bars import Bar, bars_chart
from rigctl.report.charts.spectrum import names_of_tests, spectrum_of
from rigctl.report.tables import requested
from rigctl.report.tables.columns import (
    ColumnOf,
    NumberText,
    count_texts,
    each,
    number_column,
    table_of,
    to_digits,
)
from rigctl.report.tables.messages import PAIR_COLUMN, microseconds, row_head_of, to_microseconds
from rigctl.results.summary import Estimate
from rigctl.settings import CLOSE, PARALLEL, PER_SECOND

SECTION: Final = "connections"
_METHOD: Final = (
    "Each flow opens a connection, sends a byte, waits for a byte, and opens the next one when this one is closed. The "
    "time to connect is that of connect(2). With per_second, connections begin at equal intervals, and the time counts "
    "from the beginning that was due."
)
_PERCENTILES: Final = (
    "Percentiles come from a histogram, within 0.4 %, and are given where at least ten connections took longer."
)
_WHAT: Final = "time to connect"
_MOST_PAIRS: Final = 4
"""If a test has more pairs than this, the bars show the sum of its pairs."""
_TIME_WAIT_S: Final = 60
_USUAL_PORTS: Final = 28_232
"""Ports of net.ipv4.ip_local_port_range as Linux sets it, 32768 to 60999."""
_LATE_SHARE: Final = 0.01
_UNSERVED: Final = "ETIMEDOUT after being established"
_OF_ERRORS: Final = {
    "EADDRNOTAVAIL": said.PORTS_EXHAUSTED,
    "ECONNREFUSED": said.CONNECTIONS_REFUSED,
    "ETIMEDOUT": said.CONNECTIONS_UNANSWERED,
    "ECONNRESET": said.CONNECTIONS_RESET,
    _UNSERVED: said.CONNECTIONS_UNSERVED,
}


def part(view: RunView) -> Part:
    """Return the report part on tests that open connections; `view` has only these."""
    findings = [*_answer(view.messages), *_failures(view), *_of_nodes(view), *_late(view.messages)]
    rates, times = _rates(view.messages), _times(view.messages)
    return Part(
        findings=tuple(findings),
        results=_table(view.messages),
        sections=(Section(upper_first(_WHAT), (times,), full=True),) if rates and times else (),
        method=(_METHOD, _PERCENTILES),
        picture=rates or times,
    )


def _answer(results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield the answer: the highest rate, how long connecting takes there, and whether connections failed."""
    known = [result for result in results if _rate(result)]
    if not known:
        return
    best, several = max(known, key=_rate), len(known) > 1
    rate = f"{_rate(best):,.0f} connections/s"
    text = f"Up to {rate} ({best.stream}, {plural(best.cell.parallel, 'flow')})" if several else rate
    statements = [Statement(text, known, lambda own: _rate(own) <= _rate(best))]
    middle_us, high_us = best[figures.CONNECT_P50], best[figures.CONNECT_P99]
    middle, high = (_printed(results, figure) for figure in (figures.CONNECT_P50, figures.CONNECT_P99))
    if middle_us is not None:
        text += f"; connecting takes {middle(middle_us)} µs{'' if high_us is None else f' (p99 {high(high_us)} µs)'}"
    failed = [result for result in known if result[figures.CONNECT_FAILED]]
    words = f"{count_text(best[figures.CONNECT_FAILED])} failed" if failed else "none failed"
    if failed and several:
        words = f"connections failed in {tests_named([f'test {own.cell.number}' for own in failed], 'as')}"
    statements.append(Statement(words, failed or known, lambda own: bool(own[figures.CONNECT_FAILED]) is bool(failed)))
    yield Finding(
        "connections",
        f"{text}; {words}",
        Weight.ANSWER,
        subject=tests([best.cell.number]),
        numbers={"connections_per_s": _rate(best), "connect_p50_us": middle_us},
        brief=rate,
        statements=tuple(statements),
    )


def _printed(results: Sequence[MessageResult], figure: Figure[float]) -> NumberText:
    """Return the format that the table has for the times of a figure."""
    return to_microseconds([result[figure] for result in results])


def _rate(result: MessageResult) -> float:
    return result[figures.PER_S] or 0.0


def _failures(view: RunView) -> Iterator[Finding]:
    """Yield for each pair and error how many connections failed by it, and in which tests."""
    counts: dict[tuple[Stream, str], list[tuple[MessageResult, int]]] = {}
    for result in view.messages:
        for error, count in _failures_of(result).items():
            counts.setdefault((result.stream, error), []).append((result, count))
    for (stream, error), own in counts.items():
        number = sum(count for _, count in own)
        sentence: Sentence = _OF_ERRORS.get(error, said.CONNECTIONS_FAILED)
        if sentence is said.CONNECTIONS_UNANSWERED and _sum(_counted(view, stream.receiver), "listen_drops"):
            sentence = said.CONNECTIONS_DROPPED
        words = {"stream": str(stream), "connections": plural(number, "connection"), "error": error}
        words |= {"sender": stream.sender, "receiver": stream.receiver, "tests": _named(result for result, _ in own)}
        ports = {"ports": _USUAL_PORTS, "per_s": _USUAL_PORTS // _TIME_WAIT_S}
        about = tests(result.cell.number for result, _ in own)
        yield sentence.say(about, {"connections_failed": number}, **ports, **words)


def _failures_of(result: MessageResult) -> Counter[str]:
    """Return how many connections failed, by the name of the errno value, or `_UNSERVED`."""
    failures, unserved = figures.failures_of(result.group), figures.unserved_of(result.group)
    unserved = min(unserved, failures["ETIMEDOUT"])
    return failures + Counter({_UNSERVED: unserved}) - Counter({"ETIMEDOUT": unserved})


def _of_nodes(view: RunView) -> Iterator[Finding]:
    """Yield what the network stacks of the nodes counted: SYNs sent again, full queues, connection tracking."""
    for stream in dict.fromkeys(result.stream for result in view.messages):
        sent, taken = (_counted(view, node) for node in stream.ends)
        words = {"sender": stream.sender, "receiver": stream.receiver}
        refused = any(_sum(counts, "conntrack_failures") for counts in (sent, taken))  # so that the path is not blamed
        if _sum(sent, "syn_retransmits") and _sum(taken, "listen_drops") == 0 and not refused:
            yield _say(said.SYNS_LOST, sent, "syn_retransmits", words)
        if _sum(taken, "listen_overflows"):
            yield _say(said.BACKLOG_FULL, taken, "listen_overflows", words)
        if _sum(taken, "cookies_sent"):
            yield _say(said.SYN_COOKIES, taken, "cookies_sent", words)
    for node in dict.fromkeys(node for result in view.messages for node in result.stream.ends):
        counts = _counted(view, node)
        if _sum(counts, "conntrack_clashes"):
            yield _say(said.CONNTRACK_CLASH, counts, "conntrack_clashes", {"node": node})
        others = [(cell, _without_clashes(stack)) for cell, stack in counts]
        if _sum(others, "conntrack_failures"):
            yield _say(said.CONNTRACK_FULL, others, "conntrack_failures", {"node": node})


def _without_clashes(stack: StackCounters) -> StackCounters:
    """Return counters whose conntrack failures are those without a clash; unknown if clashes were not counted."""
    dropped, clashes = stack.conntrack_failures, stack.conntrack_clashes
    others = None if dropped is None or clashes is None else max(0, dropped - clashes)
    return replace(stack, conntrack_failures=others)


_Counted = Sequence[tuple[int, StackCounters]]
"""The numbers of tests, and what a node's stack counted in a repetition of each."""


def _counted(view: RunView, node: str) -> _Counted:
    return [
        (repetition.cell, usage.stack)
        for repetition in view.repetitions
        if repetition.status is Status.OK
        for usage in repetition.nodes
        if usage.node == node and usage.stack is not None
    ]


def _sum(counts: _Counted, name: str) -> int | None:
    return total_of_known(getattr(stack, name) for _, stack in counts)


def _say(sentence: Sentence, counts: _Counted, name: str, words: dict[str, str]) -> Finding:
    numbers = sorted({cell for cell, stack in counts if getattr(stack, name)})
    count = _sum(counts, name) or 0
    own = {"syns": plural(count, "SYN"), "packets": plural(count, "packet"), "times": plural(count, "time")}
    own["tests"] = numbers_text(numbers)
    return sentence.say(tests(numbers), {name: count}, **own, **words)


def _late(results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield for each test how many connections began late, if they are more than a few."""
    for result in results:
        late, begun = result[figures.CONNECT_LATE], (result[figures.COMPLETED], result[figures.CONNECT_FAILED])
        share = divide(late, total_of_known(begun))
        if share is not None and share > _LATE_SHARE:
            number = result.cell.number
            words = {"stream": str(result.stream), "pct": pct_text(100 * share, 2), "tests": f"test {number}"}
            yield said.CONNECTIONS_LATE.say(tests([number]), {"connections_late": late}, **words)


def _named(results: Iterable[MessageResult]) -> str:
    return numbers_text(sorted({result.cell.number for result in results}))


def _rates(results: Sequence[MessageResult]) -> Charts | None:
    """Return bars of connections per second, or None for a single test. More than four pairs of a test are summed."""
    tests_of = group_by(results, lambda result: result.cell.number)
    if len(tests_of) < 2:
        return None
    pairs = {tuple(str(result.stream) for result in own) for own in tests_of.values()}
    names = next(iter(pairs))
    apart = len(pairs) == 1 and len(names) <= _MOST_PAIRS
    settings = texts_that_vary([own[0].cell for own in tests_of.values()])
    bars = []
    for (number, own), text in zip(tests_of.items(), settings, strict=True):
        known = [result[figures.PER_S] for result in own]
        rates = [None if rate is None else Estimate(rate) for rate in (known if apart else [total(known)])]
        texts = tuple(UNKNOWN if rate is None else f"{rate.mean:.0f}" for rate in rates)
        bars.append(Bar(number, text, tuple(rates), texts, None))
    what = f"Connections per second in {plural(len(bars), 'test')}"
    unit = "connections/s" if apart else "connections/s, all pairs"
    return bars_chart(bars, what, names if apart and len(names) > 1 else (), unit)


def _times(results: Sequence[MessageResult]) -> Charts | None:
    """Return the chart of the times to connect by percentile, with a line per test and pair."""
    return spectrum_of(zip(names_of_tests(results), (times_of(own.group) for own in results), strict=True), _WHAT)


def _table(results: Sequence[MessageResult]) -> Table:
    """Return the table with a row for each test and pair."""
    columns: list[ColumnOf[MessageResult]] = [
        requested.TEST_COLUMN.of,
        requested.CONDITION_COLUMN.of,
        PAIR_COLUMN,
        requested.main_column(requested.varying_column(PARALLEL, "Flows")).of,
        requested.main_column(requested.requested_column(CLOSE, "Closed by")).of,
        requested.main_column(requested.varying_column(PER_SECOND, "Per second")).of,
        *(setting.of for setting in requested.OF_ALL),
        requested.PLACEMENT_COLUMN.of,
        each(Column("Connections", minor=2), lambda row: row[figures.COMPLETED], "{:,}".format),
        number_column("Connections/s", "", itemgetter(figures.PER_S), to_digits(3, 0), "measured", -1),
        microseconds("Connect p50", itemgetter(figures.CONNECT_P50)),
        microseconds("p90", itemgetter(figures.CONNECT_P90), 1),
        microseconds("p99", itemgetter(figures.CONNECT_P99)),
        microseconds("p99.9", itemgetter(figures.CONNECT_P999), 2),
        microseconds("max", itemgetter(figures.CONNECT_MAX), 1),
        number_column("Failed", "", itemgetter(figures.CONNECT_FAILED), count_texts),
        number_column("Sent again", "", itemgetter(figures.CONNECT_RETRANSMITS), count_texts, "measured", 1),
    ]
    if any(result[figures.CONNECT_LATE] is not None for result in results):
        columns.append(number_column("Late", "", itemgetter(figures.CONNECT_LATE), count_texts, "measured", 1))
    return table_of(results, columns, row_head_of(results), label="Connections")
