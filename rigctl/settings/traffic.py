"""Settings of the traffic: sizes, counts, rates, disk or memory, transport, and probes of the round-trip time."""

import ipaddress
import re
from contextlib import suppress
from typing import Final

from rigctl.base.units import format_bytes, format_duration, format_rate, parse_bytes, parse_duration, parse_rate
from rigctl.settings.kinds import AGENT, BLAST, BURST_KIND, CONNECT, FILE, MULTICAST, PINGPONG, REQUESTS, TCP, UDP, Kind
from rigctl.settings.setting import (
    BUCKETS,
    DEFAULT,
    MAX,
    MEASURED,
    RANGE_SCHEMA,
    DataColumn,
    Effective,
    Ends,
    OrderKey,
    Setting,
    as_column,
    choice,
    default_or,
    flag,
    or_default,
    value_words,
    whole_number,
)
from rigctl.settings.shape import MAX_PAIRS
from rigctl.settings.sockets import SIZE_RANGE_SCHEMA
from rigctl.yamlfile.fields import FieldError, parse_between, parse_flag, parse_quantity, parse_whole, show_value

UNLIMITED: Final = "unlimited"  # value of `rate` for a sender that sends as fast as possible
_MAX_FILE: Final = 2**40
_MAX_REPLY: Final = 2**24
_PLACES: Final = ("disk", "memory")
_MAX_ITERATIONS: Final = 10**9
_SHARE: Final = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*")
_MIN_RATE_BPS: Final = 1000
_MAX_RATE_BPS: Final = 10**12
_WHOLE_BYTES: Final = 8
"""The effective rate differs from the requested rate by less than this, in bit/s: kernels pace by whole bytes/s."""
MAX_BURST: Final = 1_000_000
MOST_PER_SECOND: Final = 1_000_000
DEFAULT_PROBES_MS: Final = 20
MIN_PROBES_MS, MAX_PROBES_MS = 1, 1000
MIN_INTERVAL_MS, MAX_INTERVAL_MS = 10, 60_000


def _rate(name: str, value: object) -> int | str:
    if value in (MAX, UNLIMITED):
        return str(value)
    if isinstance(value, str) and value.rstrip().endswith("%"):
        return _share(name, value)
    try:
        rate_bps = parse_quantity(name, value, parse_rate, "100M")
    except ValueError as error:
        raise FieldError(f"{error}; or a share of the ceiling, as in 60%; or max, or unlimited") from None
    if not _MIN_RATE_BPS <= rate_bps <= _MAX_RATE_BPS:
        raise FieldError(f'{name} "{value}": expected 1k to 1T bit/s, max or unlimited, as in 100M')
    return rate_bps


def _share(name: str, value: str) -> str:
    """Return a share of the ceiling as `60%`. Raise `FieldError` unless it is above 0 % and at most 100 %."""
    match = _SHARE.fullmatch(value)
    if match is None or not 0 < float(match[1]) <= 100:
        raise FieldError(f"{name} {show_value(value)}: expected a share of the ceiling, above 0% to 100%, as in 60%")
    return f"{float(match[1]):g}%"


def share_of_ceiling(rate: int | str | None) -> float | None:
    """Return the share of the ceiling that a value of `rate` asks for, such as 0.6 for `60%`; None for other values."""
    match = _SHARE.fullmatch(rate) if isinstance(rate, str) else None
    return None if match is None else float(match[1]) / 100


def parse_latency(name: str, value: object) -> int | None:
    """Return the ms between probes, or None for no probes. Raise `FieldError` if the value is invalid."""
    with suppress(FieldError):
        return DEFAULT_PROBES_MS if parse_flag(name, value) else None
    interval_ms = 0.0
    if isinstance(value, str | float | int):
        with suppress(ValueError):
            interval_ms = round(parse_duration(value) * 1e3, 6)
    if not MIN_PROBES_MS <= interval_ms <= MAX_PROBES_MS or interval_ms != int(interval_ms):
        raise FieldError(
            f"{name} {show_value(value)}: expected true, false or the time between probes, "
            f"{MIN_PROBES_MS} ms to {MAX_PROBES_MS} ms in whole ms, as in 20ms"
        )
    return int(interval_ms)


