"""The agent protocol's lines: orders out; answers, events and parts of reports in."""

import json
import random
from typing import Any

import pytest
from cases import from_file
from wire import COUNTS, HELLO, TOTALS, parsed

from rigctl.base.errors import NodeError
from rigctl.protocol.lines import LINE_LIMIT, MOST_BIN_US, MOST_ON_A_LINE, Answer, FlowTotals, parse_line
from rigctl.protocol.orders import Clock, Connect, Listen, Set, Sockets, Start, encode
from rigctl.settings import CONGESTION, NODELAY, SETTINGS, WINDOW, Settings

TOKEN = "0" * 32


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def broken(raw: bytes) -> str:
    with pytest.raises(NodeError) as caught:
        parse_line("pi1", raw)
    assert caught.value.node == "pi1"
    return str(caught.value)


def test_an_order_is_one_line_and_leaves_out_what_is_not_asked_for() -> None:
    assert Clock().to_line(1) == b"1 clock\n"
    assert Start(3, at_ns=5, duration_ms=1000).to_line(2) == b"2 start endpoint=3 at_ns=5 duration_ms=1000\n"
    sockets = Sockets(TOKEN, 5, interval_ms=100, wait_ms=5000, settings=Settings({WINDOW: 65536, NODELAY: False}))
    keys = f"endpoint=1 address=10.77.0.2 token={TOKEN} flows=5 interval_ms=100 wait_ms=5000 window=65536 nodelay=0"
    assert Listen(1, "10.77.0.2", sockets).to_line(7).decode() == f"7 listen {keys}\n"
    order = Set("sysctl", encode("4096 131072 6291456 %ü"), encode("net.ipv4.tcp_rmem"))
    assert order.to_line(3) == b"3 set kind=sysctl value=4096%20131072%206291456%20%25%C3%BC name=net.ipv4.tcp_rmem\n"


PROGRESS = {"event": "progress", "clock_ns": 1, "bytes": {"1": 1}}
ENDED = {"event": "ended", "endpoint": 1, "error": None, "message": None}
BINS = {"id": 8, "flow": 0, "bin_us": MOST_BIN_US, "from": 2, "bins": [1]}


@pytest.mark.parametrize(
    ("key", "value"),
    [("flows", 129), ("mss", 87), ("window", 0), ("endpoint", 65536), ("wait_ms", 0), ("interval_ms", 60001)],
)
def test_an_order_out_of_bounds_is_never_sent(key: str, value: int) -> None:
    keys: dict[str, Any] = {"token": TOKEN, "flows": 1, "interval_ms": 100, "wait_ms": 100}
    keys |= {"settings": Settings({SETTINGS[key]: value})} if key in SETTINGS else {key: value}
    endpoint = keys.pop("endpoint", 1)
    with pytest.raises(ValueError, match=f"listen: {key}={value} is not within"):
        Listen(endpoint, "::1", Sockets(**keys)).to_line(1)


@pytest.mark.parametrize(("key", "value"), [("endpoint", 1), ("endpoint", 65535), ("duration_ms", 86_400_000)])
def test_both_bounds_of_an_order_may_be_sent(key: str, value: int) -> None:
    keys = {"endpoint": 3, "at_ns": 5, "duration_ms": 1000} | {key: value}
    assert f" {key}={value}" in Start(**keys).to_line(1).decode()


@pytest.mark.parametrize("congestion", ["", "cubic quit", "cubic\n2 quit", "cubic\0", "kübik", "x" * 2400])
def test_an_order_cannot_smuggle_in_another(congestion: str) -> None:
    order = Connect(1, "::1", 5, "::1", Sockets(TOKEN, 1, 100, 100, settings=Settings({CONGESTION: congestion})))
    with pytest.raises(ValueError, match="congestion"):
        order.to_line(1)


@from_file
def test_lines_are_read(value: dict[str, Any], read: dict[str, Any]) -> None:
    message = parse_line("pi1", line(value))
    assert {name: getattr(message, name) for name in read} == read


def test_the_totals_of_a_flow_are_a_side_with_what_the_kernel_granted() -> None:
    totals = parsed(**TOTALS)
    assert isinstance(totals, FlowTotals)
    side = totals.side
    assert (side.bytes, side.first_byte_ns, side.sndbuf_bytes, side.rcvbuf_bytes) == (735_000_000, 1, 131_072, 131_072)
    assert (side.tcp.advertised_window_bytes, side.tcp.timestamps, side[NODELAY]) == (65_536, True, False)
    assert (side.round_trips, side.disk, side.datagrams) == (None, None, None)


def refusal(raw: bytes) -> str:
    message = broken(raw)
    assert len(message) < 400
    assert message.isprintable()
    return message.removeprefix("pi1: the agent violated the protocol: expected ")


@from_file
def test_rubbish_is_refused_with_what_was_expected(raw: bytes, expected: str) -> None:
    assert refusal(raw).startswith(expected)


