"""Evidence for the rules of the limit: from processors, counters and samples to a limit and its cause."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import builders
import pytest
from cases import from_file
from documents import cells_of, finding
from known import known

from rigctl.findings import Severity, Weight
from rigctl.findings.limits import bottleneck_text
from rigctl.limits.hosts import Processors, ProcessorUse, WindowCause, window_cause
from rigctl.limits.rules import Diagnosis, Evidence, diagnose
from rigctl.model.window import CommonWindow
from rigctl.records import (
    Cell,
    Condition,
    Datagrams,
    Flow,
    HostSetting,
    Link,
    NicCounters,
    Pair,
    Repetition,
    RunInfo,
    Series,
)
from rigctl.results.evidence import evidence, limit_of_test, of_flows
from rigctl.results.frames import load_frames
from rigctl.results.run_results import condensed_in_memory
from rigctl.results.summary import CellSummary

ONE_PAIR = (Pair("pi1", "pi2"),)
FAR = {"busy_us": 1_000_000, "rwnd_limited_us": 900_000, "sndbuf_limited_us": 60_000, "series": Series()}
FAR |= {"advertised_window_bytes": 8704, "rtt_min_us": 5000, "rtt_us": None}
"""8 KiB over 5 ms: six segments of 1448 bytes a round trip, 13.9 Mbit/s."""


def one_flow(**settings: Any) -> Cell:
    return builders.cell(pairs=ONE_PAIR, **{"window_bytes": None, "mss": None, **settings})


def outcome(cell: Cell, *measured: Repetition, **plan: Any) -> tuple[RunInfo, CellSummary]:
    info = builders.run(builders.plan([cell], **{"virtual": None, **plan}))
    return info, cells_of(info, measured)[0]


def one_run(cell: Cell, mbps: float, again: int = 0, plan: Any = None, **sender: Any) -> tuple[Any, Any, CellSummary]:
    one = builders.repetition(cell, (mbps,), (again,), sender=sender)
    info, summary = outcome(cell, one, **(plan or {}))
    return info, one, summary


def working(one: Repetition, node_pct: dict[str, float], agent_pct: float = 20.0, others_pct: float = 0) -> Repetition:
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
    """Return the limit of a test of one stream."""
    seen = evidence(efficiency_share, goodput_mbps, **known)
    return limit_of_test([(seen, diagnose(seen))], efficiency_share).limit


@pytest.mark.parametrize(
    ("marked", "delivered", "rtt_us", "share", "allows"),
    [
        (100, 10_000, 2000, 0.01, (1.5 * 2000) ** 0.5 / 20),  # of 20 segments in flight: one cut in a round trip
        (100, 10_000, 50, 0.01, 150**0.5),
        (0, 10_000, 2000, 0.0, None),
        (100, 10_000, None, 0.01, None),
        (100, 0, 2000, None, None),
        (None, 10_000, 2000, None, None),
    ],
)
def test_marks_cut_the_window_once_in_a_round_trip(
    marked: int | None, delivered: int, rtt_us: int | None, share: float | None, allows: float | None
) -> None:
    series = Series({"t_ns": [0, 5 * 10**8], "rtt_us": [rtt_us, rtt_us]} if rtt_us else {})
    sender = {"mss": 1000, "series": series, "delivered_ce": marked, "delivered": delivered}
    flows = builders.repetition(one_flow(duration_s=1.0), (80.0,), sender=sender).flows
    found = of_flows(flows, 80.0, CommonWindow(0, 10**9, 0))
    assert (found.get("marked_share"), found.get("marks_allow")) == pytest.approx((share, allows))


def test_line_rate_begins_at_98_per_cent_whatever_else_is_unknown() -> None:
    shares = {0.98: "line-rate", 0.9796: "line-rate", 0.9794: "unknown", None: "unknown"}  # 0.9796 is printed as 98.0 %
    assert {share: limit(share) for share in shares} == shares


@pytest.mark.parametrize(
    ("busy", "binds"),
    [
        (ProcessorUse(), None),
        (ProcessorUse(_by_run(94.9, 94.9), _by_run(94.9, 94.9)), None),
        (ProcessorUse(_by_run(95.0), _by_run(10.0)), "sender"),
        (ProcessorUse(_by_run(10.0), _by_run(95.0)), "receiver"),
        (ProcessorUse(_by_run(96.0), _by_run(97.0)), "receiver"),
        (ProcessorUse(_by_run(96.0), _by_run(96.0)), "sender"),
        (ProcessorUse(_by_run(30.0, 99.0), _by_run(30.0, 40.0)), "sender"),
        (ProcessorUse(_by_run(30.0, 40.0, 50.0), _by_run(30.0, 40.0, 97.0)), "receiver"),
        (ProcessorUse(_by_run(30.0, 40.0, 97.0), _by_run(30.0, 40.0, 97.0), one_machine=True), None),
        (ProcessorUse(_by_run(99.0), _by_run(99.0), one_machine=True), "machine"),
        # With other programs: a quarter of the busy time is too much.
        (ProcessorUse(Processors(100.0, 60.0, 100.0, 25.0), _by_run(10.0)), "sender"),
        (ProcessorUse(Processors(100.0, 60.0, 100.0, 25.1), _by_run(10.0)), "unknown"),
        (ProcessorUse(Processors(40.0, 60.0, 100.0, 10.0), _by_run(10.0)), "sender"),
        (ProcessorUse(Processors(40.0, 60.0, 100.0, 10.1), _by_run(10.0)), "unknown"),
        (
            ProcessorUse(Processors(100.0, 96.0, 100.0, 50.0), _by_run(10.0)),
            "sender",
        ),  # its agent's threads are the run's
        (
            ProcessorUse(Processors(100.0, 20.0, None, 60.0), Processors(100.0, 20.0, None, 60.0), one_machine=True),
            "unknown",
        ),
        (ProcessorUse(Processors(100.0, 20.0), _by_run(10.0)), None),  # what others took is unknown
    ],
)
def test_processors_bind_from_95_per_cent_on(busy: ProcessorUse, binds: str | None) -> None:
    assert busy.limit == binds
    assert limit(0.5, 470.0, busy=busy) == (binds or "unknown")
    assert limit(0.98, 925.0, busy=busy) == "line-rate"
    assert limit(0.5, 470.0, asked_mbps=475.0, busy=busy) == "rate"


def test_on_a_busy_machine_the_window_binds_where_flows_achieve_what_it_allows() -> None:
    idle, busy = (ProcessorUse(_by_run(pct), _by_run(pct), one_machine=True) for pct in (10.0, 99.0))
    for goodput, binds in ((13.9, "window"), (12.6, "window"), (12.4, "machine")):
        flows = builders.flows(one_flow(), (goodput,), None, **FAR)
        unknown = [builders.changing(flow, sender={"rtt_min_us": None}) for flow in flows]
        found = [limit(0.1, goodput, flows=own, busy=by) for own, by in ((flows, busy), (flows, idle), (unknown, busy))]
        assert found == [binds, "window", "machine"]


def test_several_repetitions_weigh_as_one_does() -> None:
    cell = one_flow(window_bytes=8192)
    for goodput, binds in ((13.9, "window"), (10.0, "sender")):
        repetitions = [builders.repetition(cell, (goodput,), number=number, sender=FAR) for number in (1, 2, 3)]
        measured = [working(repetition, {"pi1": 99.0}) for repetition in repetitions]
        info, summary = outcome(cell, *measured)
        assert {row["limit"] for row in load_frames(info, measured).results.cells} == {summary.limit} == {binds}


def test_the_shares_of_processors_are_columns() -> None:
    cell = builders.cell(pairs=(Pair("a", "b"), Pair("a", "c")))
    one = working(builders.repetition(cell, (400, 400)), {"a": 96.0}, agent_pct=150.0)
    derived = load_frames(outcome(cell)[0], [one]).results
    row = derived.pairs[0]
    assert (row["cpu_source_pct"], row["cpu_destination_pct"]) == pytest.approx((96.0, 10.0))
    # The sender's agent has two threads, the receiver's one: 150 % of a processor are 75 % of two.
    assert (row["agent_cpu_source_pct"], row["agent_cpu_destination_pct"]) == pytest.approx((75.0, 150.0))
    assert derived.cells[0]["agent_cpu_destination_pct"] == pytest.approx(150.0)
    assert row["limit"] == "receiver"


def test_one_processor_full_of_interrupts_is_what_limits_but_not_what_was_busy_waiting() -> None:
    one = working(builders.repetition(one_flow(), (400,)), {"pi1": 30.0, "pi2": 25.0})
    one = builders.using(one, {"pi1": {"busiest_cpu_us": 5_000_000}, "pi2": {"busiest_cpu_us": 9_900_000}})
    info, summary = outcome(one_flow(), one)
    row = load_frames(info, [one]).results.pairs[0]
    assert (row["busiest_cpu_source_pct"], row["busiest_cpu_destination_pct"]) == pytest.approx((50.0, 99.0))
    assert (row["limit"], summary.limit, round(summary.busy.highest_pct)) == ("receiver", "receiver", 99)
    assert outcome(one_flow(), one, virtual="namespaces")[1].limit == "unknown"
    polling = one_flow(test="pingpong", message_bytes=64, busy_poll=True)
    one = working(builders.repetition(polling, (400,)), {"pi1": 100.0, "pi2": 100.0}, agent_pct=100.0)
    assert outcome(polling, one)[1].limit == "unknown"


def test_processors_busy_with_other_programs_are_not_called_the_limit() -> None:
    one = builders.repetition(one_flow(), (400,))
    beside = working(one, {"pi1": 100.0, "pi2": 100.0}, agent_pct=60.0, others_pct=70.0)
    info, summary = outcome(one_flow(), beside, virtual="namespaces")
    row = load_frames(info, [beside]).results.pairs[0]
    assert row["limit"] == summary.limit == "unknown"
    assert row["other_cpu_source_pct"] == pytest.approx(70.0)  # of four processors, less two agents of 60 % each
    found = finding(info, [beside], "limit-unknown")
    assert (found.weight, found.level) == (Weight.SUSPECT, Severity.WARNING)
    assert found.numbers["others_pct"] == pytest.approx(70.0)
    # On nodes of their own, interrupts are the run's, and the other node's agent is not.
    row = load_frames(builders.run(builders.plan([one_flow()])), [beside]).results.pairs[0]
    assert (row["other_cpu_destination_pct"], row["limit"]) == (pytest.approx(70.0), "unknown")


AT_5_MS = Series({"t_ns": [builders.BEGIN_NS + at for at in range(1, 9)], "rtt_us": [5000] * 8, "cwnd": [300] * 8})
SENDING = {"busy_us": 9_000_000, "rwnd_limited_us": 300_000, "rtt_us": 5000, "rtt_min_us": 5000, "series": AT_5_MS}
SENDING |= {"advertised_window_bytes": 3_000_000, "sndbuf_bytes": 4_000_000}
"""400 Mbit/s for 10 s are 345,000 segments; at 5 ms 20 lost ones allow 373 Mbit/s, 5 of them 745, 4 of them 833."""


@pytest.mark.parametrize(
    ("sender", "retransmits", "binds"),
    [
        ({}, 5, "loss"),
        ({"congestion": "reno"}, 40, "loss"),
        ({"congestion": "reno"}, 2000, "unknown"),  # that allows a tenth of the goodput
        ({}, 4, "unknown"),  # that allows more than twice as much: something else is slow
        (
            {"series": Series({"t_ns": [builders.BEGIN_NS + at for at in (1, 2, 3)], "rtt_us": [0, 500, 500]})},
            20,
            "unknown",
        ),
        ({"congestion": "bbr"}, 2000, "unknown"),
        ({"busy_us": 4_000_000}, 2000, "unknown"),  # the sender had nothing to send for most of the time
        ({"rwnd_limited_us": 5_000_000}, 2000, "window"),
        ({"busy_us": None}, 2000, "unknown"),
    ],
)
def test_losses_bind_where_they_explain_the_goodput(sender: dict[str, Any], retransmits: int, binds: str) -> None:
    _, _, summary = one_run(builders.cell(pairs=ONE_PAIR), 400.0, again=retransmits, **{**SENDING, **sender})
    assert summary.limit == binds
    assert ("a flow then achieves about" in bottleneck_text(summary)) == (binds == "loss")


LINKS = {"pi1": Link(10**8, 1500), "pi2": Link(10**8, 1500)}
HEADERS = 66  # Ethernet, IP and TCP with timestamps, as an interface counts them


def measured(mbps: float, received: dict[str, int], sent: dict[str, int] | None = None, **sender: Any) -> Repetition:
    """10 s of one flow from pi1 to pi2, with what the interfaces counted."""
    one = builders.repetition(one_flow(), (mbps,), sender={"rtt_us": 9000, "rtt_min_us": 20, **sender})
    return builders.using(one, {"pi1": {"nic": NicCounters(**(sent or {}))}, "pi2": {"nic": NicCounters(**received)}})


def summary_of(one: Repetition) -> tuple[CellSummary, Evidence]:
    facts = {name: builders.facts(speed_bps=None) for name in LINKS}
    info = builders.run(builders.plan([one_flow()], virtual=None, links=LINKS), facts=facts)
    ((seen,),) = (each.evidence.values() for each in condensed_in_memory(info, [one]).each)
    return cells_of(info, [one])[0], seen


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
    assert 40.0 * 0.94 <= (seen.other_mbps or 0) <= 40.05  # never more than there was
    assert (summary.limit, seen.other_counter, seen.other_link) == ("other-traffic", "pi2 eth0", "to pi2")
    for mbps in (30.0, 80.0):
        summary, seen = summary_of(measured(mbps, own_bytes(mbps, packet_payload), segs_out=round(mbps * 863.3)))
        assert seen.other_share == pytest.approx(0.0, abs=0.001)
        assert summary.limit != "other-traffic"


def test_the_sending_interface_is_looked_at_too_and_without_counters_other_traffic_is_unknown() -> None:
    sent = {name.replace("rx", "tx"): count for name, count in with_others(60.0, 33.0).items()}
    summary, seen = summary_of(measured(60.0, own_bytes(60.0), sent, segs_out=51_800))
    assert (summary.limit, seen.other_counter, seen.other_link) == ("other-traffic", "pi1 eth0", "from pi1")
    summary, seen = summary_of(measured(55.0, {}))
    assert seen.other_share is seen.link_share is None
    assert summary.limit != "other-traffic"


def test_segments_lost_before_the_interface_do_not_hide_other_traffic() -> None:
    """A tenth of the segments was sent twice: the receiver's own count of segments says that they did not arrive."""
    one = measured(55.0, with_others(55.0, 40.0), segs_out=52_200, retransmitted_bytes=6_878_000)
    (_, blind), (_, seen) = summary_of(one), summary_of(builders.changing_flows(one, receiver={"segs_in": 47_500}))
    assert seen.other_mbps == pytest.approx(40.0, rel=0.06)
    assert known(blind.other_mbps) < known(seen.other_mbps)  # a lower bound


