"""Names and values of sysctls as YAML files give them: of a scenario's conditions, and of nodes of virtual rigs."""

import re
from typing import Annotated, Final

from pydantic import PlainValidator, WithJsonSchema

from rigctl.yamlfile import kind
from rigctl.yamlfile.fields import FieldError, shown

MOST_CHARS: Final = 255
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+([./:][A-Za-z0-9_:-]+)+", re.ASCII)


def plain_name(sysctl: str) -> str:
    """A sysctl's name with dots between its parts; with slashes there a dot is part of a name (sysctl(8))."""
    first = next((c for c in sysctl if c in "./"), ".")
    return sysctl.translate(str.maketrans("./", "/.")) if first == "/" else sysctl


def _name(value: object) -> str:
    text = str(value)
    if len(text) > MOST_CHARS or ".." in text or not _NAME.fullmatch(text):
        raise FieldError(f"sysctl {shown(text)}: expected its name below /proc/sys, as in net.ipv4.tcp_rmem")
    if not text.startswith(("net.", "net/")):
        raise FieldError(f"sysctl {shown(text)}: expected one below net, as in net.ipv4.tcp_rmem")
    return text


def _value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise FieldError(
            f'sysctl: expected a number or a text in quotes, as in "4096 131072 6291456", found {kind(value)}'
        )
    text = " ".join(value.split())
    if not text or len(text.encode()) > MOST_CHARS or not text.isprintable():
        raise FieldError(f"sysctl {shown(text)}: expected 1 to {MOST_CHARS} bytes of text in one line")
    return text


SysctlName = Annotated[str, PlainValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})]
SysctlValue = Annotated[str, PlainValidator(_value), WithJsonSchema({"type": ["string", "integer"]})]
