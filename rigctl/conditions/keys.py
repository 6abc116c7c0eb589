"""The keys of a condition, one record each (`HOST_KEYS`); the record of `qdisc` has its own module.

The agent reads and writes processors as masks, as in /sys/class/net/*/queues/rx-*/rps_cpus.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from rigctl.base.units import mask_processors, parse_processors, processors_text
from rigctl.conditions.key import MOST_NUMBER, HostKey, of_group
from rigctl.conditions.qdisc import QDISC
from rigctl.records import HostSetting
from rigctl.rig.fields import SysctlName, SysctlValue, plain_name
from rigctl.settings import SETTINGS
from rigctl.yamlfile import FieldError, Mistake, YamlDocument, YamlSection, fields

CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
BUFFER_SYSCTLS: Final = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_ON_OFF: Final = WithJsonSchema({"enum": ["on", "off", True, False]})
_OFFLOADS: Final = ("tso", "gso", "gro", "lro", "rx", "tx", "sg")
# With an MTU below 1280, Linux removes the interface's IPv6 addresses permanently.
_MIN_MTU, _MOST_MTU = 1280, 65535
_MOST_PROCESSORS: Final = 1024
_OF_A_NETWORK: Final = re.compile(r"net\.(ipv[46]\.(?!.*congestion)|core\.somaxconn$)")
_GOVERNOR: Final = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)


def _on_off(what: str, value: object) -> str:
    """Return `on` or `off`, also for the booleans of YAML: `gro: true` is on. Raise `FieldError` if it is neither."""
    word = {True: "on", False: "off"}.get(value, "") if isinstance(value, bool) else str(value).lower()
    if word not in {"on", "off"}:
        raise FieldError(f"{what} {fields.show_value(value)}: expected on or off")
    return word


def _whole(group: str, low: int, high: int, example: int) -> tuple[PlainValidator, WithJsonSchema]:
    schema = WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})
    return of_group(group, lambda name, value: str(fields.parse_whole(name, value, low, high, example))), schema


_Ring = Annotated[str | None, *_whole("rings", 1, 2**20, 512)]
_Channels = Annotated[str | None, *_whole("channels", 0, _MOST_PROCESSORS, 4)]
_Coalesce = Annotated[str | None, *_whole("coalesce", 0, MOST_NUMBER, 50)]
_Adaptive = Annotated[str | None, of_group("coalesce", _on_off), _ON_OFF]
_Pause = Annotated[str | None, of_group("pause", _on_off), _ON_OFF]


class RingsSection(YamlSection):
    """Sizes of the network card's rings, in descriptors (ethtool -G)."""

    rx: _Ring = Field(None, description="Receive ring.", examples=[512])
    tx: _Ring = Field(None, description="Transmit ring.", examples=[512])


class ChannelsSection(YamlSection):
    """How many queues the network card uses (ethtool -L)."""

    rx: _Channels = Field(None, description="Queues that only receive.", examples=[4])
    tx: _Channels = Field(None, description="Queues that only send.", examples=[4])
    combined: _Channels = Field(None, description="Queues that receive and send.", examples=[4])


class CoalesceSection(YamlSection):
    """Interrupt coalescing (ethtool -C). The agent sets the adaptive keys before the others."""

    adaptive_rx: _Adaptive = Field(None, description="on: the driver chooses rx_usecs and rx_frames.")
    adaptive_tx: _Adaptive = Field(None, description="on: the driver chooses tx_usecs and tx_frames.")
    rx_usecs: _Coalesce = Field(None, description="Longest delay of the interrupt after a received packet, in µs.")
    rx_frames: _Coalesce = Field(None, description="Number of received packets after which an interrupt comes at once.")
    tx_usecs: _Coalesce = Field(None, description="Longest delay of the interrupt after a sent packet, in µs.")
    tx_frames: _Coalesce = Field(None, description="Number of sent packets after which an interrupt comes at once.")


