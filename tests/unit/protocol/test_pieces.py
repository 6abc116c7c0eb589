"""Histograms, captures and texts on lines of their own: what is taken, what is refused, how pieces become one."""

import base64
import json
from typing import Any

import pytest
from builders import TOP_NS, bucket_of
from wire import HELLO, LAST, TOTALS

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import (
    LINE_LIMIT,
    MOST,
    Answer,
    Captured,
    Ended,
    FlowBins,
    FlowBuckets,
    FlowDatagrams,
    FlowTotals,
    Hello,
    Part,
    PcapPiece,
    parse_line,
)
from rigctl.protocol.report import MOST_BIN_US, MOST_BUCKET, Capture, endpoint_report

COUNTS = {"frames": 3, "lost": None, "bytes": 5, "cut": False}


def parsed(**value: Any) -> Any:
    return parse_line("pi1", json.dumps({"id": 8, **value}).encode() + b"\n")


def refused(**value: Any) -> str:
    """What was expected, as the message says."""
    with pytest.raises(NodeError) as caught:
        parsed(**value)
    return str(caught.value).partition("expected ")[2].partition(", got")[0]


def report(*parts: Part, **last: Any) -> Any:
    return endpoint_report("pi1", parts, Answer(8, True, numbers=LAST | last))


def broken(*parts: Part, **last: Any) -> str:
    with pytest.raises(NodeError) as caught:
        report(*parts, **last)
    return str(caught.value).partition("expected ")[2]


def totals(flow: int = 0, **fields: Any) -> FlowTotals:
    made = parsed(**(TOTALS | {"flow": flow} | fields))
    assert isinstance(made, FlowTotals)
    return made


def test_buckets_are_pairs_of_whole_numbers() -> None:
    assert parsed(flow=2, buckets=[[3, 4], [0, MOST]]) == FlowBuckets(8, 2, [(3, 4), (0, MOST)])
    assert parsed(flow=0, buckets=[]) == FlowBuckets(8, 0, [])


@pytest.mark.parametrize(
    "buckets", [None, {}, "12", [3, 4], [[3]], [[3, 4, 5]], ["34"], [[3, -1]], [[3, MOST + 1]], [[3, 1.0]], [[True, 1]]]
)
def test_anything_else_is_no_histogram(buckets: object) -> None:
    assert refused(flow=0, buckets=buckets) == '"buckets" of two whole numbers each'


def test_buckets_have_a_flow_and_nothing_else() -> None:
    assert refused(buckets=[]) == '"flow"'
    assert refused(flow=-1, buckets=[]) == '"flow" to be a whole number from 0'
    assert refused(flow=0, buckets=[], more=1) == 'no "more"'


def test_pieces_of_a_histogram_become_one_that_holds_every_round_trip() -> None:
    timed = totals(round_trips=7)
    (flow,) = report(timed, FlowBuckets(8, 0, [(1, 2), (5, 4)]), FlowBuckets(8, 0, [(9, 1)])).flows
    assert flow.buckets == ((1, 2), (5, 4), (9, 1))
    assert broken(timed, FlowBuckets(8, 0, [(5, 4), (1, 3)])) == "buckets of flow 0 in rising order"
    assert broken(timed, FlowBuckets(8, 0, [(5, 4), (5, 3)])) == "buckets of flow 0 in rising order"


def test_numbers_that_would_take_memory_later_are_refused() -> None:
    assert bucket_of(TOP_NS) == MOST_BUCKET
    over = FlowBuckets(8, 0, [(MOST_BUCKET + 1, 7)])
    assert broken(totals(round_trips=7), over) == f"buckets of flow 0 up to {MOST_BUCKET}"
    wide = FlowBins(8, 0, MOST_BIN_US + 1, 0, [1])
    assert broken(totals(), wide) == f"bins of flow 0 of at most {MOST_BIN_US} us"


def test_pieces_of_a_histogram_hold_every_round_trip() -> None:
    timed = totals(round_trips=7)
    assert broken(timed, FlowBuckets(8, 0, [(5, 6)])) == "buckets of flow 0 that hold its 7 round trips"
    assert broken(totals(), FlowBuckets(8, 0, [(5, 6)])) == "buckets of flow 0 that hold its None round trips"
    assert broken(totals(), FlowBuckets(8, 1, [])) == "totals of every flow from 0, got those of [0]"


def datagrams(flow: int = 0) -> FlowDatagrams:
    names = ("refused", "duplicates", "reordered", "strays", "highest", "overflow", "jitter_ns", "jitter_max_ns")
    made = parsed(flow=flow, datagrams=9, burst=None, segmented=None, **dict.fromkeys(names))
    assert isinstance(made, FlowDatagrams)
    return made


def test_losses_of_datagrams_are_a_histogram_that_need_not_add_up_to_round_trips() -> None:
    (flow,) = report(totals(), datagrams(), FlowBuckets(8, 0, [(1, 5)])).flows
    assert (flow.datagrams, flow.buckets) == (datagrams(), ((1, 5),))
    timed = totals(round_trips=3)
    assert broken(timed, datagrams(), FlowBuckets(8, 0, [(1, 5)])) == "buckets of flow 0 that hold its 3 round trips"


def test_one_flow_has_one_line_of_totals_and_one_of_datagrams() -> None:
    assert broken(totals(), totals()) == "one line of totals for flow 0, got two"
    assert broken(totals(), datagrams(), datagrams()) == "one line of datagrams for flow 0, got two"
    assert broken(totals(1)) == "totals of every flow from 0, got those of [1]"
    assert broken(totals(), datagrams(1)) == "totals of every flow from 0, got those of [0]"


