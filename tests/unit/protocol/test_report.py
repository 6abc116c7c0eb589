"""A report from its lines: how pieces become one side for every flow, and which do not fit together."""

import base64
from dataclasses import fields
from typing import Any

import pytest
from builders import TOP_NS, bucket_of
from known import known
from wire import COUNTS, LAST, TOTALS, parsed

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import Answer
from rigctl.protocol.report import MOST_BUCKET, EndpointReport, endpoint_report
from rigctl.records import Bins, Connections, Datagrams, NicCounters, RequestCounts, StackCounters


def report(*parts: Any, **last: Any) -> EndpointReport:
    return endpoint_report("pi1", parts, Answer(id=8, ok=True, numbers=LAST | last))


def broken(*parts: Any, **last: Any) -> str:
    with pytest.raises(NodeError) as caught:
        report(*parts, **last)
    text = str(caught.value)
    assert text.startswith("pi1: the agent violated the protocol: its report is inconsistent: ")
    return text.partition("expected ")[2]


def totals(flow: int = 0, **fields: Any) -> Any:
    return parsed(**(TOTALS | {"flow": flow} | fields))


def rows(first: int, *values: list[int]) -> Any:
    return parsed(**{"flow": 0, "from": first, "columns": ["t_ns", "bytes"], "rows": list(values)})


def buckets(*values: tuple[int, int], flow: int = 0) -> Any:
    return parsed(flow=flow, buckets=list(values))


def bins(first: int, *values: int, bin_us: int = 500) -> Any:
    return parsed(**{"flow": 0, "bin_us": bin_us, "from": first, "bins": list(values)})


def datagrams(flow: int = 0) -> Any:
    names = ("refused", "duplicates", "reordered", "strays", "highest", "overflow", "jitter_ns", "jitter_max_ns")
    return parsed(flow=flow, datagrams=9, burst=None, segmented=None, **dict.fromkeys(names))


def connections(flow: int = 0, *failed: tuple[str, int]) -> Any:
    return parsed(
        flow=flow,
        connections={"late": None, "retransmits": 3, "unserved": 1, "failed": [list(each) for each in failed]},
    )


REQUESTS = {
    "late": 3,
    "late_max_ns": 4_100_000,
    "late_sum_ns": 52_000_000,
    "held": 1,
    "in_flight_max": 7,
    "unanswered": 2,
    "unsent": 0,
}


def requests(flow: int = 0, **counts: Any) -> Any:
    return parsed(flow=flow, requests=REQUESTS | counts)


def pcap(data: bytes) -> Any:
    return parsed(pcap=base64.b64encode(data).decode())


def test_samples_come_back_from_their_differences_and_bins_from_their_pieces() -> None:
    found = report(totals(), rows(0, [100, 0], [200, 9]), rows(2, [50, 0]), bins(0, 0, 7), bins(2, 2**40))
    assert found.sides[0].series.columns == {"t_ns": [100, 300, 350], "bytes": [0, 9, 9]}
    assert found.sides[0].bins == Bins(0, 500, (0, 7, 2**40))
    assert (found.endpoint, found.usage.span_us, found.usage.cpus, found.usage.node) == (1, 5001000, 4, "pi1")


@pytest.mark.parametrize("back_ns", [1, 1222, 1_000_000])
def test_a_last_sample_a_moment_before_the_one_before_is_put_beside_it(back_ns: int) -> None:
    found = report(totals(), rows(0, [100_000, 5], [2_000_000, 9], [-back_ns, 1]))
    assert found.sides[0].series.columns == {"t_ns": [100_000, 2_100_000, 2_100_000], "bytes": [5, 14, 15]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([rows(1, [1, 1])], "row 0 of flow 0 as the next, with the same columns"),
        ([rows(0, [1, 1]), rows(0, [1, 1])], "row 1 of flow 0 as the next, with the same columns"),
        ([rows(0, [1])], "rows of 2 numbers each"),
        ([rows(0, [5, 5], [-6, 0])], '"t_ns" within 0'),
        ([rows(0, [2_000_000, 5], [-1_000_001, 0])], '"t_ns" to rise from row to row'),
        ([rows(0, *[[2**62, 0]] * 3)], '"t_ns" within 0'),
        ([bins(2, 1)], "bin 0 of flow 0 as the next"),
        ([bins(0, 1), bins(0, 1)], "bin 1 of flow 0 as the next"),
        ([bins(0, 1), bins(1, 1, bin_us=600)], "bin 1 of flow 0 as the next, as wide as those before"),
        ([totals()], "one line of totals for flow 0, got two"),
        ([datagrams(), datagrams()], "one line of datagram counts for flow 0, got two"),
        ([connections(), connections()], "one line of its kind's counts for flow 0, got two"),
        ([requests(), requests()], "one line of its kind's counts for flow 0, got two"),
        ([requests(1)], "totals of every flow from 0, got those of [0]"),
        ([datagrams(1)], "totals of every flow from 0, got those of [0]"),
        ([buckets(flow=1)], "totals of every flow from 0, got those of [0]"),
        ([totals(2)], "totals of every flow from 0, got those of [0, 2]"),
    ],
)
def test_a_report_that_does_not_fit_together_is_refused(values: list[Any], expected: str) -> None:
    assert broken(totals(), *values).startswith(expected)


