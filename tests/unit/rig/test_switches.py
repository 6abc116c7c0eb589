"""Switches, trunk and groups of a rig file: what they become, and every mistake at its place."""

from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.records import Port, Trunk
from rigctl.rig.inventory import Cli, Snmp, Switch

SWITCHES = "switches: {force10: Force10 E600, cisco: {title: Cisco 6509}}\n"
TRUNK = SWITCHES + "trunk: {ports: {cisco: [Te0, Te1]}}\n"
MISSING = 'r.yaml:2:9: node "a": "switch" is missing. It is the switch of the node: force10 or cisco.'
EMPTY = "virtual: namespaces\nnodes: {a: , b: }\n"
VIRTUAL = "virtual: namespaces\nnodes: {a: {switch: force10}, b: {switch: cisco}}\n"


def of(a: str = "", b: str = "") -> str:
    """Return two real nodes, with these keys after their address."""
    return f"nodes: {{a: {{address: x{a and f', {a}'}}}, b: {{address: y{b and f', {b}'}}}}}\n"


def one(switch: str) -> str:
    return f"switches: {{s: {{{switch}}}}}\n"


REAL, NODES = of(), of("switch: force10", "switch: cisco")


def test_two_switches_their_ports_and_their_trunk(tmp_path: Path) -> None:
    rig = rig_from(
        tmp_path,
        "switches:\n"
        "  force10: {title: Force10 E600, address: 10.1.1.1, poll: 500ms,\n"
        "            snmp: {version: 3, port: 1161, auth: SHA-256, priv: aes128}}\n"
        "  cisco: {address: c6509.lan, cli: {kind: cisco_ios, port: 2022, known_hosts: kh}}\n"
        "trunk: {rate: 8G, ports: {force10: Te 0/1, cisco: [Te1/1, Te1/2]}}\n"
        "nodes:\n"
        "  n[1..2]: {address: 'n{n}.lan', switch: force10, switch_port: 'Gi 1/{n}'}\n"
        "  m: {address: m.lan, switch: cisco}\n",
    )
    snmp, cli = Snmp("3", 1161, "sha256", "aes"), Cli("cisco_ios", 2022, tmp_path / "kh")
    force10 = Switch("force10", "Force10 E600", address="10.1.1.1", snmp=snmp, poll_s=0.5)
    assert rig.switches == {"force10": force10, "cisco": Switch("cisco", "cisco", address="c6509.lan", cli=cli)}
    assert rig.trunk == Trunk(("force10", "cisco"), 8 * 10**9)
    assert rig.ports == (
        Port("force10", "Gi 1/1", node="n1"),
        Port("force10", "Gi 1/2", node="n2"),
        Port("force10", "Te 0/1", peer="cisco"),
        Port("cisco", "Te1/1", peer="force10"),
        Port("cisco", "Te1/2", peer="force10"),
    )
    assert [node.link.switch for node in rig.nodes.values()] == ["force10", "force10", "cisco"]
    assert rig.switch == "Force10 E600 and cisco"


