"""Lines from the agent, parsed strictly: what the protocol does not know is refused by name, with the line at fault."""

import base64
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from types import UnionType
from typing import Any, Final, TypeAlias

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.settings import NO_SETTINGS, SETTINGS, Counts, Settings, Subflows

VERSION: Final = 4
LINE_LIMIT: Final = 16384
"""Bytes of the longest line from the agent, its newline included."""
MOST: Final = 2**63 - 1  # the largest number on a line
MOST_NS: Final = 2**62 - 1
"""The latest time: moved to another clock, it is a 64-bit number still. A node would have to be up for 146 years."""
_MOST_SHOWN: Final = 120

TEXTS: Final = ("old", "value", "refused", "heard", "errors", "streams", "stream")
"""The values of an answer that are texts: those of a host setting, and what became of probes."""
SENDER_COLUMNS: Final = ("t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss")
RECEIVER_COLUMNS: Final = ("t_ns", "bytes")
_OTHER_COLUMNS: Final = (
    (*SENDER_COLUMNS, "advertised_window"),
    SENDER_COLUMNS[:3],  # of a sender with several subflows
    ("t_ns", "answered", "rtt_ns"),  # of a probe's sender
)


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
    delivered: int | None  # segments
    delivered_ce: int | None  # of these, acknowledged with the echo of a mark; None: without ECN
    received_ce: int | None  # segments that arrived marked
    timestamps: bool | None
    round_trips: int | None  # of a ping-pong's sender; sum, least and largest of their times
    rtt_sum_ns: int | None
    rtt_min_ns: int | None
    rtt_max_ns: int | None
    disk_us: int | None  # of a file transfer: in read(2) or write(2) of the file
    sync_us: int | None  # until it was safe on the disk
    numa_node: int | None  # of the processor on which the flow's thread ran most often
    card_numa_node: int | None  # of the data interface
    sends: int | None  # of a TCP stream's sender
    uncopied_sends: int | None  # of these, without a copy; None: zerocopy was not asked for
    granted: Settings = NO_SETTINGS  # values of settings that were read back


@dataclass(frozen=True, slots=True)
class FlowBuckets:
    """A piece of a flow's histogram: buckets with how many round trips, or losses in a row, each holds; they rise."""

    id: int
    flow: int
    buckets: list[tuple[int, int]]


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
    first: int = field(metadata={"key": "from"})
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
    pcap: bytes


@dataclass(frozen=True, slots=True)
class FlowRows:
    """A piece of a flow's samples: rows from index `first`, as differences."""

    id: int
    flow: int
    first: int = field(metadata={"key": "from"})
    columns: tuple[str, ...]
    rows: list[list[int]]


Part: TypeAlias = FlowTotals | FlowRows | FlowBuckets | FlowDatagrams | FlowBins | Captured | PcapPiece
"""A line of a report but its last."""
Message: TypeAlias = Hello | Busy | Progress | Ended | Answer | Part


class BrokenError(Exception):
    """A line is not what the protocol says; the text says what was expected."""


def _shown(line: bytes) -> str:
    text = line[: _MOST_SHOWN + 1].decode("ascii", "backslashreplace").rstrip("\n")
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"{safe[:_MOST_SHOWN]} … ({len(line)} bytes)" if len(line) > _MOST_SHOWN else safe


def parse_line(node: str, line: bytes) -> Message:
    """Return the message in a whole line of the agent on `node`. Raise `NodeError` with what was expected."""
    try:
        return _message(_json_object(line))
    except BrokenError as broken:
        raise NodeError(node, f"the agent violated the protocol: expected {broken}, got: {_shown(line)}") from None


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
        raise ValueError
    return value


def _no_constant(_: str) -> None:
    raise ValueError


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _message(value: dict[str, Any]) -> Message:
    if "id" not in value:
        kind = _EVENTS.get(str(value.pop("event", None)))
        if kind is None:
            raise BrokenError('an answer with "id", or an event: hello, busy, progress or ended')
        return kind(**_read(value, _keys(kind)))
    whole(value, "id")
    if "ok" in value:
        return _answer(value)
    if "capture" in value:
        return _captured(value)
    kind = next((kind for key, kind in _PARTS.items() if key in value), None)
    return _totals(value) if kind is None else kind(**_read(value, _keys(kind)))


_EVENTS: Final[dict[str, type[Message]]] = {"hello": Hello, "busy": Busy, "progress": Progress, "ended": Ended}
_PARTS: Final[dict[str, type[Message]]] = {
    "buckets": FlowBuckets,
    "pcap": PcapPiece,
    "bins": FlowBins,
    "datagrams": FlowDatagrams,
    "rows": FlowRows,
}
"""A line of a report is known by one of its keys; a flow's totals have none of them."""
_GRANTED: Final = {
    setting.effective.key: setting for setting in SETTINGS.values() if setting.effective and setting.effective.key
}


def _keys(record: type[Any]) -> dict[str, tuple[str, Any]]:
    """Return the fields of a record with their types, by their keys on a line."""
    return {each.metadata.get("key", each.name): (each.name, each.type) for each in fields(record)}