def parse_interval(name: str, value: object) -> int:
    """Return the ms between two bursts. Raise `FieldError` if the value is invalid."""
    interval_ms = 0.0
    if isinstance(value, str | float | int) and not isinstance(value, bool):
        with suppress(ValueError):
            interval_ms = round(parse_duration(value) * 1e3, 6)
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS or interval_ms != int(interval_ms):
        raise FieldError(
            f"{name} {show_value(value)}: expected the time between two bursts, {MIN_INTERVAL_MS} ms to "
            f"{MAX_INTERVAL_MS // 1000} s in whole ms, as in 200ms"
        )
    return int(interval_ms)


def _refuse_rate(rate: int | str | None, kind: Kind) -> str | None:
    if kind is MULTICAST and rate in (MAX, UNLIMITED):
        return f"{rate} is for test: udp only. Give test: multicast a rate, as in 10M"
    if kind is UDP or not isinstance(rate, str) or share_of_ceiling(rate) is not None:
        return None
    return f"{rate} is for test: udp only. Leave rate out for a stream that sends as fast as it can"


def _per_second(name: str, value: object) -> int | str:
    if value == MAX:
        return MAX
    try:
        return parse_whole(name, value, 1, MOST_PER_SECOND, 1000)
    except FieldError as error:
        raise FieldError(f"{error}; or max") from None


def _refuse_per_second(count: int | str | None, kind: Kind) -> str | None:
    if kind is not CONNECT or count != MAX:
        return None
    return "max is for test: requests only. Leave per_second out for as many connections as the sender can open"


def rate_words(rate: int | str | None) -> str:
    """Return a rate as written in a scenario: `100M`, `max`; `default` for None."""
    return format_rate(rate) if isinstance(rate, int) else value_words(rate)


