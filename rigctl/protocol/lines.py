"""Lines from the agent, parsed strictly: what the protocol does not know is refused by name, with the line at fault."""

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.settings import NO_SETTINGS, SETTINGS, Settings

LINE_LIMIT: Final = 16384
"""Bytes of the longest line from the agent, its newline included."""
MOST: Final = 2**63 - 1  # the largest number on a line
MOST_NS: Final = 2**62 - 1
"""The latest time: moved to another clock, it is a 64-bit number still. A node would have to be up for 146 years."""
_SHOWN: Final = 120

TEXTS: Final = ("old", "value", "refused", "heard", "errors", "streams", "stream")
"""The values of an answer that are texts: those of a host setting, and what became of probes."""
SENDER_COLUMNS: Final = ("t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss")
RECEIVER_COLUMNS: Final = ("t_ns", "bytes")
_OTHER_COLUMNS: Final = ((*SENDER_COLUMNS, "advertised_window"), ("t_ns", "answered", "rtt_ns"))  # of a probe's sender


@dataclass(frozen=True, slots=True)
class Hello:
    """The agent's first line."""

    protocol: int
    agent: str  # its version
    machine: str
    pid: int
    cpus: int
    clock_ns: int
    restored: int = 0  # host settings of an earlier agent that this one put back
    unrestored: str | None = None  # why some could not be


@dataclass(frozen=True, slots=True)
class Busy:
    """Another run has the node; `place` agents are before this one in the queue, the one that has it included."""

    place: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes received so far, by endpoint; `clock_ns` on the node's clock."""

    clock_ns: int
    bytes: dict[int, int]


@dataclass(frozen=True, slots=True)
class Ended:
    """All flows of `endpoint` have ended; `error` is an errno name where one broke."""

    endpoint: int
    error: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer to order `id`. `numbers`, `texts`: its other values, as `port` and `old`."""

    id: int
    ok: bool
    error: str | None = None
    message: str | None = None
    numbers: dict[str, int | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """The counts of one flow on one side, in the protocol's names; times on the node's clock."""

    id: int
    flow: int
    bytes: int
    first_byte_ns: int | None
    last_byte_ns: int | None
    sndbuf: int | None
    rcvbuf: int | None
    mss: int | None
    rcv_mss: int | None
    advmss: int | None
    pmtu: int | None
    rtt_us: int | None
    rtt_min_us: int | None
    retransmits: int | None
    retransmitted_bytes: int | None
    cwnd: int | None
    busy_us: int | None
    rwnd_limited_us: int | None
    sndbuf_limited_us: int | None
    advertised_window: int | None
    segs_out: int | None
    segs_in: int | None
    acked_bytes: int | None
    unacked: int | None  # segments sent and not acknowledged
    timeouts: int | None  # retransmission timeouts in a row, at the end
    timestamps: bool | None
    round_trips: int | None  # of a ping-pong's sender; sum, least and largest of their times
    rtt_sum_ns: int | None
    rtt_min_ns: int | None
    rtt_max_ns: int | None
    disk_us: int | None  # of a file transfer: in read(2) or write(2) of the file
    sync_us: int | None  # until it was safe on the disk
    sends: int | None  # of a TCP stream's sender
    uncopied_sends: int | None  # of these, without a copy; None: zerocopy was not asked for
    granted: Settings = NO_SETTINGS  # values of settings that were read back


@dataclass(frozen=True, slots=True)
class FlowBuckets:
    """A piece of a flow's histogram: buckets with how many round trips, or losses in a row, each holds; they rise."""

    id: int
    flow: int
    buckets: list[list[int]]


@dataclass(frozen=True, slots=True)
class FlowDatagrams:
    """The counts of a UDP flow's datagrams, in the protocol's names; None for what the side cannot know."""

    id: int
    flow: int
    datagrams: int
    refused: int | None
    duplicates: int | None
    reordered: int | None
    strays: int | None
    highest: int | None
    overflow: int | None
    jitter_ns: int | None
    jitter_max_ns: int | None
    burst: int | None
    segmented: bool | None


@dataclass(frozen=True, slots=True)
class FlowBins:
    """A piece of a receiver's bins, from index `first`: bytes by the time they were taken."""

    id: int
    flow: int
    bin_us: int
    first: int
    bins: list[int]


@dataclass(frozen=True, slots=True)
class Captured:
    """The size of a capture: frames in all, those its kernel lost, bytes of the file, whether it was full."""

    id: int
    frames: int
    lost: int | None
    bytes: int
    cut: bool


@dataclass(frozen=True, slots=True)
class PcapPiece:
    """The next bytes of the file."""

    id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class FlowRows:
    """A piece of a flow's samples: rows from index `first`, as differences."""

    id: int
    flow: int
    first: int
    columns: tuple[str, ...]
    rows: list[list[int]]


