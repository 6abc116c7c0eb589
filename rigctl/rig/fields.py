"""Types of single values in rig and scenario files, each with a parser and a JSON Schema for editors.

Parsers raise `FieldError` with a message that names the key and shows the value. The caller adds file and line.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import PlainValidator, WithJsonSchema

from rigctl.base.units import format_duration, format_rate, parse_duration, parse_rate
from rigctl.rig.inventory import Arch, Multicast, Nic, Transport, Virtual
from rigctl.yamlfile import FieldError, describe
from rigctl.yamlfile.fields import (
    as_list,
    json_type,
    parse_between,
    parse_matching,
    parse_text,
    parse_word,
    show_value,
    unfit,
    validator_for,
    whole_within,
)

NODE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,14}", re.ASCII)
HOST: Final = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,252}", re.ASCII)
USER: Final = re.compile(r"\w(?:[\w.@\\+' -]{0,62}[\w.@\\+$-])?")  # or user@domain, DOMAIN\user, John Doe, Jürgen
JUMP: Final = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9_.@\\+-]{0,63}@)?([A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?",
    re.ASCII,
)
# Names for a switch's command line must also match the stricter pattern in rigctl/switches/cli.py.
SWITCH_PORT: Final = re.compile(r"[!-~](?:[ -~]{0,62}[!-~])?")
_MOST_FILE_BYTES: Final = 1024**2
_MOST_SYSCTL: Final = 255
_SYSCTL: Final = re.compile(r"[A-Za-z0-9_-]+([./:][A-Za-z0-9_:-]+)+", re.ASCII)
_MOST_INTERFACE: Final = 256
_INTERFACE: Final = re.compile(rf"[^\s/](?:[^/\x00-\x1f\x7f]{{0,{_MOST_INTERFACE - 2}}}[^\s/])?")
"""On Linux an interface has at most 15 characters; on Windows the user names it, as in `Ethernet 2`, with up to 256."""
_MIN_MTU, _MAX_MTU = 576, 65536
_MIN_RTT_S: Final = 0.0001
_MAX_RTT_S: Final = 10.0
_MIN_RATE, _MAX_RATE = 1_000, 1_000_000_000_000
_MIN_DATA_PORT: Final = 1024  # only root can listen on lower ports
_MAX_PORT: Final = 65535
_PORTS: Final = re.compile(r"\s*([0-9]{1,5})\s*(?:-|\.\.)\s*([0-9]{1,5})\s*", re.ASCII)
_MIN_POLL_S, _MAX_POLL_S = 0.1, 3600.0
# Map spellings of SNMP version 3 protocols (RFC 3414, 3826 and 7860) to the names that rigctl uses.
_AUTH: Final = {
    "md5": "md5",
    "sha": "sha",
    "sha1": "sha",
    **{f"sha{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)},
}
_PRIV: Final = {"des": "des", "aes": "aes", "aes128": "aes", "aes192": "aes192", "aes256": "aes256"}


def _matching(name: str, pattern: re.Pattern[str], expected: str) -> PlainValidator:
    return PlainValidator(lambda value: parse_matching(name, value, pattern, expected))


def _address(value: object) -> str:
    text = parse_text("address", value, "a host name or IP address")
    if "@" in text:
        raise FieldError(f"address {show_value(text)}: expected a host without a user. Give the user in the key user")
    if not HOST.fullmatch(text):
        raise FieldError(
            f"address {show_value(text)}: expected a host name or IP address, as in pi1.lan or 192.168.1.11"
        )
    return text


def is_address(text: str) -> bool:
    """Tell whether `text` is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _data_address(value: object) -> str:
    text = parse_text("data_address", value, "an IP address")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise FieldError(
            f"data_address {show_value(text)}: expected an IP address, as in 10.0.0.1 or fd00::1"
        ) from None


def _quantity(
    name: str,
    parse: Callable[[str | int | float, str], float],
    bounds: tuple[float, float],
    expected: str,
    example: str,
) -> PlainValidator:
    return PlainValidator(lambda value: parse_between(name, value, parse, bounds, expected, example))


def _data_interface(value: object) -> str:
    # `parse_text` would refuse a name of more than 200 characters.
    text = value.strip() if isinstance(value, str) and value.strip() else parse_text("data_interface", value, "a name")
    if not _INTERFACE.fullmatch(text):
        raise FieldError(
            f"data_interface {show_value(text)}: expected an interface name of 1 to {_MOST_INTERFACE} characters, "
            "as in eth0"
        )
    return text


_RATES: Final = f"{format_rate(_MIN_RATE)} to {format_rate(_MAX_RATE)}"
_POLLS: Final = f"{format_duration(_MIN_POLL_S)} to {format_duration(_MAX_POLL_S)}"


def _ip_version(value: object) -> int:
    if value not in (4, 6) or isinstance(value, bool):
        raise FieldError(f"ip_version {show_value(value)}: expected 4 or 6")
    return 4 if value == 4 else 6