SIZE: Final[Setting[int | None]] = Setting(
    name="size",
    meaning="Bytes of a message in tests pingpong and blast, of a request in requests, 1 to 16M; in udp, burst and "
    "multicast the payload of a datagram, 1 to 65507 (in burst and multicast from 16 on; below 16 without order; "
    "default: what fits the MTU); in file the size of the file, up to 1048576M.",
    parse=lambda name, value: parse_between(name, value, parse_bytes, (1, _MAX_FILE), "1 to 1048576M", "64K"),
    text=default_or(format_bytes),
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+\s*([kKmM]([iI]?[bB])?)?\s*$"},
            {"type": "integer", "minimum": 1, "maximum": _MAX_FILE},
            SIZE_RANGE_SCHEMA,
        ],
        "examples": [1, "64K"],
    },
    unset=None,
    stored="message_bytes",
    spans="sizes",
    kinds=(UDP, PINGPONG, BLAST, FILE, REQUESTS, BURST_KIND, MULTICAST),
    needed_by=(PINGPONG, BLAST, FILE, REQUESTS),
    columns=(
        DataColumn(
            name="message_bytes",
            unit="B",
            levels=MEASURED | BUCKETS,
            meaning="size of a message, a request or a file; for udp, burst and multicast the payload of a datagram",
        ),
    ),
)
ITERATIONS: Final[Setting[int | None]] = Setting(
    name="iterations",
    meaning="Messages, connections, requests or bursts of each flow, 1 to 1,000,000,000. Default: as many as the "
    "duration allows.",
    parse=lambda name, value: parse_whole(name, value, 1, _MAX_ITERATIONS, 10_000),
    schema={"type": "integer", "minimum": 1, "maximum": _MAX_ITERATIONS, "examples": [10000]},
    unset=None,
    kinds=(PINGPONG, BLAST, CONNECT, REQUESTS, BURST_KIND),
    engines=(AGENT,),
    columns=(as_column("iterations", "", "requested number of messages per flow; empty: as many as the time allows"),),
    hint=". To measure more often use repeat",
)
RATE: Final[Setting[int | str | None]] = Setting(
    name="rate",
    meaning="Payload bit/s of each flow in tests udp, multicast and tcp, as in 100M; the kernel limits TCP to the rate "
    "(SO_MAX_PACING_RATE). 60% is that share of the pair's ceiling, divided among its flows. Only udp: max searches "
    "the highest rate with a loss of at most max_loss; unlimited is as fast as the sender can.",
    parse=or_default(_rate),
    text=rate_words,
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([kKmMgGtT]?\s*(bit/s|bits/s|bps|bit)?|%)\s*$"},
            {"type": "integer", "minimum": _MIN_RATE_BPS, "maximum": _MAX_RATE_BPS},
            {"enum": [MAX, UNLIMITED, DEFAULT]},
        ],
        "examples": ["100M", MAX],
    },
    unset=None,
    type=(int, str),
    kinds=(TCP, UDP, MULTICAST),
    needed_by=(UDP, MULTICAST),
    refused=_refuse_rate,
    effective=Effective[int | str | None](
        "max_pacing_bps",
        equal=lambda asked, side: not isinstance(asked, int) or abs(asked - side[RATE]) < _WHOLE_BYTES,
        column="rate_effective_mbps",
        in_unit=lambda bps: bps / 1e6 if isinstance(bps, int) else None,
    ),
    columns=(
        as_column("rate_mbps", "Mbit/s", "requested payload rate of each flow; empty: as fast as possible", 1),
        as_column(
            "rate_effective_mbps",
            "Mbit/s",
            "rate to which the senders' kernels limit each TCP flow (tcpi_max_pacing_rate); empty: no limit",
            1,
        ),
    ),
    phrase=lambda rate: f"rate {rate_words(rate)}",
    hint=". Other tests send as fast as they can",
)
BURST: Final = whole_number(
    "burst",
    1,
    MAX_BURST,
    8,
    meaning="Tests udp and multicast: most datagrams that a late sender sends at once, 1 to 1,000,000; it skips the "
    "rest. Default: the datagrams of 10 ms; with rate max, of 1 ms.",
    kinds=(UDP, MULTICAST),
    engines=(AGENT,),
    columns=(
        as_column("burst", "", "requested longest burst of a sender, in datagrams; empty: not set"),
        as_column(
            "burst_effective",
            "",
            "datagrams in the longest burst of a sender with a rate; a policer at this rate drops none if its bucket "
            "holds as many",
        ),
    ),
    phrase=lambda count: f"burst {count}",
)
TRANSPORT: Final[Setting[str]] = choice(
    "transport",
    ("tcp", "udp"),
    meaning="Transport of a ping-pong: tcp or udp.",
    unset="tcp",
    kinds=(PINGPONG,),
    engines=(AGENT,),
    columns=(as_column("transport", "", "tcp or udp"),),
)
READ: Final[Setting[str | None]] = choice(
    "read",
    _PLACES,
    meaning="Test file: where the sender reads the bytes, disk or memory.",
    schema={"enum": list(_PLACES), "examples": ["disk"]},
    kinds=(FILE,),
    engines=(AGENT,),
    columns=(as_column("read", "", "where the sender reads a file: disk or memory"),),
)
WRITE: Final[Setting[str | None]] = choice(
    "write",
    _PLACES,
    meaning="Test file: where the receiver writes the bytes, disk or memory.",
    kinds=(FILE,),
    engines=(AGENT,),
    columns=(as_column("write", "", "where the receiver writes a file: disk or memory"),),
)
BUSY_POLL: Final = flag(
    "busy_poll",
    meaning="true: both ends of a ping-pong wait without sleeping.",
    kinds=(PINGPONG,),
    engines=(AGENT,),
    order=OrderKey("busy"),
    columns=(
        as_column("busy_poll", "", "true: both ends were to wait without sleeping (busy polling); empty: not set"),
    ),
    phrase=None,
)
CLOSE: Final[Setting[str | None]] = choice(
    "close",
    ("reset", "sender", "receiver"),
    meaning="Test connect: who closes a connection. reset: the sender, by RST, which leaves nothing. sender, receiver: "
    "the end that closes first, which keeps the connection in TIME-WAIT for a minute. Default: reset.",
    kinds=(CONNECT,),
    engines=(AGENT,),
    order=OrderKey("close"),
    columns=(as_column("close", "", "who closes each connection: reset, sender or receiver"),),
    phrase=lambda who: f"close {who}",
)
PER_SECOND: Final = Setting[int | str | None](
    name="per_second",
    meaning="Connections or requests per second of each pair, begun at equal intervals and shared by its flows. Test "
    "requests begins each at its time, whether or not earlier ones were answered; max searches the highest number "
    "whose 99th percentile is within max_latency. Default of test connect: each flow opens a connection as soon as its "
    "last one is closed.",
    parse=or_default(_per_second),
    schema={
        "anyOf": [
            RANGE_SCHEMA,
            {"type": "integer", "minimum": 1, "maximum": MOST_PER_SECOND},
            {"enum": [MAX, DEFAULT]},
        ],
        "examples": [1000, MAX],
    },
    unset=None,
    type=(int, str),
    spans="numbers",
    kinds=(CONNECT, REQUESTS),
    needed_by=(REQUESTS,),
    engines=(AGENT,),
    columns=(
        as_column("per_second", "", "requested connections or requests per second of a pair; empty: one after another"),
    ),
    refused=_refuse_per_second,
    phrase=lambda count: f"per_second {count}" if count == MAX else f"{count}/s",
    noun="rate per second",
)
REPLY: Final[Setting[int | None]] = Setting(
    name="reply",
    meaning="Test requests: bytes of the reply to each request, 1 to 16M. Default: as many as the request has (size).",
    parse=lambda name, value: parse_between(name, value, parse_bytes, (1, _MAX_REPLY), "1 to 16M", "4K"),
    text=default_or(format_bytes),
    schema={
        "anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+\s*([kKmM]([iI]?[bB])?)?\s*$"},
            {"type": "integer", "minimum": 1, "maximum": _MAX_REPLY},
            SIZE_RANGE_SCHEMA,
        ],
        "examples": [1, "4K"],
    },
    unset=None,
    stored="reply_bytes",
    spans="sizes",
    kinds=(REQUESTS,),
    engines=(AGENT,),
    order=OrderKey("reply", bounds=(1, _MAX_REPLY)),
    columns=(as_column("reply_bytes", "B", "size of the reply to a request"),),
    phrase=lambda size: f"reply {format_bytes(size or 0)}",
)
LENGTH: Final[Setting[int | str | None]] = Setting(
    name="length",
    meaning="Test burst: datagrams that each flow sends at once, 1 to 1,000,000; max searches the most of which none "
    "is lost.",
    parse=lambda name, value: MAX if value == MAX else parse_whole(name, value, 1, MAX_BURST, 100),
    schema={
        "anyOf": [RANGE_SCHEMA, {"type": "integer", "minimum": 1, "maximum": MAX_BURST}, {"const": MAX}],
        "examples": [100, MAX],
    },
    unset=None,
    type=(int, str),
    spans="numbers",
    kinds=(BURST_KIND,),
    needed_by=(BURST_KIND,),
    engines=(AGENT,),
    # A check connects the flows of a search, too: with the shortest bursts.
    order=OrderKey("length", bounds=(1, MAX_BURST), number=lambda length: length if isinstance(length, int) else 1),
    phrase=lambda count: f"burst length {count}",
    noun="burst length",
)
INTERVAL: Final[Setting[int | None]] = Setting(
    name="interval",
    meaning="Test burst: time from the beginning of one burst to that of the next, 10ms to 60s in whole ms, in which "
    "the port must drain. Default: twice the time in which the slowest link carries a burst, at least 100ms.",
    parse=parse_interval,
    text=lambda interval_ms: DEFAULT if interval_ms is None else f"{interval_ms} ms",
    schema={"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s)\s*$", "examples": ["200ms"]},
    unset=None,
    stored="burst_interval_ms",
    kinds=(BURST_KIND,),
    engines=(AGENT,),
    columns=(as_column("burst_interval_ms", "ms", "time from one burst to the next"),),
)
_MOST_WAIT_MS: Final = 600_000


