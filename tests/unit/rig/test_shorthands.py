"""Shorthands of a rig file: ranges of nodes, `defaults:` and `--rig-set PATH=VALUE`; what is none is refused."""

import re
from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.rig.ranges import expand_names
from rigctl.yamlfile.fields import FieldError

TEXT = (
    "switches: {force10: F, cisco: C}\nvirtual: namespaces\nlinks: {rate: 1G}\n"
    "nodes:\n  n[1..3]: {switch: force10}\n  m: {switch: cisco}\ntrunk: {rate: 8G}\n"
)
NODES = "nodes: {a: {address: a.lan}, b: {address: b.lan, user: own}, 'n[1..2]': {address: '{name}.lan'}}\n"
GROUPS = "groups: {left: [a, b], right: 'n[1..2]'}\n"
PORTS = "defaults: {groups: {left: {port: 1}, right: {port: 2}}}\ngroups: {left: [a, b], right: [b]}\n"
TWICE = "3:3: nodes: n2 is given twice, first in line 2. Keep one of them."
APART = '1:52: defaults: node "b" is also in group "left", with another port. Give it at the node.'
LACKS = '2:3: node "n1": "address" is missing. It is where SSH reaches the node, as in address: n1.lan'


def users(folder: Path, text: str, *sets: str) -> list[str | None]:
    return [node.user for node in rig_from(folder, text, sets).nodes.values()]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("node[001..003]", ["node001", "node002", "node003"]),
        ("n[8..11]", ["n8", "n9", "n10", "n11"]),
        ("r[08..10]-eth", ["r08-eth", "r09-eth", "r10-eth"]),
    ],
)
def test_a_range_stands_for_its_names_with_their_zeros(text: str, names: list[str]) -> None:
    assert expand_names(text) == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n[3..1]", 'node "n[3..1]": 3..1 runs backwards. Write 1..3'),
        ("n[001..12]", "001 and 12 have 3 and 2 digits"),
        ("n[1..1001]", "stands for more than 1000 names"),
        ("n[1..2][3..4]", "expected a name with one range"),
        ("n[1-3]", "expected a name with one range"),
        ("n[1..3", "expected a name with one range"),
        ("n[٣..٤]", "expected a name with one range"),
        ("a b[1..2]", 'node "a b1" (from "a b[1..2]"): expected a name'),
        ("abcdefghijklmn[8..10]", 'node "abcdefghijklmn10" (from'),
        ("", 'node "": expected a name'),
    ],
)
def test_what_is_no_range_is_told_with_what_to_write(text: str, expected: str) -> None:
    with pytest.raises(FieldError, match=re.escape(expected)):
        expand_names(text)


def test_a_range_of_nodes_is_so_many_nodes_in_its_place(tmp_path: Path) -> None:
    keys = 'address: "10.0.0.{n}", data_address: "10.1.0.{n}", user: "{name}"'
    text = f"nodes:\n  z: {{address: z.lan}}\n  n[08..10]: {{{keys}}}\n"
    rig = rig_from(tmp_path, text)
    assert list(rig.nodes) == ["z", "n08", "n09", "n10"]
    assert [node.address for node in rig.nodes.values()] == ["z.lan", "10.0.0.8", "10.0.0.9", "10.0.0.10"]
    assert (rig.nodes["n08"].data_address, rig.nodes["n08"].user) == ("10.1.0.8", "n08")
    assert rig.text == text


def test_a_nodes_own_value_goes_before_its_groups_and_that_before_all(tmp_path: Path) -> None:
    text = "defaults: {user: pi}\n" + NODES
    assert users(tmp_path, text) == ["pi", "own", "pi", "pi"]
    assert users(tmp_path, text, "defaults.user=root") == ["root", "own", "root", "root"]
    assert users(tmp_path, text, "nodes.a.user=root") == ["root", "own", "pi", "pi"]
    of_groups = f"defaults: {{user: pi, groups: {{left: {{user: x}}, right: {{port: 2222}}}}}}\n{GROUPS}{NODES}"
    assert users(tmp_path, of_groups) == ["x", "own", "pi", "pi"]
    assert [node.port for node in rig_from(tmp_path, of_groups).nodes.values()] == [None, None, 2222, 2222]
    apart = "defaults: {groups: {left: {user: x}, right: {user: y}}}\ngroups: {left: [a, b], right: [b, n1]}\n"
    assert users(tmp_path, apart + NODES) == ["x", "own", "y", None]