def test_a_link_that_is_neither_full_nor_free_of_others_leaves_a_shaper_open() -> None:
    summary, seen = summary_of(measured(55.0, with_others(55.0, 28.0), segs_out=47_500))
    assert seen.link_share == pytest.approx(0.865, abs=0.02)
    assert (summary.limit, summary.verdict.cause) == ("unknown", "traffic")


STEPS = 100
TIMES = [builders.BEGIN_NS + step * 100_000_000 for step in range(1, STEPS + 1)]


def sampled(rtt_us: int, retransmits: list[int] | None = None, advertised: int = 3_000_000) -> Series:
    """A sender's samples for 10 s."""
    columns: dict[str, list[int]] = {"t_ns": TIMES, "bytes": [step * 1000 for step in range(STEPS)]}
    columns |= {"retransmits": retransmits or [0] * STEPS, "rtt_us": [rtt_us] * STEPS, "cwnd": [5000] * STEPS}
    return Series(columns | {"mss": [1448] * STEPS, "advertised_window": [advertised] * STEPS})


def test_a_queue_that_stands_at_a_constant_rate_is_a_shaper_and_many_losses_are_a_policer() -> None:
    info, one, summary = one_run(one_flow(), 285.0, rtt_us=9000, rtt_min_us=200, series=sampled(9000))
    assert (summary.limit, summary.verdict.rule) == ("path", "shaper")
    found = finding(info, [one], "limit-path")
    assert found.numbers["queue_ms"] == pytest.approx(8.8)
    assert "between pi1 and pi2" in (found.remedy or "")
    lost = [50 * step for step in range(STEPS)]
    _, _, summary = one_run(one_flow(), 197.0, again=lost[-1], rtt_us=210, rtt_min_us=200, series=sampled(210, lost))
    assert (summary.limit, summary.verdict.cause) == ("path", "policer")


