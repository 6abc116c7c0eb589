"""The axes of a matrix: one row each in `AXES`, from which parsing, printing, `--set` and the JSON Schema follow."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from rigctl.base.units import format_bytes, format_rate, parse_bytes, parse_rate
from rigctl.engines import AGENT, LIMITS
from rigctl.records import MAX_RATE, UNLIMITED, Direction
from rigctl.rig.fields import FieldError, parse_flag, parse_quantity, parse_text, parse_whole, shown
from rigctl.scenario.latency import parse_latency
from rigctl.yamlfile import suggestion


@dataclass(frozen=True, slots=True)
class PairGrid:
    """N sources, each to M destinations: `3x4`."""

    sources: int
    destinations: int

    def __str__(self) -> str:
        return f"{self.sources}x{self.destinations}"


AxisValue: TypeAlias = int | str | bool | Direction | PairGrid | None
"""A setting of a cell; None: not asked for, the node's default holds."""

DEFAULT: Final = "default"
MIN_WINDOW: Final = 1024
_MAX_WINDOW: Final = 1024**3  # 1 GiB: what the agent takes
_MIN_MSS, _MAX_MSS = 88, 32767  # TCP_MAXSEG's own bounds (linux/net/ipv4/tcp.c: TCP_MIN_MSS, MAX_TCP_WINDOW)
_MAX_PARALLEL = 128
MAX_PAIRS: Final = 1000
MAX_FILE: Final = 2**40
PLACES: Final = ("disk", "memory")
_MAX_ITERATIONS: Final = 10**9
MIN_RATE: Final = 1000
_MAX_RATE_BPS: Final = 10**12
_MAX_BURST: Final = 1_000_000
TRANSPORTS: Final = ("tcp", "udp")
_GRID: Final = re.compile(r"\s*([0-9]{1,4})\s*[x×]\s*([0-9]{1,4})\s*")
_CONDITION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}", re.ASCII)
_CONGESTION: Final = re.compile(r"[a-z0-9_-]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    parse: Callable[[str, object], AxisValue]  # raises FieldError
    text: Callable[[Any], str]
    header: str  # of its column
    meaning: str
    schema: dict[str, Any]
    unset: AxisValue = None  # where a scenario does not say


def _or_default(parse: Callable[[str, object], AxisValue]) -> Callable[[str, object], AxisValue]:
    return lambda name, value: None if value == DEFAULT else parse(name, value)


def _or_dash(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: DEFAULT if value is None else text(value)


def _window(name: str, value: object) -> int:
    size = parse_quantity(name, value, parse_bytes, "64K")
    if not MIN_WINDOW <= size <= _MAX_WINDOW:
        raise FieldError(f'{name} "{value}": expected 1K to 1024M, as in 64K')
    return size


def _mss(name: str, value: object) -> int:
    return parse_whole(name, value, _MIN_MSS, _MAX_MSS, 1460)


def _parallel(name: str, value: object) -> int:
    return parse_whole(name, value, 1, _MAX_PARALLEL, 5)


def _size(name: str, value: object) -> int:
    size = parse_quantity(name, value, parse_bytes, "64K")
    if not 1 <= size <= MAX_FILE:
        raise FieldError(f'{name} "{value}": expected 1 to 1048576M, as in 64K')
    return size


def _iterations(name: str, value: object) -> int:
    return parse_whole(name, value, 1, _MAX_ITERATIONS, 10_000)


def _rate(name: str, value: object) -> int | str:
    if value in (MAX_RATE, UNLIMITED):
        return str(value)
    try:
        rate_bps = parse_quantity(name, value, parse_rate, "100M")
    except ValueError as error:
        raise FieldError(f"{error}; or max, or unlimited") from None
    if not MIN_RATE <= rate_bps <= _MAX_RATE_BPS:
        raise FieldError(f'{name} "{value}": expected 1k to 1T bit/s, max or unlimited, as in 100M')
    return rate_bps


def _place(name: str, value: object) -> str:
    text = parse_text(name, value, "disk or memory")
    if text not in PLACES:
        raise FieldError(f"{name} {shown(text)}: expected disk or memory")
    return text


def _transport(name: str, value: object) -> str:
    text = parse_text(name, value, "tcp or udp")
    if text not in TRANSPORTS:
        raise FieldError(f"{name} {shown(text)}: expected tcp or udp")
    return text


def _engine(name: str, value: object) -> str:
    text = parse_text(name, value, "agent or iperf3")
    if text not in LIMITS:
        raise FieldError(f"{name} {shown(text)}: expected agent or iperf3.{_near(text, list(LIMITS))}")
    return text


def _congestion(name: str, value: object) -> str:
    text = parse_text(name, value, "a congestion control, as in cubic")
    if not _CONGESTION.fullmatch(text):
        raise FieldError(f"{name} {shown(text)}: expected a name of 1 to 15 of a-z, 0-9, _ and -, as in cubic")
    return text


def _pairs(name: str, value: object) -> int | PairGrid:
    match = _GRID.fullmatch(value) if isinstance(value, str) else None
    if match is not None and int(match[1]) and int(match[2]):
        return PairGrid(int(match[1]), int(match[2]))
    try:
        return parse_whole(name, value, 1, MAX_PAIRS, 4)
    except FieldError as error:
        raise FieldError(f"{error}; or N sources each to M destinations, as in 3x4") from None


def parse_condition(name: str, value: object) -> str:
    """The name of a condition. Raises `FieldError`."""
    text = parse_text(name, value, "the name of a condition")
    if not _CONDITION.fullmatch(text):
        raise FieldError(f"{name} {shown(text)}: expected 1 to 40 letters, digits, blanks and any of . _ + -")
    return text


def _direction(name: str, value: object) -> Direction:
    text = parse_text(name, value, "forward, reverse or both")
    known = [str(direction) for direction in Direction]
    if text not in known:
        raise FieldError(f"{name} {shown(text)}: expected forward, reverse or both.{_near(text, known)}")
    return Direction(text)


def _near(text: str, known: list[str]) -> str:
    hint = suggestion(text, known)
    return "" if hint.startswith(" Known") else hint


_WINDOW_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([bB]|[kKmM]([iI]?[bB])?)?\s*$"},
        {"type": "string", "pattern": r"^\s*[0-9]+[kKmM]?\s*\.\.\s*[0-9]+[kKmM]?\s+(step|times)\s+[0-9]+[kKmM]?\s*$"},
        {"type": "integer", "minimum": MIN_WINDOW, "maximum": _MAX_WINDOW},
        {"const": DEFAULT},
    ],
}
_RANGE_SCHEMA: Final = {
    "type": "string",
    "pattern": r"^\s*[0-9]+\s*\.\.\s*[0-9]+(\s+(step|times)\s+[0-9]+)?\s*$",
}
_SIZE_RANGE_SCHEMA: Final = {
    "type": "string",
    "pattern": r"^\s*[0-9]+[kKmM]?\s*\.\.\s*[0-9]+[kKmM]?\s+(step|times)\s+[0-9]+[kKmM]?\s*$",
}
_MSS_SCHEMA: Final = {
    "anyOf": [_RANGE_SCHEMA, {"type": "integer", "minimum": _MIN_MSS, "maximum": _MAX_MSS}, {"const": DEFAULT}],
}