def _snmp_version(value: object) -> str:
    if isinstance(value, bool) or str(value).lower() not in {"2c", "3"}:
        raise FieldError(f"version {show_value(value)}: expected 2c or 3")
    return str(value).lower()


def _data_ports(value: object) -> tuple[int, int]:
    match = _PORTS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError(unfit("data_ports", value, "a range of ports, as in 5200-5299"))
    first, last = int(match[1]), int(match[2])
    if first > last:
        raise FieldError(f"data_ports {show_value(value)}: runs backwards. Write {last}-{first}")
    if not _MIN_DATA_PORT <= first <= last <= _MAX_PORT:
        raise FieldError(
            f"data_ports {show_value(value)}: expected ports from {_MIN_DATA_PORT} to {_MAX_PORT}, as 5200-5299"
        )
    return first, last


def parse_members(name: str, value: object) -> tuple[str, ...]:
    """Return the entries of a group, given as a text or a list; ranges stay unexpanded. Raise `FieldError`."""
    if value == []:
        raise FieldError(f"{name}: a group has no nodes. Name some, as in [node1, node2] or node[01..12]")
    return tuple(parse_text(name, member, "a node's name") for member in as_list(value))


def parse_port_names(name: str, value: object) -> tuple[str, ...]:
    """Return a switch's interface names, given as a text or a list. Raise `FieldError` if a name is invalid."""
    if value == []:
        raise FieldError(f"{name}: has no ports. Name one, as in Te1/1")
    return tuple(_port_name(name, port) for port in as_list(value))


def _port_name(name: str, value: object) -> str:
    text = parse_text(name, value, "an interface name of the switch")
    if not SWITCH_PORT.fullmatch(text):
        raise FieldError(
            f"{name} {show_value(text)}: expected an interface name of the switch, at most 64 characters, as in Gi1/1"
        )
    return text


def _name(what: str) -> tuple[PlainValidator, WithJsonSchema]:
    expected = "a name of 1 to 15 letters, digits, - and _, which begins with a letter or digit"
    return _matching(what, NODE_NAME, expected), json_type("string", pattern=f"^{NODE_NAME.pattern}$")


def _one_of(name: str, *known: str) -> tuple[PlainValidator, WithJsonSchema]:
    return PlainValidator(lambda value: parse_word(name, value, known)), json_type("string", enum=list(known))


def _protocol(name: str, known: dict[str, str]) -> tuple[PlainValidator, WithJsonSchema]:
    """Return the parser and the schema of an SNMP protocol, which accept spellings such as `SHA-256`."""

    def parse(value: object) -> str:
        return known[parse_word(name, value.lower().replace("-", "") if isinstance(value, str) else value, known)]

    return PlainValidator(parse), json_type("string", enum=list(known))


