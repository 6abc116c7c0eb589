"""The agent protocol's lines: orders out, answers, events and reports in."""

import json
import random
from typing import Any

import pytest
from wire import HELLO, LAST, TOTALS

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import (
    VERSION,
    Answer,
    Ended,
    FlowBins,
    FlowRows,
    FlowTotals,
    Hello,
    Part,
    Progress,
    parse_line,
)
from rigctl.protocol.orders import Clock, Connect, Listen, Set, Sockets, Start, encoded
from rigctl.protocol.report import endpoint_report
from rigctl.settings import CONGESTION, MSS, NODELAY, WINDOW, Settings


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def broken(raw: bytes) -> str:
    with pytest.raises(NodeError) as caught:
        parse_line("pi1", raw)
    assert caught.value.node == "pi1"
    return str(caught.value)


def rows(first: int, values: list[list[int]], flow: int = 0) -> FlowRows:
    message = parse_line(
        "pi1", line({"id": 8, "flow": flow, "from": first, "columns": ["t_ns", "bytes"], "rows": values})
    )
    assert isinstance(message, FlowRows)
    return message


def totals(flow: int = 0) -> FlowTotals:
    message = parse_line("pi1", line(TOTALS | {"flow": flow}))
    assert isinstance(message, FlowTotals)
    return message


def test_an_order_is_one_line_and_leaves_out_what_is_not_asked_for() -> None:
    assert Clock().to_line(1) == b"1 clock\n"
    assert Start(3, at_ns=5, duration_ms=1000).to_line(2) == b"2 start endpoint=3 at_ns=5 duration_ms=1000\n"
    sockets = Sockets(
        "ab" * 16, flows=5, interval_ms=100, wait_ms=5000, settings=Settings({WINDOW: 65536, NODELAY: False})
    )
    order = Listen(1, "10.77.0.2", sockets)
    assert order.to_line(7) == (
        b"7 listen endpoint=1 address=10.77.0.2 token=" + b"ab" * 16 + b" flows=5 interval_ms=100 wait_ms=5000"
        b" window=65536 nodelay=0\n"
    )


OF_SOCKET = {"mss": MSS, "window": WINDOW}


@pytest.mark.parametrize(
    ("key", "value"),
    [("flows", 129), ("mss", 87), ("window", 0), ("endpoint", 65536), ("wait_ms", 0), ("interval_ms", 60001)],
)
def test_an_order_out_of_bounds_is_never_sent(key: str, value: int) -> None:
    keys: dict[str, Any] = {"token": "0" * 32, "flows": 1, "interval_ms": 100, "wait_ms": 100}
    keys |= {"settings": Settings({OF_SOCKET[key]: value})} if key in OF_SOCKET else {key: value}
    endpoint = keys.pop("endpoint", 1)
    with pytest.raises(ValueError, match=f"listen: {key}={value} is not within"):
        Listen(endpoint, "::1", Sockets(**keys)).to_line(1)


@pytest.mark.parametrize("congestion", ["", "cubic quit", "cubic\n2 quit", "cubic\0", "kübik", "x" * 800])
def test_an_order_cannot_smuggle_in_another(congestion: str) -> None:
    order = Connect(1, "::1", 5, "::1", Sockets("0" * 32, 1, 100, 100, settings=Settings({CONGESTION: congestion})))
    with pytest.raises(ValueError, match="congestion"):
        order.to_line(1)


def test_events_are_read() -> None:
    assert parse_line("pi1", line(HELLO)) == Hello(VERSION, "0.1.0", "x86_64", 4711, 4, 123)
    progress = {"event": "progress", "clock_ns": 9, "bytes": {"1": 123, "4": 456}}
    assert parse_line("pi1", line(progress)) == Progress(9, {1: 123, 4: 456})
    ended = {"event": "ended", "endpoint": 1, "error": "ECONNRESET", "message": "flow 2: recv"}
    assert parse_line("pi1", line(ended)) == Ended(1, "ECONNRESET", "flow 2: recv")
    assert parse_line("pi1", line(ended | {"error": None, "message": None})) == Ended(1, None, None)


