"""Values of host settings of a card as the agent has them: queueing disciplines, and processors of receive queues.

The agent writes and reads a queueing discipline as `KIND:HANDLE:OPTIONS`, with the kernel's own options in hexadecimal
(linux/pkt_sched.h), so that it restores exactly what it read. A kind alone is the kernel's own choice. Processors are
masks, as in /sys/class/net/*/queues/rx-*/rps_cpus.
"""

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rigctl.base.units import (
    format_bytes,
    mask_processors,
    parse_bytes,
    parse_duration,
    parse_processors,
    parse_rate,
    processors_text,
)

_ATTRIBUTE: Final = struct.Struct("<HH")  # length with this header, type (netlink(7))
_NUMBER: Final = struct.Struct("<I")
_NO_NUMBER: Final = 0xFFFFFFFF
# struct tc_tbf_qopt: rate (cell_log, linklayer, overhead, cell_align, mpu, bytes/s), peak rate, limit, buffer, mtu
_TBF: Final = struct.Struct("<BBHhHI 12s III")
_TBF_PARMS, _TBF_RATE64 = 1, 4
_ETHERNET: Final = 1  # linklayer
_TICKS_PER_S: Final = 15_625_000  # of 64 ns
ONLINE: Final = "cat /sys/devices/system/cpu/online"
"""The command that lists a node's processors."""


def _rate_text(rate_bps: int) -> str:
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 1000)):
        if rate_bps and rate_bps % factor == 0:
            return f"{rate_bps // factor}{unit}"
    return str(rate_bps)


def _time_text(time_us: int) -> str:
    return f"{time_us // 1000}ms" if time_us % 1000 == 0 else f"{time_us}us"


@dataclass(frozen=True, slots=True)
class _Unit:
    """How a parameter is read and written, and by what the kernel's number is multiplied."""

    parse: Callable[[str], int]
    text: Callable[[int], str]
    scale: int = 1


_COUNT: Final = _Unit(int, str)
_BYTES: Final = _Unit(parse_bytes, format_bytes)
_RATE: Final = _Unit(parse_rate, _rate_text, 8)
_TIME: Final = _Unit(lambda text: round(parse_duration(text) * 1e6), _time_text)
_SWITCH: Final = _Unit(lambda text: int(text == "on"), lambda number: "on" if number else "off")

QDISCS: Final[dict[str, dict[str, tuple[int, _Unit]]]] = {
    "pfifo": {"limit": (0, _COUNT)},
    "bfifo": {"limit": (0, _BYTES)},
    "tbf": {"rate": (0, _RATE), "burst": (0, _BYTES), "limit": (0, _BYTES)},
    "fq": {
        "limit": (1, _COUNT),
        "flow_limit": (2, _COUNT),
        "quantum": (3, _BYTES),
        "pacing": (5, _SWITCH),
        "maxrate": (7, _RATE),
    },
    "fq_codel": {
        "limit": (2, _COUNT),
        "flows": (5, _COUNT),
        "quantum": (6, _BYTES),
        "target": (1, _TIME),
        "interval": (3, _TIME),
        "ecn": (4, _SWITCH),
        "memory_limit": (9, _BYTES),
    },
    "pfifo_fast": {},
    "mq": {},
    "noqueue": {},
}
"""Kind → parameter → its attribute and unit. Attribute 0: the options are that number alone, or tbf's struct."""


def qdisc_text(kind: str, parameters: Iterable[tuple[str, int]]) -> str:
    """Return a queueing discipline as conditions show it: `tbf rate 500M burst 128K limit 400K`."""
    known = QDISCS[kind]
    return " ".join([kind, *(f"{name} {known[name][1].text(number)}" for name, number in parameters)])


def to_agent(kind: str, value: str, online: str = "") -> str:
    """Return the value of a host setting as the agent takes it. `online`: the node's processors, of `ONLINE`."""
    if kind == "qdisc":
        return _qdisc_to_agent(value)
    if kind == "rps":
        return _mask(parse_processors(online if value == "all" else "" if value == "off" else value))
    return value


