"""Conditions: sets of host settings by name, from the scenario's text to the agents' orders.

The bounds are the agent's own (docs/reference/agent-protocol.md, "Host settings"). A value that the agent would refuse
is a mistake in the file, before anything is touched.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema

from rigctl.base.units import parse_bytes, parse_duration, parse_processors, parse_rate, processors_text
from rigctl.protocol.card import QDISCS, qdisc_text
from rigctl.records import Condition, HostSetting
from rigctl.rig.fields import SysctlName, SysctlValue, plain_name
from rigctl.rig.inventory import Rig
from rigctl.settings import DEFAULT, SETTINGS
from rigctl.settings.shape import parse_condition
from rigctl.yamlfile import MOST_FOUND, Document, FieldError, Mistake, Section
from rigctl.yamlfile.fields import (
    Flag,
    empty_if_none,
    named,
    parse_between,
    parse_flag,
    parse_matching,
    parse_whole,
    parse_word,
    shown,
)

OFFLOADS: Final = ("tso", "gso", "gro", "lro", "rx", "tx", "sg")
# Below 1280 Linux drops the interface's IPv6 addresses for good.
_MIN_MTU, _MAX_MTU = 1280, 65535
# The agent holds 64; three are its caller's, for windows that are only where buffers start.
_MOST_SETTINGS: Final = 61
_MOST: Final = 2**32 - 1
_MOST_RATE: Final = 10**12
_MOST_PROCESSORS: Final = 1024
_GOVERNOR: Final = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
_CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
_RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
_BUFFER_SYSCTLS: Final = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_TBF: Final = "{kind: tbf, rate: 500M, burst: 128K, limit: 400K}"
_ON_OFF: Final = WithJsonSchema({"enum": ["on", "off", True, False]})


def _on_off(what: str, value: object) -> str:
    """Return `on` or `off`, or raise `FieldError`. YAML's own booleans count too: `gro: true` is on."""
    word = {True: "on", False: "off"}.get(value, "") if isinstance(value, bool) else str(value).lower()
    if word not in {"on", "off"}:
        raise FieldError(f"{what} {shown(value)}: expected on or off")
    return word


def _of_group(group: str, parse: Callable[[str, object], object]) -> PlainValidator:
    """Return `parse` as a validator whose messages name the group and the key, as in `rings rx`."""

    def validate(value: object, info: ValidationInfo) -> object:
        return parse(f"{group} {info.field_name}", value)

    return PlainValidator(validate)


def _whole(group: str, low: int, high: int, example: int) -> tuple[PlainValidator, WithJsonSchema]:
    schema = WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})
    return _of_group(group, lambda name, value: str(parse_whole(name, value, low, high, example))), schema


def _quantity(
    parse: Callable[[str | int | float, str], float], scale: float, low: int, high: int, expected: str, example: str
) -> tuple[PlainValidator, WithJsonSchema]:
    def scaled(text: str | int | float, name: str) -> int:
        return round(parse(text, name) * scale)

    schema = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]})
    return (
        _of_group("qdisc", lambda name, value: parse_between(name, value, scaled, (low, high), expected, example)),
        schema,
    )


_Ring = Annotated[str | None, *_whole("rings", 1, 2**20, 512)]
_Channels = Annotated[str | None, *_whole("channels", 0, _MOST_PROCESSORS, 4)]
_Coalesce = Annotated[str | None, *_whole("coalesce", 0, _MOST, 50)]
_Adaptive = Annotated[str | None, _of_group("coalesce", _on_off), _ON_OFF]
_Pause = Annotated[str | None, _of_group("pause", _on_off), _ON_OFF]
_Bytes = Annotated[int | None, *_quantity(parse_bytes, 1, 1, _MOST, "1 byte to 4 GiB", "128K")]
_Count = Annotated[int | None, *_quantity(parse_bytes, 1, 1, _MOST, "1 or more", "1000")]
_Rate = Annotated[int | None, *_quantity(parse_rate, 1, 8, _MOST_RATE, "8 bit/s to 1 Tbit/s", "500M")]
_Time = Annotated[int | None, *_quantity(parse_duration, 1e6, 1, _MOST, "1 us or more", "5ms")]
_Switch = Annotated[
    int | None,
    _of_group("qdisc", lambda name, value: int(parse_flag(name, value))),
    WithJsonSchema({"type": "boolean"}),
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


class QdiscSection(Section):
    """The queueing discipline of the interface's root (tc-qdisc). What is not named has the kernel's default."""

    kind: Annotated[
        str,
        PlainValidator(lambda value: parse_word("qdisc", value, QDISCS)),
        WithJsonSchema({"enum": list(QDISCS)}),
    ] = Field(description="Its kind.")
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


def _text_is_kind(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"kind": value}


def _rps(value: object) -> str:
    items = value if isinstance(value, list) else ["off" if value is False else value]
    text = ",".join(str(item) for item in items).strip().lower()
    if text in ("off", "all"):
        return text
    try:
        processors = parse_processors(text)
    except ValueError:
        processors = frozenset()
    if not processors or max(processors) >= _MOST_PROCESSORS or any(isinstance(item, bool) for item in items):
        raise FieldError(f"rps {shown(value)}: expected processors as in 0-3,6, or off or all")
    return processors_text(processors)


def _condition_name(value: object) -> str:
    text = parse_condition("condition", value)
    if text == DEFAULT:
        raise FieldError(f'condition "{text}": means the node defaults. Give it another name')
    return text


def _congestion(name: str, value: object) -> str:
    word = SETTINGS["congestion"].parse(name, value)
    if word is None:
        raise FieldError(f'{name} "{value}": is the node\'s default already. Leave it out')
    return str(word)


_OffloadName = Annotated[
    str,
    PlainValidator(lambda value: parse_word("offload", str(value), OFFLOADS)),
    WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(OFFLOADS)})$"}),
]
_OnOff = Annotated[str, PlainValidator(lambda value: _on_off("offload", value)), _ON_OFF]
ConditionName = Annotated[str, PlainValidator(_condition_name), WithJsonSchema(SETTINGS["condition"].schema)]


