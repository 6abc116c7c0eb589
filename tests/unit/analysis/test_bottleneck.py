"""What binds a cell, and the sentences that say so."""

from dataclasses import replace
from typing import Any

import builders
import das2
import pytest
from documents import finding, texts

from rigctl.analysis.limits.bottleneck import evidence, named
from rigctl.analysis.limits.processors import Busy, Processors
from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.findings import Severity, Weight
from rigctl.model.limits.verdicts import judged
from rigctl.records import Cell, Pair, Repetition, RunInfo, Series
from rigctl.report.sections.streams import explain
from rigctl.report.words.limits import bottleneck_findings, bottleneck_text
from rigctl.report.words.text import numbers_text

ONE_PAIR = (Pair("pi1", "pi2"),)
HELD = {"busy_us": 1_000_000, "rwnd_limited_us": 900_000, "sndbuf_limited_us": 60_000}
FAR = {**HELD, "advertised_window_bytes": 8704, "rtt_min_us": 5000, "series": Series()}
"""8 KiB over 5 ms: six segments of 1448 bytes a round trip, 13.9 Mbit/s."""


def told(cell: Cell, *measured: Repetition, virtual: str | None = None) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell], virtual=virtual))
    return info, summaries(load(info, measured))[0]


def working(
    one: Repetition, node_pct: dict[str, float], agent_pct: float = 20.0, others_pct: float = 0.0
) -> Repetition:
    """`one` with processors this busy, the other nodes' to 10 per cent, with interrupts but for `others_pct`."""
    nodes = []
    for usage in one.nodes:
        span_us, cpus = usage.span_us or 0, usage.cpus or 0
        busy_us = round(node_pct.get(usage.node, 10.0) / 100 * span_us * cpus)
        agent_us = round(agent_pct / 100 * span_us)
        irq_us = max(0, busy_us - agent_us - round(others_pct / 100 * span_us * cpus))
        nodes.append(replace(usage, node_busy_us=busy_us, agent_cpu_us=agent_us, node_irq_us=irq_us))
    return replace(one, nodes=tuple(nodes))


def _by_run(node_pct: float, agent_pct: float | None = None, busiest_pct: float | None = None) -> Processors:
    return Processors(node_pct, agent_pct, busiest_pct, others_pct=1.0)


def limit(efficiency_share: float | None, goodput_mbps: float | None = None, **known: Any) -> str:
    """What limits a test of one stream."""
    seen = evidence(efficiency_share, goodput_mbps, **known)
    return named([(seen, judged(seen))], efficiency_share).limit


def test_line_rate_begins_at_98_per_cent() -> None:
    assert limit(0.98) == "line-rate"
    assert limit(0.9796) == "line-rate"  # printed as 98.0 %
    assert limit(0.9794) == limit(None) == "unknown"


@pytest.mark.parametrize(
    ("busy", "binds"),
    [
        (Busy(), None),
        (Busy(_by_run(94.9, 94.9), _by_run(94.9, 94.9)), None),
        (Busy(_by_run(95.0), _by_run(10.0)), "sender"),
        (Busy(_by_run(10.0), _by_run(95.0)), "receiver"),
        (Busy(_by_run(96.0), _by_run(97.0)), "receiver"),
        (Busy(_by_run(96.0), _by_run(96.0)), "sender"),
        (Busy(_by_run(30.0, 99.0), _by_run(30.0, 40.0)), "sender"),
        (Busy(_by_run(30.0), _by_run(30.0, 99.0)), "receiver"),
        (Busy(_by_run(30.0, 40.0, 50.0), _by_run(30.0, 40.0, 97.0)), "receiver"),
        (Busy(_by_run(30.0, 40.0, 97.0), _by_run(30.0, 40.0, 97.0), one_machine=True), None),
        (Busy(_by_run(99.0), _by_run(99.0), one_machine=True), "machine"),
        (Busy(_by_run(98.0, 99.0), _by_run(98.0), one_machine=True), "machine"),
        (Busy(_by_run(60.0, 99.0), _by_run(60.0, 40.0), one_machine=True), "sender"),
        (Busy(_by_run(94.0), _by_run(94.0), one_machine=True), None),
        # With other programs: a quarter of the busy time is too much.
        (Busy(Processors(100.0, 60.0, 100.0, 25.0), _by_run(10.0)), "sender"),
        (Busy(Processors(100.0, 60.0, 100.0, 25.1), _by_run(10.0)), "unknown"),
        (Busy(Processors(40.0, 60.0, 100.0, 10.0), _by_run(10.0)), "sender"),
        (Busy(Processors(40.0, 60.0, 100.0, 10.1), _by_run(10.0)), "unknown"),
        (Busy(Processors(100.0, 96.0, 100.0, 50.0), _by_run(10.0)), "sender"),  # its agent's threads are the run's
        (Busy(Processors(100.0, 60.0, 100.0, 50.0), _by_run(95.0)), "receiver"),
        (Busy(Processors(100.0, 20.0, None, 60.0), Processors(100.0, 20.0, None, 60.0), one_machine=True), "unknown"),
        (Busy(Processors(90.0, 20.0, None, 60.0), Processors(90.0, 20.0, None, 60.0), one_machine=True), None),
        (Busy(Processors(100.0, 20.0), _by_run(10.0)), None),  # what others took is unknown
    ],
)
def test_processors_bind_from_95_per_cent_on(busy: Busy, binds: str | None) -> None:
    assert busy.limit == binds
    assert limit(0.5, 470.0, busy=busy) == (binds or "unknown")
    assert limit(0.98, 925.0, busy=busy) == "line-rate"
    assert limit(0.5, 470.0, asked_mbps=475.0, busy=busy) == "rate"


