"""Parses lines from the agent strictly. An unknown key is refused by name, and the error shows the line."""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.protocol.host_facts import HostReply
from rigctl.records import KIND_COUNTS, Datagrams, KindCounts, Side
from rigctl.records.flat import GRANTED, GROUPS, read_kind_counts, side_from
from rigctl.records.kind_counts import MOST_COUNTED

VERSION: Final = 6
LINE_LIMIT: Final = 16384  # bytes of a line from the agent, newline included
MOST_ON_A_LINE: Final = MOST_COUNTED
"""Largest number in a line."""
MOST_BIN_US: Final = 3_600_000_000
_MOST_SHOWN: Final = 120
_MOST_NAME: Final = 40

_TEXTS: Final = ("old", "value", "refused", "heard", "errors", "streams", "stream")
"""Keys of answers with texts: the values of a host setting, or the results of probes."""
_SENDER_COLUMNS: Final = ("t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss")
_RECEIVER_COLUMNS: Final = ("t_ns", "bytes")
_COLUMNS: Final = (
    _SENDER_COLUMNS,
    _RECEIVER_COLUMNS,
    (*_RECEIVER_COLUMNS, "highest"),  # samples of a receiver of numbered datagrams
    (*_SENDER_COLUMNS, "advertised_window"),
    _SENDER_COLUMNS[:3],  # samples of a sender with several subflows
    ("t_ns", "answered", "rtt_ns"),  # samples of a sender of probes
    (*_RECEIVER_COLUMNS, "span_ns"),  # a row for each burst
)


def _endpoint(text: object) -> int:
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,5}", text, re.ASCII):
        raise ValueError("the number of an endpoint")
    return int(text)


def _columns(names: list[str]) -> list[str]:
    if tuple(names) not in _COLUMNS:
        raise ValueError(f"{', '.join(_RECEIVER_COLUMNS)} or {', '.join(_SENDER_COLUMNS)}")
    return names


WireNumber: TypeAlias = Annotated[int, Field(ge=0, le=MOST_ON_A_LINE)]
Identifier: TypeAlias = Annotated[int, Field(ge=1, le=MOST_ON_A_LINE)]
Endpoint: TypeAlias = Annotated[int, BeforeValidator(_endpoint)]
WireText: TypeAlias = Annotated[str, AfterValidator(printable)]  # terminal control characters become `?`
TimeBucket: TypeAlias = Annotated[tuple[WireNumber, WireNumber], Field(strict=False)]  # bucket, count of its values


class _Line(BaseModel):
    """A line from the agent. Each key is a field; unknown keys are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Hello(_Line):
    """The agent has the lock of its node and takes orders from now on."""

    protocol: WireNumber
    agent: WireText  # version of the agent
    machine: WireText
    pid: WireNumber
    cpus: WireNumber
    clock_ns: WireNumber
    restored: WireNumber  # number of host settings of an earlier agent that this agent restored
    unrestored: WireText | None  # why some settings could not be restored; None: all were restored


class Busy(_Line):
    """Another run uses the node. `place` is how many agents are ahead in the queue, the active agent included."""

    place: Identifier


class ProgressLine(_Line):
    """Bytes received so far, by endpoint number. `clock_ns` is on the node's clock."""

    clock_ns: WireNumber
    bytes: dict[Endpoint, WireNumber]


class EndpointEnd(_Line):
    """All flows of `endpoint` have ended. `error` is an errno name if a flow failed."""

    endpoint: Identifier
    error: WireText | None
    message: WireText | None


class Answer(_Line):
    """The last line of the answer to order `id`: its numbers and texts by key, or the host facts."""

    id: Identifier
    ok: bool
    error: WireText | None = None
    message: WireText | None = None
    numbers: dict[str, WireNumber | None] = Field(default_factory=dict)
    texts: dict[str, WireText] = Field(default_factory=dict)
    host: HostReply | None = None


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """The totals that one end of a flow counted; times are on the node's clock."""

    id: int
    flow: int
    side: Side


@dataclass(frozen=True, slots=True)
class FlowDatagrams:
    """The datagrams that one end of a flow counted."""

    id: int
    flow: int
    datagrams: Datagrams