def test_answers_are_read() -> None:
    assert parse_line("pi1", b'{"id":2,"ok":true,"port":40001}\n') == Answer(2, True, numbers={"port": 40001})
    refused = b'{"id":7,"ok":false,"error":"EADDRNOTAVAIL","message":"bind 10.77.0.9: no"}\n'
    assert parse_line("pi1", refused) == Answer(7, False, "EADDRNOTAVAIL", "bind 10.77.0.9: no")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"Welcome to pi1!\n", "one JSON object"),
        (b'{"id":1,"ok":tr\n', "one JSON object"),
        (b"[1]\n", "one JSON object"),
        (b'{"id":1,"id":1,"ok":true}\n', "one JSON object"),
        (b'{"id":1,"ok":true,"port":NaN}\n', "one JSON object"),
        (b'{"id":1,"ok":true,"port":"\xff"}\n', "one JSON object"),
        (b"[" * 16000 + b"\n", "one JSON object"),
        (b'{"id":1,"ok":true,"port":' + b"9" * 9000 + b"}\n", "one JSON object"),
        (b'{"id":1,"ok":true,"port":99999999999999999999}\n', '"port" to be a whole number'),
        (b'{"id":1,"ok":true,"port":-1}\n', '"port" to be a whole number'),
        (b'{"id":1,"ok":true,"port":1.5}\n', '"port" to be a whole number'),
        (b'{"id":1,"ok":true,"port":true}\n', '"port" to be a whole number'),
        (b'{"id":0,"ok":true}\n', '"id" to be a whole number from 1'),
        (b'{"id":"1","ok":true}\n', '"id" to be a whole number from 1'),
        (b'{"id":1,"ok":1}\n', '"ok" to be true or false'),
        (b'{"id":1,"ok":false,"error":"EIO"}\n', 'expected "message"'),
        (b'{"id":1,"ok":true}', "a whole line"),
        (b'{"event":"busy","place":0}\n', '"place" to be a whole number from 1'),
        (b'{"ok":true}\n', 'an answer with "id"'),
        (b'{"event":"party"}\n', "hello, busy, progress or ended"),
        (line({**HELLO, "mood": "fine"}), 'no "mood"'),
        (line({"event": "progress", "clock_ns": 1, "bytes": {"x": 1}}), "bytes by endpoint"),
        (line({"event": "progress", "clock_ns": 1, "bytes": [1]}), "bytes by endpoint"),
        (line({**TOTALS, "timestamps": 1}), '"timestamps" to be true or false'),
        (line({**TOTALS, "bytes": None}), '"bytes" to be a whole number'),
        (line({k: v for k, v in TOTALS.items() if k != "mss"}), 'expected "mss"'),
        (line({"id": 1, "flow": 0, "from": 0, "columns": ["t_ns", "bytes"], "rows": [[1]]}), '"rows" of 2 numbers'),
        (line({"id": 1, "flow": 0, "from": 0, "columns": ["t_ns"], "rows": [[1]]}), '"columns" to be'),
        (line({"id": 1, "flow": 0, "from": 0, "columns": [["t_ns"]], "rows": [[1]]}), '"columns" to be'),
        (line({"id": 1, "flow": 0, "from": 0, "columns": ["t_ns", "bytes"], "rows": [[1, None]]}), "whole numbers"),
        (b'{"id":1,"ok":true}' + b" " * 20000 + b"\n", "at most 16384 bytes"),
    ],
)
def test_rubbish_is_refused_with_what_was_expected(raw: bytes, expected: str) -> None:
    message = broken(raw)
    assert message.startswith("pi1: the agent violated the protocol: expected ")
    assert expected in message
    assert len(message) < 400
    assert message.isprintable()


def test_the_line_at_fault_is_shown_escaped() -> None:
    assert broken(b"\x1b[2J\x00\xffhello\n").endswith("got: \\x1b[2J\\x00\\xffhello")


def test_no_line_whatever_raises_anything_but_a_node_error() -> None:
    random_bytes = random.Random(4711)
    whole = line(TOTALS)
    for _ in range(2000):
        damaged = bytearray(whole)
        for _ in range(random_bytes.randint(1, 4)):
            damaged[random_bytes.randrange(len(damaged) - 1)] = random_bytes.randrange(256)
        try:
            parse_line("pi1", bytes(damaged))
        except NodeError:
            continue


