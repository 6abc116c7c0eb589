"""Counters of an interface, from the order to start to the report.

The frames of an endpoint's flows, headers only: all of them, and true to what TCP counts.
"""

import base64
import json

import pytest
from lab import Lab, firewall
from processes import eventually
from talk import Line, Talk, completed, flowing, joined, ran, report_of, reports, settings, started, stopped

from rigctl.model.capture import retransmits_seen, segments

COUNTERS = ("rx_bytes", "rx_packets", "rx_dropped", "rx_errors", "tx_bytes", "tx_packets", "tx_dropped", "tx_errors")


def test_what_went_through_the_interface_is_in_the_report(lab: Lab) -> None:
    report, sent = ran(lab.start, until=10_000_000, extra="interface=lo")
    payload = report.totals[0]["bytes"]
    # One way: payload, at least 66 bytes of headers to each packet; the other way only acknowledgements.
    assert payload < report.last["rx_bytes"] < 1.05 * (payload + sent.totals[0]["retransmitted_bytes"])
    assert report.last["rx_packets"] == report.last["tx_packets"]  # the loopback's own
    assert report.last["rx_bytes"] >= payload + 66 * report.last["rx_packets"] // 2
    assert report.last["rx_dropped"] == 0


@pytest.mark.parametrize("interface", ["", "interface=nosuch"])
def test_an_interface_that_is_not_named_or_not_there_is_unknown(lab: Lab, interface: str) -> None:
    received, _ = ran(lab.start, duration_ms=50, extra=interface)
    assert [received.last[name] for name in (*COUNTERS, "queue_drops", "carrier_changes")] == [None] * 10


def test_an_endpoint_that_failed_before_its_start_has_counted_nothing(lab: Lab) -> None:
    lab.run("ping", "-c", "1", "127.0.0.1")  # the interface's own counters are not 0
    sender = lab.start()
    refused = sender.ask(f"connect endpoint=1 address=127.0.0.1 port=9 bind=127.0.0.1 {settings(extra='interface=lo')}")
    assert refused["error"] == "ECONNREFUSED"
    last = report_of(sender).last
    assert {last[name] for name in (*COUNTERS, "queue_drops", "listen_drops", "node_busy_us", "span_us")} == {None}


def test_drops_of_the_sender_s_queue_are_counted_as_the_kernel_counts_them(lab: Lab) -> None:
    lab.run(*["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "50mbit", "burst", "70k", "limit", "90k"])

    def drops() -> int:
        (qdisc,) = json.loads(lab.run("tc", "-s", "-j", "qdisc", "show", "dev", "lo"))
        return int(qdisc["drops"])

    receiver, sender = lab.start(), lab.start()
    joined(receiver, sender, flows=4, extra="interface=lo window=65536")
    before = drops()
    started(receiver, sender)
    eventually(lambda: drops() > before)
    _, sent = stopped(receiver, sender)
    assert sent.last["queue_drops"] == drops() - before


def test_a_link_that_goes_and_comes_back_changes_its_carrier_twice(lab: Lab) -> None:
    lab.run("ip", "link", "set", "v1", "up")
    receiver, sender, _ = flowing(lab.start, duration_ms=50, extra="interface=v0")
    for state in ("down", "up"):
        lab.run("ip", "link", "set", "v1", state)
    received, _ = reports(receiver, sender)
    assert received.last["carrier_changes"] == 2


SIZE, PIECES = 1000, 150
"""All frames of so few bytes fit into the buffer of the agent's packet socket: none is lost, however late it is."""


def cut(lab: Lab) -> None:
    """Give each segment of Ethernet's size a frame of its own."""
    lab.run("ip", "link", "set", "lo", "mtu", "1500")
    lab.run("ethtool", "-K", "lo", "gso", "off", "tso", "off")


Capture = tuple[Line, bytes, list[Line]]
"""The counts, the file and the totals of a report."""


def capture_of(agent: Talk) -> Capture:
    lines = agent.answer(agent.send("report endpoint=1"))
    (counts,) = (line["capture"] for line in lines if "capture" in line)
    pcap = b"".join(base64.b64decode(line["pcap"], validate=True) for line in lines if "pcap" in line)
    assert len(pcap) == counts["bytes"]
    return counts, pcap, [line for line in lines if "bytes" in line and "flow" in line]


def captured(lab: Lab, capture: int, extra: str = "", flows: int = 1) -> tuple[list[Capture], int]:
    what = f"interface=lo test=blast size={SIZE} {extra}".strip()
    receiver, sender, port = flowing(lab.start, f"iterations={PIECES} capture={capture}", extra=what, flows=flows)
    completed(receiver, sender)
    return [capture_of(receiver), capture_of(sender)], port


def test_every_byte_of_a_flow_is_in_a_frame(lab: Lab) -> None:
    (_, (counts, pcap, totals)), port = captured(lab, 67108864, flows=2)
    assert (counts["lost"], counts["cut"]) == (0, False)
    # On a busy machine TCP may send again what was not lost, so bytes are counted by their numbers, from the first on.
    began: dict[bytes, int] = {}
    reached: dict[bytes, int] = {}
    for one in segments(pcap):
        if one.destination_port == port:
            start = began.setdefault(one.flow, one.sequence)
            reached[one.flow] = max(reached.get(one.flow, 0), (one.sequence - start) % 2**32 + one.payload)
    assert sorted(reached.values()) == sorted(line["bytes"] for line in totals) == [SIZE * PIECES] * 2
    # Segments that TCP cut otherwise when it sent them again are not told apart; of none there is nothing to cut.
    again = sum(line["retransmits"] for line in totals)
    assert (retransmits_seen(pcap, port, totals[0]["mss"]) > 0) == (again > 0)


def test_segments_sent_again_are_those_that_tcp_counts(lab: Lab) -> None:
    cut(lab)
    firewall(lab, "meta l4proto tcp ip length > 500 numgen inc mod 10 == 5 counter drop")
    (_, (counts, pcap, totals)), port = captured(lab, 67108864, "congestion=reno")
    assert (counts["lost"], counts["cut"]) == (0, False)
    assert totals[0]["retransmits"] > 0
    # A probe of the tail's loss may be a segment that was never lost: TCP counts it, and so does the capture.
    assert retransmits_seen(pcap, port, totals[0]["mss"]) == pytest.approx(totals[0]["retransmits"], rel=0.05, abs=2)


def test_a_full_file_is_cut_and_says_so(lab: Lab) -> None:
    cut(lab)
    ((counts, pcap, _), _), _ = captured(lab, 4096)
    assert counts["cut"]
    assert len(pcap) <= 4096
    assert counts["frames"] > 30
    assert list(segments(pcap))
