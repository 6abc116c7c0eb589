"""`--switch`: which switch to ask for its forwarding table, as HOST, HOST:COMMUNITY or in the rig file's own words."""

import re
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError
from rigctl.discovery.names import key_of
from rigctl.discovery.targets import is_address
from rigctl.rig.inventory import Secrets, Snmp, Switch
from rigctl.rig.sections import SwitchEntry
from rigctl.rig.switches import switch_of
from rigctl.yamlfile import parse_document, validated
from rigctl.yamlfile.fields import FieldError, shown
from rigctl.yamlfile.mistakes import MistakesError

_FORM: Final = re.compile(
    r"(?:([A-Za-z0-9][A-Za-z0-9_-]{0,14})=)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(.+))?", re.ASCII
)


def switch_named(text: str) -> Switch:
    """`10.1.1.1`, `core=10.1.1.1:public`, `core={address: 10.1.1.1, snmp: {version: 3}}`. Raises `InputError`.

    Without a community in it, credentials are looked up by its key, as those of a rig file's switches are.
    """
    name, equals, mapping = text.partition("=")
    if "{" in text:
        if not equals or "{" in name:
            raise InputError("--switch: a mapping needs a name, as in core={address: 10.1.1.1, snmp: {version: 3}}")
        return _mapped(name.strip(), mapping)
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--switch {shown(text)}: expected [NAME=]HOST[:COMMUNITY], as in core=10.1.1.1:public")
    host = match[2].strip("[]")
    # An address as a key: its dots are no part of a name.
    key = match[1] or key_of(host.replace(".", "-").replace(":", "-") if is_address(host) else host)
    secrets = Secrets(community=match[3]) if match[3] else None
    return Switch(key, key, address=host, snmp=Snmp(), secrets=secrets)


def _mapped(name: str, mapping: str) -> Switch:
    document = parse_document("--switch", mapping)
    try:
        model, found = validated(document, SwitchEntry)
    except FieldError as error:
        raise InputError(f"--switch {name}: {error}") from None
    if found or model is None:
        raise MistakesError(found)
    if model.address is None:
        raise InputError(
            f"--switch {name}: address is missing, as in {name}={{address: 10.1.1.1, snmp: {{version: 3}}}}"
        )
    switch = switch_of(name, model, Path())
    return switch if switch.snmp is not None else Switch(name, switch.title, address=switch.address, snmp=Snmp())