def varying(changes: list[int], flows: int = 1) -> Evidence:
    """Of flows that lose a segment in each interval, with goodput that `changes`."""
    steps = len(changes)
    cell = builders.cell(pairs=ONE_PAIR, parallel=flows, duration_s=steps / 10)
    counted = list(accumulate(10_000_000 + change for change in changes))
    times, lost = TIMES[:steps], [4 * step for step in range(steps)]
    sender = Series({"t_ns": times, "bytes": counted, "retransmits": lost, "rtt_us": [900] * steps})
    one = builders.repetition(cell, (800.0,), sender={"rtt_min_us": 200, "series": sender})
    receiver = {"bytes": counted[-1], "series": Series({"t_ns": times, "bytes": counted})}
    made = builders.changing_flows(one, receiver=receiver).flows
    return Evidence(**of_flows(made, 800.0, CommonWindow(times[0], times[-1], 0)))


def test_regulated_goodput_varies_less_over_four_intervals_and_unevenness_is_that_of_one_flow_or_loss() -> None:
    changes = [5_000_000, -5_000_000] * 20  # less follows more
    assert known(varying(([2_000_000] * 10 + [-2_000_000] * 10) * 2).variance_ratio) > 2.0
    assert varying(changes[:14]).variance_ratio is None
    alone, few, many = (varying(changes, flows) for flows in (1, 2, 16))
    assert known(alone.variance_ratio) < 0.05
    variation = known(alone.variation)
    assert variation == pytest.approx(0.5, rel=0.05)
    assert alone.unevenness == pytest.approx(variation * 2, rel=0.05)  # 4 losses in an interval
    assert few.unevenness == pytest.approx(variation * 8**0.5, rel=0.05)
    assert many.unevenness == pytest.approx(variation * 8, rel=0.05)


