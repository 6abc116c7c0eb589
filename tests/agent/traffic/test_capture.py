"""The frames of an endpoint's flows, headers only: all of them, and true to what TCP counts."""

import base64

import pytest
from lab import Lab, firewall
from talk import Line, Talk, completed, flowing

from rigctl.model.capture import retransmits_seen, segments

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