def test_snmp_alone_asks_with_all_defaults(tmp_path: Path) -> None:
    text = "switches: {one: {address: x, snmp: }}\nnodes: {a: {address: y, switch_port: 1}, b: {address: z}}\n"
    assert "switch_port: expected an interface name of the switch, found the number 1." in message(tmp_path, text)
    rig = rig_from(tmp_path, text.replace("switch_port: 1", "switch_port: '1'"))
    assert rig.switches["one"] == Switch("one", "one", address="x", snmp=Snmp())
    # The only switch is every node's.
    assert (rig.nodes["b"].link.switch, rig.ports) == ("one", (Port("one", "1", node="a"),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"switch: x\n{SWITCHES}{NODES}", "r.yaml:2:1: switches: there is switch too."),
        (f"switches: {{}}\n{NODES}", "r.yaml:1:11: switches: is empty."),
        (f"switches: {{a: A, b: B, c: C}}\n{NODES}", "r.yaml:1:1: switches: 3 given. A rig has one or two."),
        (f"switches: {{force10: F, cisco: 5}}\n{NODES}", "r.yaml:1:31: title: expected a text, found the number 5."),
        (f"switches: {{force10: F, cisco: , a b: }}\n{NODES}", 'switch "a b": expected a name of 1 to 15 letters'),
        (f"{SWITCHES}{NODES}trunk: {{ports: {{cisco: 'a;x'}}}}\n", 'r.yaml:3:24: ports "a;x": expected an interface'),
        (f"switches: {{s: S}}\ntrunk: {{}}\n{REAL}", "r.yaml:2:1: trunk: connects two switches; switches names 1."),
        (f"trunk: {{rate: 8G}}\n{REAL}", "trunk: connects two switches; switches names none."),
        (SWITCHES + of("switch: f10"), 'r.yaml:2:33: node "a": there is no switch "f10". Did you mean "force10"?'),
        (of("switch: s"), 'r.yaml:1:33: node "a": there is no switch "s". Name it under switches.'),
        (SWITCHES + of(b="switch: cisco"), MISSING),
        (of("switch_port: Gi1"), 'r.yaml:1:25: node "a": "switch_port" needs a switch.'),
        (one("") + of(*["switch_port: G1"] * 2), 'r.yaml:2:72: node "b": node "a" is on port "G1" of s already.'),
        (TRUNK + of(b="switch: cisco, switch_port: Te1"), 'node "b": the trunk is on port "Te1" of cisco already.'),
        (one("snmp: {}") + REAL, 'r.yaml:1:16: switch "s": "address" is missing. It is where snmp reaches it'),
        (one("cli: {kind: dell_os9}") + REAL, '1:16: switch "s": "address" is missing. It is where cli reaches it'),
        (one("address: x, cli: {kind: ios}") + REAL, 'kind "ios": unknown. Known: cisco_ios, dell_os9.'),
        (one("address: x, snmp: {version: 1}") + REAL, 'r.yaml:1:44: version "1": expected 2c or 3.'),
        (one("address: x, snmp: {version: 3, auth: crc}") + REAL, 'auth "crc": unknown.'),
        (one("address: x, poll: 10ms") + REAL, 'poll "10ms": expected 100 ms to 1h 00m, as in 1s.'),
        (SWITCHES + VIRTUAL, "1:1: switches: the two are not connected. Add a trunk, as in trunk: {rate: 8G}."),
        (f"{SWITCHES}trunk: {{}}\nvirtual: loopback\n{NODES}", "switches: a rig with virtual: loopback has none"),
        (one("address: x") + EMPTY, 'r.yaml:1:16: switch "s": "address" is for real switches'),
        (one("snmp: {version: 3}") + EMPTY, 'r.yaml:1:32: switch "s": a virtual switch answers version 2c only.'),
        (one("snmp: {port: 161}") + EMPTY, 'r.yaml:1:23: switch "s": "port" is for real switches'),
        (one("") + EMPTY.replace("a: ", "a: {switch_port: G}"), '3:13: node "a": "switch_port" is for real switches'),
        (f"{SWITCHES}trunk: {{ports: {{cisco: Te1}}}}\n{VIRTUAL}", "r.yaml:2:9: ports: is for real switches"),
        (f"groups: {{left: [a, c]}}\n{REAL}", 'r.yaml:1:20: group "left": there is no node "c". Known: a, b.'),
        (f"groups: {{left: 'a[2..1]'}}\n{REAL}", 'r.yaml:1:16: group "left": node "a[2..1]": 2..1 runs backwards.'),
        (f"groups: {{left: []}}\n{REAL}", "groups: a group has no nodes."),
        (f"groups: {{left: [a, a]}}\n{REAL}", 'r.yaml:1:20: group "left": "a" is in it twice.'),
        (f"groups: {{a: [b]}}\n{REAL}", 'r.yaml:1:10: group "a": a node has this name.'),
    ],
)
def test_a_mistake_of_switches_trunk_or_groups_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(tmp_path, text)


@pytest.mark.parametrize(
    "switch", ["community: hush", "snmp: {community: hush}", "cli: {kind: cisco_ios, password: hush}", "secret: hush"]
)
def test_credentials_of_a_switch_are_refused_and_not_repeated(tmp_path: Path, switch: str) -> None:
    told = message(tmp_path, f"switches: {{s: {{address: x, {switch}}}}}\n{REAL}")
    assert "credentials come from the environment or a 0600 file, see docs/reference/switches.md" in told
    assert "hush" not in told