_COUNT_SCHEMA: Final = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]+\s*([x×]\s*[0-9]+|\.\.\s*[0-9]+(\s+(step|times)\s+[0-9]+)?)?\s*$"},
    ],
}

AXES: Final[dict[str, Axis]] = {
    axis.name: axis
    for axis in (
        Axis(
            "condition",
            parse_condition,
            _or_dash(str),
            "Condition",
            "Host settings, by their names under conditions. Default: each of them.",
            {"type": "string", "pattern": f"^{_CONDITION.pattern}$", "examples": ["jumbo"]},
        ),
        Axis(
            "window",
            _or_default(_window),
            _or_dash(format_bytes),
            "Window",
            "TCP window: SO_SNDBUF and SO_RCVBUF requested, 1K to 1024M, or default.",
            {**_WINDOW_SCHEMA, "examples": ["64K", "200K", DEFAULT]},
        ),
        Axis(
            "window_total",
            _or_default(_window),
            _or_dash(format_bytes),
            "Total\nwindow",
            "Total TCP window of the flows of a pair: each gets total / parallel.",
            {**_WINDOW_SCHEMA, "examples": ["128K"]},
        ),
        Axis(
            "mss",
            _or_default(_mss),
            _or_dash(str),
            "MSS",
            "Maximum segment size requested (TCP_MAXSEG), 88 to 32767 bytes, or default.",
            {**_MSS_SCHEMA, "examples": [1460, 8960]},
        ),
        Axis(
            "parallel",
            _parallel,
            str,
            "Parallel",
            "Flows (TCP connections) per pair and direction, 1 to 128.",
            {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": _MAX_PARALLEL}, _RANGE_SCHEMA],
                "examples": [1, 5],
            },
            unset=1,
        ),
        Axis(
            "pairs",
            _pairs,
            _or_dash(str),
            "Pairs",
            "Pairs at once: 4 is the first four of the list, 3x4 its first 3 sources each to its first 4 "
            "destinations. Default: all.",
            {**_COUNT_SCHEMA, "examples": [4, "3x4"]},
        ),
        Axis(
            "size",
            _size,
            _or_dash(format_bytes),
            "Size",
            "Bytes of a message, 1 to 16M, of the tests pingpong and blast; of udp the payload of a datagram, "
            "16 to 65507 (default: what fits the MTU); of file all of it, up to 1048576M.",
            {
                "anyOf": [
                    {"type": "string", "pattern": r"^\s*[0-9]+\s*([kKmM]([iI]?[bB])?)?\s*$"},
                    {"type": "integer", "minimum": 1, "maximum": MAX_FILE},
                    _SIZE_RANGE_SCHEMA,
                ],
                "examples": [1, "64K"],
            },
        ),
        Axis(
            "iterations",
            _iterations,
            _or_dash(str),
            "Iterations",
            "Messages of each flow, 1 to 1,000,000,000. Default: as many as the duration allows.",
            {"type": "integer", "minimum": 1, "maximum": _MAX_ITERATIONS, "examples": [10000]},
        ),
        Axis(
            "rate",
            _rate,
            lambda value: format_rate(value) if isinstance(value, int) else _or_dash(str)(value),
            "Rate",
            "Payload bit/s of each flow of test udp, as in 100M; max: the highest with a loss within max_loss, found "
            "by search; unlimited: as fast as the sender can.",
            {
                "anyOf": [
                    {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kKmMgGtT]?\s*(bit/s|bits/s|bps|bit)?\s*$"},
                    {"type": "integer", "minimum": MIN_RATE, "maximum": _MAX_RATE_BPS},
                    {"enum": [MAX_RATE, UNLIMITED]},
                ],
                "examples": ["100M", MAX_RATE],
            },
        ),
        Axis(
            "burst",
            _or_default(lambda name, value: parse_whole(name, value, 1, _MAX_BURST, 8)),
            _or_dash(str),
            "Burst",
            "Datagrams that a late sender of test udp sends at once at most, 1 to 1,000,000; what it is behind beyond "
            "that is not sent. Default: those of 10 ms; with rate max those of 1 ms.",
            {
                "anyOf": [_RANGE_SCHEMA, {"type": "integer", "minimum": 1, "maximum": _MAX_BURST}, {"const": DEFAULT}],
                "examples": [8],
            },
        ),
        Axis(
            "transport",
            _transport,
            str,
            "Transport",
            "Transport of a ping-pong: tcp or udp.",
            {"enum": list(TRANSPORTS), "examples": ["udp"]},
            unset="tcp",
        ),
        Axis(
            "read",
            _place,
            _or_dash(str),
            "Read",
            "Test file: where the sender reads the bytes, disk or memory.",
            {"enum": list(PLACES), "examples": ["disk"]},
        ),
        Axis(
            "write",
            _place,
            _or_dash(str),
            "Write",
            "Test file: where the receiver writes the bytes, disk or memory.",
            {"enum": list(PLACES), "examples": ["memory"]},
        ),
        Axis(
            "busy_poll",
            _or_default(parse_flag),
            _or_dash(lambda value: "true" if value else "false"),
            "Busy poll",
            "true: both ends of a ping-pong wait without sleeping.",
            {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        ),
        Axis(
            "congestion",
            _or_default(_congestion),
            _or_dash(str),
            "Congestion",
            "Congestion control by its kernel name, or default.",
            {"type": "string", "pattern": f"^{_CONGESTION.pattern}$", "examples": ["cubic", "bbr", "reno"]},
        ),
        Axis(
            "nodelay",
            _or_default(parse_flag),
            _or_dash(lambda value: "true" if value else "false"),
            "Nodelay",
            "TCP_NODELAY: true sends small segments at once, or default.",
            {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        ),
        Axis(
            "zerocopy",
            _or_default(parse_flag),
            _or_dash(lambda value: "true" if value else "false"),
            "Zerocopy",
            "true: senders of TCP streams request MSG_ZEROCOPY; false, default: they copy into the kernel.",
            {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        ),
        Axis(
            "copy",
            _or_default(parse_flag),
            _or_dash(lambda value: "true" if value else "false"),
            "Copy",
            "true: receivers of TCP streams copy the bytes into their memory; false, default: they discard them in the "
            "kernel (MSG_TRUNC).",
            {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        ),
        Axis(
            "direction",
            _direction,
            str,
            "Direction",
            "Direction of the data: forward (source to destination), reverse, or both at once.",
            {"enum": [str(direction) for direction in Direction], "examples": ["forward", "both"]},
            unset=Direction.FORWARD,
        ),
        Axis(
            "engine",
            _engine,
            str,
            "Engine",
            "Who makes and measures the traffic: rigctl's agent, or the nodes' own iperf3 (tests tcp and udp).",
            {"enum": list(LIMITS), "examples": ["iperf3"]},
            unset=AGENT,
        ),
        Axis(
            "latency",
            parse_latency,
            lambda value: "off" if value is None else f"{value} ms",
            "Latency",
            "Round trips beside the streams of tests tcp and udp, idle and under load: true (a probe every 20 ms), the "
            "time between probes (1ms to 1s), or false.",
            {
                "anyOf": [
                    {"type": "boolean"},
                    {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s)\s*$"},
                ],
                "examples": [True, "20ms"],
            },
        ),
    )
}
