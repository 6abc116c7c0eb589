"""Settings of a network card in a condition: rings, channels, coalescing, pause frames, queueing discipline, RPS."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationInfo, WithJsonSchema

from rigctl.base.units import parse_bytes, parse_duration, parse_processors, parse_rate, processors_text
from rigctl.protocol.card import QDISCS, qdisc_text
from rigctl.records import HostSetting
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.fields import FieldError, parse_flag, parse_quantity, parse_whole, shown

_MOST: Final = 2**32 - 1
_MOST_RATE: Final = 10**12
_MOST_PROCESSORS: Final = 1024
_TBF: Final = "{kind: tbf, rate: 500M, burst: 128K, limit: 400K}"
_RPS: Final = "processors as in 0-3,6, or off or all"


class Section(BaseModel):
    """Keys and values of a scenario file; a key that is not known is a mistake."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


def on_off(what: str, value: object) -> str:
    """Return `on` or `off`, or raise `FieldError`. YAML's own booleans are good, too: `gro: true` is on."""
    word = {True: "on", False: "off"}.get(value, "") if isinstance(value, bool) else str(value).lower()
    if word not in {"on", "off"}:
        raise FieldError(f"{what} {shown(value)}: expected on or off")
    return word


def _named(family: str, parse: Callable[[str, object], object]) -> PlainValidator:
    def validate(value: object, info: ValidationInfo) -> object:
        return parse(f"{family} {info.field_name}", value)

    return PlainValidator(validate)


def _whole(family: str, low: int, high: int, example: int) -> tuple[PlainValidator, WithJsonSchema]:
    schema = WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})
    return _named(family, lambda name, value: str(parse_whole(name, value, low, high, example))), schema


def _quantity(
    parse: Callable[[str | int | float, str], float], scale: float, low: int, high: int, expected: str, example: str
) -> tuple[PlainValidator, WithJsonSchema]:
    def check(name: str, value: object) -> int:
        number = round(parse_quantity(name, value, parse, example) * scale)
        if not low <= number <= high:
            raise FieldError(f"{name} {shown(value)}: expected {expected}, as in {example}")
        return number

    return _named("qdisc", check), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]})


_ON_OFF: Final = WithJsonSchema({"enum": ["on", "off", True, False]})
_Ring = Annotated[str | None, *_whole("rings", 1, 2**20, 512)]
_Channels = Annotated[str | None, *_whole("channels", 0, _MOST_PROCESSORS, 4)]
_Coalesce = Annotated[str | None, *_whole("coalesce", 0, _MOST, 50)]
_Adaptive = Annotated[str | None, _named("coalesce", on_off), _ON_OFF]
_Pause = Annotated[str | None, _named("pause", on_off), _ON_OFF]
_Bytes = Annotated[int | None, *_quantity(parse_bytes, 1, 1, _MOST, "1 byte to 4 GiB", "128K")]
_Count = Annotated[int | None, *_quantity(parse_bytes, 1, 1, _MOST, "1 or more", "1000")]
_Rate = Annotated[int | None, *_quantity(parse_rate, 1, 8, _MOST_RATE, "8 bit/s to 1 Tbit/s", "500M")]
_Time = Annotated[int | None, *_quantity(parse_duration, 1e6, 1, _MOST, "1 us or more", "5ms")]
_Switch = Annotated[
    int | None, _named("qdisc", lambda name, value: int(parse_flag(name, value))), WithJsonSchema({"type": "boolean"})
]


class RingsSection(Section):
    """Sizes of the card's rings, in descriptors (ethtool -G)."""

    rx: _Ring = Field(None, description="Receive ring.", examples=[512])
    tx: _Ring = Field(None, description="Transmit ring.", examples=[512])


class ChannelsSection(Section):
    """Numbers of the card's queues (ethtool -L)."""

    rx: _Channels = Field(None, description="Queues that only receive.", examples=[4])
    tx: _Channels = Field(None, description="Queues that only send.", examples=[4])
    combined: _Channels = Field(None, description="Queues that do both.", examples=[4])


class CoalesceSection(Section):
    """Interrupt coalescing (ethtool -C). Adaptive coalescing is set first."""

    adaptive_rx: _Adaptive = Field(None, description="The driver chooses the receive values.")
    adaptive_tx: _Adaptive = Field(None, description="The driver chooses the send values.")
    rx_usecs: _Coalesce = Field(None, description="Microseconds until an interrupt for received packets.")
    rx_frames: _Coalesce = Field(None, description="Packets until an interrupt for received packets.")
    tx_usecs: _Coalesce = Field(None, description="Microseconds until an interrupt for sent packets.")
    tx_frames: _Coalesce = Field(None, description="Packets until an interrupt for sent packets.")


