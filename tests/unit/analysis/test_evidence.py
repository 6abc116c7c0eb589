"""Evidence for the rules: from samples to a limit, its cause and what would lift it."""

from dataclasses import replace
from itertools import accumulate
from typing import Any

import builders
import pytest
from documents import finding

from rigctl.analysis.limits.evidence import of_flows
from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.model.limits.rules import Evidence, judged
from rigctl.model.window import CommonWindow
from rigctl.records import Cell, Condition, Datagrams, HostSetting, Link, NodeUsage, Pair, Repetition, RunInfo, Series

ONE_PAIR = (Pair("pi1", "pi2"),)
STEPS = 100
TIMES = [builders.BEGIN_NS + step * 100_000_000 for step in range(1, STEPS + 1)]
QUIET = {"busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0, "congestion": "cubic"}


def sampled(rtt_us: int, retransmits: list[int] | None = None, advertised: int = 3_000_000) -> Series:
    """A sender's samples for 10 s."""
    columns: dict[str, list[int]] = {"t_ns": TIMES, "bytes": [step * 1000 for step in range(STEPS)]}
    columns |= {"retransmits": retransmits or [0] * STEPS, "rtt_us": [rtt_us] * STEPS, "cwnd": [5000] * STEPS}
    return Series(columns | {"mss": [1448] * STEPS, "advertised_window": [advertised] * STEPS})


def told(
    cell: Cell, mbps: float, plan: dict[str, Any] | None = None, again: int = 0, **sender: Any
) -> tuple[RunInfo, Repetition, CellSummary]:
    info = builders.run(builders.plan([cell], virtual=None, **(plan or {})))
    one = builders.repetition(cell, (mbps,), (again,), sender={**QUIET, **sender})
    return info, one, summaries(load(info, [one]))[0]


def one_flow(**settings: Any) -> Cell:
    return builders.cell(pairs=ONE_PAIR, parallel=1, **{"window_bytes": None, "mss": None, **settings})


def test_a_queue_that_stands_at_a_constant_rate_is_a_shaper() -> None:
    info, one, summary = told(one_flow(), 285.0, rtt_us=9000, rtt_min_us=200, series=sampled(9000))
    assert (summary.limit, summary.verdict.rule) == ("path", "shaper")
    found = finding(info, [one], "Limited by the path: test 1;")
    assert found.numbers["queue_ms"] == pytest.approx(8.8)
    assert "between pi1 and pi2" in (found.remedy or "")


def test_many_losses_at_a_constant_rate_are_a_policer() -> None:
    lost = [50 * step for step in range(STEPS)]
    _, _, summary = told(one_flow(), 197.0, again=lost[-1], rtt_us=210, rtt_min_us=200, series=sampled(210, lost))
    assert (summary.limit, summary.verdict.cause) == ("path", "policer")


def test_a_bucket_that_runs_empty_and_fills_is_a_policer() -> None:
    seen = replace(varying([8_000_000, -8_000_000] * 20), efficiency=0.2, lost_share=0.05, loss_clumps=50.0)
    assert (judged(seen).limit, judged(seen).cause) == ("path", "policer")
    assert judged(replace(seen, variance_ratio=0.5)).limit == "unknown"


def varying(changes: list[int], flows: int = 1) -> Evidence:
    """Of flows that lose a segment in each interval, with goodput that `changes`."""
    steps = len(changes)
    cell = builders.cell(pairs=ONE_PAIR, parallel=flows, duration_s=steps / 10)
    counted = list(accumulate(10_000_000 + change for change in changes))
    times, lost = TIMES[:steps], [4 * step for step in range(steps)]
    sender = Series({"t_ns": times, "bytes": counted, "retransmits": lost, "rtt_us": [900] * steps})
    made = []
    for flow in builders.flows(cell, (800.0,), None, **QUIET, rtt_min_us=200, series=sender):
        assert flow.receiver is not None
        series = Series({"t_ns": times, "bytes": counted})
        made.append(replace(flow, receiver=replace(flow.receiver, bytes=counted[-1], series=series)))
    return Evidence(**of_flows(made, 800.0, CommonWindow(times[0], times[-1], 0)))


def test_goodput_that_is_regulated_varies_less_over_four_intervals_than_independent_values() -> None:
    less_after_more = varying([5_000_000, -5_000_000] * 20).variance_ratio
    slow = varying(([2_000_000] * 10 + [-2_000_000] * 10) * 2).variance_ratio
    assert less_after_more is not None
    assert slow is not None
    assert less_after_more < 0.05
    assert slow > 2.0
    assert varying([5_000_000, -5_000_000] * 7).variance_ratio is None


def test_unevenness_is_that_of_one_flow_or_of_one_loss() -> None:
    changes = [5_000_000, -5_000_000] * 20
    alone, few, many = (varying(changes, flows).unevenness for flows in (1, 2, 16))
    variation = varying(changes).variation
    assert variation is not None
    assert variation == pytest.approx(0.5, rel=0.05)
    assert alone == pytest.approx(variation * 2, rel=0.05)  # 4 losses in an interval
    assert few == pytest.approx(variation * 8**0.5, rel=0.05)
    assert many == pytest.approx(variation * 8, rel=0.05)


def test_a_rate_that_was_not_sampled_is_not_constant() -> None:
    cell = one_flow()
    (flow,) = builders.flows(cell, (285.0,), None, **QUIET, rtt_min_us=200, series=sampled(9000))
    assert flow.receiver is not None
    window = CommonWindow(builders.BEGIN_NS, builders.BEGIN_NS + 10_000_000_000, 0)
    assert of_flows([flow], 285.0, window)["variation"] is not None
    blind = replace(flow, receiver=replace(flow.receiver, series=Series()))
    assert "variation" not in of_flows([blind], 285.0, window)


SMALL = Condition("small", (HostSetting("sysctl", "4096 16384 20000", "net.ipv4.tcp_rmem"),))
WINDOW: dict[str, Any] = {
    "rtt_us": 9000,
    "rtt_min_us": 8950,
    "rwnd_limited_us": 4_100_000,
    "series": sampled(9000, advertised=11_600),
}


def test_a_window_is_told_with_the_sysctl_that_bounds_it() -> None:
    cell = one_flow(condition="small")
    info = builders.run(builders.plan([cell], virtual=None, conditions=(SMALL,)))
    one = builders.repetition(cell, (10.3,), sender={**QUIET, **WINDOW})
    (flow,) = one.flows
    assert flow.receiver is not None
    one = replace(one, flows=(replace(flow, receiver=replace(flow.receiver, rcvbuf_bytes=20_000)),))
    (summary,) = summaries(load(info, [one]))
    assert (summary.limit, summary.verdict.rule) == ("window", "window in flight")
    assert summary.window_cause is not None
    assert (summary.window_cause.node, summary.window_cause.value) == ("pi2", "4096 16384 20000")
    found = finding(info, [one], "Limited by the receive window: test 1;")
    assert found.remedy == "Raise net.ipv4.tcp_rmem (its third value) on pi2."


def test_a_requested_window_that_the_kernel_cut_names_the_bound() -> None:
    cell = one_flow(window_bytes=65536)
    info, one, _ = told(cell, 10.3, **WINDOW)
    (flow,) = one.flows
    assert flow.receiver is not None
    one = replace(one, flows=(replace(flow, receiver=replace(flow.receiver, rcvbuf_bytes=50_000)),))
    (summary,) = summaries(load(info, [one]))
    assert summary.window_cause is not None
    assert (summary.window_cause.sysctl, summary.window_cause.value) == ("net.core.rmem_max", "212992")
    assert finding(info, [one], "Limited by the receive window").remedy == "Raise net.core.rmem_max on pi2."


def test_a_quota_is_told_with_the_share_of_time() -> None:
    cell = one_flow()
    info, one, _ = told(cell, 400.0)
    usage = tuple(
        NodeUsage(node, span_us=10**7, cpus=4, throttled_us=us) for node, us in (("pi1", 9 * 10**6), ("pi2", 0))
    )
    one = replace(one, nodes=usage)
    (summary,) = summaries(load(info, [one]))
    assert (summary.limit, summary.verdict.cause) == ("sender", "quota")
    assert "cpu.max" in (finding(info, [one], "Limited by the sender").remedy or "")
    row = load(info, [one]).derived.pairs[0]
    assert row["limit_detail"].startswith("quota: quota_sender 0.9")


def test_a_line_full_of_small_frames_is_limited_by_the_mtu() -> None:
    links = {"pi1": Link(10**9, 9000), "pi2": Link(10**9, 1500)}
    _, _, summary = told(one_flow(), 941.0, {"links": links}, pmtu=1500)
    assert summary.limit == "mtu"
    assert summary.verdict.numbers["larger_frames"] == pytest.approx(8948 / 9038 * 1538 / 1448)
    _, _, summary = told(one_flow(mss=1460), 941.0, {"links": links}, pmtu=1500)
    assert summary.limit == "line-rate"  # that MSS was requested


def test_pairs_that_fill_a_link_together_are_limited_by_it() -> None:
    cell = builders.cell(pairs=(Pair("pi1", "pi3"), Pair("pi2", "pi3")), parallel=1, window_bytes=None)
    info = builders.run(builders.plan([cell], virtual=None))
    one = builders.repetition(cell, (600.0, 340.0))
    (summary,) = summaries(load(info, [one]))
    assert {row["limit"] for row in load(info, [one]).derived.pairs} == {"shared-link"}
    assert summary.limit == "shared-link"
    assert summary.verdict.numbers["shared_share"] == pytest.approx(0.998, abs=0.001)


def datagrams(
    sent: int | None, came: int | None, overflow: int | None = None, counted: list[int] | None = None
) -> Evidence:
    """Of one flow of datagrams of 1,250 bytes; its receiver had `counted` bytes after each tenth of a second."""
    cell = one_flow(transport="udp", duration_s=len(counted or STEPS * [0]) / 10)
    (flow,) = builders.flows(cell, (800.0,))
    assert flow.sender is not None
    assert flow.receiver is not None
    sender = replace(flow.sender, datagrams=Datagrams(sent or 0), series=Series())
    series = Series({"t_ns": TIMES[: len(counted)], "bytes": counted}) if counted else Series()
    here = None if came is None else Datagrams(came, overflow=overflow)
    receiver = replace(flow.receiver, bytes=1250 * (came or 0), datagrams=here, series=series)
    made = replace(flow, sender=sender, receiver=receiver)
    window = CommonWindow(TIMES[0], TIMES[len(counted or TIMES) - 1], 0)
    return Evidence(**of_flows([made], 800.0, window))


@pytest.mark.parametrize(
    ("counts", "lost_share", "overflow_share"),
    [
        ((1000, 900, 25), 0.1, 0.25),
        ((1000, 900, 0), 0.1, 0.0),
        ((1000, 900, None), 0.1, None),
        ((1000, 1000, 0), 0.0, None),
        ((1000, 1001, 0), 0.0, None),  # a duplicate is no negative loss
        ((1000, 0, 0), None, None),
        ((1000, None, None), None, None),
        ((0, 0, 0), None, None),
    ],
)
def test_lost_datagrams_and_those_that_a_full_buffer_dropped(
    counts: tuple[int, int | None, int | None], lost_share: float | None, overflow_share: float | None
) -> None:
    found = datagrams(*counts)
    assert found.lost_share == pytest.approx(lost_share)
    assert found.overflow_share == overflow_share
    assert (found.variation, found.datagram_evenness) == (None, None)  # nothing was sampled


def test_the_evenness_of_losses_is_their_variance_as_a_share_of_that_of_chance() -> None:
    steps = [900, 800] * 20  # datagrams that came in each tenth of a second, of 1,000 sent
    counted = list(accumulate(1250 * came for came in [0, *steps]))
    found = datagrams(1000 * len(steps), sum(steps), 0, counted)
    assert found.lost_share == pytest.approx(0.15)
    assert found.variation == pytest.approx(50 / 850)
    assert found.datagram_evenness == pytest.approx(50**2 / (850 * 0.15))
    assert datagrams(sum(steps), sum(steps), 0, counted).datagram_evenness is None  # without losses there is no chance
