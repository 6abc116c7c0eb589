"""Writes the text of a rig file, in which comments say where the values come from."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rigctl.base.texts import printable
from rigctl.base.units import format_rate
from rigctl.discovery.draft import Draft, DraftNode, DraftSwitch
from rigctl.hosts.network import HostInterface
from rigctl.model.bonds import Bond
from rigctl.rig.fields import is_address
from rigctl.rig.inventory import Rig, Switch
from rigctl.rig.load import rig_of
from rigctl.switches.secrets import env_name
from rigctl.yamlfile.read import parse_document

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*|[0-9]+(\.[0-9]+){2,}", re.ASCII)
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off"})
_MOST_COMMENT: Final = 600
_QUANTITIES: Final = {"rate": "speed", "mtu": "MTU"}
_SUDO: Final = {
    "password": "sudo asks for a password",
    "absent": "there is no sudo",
    "refused": "sudo does not allow a shell as root",
    "tty": "sudo wants a terminal (requiretty)",
    "late": "sudo did not answer within 20 s",
    "failed": "sudo -n runs no shell",
}


def rig_of_text(text: str, path: Path) -> Rig:
    """Return the rig that `text` describes, read as by `rigctl run --rig`. Raise `MistakesError` if it is invalid."""
    return rig_of(parse_document(str(path), text), path)


def rig_text(draft: Draft, origin: str) -> str:
    """Return the text of the rig file. `origin` is the comment in its first line: date and command."""
    interfaces = [node.path.interface for node in draft.nodes]
    links = {
        "rate": [_rate(rate_bps) if each and (rate_bps := _link_rate_bps(each)) else None for each in interfaces],
        "mtu": [str(each.mtu) if each and each.mtu else None for each in interfaces],
    }
    common = {key: value for key, values in links.items() if (value := _common(values)) is not None}
    first, *others = map(_access, draft.nodes)
    shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    lines = [
        f"# {_comment(origin)}",
        "# Comments say where values come from. `rigctl plan SCENARIO --rig FILE` lists the tests on this rig.",
        f"title: {_scalar(_title(draft))}",
        *(f"# {_comment(note)}" for note in draft.notes),
    ]
    if any(node.target.transport == "srun" for node in draft.nodes):
        comment = "for this Slurm allocation only; `slurm:` instead of `nodes:` fits every allocation"
        lines.append(f"transport: srun  # {comment}")
    unknown = any(each is None or each.speed_bps is None for each in interfaces)
    lines += [*_switches(draft.switches), *_links(links, common, unknown=unknown)]
    if draft.groups:
        lines.append("groups:  # of the inventory")
    lines += [f"  {_scalar(name)}: [{', '.join(map(_scalar, members))}]" for name, members in draft.groups.items()]
    if shared:
        lines.append("defaults:  # of all nodes")
    lines += [f"  {key}: {value}" for key, value in shared.items()]
    lines.append("nodes:")
    for number, node in enumerate(draft.nodes):
        own = {key: value for key, values in links.items() if (value := values[number]) not in (None, common.get(key))}
        lines += _node(node, own, shared, two_switches=len(draft.switches) > 1)
    if draft.left_out:
        lines += ["", f"# Left out ({len(draft.left_out)}):"]
        lines += [f"#   {_comment(f'{each.target.text}: {each.reason}')}" for each in draft.left_out]
    return "\n".join(lines) + "\n"


def _common(values: Sequence[str | None]) -> str | None:
    """Return the most frequent value; None if a node's value is unknown, because it may be a different one."""
    return None if None in values else Counter(values).most_common(1)[0][0]


def _title(draft: Draft) -> str:
    switches = " and ".join(switch.title for switch in draft.switches)
    around = f" around {switches}" if switches else ""
    interfaces = [node.path.interface for node in draft.nodes]
    rates = sorted({rate for each in interfaces if each and (rate := _link_rate_bps(each))}, reverse=True)
    speeds = f", {' and '.join(map(format_rate, rates))}" if 0 < len(rates) <= 3 else ""
    return printable(f"{len(draft.nodes)} nodes{around}{speeds}")[:200]


def _link_rate_bps(interface: HostInterface) -> int | None:
    """Return the rate of an interface's link; None if it is unknown, or if a bond's depends on the flows."""
    return interface.speed_bps if interface.bond is None or interface.bond.is_plain else None


def _links(links: Mapping[str, Sequence[str | None]], common: Mapping[str, str], *, unknown: bool) -> Iterator[str]:
    if common:
        yield "links:"
    for key, value in common.items():
        having, nodes = links[key].count(value), len(links[key])
        few = "" if having == nodes else f" of {having} of the {nodes} nodes; the others have a {key} of their own"
        yield f"  {key}: {value}  # {_QUANTITIES[key]} of the data interfaces{few}"
    if unknown:
        yield "# rate: at least one interface reports no speed, as virtual ones do. Add the rates that you know."


