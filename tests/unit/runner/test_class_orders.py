"""Classes of a test while they are measured: one attempt, one status, one measurement interval."""

from dataclasses import replace

import builders
import pytest

from rigctl.measure.orders import channels
from rigctl.protocol.report import EndpointReport
from rigctl.records import Cell, NodeUsage, Pair, Repetition, Series, Side, Status, Until
from rigctl.remote.clocks import ClockOffset, Clocks
from rigctl.runner.by_agent import HOLD_PER_FLOW_NS, hold_ns
from rigctl.runner.outcome import combined_status, measurement, recorded
from rigctl.runner.progress import Eta
from rigctl.runner.schedule import Order, further_orders, missing, together

AB = (Pair("a", "b"),)
VOICE = builders.cell(1, pairs=AB, duration_s=1.0, traffic_class="voice", group=1, latency_ms=20)
BULK = builders.cell(2, pairs=AB, duration_s=1.0, traffic_class="bulk", group=1, parallel=4)
ALONE = builders.cell(3, pairs=AB)
PLAN = builders.plan((VOICE, BULK, ALONE), repeat=2)
OK, INVALID, FAILED = Status.OK, Status.INVALID, Status.FAILED
SECOND = 10**9
CLOCKS = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(0, 1000)})


def numbers(orders: list[Order]) -> list[list[tuple[int, int, int]]]:
    return [[(one.cell.number, one.repetition, one.attempt) for one in own] for own in together(orders)]


def test_the_classes_of_a_repetition_are_measured_together() -> None:
    assert numbers(missing(PLAN, {})) == [[(1, 1, 1), (2, 1, 1)], [(1, 2, 1), (2, 2, 1)], [(3, 1, 1)], [(3, 2, 1)]]


def test_all_classes_are_measured_again_where_one_is_missing_or_all_are_invalid() -> None:
    stored = {(1, 1, 1): OK, (1, 2, 1): INVALID, (2, 2, 1): INVALID, (3, 1, 1): OK, (3, 2, 1): OK}
    assert numbers(missing(PLAN, stored)) == [[(1, 1, 1), (2, 1, 1)], [(1, 2, 2), (2, 2, 2)]]
    assert missing(PLAN, stored | {(2, 1, 1): OK, (1, 2, 2): OK, (2, 2, 2): OK}) == []


def test_what_one_class_needs_beyond_the_plan_all_classes_get() -> None:
    plan = replace(PLAN, until=Until(0.01, 5), cells=(VOICE, BULK))
    speeds = {1: (2, 2), 2: (500, 900)}
    stored = [
        builders.repetition(cell, (speeds[cell.number][number - 1],), number=number)
        for cell in plan.cells
        for number in (1, 2)
    ]
    assert numbers(further_orders(plan, stored)) == [[(1, 3, 1), (2, 3, 1)]]


def test_endpoints_are_distinct_and_each_class_has_its_own_probes() -> None:
    found = channels([VOICE, BULK], lambda: "0" * 32)
    assert [(one.endpoint, one.traffic_class, one.probing) for one in found] == [
        (1, "voice", False), (2, "voice", True), (3, "bulk", False),
    ]  # fmt: skip
    many = [replace(cell, parallel=40) for cell in (VOICE, BULK)]
    assert hold_ns(*many) == 80 * HOLD_PER_FLOW_NS


def test_each_class_counts_only_while_the_flows_of_all_ran() -> None:
    both = channels([replace(VOICE, latency_ms=None), replace(BULK, parallel=1)], lambda: "0" * 32)
    times = {1: (0, SECOND), 2: (SECOND // 100, SECOND - SECOND // 50)}
    reports = {
        (node, channel.endpoint): report(channel.endpoint, *times[channel.endpoint])
        for channel in both
        for node in ("a", "b")
    }
    each = [measurement(cell, both, reports, CLOCKS) for cell in (VOICE, BULK)]
    made = replace(each[0], other_flows=each[1].flows)
    result = recorded(Order(VOICE, 1, 1), made, OK, None, 1.0)
    assert result.window_ns == times[2]
    assert result.start_skew_us == 1e4
    assert [flow.bytes for flow in result.flows] == [pytest.approx(125_000_000 * 0.97, rel=1e-3)]


def report(endpoint: int, first_ns: int, last_ns: int) -> EndpointReport:
    sent = 125_000_000
    series = Series({"t_ns": [first_ns, last_ns], "bytes": [0, sent]})
    return EndpointReport(endpoint, NodeUsage("", SECOND // 1000), (Side(sent, first_ns, last_ns, series=series),))


@pytest.mark.parametrize(
    ("each", "worst"),
    [
        ([(OK, None), (OK, None)], None),
        ([(FAILED, "a: gone"), (FAILED, "a: gone")], None),
        ([(OK, None), (INVALID, "too late")], (INVALID, "class bulk: too late")),
        ([(FAILED, "no message"), (INVALID, "too late")], (FAILED, "class voice: no message")),
        ([(INVALID, "x"), (INVALID, "y")], (INVALID, "class voice: x; class bulk: y")),
    ],
)
def test_the_worst_class_decides_for_all_and_is_named(
    each: list[tuple[Status, str | None]], worst: tuple[Status, str] | None
) -> None:
    cells = (VOICE, BULK)
    results = [result(cell, *own) for cell, own in zip(cells, each, strict=True)]
    assert combined_status(cells, results) == worst


def result(cell: Cell, status: Status, reason: str | None) -> Repetition:
    return replace(builders.failed(cell), status=status, reason=reason)


def test_the_time_that_is_left_counts_the_classes_of_a_test_once() -> None:
    eta = Eta(missing(PLAN, {}))
    assert eta.left_s() == 22.0
    for cell in (VOICE, BULK):
        eta.count(cell, builders.repetition(cell, (2,)))
    assert eta.left_s() == pytest.approx(21.0 + 3 * 0.2)