def test_samples_come_back_from_their_differences() -> None:
    parts: list[Part] = [totals(), rows(0, [[100, 5], [200, 9]]), rows(2, [[50, 0]])]
    report = endpoint_report("pi1", parts, Answer(8, True, numbers=dict(LAST)))
    assert report.flows[0].columns == {"t_ns": [100, 300, 350], "bytes": [5, 14, 14]}
    assert (report.endpoint, report.span_us, report.cpus) == (1, 5001000, 4)


def test_a_last_sample_a_moment_before_the_one_before_is_put_beside_it() -> None:
    parts: list[Part] = [totals(), rows(0, [[100_000, 5], [50_000, 9], [-1222, 1]])]
    report = endpoint_report("pi1", parts, Answer(8, True, numbers=dict(LAST)))
    assert report.flows[0].columns == {"t_ns": [100_000, 150_000, 150_000], "bytes": [5, 14, 15]}


@pytest.mark.parametrize(
    "parts",
    [
        [totals(), totals()],
        [totals(1)],
        [rows(0, [[1, 1]])],
        [totals(), rows(1, [[1, 1]])],
        [totals(), rows(0, [[1, 1]]), rows(0, [[1, 1]])],
        [totals(), rows(0, [[5, 5], [-6, 0]])],
        [totals(), rows(0, [[2_000_000, 5], [-1_000_001, 0]])],
        [totals(), rows(0, [[2**62, 0]] * 3)],
    ],
)
def test_a_report_that_does_not_fit_together_is_refused(parts: list[FlowTotals | FlowRows]) -> None:
    with pytest.raises(NodeError, match="pi1: the agent violated the protocol"):
        endpoint_report("pi1", parts, Answer(8, True, numbers=dict(LAST)))


def test_an_answer_to_a_host_setting_holds_its_texts() -> None:
    answer = parse_line("pi1", line({"id": 5, "ok": True, "old": "4096 1 2", "value": "7"}))
    assert answer == Answer(5, True, numbers={}, texts={"old": "4096 1 2", "value": "7"})
    with pytest.raises(NodeError, match='"old" to be a text'):
        parse_line("pi1", line({"id": 5, "ok": True, "old": 1500, "value": "7"}))


def test_the_text_of_a_setting_is_one_word_of_its_order() -> None:
    order = Set("sysctl", encoded("4096 131072 6291456 %ü"), encoded("net.ipv4.tcp_rmem"))
    assert order.to_line(3) == b"3 set kind=sysctl value=4096%20131072%206291456%20%25%C3%BC name=net.ipv4.tcp_rmem\n"


def test_flows_come_in_the_order_of_their_numbers() -> None:
    report = endpoint_report("pi1", [totals(1), totals(0)], Answer(8, True, numbers=dict(LAST)))
    assert [flow.totals.flow for flow in report.flows] == [0, 1]


def test_bins_come_in_pieces_that_follow_each_other() -> None:
    first = parse_line("pi1", line({"id": 8, "flow": 0, "bin_us": 500, "from": 0, "bins": [0, 7]}))
    second = parse_line("pi1", line({"id": 8, "flow": 0, "bin_us": 500, "from": 2, "bins": [2**32 - 1]}))
    assert isinstance(first, FlowBins)
    assert isinstance(second, FlowBins)
    last = Answer(8, True, numbers=dict(LAST))
    (flow,) = endpoint_report("pi1", [totals(), first, second], last).flows
    assert (flow.bin_us, flow.bins) == (500, (0, 7, 2**32 - 1))
    wrongs: list[list[Part]] = [[totals(), second], [first], [totals(), first, first]]
    for wrong in wrongs:
        with pytest.raises(NodeError, match="violated the protocol"):
            endpoint_report("pi1", wrong, last)
    for bins in ([-1], [2**32], [1.5], "12"):
        with pytest.raises(NodeError, match="whole numbers below"):
            parse_line("pi1", line({"id": 8, "flow": 0, "bin_us": 500, "from": 0, "bins": bins}))
