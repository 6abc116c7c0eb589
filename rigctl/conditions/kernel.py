"""Keys of a condition that belong to the node's kernel: sysctls, congestion control, the processors' governor."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from rigctl.conditions.key import HostKey
from rigctl.records import HostSetting
from rigctl.rig.fields import SysctlName, SysctlValue, plain_name
from rigctl.settings import SETTINGS
from rigctl.yamlfile import Document, FieldError, Mistake
from rigctl.yamlfile.fields import empty_if_none, named, parse_matching

CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
_GOVERNOR: Final = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
BUFFER_SYSCTLS: Final = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


def _congestion(name: str, value: object) -> str:
    word = SETTINGS["congestion"].parse(name, value)
    if word is None:
        raise FieldError(f'{name} "{value}": is the node\'s default already. Leave it out')
    return str(word)


def _sysctl_mistakes(document: Document, path: tuple[str, ...], section: Mapping[str, Any]) -> Iterator[Mistake]:
    sysctls = section.get("sysctl")
    resizes = str(section.get("resize")).lower() in {"true", "yes", "on"}
    first_spelling: dict[str, str] = {}
    for given, value in sysctls.items() if isinstance(sysctls, dict) else ():
        name, at = plain_name(given), (*path, "sysctl", given)
        if first_spelling.setdefault(name, given) != given:
            what = f'sysctl "{given}": is given twice, first as "{first_spelling[name]}".'
            yield document.mistake(at, what, at_key=True)
        if name == CONGESTION_SYSCTL and "congestion" in section:
            what = f'sysctl "{given}": the key congestion of this condition sets it too. Keep one of them.'
            yield document.mistake(at, what, at_key=True)
        if resizes and name in BUFFER_SYSCTLS:
            what = f'sysctl "{given}": with resize: true the window of each test sets it. Leave it out.'
            yield document.mistake(at, what, at_key=True)
        elif resizes and name == RESIZE_SYSCTL and str(value).strip() != "1":
            what = f'sysctl "{given}": {value} conflicts with resize: true, which sets 1. Keep one of them.'
            yield document.mistake(at, what)


SYSCTL: Final = HostKey(
    "sysctl",
    Annotated[dict[SysctlName, SysctlValue], BeforeValidator(empty_if_none)],
    Field(
        default_factory=dict,
        description="Kernel settings by name.",
        examples=[{"net.ipv4.tcp_sack": 1}],
        json_schema_extra={"additionalProperties": False},
    ),
    lambda values: [HostSetting("sysctl", value, plain_name(name)) for name, value in values.items()],
    of_interface=False,
    mistakes=_sysctl_mistakes,
)
CONGESTION: Final = HostKey(
    "congestion",
    Annotated[str | None, named(_congestion), WithJsonSchema(SETTINGS["congestion"].schema)],
    Field(None, description="Default congestion control of the nodes."),
    lambda value: [HostSetting("sysctl", value, CONGESTION_SYSCTL)],
    kind="sysctl",
    of_interface=False,
)
GOVERNOR: Final = HostKey(
    "governor",
    Annotated[
        str | None,
        named(
            lambda name, value: parse_matching(name, value, _GOVERNOR, "a CPU frequency governor, as in performance")
        ),
        WithJsonSchema({"type": "string"}),
    ],
    Field(None, description="CPU frequency governor.", examples=["performance"]),
    lambda value: [HostSetting("governor", value)],
    of_interface=False,
)