def test_connections_belong_to_their_flow() -> None:
    first, second = report(totals(), totals(1), connections(1, ("ETIMEDOUT", 2))).sides
    assert (first.kind_counts, second.kind_counts) == (None, Connections((("ETIMEDOUT", 2),), None, 3, 1))


def test_what_the_network_stack_counted_is_unknown_where_none_of_it_is_known() -> None:
    assert known(report().usage.stack).syn_retransmits == 2
    assert report(**dict.fromkeys(each.name for each in fields(StackCounters))).usage.stack is None


def test_flows_come_in_the_order_of_their_numbers() -> None:
    assert [side.bytes for side in report(totals(1, bytes=5), totals(0, bytes=7)).sides] == [7, 5]
    assert broken(totals(1)) == "totals of every flow from 0, got those of [1]"


def test_pieces_of_a_histogram_become_one_that_holds_every_round_trip() -> None:
    (side,) = report(totals(round_trips=7), buckets((1, 2), (5, 4)), buckets((9, 1))).sides
    assert side.histogram == ((1, 2), (5, 4), (9, 1))
    (side,) = report(totals(), datagrams(), buckets((1, 5))).sides  # of losses: it need not add up to round trips
    assert (side.datagrams, side.histogram) == (Datagrams(9), ((1, 5),))
    assert bucket_of(TOP_NS) == MOST_BUCKET


def test_the_counts_of_requests_belong_to_their_flow() -> None:
    first, second = report(totals(), totals(1), requests(1)).sides
    assert (first.kind_counts, second.kind_counts) == (None, RequestCounts(3, 4_100_000, 52_000_000, 1, 7, 2, 0))


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("value", [None, -1, 1.5, "3", 2**62])
def test_a_count_of_requests_is_a_number_that_is_known(name: str, value: object) -> None:
    with pytest.raises(NodeError, match=f'expected "{name}" to be'):
        requests(0, **{name: value})


def test_a_line_of_requests_has_all_counts_and_no_others() -> None:
    with pytest.raises(NodeError, match='expected no "more"'):
        requests(more=1)
    for name in REQUESTS:
        with pytest.raises(NodeError, match=f'expected "{name}"'):
            parsed(flow=0, requests={key: 0 for key in REQUESTS if key != name})


@pytest.mark.parametrize(
    ("round_trips", "parts", "expected"),
    [
        (7, [buckets((5, 4), (1, 3))], "in rising order"),
        (7, [buckets((5, 4), (5, 3))], "in rising order"),
        (7, [buckets((5, 6))], "whose counts add up to its 7 round trips"),
        (None, [buckets((5, 6))], "whose counts add up to its None round trips"),
        (3, [datagrams(), buckets((1, 5))], "whose counts add up to its 3 round trips"),
        (7, [buckets((MOST_BUCKET + 1, 7))], f"up to {MOST_BUCKET}"),
    ],
)
def test_buckets_that_cannot_be_are_refused(round_trips: int | None, parts: list[Any], expected: str) -> None:
    assert broken(totals(round_trips=round_trips), *parts) == f"buckets of flow 0 {expected}"


def test_the_pieces_of_a_capture_are_as_long_as_was_said() -> None:
    counts = parsed(capture=COUNTS)
    found = report(pcap(b"abc"), counts, pcap(b"de"))
    assert (found.capture, found.pcap) == (counts, b"abcde")
    assert report(totals()).capture is None
    assert broken(counts, pcap(b"abc")) == "a capture of 5 bytes, got 3"
    assert broken(counts) == "a capture of 5 bytes, got 0"
    assert broken(pcap(b"abc")) == "a capture of 0 bytes, got 3"
    for text in ("abc", "ab c=", "é"):
        assert broken(counts, parsed(pcap=text))


def test_the_interface_is_unknown_where_none_of_its_counters_is_known() -> None:
    unknown = dict.fromkeys(each.name for each in fields(NicCounters))
    assert report(**unknown).usage.nic is None
    assert report(**(unknown | {"tx_bytes": 0})).usage.nic == NicCounters(tx_bytes=0)


def test_the_last_line_has_its_numbers_and_no_others() -> None:
    for wrong in ({"endpoint": 0}, {"endpoint": None}, {"strangers": None}):
        assert broken(**wrong) == 'numbers for "endpoint" and "strangers"', wrong
    names = ", ".join(sorted(LAST.keys() - {"endpoint"}))
    assert broken(more=1) == f'"endpoint", {names} in its last line'