def _switches(switches: Sequence[DraftSwitch]) -> Iterator[str]:
    if not switches:
        return
    yield "switches:"
    for switch in switches:
        yield f"  {_scalar(switch.key)}:"
        yield f"    title: {_scalar(switch.title)}"
        if switch.address is None or (switch.asked is None and not is_address(switch.address)):
            continue
        yield f"    address: {_scalar(switch.address)}"
        secret = env_name(Switch(switch.key, ""), "community")
        if switch.asked is None:
            yield f"    # snmp: {{version: 2c}}  # to read its counters, with the community in {secret}"
        elif (snmp := switch.asked.snmp) is not None:
            shown = f"version: 3, auth: {snmp.auth}, priv: {snmp.priv}" if snmp.version == "3" else 'version: "2c"'
            port = f", port: {snmp.port}" if snmp.port != 161 else ""
            secret = secret if snmp.version == "2c" else env_name(Switch(switch.key, ""), "user") + " and others"
            yield f"    snmp: {{{shown}{port}}}  # to read its counters; set {secret} (docs/reference/switches.md)"
    if len(switches) > 1:
        yield "# trunk: {rate: 10G}  # rate of the link between the switches"


def _access(node: DraftNode) -> dict[str, str]:
    target, interface = node.target, node.path.interface
    texts = {
        "port": None if target.port is None else str(target.port),
        "user": target.user and _scalar(target.user),
        "key": None if target.key is None else _scalar(str(target.key)),
        "jump": target.jump and _scalar(target.jump),
        "data_interface": None if interface is None else _scalar(interface.name),
        "sudo": "true" if node.host.sudo == "granted" else None,
    }
    return {key: text for key, text in texts.items() if text is not None}


def _node(node: DraftNode, links: Mapping[str, str], shared: Mapping[str, str], *, two_switches: bool) -> Iterator[str]:
    """Yield a node's lines in the rig file. `links`: its own rate and MTU; `shared`: keys that `defaults` sets."""
    interface, why = node.path.interface, _comment(node.path.why)
    access = {key: value for key, value in _access(node).items() if key not in shared}
    sudo = access.pop("sudo", None)
    data_interface = access.pop("data_interface", None)
    yield f"  # {_comment(describe_node(node))}"
    yield f"  {_scalar(node.name)}:"
    yield f"    address: {_scalar(node.target.host)}"
    for key, value in access.items():
        yield f"    {key}: {value}"
    if interface is None:
        yield f"    # {why}"
    else:
        yield f"    data_address: {_scalar(node.path.address or '')}  # {why}"
    if data_interface is not None:
        yield f"    data_interface: {data_interface}"
    for key, value in links.items():
        yield f"    {key}: {value}"
    if interface is not None and interface.bond is not None and not interface.bond.is_plain:
        yield f"    # rate: {_comment(_bond_text(interface.name, interface.bond))}"
    if interface is not None and interface.duplex == "half":
        yield "    # HALF duplex: check the cable and the switch's port before measuring"
    if sudo is not None:
        yield "    sudo: true  # sudo -n works; conditions and captures need it"
    elif node.host.sudo not in (None, "granted"):
        yield f"    # conditions and captures cannot be used: {_SUDO[node.host.sudo]}, and this user is not root"
    if two_switches and node.switch is not None:
        yield f"    switch: {_scalar(node.switch)}"
    if node.port is not None:
        others = node.port.others
        more = f"; {others} other addresses are there, as of virtual machines" if others else ""
        yield f"    switch_port: {_scalar(node.port.port)}  # by {_comment(node.port.by)}{more}"
    elif node.no_port is not None:
        yield f"    # switch_port: {_comment(node.no_port)}"


def _bond_text(name: str, bond: Bond) -> str:
    """Return why a node with a bond has no rate in the rig file."""
    cards = f"{bond.cards} cards" + (f" of {format_rate(bond.card_bps)}" if bond.card_bps else "")
    spread = (
        "several flows to one node may get all"
        if bond.spread(sends=True) == "flows"
        else "all flows to one node get one"
    )
    return (
        f"left out, a run reads it: {name} has {cards} ({bond.name}). One flow gets one of them, {spread}; how the "
        "switch spreads what the node receives is unknown"
    )


def describe_node(node: DraftNode) -> str:
    """Return a one-line description of a node: machine, system, interface."""
    interface, host = node.path.interface, node.host
    link = []
    if interface is not None:
        speed = format_rate(interface.speed_bps) if interface.speed_bps else "speed unknown"
        driver = interface.driver or ("" if interface.is_hardware else "virtual interface")
        cards = "" if interface.name in interface.cards or not interface.cards else f"on {', '.join(interface.cards)}"
        link = [driver, cards, f"{speed}{f' {interface.duplex} duplex' if interface.duplex else ''}"]
    root = "root" if host.sudo is None else ""
    words = [host.machine, host.os, "virtual machine" if host.is_virtual else "", *link, root]
    return ", ".join(word for word in words if word)


def _rate(rate_bps: int) -> str:
    return f"{rate_bps / 1e9:g}G" if rate_bps >= 10**9 else f"{rate_bps / 1e6:g}M"


def _comment(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MOST_COMMENT else f"{line[:_MOST_COMMENT]} …"


def _scalar(text: str) -> str:
    """Return `text` as a YAML scalar, quoted if YAML could read it as another type."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(printable(text), ensure_ascii=False)
