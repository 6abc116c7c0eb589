"""The key `sysctl` of a condition, and conflicts with other keys and windows that set the same sysctls."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from rigctl.conditions.key import HostKey
from rigctl.records import HostSetting
from rigctl.rig.fields import SysctlName, SysctlValue, plain_name
from rigctl.yamlfile import Mistake, YamlDocument
from rigctl.yamlfile.fields import empty_if_none

CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
RESIZE_SYSCTL: Final = "net.ipv4.tcp_moderate_rcvbuf"
BUFFER_SYSCTLS: Final = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")


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
            what = f'sysctl "{given}": with resize: true the window of each test sets it. Leave it out.'
            yield document.mistake(at, what, at_key=True)
        elif keys["resize"] and name == RESIZE_SYSCTL and value != "1":
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
