"""Conditions: sets of host settings by name, from the scenario's text to the agents' orders.

The bounds are the agent's own (docs/reference/agent-protocol.md, "Host settings"), so that what it would refuse is a
mistake in the file, before anything is touched.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from rigctl.records import Condition, HostSetting
from rigctl.rig.fields import SysctlName, SysctlValue, plain_name
from rigctl.rig.inventory import Rig
from rigctl.scenario.card import (
    Channels,
    Coalesce,
    Pause,
    Qdisc,
    Rings,
    Rps,
    Section,
    numbers,
    on_off,
    qdisc,
    qdisc_mistakes,
)
from rigctl.settings import DEFAULT, SETTINGS
from rigctl.settings.shape import parse_condition
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.fields import FieldError, Flag, named, parse_text, parse_whole, shown
from rigctl.yamlfile.mistakes import MOST_FOUND

OFFLOADS: Final = ("tso", "gso", "gro", "lro", "rx", "tx", "sg")
# Below 1280 Linux drops the interface's IPv6 addresses for good.
_MIN_MTU, _MAX_MTU = 1280, 65535
# The agent holds 64; three are its caller's, for windows that are only where buffers start.
_MOST_SETTINGS: Final = 61
_NUMBERS: Final = ("rings", "channels", "coalesce", "pause")
_GOVERNOR: Final = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
_CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
_RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
_BUFFER_SYSCTLS: Final = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


def _name(value: object) -> str:
    text = parse_condition("condition", value)
    if text == DEFAULT:
        raise FieldError(f'condition "{text}": means the node defaults. Give it another name')
    return text


def _mtu(name: str, value: object) -> int:
    return parse_whole(name, value, _MIN_MTU, _MAX_MTU, 1500)


def _offload_name(value: object) -> str:
    text = str(value)
    if text not in OFFLOADS:
        raise FieldError(f"offload {shown(text)}: unknown.{suggestion(text, OFFLOADS)}")
    return text


def _congestion(name: str, value: object) -> str:
    word = SETTINGS["congestion"].parse(name, value)
    if word is None:
        raise FieldError(f'{name} "{value}": is the node\'s default already. Leave it out')
    return str(word)


def _governor(name: str, value: object) -> str:
    text = parse_text(name, value, "a CPU frequency governor, as in performance")
    if not _GOVERNOR.fullmatch(text):
        raise FieldError(f"{name} {shown(text)}: expected a CPU frequency governor, as in performance")
    return text


def _json(parse: Callable[[Any], Any], **schema: object) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(parse), WithJsonSchema(schema)


_OffloadName = Annotated[str, *_json(_offload_name, type="string", pattern=f"^({'|'.join(OFFLOADS)})$")]
_OnOff = Annotated[str, *_json(partial(on_off, "offload"), enum=["on", "off", True, False])]
ConditionName = Annotated[str, *_json(_name, **SETTINGS["condition"].schema)]


def _empty_if_none(value: object) -> object:
    return {} if value is None else value


class ConditionSection(Section):
    """Host settings of all nodes during a group of tests. What is not named stays as it is."""

    resize: Flag = Field(
        False, description="Windows are initial buffer sizes, which the kernel adapts. Default: fixed sizes."
    )
    mtu: Annotated[
        int | None,
        named(_mtu),
        WithJsonSchema({"type": "integer", "minimum": _MIN_MTU, "maximum": _MAX_MTU}),
    ] = Field(None, description="MTU of the data interface.", examples=[1500, 8192])
    rings: Rings = Field(None, description="Sizes of the card's rings.", examples=[{"rx": 512}])
    channels: Channels = Field(None, description="Numbers of the card's queues.", examples=[{"combined": 4}])
    coalesce: Coalesce = Field(None, description="Interrupt coalescing.", examples=[{"rx_usecs": 50}])
    pause: Pause = Field(None, description="Pause frames.", examples=[{"autoneg": "off", "rx": "off"}])
    qdisc: Qdisc = Field(None, description="Queueing discipline of the data interface's root.", examples=["fq"])
    rps: Rps = Field(None, description="Processors that take over received packets: a list, off or all.")
    sysctl: Annotated[dict[SysctlName, SysctlValue], BeforeValidator(_empty_if_none)] = Field(
        default_factory=dict,
        description="Kernel settings by name.",
        examples=[{"net.ipv4.tcp_sack": 1}],
        json_schema_extra={"additionalProperties": False},
    )
    offload: Annotated[dict[_OffloadName, _OnOff], BeforeValidator(_empty_if_none)] = Field(
        default_factory=dict,
        description="Offloads of the data interface (ethtool): tso, gso, gro, lro, rx, tx, sg, on or off.",
        examples=[{"gro": "on"}],
        json_schema_extra={"additionalProperties": False},
    )
    congestion: Annotated[str | None, named(_congestion), WithJsonSchema(SETTINGS["congestion"].schema)] = Field(
        None, description="Default congestion control of the nodes."
    )
    governor: Annotated[str | None, named(_governor), WithJsonSchema({"type": "string"})] = Field(
        None, description="CPU frequency governor.", examples=["performance"]
    )


def condition_of(name: str, section: ConditionSection) -> Condition:
    """Return the host settings of a section, in the order in which they are set."""
    # First, so that it is restored last: the kernel then chooses a default anew, by net.core.default_qdisc and the MTU.
    settings = qdisc(section.qdisc)
    settings += [HostSetting("mtu", str(section.mtu))] if section.mtu is not None else []
    for kind in _NUMBERS:
        settings += numbers(kind, getattr(section, kind))
    settings += [HostSetting("rps", section.rps)] if section.rps is not None else []
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
    if not isinstance(conditions, dict):
        return
    if not conditions:
        what = "conditions: is empty. Name one, as in mtu1500: {mtu: 1500}, or leave it out."
        yield document.mistake(("conditions",), what)
    found = (
        mistake
        for name, section in conditions.items()
        if isinstance(section, dict)
        for mistake in _section_mistakes(document, name, section, rig)
    )
    yield from islice(found, MOST_FOUND)


def _section_mistakes(document: Document, name: str, section: Mapping[str, Any], rig: Rig | None) -> Iterator[Mistake]:
    path = ("conditions", name)
    sysctls = section.get("sysctl")
    sysctls = sysctls if isinstance(sysctls, dict) else {}
    yield from _sysctl_mistakes(document, path, section, sysctls)
    yield from qdisc_mistakes(document, path, section)
    groups = [section.get(key) for key in ("sysctl", "offload", *_NUMBERS)]
    others = sum(section.get(key) is not None for key in ("mtu", "congestion", "governor", "qdisc", "rps"))
    if sum(len(group) for group in groups if isinstance(group, dict)) + others > _MOST_SETTINGS:
        what = f'condition "{name}": sets more than {_MOST_SETTINGS} values, the most that an agent takes.'
        yield document.mistake(path, what, at_key=True)
    mtu = section.get("mtu")
    carried = [(key, one.mtu) for key, one in rig.switches.items() if one.mtu is not None] if rig is not None else []
    for key, most in carried:
        if isinstance(mtu, int) and not isinstance(mtu, bool) and most < mtu <= _MAX_MTU:
            what = f'mtu "{mtu}": switch {key} of rig {rig.name if rig else ""} carries {most} at most.'
            yield document.mistake((*path, "mtu"), what)


def _sysctl_mistakes(
    document: Document, path: tuple[str, ...], section: Mapping[str, Any], sysctls: Mapping[str, Any]
) -> Iterator[Mistake]:
    seen: dict[str, str] = {}
    for given, value in sysctls.items():
        name, at = plain_name(given), (*path, "sysctl", given)
        if name in seen:
            yield document.mistake(at, f'sysctl "{given}": is given twice, first as "{seen[name]}".', at_key=True)
        seen.setdefault(name, given)
        if name == _CONGESTION_SYSCTL and "congestion" in section:
            what = f'sysctl "{given}": the key congestion of this condition sets it too. Keep one of them.'
            yield document.mistake(at, what, at_key=True)
        if not _is_true(section.get("resize")):
            continue
        if name in _BUFFER_SYSCTLS:
            what = f'sysctl "{given}": with resize: true the window of each test sets it. Leave it out.'
            yield document.mistake(at, what, at_key=True)
        elif name == _RESIZE_SYSCTL and str(value).strip() != "1":
            what = f'sysctl "{given}": {value} conflicts with resize: true, which sets 1. Keep one of them.'
            yield document.mistake(at, what)


def _is_true(value: object) -> bool:
    return str(value).lower() in {"true", "yes", "on"}