class PauseSection(YamlSection):
    """Pause frames of IEEE 802.3x (ethtool -A). The agent sets autoneg before rx and tx."""

    autoneg: _Pause = Field(None, description="on: both ends of the link negotiate the use of pause frames.")
    rx: _Pause = Field(None, description="The card obeys pause frames.")
    tx: _Pause = Field(None, description="The card sends pause frames.")


def _eee(value: object) -> str:
    if value is not False and str(value).lower() != "off":
        raise FieldError(f"eee {fields.show_value(value)}: expected off. Without this key, it stays as it is")
    return "off"


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
        raise FieldError(f"rps {fields.show_value(value)}: expected processors as in 0-3,6, or off or all")
    return processors_text(processors)


def _mask(numbers: Iterable[int]) -> str:
    digits = f"{sum(1 << number for number in set(numbers)):x}"
    padded = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(padded[at : at + 8] for at in range(0, len(padded), 8))


def _rps_to_agent(value: str) -> str:
    return _mask(parse_processors("" if value == "off" else value))


def _rps_from_agent(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f,;]+", value):
        return value
    lists = [processors_text(mask_processors(mask)) or "off" for mask in value.split(";")]
    return lists[0] if len(lists) == 1 else ", ".join(f"rx-{at}: {own}" for at, own in enumerate(lists))


_OffloadName = Annotated[
    str,
    PlainValidator(lambda value: fields.parse_word("offload", str(value), _OFFLOADS)),
    WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(_OFFLOADS)})$"}),
]
_OnOff = Annotated[str, PlainValidator(lambda value: _on_off("offload", value)), _ON_OFF]


def _congestion(name: str, value: object) -> str:
    word = SETTINGS["congestion"].parse(name, value)
    if word is None:
        raise FieldError(f'{name} "{value}": means the node\'s default, as without this key. Leave the key out')
    return str(word)


def _governor(name: str, value: object) -> str:
    return fields.parse_matching(name, value, _GOVERNOR, "a CPU frequency governor, as in performance")


def _sysctl_mistakes(document: YamlDocument, path: tuple[str, ...], keys: Mapping[str, Any]) -> Iterator[Mistake]:
    first_spelling: dict[str, str] = {}
    for given, value in keys["sysctl"].items():
        name, at = plain_name(given), (*path, "sysctl", given)
        if first_spelling.setdefault(name, given) != given:
            what = f'sysctl "{given}": is given twice, first as "{first_spelling[name]}".'
            yield document.mistake(at, what, at_key=True)
        if name == CONGESTION_SYSCTL and keys["congestion"] is not None:
            what = f'sysctl "{given}": the key congestion of this condition sets it too. Keep one of them.'
            yield document.mistake(at, what, at_key=True)
        if keys["resize"] and name in BUFFER_SYSCTLS:
            what = f'sysctl "{given}": each test sets it from its window if resize is true. Leave it out.'
            yield document.mistake(at, what, at_key=True)
        elif keys["resize"] and name == RESIZE_SYSCTL and value != "1":
            what = f'sysctl "{given}": {value} conflicts with resize: true, which sets 1. Keep one of them.'
            yield document.mistake(at, what)


def is_of_network(sysctl: str) -> bool:
    """Tell whether each network namespace has this sysctl for itself. A machine has one list of congestion controls."""
    return _OF_A_NETWORK.match(sysctl) is not None


def _untried_value(setting: HostSetting) -> str:
    return f"the value of {setting.label}"


def _untried_sysctl(setting: HostSetting) -> str | None:
    known = is_of_network(setting.name or "") or setting.name == CONGESTION_SYSCTL  # asked as the tests' own
    return None if known else _untried_value(setting)


def _group(
    name: str,
    section: type[YamlSection],
    description: str,
    example: dict[str, object],
    untried: Callable[[HostSetting], str | None] = lambda _: None,
    *,
    renegotiates: bool = False,
) -> HostKey:
    def settings(given: YamlSection) -> list[HostSetting]:
        return [HostSetting(name, value, key) for key, value in given.model_dump(exclude_none=True).items()]

    field = Field(None, description=description, examples=[example])
    return HostKey(name, section | None, field, settings, renegotiates=renegotiates, untried=untried)