def from_agent(kind: str, value: str) -> str:
    """Return a value that the agent has read as conditions show it."""
    if kind == "qdisc":
        return _qdisc_from_agent(value)
    if kind == "rps" and re.fullmatch(r"[0-9a-f,;]+", value):
        lists = [processors_text(mask_processors(mask)) or "off" for mask in value.split(";")]
        return lists[0] if len(lists) == 1 else ", ".join(f"rx-{at}: {own}" for at, own in enumerate(lists))
    return value


def is_asked(kind: str, asked: str, found: str) -> bool:
    """Tell whether a value, as `from_agent` returns it, is what was asked for."""
    if kind == "qdisc":
        return _kind(asked) == _kind(found) and set(_pairs(asked)) <= set(_pairs(found))
    return asked in (found, "all")


def _mask(numbers: Iterable[int]) -> str:
    digits = f"{sum(1 << number for number in set(numbers)):x}"
    padded = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(padded[at : at + 8] for at in range(0, len(padded), 8))


def _kind(text: str) -> str:
    return text.partition(" ")[0]


def _pairs(text: str) -> list[tuple[str, str]]:
    words = text.split()[1:]
    return list(zip(words[::2], words[1::2], strict=False))


def _attribute(type_: int, data: bytes) -> bytes:
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), type_) + data + b"\0" * (-len(data) % 4)


def _attributes(options: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(options):
        length, type_ = _ATTRIBUTE.unpack_from(options, at)
        if length < _ATTRIBUTE.size:
            break
        found[type_] = options[at + _ATTRIBUTE.size : at + length]
        at += -(-length // 4) * 4
    return found


def _qdisc_to_agent(text: str) -> str:
    kind = _kind(text)
    known = QDISCS[kind]
    numbers = {name: known[name][1].parse(value) for name, value in _pairs(text)}
    if kind == "tbf":
        rate = numbers["rate"] // 8
        ticks = min(numbers["burst"] * _TICKS_PER_S // rate, _NO_NUMBER)
        short = min(rate, _NO_NUMBER)
        packed = _TBF.pack(0, _ETHERNET, 0, 0, 0, short, bytes(12), numbers["limit"], ticks, 0)
        options = _attribute(_TBF_PARMS, packed)
        options += _attribute(_TBF_RATE64, struct.pack("<Q", rate)) if rate > short else b""
    else:
        parts = [(known[name][0], _NUMBER.pack(number // known[name][1].scale)) for name, number in numbers.items()]
        options = b"".join(_attribute(type_, data) if type_ else data for type_, data in parts)
    return f"{kind}:0:{options.hex()}"


def _qdisc_from_agent(value: str) -> str:
    """Return the kind and parameters. The handle, which the kernel counts up, says nothing of how packets fare."""
    kind, colon, rest = value.partition(":")
    if not colon:
        return f"{kind} (default)"
    try:
        numbers = _numbers(kind, bytes.fromhex(rest.rpartition(":")[2]))
    except (ValueError, struct.error):
        return value
    return qdisc_text(kind, numbers.items()) if kind in QDISCS else kind


def _numbers(kind: str, options: bytes) -> dict[str, int]:
    known = QDISCS.get(kind, {})
    if kind == "tbf":
        inner = _attributes(options)
        *_, short, _, limit, ticks, _ = _TBF.unpack(inner[_TBF_PARMS]) if _TBF_PARMS in inner else _TBF.unpack(b"")
        rate = struct.unpack("<Q", inner[_TBF_RATE64])[0] if _TBF_RATE64 in inner else short
        return {"rate": rate * 8, "burst": -(-ticks * rate // _TICKS_PER_S), "limit": limit}
    inner = _attributes(options) if any(type_ for type_, _ in known.values()) else {0: options}
    found = {}
    for name, (type_, unit) in known.items():
        data = inner.get(type_, b"")
        if len(data) == _NUMBER.size and (number := _NUMBER.unpack(data)[0]) != _NO_NUMBER:
            found[name] = number * unit.scale
    return found
