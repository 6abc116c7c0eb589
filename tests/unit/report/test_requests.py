"""Figures and findings of tests that begin requests at equal intervals, from times and counts that are known."""

import math
from dataclasses import replace

import pytest
from answers import answer_of, false_statements, untraced
from documents import codes, document, finding
from request_runs import PAIR, cell, flow, repetition, rising, run, side

from rigctl.analysis.run_view import RunView
from rigctl.figures import FlowGroup
from rigctl.figures import requests as figures
from rigctl.figures.messages import ROUND_TRIP_P50, THROUGHPUT
from rigctl.records import Cell, Flow, Repetition, Side, Status
from rigctl.report.blocks import Table, tables_in
from rigctl.settings import MAX

PERCENTILES = {
    50: figures.REQUEST_P50,
    90: figures.REQUEST_P90,
    99: figures.REQUEST_P99,
    99.9: figures.REQUEST_P999,
    99.99: figures.REQUEST_P9999,
}
LEAST = {50: 1, 90: 100, 99: 1000, 99.9: 10_000, 99.99: 100_000}


def group(the_cell: Cell, *flows: Flow) -> FlowGroup:
    return FlowGroup(the_cell, flows)


def one(the_cell: Cell, sender: Side) -> FlowGroup:
    return group(the_cell, flow(sender))


@pytest.mark.parametrize("count", [1, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000])
def test_a_percentile_is_given_from_enough_requests_on_and_is_that_of_their_times(count: int) -> None:
    known = one(cell(), side(list(rising(count)), 1.0))
    for percent, figure in PERCENTILES.items():
        value_us = figure.of(known)
        if count < LEAST[percent]:
            assert value_us is None
        else:
            assert value_us == pytest.approx(math.ceil(count * percent / 100), rel=0.004, abs=0.001)
    assert figures.REQUEST_MAX.of(known) == count
    assert figures.REQUESTS_ANSWERED.of(known) == figures.REQUESTS_DUE.of(known) == count


def test_a_request_without_an_answer_is_longer_than_all_others() -> None:
    """Of 1,000 requests 985 are answered: p50 and p90 are those of all, and p99 is unknown."""
    known = one(cell(), side(list(rising(985)), 1.0, unanswered=10, unsent=5))
    assert figures.REQUESTS_DUE.of(known) == 1000
    assert figures.REQUEST_P50.of(known) == pytest.approx(500, rel=0.004)
    assert figures.REQUEST_P90.of(known) == pytest.approx(900, rel=0.004)
    assert figures.REQUEST_P99.of(known) is None
    assert figures.REQUEST_MAX.of(known) == 985
    assert figures.REQUESTS_UNANSWERED.of(known) == 10
    assert figures.REQUESTS_UNSENT.of(known) == 5


@pytest.mark.parametrize(
    ("count", "took_s", "flows", "iterations", "rate"),
    [
        (10_000, 9.9991, 1, None, 1000.0),  # the last one began 1 ms before the end
        (10_000, 12.5, 1, None, 800.0),
        (5000, 9.999, 2, None, 1000.0),
        (1, 0.0001, 1, 1, 1000.0),  # one request says nothing of a rate beyond that at which it was due
        (100, 0.0993, 1, 100, 1000.0),
    ],
)
def test_the_rate_is_of_the_time_in_which_they_were_due_or_answered(
    count: int, took_s: float, flows: int, iterations: int | None, rate: float
) -> None:
    the_cell = cell(parallel=flows, iterations=iterations)
    own = [flow(side([100.0] * count, took_s), number) for number in range(1, flows + 1)]
    assert figures.ANSWERED_PER_S.of(group(the_cell, *own)) == pytest.approx(rate)
    assert figures.ANSWERED_PER_S.of(group(the_cell, *own, *own)) == pytest.approx(rate)  # two repetitions
    assert figures.OFFERED_PER_S.of(group(the_cell, *own)) == 1000


def test_the_lateness_of_the_sender_is_apart() -> None:
    late = {"late": 3, "late_max_ns": 7_000_000, "late_sum_ns": 20_000_000, "held": 2, "in_flight_max": 9}
    both = group(cell(parallel=2), flow(side([50.0] * 100, 1.0, **late)), flow(side([50.0] * 100, 1.0), 2))
    assert figures.REQUESTS_LATE.of(both) == 3
    assert figures.LATE_MAX.of(both) == 7000
    assert figures.LATE_MEAN.of(both) == 100
    assert figures.REQUESTS_HELD.of(both) == 2
    assert figures.IN_FLIGHT.of(both) == 9


