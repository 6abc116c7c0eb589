"""The text of a rig file: every value has a comment that says where it comes from."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rigctl.base.texts import printable
from rigctl.base.units import format_rate
from rigctl.discovery.draft import Draft, Found, FoundSwitch
from rigctl.probe.switches.secrets import variable
from rigctl.rig.fields import is_address
from rigctl.rig.inventory import Rig, Switch
from rigctl.rig.schema import rig_of
from rigctl.yamlfile import parse_document

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|[0-9]+(\.[0-9]+){2,}", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off"})
_MOST_COMMENT: Final = 600
_SUDO: Final = {
    "password": "sudo asks for a password",
    "absent": "there is no sudo",
    "refused": "sudo does not allow a shell as root",
}


def checked(text: str, path: Path) -> Rig:
    """Return the rig that `text` describes, read as by `rigctl run --rig`. Raise `MistakesError`."""
    return rig_of(parse_document(str(path), text), path)


def rig_text(draft: Draft, made: str) -> str:
    """Return the text of the file. `made` says in one line when and by what it was made."""
    rates = [node.path.interface.speed_bps if node.path.interface else None for node in draft.nodes]
    mtus = [node.path.interface.mtu if node.path.interface else None for node in draft.nodes]
    rate, mtu = _common(rates), _common(mtus)
    shared = _shared(draft.nodes)
    lines = [
        f"# {_comment(made)}",
        "# A comment says where a value comes from. `rigctl plan SCENARIO --rig FILE` shows the tests on this rig.",
        f"title: {_scalar(_title(draft, rates))}",
        *(f"# {_comment(note)}" for note in draft.notes),
        *_transport(draft),
        *_switches(draft.switches),
        *_links(rate, mtu, rates, mtus),
        *_groups(draft),
        *(["defaults:  # of all nodes"] if shared else []),
        *(f"  {key}: {value}" for key, value in shared.items()),
        "nodes:",
    ]
    for node, node_rate, node_mtu in zip(draft.nodes, rates, mtus, strict=True):
        own = [("rate", _rate(node_rate))] if node_rate and node_rate != rate else []
        own += [("mtu", str(node_mtu))] if node_mtu and node_mtu != mtu else []
        lines += _node(node, own, shared, two_switches=len(draft.switches) > 1)
    if draft.left_out:
        lines += ["", f"# Left out ({len(draft.left_out)}):"]
        lines += [f"#   {_comment(f'{each.target.text}: {each.reason}')}" for each in draft.left_out]
    return "\n".join(lines) + "\n"


def _common(values: Sequence[int | None]) -> int | None:
    """Return the most frequent value, or None if one is unknown: `links` would apply to that node too."""
    known = [value for value in values if value is not None]
    return Counter(known).most_common(1)[0][0] if known and len(known) == len(values) else None


def _title(draft: Draft, rates: Iterable[int | None]) -> str:
    switches = " and ".join(switch.title for switch in draft.switches)
    around = f" around {switches}" if switches else ""
    known = sorted({rate for rate in rates if rate}, reverse=True)
    speeds = f", {' and '.join(map(format_rate, known))}" if 0 < len(known) <= 3 else ""
    return printable(f"{len(draft.nodes)} nodes{around}{speeds}")[:200]


def _links(rate: int | None, mtu: int | None, rates: Sequence[int | None], mtus: Sequence[int | None]) -> Iterator[str]:
    given = [("rate", _rate(rate), "speed", rates.count(rate))] if rate is not None else []
    given += [("mtu", str(mtu), "MTU", mtus.count(mtu))] if mtu is not None else []
    if given:
        yield "links:"
    for key, value, what, having in given:
        few = "" if having == len(rates) else f" of {having} of the {len(rates)} nodes; the others have their own"
        yield f"  {key}: {value}  # {what} of the data interfaces{few}"
    if any(speed is None for speed in rates):
        yield "# rate: at least one interface reports no speed, as virtual ones do. Add it where you know it."


def _switches(switches: Sequence[FoundSwitch]) -> Iterator[str]:
    if not switches:
        return
    yield "switches:"
    for switch in switches:
        yield f"  {_scalar(switch.key)}:"
        yield f"    title: {_scalar(switch.title)}"
        if switch.address is None or (switch.asked is None and not is_address(switch.address)):
            continue
        yield f"    address: {_scalar(switch.address)}"
        secret = variable(Switch(switch.key, ""), "community")
        if switch.asked is None:
            yield f"    # snmp: {{version: 2c}}  # reads its counters; {secret} is then its community"
        elif (snmp := switch.asked.snmp) is not None:
            shown = f"version: 3, auth: {snmp.auth}, priv: {snmp.priv}" if snmp.version == "3" else 'version: "2c"'
            port = f", port: {snmp.port}" if snmp.port != 161 else ""
            secret = secret if snmp.version == "2c" else variable(Switch(switch.key, ""), "user") + " and others"
            yield f"    snmp: {{{shown}{port}}}  # reads its counters, with {secret} set (docs/reference/switches.md)"
    if len(switches) > 1:
        yield "# trunk: {rate: 10G}  # the link between the two, with its rate"


def _transport(draft: Draft) -> Iterator[str]:
    if any(node.target.transport == "srun" for node in draft.nodes):
        yield "transport: srun  # in the allocation that these nodes are of; `slurm:` in place of nodes is of any"


def _groups(draft: Draft) -> Iterator[str]:
    if draft.groups:
        yield "groups:  # of the inventory"
    for name, members in draft.groups.items():
        yield f"  {_scalar(name)}: [{', '.join(map(_scalar, members))}]"


def _access(node: Found) -> dict[str, str]:
    """Return how a node is reached, as keys and values of YAML."""
    given = {key: getattr(node.target, key) for key in ("port", "user", "key", "jump")}
    found = {
        key: str(value) if key == "port" else _scalar(str(value)) for key, value in given.items() if value is not None
    }
    if node.path.interface is not None:
        found["data_interface"] = _scalar(node.path.interface.name)
    if node.host.sudo == "granted":
        found["sudo"] = "true"
    return found


def _shared(nodes: Sequence[Found]) -> dict[str, str]:
    """Return what is the same for all nodes and stands under `defaults`."""
    first, *others = map(_access, nodes)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _node(
    node: Found, own: Sequence[tuple[str, str]], shared: Mapping[str, str], *, two_switches: bool
) -> Iterator[str]:
    yield f"  # {_comment(described(node))}"
    yield f"  {_scalar(node.name)}:"
    yield f"    address: {_scalar(node.target.host)}"
    interface, why = node.path.interface, _comment(node.path.why)
    access = {key: value for key, value in _access(node).items() if key not in shared}
    for key in ("port", "user", "key", "jump"):
        if key in access:
            yield f"    {key}: {access[key]}"
    if interface is None:
        yield f"    # {why}"
    else:
        yield f"    data_address: {_scalar(node.path.address or '')}  # {why}"
    if "data_interface" in access:
        yield f"    data_interface: {access['data_interface']}"
    for key, value in own:
        yield f"    {key}: {value}"
    if interface is not None and interface.duplex == "half":
        yield "    # HALF duplex: look at the cable and the switch's port before measuring"
    if "sudo" in access:
        yield "    sudo: true  # sudo -n works; conditions and captures need it"
    elif node.host.sudo not in (None, "granted"):
        yield f"    # no conditions or captures on it: {_SUDO[node.host.sudo]}, and this user is not root"
    if two_switches and node.switch is not None:
        yield f"    switch: {_scalar(node.switch)}"
    if node.port is not None:
        yield f"    switch_port: {_scalar(node.port.port)}  # by {_comment(node.port.by)}"
    elif node.no_port is not None:
        yield f"    # switch_port: {_comment(node.no_port)}"


def described(node: Found) -> str:
    """Describe a node in one line: machine, system, interface."""
    interface, host = node.path.interface, node.host
    link = []
    if interface is not None:
        speed = format_rate(interface.speed_bps) if interface.speed_bps else "speed unknown"
        link = [
            interface.driver or ("" if interface.is_hardware else "virtual interface"),
            f"{speed}{f' {interface.duplex} duplex' if interface.duplex else ''}",
        ]
    words = [host.machine, host.os, "virtual machine" if host.is_virtual else "", *link, "root" if host.is_root else ""]
    return ", ".join(word for word in words if word)


def _rate(rate_bps: int) -> str:
    return f"{rate_bps / 1e9:g}G" if rate_bps >= 10**9 else f"{rate_bps / 1e6:g}M"


def _comment(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MOST_COMMENT else f"{line[:_MOST_COMMENT]} …"


def _scalar(text: str) -> str:
    """Return `text` as YAML, in quotes if it could be read as anything but a text."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(printable(text), ensure_ascii=False)