def test_a_rate_that_was_not_sampled_is_not_constant() -> None:
    (flow,) = builders.flows(one_flow(), (285.0,), None, rtt_min_us=200, series=sampled(9000))
    window = CommonWindow(builders.BEGIN_NS, builders.BEGIN_NS + 10**10, 0)
    blind = builders.changing(flow, receiver={"series": Series()})
    found = [of_flows([each], 285.0, window).get("variation") for each in (flow, blind)]
    assert [share is None for share in found] == [False, True]


def test_missing_samples_are_told_with_the_limits_that_they_may_hide() -> None:
    info, one, summary = one_run(builders.cell(pairs=ONE_PAIR), 400.0, again=20, **{**SENDING, "series": Series()})
    text = "without congestion window and round trips, window and path cannot be ruled out"
    assert bottleneck_text(summary) == f"Limit unknown: {text}."
    assert finding(info, [one], "limit-unknown").text == f"Limit unknown: test 1; {text}."


def test_a_node_gives_the_kinds_of_evidence_that_its_kernel_reports() -> None:
    flows = builders.flows(one_flow(), (285.0,), None, series=sampled(9000), delivered=250_000)
    window = CommonWindow(builders.BEGIN_NS, builders.BEGIN_NS + 10**10, 0)

    def kinds(found: Sequence[Flow], busy: ProcessorUse | None = None, **more: Any) -> tuple[set[str], set[str]]:
        quotas = {"quota_sender": 0.0, "quota_receiver": 0.0, "other_share": 0.0}
        known = {"window": window, "busy": busy or ProcessorUse(by_agents=True), "beside": quotas, **more}
        seen = evidence(0.3, 285.0, flows=found, **known)
        return set(map(str, seen.gives)), set(map(str, seen.lacks))

    tcp = {"round trips", "least round trip", "advertised window", "congestion window", "waiting times", "retransmits"}
    every = tcp | {"goodput over time", "processors"}
    assert kinds(flows) == (every, set())  # without ECN, marks do not apply
    assert kinds([builders.changing(flow, sender={"delivered_ce": 0}) for flow in flows]) == (every | {"marks"}, set())
    bsd = {"rtt_min_us": None, "busy_us": None, "delivered": None}
    never = {"least round trip", "waiting times", "marks"}
    found = [builders.changing(flow, sender=bsd) for flow in flows]
    assert kinds(found) == (every - never, never)
    of_iperf3 = (tcp - never | {"goodput over time"}, never | {"processors", "quotas", "interface counters"})
    assert kinds(found, ProcessorUse(), beside={}) == of_iperf3
    client_only = [builders.changing(flow, receiver={"series": Series()}) for flow in found]
    assert "goodput over time" in kinds(client_only, ProcessorUse())[1]
    assert "goodput over time" in kinds(client_only)[0]  # agents sample receivers
    assert kinds(flows, ProcessorUse(by_agents=True, polls=True))[0] == every - {"processors"}
    udp = [builders.changing(flow, sender={"datagrams": Datagrams(100)}) for flow in flows]
    assert kinds(udp) == ({"goodput over time", "processors"}, set())