def test_other_tests_have_none_of_these_figures_and_requests_none_of_theirs() -> None:
    known, pingpong = side([50.0] * 100, 1.0), replace(cell(), test="pingpong")
    other = one(pingpong, replace(known, kind_counts=None))
    assert {figure.name: figure.of(other) for figure in figures.REQUEST_FIGURES if figure.of(other) is not None} == {}
    assert ROUND_TRIP_P50.of(other) is not None
    assert (ROUND_TRIP_P50.of(one(cell(), known)), THROUGHPUT.of(one(cell(), known))) == (None, None)


def measured(*tests: tuple[Cell, Side]) -> tuple[RunView, list[Repetition]]:
    repetitions = [repetition(the_cell, flow(sender)) for the_cell, sender in tests]
    return RunView.in_memory(run(*(the_cell for the_cell, _ in tests)), repetitions), repetitions


GOOD = (cell(1, 1000), side([150.0] * 9_900 + [2000.0] * 100, 10.0))
FASTER = (cell(2, 2000), side([250.0] * 20_000, 10.0))
TOO_FAST = (cell(3, 9000), side(list(rising(70_000, 13.0)), 12.0, unanswered=500, unsent=19_500, held=60_000))
LATE = (cell(4, 1000), side([150.0] * 10_000, 10.0, late=12, late_max_ns=45_000_000))
LOST = (cell(5, 1000), side([150.0] * 9_000, 10.0, unanswered=1000))


def test_the_answer_names_the_times_at_the_highest_rate_that_was_reached() -> None:
    view, repetitions = measured(GOOD, FASTER, TOO_FAST)
    report = document(view.info, repetitions)
    answer = answer_of(report)
    assert answer.text.startswith("n1 → n2: p99 250.0 µs at 2,000 requests/s (1 flow), the highest rate reached")
    assert answer.text.endswith("not all were answered in test 3")
    assert (untraced(report, view.plan), false_statements(answer)) == ([], [])
    assert len(answer.brief) <= 60


def test_a_single_test_is_the_answer() -> None:
    view, repetitions = measured(GOOD)
    report = document(view.info, repetitions)
    answer = answer_of(report)
    assert answer.text == "n1 → n2: p99 150.0 µs at 1,000 requests/s; all were answered"
    assert (untraced(report, view.plan), false_statements(answer)) == ([], [])
    assert answer.numbers == {"requests_per_s": 1000, "request_p99_us": pytest.approx(150, rel=0.004)}


def test_few_requests_have_a_median_only() -> None:
    view, repetitions = measured((cell(1, 10), side([150.0] * 99, 10.0)))
    assert answer_of(document(view.info, repetitions)).text.startswith("n1 → n2: p50 150.0 µs at ")


def test_what_makes_times_doubtful_is_told_once_for_all_tests_of_a_pair() -> None:
    view, repetitions = measured(GOOD, TOO_FAST, LATE, LOST)
    told = {code: finding(view.info, repetitions, code) for code in codes(view.info, repetitions)}
    late, held, lost, slow = (told[f"requests-{what}"] for what in ("late", "held", "unanswered", "rate-not-reached"))
    assert late.text == (
        "n1 → n2: the sender itself was late in test 4: it came to 0.12 % of the requests more than 1 ms after their "
        "time, at most 45 ms after it. Its lateness is part of these times."
    )
    assert held.text.startswith("n1 → n2: 67 % of the requests waited in test 3 until")
    assert lost.text.startswith("n1 → n2: 1500 of 100000 requests had no answer 2 s after the end of tests 3 and 5.")
    assert slow.text.startswith(
        "n1 → n2: requests came faster than they were answered in test 3, 9,000 of them a second and 5,833 answers:"
    )
    assert (late.subject.names, lost.subject.names) == (("4",), ("3", "5"))


def test_a_sender_that_was_late_a_few_times_is_no_finding() -> None:
    view, repetitions = measured((cell(), side([150.0] * 10_000, 10.0, late=9, late_max_ns=2_000_000)))
    assert "requests-late" not in codes(view.info, repetitions)


STOPPED = [200.0] * 2800 + [1000.0 * ms for ms in range(1, 201)]
"""Replies stopped for 200 ms of 3 s, at 1,000 requests a second."""
GROWS = [1000.0 * ms for ms in range(3000)]
BOTH = {"requests-stalled", "requests-late"}


