"""Tests that open connections: their rate, percentiles only from enough of them, and why some failed."""

from dataclasses import replace
from typing import Any

import builders
import documents
import pytest
from builders import bucket_of
from known import known

from rigctl.analysis.run_view import RunView
from rigctl.figures import connections as figures
from rigctl.findings import Finding
from rigctl.model.contract import impossible_reason, reason_unfinished
from rigctl.records import (
    Cell,
    Connections,
    Flow,
    Link,
    NodeUsage,
    Pair,
    Repetition,
    RoundTrips,
    RunInfo,
    Side,
    StackCounters,
    Status,
)
from rigctl.report.blocks import Charts
from rigctl.report.charts.plot import Line
from rigctl.report.connections import part
from rigctl.report.printers.slim import fit, left_out_of_phones
from rigctl.settings import CLOSE, ITERATIONS, PER_SECOND, Settings

PAIR = Pair("a", "b")
SCREEN, PHONE = 170, 48
"""Characters in a line of a page on each (report/printers/html.py)."""
US = 1000
START_NS = 10**12


def side(done: int, us: float = 50.0, **counts: Any) -> Side:
    """Return a sender that completed connections, each of which took `us` to connect."""
    each_ns = round(us * US)
    trips = RoundTrips(done, done * each_ns, each_ns, each_ns) if done else RoundTrips(0)
    histogram = ((bucket_of(each_ns), done),) if done else ()
    made = Connections(**{"failed": (), "late": None, "retransmits": 0} | counts)
    last_ns = START_NS + 2 * 10**9 if done else None
    return Side(done, START_NS, last_ns, round_trips=trips, histogram=histogram, kind_counts=made)


def cell(number: int = 1, flows: int = 1, **settings: Any) -> Cell:
    known_settings = {"per_second": PER_SECOND, "iterations": ITERATIONS}
    own = {CLOSE: "reset"} | {known_settings[name]: value for name, value in settings.items()}
    return Cell(number, "connect", (PAIR,), 2.0, 0.0, flows, message_bytes=1, settings=Settings(own))


def run(*tests: tuple[Cell, list[list[Side]]], stacks: dict[str, StackCounters] | None = None) -> RunView:
    """Return a view of tests, each with the senders' sides of each repetition."""
    cells = tuple(cell for cell, _ in tests)
    plan = replace(builders.plan(cells), links=dict.fromkeys("ab", Link(10**9, 1500)), repeat=1, virtual=None)
    usage = tuple(NodeUsage(node, stack=stack) for node, stack in (stacks or {}).items())
    measured = [
        Repetition(
            cell.number, nth, 1, Status.OK, None, 0.0, 1.0, nodes=usage,
            flows=tuple(Flow(PAIR, cell.direction, number, own, None) for number, own in enumerate(sides, 1)),
        )
        for cell, repetitions in tests
        for nth, sides in enumerate(repetitions, 1)
    ]  # fmt: skip
    info: RunInfo = replace(builders.run(plan), facts={})
    return RunView.in_memory(info, measured)


def findings(view: RunView) -> dict[str, Finding]:
    return {finding.code: finding for finding in part(view).findings}


def test_the_rate_is_that_of_the_whole_test_and_the_mean_of_its_repetitions() -> None:
    (result,) = run((cell(flows=2), [[side(100), side(300)], [side(200), side(200)]])).messages
    assert result[figures.COMPLETED] == 800
    assert result[figures.PER_S] == 200  # 400 in 2 s, twice


def test_the_rate_of_a_requested_number_is_that_of_the_time_it_took() -> None:
    (result,) = run((replace(cell(iterations=100), duration_s=60.0), [[side(100)]])).messages
    assert result[figures.PER_S] == 50


@pytest.mark.parametrize(
    ("done", "given"), [(99, []), (100, ["p90"]), (1000, ["p90", "p99"]), (10_000, ["p90", "p99", "p999"])]
)
def test_a_percentile_is_given_where_at_least_ten_connections_took_longer(done: int, given: list[str]) -> None:
    (result,) = run((cell(), [[side(done)]])).messages
    of = {"p90": figures.CONNECT_P90, "p99": figures.CONNECT_P99, "p999": figures.CONNECT_P999}
    assert [name for name, figure in of.items() if result[figure] is not None] == given
    assert result[figures.CONNECT_P50] == pytest.approx(50, rel=0.004)


