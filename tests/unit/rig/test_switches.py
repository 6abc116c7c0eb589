"""Switches, trunk and groups of a rig file: what they become, and every mistake at its place."""

from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.records import Port, Trunk
from rigctl.rig.inventory import Cli, Snmp, Switch

SWITCHES = "switches: {force10: Force10 E600, cisco: {title: Cisco 6509}}\n"
REAL = "nodes: {a: {address: x}, b: {address: y}}\n"
NODES = "nodes: {a: {address: x, switch: force10}, b: {address: y, switch: cisco}}\n"
EMPTY = "virtual: namespaces\nnodes: {a: , b: }\n"
VIRTUAL = "virtual: namespaces\nnodes: {a: {switch: force10}, b: {switch: cisco}}\n"


def test_two_switches_their_ports_and_their_trunk(tmp_path: Path) -> None:
    rig = rig_from(
        tmp_path,
        "switches:\n"
        "  force10: {title: Force10 E600, address: 10.1.1.1, snmp: {version: 3, port: 1161, auth: SHA-256, "
        " priv: aes128}, poll: 500ms}\n"
        "  cisco: {address: c6509.lan, cli: {kind: cisco_ios, port: 2022, known_hosts: kh}}\n"
        "trunk: {rate: 8G, ports: {force10: Te 0/1, cisco: [Te1/1, Te1/2]}}\n"
        "nodes:\n"
        "  n[1..2]: {address: 'n{n}.lan', switch: force10, switch_port: 'Gi 1/{n}'}\n"
        "  m: {address: m.lan, switch: cisco}\n",
    )
    assert rig.switches == {
        "force10": Switch(
            "force10", "Force10 E600", address="10.1.1.1", snmp=Snmp("3", 1161, "sha256", "aes"), poll_s=0.5
        ),
        "cisco": Switch("cisco", "cisco", address="c6509.lan", cli=Cli("cisco_ios", 2022, tmp_path / "kh")),
    }
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
        (f"{SWITCHES}{NODES}trunk: {{rate: 1Q}}\n", 'r.yaml:3:15: rate "1Q": unknown unit "Q".'),
        (f"{SWITCHES}{NODES}trunk: {{ports: {{cisco: 'a;x'}}}}\n", 'r.yaml:3:24: ports "a;x": expected an interface'),
        (
            f"switches: {{one: One}}\ntrunk: {{rate: 8G}}\n{REAL}",
            "r.yaml:2:1: trunk: connects two switches; switches names 1.",
        ),
        (f"trunk: {{rate: 8G}}\n{REAL}", "trunk: connects two switches; switches names none."),
        (
            f"{SWITCHES}nodes: {{a: {{address: x, switch: forc10}}, b: {{address: y, switch: cisco}}}}\n",
            'r.yaml:2:33: node "a": there is no switch "forc10". Did you mean "force10"?',
        ),
        (
            "nodes: {a: {address: x, switch: s}, b: {address: y}}\n",
            'r.yaml:1:33: node "a": there is no switch "s". Name it under switches.',
        ),
        (
            f"{SWITCHES}nodes: {{a: {{address: x}}, b: {{address: y, switch: cisco}}}}\n",
            'r.yaml:2:9: node "a": "switch" is missing. It is the switch of the node: force10 or cisco.',
        ),
        (
            "nodes: {a: {address: x, switch_port: Gi1}, b: {address: y}}\n",
            'r.yaml:1:25: node "a": "switch_port" needs a switch.',
        ),
        (
            "switches: {s: S}\nnodes: {a: {address: x, switch_port: Gi1}, b: {address: y, switch_port: Gi1}}\n",
            'r.yaml:2:73: node "b": node "a" is on port "Gi1" of s already.',
        ),
    ],
)
def test_a_mistake_of_switches_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(tmp_path, text)