def test_keys_of_ssh_reach_only_the_nodes_that_ssh_reaches_and_a_node_can_refuse_a_default(tmp_path: Path) -> None:
    nodes = "nodes: {a: {address: x}, b: {transport: local}, c: {address: y, sudo: false}}\n"
    rig = rig_from(tmp_path, "defaults: {user: pi, sudo: true, data_interface: eth1}\n" + nodes)
    found = [(node.user, node.sudo, node.data_interface) for node in rig.nodes.values()]
    assert found == [("pi", True, "eth1"), (None, True, "eth1"), ("pi", False, "eth1")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nodes:\n  n[2..1]: {address: x}\n  b: {address: y}\n", ['2:3: node "n[2..1]": 2..1 runs backwards.']),
        ("nodes:\n  n[1..2]: {address: 'a{n}'}\n  n2: {address: y}\n", [TWICE]),
        ("nodes:\n  n[1..2]: {address: a}\n", ['2:22: node "n2": has the same address as "n1".']),
        ("nodes:\n  n[1..12]: {mtu: 5, adress: x}\n", ['2:19: mtu "5": expected', '2:22: unknown key "adress"']),
        ("nodes:\n  n[1..12]: {mtu: 1500}\n", [LACKS + ' (in a range: "{name}.lan").']),
        (f"defaults: {{user: 7}}\n{NODES}", ["1:18: user"]),
        (f"defaults: {{address: x}}\n{NODES}", ['1:12: unknown key "address"']),
        (f"defaults: {{groups: {{no: {{user: x}}}}}}\n{NODES}", ['1:21: defaults: there is no group "no"']),
        (f"defaults: {{groups: {{left: 3}}}}\n{GROUPS}{NODES}", ["1:27: "]),
        (PORTS + NODES, [APART]),
        (f"defaults: 3\n{NODES}", ["1:11: "]),
        (f"defaults: {{key: /there/is/none}}\n{NODES}", ["1:17: key"]),
        ("defaults: {sudo: true}\nvirtual: namespaces\nnodes: {a: , b: }\n", ["1:1: defaults: for real nodes only"]),
    ],
)
def test_each_mistake_is_told_once_with_its_place(tmp_path: Path, text: str, expected: list[str]) -> None:
    told = [line for line in message(tmp_path, text).splitlines() if not line.startswith(" ")]
    assert [line.startswith(f"r.yaml:{each}") for line, each in zip(told, expected, strict=True)] == [True] * len(told)


def test_an_option_replaces_a_value_also_of_some_nodes_of_a_range_and_the_text_stays(tmp_path: Path) -> None:
    rig = rig_from(tmp_path, TEXT, ["trunk.rate=10G", "nodes.n2.rate=100M", "nodes.n[2..3].mtu=9000"])
    assert rig.trunk is not None
    assert (rig.trunk.rate_bps, rig.text) == (10**10, TEXT)
    assert [node.link.rate_bps for node in rig.nodes.values()] == [10**9, 10**8, 10**9, 10**9]
    assert [node.link.mtu for node in rig.nodes.values()] == [1500, 9000, 9000, 1500]
    assert {node.link.mtu for node in rig_from(tmp_path, TEXT, ["links.mtu=9000"]).nodes.values()} == {9000}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("trunk.rate", "expected PATH=VALUE, as in --rig-set trunk.rate=10G."),
        ("trnk.rate=5", 'unknown key "trnk". Did you mean "trunk"?'),
        ("trunk.rate=10Q", 'rate "10Q": unknown unit "Q". Use k, M or G (bit/s), as in 1G.'),
        ("trunk=8G", "trunk: expected keys and values, found a text."),
        ("nodes.n4.rate=1G", 'the rig file has no node "n4".'),
        ("nodes.n1=1G", "expected a key of one of the nodes, as in"),
        ("switches.cisc.mtu=9000", 'the rig file has no switch "cisc". Did you mean "cisco"?'),
        ("nodes.n1.address=x", 'node "n1": "address" is for real nodes'),
    ],
)
def test_what_cannot_be_set_is_told_with_its_option(tmp_path: Path, given: str, expected: str) -> None:
    assert message(tmp_path, TEXT, [given]).startswith(f"--rig-set {given}: {expected}")


def test_all_wrong_options_are_told_at_once(tmp_path: Path) -> None:
    wrong = ["a=1", "nodes.q.mtu=1", "trunk.rate=x"]
    told = message(tmp_path, TEXT, wrong).splitlines()
    assert [line.split(": ")[0] for line in told] == [f"--rig-set {option}" for option in wrong]