def test_the_answer_has_the_highest_rate_its_times_and_that_none_failed() -> None:
    view = run((cell(1), [[side(4000)]]), (cell(2, flows=2), [[side(6000, 90.0), side(6000, 90.0)]]))
    answer = findings(view)["connections"]
    assert answer.text.startswith("Up to 6,000 connections/s (a → b, 2 flows); connecting takes 90.0 µs (p99 90.0 µs)")
    assert answer.text.endswith("; none failed")
    for statement in answer.statements:
        assert all(statement.holds(row) for row in statement.rows)


def test_failures_are_named_by_their_errors_with_their_tests() -> None:
    failed = {"ETIMEDOUT": 2, "EADDRNOTAVAIL": 1500}
    view = run((cell(1), [[side(4000)]]), (cell(2), [[side(3000, failed=tuple(failed.items()))]]))
    said = findings(view)
    assert said["connections"].text.endswith("; connections failed in test 2")
    assert said["ports-exhausted"].text == (
        "a → b ran out of ports in test 2: 1500 connections failed (EADDRNOTAVAIL). The end that closes first keeps a "
        "port for a minute (TIME-WAIT): Linux's usual 28,232 ports allow 470 connections/s."
    )
    assert said["connections-unanswered"].numbers == {"connections_failed": 2}
    table = known(part(view).results)
    assert [row["Failed"] for row in documents.rows_of(table)] == ["0", "1502"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ECONNREFUSED", "connections-refused"),
        ("ECONNRESET", "connections-reset"),
        ("EHOSTUNREACH", "connections-failed"),
    ],
)
def test_each_error_has_its_finding(error: str, code: str) -> None:
    said = findings(run((cell(), [[side(10, failed=((error, 3),))]])))
    assert "3 connections" in said[code].text
    assert said.keys() == {"connections", code}


@pytest.mark.parametrize(
    ("unserved", "dropped", "texts"),
    [
        (0, 0, ["3 connections had no answer within 5 s in test 1 (ETIMEDOUT), as with a firewall that drops."]),
        (None, None, ["3 connections had no answer within 5 s in test 1 (ETIMEDOUT), as with a firewall that drops."]),
        (0, 9, ["3 connections had no answer within 5 s in test 1 (ETIMEDOUT). b itself dropped connections"]),
        (3, 0, ["3 connections failed in test 1, established but without an answer within 5 s (ETIMEDOUT): b's"]),
        (2, 0, ["1 connection had no answer within 5 s", "2 connections failed in test 1, established"]),
    ],
)
def test_a_firewall_is_blamed_only_where_no_connection_came_about_and_none_was_dropped_by_the_receiver(
    unserved: int | None, dropped: int | None, texts: list[str]
) -> None:
    failed = side(10, failed=(("ETIMEDOUT", 3),), unserved=unserved)
    view = run((cell(), [[failed]]), stacks={"b": StackCounters(listen_drops=dropped)})
    said = [finding.text for finding in part(view).findings if finding.code == "connections-unanswered"]
    assert len(said) == len(texts)
    for text, expected in zip(said, texts, strict=True):
        assert text.startswith(f"a → b: {expected}")


@pytest.mark.parametrize(
    ("sender", "receiver", "codes"),
    [
        ({"syn_retransmits": 5}, {"listen_drops": 0}, {"syns-lost"}),
        # The receiver dropped them itself, or it is unknown whether it did: the path is not blamed.
        ({"syn_retransmits": 5}, {"listen_drops": 7, "listen_overflows": 7}, {"backlog-full"}),
        ({"syn_retransmits": 5}, {}, set()),
        (
            {"syn_retransmits": 5, "conntrack_failures": 5, "conntrack_clashes": 5},
            {"listen_drops": 0},
            {"conntrack-clash"},
        ),
        ({}, {"cookies_sent": 2, "listen_drops": 0}, {"syn-cookies"}),
        ({"conntrack_failures": 3, "conntrack_clashes": 0}, {}, {"conntrack-full"}),
        ({"conntrack_failures": 3, "conntrack_clashes": 3}, {}, {"conntrack-clash"}),
        ({"conntrack_failures": 3, "conntrack_clashes": 2}, {}, {"conntrack-clash", "conntrack-full"}),
        ({"conntrack_failures": 3}, {}, set()),  # of an agent that did not count clashes
        ({"syn_retransmits": 0, "conntrack_failures": 0}, {"listen_drops": 0, "cookies_sent": 0}, set()),
    ],
)
def test_what_the_nodes_kernels_counted_is_named(sender: Any, receiver: Any, codes: set[str]) -> None:
    stacks = {"a": StackCounters(**sender), "b": StackCounters(**receiver)}
    said = findings(run((cell(), [[side(1000)]]), stacks=stacks))
    assert said.keys() - {"connections"} == codes


