"""Replace the key `kselftest:` of a rig file by the two ends that the kernel's drivers/net selftests measure between.

Environment variables name them: tools/testing/selftests/drivers/net/README.rst of Linux. Like those tests
(`lib/py/env.py`), rigctl takes IPv6 where addresses of both versions are given, and an empty variable is not set.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.rig.fields import HOST, USER
from rigctl.rig.schema import SSH_ONLY
from rigctl.yamlfile import MistakesError, YamlDocument

_KEY: Final = "kselftest"
_LOCAL, _REMOTE = "local", "remote"
_GIVEN: Final = ("address", "transport", "data_address", "data_interface")
"""Keys of nodes that follow from the variables."""
_NETIF: Final = re.compile(r"(?!\.{1,2}$)[^\s/:]{1,15}")
_TYPES: Final = ("ssh", "netns")
_SHOWN: Final = 100
_REMEDY: Final = (
    "Set the variables as the kernel's tests need them (tools/testing/selftests/drivers/net/README.rst); from a file: "
    "set -a; . ./net.config; set +a"
)


def with_endpoints(document: YamlDocument) -> tuple[YamlDocument, str]:
    """Return the rig file with the nodes `local` and `remote`, and a note for the report. Raise `InputError`."""
    if _KEY not in document.data:
        return document, ""
    others = [key for key in ("nodes", "slurm", "virtual") if key in document.data]
    if others:
        what = f"{_KEY}: the rig file has {_KEY} and {others[0]}. Leave one of them out."
        raise MistakesError([document.mistake((_KEY,), what, at_key=True)])
    section = document.data[_KEY] or {}
    if not isinstance(section, dict):
        return document, ""  # the schema reports that kselftest is no section
    if given := [key for key in _GIVEN if key in section]:
        what = f"{_KEY}: {given[0]} follows from the environment. Leave it out."
        raise MistakesError([document.mistake((_KEY, given[0]), what, at_key=True)])
    local, remote = endpoints_of(os.environ)
    of_remote = section if remote["transport"] == "ssh" else _without_ssh(section)
    nodes = {_LOCAL: {**_without_ssh(section), **local}, _REMOTE: {**of_remote, **remote}}
    data = {key: value for key, value in document.data.items() if key != _KEY} | {"nodes": nodes}
    placed = document.copy_places((_KEY,), *(("nodes", name) for name in nodes))
    where = "network namespace" if remote["transport"] == "netns" else "host"
    note = f"Environment of the kernel's drivers/net selftests: {local['data_interface']}, {where} {remote['address']}."
    return replace(placed, data=data), note


def _without_ssh(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in SSH_ONLY}


def endpoints_of(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the keys of the local and of the remote node. Raise `InputError` with all wrong variables."""
    given = {name: value.strip() for name, value in environment.items() if value.strip()}
    if wrong := list(_mistakes(given)):
        raise InputError(f"{_KEY}: {'; '.join(wrong)}. {_REMEDY}")
    version = "V6" if "LOCAL_V6" in given else "V4"
    local, remote = (str(ip_address(given[f"{end}_{version}"])) for end in ("LOCAL", "REMOTE"))
    user, _, host = given["REMOTE_ARGS"].rpartition("@")
    return (
        {"transport": "local", "data_interface": given["NETIF"], "data_address": local},
        {
            "transport": given["REMOTE_TYPE"],
            "address": host,
            "data_address": remote,
            **({"user": user} if user else {}),
        },
    )


def _mistakes(given: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that is missing or wrong: what there is, and what is expected."""
    netif, kind, args = (given.get(name) for name in ("NETIF", "REMOTE_TYPE", "REMOTE_ARGS"))
    if netif is None or not _NETIF.fullmatch(netif):
        # Without NETIF the kernel's tests make netdevsim devices, whose traffic says nothing about a driver.
        yield f"NETIF {_found(netif)}: expected the interface under test, as in NETIF=eth0"
    pairs = [version for version in (4, 6) if f"LOCAL_V{version}" in given or f"REMOTE_V{version}" in given]
    if not pairs:
        yield (
            "LOCAL_V4 and LOCAL_V6 are not set: expected the addresses of both ends, as in LOCAL_V4=192.0.2.1 "
            "and REMOTE_V4=192.0.2.2"
        )
    for version in pairs:
        addresses = []
        for name in (f"LOCAL_V{version}", f"REMOTE_V{version}"):
            addresses.append(_address(given.get(name), version))
            if addresses[-1] is None:
                yield f"{name} {_found(given.get(name))}: expected the IPv{version} address of the {_end(name)} end"
        if None not in addresses and addresses[0] == addresses[1]:
            yield f"LOCAL_V{version} and REMOTE_V{version} are both {addresses[0]}: expected two addresses"
    if kind not in _TYPES:
        yield f"REMOTE_TYPE {_found(kind)}: expected {' or '.join(_TYPES)}"
    user, at, host = (args or "").rpartition("@")
    if not HOST.fullmatch(host) or (at and (kind == "netns" or not USER.fullmatch(user))):
        what = "the name of a network namespace, as in peer" if kind == "netns" else "[user@]host, as in root@dut2.lan"
        yield f"REMOTE_ARGS {_found(args)}: expected {what}"


def _address(value: str | None, version: int) -> str | None:
    """Return an address of this IP version in its usual form; None if `value` is none."""
    try:
        found = ip_address(value or "")
    except ValueError:
        return None
    return str(found) if found.version == version else None


def _end(name: str) -> str:
    return "local" if name.startswith("LOCAL") else "remote"


def _found(value: str | None) -> str:
    return "is not set" if value is None else f'is "{printable(value)[:_SHOWN]}"'
