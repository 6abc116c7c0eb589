"""The queueing discipline of a condition: its text in files and reports, and its form for the agent.

The agent's form is `KIND:HANDLE:OPTIONS`, with the kernel's options in hexadecimal (linux/pkt_sched.h), so that the
agent restores exactly what it read. KIND alone stands for a discipline that the kernel chose.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from rigctl.base.units import format_bytes, parse_bytes, parse_duration, parse_rate
from rigctl.conditions.key import MOST_NUMBER, HostKey, of_group
from rigctl.records import HostSetting
from rigctl.yamlfile import Mistake, YamlDocument, YamlSection
from rigctl.yamlfile.fields import parse_between, parse_flag, parse_word

_ATTRIBUTE: Final = struct.Struct("<HH")  # netlink attribute header: length of header and data, type (netlink(7))
_NUMBER: Final = struct.Struct("<I")
_NO_NUMBER: Final = 0xFFFFFFFF
# struct tc_tbf_qopt: rate (cell_log, linklayer, overhead, cell_align, mpu, bytes/s), peak rate, limit, buffer, mtu
_TBF: Final = struct.Struct("<BBHhHI 12s III")
_TBF_PARMS, _TBF_RATE64 = 1, 4
_ETHERNET: Final = 1  # link layer: TC_LINKLAYER_ETHERNET
_TICKS_PER_S: Final = 15_625_000  # ticks of 64 ns


def _rate_text(rate_bps: int) -> str:
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 1000)):
        if rate_bps and rate_bps % factor == 0:
            return f"{rate_bps // factor}{unit}"
    return str(rate_bps)


def _time_text(time_us: int) -> str:
    return f"{time_us // 1000}ms" if time_us % 1000 == 0 else f"{time_us}us"


@dataclass(frozen=True, slots=True)
class _Unit:
    """Parses and formats a parameter. Its value is the kernel's number × `scale`, as bit/s = bytes/s × 8."""

    parse: Callable[[str], int]
    text: Callable[[int], str]
    scale: int = 1


_COUNT: Final = _Unit(int, str)
_BYTES: Final = _Unit(parse_bytes, format_bytes)
_RATE: Final = _Unit(parse_rate, _rate_text, 8)
_TIME: Final = _Unit(lambda text: round(parse_duration(text) * 1e6), _time_text)
_SWITCH: Final = _Unit(lambda text: int(text == "on"), lambda number: "on" if number else "off")

_QDISCS: Final[dict[str, dict[str, tuple[int, _Unit]]]] = {
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
"""Maps a kind and a parameter to netlink attribute and unit. Attribute 0: the options are one number or struct."""


def qdisc_text(kind: str, parameters: Iterable[tuple[str, int]]) -> str:
    """Return a queueing discipline as text, such as `tbf rate 500M burst 128K limit 400K`."""
    known = _QDISCS[kind]
    return " ".join([kind, *(f"{name} {known[name][1].text(number)}" for name, number in parameters)])


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


def _to_agent(text: str) -> str:
    kind = _kind(text)
    known = _QDISCS[kind]
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


def _from_agent(value: str) -> str:
    """Convert a queueing discipline from the agent's form to text, without the handle, which is only an identifier."""
    kind, colon, rest = value.partition(":")
    if not colon:
        return f"{kind} (default)"
    try:
        numbers = _numbers(kind, bytes.fromhex(rest.rpartition(":")[2]))
    except (ValueError, struct.error):
        return value
    return qdisc_text(kind, numbers.items()) if kind in _QDISCS else kind


def _numbers(kind: str, options: bytes) -> dict[str, int]:
    known = _QDISCS.get(kind, {})
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


def _is_asked(asked: str, found: str) -> bool:
    return _kind(asked) == _kind(found) and set(_pairs(asked)) <= set(_pairs(found))


_MOST_RATE: Final = 10**12
_EXAMPLE: Final = "{kind: tbf, rate: 500M, burst: 128K, limit: 400K}"


def _quantity(
    parse: Callable[[str | int | float, str], float], scale: float, low: int, high: int, expected: str, example: str
) -> tuple[PlainValidator, WithJsonSchema]:
    def scaled(text: str | int | float, name: str) -> int:
        return round(parse(text, name) * scale)

    read = of_group("qdisc", lambda name, value: parse_between(name, value, scaled, (low, high), expected, example))
    return read, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]})