@pytest.mark.parametrize(("late", "named"), [(None, False), (10, False), (11, True)])
def test_connections_that_began_late_are_told_from_one_in_a_hundred_on(late: int | None, named: bool) -> None:
    view = run((cell(per_second=500), [[side(1000, late=late)]]))
    assert ("connections-late" in findings(view)) is named
    columns = documents.rows_of(known(part(view).results))[0]
    assert ("Late" in columns) is (late is not None)


def test_a_phone_shows_the_settings_that_tell_rows_apart() -> None:
    tests = [(cell(1), [[side(4000)]]), (cell(2, 8), [[side(500)] * 8]), (cell(3, 8, per_second=200), [[side(50)] * 8])]
    table = known(part(run(*tests)).results)
    shown = fit(table, SCREEN).columns
    left_out = left_out_of_phones(shown, PHONE)
    titles = [own.column.title for at, own in enumerate(shown) if at not in left_out]
    assert titles[:4] == ["Test", "Flows", "Per second", "Connections/s"]
    assert sum(own.width + 2 for at, own in enumerate(shown) if at not in left_out) - 2 <= PHONE


def test_rates_are_bars_and_times_a_line_for_each_test() -> None:
    made = part(run((cell(1), [[side(4000)]]), (cell(2, 8), [[side(50)] * 8])))
    (bars,) = known(made.picture).charts
    assert bars.label == "Connections per second in 2 tests: 200–2000 connections/s"
    (times,) = made.sections[0].blocks
    assert isinstance(times, Charts)
    (panel,) = times.charts[0].plot.panels
    ends = {mark.name: mark.points[-1] for mark in panel.marks if isinstance(mark, Line)}
    assert ends == {"1 flow": (99.75, 50), "8 flows": (97.5, 50)}


def test_a_single_test_has_its_times_as_picture() -> None:
    made = part(run((cell(1), [[side(4000)]])))
    assert made.sections == ()
    assert known(made.picture).charts[0].label == "Time to connect by percentile, 1 line: p50 50 µs and p99 50 µs"


def flows_of(*sides: Side) -> list[Flow]:
    return [Flow(PAIR, cell().direction, number, own, None) for number, own in enumerate(sides, 1)]


@pytest.mark.parametrize(
    ("sides", "asked", "reason"),
    [
        ([side(0), side(5)], None, None),  # a flow without a connection is no fault of the pair
        ([side(0)], None, "a → b: no connection was completed in 2 s"),
        ([side(0, failed=(("ETIMEDOUT", 3),))], None, "a → b: no connection was completed in 2 s: 3 × ETIMEDOUT"),
        ([side(7, failed=(("ECONNRESET", 3),))], 10, None),
        ([side(7)], 10, "a → b: 7 of 10 connections in 2 s. Give it a longer duration"),
    ],
)
def test_a_pair_without_a_connection_has_no_result(sides: list[Side], asked: int | None, reason: str | None) -> None:
    own = cell(flows=len(sides)) if asked is None else cell(flows=len(sides), iterations=asked)
    assert reason_unfinished(own, flows_of(*sides)) == reason


def test_a_connection_may_be_served_by_the_thread_of_another_flow() -> None:
    flows = [
        replace(flow, receiver=Side(count, START_NS, START_NS + 1))
        for flow, count in zip(flows_of(side(5), side(5)), (9, 1), strict=True)
    ]
    assert impossible_reason(cell(flows=2), flows) is None
