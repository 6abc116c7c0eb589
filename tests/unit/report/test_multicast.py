"""Figures and findings of multicast tests, from counts that are known."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from answers import false_statements, untraced
from documents import codes, column, document
from multicast_runs import UNKNOWN, S, cell, queried, receiver, repetition, run, sender, watcher

from rigctl.figures import FlowGroup, datagrams
from rigctl.figures import multicast as figures
from rigctl.model.contract import impossible_reason, reason_unfinished
from rigctl.records import Cell, Flow
from rigctl.report.blocks import tables_in

BOTH = [receiver("b"), receiver("c")]
ALL = 10_000
"""Datagrams that are sent in a test."""
ASKED = queried(0.5)
FLOODED: dict[str, Any] = {"before": 1009}


def group(*flows: Flow, unjoined: int = 1) -> FlowGroup:
    return FlowGroup(cell(unjoined), flows)


def said(the_cell: Cell, *flows: Flow) -> set[str]:
    """Return the codes of what is said of a switch."""
    info, measured = run(the_cell), [repetition(the_cell, *flows)]
    for answer in (found for found in document(info, measured).findings if found.code == "multicast"):
        assert not false_statements(answer)
    return {code.removeprefix("multicast-") for code in codes(info, measured) if code.startswith("multicast-")}


@pytest.mark.parametrize(
    ("what", "flows", "expected"),
    [
        ("snoops", [*BOTH, watcher()], {"snooped"}),
        ("snoops with a querier", [receiver("b", **ASKED), receiver("c"), watcher()], {"snooped", "querier"}),
        ("snoops, query for the group", [receiver("b", group_queries=2), BOTH[1], watcher()], {"snooped", "querier"}),
        ("floods, no querier", [*BOTH, watcher(came=ALL)], {"flooded-unqueried"}),
        ("floods, old querier", [*BOTH, watcher(came=ALL, **queried(0.5, 2.0))], {"flooded", "querier"}),
        ("floods, new querier", [*BOTH, watcher(came=ALL, **queried(5.0))], {"flooded-new-querier", "querier"}),
        ("floods at first", [*BOTH, watcher(came=4000, last_s=4.0)], {"flooded-at-first"}),
        ("the sender ended early", [*BOTH, watcher(came=9_500, last_s=9.95)], {"flooded-unqueried"}),
        ("nobody may watch", [receiver("b", **UNKNOWN), receiver("c", **UNKNOWN), watcher(**UNKNOWN)], {"unwatched"}),
        ("nothing at all", [receiver("b", nothing=True), receiver("c", nothing=True), watcher()], {"nothing"}),
        ("nothing at one", [BOTH[0], receiver("c", nothing=True), watcher()], {"snooped", "nothing"}),
        ("lost at one", [BOTH[0], receiver("c", lost=50), watcher()], {"snooped", "lost-at-one"}),
        ("lost at all", [receiver("b", lost=50), receiver("c", lost=51), watcher()], {"snooped", "lost-at-all"}),
        ("lost by chance", [receiver("b", lost=50), receiver("c", lost=5), watcher()], {"snooped", "lost"}),
        ("joins late", [receiver("b", join_ms=900), BOTH[1], watcher()], {"snooped", "join-slow"}),
        ("leaves late", [receiver("b", leave_ms=3500), BOTH[1], watcher()], {"snooped", "leave-slow"}),
        ("never leaves", [receiver("b", leave_ms=None), BOTH[1], watcher()], {"snooped", "leave-slow"}),
        ("stops, no querier", [receiver("b", silent_s=2.0), BOTH[1], watcher()], {"snooped", "stopped"}),
        (
            "stops, a querier",
            [receiver("b", silent_s=2.0, **queried(0.5)), BOTH[1], watcher()],
            {"snooped", "stopped", "lost-at-one", "querier"},
        ),
        ("a full queue", [receiver("b", queued_s=2.0, lost=50), BOTH[1], watcher()], {"snooped", "lost-at-one"}),
        ("floods without members", [*BOTH, watcher(came=3000, before_gap_ns=5 * S)], {"flooded-unregistered"}),
        ("floods, most of it lost", [*BOTH, watcher(came=3000, before_gap_ns=S)], {"flooded-unqueried"}),
    ],
)  # fmt: skip
def test_what_a_switch_does_is_said_and_nothing_else(what: str, flows: Sequence[Flow], expected: set[str]) -> None:
    assert said(cell(), *flows) == expected, what


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([*BOTH, receiver("d")], {"snooped"}),
        ([receiver(node, join_ms=1, leave_ms=None, **FLOODED) for node in "bcd"], {"flooded-unqueried"}),
        ([receiver("b", **FLOODED), receiver("c"), receiver("d")], {"flooded-to-some"}),
        ([receiver(node, before=400, before_last_ns=4 * 10**8) for node in "bcd"], {"flooded-at-first"}),
        ([receiver(node, leave_ms=None, **UNKNOWN) for node in "bcd"], {"unwatched"}),
    ],
)
def test_without_unjoined_nodes_it_follows_from_receivers_before_their_join(
    flows: Sequence[Flow], expected: set[str]
) -> None:
    with_times = [
        flow if flow.membership is None or not flow.membership.before else _seen_until_join(flow) for flow in flows
    ]
    assert said(cell(unjoined=0), *with_times) == expected


def _seen_until_join(flow: Flow) -> Flow:
    own = flow.membership
    if own is None or own.before_last_ns is not None or flow.receiver is None:
        return flow
    counts = replace(own, before_first_ns=0, before_last_ns=(own.joined_ns or 0) - 10**6)
    return replace(flow, receiver=replace(flow.receiver, kind_counts=counts))


def test_a_querier_is_missing_only_after_260_seconds() -> None:
    def lasting(flow: Flow, ended_s: int) -> Flow:
        assert flow.membership is not None and flow.receiver is not None
        return replace(
            flow, receiver=replace(flow.receiver, kind_counts=replace(flow.membership, ended_ns=ended_s * 10**9))
        )

    for ended_s, expected in ((259, False), (260, True)):
        found = said(cell(), *(lasting(flow, ended_s) for flow in (*BOTH, watcher())))
        assert ("querier-missing" in found) is expected


def test_losses_count_from_the_first_datagram_to_the_leave_and_the_stream_once() -> None:
    flows = [receiver("b", lost=10), receiver("c", silent_s=1.0), watcher(came=ALL)]
    whole, b, c = group(*flows), group(flows[0]), group(flows[1])
    assert datagrams.SENT.of(whole) == ALL
    assert datagrams.SENT_MBPS.of(whole) == pytest.approx(8.0)
    assert (datagrams.LOST.of(b), datagrams.LOST.of(c), datagrams.LOST.of(whole)) == (10, 1000, 1010)
    due = 6000 - 1010
    assert datagrams.LOSS.of(b) == pytest.approx(100 * 10 / due)
    assert datagrams.LOSS.of(c) == pytest.approx(100 * 1000 / due)
    assert datagrams.LOSS_BURST.of(c) == 1000
    assert datagrams.LOSS.of(group(flows[2])) is None  # nothing was due at a node that did not join
    assert datagrams.LOSS.of(group(receiver("b", nothing=True))) == 100


def test_times_are_those_of_the_receivers() -> None:
    known = group(receiver("b", join_ms=12, leave_ms=1990))
    assert figures.JOIN_TIME.of(known) == pytest.approx(12_000)
    assert figures.LEAVE_TIME.of(known) == pytest.approx(1_990_000)
    assert figures.RECEIVED_MBPS.of(known) == pytest.approx(8.0, rel=0.01)
    assert figures.LEAVE_TIME.of(group(receiver("b", leave_ms=None))) is None
    assert figures.RECEIVED_MBPS.of(group(receiver("b", nothing=True))) == 0
    assert figures.RECEIVED_MBPS.of(group(watcher())) is None
    assert figures.OUTSIDE_PCT.of(group(watcher(came=2500))) == 25
    assert figures.OUTSIDE_PCT.of(group(watcher(**UNKNOWN))) is None
    assert figures.QUERIED.of(group(receiver("b", **ASKED))) == "IGMPv2"
    assert figures.REPORTED.of(group(receiver("b", group="ff15::7"))) == "MLDv2"


def test_the_table_has_a_row_for_each_node_and_a_dash_for_what_is_unknown() -> None:
    the_cell = cell()
    flows = [receiver("b"), receiver("c", leave_ms=None, **UNKNOWN | {"after": None}), watcher(came=ALL)]
    shown = document(run(the_cell), [repetition(the_cell, *flows)])
    (table,) = [table for section in shown.results for table in tables_in(section.blocks)]
    assert column(table, "Pair") == ["a → b", "a → c", "a → d"]
    assert column(table, "Outside") == ["0", "–", "100"]
    assert column(table, "Leave") == ["2000", "–", "–"]
    assert untraced(shown, run(the_cell).plan) == []


def test_a_receiver_that_gets_nothing_is_a_result_and_a_sender_that_sends_nothing_is_not() -> None:
    flows = [receiver("b", nothing=True), watcher()]
    assert reason_unfinished(cell(), flows) is None
    assert impossible_reason(cell(), flows) is None
    mute = [replace(flow, sender=replace(sender(1.0, 6.0), bytes=0)) for flow in flows]
    assert reason_unfinished(cell(), mute) == "a sent no datagram in 10 s"