_Bytes = Annotated[int | None, *_quantity(parse_bytes, 1, 1, MOST_NUMBER, "1 byte to 4 GiB", "128K")]
_Count = Annotated[int | None, *_quantity(parse_bytes, 1, 1, MOST_NUMBER, "1 or more", "1000")]
_Rate = Annotated[int | None, *_quantity(parse_rate, 1, 8, _MOST_RATE, "8 bit/s to 1 Tbit/s", "500M")]
_Time = Annotated[int | None, *_quantity(parse_duration, 1e6, 1, MOST_NUMBER, "1 us or more", "5ms")]
_Switch = Annotated[
    int | None, of_group("qdisc", lambda name, value: int(parse_flag(name, value))), WithJsonSchema({"type": "boolean"})
]


class QdiscSection(YamlSection):
    """The queueing discipline of the interface's root (tc-qdisc). A missing key has the kernel's default."""

    kind: Annotated[
        str, PlainValidator(lambda value: parse_word("qdisc", value, _QDISCS)), WithJsonSchema({"enum": list(_QDISCS)})
    ] = Field(description="Kind of the queueing discipline.")
    rate: _Rate = Field(None, description="tbf: rate in bit/s.", examples=["500M"])
    burst: _Bytes = Field(None, description="tbf: depth of the bucket in bytes.", examples=["128K"])
    limit: _Bytes = Field(None, description="Queue length in bytes (tbf, bfifo) or packets.", examples=["400K"])
    flow_limit: _Count = Field(None, description="fq: most packets of a flow in the queue.")
    flows: _Count = Field(None, description="fq_codel: number of queues.")
    quantum: _Bytes = Field(None, description="fq, fq_codel: bytes that a flow may send in its turn.")
    pacing: _Switch = Field(None, description="fq: keep to the pacing rate of a socket.")
    maxrate: _Rate = Field(None, description="fq: highest rate of a flow in bit/s.")
    target: _Time = Field(None, description="fq_codel: accepted delay in the queue.", examples=["5ms"])
    interval: _Time = Field(None, description="fq_codel: how long the delay may exceed the target.", examples=["100ms"])
    ecn: _Switch = Field(None, description="fq_codel: mark packets before dropping them.")
    memory_limit: _Bytes = Field(None, description="fq_codel: most bytes in all queues.")


def _text_is_kind(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"kind": value}


def _qdisc_mistakes(document: YamlDocument, path: tuple[str, ...], keys: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield mistakes for parameters that the kind does not have, and for missing parameters of tbf."""
    if keys["qdisc"] is None:
        return
    kind, given = keys["qdisc"].kind, keys["qdisc"].model_fields_set - {"kind"}
    taken = ", ".join(_QDISCS[kind]) or "no parameter"
    for name in given - _QDISCS[kind].keys():
        what = f'qdisc {kind}: has no "{name}". It takes {taken}.'
        yield document.mistake((*path, "qdisc", name), what, at_key=True)
    missing = [name for name in _QDISCS[kind] if name not in given] if kind == "tbf" else []
    if missing:
        what = f"qdisc tbf: lacks {', '.join(missing)}. It needs {taken}, as in {_EXAMPLE}."
        yield document.mistake((*path, "qdisc"), what, at_key=True)


def _settings(section: QdiscSection) -> list[HostSetting]:
    given = section.model_dump()
    parameters = [(key, given[key]) for key in _QDISCS[section.kind] if given[key] is not None]
    return [HostSetting("qdisc", qdisc_text(section.kind, parameters))]


QDISC: Final = HostKey(
    "qdisc",
    Annotated[QdiscSection | None, BeforeValidator(_text_is_kind)],
    Field(
        None,
        description="Queueing discipline of the data interface's root.",
        examples=["fq"],
        json_schema_extra=lambda schema: schema.update(
            anyOf=[{"enum": list(_QDISCS)}, QdiscSection.model_json_schema()]
        ),
    ),
    _settings,
    # Set first and restored last, because the kernel's default depends on net.core.default_qdisc and the MTU.
    first=True,
    to_agent=_to_agent,
    from_agent=_from_agent,
    is_asked=_is_asked,
    mistakes=_qdisc_mistakes,
    untried=lambda setting: f"the parameters of qdisc {setting.value}" if " " in setting.value else None,
)