def test_endless_rubbish_is_refused_with_what_was_expected() -> None:
    assert refusal(b'{"id":1,"ok":true}' + b" " * 20000 + b"\n").startswith("at most 16384 bytes")
    for raw in (b"[" * 16000 + b"\n", b'{"id":1,"ok":true,"port":' + b"9" * 9000 + b"}\n"):
        assert refusal(raw).startswith("one JSON object")


ROWS = {"id": 1, "flow": 0, "from": 0, "columns": ["t_ns", "bytes"], "rows": [[1, 2]]}
BUCKETS = {"id": 8, "flow": 0, "buckets": [[3, 4]]}
COUNTED = "refused duplicates reordered strays highest overflow jitter_ns jitter_max_ns burst segmented"
DATAGRAMS = dict.fromkeys(COUNTED.split()) | {"id": 8, "flow": 0, "datagrams": 9}
NOT_NUMBERS = ([[3, -1]], [[3, MOST_ON_A_LINE + 1]], [[3, 1.0]], [[True, 1]])
NOT_COUNTS = (None, -1, 1.5, "5", True, MOST_ON_A_LINE + 1)


@pytest.mark.parametrize(
    ("value", "key", "wrong"),
    [
        ({"id": 1, "ok": True, "port": 5}, "port", (-1, 1.5, "5", True, MOST_ON_A_LINE + 1, [1])),
        ({"id": 5, "ok": True, "old": "1", "value": "7"}, "old", (1500, None)),
        (HELLO, "agent", (None, 5)),
        (HELLO, "machine", (5,)),
        (HELLO, "unrestored", (5,)),
        (HELLO, "restored", NOT_COUNTS),
        ({"event": "busy", "place": 1}, "place", (0, None)),
        (PROGRESS, "bytes", ([1], {"1": -1}, *({name: 1} for name in ("x", "", "-1", "²", "123456", "1.0", " 1")))),
        (ENDED, "endpoint", (0, None)),
        (ENDED, "error", (5,)),
        (TOTALS, "timestamps", (1,)),
        (TOTALS, "buffers_doubled", (None, 1, "true")),
        (TOTALS, "bytes", NOT_COUNTS),
        (TOTALS, "mss", (-1, 1.5, "5", True, MOST_ON_A_LINE + 1)),
        (ROWS, "columns", (["t_ns"], [["t_ns"]], "t_ns", None)),
        (ROWS, "rows", (None, "12", [1], [[1, None]], [[1, 1.0]], [[True, 1]])),
        (BINS, "bin_us", (0, MOST_BIN_US + 1, None)),
        (BINS, "bins", ([-1], [MOST_ON_A_LINE + 1], [1.5], "12", None)),
        (BUCKETS, "flow", NOT_COUNTS),
        (BUCKETS, "buckets", (None, {}, "12", [3, 4], [[3]], [[3, 4, 5]], ["34"], *NOT_NUMBERS)),
        (DATAGRAMS, "datagrams", NOT_COUNTS),
        (DATAGRAMS, "segmented", (1,)),
        ({"id": 8, "pcap": ""}, "pcap", (5, None)),
    ],
)
def test_a_wrong_value_is_refused_by_its_key(value: dict[str, Any], key: str, wrong: tuple[object, ...]) -> None:
    assert parse_line("pi1", line(value))
    for other in wrong:
        assert key in broken(line(value | {key: other})).partition(", got")[0].partition("expected ")[2]


@pytest.mark.parametrize("value", [HELLO, PROGRESS, ENDED, TOTALS, ROWS, BINS, BUCKETS, DATAGRAMS])
def test_a_line_has_all_its_keys_and_no_others(value: dict[str, Any]) -> None:
    assert 'no "mood"' in broken(line(value | {"mood": "fine"}))
    last = list(value)[-1]
    assert broken(line({name: each for name, each in value.items() if name != last}))


@from_file
def test_the_counts_of_a_capture_are_refused_by_what_was_expected(value: object, expected: str) -> None:
    assert broken(line({"id": 8, "capture": value})).partition("expected ")[2].startswith(expected)
    assert 'no "flow"' in broken(line({"id": 8, "capture": COUNTS, "flow": 0}))


def test_the_line_at_fault_is_shown_escaped_and_shortened_with_its_length() -> None:
    assert broken(b"\x1b[2J\x00\xffhello\n").endswith("got: \\x1b[2J\\x00\\xffhello")
    assert broken(b"y" * 121 + b"\n").endswith("got: " + "y" * 120 + " … (122 bytes)")
    assert broken(b"\x1b" + b"y" * 100 + b"\n").endswith(r"got: \x1b" + "y" * 100)


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


def test_a_line_of_the_most_bytes_is_taken_and_one_more_is_not() -> None:
    head = b'{"id": 8, "ok": true, "value": "'
    most = head + b"x" * (LINE_LIMIT - len(head) - 3) + b'"}\n'
    assert len(most) == LINE_LIMIT
    assert isinstance(parse_line("pi1", most), Answer)
    assert "at most 16384 bytes per line" in broken(most.replace(b"x", b"xx", 1))