class PauseSection(Section):
    """Pause frames of IEEE 802.3x (ethtool -A). Negotiation is set first."""

    autoneg: _Pause = Field(None, description="Both ends of the link negotiate them.")
    rx: _Pause = Field(None, description="The card obeys them.")
    tx: _Pause = Field(None, description="The card sends them.")


def _kind(value: object) -> str:
    if not isinstance(value, str) or value not in QDISCS:
        raise FieldError(f"qdisc {shown(value)}: unknown.{suggestion(str(value), tuple(QDISCS))}")
    return value


class QdiscSection(Section):
    """The queueing discipline of the interface's root (tc-qdisc). What is not named has the kernel's default."""

    kind: Annotated[str, PlainValidator(_kind), WithJsonSchema({"enum": list(QDISCS)})] = Field(description="Its kind.")
    rate: _Rate = Field(None, description="tbf: bit/s.", examples=["500M"])
    burst: _Bytes = Field(None, description="tbf: depth of the bucket in bytes.", examples=["128K"])
    limit: _Bytes = Field(None, description="Its length: bytes of tbf and bfifo, else packets.", examples=["400K"])
    flow_limit: _Count = Field(None, description="fq: packets of a flow.")
    flows: _Count = Field(None, description="fq_codel: number of queues.")
    quantum: _Bytes = Field(None, description="fq, fq_codel: bytes of a flow's turn.")
    pacing: _Switch = Field(None, description="fq: keep to the pacing rate of a socket.")
    maxrate: _Rate = Field(None, description="fq: most bit/s of a flow.")
    target: _Time = Field(None, description="fq_codel: accepted delay in the queue.", examples=["5ms"])
    interval: _Time = Field(None, description="fq_codel: how long the delay may last.", examples=["100ms"])
    ecn: _Switch = Field(None, description="fq_codel: mark packets before dropping them.")
    memory_limit: _Bytes = Field(None, description="fq_codel: bytes of all queues.")


def _rps(value: object) -> str:
    items = value if isinstance(value, list) else ["off" if value is False else value]
    text = ",".join(str(item) for item in items).strip().lower()
    if text in ("off", "all"):
        return text
    try:
        found = parse_processors(text)
    except ValueError:
        found = frozenset()
    if not found or max(found) >= _MOST_PROCESSORS or any(isinstance(item, bool) for item in items):
        raise FieldError(f"rps {shown(value)}: expected {_RPS}")
    return processors_text(found)


def _text_is_kind(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"kind": value}


Rings = RingsSection | None
Channels = ChannelsSection | None
Coalesce = CoalesceSection | None
Pause = PauseSection | None
Qdisc = Annotated[
    QdiscSection | None,
    BeforeValidator(_text_is_kind),
    WithJsonSchema({"anyOf": [{"enum": list(QDISCS)}, QdiscSection.model_json_schema()]}),
]
Rps = Annotated[
    str | None,
    PlainValidator(_rps),
    WithJsonSchema({"anyOf": [{"type": ["string", "integer"]}, {"enum": [False]}, {"type": "array"}]}),
]


def numbers(kind: str, section: Section | None) -> list[HostSetting]:
    """Return the settings of rings, channels, coalescing or pause frames, in the order in which they are set."""
    found = {} if section is None else section.model_dump()
    return [HostSetting(kind, value, name) for name, value in found.items() if value is not None]


def qdisc(section: QdiscSection | None) -> list[HostSetting]:
    """Return the setting of a queueing discipline."""
    if section is None:
        return []
    given = section.model_dump()
    known = [(name, given[name]) for name in QDISCS[section.kind] if given[name] is not None]
    return [HostSetting("qdisc", qdisc_text(section.kind, known))]


def qdisc_mistakes(document: Document, path: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield parameters that a kind of queueing discipline does not have, and those that tbf lacks."""
    given = _text_is_kind(section.get("qdisc"))
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(kind, str) or kind not in QDISCS:
        return
    taken = ", ".join(QDISCS[kind]) or "no parameter"
    for name in given:
        if name != "kind" and name not in QDISCS[kind] and name in QdiscSection.model_fields:
            yield document.mistake(
                (*path, "qdisc", name), f'qdisc {kind}: has no "{name}". It takes {taken}.', at_key=True
            )
    missing = [name for name in QDISCS[kind] if name not in given] if kind == "tbf" else []
    if missing:
        what = f"qdisc tbf: {', '.join(missing)} missing. It takes {taken}, as in {_TBF}."
        yield document.mistake((*path, "qdisc"), what, at_key=True)