@pytest.mark.parametrize(
    ("times_us", "took_s", "counts", "told"),
    [
        (STOPPED, 3.0, {}, {"requests-stalled"}),
        (STOPPED, 3.0, {"late": 200, "late_max_ns": 200_000_000}, {"requests-late"}),  # the sender itself stopped
        (STOPPED, 3.0, {"late": 210, "late_max_ns": 7_000_000}, {"requests-stalled"}),  # p99 is 170 ms
        (STOPPED, 3.0, {"late": 310, "late_max_ns": 7_000_000}, BOTH),  # of p90, too
        (STOPPED[400:] + STOPPED[2800:], 3.0, {"late": 200, "late_max_ns": 2 * 10**8}, BOTH),  # one after the other
        (STOPPED[10:] + [60_000.0] * 10, 3.0, {}, {"requests-stalled"}),
        ([200.0] * 2991 + [90_000.0] * 9, 3.0, {}, set()),  # a few
        ([40_000.0 + own / 10 for own in STOPPED], 3.0, {}, set()),  # a path of 40 ms whose times vary
        (STOPPED[400:], 3.4, {}, {"requests-stalled"}),  # across the end
        ([200.0] * 600, 0.6, {"unanswered": 2400}, {"requests-unanswered"}),  # for good
        ([200_000.0 + own / 100 for own in STOPPED[2000:]], 1.0, {"unanswered": 2000}, {"requests-unanswered"}),
        (GROWS, 6.0, {}, {"requests-rate-not-reached"}),  # a queue that grows
        (GROWS, 6.0, {"late": 400, "late_max_ns": 15_000_000}, {"requests-rate-not-reached"}),
    ],
)  # fmt: skip
def test_a_stop_is_told_from_a_queue_that_grows_and_from_a_late_sender(
    times_us: list[float], took_s: float, counts: dict[str, int], told: set[str]
) -> None:
    view, repetitions = measured((cell(duration_s=3.0), side(times_us, took_s, **counts)))
    assert {code for code in codes(view.info, repetitions) if code.startswith("requests-")} == told


def test_a_stall_has_its_length_and_its_requests() -> None:
    view, repetitions = measured((cell(duration_s=3.0), side(STOPPED, 3.0)))
    stall = finding(view.info, repetitions, "requests-stalled")
    assert stall.text.startswith(
        "n1 → n2: replies stopped for up to 200 ms in test 1: 150 requests took over 50 ms longer"
    )
    assert stall.numbers == {"requests_stalled": 150}


def test_a_pause_at_the_end_is_no_rate_that_was_not_reached() -> None:
    """Of a test of 2 s the last replies came 40 ms late: 2 % of its time, and no queue that grows."""
    view, repetitions = measured((cell(duration_s=2.0), side([150.0] * 2000, 2.04)))
    assert "requests-rate-not-reached" not in codes(view.info, repetitions)


def test_the_table_has_a_row_for_each_test_and_no_cell_of_a_percentile_that_is_not_given() -> None:
    view, repetitions = measured(GOOD, FASTER, TOO_FAST)
    (table,) = [
        block
        for section in document(view.info, repetitions).results
        for block in tables_in(section.blocks)
        if isinstance(block, Table)
    ]
    titles = [column.title for column in table.columns]
    rows = [[entry.text for entry in row.entries] for row in table.rows]
    assert [row[titles.index("Test")] for row in rows] == ["1", "2", "3"]
    assert [row[titles.index("Offered/s")] for row in rows] == ["1000", "2000", "9000"]
    assert [row[titles.index("p99")] for row in rows][2] == "–"
    assert [row[titles.index("p99.9")] for row in rows][2] == "–"
    assert str(PAIR.source) in "".join(rows[0])


def test_a_run_without_any_answer_has_no_headline_of_requests() -> None:
    view, repetitions = measured((cell(), side([], 0.0, unanswered=10)))
    assert "requests" not in codes(view.info, repetitions)


def searched(*trials: tuple[int, Side], max_latency_s: float = 0.002) -> tuple[RunView, list[Repetition]]:
    """Return a run of a search whose trials have these rates and senders."""
    the_cell = cell(1, MAX, duration_s=1.0)
    repetitions = [
        replace(repetition(the_cell, flow(sender), number=number), load=rate)
        for number, (rate, sender) in enumerate(trials, 1)
    ]
    info = run(the_cell)
    return RunView.in_memory(
        replace(info, plan=replace(info.plan, max_latency_s=max_latency_s)), repetitions
    ), repetitions