@dataclass(frozen=True, slots=True)
class FlowKindCounts:
    """The counts of one end of a flow that only its kind of test has."""

    id: int
    flow: int
    counts: KindCounts


class FlowBuckets(_Line):
    """Part of a flow's histogram: buckets in rising order, each with its count of round trips or loss bursts."""

    id: Identifier
    flow: WireNumber
    buckets: list[TimeBucket]


class FlowBins(_Line):
    """The bytes that a receiver read in each interval (bin) of `bin_us`, from bin `first` on."""

    id: Identifier
    flow: WireNumber
    bin_us: Annotated[int, Field(ge=1, le=MOST_BIN_US)]
    first: Annotated[WireNumber, Field(alias="from")]
    bins: list[WireNumber]


class FlowRows(_Line):
    """Part of a flow's samples, from row `first` on. After row 0, values are differences to the row before."""

    id: Identifier
    flow: WireNumber
    first: Annotated[WireNumber, Field(alias="from")]
    columns: Annotated[list[str], AfterValidator(_columns)]
    rows: list[list[int]]


class Captured(_Line):
    """The size of a capture: frames, frames that the kernel lost, bytes of the file, and whether the file was full."""

    id: Identifier
    frames: WireNumber
    lost: WireNumber | None
    bytes: WireNumber
    cut: bool


class PcapPiece(_Line):
    """The next bytes of the capture's file, in base64."""

    id: Identifier
    pcap: str


ReportLine: TypeAlias = (
    FlowTotals | FlowRows | FlowBuckets | FlowDatagrams | FlowKindCounts | FlowBins | Captured | PcapPiece
)
"""A line of a report, except the last line."""
AgentLine: TypeAlias = Hello | Busy | ProgressLine | EndpointEnd | Answer | ReportLine

_EVENTS: Final[dict[str, type[AgentLine]]] = {
    "hello": Hello,
    "busy": Busy,
    "progress": ProgressLine,
    "ended": EndpointEnd,
}
_PIECES: Final[dict[str, type[AgentLine]]] = {
    "buckets": FlowBuckets,
    "pcap": PcapPiece,
    "bins": FlowBins,
    "rows": FlowRows,
}
"""Maps a key that only one type of report line has to this type."""
_DATAGRAMS: Final = {"datagrams" if each.name == "count" else each.name: each.name for each in fields(Datagrams)}
"""Maps keys of a line to fields of `Datagrams`."""
_STORED: Final = {"sndbuf": "sndbuf_bytes", "rcvbuf": "rcvbuf_bytes", "advertised_window": "advertised_window_bytes"}
"""Maps keys of a flow's totals to the names in `records.flat`, where the two differ."""
_DOUBLED: Final = "buffers_doubled"
_TOTALS: Final = (
    "id",
    "flow",
    "bytes",
    "first_byte_ns",
    "last_byte_ns",
    "acked_bytes",
    "unacked",
    "timeouts",
    *_STORED,
    *GRANTED,
    _DOUBLED,
    *(name for names in GROUPS.values() for name in names.values() if name not in _STORED.values()),
)
_NUMBERS: Final = TypeAdapter(dict[str, WireNumber | None], config=ConfigDict(strict=True))


def _only(value: dict[str, Any], keys: Collection[str]) -> None:
    for name in keys:
        if name not in value:
            raise ValueError(f'"{name}"')
    for name in value.keys() - set(keys):
        raise ValueError(f'no "{printable(name[:_MOST_NAME])}"')


def _counts(value: dict[str, Any], total: str, flag: str) -> dict[str, Any]:
    """Return the counts in a line and its boolean `flag`; None: unknown. Raise `ValueError` if `total` is unknown."""
    on = value.pop(flag)
    if on is not None and not isinstance(on, bool):
        raise ValueError(f'"{flag}" to be true or false')
    for name in ("id", "flow", total):
        if value[name] is None:
            raise ValueError(f'"{name}" to be known')
    return {**_NUMBERS.validate_python(value), flag: on}