def _group(name: str, value: object) -> str:
    """Return the address of a multicast group. Raise `FieldError` for one that switches flood, or no group."""
    with suppress(ValueError):
        address = ipaddress.ip_address(str(value).strip())
        scope = int(address) >> 112 & 15  # of IPv6 (RFC 4291): 1 is the interface's, 2 the link's
        if address.is_multicast and (scope > 2 if address.version == 6 else int(address) >> 8 != 0xE00000):
            return str(address)
    raise FieldError(
        f"{name} {show_value(value)}: expected a multicast address, not of the link, as in 239.255.0.7 or ff15::7"
    )


def _moment_ms(name: str, value: object) -> int:
    return round(1e3 * parse_between(name, value, parse_duration, (0.0, _MOST_WAIT_MS / 1e3), "0 s to 10 min", "1s"))


def _moment(name: str, meaning: str, stored: str, column: str) -> Setting[int | None]:
    return Setting(
        name=name,
        meaning=meaning,
        parse=_moment_ms,
        text=default_or(lambda time_ms: format_duration(time_ms / 1e3)),
        schema={
            "anyOf": [
                {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|min)?\s*$"},
                {"type": "number", "minimum": 0},
            ],
            "examples": ["1s"],
        },
        unset=None,
        stored=stored,
        kinds=(MULTICAST,),
        engines=(AGENT,),
        order=OrderKey(f"{name}_ms", Ends.RECEIVER, bounds=(0, _MOST_WAIT_MS)),
        columns=(as_column(stored, "ms", column),),
    )