PASSED = (1000, side([500.0] * 1000, 1.0))
SLOW = (4000, side([2600.0] * 4000, 1.0))


def test_the_answer_of_a_search_is_the_rate_of_the_trial_that_decided() -> None:
    view, repetitions = searched(PASSED, SLOW, (2000, side([1900.0] * 2000, 1.0)))
    report = document(view.info, repetitions)
    answer = answer_of(report)
    assert answer.text == "n1 → n2: 2,000 requests/s within 2 ms (p99); all were answered"
    assert (untraced(report, view.plan), false_statements(answer)) == ([], [])
    found = finding(view.info, repetitions, "requests-search").text
    assert found == (
        "Test 1: the highest rate is 2000 requests/s within 2 ms (p99), found in 3 trials of 1 s; "
        "at 4000 p99 was 2.6 ms."
    )
    (row,) = [row for row in view.stored.pairs if row["counted"]]
    assert (row["per_second"], row["requests_per_s"]) == (2000, 2000)
    assert [row["per_second"] for row in view.stored.pairs] == [1000, 4000, 2000]
    names = ("max_latency_us", "search_trials", "search_lower", "search_upper", "search_conditional_mbps")
    assert [row[name] for name in names] == [2000, 3, 2000, 4000, None]
    (trials,) = [table for section in report.sections for table in tables_in(section.blocks) if table.label == "Trials"]
    assert [row.entries[-1].text for row in trials.rows] == ["yes", "no: too slow", "yes"]


@pytest.mark.parametrize(
    ("trials", "code", "words"),
    [
        ([(250, side([500.0] * 250, 1.0))], "requests-search", "within 2 ms (the longest)"),
        (
            [PASSED, (4000, side([500.0] * 4000, 1.0, unanswered=3))],
            "requests-search",
            "at 4000 3 requests had no answer",
        ),
        ([PASSED, (4000, side([500.0] * 3999, 1.0, unsent=1))], "requests-search", "1 request could not be sent"),
        (
            [PASSED, (4000, side([9000.0] * 4000, 1.0, late=400, late_max_ns=9_000_000))],
            "requests-search",
            "the sender itself was late to 10 % of the requests: the network and the receiver may carry more",
        ),
        ([(1_000_000, side([9.0] * 10_000, 0.01))], "requests-search", ", the most that can be asked for"),
        ([SLOW], "requests-search-none", "no rate down to 4000 requests/s passed within 2 ms in 1 trial"),
    ],
)
def test_a_search_says_what_happened_at_the_next_rate(trials: list[tuple[int, Side]], code: str, words: str) -> None:
    view, repetitions = searched(*trials)
    assert words in finding(view.info, repetitions, code).text
    assert "no-figure" not in codes(view.info, repetitions)


def test_the_table_has_the_time_that_a_search_allows_beside_tests_without_a_search() -> None:
    view, repetitions = searched(PASSED, SLOW)
    given, sender = replace(GOOD[0], number=2), GOOD[1]
    plan = replace(view.plan, cells=(*view.plan.cells, given))
    report = document(replace(view.info, plan=plan), [*repetitions, repetition(given, flow(sender))])
    (table,) = tables_in(report.results[0].blocks)
    (at,) = [at for at, column in enumerate(table.columns) if column.title == "Max latency"]
    assert [(row.test, row.entries[at].text) for row in table.rows] == [(1, "2000"), (2, "–")]


def test_where_no_rate_passed_the_answer_says_so() -> None:
    late = (1000, side([500.0] * 1000, 1.0, late=500, late_max_ns=9_000_000))
    for trials, text in (([SLOW], "was found"), ([late] * 3, "the sender itself was late")):
        view, repetitions = searched(*trials)
        answer = answer_of(document(view.info, repetitions))
        assert answer.text.startswith("No rate of requests within 2 ms")
        assert answer.text.endswith(text)


def test_a_search_without_a_measured_trial_says_nothing_of_the_network() -> None:
    view, repetitions = searched(PASSED)
    failed = [replace(one, status=Status.FAILED, reason="gone", flows=()) for one in repetitions]
    assert "no trial could be measured" in finding(view.info, failed, "requests-search-unmeasured").text


def test_runs_of_a_search_are_compared_by_their_rate_not_by_their_times() -> None:
    ways = {figure.name: figure.compared for figure in figures.REQUEST_FIGURES if figure.compared is not None}
    for wanted, name in ((10, "request_mean_us"), (MAX, "requests_per_s")):
        assert [own for own, compared in ways.items() if compared.applies(cell(1, wanted))] == [name]
