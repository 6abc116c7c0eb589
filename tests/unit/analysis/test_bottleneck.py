"""What binds a cell, and the sentences that say so."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest
from rigctl.report.sections.streams.bottleneck_words import binding_of_run, held_words, numbers_text, other_words

from rigctl.analysis.bottleneck import Busy, limit
from rigctl.analysis.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.records import Cell, Pair, Repetition, RunInfo, Series
from rigctl.report.sections.streams.words import answer, explain

ONE_PAIR = (Pair("pi1", "pi2"),)
HELD = {"busy_us": 1_000_000, "rwnd_limited_us": 900_000, "sndbuf_limited_us": 60_000}
FAR = {**HELD, "advertised_window_bytes": 8704, "rtt_min_us": 5000, "series": Series()}
"""8 KiB over 5 ms: six segments of 1448 bytes a round trip, 13.9 Mbit/s."""


def told(cell: Cell, *measured: Repetition, virtual: str | None = None) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell], virtual=virtual))
    return info, summaries(load(info, measured))[0]


def working(one: Repetition, node_pct: dict[str, float], agent_pct: float = 20.0) -> Repetition:
    """`one` with processors this busy; the other nodes' to 10 per cent."""
    nodes = []
    for usage in one.nodes:
        span_us, cpus = usage.span_us or 0, usage.cpus or 0
        busy_us = round(node_pct.get(usage.node, 10.0) / 100 * span_us * cpus)
        nodes.append(replace(usage, node_busy_us=busy_us, agent_cpu_us=round(agent_pct / 100 * span_us)))
    return replace(one, nodes=tuple(nodes))


def test_line_rate_begins_at_98_per_cent() -> None:
    assert limit(0.98) == "line-rate"
    assert limit(0.9799) == limit(None) == "unknown"


@pytest.mark.parametrize(
    ("busy", "binds"),
    [
        (Busy(), None),
        (Busy(94.9, 94.9, 94.9, 94.9), None),
        (Busy(95.0, 10.0), "sender"),
        (Busy(10.0, 95.0), "receiver"),
        (Busy(96.0, 97.0), "receiver"),
        (Busy(30.0, 30.0, 99.0, 40.0), "sender"),
        (Busy(30.0, 30.0, None, 99.0), "receiver"),
        (Busy(30.0, 30.0, 40.0, 40.0, 50.0, 97.0), "receiver"),
        (Busy(30.0, 30.0, 40.0, 40.0, 97.0, 97.0, one_machine=True), None),
        (Busy(99.0, 99.0, one_machine=True), "machine"),
        (Busy(60.0, 60.0, 99.0, 40.0, one_machine=True), "sender"),
        (Busy(94.0, 94.0, one_machine=True), None),
    ],
)
def test_processors_bind_from_95_per_cent_on(busy: Busy, binds: str | None) -> None:
    assert busy.limit == binds
    assert limit(0.5, 470.0, busy=busy) == (binds or "unknown")
    assert limit(0.98, 925.0, busy=busy) == "line-rate"
    assert limit(0.5, 470.0, 475.0, busy=busy) == "rate"


@pytest.mark.parametrize(("goodput", "binds"), [(13.9, "window"), (12.6, "window"), (12.4, "machine")])
def test_on_a_busy_machine_the_window_binds_where_flows_bring_what_it_allows(goodput: float, binds: str) -> None:
    flows = builders.flows(builders.cell(pairs=ONE_PAIR), (goodput,), None, **FAR)
    idle, busy = Busy(10.0, 10.0, one_machine=True), Busy(99.0, 99.0, one_machine=True)
    assert limit(0.1, goodput, flows=flows, busy=busy) == binds
    assert limit(0.1, goodput, flows=flows, busy=idle) == "window"
    unknown = builders.flows(builders.cell(pairs=ONE_PAIR), (goodput,), None, **{**FAR, "rtt_min_us": None})
    assert limit(0.1, goodput, flows=unknown, busy=busy) == "machine"