@pytest.mark.parametrize(("goodput", "binds"), [(13.9, "window"), (12.6, "window"), (12.4, "machine")])
def test_on_a_busy_machine_the_window_binds_where_flows_achieve_what_it_allows(goodput: float, binds: str) -> None:
    flows = builders.flows(builders.cell(pairs=ONE_PAIR), (goodput,), None, **FAR)
    idle, busy = (Busy(_by_run(pct), _by_run(pct), one_machine=True) for pct in (10.0, 99.0))
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
    assert (row["agent_cpu_source_pct"], row["agent_cpu_destination_pct"]) == pytest.approx((75.0, 150.0))
    assert derived.cells[0]["agent_cpu_destination_pct"] == pytest.approx(150.0)
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
    said = "Limited by the receiver: processors of its node, or its agent's threads, were busy 99 % of the time."
    assert (row["limit"], summary.limit, bottleneck_text(summary)) == ("receiver", "receiver", said)
    assert told(cell, one, virtual="namespaces")[1].limit == "unknown"


def test_what_was_busy_waiting_is_no_limit() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, test="pingpong", message_bytes=64, busy_poll=True)
    _, summary = told(cell, working(builders.repetition(cell, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=100.0))
    assert (summary.limit, bottleneck_text(summary)) == ("unknown", "")


def test_processors_that_limit_are_named() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1)
    busy = working(builders.repetition(cell, (400,)), {"pi1": 97.2})
    info, summary = told(cell, busy)
    said = "Limited by the sender: processors of its node, or its agent's threads, were busy 97 % of the time."
    assert (summary.limit, bottleneck_text(summary)) == ("sender", said)
    assert said in explain(info, summary)
    busy = working(builders.repetition(cell, (400,)), {"pi1": 97.2}, agent_pct=160.0)
    info, summary = told(cell, busy, virtual="namespaces")
    said = "the processors of the one machine that all virtual nodes share were busy 97 % of the time."
    assert summary.limit == "machine"
    assert bottleneck_text(summary) == f"Limited by processors: {said}"
    found = finding(info, [busy], "Limited by processors")
    assert found.text == f"Limited by processors: test 1; {said}"
    assert (found.weight, found.level) == (Weight.BOTTLENECK, Severity.WARNING)
    assert found.numbers["busy_pct"] == pytest.approx(97.2)
    assert found.remedy == "Nodes with processors of their own may achieve more."