def test_a_capture_is_counts_and_pieces_in_base64() -> None:
    assert parsed(capture=COUNTS) == Captured(8, 3, None, 5, False)
    assert parsed(capture=COUNTS | {"lost": 0, "cut": True}) == Captured(8, 3, 0, 5, True)
    assert parsed(pcap=base64.b64encode(b"\0\xff~").decode()) == PcapPiece(8, b"\0\xff~")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"capture": 7}, '"capture" to be counts'),
        ({"capture": [7]}, '"capture" to be counts'),
        ({"capture": {"frames": 1}}, '"lost"'),
        ({"capture": COUNTS | {"more": 1}}, 'no "more"'),
        ({"capture": COUNTS | {"cut": 1}}, '"cut" to be true or false'),
        ({"capture": COUNTS | {"cut": None}}, '"cut" to be true or false'),
        ({"capture": COUNTS | {"lost": -1}}, '"lost" to be a whole number from 0'),
        ({"capture": COUNTS | {"frames": None}}, '"frames" to be a whole number from 0'),
        ({"capture": COUNTS | {"bytes": "5"}}, '"bytes" to be a whole number from 0'),
        ({"capture": COUNTS, "flow": 0}, 'no "flow"'),
        ({"pcap": "abc"}, '"pcap" in base64'),
        ({"pcap": "ab c="}, '"pcap" in base64'),
        ({"pcap": 5}, '"pcap" to be a text'),
        ({"pcap": "", "flow": 0}, 'no "flow"'),
    ],
)
def test_a_capture_that_is_none_is_refused_by_what_was_expected(value: dict[str, Any], expected: str) -> None:
    assert refused(**value) == expected


def test_the_pieces_of_a_capture_are_as_long_as_was_said() -> None:
    counts = Captured(8, 3, 1, 5, True)
    found = report(PcapPiece(8, b"abc"), counts, PcapPiece(8, b"de"))
    assert found.capture == Capture(3, 1, True, b"abcde")
    assert report(totals()).capture is None
    assert broken(counts, PcapPiece(8, b"abc")) == "a capture of 5 bytes, got 3"
    assert broken(counts) == "a capture of 5 bytes, got 0"
    assert broken(PcapPiece(8, b"abc")) == "a capture of 0 bytes, got 3"


def test_the_interface_is_unknown_where_none_of_its_counters_is_known() -> None:
    names = [name for name in LAST if name.startswith(("rx_", "tx_", "queue_", "carrier_"))]
    assert report(**dict.fromkeys(names)).nic is None
    assert report(**(dict.fromkeys(names) | {"tx_bytes": 0})).nic == dict.fromkeys(names) | {"tx_bytes": 0}
    assert broken(endpoint=0) == '"endpoint" to be a whole number from 1'
    assert broken(strangers=None) == '"strangers" to be a whole number from 0'
    assert broken(more=1) == 'no "more"'


def event(**value: Any) -> Any:
    return parse_line("pi1", json.dumps(value).encode() + b"\n")


def test_an_event_has_the_texts_it_should() -> None:
    assert isinstance(event(**HELLO), Hello)
    assert event(event="ended", endpoint=2, error=None, message=None) == Ended(2, None, None)
    for wrong in (
        HELLO | {"agent": None},
        HELLO | {"machine": 5},
        HELLO | {"unrestored": 5},
        HELLO | {"restored": None},
    ):
        with pytest.raises(NodeError, match='expected "'):
            event(**wrong)
    with pytest.raises(NodeError, match='"endpoint" to be a whole number from 1'):
        event(event="ended", endpoint=0, error=None, message=None)
    with pytest.raises(NodeError, match='"error" to be a text'):
        event(event="ended", endpoint=1, error=5, message=None)


@pytest.mark.parametrize("name", ["x", "", "-1", "²", "123456", "1.0"])
def test_progress_is_by_the_numbers_of_endpoints(name: str) -> None:
    assert event(event="progress", clock_ns=5, bytes={"1": 0, "65535": 9}).bytes == {1: 0, 65535: 9}
    with pytest.raises(NodeError, match='"bytes" to be bytes by endpoint'):
        event(event="progress", clock_ns=5, bytes={name: 1})


def test_a_line_of_the_most_bytes_is_taken_and_one_more_is_not() -> None:
    head = b'{"id": 8, "ok": true, "value": "'
    for length in (LINE_LIMIT, LINE_LIMIT + 1):
        line = head + b"x" * (length - len(head) - 3) + b'"}\n'
        assert len(line) == length
        if length == LINE_LIMIT:
            assert isinstance(parse_line("pi1", line), Answer)
        else:
            with pytest.raises(NodeError, match="at most 16384 bytes per line"):
                parse_line("pi1", line)


def test_a_long_line_at_fault_is_shown_shortened_with_its_length() -> None:
    with pytest.raises(NodeError) as caught:
        parse_line("pi1", b"y" * 121 + b"\n")
    assert str(caught.value).endswith("got: " + "y" * 120 + " … (122 bytes)")
    with pytest.raises(NodeError) as caught:
        parse_line("pi1", b"\x1b" + b"y" * 100 + b"\n")
    assert str(caught.value).endswith(r"got: \x1b" + "y" * 100)
