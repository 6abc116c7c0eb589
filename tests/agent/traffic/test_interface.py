"""Counters of an interface, from the order to start to the report."""

import json

import pytest
from lab import Lab
from processes import eventually
from talk import flowing, joined, ran, reports, started, stopped

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