def test_processors_busy_with_other_programs_are_not_called_the_limit() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1)
    beside = working(builders.repetition(cell, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=60.0, others_pct=70.0)
    info, summary = told(cell, beside, virtual="namespaces")
    row = load(info, [beside]).derived.pairs[0]
    assert row["limit"] == summary.limit == "unknown"
    assert row["other_cpu_source_pct"] == pytest.approx(70.0)  # of four processors, less two agents of 60 % each
    said = "Limit unknown: processors were busy, 70 % of them with programs that are not part of the run."
    assert bottleneck_text(summary) == said
    found = finding(info, [beside], "Limit unknown")
    assert found.text == (
        "Limit unknown: test 1; programs that are not part of the run took 70 % of the processors, which were busy "
        "all the time."
    )
    assert (found.weight, found.level) == (Weight.SUSPECT, Severity.WARNING)
    assert found.numbers["others_pct"] == pytest.approx(70.0)
    assert found.remedy == "Measure again while nothing else runs."
    # On nodes of their own, interrupts are the run's, and the other node's agent is not.
    row = load(builders.run(builders.plan([cell])), [beside]).derived.pairs[0]
    assert row["other_cpu_destination_pct"] == pytest.approx(70.0)
    assert row["limit"] == "unknown"


SENDING = {
    **{"busy_us": 9_000_000, "rwnd_limited_us": 300_000, "sndbuf_limited_us": 0},
    **{"congestion": "cubic", "rtt_us": 5000, "series": Series()},
}
"""400 Mbit/s for 10 s are 345,000 segments; at 5 ms 20 lost ones allow 373 Mbit/s, 5 of them 745, 4 of them 833."""


@pytest.mark.parametrize(
    ("sender", "retransmits", "binds"),
    [
        ({}, 5, "loss"),
        ({"congestion": "reno"}, 40, "loss"),
        ({"congestion": "reno"}, 2000, "unknown"),  # that allows a tenth of the goodput
        ({}, 4, "unknown"),  # that allows more than twice as much: something else is slow
        ({"rtt_us": 500}, 20, "unknown"),
        (
            {"series": Series({"t_ns": [builders.BEGIN_NS + at for at in (1, 2, 3)], "rtt_us": [0, 500, 500]})},
            20,
            "unknown",
        ),
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
    named = any(sentence.startswith("Limited by losses: test 1;") for sentence in texts(info, [one]))
    explained = any(sentence.startswith("Limited by losses: ") for sentence in explain(info, summary))
    assert named == explained == (binds == "loss")


def test_what_losses_allow_is_reported() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, duration_s=10.0)
    _, summary = told(cell, builders.repetition(cell, (400,), (20,), sender=SENDING))
    assert bottleneck_text(summary) == (
        "Limited by losses: 1 in 17,000 segments was lost, and a round trip took 5 ms. "
        "By the rule of Mathis et al. a flow then achieves about 373 Mbit/s, more where several are lost at once."
    )
    _, summary = told(cell, builders.repetition(cell, (40,), (345,), sender=SENDING))
    assert "1 % of the segments were lost" in bottleneck_text(summary)


def test_the_run_names_ten_tests_and_counts_the_others() -> None:
    info, measured = das2.run(windows=(32768,), flows=tuple(range(1, 7)), pairs=(8, 12), shape=das2.Shape(noise=0.0))
    busy = [working(one, dict.fromkeys(das2.NODES, 98.0 + one.cell / 10)) for one in measured]
    cells = summaries(load(info, busy))
    ten = "tests 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"
    assert numbers_text([cell.cell.number for cell in cells]) == ten
    assert numbers_text([1]) == "test 1"
    (found,) = bottleneck_findings(cells)
    assert found.text == (
        f"Limited by processors: {ten}; the processors of the one machine that all virtual nodes share were busy "
        "98 to 99 % of the time."
    )
    assert len(found.subject.names) == 12


def test_a_window_that_limits_is_explained_with_what_it_allows() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=1)
    sender = {**HELD, "advertised_window_bytes": 8704, "rtt_min_us": 5000, "series": Series()}
    info, summary = told(cell, builders.repetition(cell, (13,), sender=sender))
    assert summary.limit == "window"
    said = bottleneck_text(summary)
    assert said == (
        "Limited by the window: the sender waited for it 96 % of the time. The receiver advertised 8704 bytes, "
        "6 whole segments of 1448 bytes (8688 bytes), and a round trip took 5 ms at least: "
        "window ÷ round trip = 13.9 Mbit/s."
    )
    assert said in explain(info, summary)
    held = finding(
        info, [builders.repetition(cell, (13,), sender=sender)], "Limited by the receive window of pi2: test 1;"
    )
    assert (held.weight, held.subject.names) == (Weight.BOTTLENECK, ("1",))
    assert held.remedy == "A larger window lifts this limit."


def test_a_window_that_was_not_requested_has_no_remedy() -> None:
    cell = builders.cell(window_bytes=None, pairs=ONE_PAIR, parallel=1)
    assert (
        finding(told(cell)[0], [builders.repetition(cell, (13,), sender=FAR | HELD)], "by the receive window").remedy
        is None
    )


def test_of_several_flows_the_window_allows_each_its_share() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=4)
    _, summary = told(cell, builders.repetition(cell, (50,), sender=FAR))
    said = bottleneck_text(summary)
    assert "advertised 8704 bytes on each of 4 flows, 6 whole segments" in said
    assert "= 55.6 Mbit/s." in said


def test_the_window_is_the_one_advertised_while_bytes_flowed() -> None:
    cell = builders.cell(window_bytes=8192, pairs=ONE_PAIR, parallel=1)
    series = Series({"t_ns": [1, 2, 3], "rtt_us": [0, 5000, 5000], "advertised_window": [8688, 8688, 10136]})
    sender = {**HELD, "advertised_window_bytes": 65536, "rtt_min_us": 5000, "series": series}
    _, summary = told(cell, builders.repetition(cell, (13,), sender=sender))
    said = bottleneck_text(summary)
    assert "The receiver advertised 8688 bytes, 6 whole segments of 1448 bytes, and" in said


def test_a_window_that_is_full_at_line_rate_limits_nothing() -> None:
    cell = builders.cell(window_bytes=65536, pairs=ONE_PAIR)
    _, summary = told(cell, builders.repetition(cell, (941,), sender=HELD))
    assert (summary.limit, bottleneck_text(summary)) == ("line-rate", "")