Part: TypeAlias = FlowTotals | FlowRows | FlowBuckets | FlowDatagrams | FlowBins | Captured | PcapPiece
"""A line of a report but its last."""
Message: TypeAlias = Hello | Busy | Progress | Ended | Answer | Part


class BrokenError(Exception):
    """A line is not what the protocol says; the text says what was expected."""


def shown(line: bytes) -> str:
    """`line` for an error message: escaped to plain ASCII, and shortened."""
    text = line[: _SHOWN + 1].decode("ascii", "backslashreplace").rstrip("\n")
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"{safe[:_SHOWN]} … ({len(line)} bytes)" if len(line) > _SHOWN else safe


def parse_line(node: str, line: bytes) -> Message:
    """The message in `line` (its newline included) of the agent on `node`. Raises `NodeError`: what was expected."""
    try:
        return _message(_json_object(line))
    except BrokenError as broken:
        raise NodeError(node, f"the agent violated the protocol: expected {broken}, got: {shown(line)}") from None


def _json_object(line: bytes) -> dict[str, Any]:
    if len(line) > LINE_LIMIT:
        raise BrokenError(f"at most {LINE_LIMIT} bytes per line")
    if not line.endswith(b"\n"):
        raise BrokenError("a whole line, ended by a newline")
    try:
        value = _DECODER.decode(line.decode("ascii"))
    except (ValueError, RecursionError):
        raise BrokenError("one JSON object in ASCII") from None
    if not isinstance(value, dict):
        raise BrokenError("one JSON object in ASCII")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


def _no_constant(text: str) -> None:
    raise ValueError(text)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _message(value: dict[str, Any]) -> Message:
    if "id" not in value:
        return _event(value)
    whole(value, "id", 1)
    if "ok" in value:
        return _answer(value)
    return next((read for key, read in _PARTS.items() if key in value), _totals)(value)


def _event(value: dict[str, Any]) -> Message:
    event = value.pop("event", None)
    if event == "hello":
        only(value, tuple(each.name for each in dataclasses.fields(Hello)))
        for name in ("protocol", "pid", "cpus", "clock_ns", "restored"):
            whole(value, name)
        for name in ("agent", "machine"):
            _text(value, name)
        _text(value, "unrestored", nullable=True)
        return Hello(**value)
    if event == "busy":
        only(value, ("place",))
        return Busy(whole(value, "place", 1))
    if event == "progress":
        only(value, ("clock_ns", "bytes"))
        return Progress(whole(value, "clock_ns"), _by_endpoint(value["bytes"]))
    if event == "ended":
        only(value, ("endpoint", "error", "message"))
        for name in ("error", "message"):
            _text(value, name, nullable=True)
        return Ended(whole(value, "endpoint", 1), value["error"], value["message"])
    raise BrokenError('an answer with "id", or an event: hello, busy, progress or ended')


def _by_endpoint(value: object) -> dict[int, int]:
    if not isinstance(value, dict):
        raise BrokenError('"bytes" to be bytes by endpoint')
    for name in value:
        if not (name.isascii() and name.isdigit() and len(name) <= 5):
            raise BrokenError('"bytes" to be bytes by endpoint')
    return {int(name): whole(value, name) for name in value}


def _answer(value: dict[str, Any]) -> Answer:
    number, ok = value.pop("id"), value.pop("ok")
    if ok is True:
        texts: dict[str, str] = {name: _text(value, name) for name in TEXTS if name in value}
        numbers = {name: each for name, each in value.items() if name not in texts}
        for name, each in numbers.items():
            if each is not None:
                whole(numbers, name)
        return Answer(number, True, numbers=numbers, texts=texts)
    if ok is not False:
        raise BrokenError('"ok" to be true or false')
    only(value, ("error", "message"))
    return Answer(number, False, error=_text(value, "error"), message=_text(value, "message"))


_FLAGS: Final = ("timestamps", "segmented")
_GRANTED: Final = {
    setting.effective.key: setting for setting in SETTINGS.values() if setting.effective and setting.effective.key
}
_Counted = TypeVar("_Counted", FlowTotals, FlowDatagrams)


def _totals(value: dict[str, Any]) -> FlowTotals:
    granted = {}
    for name, setting in _GRANTED.items():
        if name not in value or setting.effective is None:
            raise BrokenError(f'"{name}"')
        granted[setting] = None if value[name] is None else _typed(value, name, setting.effective.type)
        del value[name]
    return dataclasses.replace(_counted(value, FlowTotals, ("id", "flow", "bytes")), granted=Settings(granted))


def _typed(value: dict[str, Any], name: str, kind: type) -> int | str | bool:
    if kind is bool:
        return _flag(value, name)
    return _text(value, name) if kind is str else whole(value, name)