SMALL_RMEM = "4096 16384 20000"
SMALL = Condition("small", (HostSetting("sysctl", SMALL_RMEM, "net.ipv4.tcp_rmem"),))
TUNED = WindowCause("receive", "pi2", 20_000, "net.ipv4.tcp_rmem", SMALL_RMEM)
CUT = WindowCause("receive", "pi2", 50_000, "net.core.rmem_max", "212992")


def test_a_window_is_told_with_the_sysctl_that_bounds_it() -> None:
    full: dict[str, Any] = {"rtt_us": 9000, "rtt_min_us": 8950, "rwnd_limited_us": 4_100_000}
    for cell, plan, cause, raised in (
        (one_flow(condition="small"), {"conditions": (SMALL,)}, TUNED, "net.ipv4.tcp_rmem (its third value)"),
        (one_flow(window_bytes=65536), {}, CUT, "net.core.rmem_max"),  # requested, and cut by the kernel
    ):
        info, one, _ = one_run(cell, 10.3, plan=plan, **full, series=sampled(9000, advertised=11_600))
        one = builders.changing_flows(one, receiver={"rcvbuf_bytes": cause.buffer_bytes})
        (summary,) = cells_of(info, [one])
        assert (summary.limit, summary.verdict.rule, summary.window_cause) == ("window", "window in flight", cause)
        assert finding(info, [one], "limit-window").remedy == f"Raise {raised} on pi2."