_RATE_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kKmMgGtT]?(bit/s|bits/s|bps|bit)?\s*$"},
        {"type": "integer", "minimum": _MIN_RATE},
    ]
}
NodeName = Annotated[str, *_name("node")]
# For editors, the JSON Schema also accepts ranges, `node[001..012]`, which rigctl expands before it checks the file.
NodeKey = Annotated[
    NodeName, WithJsonSchema({"type": "string", "pattern": rf"^({NODE_NAME.pattern}|[^\[\]]*\[[^\[\]]+\][^\[\]]*)$"})
]
SwitchName = Annotated[str, *_name("switch")]
GroupName = Annotated[str, *_name("group")]
Address = Annotated[str | None, PlainValidator(_address), json_type("string")]
DataAddress = Annotated[str | None, PlainValidator(_data_address), json_type("string")]
SshPort = Annotated[int | None, *whole_within(1, _MAX_PORT, 22)]
User = Annotated[str | None, _matching("user", USER, "a user name, as in pi"), json_type("string")]
FilePath = Annotated[
    str | None, validator_for(lambda name, value: parse_text(name, value, "a path")), json_type("string")
]
Jump = Annotated[
    str | None,
    _matching("jump", JUMP, "[user@]host[:port], as in admin@gate.lan:2222"),
    json_type("string", pattern=f"^{JUMP.pattern}$"),
]
Interface = Annotated[
    str | None,
    PlainValidator(_data_interface),
    json_type("string", minLength=1, maxLength=_MOST_INTERFACE),
]
DataPorts = Annotated[
    tuple[int, int] | None,
    PlainValidator(_data_ports),
    json_type("string", pattern=r"^\s*[0-9]{1,5}\s*(-|\.\.)\s*[0-9]{1,5}\s*$"),
]
IpVersion = Annotated[Literal[4, 6], PlainValidator(_ip_version), json_type("integer", enum=[4, 6])]
LinkRate = Annotated[
    int | None, _quantity("rate", parse_rate, (_MIN_RATE, _MAX_RATE), _RATES, "1G"), WithJsonSchema(_RATE_SCHEMA)
]
Rtt = Annotated[
    float | None,
    _quantity("rtt", parse_duration, (_MIN_RTT_S, _MAX_RTT_S), "0.1 ms to 10 s", "20ms"),
    WithJsonSchema({"type": ["string", "number"]}),
]
Mtu = Annotated[int | None, *whole_within(_MIN_MTU, _MAX_MTU, 1500)]
SwitchPort = Annotated[str | None, validator_for(_port_name), json_type("string", minLength=1)]
_ONE_OR_MORE: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
PortNames = Annotated[
    tuple[str, ...], PlainValidator(lambda value: parse_port_names("ports", value)), WithJsonSchema(_ONE_OR_MORE)
]
Members = Annotated[tuple[str, ...], validator_for(parse_members), WithJsonSchema(_ONE_OR_MORE)]
SnmpVersion = Annotated[Literal["2c", "3"], PlainValidator(_snmp_version), WithJsonSchema({"enum": ["2c", "3", 3]})]
SnmpAuth = Annotated[str, *_protocol("auth", _AUTH)]
SnmpPriv = Annotated[str, *_protocol("priv", _PRIV)]
SnmpPort = Annotated[int, *whole_within(1, _MAX_PORT, 161)]
CliPort = Annotated[int, *whole_within(1, _MAX_PORT, 22)]
CliKind = Annotated[Literal["cisco_ios", "dell_os9"], *_one_of("kind", "cisco_ios", "dell_os9")]
VirtualName = Annotated[Virtual, *_one_of("virtual", *get_args(Virtual))]
MulticastName = Annotated[Multicast, *_one_of("multicast", *get_args(Multicast))]
ArchName = Annotated[Arch, *_one_of("arch", *get_args(Arch))]
NicName = Annotated[Nic, *_one_of("nic", *get_args(Nic))]
TransportName = Annotated[Transport, *_one_of("transport", *get_args(Transport))]
Poll = Annotated[
    float,
    _quantity("poll", parse_duration, (_MIN_POLL_S, _MAX_POLL_S), _POLLS, "1s"),
    WithJsonSchema({"type": ["string", "number"]}),
]


def plain_name(sysctl: str) -> str:
    """Return a sysctl's name with dots as separators. In a name with slashes, dots become slashes (sysctl(8))."""
    first = next((c for c in sysctl if c in "./"), ".")
    return sysctl.translate(str.maketrans("./", "/.")) if first == "/" else sysctl


def _sysctl_name(value: object) -> str:
    text = str(value)
    if len(text) > _MOST_SYSCTL or ".." in text or not _SYSCTL.fullmatch(text):
        raise FieldError(f"sysctl {show_value(text)}: expected its name below /proc/sys, as in net.ipv4.tcp_rmem")
    if not text.startswith(("net.", "net/")):
        raise FieldError(f"sysctl {show_value(text)}: expected a name that begins with net, as in net.ipv4.tcp_rmem")
    return text


def _sysctl_value(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise FieldError(
            f'sysctl: expected a number or a text in quotes, as in "4096 131072 6291456", found {describe(value)}'
        )
    text = " ".join(value.split())
    if not text or len(text.encode()) > _MOST_SYSCTL or not text.isprintable():
        raise FieldError(f"sysctl {show_value(text)}: expected 1 to {_MOST_SYSCTL} bytes of text in one line")
    return text


SysctlName = Annotated[str, PlainValidator(_sysctl_name), json_type("string", pattern=f"^{_SYSCTL.pattern}$")]
SysctlValue = Annotated[str, PlainValidator(_sysctl_value), WithJsonSchema({"type": ["string", "integer"]})]


def expand_path(path: str, folder: Path) -> Path:
    """Return `path`, which is relative to the rig file's `folder`, with ~ replaced by the home folder."""
    try:
        return folder / Path(path).expanduser()
    except RuntimeError:  # the user has no home folder; keep the ~, so that the later message shows it
        return folder / path


def wrong_file(what: str, path: Path) -> str | None:
    """Return a message if `path` is no regular file or larger than 1 MiB. Return None if it is fine or missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return f"{what} {path}: expected a file, found a folder, device or pipe. Correct the path in the rig file"
    if found.st_size > _MOST_FILE_BYTES:
        return f"{what} {path}: expected at most 1 MiB, not {found.st_size:,} bytes. Correct the path in the rig file"
    return None


def wrong_key(path: Path) -> str | None:
    """Return a message if `wrong_file` refuses the private key `path`, or if other users may read it. Else None."""
    wrong = wrong_file("key", path)
    if wrong is not None or not path.exists():
        return wrong
    found = path.stat()
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        advice = f"If nobody else has read it: chmod 600 {path}"
        return f"key {path}: others may read it (mode {mode:04o}), so it is not used. {advice}"
    return None