def _flag(value: dict[str, Any], name: str) -> bool:
    if not isinstance(value[name], bool):
        raise BrokenError(f'"{name}" to be true, false or null')
    return bool(value[name])


def _counted(value: dict[str, Any], record: type[_Counted], required: Sequence[str]) -> _Counted:
    """Return a line of one flow's numbers, any of which but the `required` may be unknown."""
    only(value, tuple(each.name for each in dataclasses.fields(record) if each.name != "granted"))
    for name, each in value.items():
        if each is not None or name in required:
            _typed(value, name, bool if name in _FLAGS else int)
    return record(**value)


def _rows(value: dict[str, Any]) -> FlowRows:
    only(value, ("id", "flow", "from", "columns", "rows"))
    columns, rows = value["columns"], value["rows"]
    if not isinstance(columns, list) or tuple(columns) not in (SENDER_COLUMNS, RECEIVER_COLUMNS, *_OTHER_COLUMNS):
        raise BrokenError(f'"columns" to be {", ".join(RECEIVER_COLUMNS)} or {", ".join(SENDER_COLUMNS)}')
    if not isinstance(rows, list) or not set(map(type, rows)) <= {list} or not set(map(len, rows)) <= {len(columns)}:
        raise BrokenError(f'"rows" of {len(columns)} numbers each')
    if not set(map(type, chain.from_iterable(rows))) <= {int}:
        raise BrokenError('whole numbers in "rows"')
    return FlowRows(value["id"], whole(value, "flow"), whole(value, "from"), tuple(columns), rows)


def _buckets(value: dict[str, Any]) -> FlowBuckets:
    only(value, ("id", "flow", "buckets"))
    buckets = value["buckets"]
    if not isinstance(buckets, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(each) is int and 0 <= each <= MOST for each in pair)
        for pair in buckets
    ):
        raise BrokenError('"buckets" of two whole numbers each')
    return FlowBuckets(value["id"], whole(value, "flow"), buckets)


def _bins(value: dict[str, Any]) -> FlowBins:
    only(value, ("id", "flow", "bin_us", "from", "bins"))
    bins = value["bins"]
    numbers = isinstance(bins, list) and set(map(type, bins)) <= {int}
    if not numbers or not 0 <= min(bins, default=0) <= max(bins, default=0) < 2**32:
        raise BrokenError('whole numbers below 2³² in "bins"')
    return FlowBins(value["id"], whole(value, "flow"), whole(value, "bin_us", 1), whole(value, "from"), bins)


def _captured(value: dict[str, Any]) -> Captured | PcapPiece:
    if "pcap" in value:
        only(value, ("id", "pcap"))
        try:
            return PcapPiece(value["id"], base64.b64decode(_text(value, "pcap"), validate=True))
        except ValueError:
            raise BrokenError('"pcap" in base64') from None
    only(value, ("id", "capture"))
    counted = value["capture"]
    if not isinstance(counted, dict):
        raise BrokenError('"capture" to be counts')
    only(counted, ("frames", "lost", "bytes", "cut"))
    if not isinstance(counted["cut"], bool):
        raise BrokenError('"cut" to be true or false')
    lost = None if counted["lost"] is None else whole(counted, "lost")
    return Captured(value["id"], whole(counted, "frames"), lost, whole(counted, "bytes"), counted["cut"])


def only(value: dict[str, Any], names: Sequence[str]) -> None:
    if value.keys() != set(names):
        missing = [name for name in names if name not in value]
        unknown = sorted(name for name in value if name not in names)
        raise BrokenError(f'"{missing[0]}"' if missing else f'no "{printable(unknown[0][:40])}"')


def whole(value: Mapping[str, Any], name: str, least: int = 0) -> int:
    number = value[name]
    if type(number) is not int or not least <= number <= (MOST_NS if name.endswith("_ns") else MOST):
        raise BrokenError(f'"{printable(name[:40])}" to be a whole number from {least}')
    return number


def _text(value: dict[str, Any], name: str, *, nullable: bool = False) -> str:
    text = value[name]
    if not (isinstance(text, str) or (nullable and text is None)):
        raise BrokenError(f'"{name}" to be a text')
    if text is not None:
        text = value[name] = printable(text)  # once, for all who show or store it
    return text or ""


def _datagrams(value: dict[str, Any]) -> FlowDatagrams:
    return _counted(value, FlowDatagrams, ("id", "flow", "datagrams"))


_PARTS: Final[dict[str, Callable[[dict[str, Any]], Message]]] = {
    "buckets": _buckets,
    "capture": _captured,
    "pcap": _captured,
    "bins": _bins,
    "datagrams": _datagrams,
    "rows": _rows,
}
"""A line of a report is known by one of its keys; a flow's totals have none of them."""