def test_a_port_of_the_trunk_is_no_nodes(tmp_path: Path) -> None:
    nodes = NODES.replace("switch: cisco", "switch: cisco, switch_port: Te1")
    told = message(tmp_path, f"{SWITCHES}trunk: {{ports: {{cisco: [Te0, Te1]}}}}\n{nodes}")
    assert 'node "b": the trunk is on port "Te1" of cisco already.' in told


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("snmp: {}", 'r.yaml:1:16: switch "s": "address" is missing. It is where snmp reaches it'),
        ("cli: {kind: dell_os9}", 'r.yaml:1:16: switch "s": "address" is missing. It is where cli reaches it'),
        ("address: x, cli: {}", '"kind" is missing. Expected: kind of command line'),
        ("address: x, cli: {kind: ios}", 'kind "ios": unknown. Known: cisco_ios, dell_os9.'),
        ("address: x, snmp: {version: 1}", 'r.yaml:1:44: version "1": expected 2c or 3.'),
        ("address: x, snmp: {version: 3, auth: crc}", 'auth "crc": unknown.'),
        ("address: x, poll: 10ms", 'poll "10ms": expected 100 ms to 1h 00m, as in 1s.'),
    ],
)
def test_a_mistake_of_how_a_switch_is_asked_is_told(tmp_path: Path, switch: str, expected: str) -> None:
    assert expected in message(tmp_path, f"switches: {{s: {{{switch}}}}}\n{REAL}")


@pytest.mark.parametrize(
    "switch", ["community: hush", "snmp: {community: hush}", "cli: {kind: cisco_ios, password: hush}", "secret: hush"]
)
def test_credentials_of_a_switch_are_refused_and_not_repeated(tmp_path: Path, switch: str) -> None:
    told = message(tmp_path, f"switches: {{s: {{address: x, {switch}}}}}\n{REAL}")
    assert "credentials come from the environment or a 0600 file, see docs/reference/switches.md" in told
    assert "hush" not in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{SWITCHES}{VIRTUAL}",
            "r.yaml:1:1: switches: the two are not connected. Add a trunk, as in trunk: {rate: 8G}.",
        ),
        (f"{SWITCHES}trunk: {{}}\nvirtual: loopback\n{NODES}", "switches: a rig with virtual: loopback has none"),
        (f"switches: {{s: {{address: x}}}}\n{EMPTY}", 'r.yaml:1:16: switch "s": "address" is for real switches'),
        (
            f"switches: {{s: {{snmp: {{version: 3}}}}}}\n{EMPTY}",
            'r.yaml:1:32: switch "s": a virtual switch answers version 2c only.',
        ),
        (f"switches: {{s: {{snmp: {{port: 161}}}}}}\n{EMPTY}", 'r.yaml:1:23: switch "s": "port" is for real switches'),
        (
            "switches: {s: S}\nvirtual: namespaces\nnodes: {a: {switch_port: Gi1}, b: }\n",
            'r.yaml:3:13: node "a": "switch_port" is for real switches',
        ),
        (f"{SWITCHES}trunk: {{ports: {{cisco: Te1}}}}\n{VIRTUAL}", "r.yaml:2:9: ports: is for real switches"),
    ],
)
def test_what_rigctl_makes_for_a_virtual_rig_may_not_be_said(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(tmp_path, text)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("left: [a, c]", 'r.yaml:1:20: group "left": there is no node "c". Known: a, b.'),
        ("left: 'a[2..1]'", 'r.yaml:1:16: group "left": node "a[2..1]": 2..1 runs backwards.'),
        ("left: []", "groups: a group has no nodes."),
        ("left: [a, a]", 'r.yaml:1:20: group "left": "a" is in it twice.'),
        ("a: [b]", 'r.yaml:1:10: group "a": a node has this name.'),
    ],
)
def test_a_mistake_of_a_group_is_told_at_its_place(tmp_path: Path, groups: str, expected: str) -> None:
    assert expected in message(tmp_path, f"groups: {{{groups}}}\n{REAL}")