def test_several_repetitions_weigh_as_one_does() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=1)
    for goodput, binds in ((13.9, "window"), (10.0, "sender")):
        measured = [
            working(builders.repetition(cell, (goodput,), number=number, sender=FAR), {"pi1": 99.0})
            for number in (1, 2, 3)
        ]
        info, summary = told(cell, *measured)
        assert summary.limit == binds
        assert {row["limit"] for row in load(info, measured).derived.cells} == {binds}


def test_the_shares_of_processors_are_columns() -> None:
    cell = builders.cell(pairs=(Pair("a", "b"), Pair("a", "c")), parallel=1)
    one = working(builders.repetition(cell, (400, 400)), {"a": 96.0}, agent_pct=150.0)
    derived = load(builders.run(builders.plan([cell], virtual=None)), [one]).derived
    row = derived.pairs[0]
    assert (row["cpu_source_pct"], row["cpu_destination_pct"]) == pytest.approx((96.0, 10.0))
    # The sender's agent has two threads, the receiver's one: 150 % of a processor are 75 % of two.
    assert (row["agent_source_pct"], row["agent_destination_pct"]) == pytest.approx((75.0, 150.0))
    assert derived.cells[0]["agent_destination_pct"] == pytest.approx(150.0)
    assert row["limit"] == "receiver"


def test_one_processor_full_of_interrupts_is_what_limits() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1)
    one = working(builders.repetition(cell, (400,)), {"pi1": 30.0, "pi2": 25.0})
    shares = {"pi1": 0.5, "pi2": 0.99}
    nodes = [replace(node, busiest_cpu_us=round(shares[node.node] * (node.span_us or 0))) for node in one.nodes]
    one = replace(one, nodes=tuple(nodes))
    info, summary = told(cell, one)
    row = load(info, [one]).derived.pairs[0]
    assert (row["busiest_cpu_source_pct"], row["busiest_cpu_destination_pct"]) == pytest.approx((50.0, 99.0))
    said = "The receiver is what limits: processors of its node, or its agent's threads, were busy 99 % of the time."
    assert (row["limit"], summary.limit, other_words(summary)) == ("receiver", "receiver", said)
    assert told(cell, one, virtual="namespaces")[1].limit == "unknown"


def test_what_was_busy_waiting_is_no_limit() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, test="pingpong", message_bytes=64, busy_poll=True)
    _, summary = told(cell, working(builders.repetition(cell, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=100.0))
    assert (summary.limit, other_words(summary)) == ("unknown", "")


def test_processors_that_limit_are_told() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1)
    busy = working(builders.repetition(cell, (400,)), {"pi1": 97.2})
    info, summary = told(cell, busy)
    said = "The sender is what limits: processors of its node, or its agent's threads, were busy 97 % of the time."
    assert (summary.limit, other_words(summary)) == ("sender", said)
    assert said in explain(info, summary)
    info, summary = told(cell, busy, virtual="namespaces")
    said = "Processors are what limits: those of the one machine that all nodes of the virtual rig share were busy 97 %"
    assert summary.limit == "machine"
    assert other_words(summary) == f"{said} of the time."
    assert any("In test 1 processors are what limits" in sentence for sentence in answer(info, [summary]))


SENDING = {
    **{"busy_us": 9_000_000, "rwnd_limited_us": 300_000, "sndbuf_limited_us": 0},
    **{"congestion": "cubic", "rtt_us": 5000, "series": Series()},
}
"""400 Mbit/s for 10 s are 345,000 segments; at 5 ms 20 lost ones allow 373 Mbit/s, 5 of them 745, 4 of them 833."""