def test_a_quota_is_told_with_the_share_of_time() -> None:
    one = builders.repetition(one_flow(), (400.0,))
    one = builders.using(one, {"pi1": {"throttled_us": 9 * 10**6}, "pi2": {"throttled_us": 0}})
    info, summary = outcome(one_flow(), one)
    assert (summary.limit, summary.verdict.cause) == ("sender", "quota")
    assert "cpu.max" in (finding(info, [one], "limit-sender").remedy or "")
    assert load_frames(info, [one]).results.pairs[0]["limit_detail"].startswith("quota: quota_sender 0.9")


def test_a_line_full_of_small_frames_is_limited_by_the_mtu_unless_that_mss_was_requested() -> None:
    links = {"pi1": Link(10**9, 9000), "pi2": Link(10**9, 1500)}
    summary, asked = (one_run(one_flow(mss=mss), 941.0, plan={"links": links}, pmtu=1500)[2] for mss in (None, 1460))
    assert (summary.limit, asked.limit) == ("mtu", "line-rate")
    assert summary.verdict.numbers["larger_frames"] == pytest.approx(8948 / 9038 * 1538 / 1448)


def test_pairs_that_fill_a_link_together_are_limited_by_it() -> None:
    cell = builders.cell(pairs=(Pair("pi1", "pi3"), Pair("pi2", "pi3")), window_bytes=None)
    one = builders.repetition(cell, (600.0, 340.0))
    info, summary = outcome(cell, one)
    assert {row["limit"] for row in load_frames(info, [one]).results.pairs} == {summary.limit} == {"shared-link"}
    assert summary.verdict.numbers["shared_share"] == pytest.approx(0.998, abs=0.001)


