"""What binds a cell, and the sentences that say so."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import finding

from rigctl.analysis.limits.evidence import evidence, named
from rigctl.analysis.limits.hosts import Busy, Processors
from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.findings import Severity, Weight
from rigctl.model.limits.rules import Evidence, judged
from rigctl.records import Cell, Link, NicCounters, Pair, Repetition, RunInfo, Series

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
    assert (row["limit"], summary.limit, round(summary.busy.highest_pct)) == ("receiver", "receiver", 99)
    assert told(cell, one, virtual="namespaces")[1].limit == "unknown"


def test_what_was_busy_waiting_is_no_limit() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1, test="pingpong", message_bytes=64, busy_poll=True)
    _, summary = told(cell, working(builders.repetition(cell, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=100.0))
    assert summary.limit == "unknown"


def test_processors_busy_with_other_programs_are_not_called_the_limit() -> None:
    cell = builders.cell(pairs=ONE_PAIR, parallel=1)
    beside = working(builders.repetition(cell, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=60.0, others_pct=70.0)
    info, summary = told(cell, beside, virtual="namespaces")
    row = load(info, [beside]).derived.pairs[0]
    assert row["limit"] == summary.limit == "unknown"
    assert row["other_cpu_source_pct"] == pytest.approx(70.0)  # of four processors, less two agents of 60 % each
    found = finding(info, [beside], "Limit unknown")
    assert (found.weight, found.level) == (Weight.SUSPECT, Severity.WARNING)
    assert found.numbers["others_pct"] == pytest.approx(70.0)
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
    _, summary = told(cell, one)
    assert summary.limit == binds
    assert (summary.losses is not None) == (binds == "loss")


LINKS = {"pi1": Link(10**8, 1500), "pi2": Link(10**8, 1500)}
HEADERS = 66  # Ethernet, IP and TCP with timestamps, as an interface counts them
BUSY = {"busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0, "rtt_us": 9000, "rtt_min_us": 20}


def measured(mbps: float, received: dict[str, int], sent: dict[str, int] | None = None, **sender: Any) -> Repetition:
    """10 s of one flow from pi1 to pi2, with what the interfaces counted."""
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), parallel=1, window_bytes=None, mss=None)
    one = builders.repetition(cell, (mbps,), sender={**BUSY, **sender})
    counted = {"pi1": NicCounters(**(sent or {})), "pi2": NicCounters(**received)}
    return replace(one, nodes=tuple(replace(usage, nic=counted[usage.node]) for usage in one.nodes))


def summary_of(one: Repetition) -> tuple[CellSummary, Evidence]:
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), parallel=1, window_bytes=None, mss=None)
    facts = {name: builders.facts(speed_bps=None) for name in LINKS}
    info = builders.run(builders.plan([cell], virtual=None, links=LINKS), facts=facts)
    frames = load(info, [one])
    ((seen,),) = (one.seen.values() for one in frames.derived.derivations)
    return summaries(frames)[0], seen


def own_bytes(mbps: float, packet_payload: int = 1448) -> dict[str, int]:
    """Return the counters of an interface for a flow of 10 s, in packets of `packet_payload` bytes."""
    payload = round(mbps * 1e6 * 10 / 8)
    packets = payload // packet_payload
    return {"rx_bytes": payload + packets * HEADERS, "rx_packets": packets}


def with_others(mbps: float, others_mbps: float, packet_payload: int = 1448) -> dict[str, int]:
    """The same with other traffic in full frames; `others_mbps` as the wire carries it."""
    own, frames = own_bytes(mbps, packet_payload), round(others_mbps * 1e6 * 10 / 8 / 1538)
    return {"rx_bytes": own["rx_bytes"] + frames * 1514, "rx_packets": own["rx_packets"] + frames}


@pytest.mark.parametrize("packet_payload", [1448, 43_440])  # frames, and super-packets of 30 with one header
def test_what_an_interface_counts_beyond_the_run_is_other_traffic(packet_payload: int) -> None:
    summary, seen = summary_of(measured(55.0, with_others(55.0, 40.0, packet_payload), segs_out=47_500))
    assert seen.other_mbps == pytest.approx(40.0, rel=0.06)
    assert seen.other_mbps is not None
    assert seen.other_mbps <= 40.05  # never more than there was
    assert summary.limit == "other-traffic"
    assert (seen.other_counter, seen.other_link) == ("pi2 eth0", "to pi2")


@pytest.mark.parametrize("packet_payload", [1448, 43_440])
def test_a_run_alone_has_no_other_traffic(packet_payload: int) -> None:
    for mbps in (30.0, 80.0):
        summary, seen = summary_of(measured(mbps, own_bytes(mbps, packet_payload), segs_out=round(mbps * 863.3)))
        assert seen.other_share == pytest.approx(0.0, abs=0.001)
        assert summary.limit != "other-traffic"


def test_the_sending_interface_is_looked_at_too() -> None:
    counts = with_others(60.0, 33.0)
    sent = {"tx_bytes": counts["rx_bytes"], "tx_packets": counts["rx_packets"]}
    summary, seen = summary_of(measured(60.0, own_bytes(60.0), sent, segs_out=51_800))
    assert (summary.limit, seen.other_link) == ("other-traffic", "from pi1")
    assert seen.other_counter == "pi1 eth0"


def test_without_counters_it_is_unknown() -> None:
    summary, seen = summary_of(measured(55.0, {}))
    assert seen.other_share is seen.link_share is None
    assert summary.limit != "other-traffic"


def test_segments_lost_before_the_interface_do_not_hide_other_traffic() -> None:
    """A tenth of the segments was sent twice: the receiver's own count of segments says that they did not arrive."""
    one = measured(55.0, with_others(55.0, 40.0), segs_out=52_200, retransmitted_bytes=6_878_000)
    (flow,) = one.flows
    assert flow.receiver is not None
    arrived = replace(flow, receiver=builders.counting(flow.receiver, segs_in=47_500))
    _, blind = summary_of(one)
    _, seen = summary_of(replace(one, flows=(arrived,)))
    assert seen.other_mbps == pytest.approx(40.0, rel=0.06)
    assert blind.other_mbps is not None
    assert seen.other_mbps is not None
    assert blind.other_mbps < seen.other_mbps  # a lower bound


def test_a_link_that_is_neither_full_nor_free_of_others_leaves_a_shaper_open() -> None:
    summary, seen = summary_of(measured(55.0, with_others(55.0, 28.0), segs_out=47_500))
    assert seen.link_share == pytest.approx(0.865, abs=0.02)
    assert (summary.limit, summary.verdict.cause) == ("unknown", "traffic")