class ConditionSection(Section):
    """Host settings of all nodes during a group of tests. What is not named stays as it is."""

    resize: Flag = Field(
        False, description="Windows are initial buffer sizes, which the kernel adapts. Default: fixed sizes."
    )
    mtu: Annotated[
        int | None,
        named(lambda name, value: parse_whole(name, value, _MIN_MTU, _MAX_MTU, 1500)),
        WithJsonSchema({"type": "integer", "minimum": _MIN_MTU, "maximum": _MAX_MTU}),
    ] = Field(None, description="MTU of the data interface.", examples=[1500, 8192])
    rings: RingsSection | None = Field(None, description="Sizes of the card's rings.", examples=[{"rx": 512}])
    channels: ChannelsSection | None = Field(
        None, description="Numbers of the card's queues.", examples=[{"combined": 4}]
    )
    coalesce: CoalesceSection | None = Field(None, description="Interrupt coalescing.", examples=[{"rx_usecs": 50}])
    pause: PauseSection | None = Field(None, description="Pause frames.", examples=[{"autoneg": "off", "rx": "off"}])
    qdisc: Annotated[
        QdiscSection | None,
        BeforeValidator(_text_is_kind),
        WithJsonSchema({"anyOf": [{"enum": list(QDISCS)}, QdiscSection.model_json_schema()]}),
    ] = Field(None, description="Queueing discipline of the data interface's root.", examples=["fq"])
    rps: Annotated[
        str | None,
        PlainValidator(_rps),
        WithJsonSchema({"anyOf": [{"type": ["string", "integer"]}, {"enum": [False]}, {"type": "array"}]}),
    ] = Field(None, description="Processors that take over received packets: a list, off or all.")
    sysctl: Annotated[dict[SysctlName, SysctlValue], BeforeValidator(empty_if_none)] = Field(
        default_factory=dict,
        description="Kernel settings by name.",
        examples=[{"net.ipv4.tcp_sack": 1}],
        json_schema_extra={"additionalProperties": False},
    )
    offload: Annotated[dict[_OffloadName, _OnOff], BeforeValidator(empty_if_none)] = Field(
        default_factory=dict,
        description="Offloads of the data interface (ethtool): tso, gso, gro, lro, rx, tx, sg, on or off.",
        examples=[{"gro": "on"}],
        json_schema_extra={"additionalProperties": False},
    )
    congestion: Annotated[str | None, named(_congestion), WithJsonSchema(SETTINGS["congestion"].schema)] = Field(
        None, description="Default congestion control of the nodes."
    )
    governor: Annotated[
        str | None,
        named(
            lambda name, value: parse_matching(name, value, _GOVERNOR, "a CPU frequency governor, as in performance")
        ),
        WithJsonSchema({"type": "string"}),
    ] = Field(None, description="CPU frequency governor.", examples=["performance"])