def datagrams(sent: int | None, came: int | None, overflow: int | None = None, counted: Sequence[int] = ()) -> Evidence:
    """Of one flow of datagrams of 1,250 bytes; its receiver had `counted` bytes after each tenth of a second."""
    steps = len(counted) or STEPS
    (flow,) = builders.flows(one_flow(transport="udp", duration_s=steps / 10), (800.0,))
    series = Series({"t_ns": TIMES[: len(counted)], "bytes": list(counted)})
    here = None if came is None else Datagrams(came, overflow=overflow)
    sender = {"datagrams": Datagrams(sent or 0), "series": Series()}
    made = builders.changing(flow, sender, {"bytes": 1250 * (came or 0), "datagrams": here, "series": series})
    return Evidence(**of_flows([made], 800.0, CommonWindow(TIMES[0], TIMES[steps - 1], 0)))


def test_lost_datagrams_and_those_of_a_full_buffer() -> None:
    shares: dict[tuple[int, int | None, int | None], tuple[float | None, float | None]] = {
        (1000, 900, 25): (0.1, 0.25),
        (1000, 900, 0): (0.1, 0.0),
        (1000, 900, None): (0.1, None),
        (1000, 1000, 0): (0.0, None),
        (1000, 1001, 0): (0.0, None),  # a duplicate is no negative loss
        (1000, 0, 0): (None, None),
        (1000, None, None): (None, None),
        (0, 0, 0): (None, None),
    }
    seen = {counts: datagrams(*counts) for counts in shares}
    assert {counts: (found.lost_share, found.overflow_share) for counts, found in seen.items()} == shares
    # Nothing was sampled.
    assert {(found.variation, found.datagram_evenness) for found in seen.values()} == {(None, None)}


def test_the_evenness_of_losses_is_their_variance_as_a_share_of_that_of_chance() -> None:
    steps = [900, 800] * 20  # datagrams that came in each tenth of a second, of 1,000 sent
    counted = list(accumulate(1250 * came for came in [0, *steps]))
    found = datagrams(1000 * len(steps), sum(steps), 0, counted)
    assert found.lost_share == pytest.approx(0.15)
    assert found.variation == pytest.approx(50 / 850)
    assert found.datagram_evenness == pytest.approx(50**2 / (850 * 0.15))
    assert datagrams(sum(steps), sum(steps), 0, counted).datagram_evenness is None  # without losses there is no chance


THREE = "4096 131072 6291456"
CORE = {"net.core.rmem_max": "212992", "net.core.wmem_max": "212992"}
SYSCTLS = {"net.ipv4.tcp_rmem": THREE, "net.ipv4.tcp_wmem": THREE} | CORE


@from_file
def test_the_end_and_the_sysctl_that_bound_a_window(sysctls: Any, known: dict[str, Any], found: Any) -> None:
    name = SMALL.name if known.get("small") else None
    cell = one_flow(window_bytes=known.get("asked"), parallel=known.get("parallel", 1), condition=name)
    plan = builders.plan([cell], conditions=(SMALL,))
    own = dict.fromkeys(plan.links, SYSCTLS) if sysctls == "both" else sysctls
    info = builders.run(plan, facts={node: {"sysctls": own.get(node, {})} for node in plan.links})
    sndbuf, rcvbuf = known.get("sndbuf", 400_000), known.get("rcvbuf", 400_000)
    seen = Evidence(
        window_bytes=known.get("advertised", 65_535),
        sndbuf_bytes=sndbuf,
        rcvbuf_bytes=rcvbuf,
        send_window_bytes=sndbuf and sndbuf // 2,  # Linux reports twice the size that has room for data
        receive_window_bytes=rcvbuf and rcvbuf // 2,
        held_share=0.8,
        sndbuf_share=0.8 * known.get("sndbuf_share", 0.0),
    )
    verdict = Diagnosis("window", cause=known.get("cause"))
    assert window_cause(info, cell, cell.streams[0], seen, verdict) == WindowCause(*found)