def _read(value: Mapping[str, Any], keys: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return the values by field. Raise `BrokenError` unless they have the `keys`, no others, and their types."""
    only(value, keys)
    return {name: _typed(value, key, kind) for key, (name, kind) in keys.items()}


def _typed(value: Mapping[str, Any], key: str, kind: Any) -> Any:  # noqa: ANN401
    if isinstance(kind, UnionType):
        if value[key] is None:
            return None
        kind = kind.__args__[0]
    return _READERS[kind](value, key)


def _answer(value: dict[str, Any]) -> Answer:
    number, ok = value.pop("id"), value.pop("ok")
    if ok is True:
        texts: dict[str, str] = {name: _text(value, name) for name in TEXTS if name in value}
        numbers = {name: _typed(value, name, int | None) for name in value if name not in texts}
        return Answer(number, True, numbers=numbers, texts=texts)
    if ok is not False:
        raise BrokenError('"ok" to be true or false')
    return Answer(number, False, **_read(value, {"error": ("error", str), "message": ("message", str)}))


def _totals(value: dict[str, Any]) -> FlowTotals:
    keys = _keys(FlowTotals)
    del keys["granted"]
    kinds = {key: (key, setting.read_as | None) for key, setting in _GRANTED.items()}
    held = _read(value, keys | kinds)
    granted = {setting: held.pop(key) for key, setting in _GRANTED.items()}
    return FlowTotals(**held, granted=Settings(granted))


def _captured(value: dict[str, Any]) -> Captured:
    only(value, ("id", "capture"))
    if not isinstance(value["capture"], dict):
        raise BrokenError('"capture" to be counts')
    keys = _keys(Captured)
    del keys["id"]
    return Captured(value["id"], **_read(value["capture"], keys))


def only(value: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise `BrokenError` unless `value` has the keys `names` and no others."""
    if value.keys() != set(names):
        missing = [name for name in names if name not in value]
        unknown = sorted(name for name in value if name not in names)
        raise BrokenError(f'"{missing[0]}"' if missing else f'no "{printable(unknown[0][:40])}"')


def whole(value: Mapping[str, Any], name: str) -> int:
    """Return a whole number. Raise `BrokenError` if it is none, or out of bounds."""
    number, least = value[name], int(name in _FROM_ONE)
    if type(number) is not int or not least <= number <= (MOST_NS if name.endswith("_ns") else MOST):
        raise BrokenError(f'"{printable(name[:40])}" to be a whole number from {least}')
    return number


_FROM_ONE: Final = frozenset({"id", "endpoint", "place", "bin_us"})


def _text(value: Mapping[str, Any], name: str) -> str:
    if not isinstance(value[name], str):
        raise BrokenError(f'"{name}" to be a text')
    return printable(value[name])  # once, for all who show or store it


def _flag(value: Mapping[str, Any], name: str) -> bool:
    if not isinstance(value[name], bool):
        raise BrokenError(f'"{name}" to be true or false')
    return bool(value[name])


def _base64(value: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(_text(value, name), validate=True)
    except ValueError:
        raise BrokenError(f'"{name}" in base64') from None


def _by_endpoint(value: Mapping[str, Any], name: str) -> dict[int, int]:
    counted = value[name]
    if not isinstance(counted, dict) or not all(
        each.isascii() and each.isdigit() and len(each) <= 5 for each in counted
    ):
        raise BrokenError(f'"{name}" to be bytes by endpoint')
    return {int(each): whole(counted, each) for each in counted}


def _columns(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    columns = value[name]
    if not isinstance(columns, list) or tuple(columns) not in (SENDER_COLUMNS, RECEIVER_COLUMNS, *_OTHER_COLUMNS):
        raise BrokenError(f'"{name}" to be {", ".join(RECEIVER_COLUMNS)} or {", ".join(SENDER_COLUMNS)}')
    return tuple(columns)


def _rows(value: Mapping[str, Any], name: str) -> list[list[int]]:
    rows, width = value[name], len(value["columns"])
    if not isinstance(rows, list) or not set(map(type, rows)) <= {list} or not set(map(len, rows)) <= {width}:
        raise BrokenError(f'"{name}" of {width} numbers each')
    if not set(map(type, chain.from_iterable(rows))) <= {int}:
        raise BrokenError(f'whole numbers in "{name}"')
    return rows


def _buckets(value: Mapping[str, Any], name: str) -> list[tuple[int, int]]:
    buckets = value[name]
    if not isinstance(buckets, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(each) is int and 0 <= each <= MOST for each in pair)
        for pair in buckets
    ):
        raise BrokenError(f'"{name}" of two whole numbers each')
    return [(bucket, count) for bucket, count in buckets]


def _with(
    read: Callable[[object], Counts | Subflows],
) -> Callable[[Mapping[str, Any], str], Counts | Subflows]:
    def reader(value: Mapping[str, Any], name: str) -> Counts | Subflows:
        try:
            return read(value[name])
        except ValueError as error:
            raise BrokenError(f'"{name}" to be {error}') from None

    return reader


def _bins(value: Mapping[str, Any], name: str) -> list[int]:
    bins = value[name]
    numbers = isinstance(bins, list) and set(map(type, bins)) <= {int}
    if not numbers or not 0 <= min(bins, default=0) <= max(bins, default=0) < 2**32:
        raise BrokenError(f'whole numbers below 2³² in "{name}"')
    return list(bins)


_READERS: Final[dict[Any, Callable[[Mapping[str, Any], str], object]]] = {
    int: whole,
    str: _text,
    bool: _flag,
    bytes: _base64,
    dict[int, int]: _by_endpoint,
    tuple[str, ...]: _columns,
    list[list[int]]: _rows,
    list[tuple[int, int]]: _buckets,
    list[int]: _bins,
    Counts: _with(Counts.read),
    Subflows: _with(Subflows.read),
}
"""The type of a field → the function that reads it."""
