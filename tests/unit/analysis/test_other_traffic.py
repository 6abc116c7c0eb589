"""Other traffic on a link: what the nodes' interfaces counted beyond what the run put there, and the limit it makes."""

from dataclasses import replace
from typing import Any

import builders
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.model.limits.evidence import Evidence
from rigctl.records import Link, NicCounters, Pair, Repetition
from rigctl.report.words.limits import bottleneck_findings, bottleneck_text

LINKS = {"pi1": Link(10**8, 1500), "pi2": Link(10**8, 1500)}
HEADERS = 66  # Ethernet, IP and TCP with timestamps, as an interface counts them
BUSY = {"busy_us": 10_000_000, "rwnd_limited_us": 0, "sndbuf_limited_us": 0, "rtt_us": 9000, "rtt_min_us": 20}


def measured(mbps: float, received: dict[str, int], sent: dict[str, int] | None = None, **sender: Any) -> Repetition:
    """10 s of one flow from pi1 to pi2, with what the interfaces counted."""
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), parallel=1, window_bytes=None, mss=None)
    one = builders.repetition(cell, (mbps,), sender={**BUSY, **sender})
    counted = {"pi1": NicCounters(**(sent or {})), "pi2": NicCounters(**received)}
    return replace(one, nodes=tuple(replace(usage, nic=counted[usage.node]) for usage in one.nodes))


def judged(one: Repetition) -> tuple[CellSummary, Evidence]:
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), parallel=1, window_bytes=None, mss=None)
    facts = {name: builders.facts(speed_bps=None) for name in LINKS}
    info = builders.run(builders.plan([cell], virtual=None, links=LINKS), facts=facts)
    frames = load(info, [one])
    ((seen,),) = (streams.values() for streams in frames.derived.seen.values())
    return summaries(frames)[0], seen


def own_bytes(mbps: float, packet_payload: int = 1448) -> dict[str, int]:
    """What an interface counts of a flow of 10 s, in packets of `packet_payload` bytes."""
    payload = round(mbps * 1e6 * 10 / 8)
    packets = payload // packet_payload
    return {"rx_bytes": payload + packets * HEADERS, "rx_packets": packets}


def with_others(mbps: float, others_mbps: float, packet_payload: int = 1448) -> dict[str, int]:
    """The same with other traffic in full frames; `others_mbps` as the wire carries it."""
    own, frames = own_bytes(mbps, packet_payload), round(others_mbps * 1e6 * 10 / 8 / 1538)
    return {"rx_bytes": own["rx_bytes"] + frames * 1514, "rx_packets": own["rx_packets"] + frames}


@pytest.mark.parametrize("packet_payload", [1448, 43_440])  # frames, and super-packets of 30 with one header
def test_what_an_interface_counts_beyond_the_run_is_other_traffic(packet_payload: int) -> None:
    summary, seen = judged(measured(55.0, with_others(55.0, 40.0, packet_payload), segs_out=47_500))
    assert seen.other_mbps == pytest.approx(40.0, rel=0.06)
    assert seen.other_mbps is not None
    assert seen.other_mbps <= 40.05  # never more than there was
    assert summary.limit == "other-traffic"
    text = bottleneck_text(summary)
    assert text.startswith("Limited by other traffic: pi2's eth0 received ")
    assert "the link to pi2 was" in text
    (found,) = bottleneck_findings([summary])
    assert "the link to pi2" in (found.remedy or "")


@pytest.mark.parametrize("packet_payload", [1448, 43_440])
def test_a_run_alone_has_no_other_traffic(packet_payload: int) -> None:
    for mbps in (30.0, 80.0):
        summary, seen = judged(measured(mbps, own_bytes(mbps, packet_payload), segs_out=round(mbps * 863.3)))
        assert seen.other_share == pytest.approx(0.0, abs=0.001)
        assert summary.limit != "other-traffic"


def test_the_sending_interface_is_looked_at_too() -> None:
    counts = with_others(60.0, 33.0)
    sent = {"tx_bytes": counts["rx_bytes"], "tx_packets": counts["rx_packets"]}
    summary, seen = judged(measured(60.0, own_bytes(60.0), sent, segs_out=51_800))
    assert (summary.limit, seen.other_link) == ("other-traffic", "from pi1")
    assert "pi1's eth0 sent " in bottleneck_text(summary)


def test_without_counters_it_is_unknown() -> None:
    summary, seen = judged(measured(55.0, {}))
    assert seen.other_share is seen.link_share is None
    assert summary.limit != "other-traffic"


def test_segments_lost_before_the_interface_do_not_hide_other_traffic() -> None:
    """A tenth of the segments was sent twice: the receiver's own count of segments says that they did not arrive."""
    one = measured(55.0, with_others(55.0, 40.0), segs_out=52_200, retransmitted_bytes=6_878_000)
    (flow,) = one.flows
    assert flow.receiver is not None
    arrived = replace(flow, receiver=builders.counting(flow.receiver, segs_in=47_500))
    _, blind = judged(one)
    _, seen = judged(replace(one, flows=(arrived,)))
    assert seen.other_mbps == pytest.approx(40.0, rel=0.06)
    assert blind.other_mbps is not None
    assert seen.other_mbps is not None
    assert blind.other_mbps < seen.other_mbps  # a lower bound


def test_a_link_that_is_neither_full_nor_free_of_others_leaves_a_shaper_open() -> None:
    summary, seen = judged(measured(55.0, with_others(55.0, 28.0), segs_out=47_500))
    assert seen.link_share == pytest.approx(0.865, abs=0.02)
    assert (summary.limit, summary.verdict.cause) == ("unknown", "traffic")
    (found,) = bottleneck_findings([summary])
    assert found.text.startswith("Limit unknown: test 1; pi2's eth0 received ")