UNJOINED: Final = whole_number(
    "unjoined",
    0,
    MAX_PAIRS - 1,
    1,
    meaning="Test multicast: the destinations of so many of the last pairs do not join the group. They only count its "
    "frames that reach them, for which their agents need root. Default: 0.",
    kinds=(MULTICAST,),
    engines=(AGENT,),
    columns=(as_column("unjoined", "", "number of the last pairs whose destinations do not join the group"),),
    phrase=lambda count: f"{count} unjoined",
)
JOIN: Final = _moment(
    "join",
    "Test multicast: how long after the start the receivers join the group, 0 to 10 min. Default: 1s, or a tenth of "
    "the duration if that is less.",
    "join_at_ms",
    "how long after the start the receivers were to join the group",
)
LEAVE: Final = _moment(
    "leave",
    "Test multicast: how long before the end the receivers leave the group, 0 to 10 min. Default: 3s, or three tenths "
    "of the duration if that is less.",
    "leave_before_ms",
    "how long before the end the receivers were to leave the group",
)
GROUP: Final[Setting[str | None]] = Setting(
    name="group",
    meaning="Test multicast: the group, an address of 224.0.1.0 to 239.255.255.255, or of IPv6 with a scope above 2. "
    "Default: a random one of 239.255.0.0/16 or ff15::/16, another in each repetition.",
    parse=_group,
    schema={"type": "string", "pattern": r"^\s*[0-9a-fA-F.:]{3,45}\s*$", "examples": ["239.255.0.7", "ff15::7"]},
    unset=None,
    stored="multicast_group",
    type=str,
    kinds=(MULTICAST,),
    engines=(AGENT,),
    order=OrderKey("group"),
    columns=(as_column("multicast_group", "", "requested group; empty: a random one"),),
    phrase=lambda group: f"group {group}",
)
TTL: Final = whole_number(
    "ttl",
    1,
    255,
    1,
    meaning="Test multicast: routers that the datagrams may pass, plus one (IP_MULTICAST_TTL). Default: 1.",
    heading="TTL",
    kinds=(MULTICAST,),
    engines=(AGENT,),
    order=OrderKey("ttl", Ends.SENDER, bounds=(1, 255)),
    columns=(as_column("ttl", "", "time to live of multicast datagrams; empty: 1"),),
    phrase=lambda count: f"TTL {count}",
)
LATENCY: Final[Setting[int | None]] = Setting(
    name="latency",
    meaning="Probes of the round-trip time before and beside the streams of tests tcp and udp: true (a probe every "
    "20 ms), the time between probes (1ms to 1s), or false.",
    parse=parse_latency,
    text=lambda interval_ms: "off" if interval_ms is None else f"{interval_ms} ms",
    schema={
        "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s)\s*$"}],
        "examples": [True, "20ms"],
    },
    unset=None,
    stored="latency_ms",
    kinds=(TCP, UDP),
    engines=(AGENT,),
    phrase=lambda interval_ms: f"probes every {interval_ms} ms",
    noun="probes",
)