@pytest.mark.parametrize(
    ("sender", "retransmits", "binds"),
    [
        ({}, 5, "loss"),
        ({"congestion": "reno"}, 2000, "loss"),
        ({}, 4, "unknown"),  # that allows more than twice as much: something else is slow
        ({"rtt_us": 500}, 20, "unknown"),
        ({"series": Series({"t_ns": [1, 2, 3], "rtt_us": [0, 500, 500]})}, 20, "unknown"),
        ({"congestion": "bbr"}, 2000, "unknown"),
        ({"congestion": None}, 2000, "unknown"),
        ({}, 0, "unknown"),
        ({"busy_us": 4_000_000}, 2000, "unknown"),  # the sender had nothing to send for most of the time
        ({"rwnd_limited_us": 5_000_000}, 2000, "window"),
        ({"busy_us": None}, 2000, "unknown"),
    ],
)
def test_losses_bind_where_they_explain_the_goodput(sender: dict[str, Any], retransmits: int, binds: str) -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, duration_s=10.0)
    one = builders.repetition(cell, (400,), (retransmits,), sender={**SENDING, **sender})
    info, summary = told(cell, one)
    assert summary.limit == binds
    told_of = any("losses are what limits" in sentence for sentence in answer(info, [summary]))
    assert told_of == any("Losses are what limits" in one for one in explain(info, summary)) == (binds == "loss")


def test_what_losses_allow_is_told() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, duration_s=10.0)
    _, summary = told(cell, builders.repetition(cell, (400,), (20,), sender=SENDING))
    assert other_words(summary) == (
        "Losses are what limits: 1 in 17,000 of the segments were lost, and a round trip took 5 ms. "
        "By the rule of Mathis et al. a flow then brings about 373 Mbit/s, more where several are lost at once."
    )
    _, summary = told(cell, builders.repetition(cell, (40,), (345,), sender=SENDING))
    assert "1 % of the segments were lost" in other_words(summary)


def test_the_run_names_ten_tests_and_counts_the_others() -> None:
    info, measured = das2.run(windows=(32768,), flows=tuple(range(1, 7)), pairs=(8, 12), shape=das2.Shape(noise=0.0))
    busy = [working(one, dict.fromkeys(das2.NODES, 98.0 + one.cell / 10)) for one in measured]
    cells = summaries(load(info, busy))
    assert numbers_text(cells) == "tests 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"
    assert numbers_text(cells[:1]) == "test 1"
    assert list(binding_of_run(cells)) == [
        "In tests 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more processors are what limits: those of the one machine that "
        "all nodes of the virtual rig share were busy 98 to 99 % of the time. Nodes of their own may do more."
    ]


def test_a_window_that_limits_is_told_with_what_it_allows() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=1)
    sender = {**HELD, "advertised_window_bytes": 8704, "rtt_min_us": 5000, "series": Series()}
    info, summary = told(cell, builders.repetition(cell, (13,), sender=sender))
    assert summary.limit == "window"
    said = held_words(summary)
    assert "96 % of the time the sender waited for it. The receiver offered 8704 bytes, 6 segments, and" in said
    assert "window ÷ round trip = 13.9 Mbit/s." in said
    assert said in explain(info, summary)


def test_the_window_is_the_one_offered_while_bytes_flowed() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=1)
    series = Series({"t_ns": [1, 2, 3], "rtt_us": [0, 5000, 5000], "advertised_window": [8688, 8688, 10136]})
    sender = {**HELD, "advertised_window_bytes": 65536, "rtt_min_us": 5000, "series": series}
    _, summary = told(cell, builders.repetition(cell, (13,), sender=sender))
    assert "The receiver offered 8688 bytes, 6 segments, and a round trip took 5 ms at least" in held_words(summary)


def test_a_window_that_is_full_at_line_rate_limits_nothing() -> None:
    cell = builders.cell(window_bytes=65536, pairs=ONE_PAIR)
    _, summary = told(cell, builders.repetition(cell, (941,), sender=HELD))
    assert (summary.limit, held_words(summary)) == ("line-rate", "")