MTU_KEY: Final = HostKey(
    "mtu",
    Annotated[int | None, *fields.whole_within(_MIN_MTU, _MOST_MTU, 1500)],
    Field(None, description="MTU of the data interface.", examples=[1500, 8192]),
    lambda value: [HostSetting("mtu", str(value))],
    untried=lambda setting: f"packets of {setting.value} bytes between the nodes",
)
RINGS: Final = _group("rings", RingsSection, "Sizes of the card's rings.", {"rx": 512})
_CHANNELS: Final = _group("channels", ChannelsSection, "How many queues the card uses.", {"combined": 4})
_COALESCE: Final = _group("coalesce", CoalesceSection, "Interrupt coalescing.", {"rx_usecs": 50}, _untried_value)
_PAUSE: Final = _group(
    "pause", PauseSection, "Pause frames.", {"autoneg": "off", "rx": "off"}, _untried_value, renegotiates=True
)
_EEE: Final = HostKey(
    "eee",
    Annotated[str | None, PlainValidator(_eee), WithJsonSchema({"enum": ["off", False]})],
    Field(None, description="Energy-Efficient Ethernet: off, as an idle link takes time to wake up."),
    lambda value: [HostSetting("eee", value)],
    from_agent=lambda value: value.partition(":")[0],
    renegotiates=True,
)
RPS: Final = HostKey(
    "rps",
    Annotated[
        str | None,
        PlainValidator(_rps),
        WithJsonSchema({"anyOf": [{"type": ["string", "integer"]}, {"enum": [False]}, {"type": "array"}]}),
    ],
    Field(None, description="Processors that handle received packets (RPS): a list, off or all."),
    lambda value: [HostSetting("rps", value)],
    to_agent=_rps_to_agent,
    from_agent=_rps_from_agent,
    is_asked=lambda asked, found: asked in (found, "all"),
)
_SYSCTL: Final = HostKey(
    "sysctl",
    Annotated[dict[SysctlName, SysctlValue], BeforeValidator(fields.empty_if_none)],
    Field(
        default_factory=dict,
        description="Kernel settings by name.",
        examples=[{"net.ipv4.tcp_sack": 1}],
        json_schema_extra={"additionalProperties": False},
    ),
    lambda values: [HostSetting("sysctl", value, plain_name(name)) for name, value in values.items()],
    of_interface=False,
    mistakes=_sysctl_mistakes,
    untried=_untried_sysctl,
)
_OFFLOAD: Final = HostKey(
    "offload",
    Annotated[dict[_OffloadName, _OnOff], BeforeValidator(fields.empty_if_none)],
    Field(
        default_factory=dict,
        description="Offloads of the data interface (ethtool): tso, gso, gro, lro, rx, tx, sg, on or off.",
        examples=[{"gro": "on"}],
        json_schema_extra={"additionalProperties": False},
    ),
    lambda values: [HostSetting("offload", value, name) for name, value in values.items()],
)
_CONGESTION: Final = HostKey(
    "congestion",
    Annotated[str | None, fields.validator_for(_congestion), WithJsonSchema(SETTINGS["congestion"].schema)],
    Field(None, description="Default congestion control of the nodes."),
    lambda value: [HostSetting("sysctl", value, CONGESTION_SYSCTL)],
    kind="sysctl",
    of_interface=False,
)
GOVERNOR: Final = HostKey(
    "governor",
    Annotated[str | None, fields.validator_for(_governor), WithJsonSchema({"type": "string"})],
    Field(None, description="CPU frequency governor.", examples=["performance"]),
    lambda value: [HostSetting("governor", value)],
    of_interface=False,
)
HOST_KEYS: Final = (
    MTU_KEY,
    RINGS,
    _CHANNELS,
    _COALESCE,
    _PAUSE,
    _EEE,
    QDISC,
    RPS,
    _SYSCTL,
    _OFFLOAD,
    _CONGESTION,
    GOVERNOR,
)
"""All keys of a condition, in the order in which agents set them; a key with `first` comes before all others."""