def parse_line(node: str, line: bytes) -> AgentLine:
    """Return the message in a line from the agent on `node`. Raise `NodeError` with what was expected."""
    try:
        return _message(_json_object(line))
    except ValueError as error:
        expected = _first_mistake(error) if isinstance(error, ValidationError) else error
        what = f"the agent violated the protocol: expected {expected}, got: {_line_text(line)}"
        raise NodeError(node, what) from None


def _first_mistake(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = printable(".".join(map(str, first["loc"]))[:_MOST_NAME])
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f'no "{key}"'
    wanted = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f'"{key}"' if first["type"] == "missing" else f'"{key}" to be {wanted}'


def _line_text(line: bytes) -> str:
    text = line[: _MOST_SHOWN + 1].decode("ascii", "backslashreplace").rstrip("\n")
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"{safe[:_MOST_SHOWN]} … ({len(line)} bytes)" if len(line) > _MOST_SHOWN else safe


def _json_object(line: bytes) -> dict[str, Any]:
    if len(line) > LINE_LIMIT:
        raise ValueError(f"at most {LINE_LIMIT} bytes per line")
    if not line.endswith(b"\n"):
        raise ValueError("a whole line, ended by a newline")
    with suppress(ValueError, RecursionError):
        value = _DECODER.decode(line.decode("ascii"))
        if isinstance(value, dict):
            return value
    raise ValueError("one JSON object in ASCII")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key twice")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _message(value: dict[str, Any]) -> AgentLine:
    if "id" not in value:
        event = _EVENTS.get(str(value.pop("event", None)))
        if event is None:
            raise ValueError('an answer with "id", or an event: hello, busy, progress or ended')
        return event(**value)
    if "ok" in value:
        return _answer(value)
    if "capture" in value:
        captured = value.pop("capture")
        if not isinstance(captured, dict) or captured.keys() & value.keys():
            raise ValueError('"capture" to be counts')
        return Captured(**value, **captured)
    if "datagrams" in value:
        _only(value, ("id", "flow", *_DATAGRAMS))
        counts = _counts(value, "datagrams", "segmented")
        datagrams = Datagrams(**{name: counts[key] for key, name in _DATAGRAMS.items()})
        return FlowDatagrams(counts["id"], counts["flow"], datagrams)
    for name in KIND_COUNTS.keys() & value.keys():
        return _kind_counts(name, value)
    piece = next((kind for key, kind in _PIECES.items() if key in value), None)
    return _totals(value) if piece is None else piece(**value)


def _kind_counts(name: str, value: dict[str, Any]) -> FlowKindCounts:
    _only(value, ("id", "flow", name))
    counts = value[name] if isinstance(value[name], dict) else {}
    _only(counts, [field.name for field in fields(KIND_COUNTS[name])])
    head = _NUMBERS.validate_python({key: value[key] for key in ("id", "flow")})
    if head["id"] is None or head["flow"] is None:
        raise ValueError('"id" and "flow" to be known')
    return FlowKindCounts(head["id"], head["flow"], read_kind_counts(name, counts))


def _answer(value: dict[str, Any]) -> Answer:
    number, ok = value.pop("id"), value.pop("ok")
    if ok is not True:
        if value.keys() != {"error", "message"}:
            raise ValueError('"error" and "message", as "ok" is not true')
        return Answer(id=number, ok=ok, **value)
    if "interfaces" in value:
        return Answer(id=number, ok=True, host=HostReply(**value))
    texts: dict[str, str] = {name: value.pop(name) for name in _TEXTS if name in value}
    return Answer(id=number, ok=True, numbers=value, texts=texts)


def _totals(value: dict[str, Any]) -> FlowTotals:
    _only(value, _TOTALS)
    granted = {key: value.pop(key) for key in (*GRANTED, _DOUBLED)}
    if granted[_DOUBLED] is not True and granted[_DOUBLED] is not False:
        raise ValueError(f'"{_DOUBLED}" to be true or false')
    counts = _counts(value, "bytes", "timestamps")
    stored = granted | {_STORED.get(key, key): count for key, count in counts.items()}
    return FlowTotals(counts["id"], counts["flow"], side_from(stored))