def condition_of(name: str, section: ConditionSection) -> Condition:
    """Return the host settings of a section, in the order in which they are set."""
    settings: list[HostSetting] = []
    # First, so that it is restored last: the kernel then chooses a default anew, by net.core.default_qdisc and the MTU.
    if section.qdisc is not None:
        given = section.qdisc.model_dump()
        parameters = [(key, given[key]) for key in QDISCS[section.qdisc.kind] if given[key] is not None]
        settings.append(HostSetting("qdisc", qdisc_text(section.qdisc.kind, parameters)))
    if section.mtu is not None:
        settings.append(HostSetting("mtu", str(section.mtu)))
    for group in ("rings", "channels", "coalesce", "pause"):
        numbers: Section | None = getattr(section, group)
        for key, value in numbers.model_dump(exclude_none=True).items() if numbers is not None else ():
            settings.append(HostSetting(group, value, key))
    if section.rps is not None:
        settings.append(HostSetting("rps", section.rps))
    settings += [HostSetting("sysctl", value, plain_name(sysctl)) for sysctl, value in section.sysctl.items()]
    settings += [HostSetting("offload", value, offload) for offload, value in section.offload.items()]
    if section.congestion is not None:
        settings.append(HostSetting("sysctl", section.congestion, _CONGESTION_SYSCTL))
    if section.governor is not None:
        settings.append(HostSetting("governor", section.governor))
    return Condition(name, tuple(settings), section.resize)


def condition_mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """Yield settings that contradict each other or the rig. The schema has reported settings that are wrong alone."""
    conditions = document.data.get("conditions")
    if conditions == {}:
        what = "conditions: is empty. Name one, as in mtu1500: {mtu: 1500}, or leave it out."
        yield document.mistake(("conditions",), what)
    found = (
        mistake
        for name, section in (conditions if isinstance(conditions, dict) else {}).items()
        if isinstance(section, dict)
        for mistake in _section_mistakes(document, name, section, rig)
    )
    yield from islice(found, MOST_FOUND)


def _section_mistakes(document: Document, name: str, section: Mapping[str, Any], rig: Rig | None) -> Iterator[Mistake]:
    path = ("conditions", name)
    yield from _sysctl_mistakes(document, path, section)
    yield from _qdisc_mistakes(document, path, section)
    settings = sum(
        len(value) if isinstance(value, dict) and key != "qdisc" else value is not None
        for key, value in section.items()
        if key in ConditionSection.model_fields and key != "resize"
    )
    if settings > _MOST_SETTINGS:
        what = f'condition "{name}": sets more than {_MOST_SETTINGS} values, the most that an agent takes.'
        yield document.mistake(path, what, at_key=True)
    mtu = section.get("mtu")
    for key, switch in rig.switches.items() if rig is not None else ():
        if type(mtu) is int and switch.mtu is not None and switch.mtu < mtu <= _MAX_MTU:
            what = f'mtu "{mtu}": switch {key} of rig {rig.name if rig else ""} carries {switch.mtu} at most.'
            yield document.mistake((*path, "mtu"), what)


def _sysctl_mistakes(document: Document, path: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[Mistake]:
    sysctls = section.get("sysctl")
    resizes = str(section.get("resize")).lower() in {"true", "yes", "on"}
    first_spelling: dict[str, str] = {}
    for given, value in sysctls.items() if isinstance(sysctls, dict) else ():
        name, at = plain_name(given), (*path, "sysctl", given)
        if first_spelling.setdefault(name, given) != given:
            what = f'sysctl "{given}": is given twice, first as "{first_spelling[name]}".'
            yield document.mistake(at, what, at_key=True)
        if name == _CONGESTION_SYSCTL and "congestion" in section:
            what = f'sysctl "{given}": the key congestion of this condition sets it too. Keep one of them.'
            yield document.mistake(at, what, at_key=True)
        if resizes and name in _BUFFER_SYSCTLS:
            what = f'sysctl "{given}": with resize: true the window of each test sets it. Leave it out.'
            yield document.mistake(at, what, at_key=True)
        elif resizes and name == _RESIZE_SYSCTL and str(value).strip() != "1":
            what = f'sysctl "{given}": {value} conflicts with resize: true, which sets 1. Keep one of them.'
            yield document.mistake(at, what)


def _qdisc_mistakes(document: Document, path: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield parameters that a kind of queueing discipline does not have, and those that tbf lacks."""
    given = _text_is_kind(section.get("qdisc"))
    kind = given.get("kind") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(kind, str) or kind not in QDISCS:
        return
    taken = ", ".join(QDISCS[kind]) or "no parameter"
    for name in given:
        if name != "kind" and name not in QDISCS[kind] and name in QdiscSection.model_fields:
            what = f'qdisc {kind}: has no "{name}". It takes {taken}.'
            yield document.mistake((*path, "qdisc", name), what, at_key=True)
    missing = [name for name in QDISCS[kind] if name not in given] if kind == "tbf" else []
    if missing:
        what = f"qdisc tbf: {', '.join(missing)} missing. It takes {taken}, as in {_TBF}."
        yield document.mistake((*path, "qdisc"), what, at_key=True)
