"""`defaults:` in a rig file: which value a node takes, and what is refused."""

from pathlib import Path

import pytest

from rigctl.rig.inventory import Rig
from rigctl.rig.load import rig_of
from rigctl.yamlfile import MistakesError, parse_document

NODES = "nodes: {a: {address: a.lan}, b: {address: b.lan, user: own}, 'n[1..2]': {address: '{name}.lan'}}\n"
GROUPS = "groups: {left: [a, b], right: 'n[1..2]'}\n"


def rig(text: str, *sets: str) -> Rig:
    return rig_of(parse_document("r.yaml", text), Path("r.yaml"), sets)


def users(text: str, *sets: str) -> list[str | None]:
    return [node.user for node in rig(text, *sets).nodes.values()]


def refused(text: str) -> list[str]:
    with pytest.raises(MistakesError) as caught:
        rig(text)
    return [f"{mistake.where}: {mistake.what}" for mistake in caught.value.mistakes]


def test_a_nodes_own_value_goes_before_its_groups_and_that_before_all() -> None:
    assert users("defaults: {user: pi}\n" + NODES) == ["pi", "own", "pi", "pi"]
    of_groups = "defaults: {user: pi, groups: {left: {user: x}, right: {port: 2222}}}\n"
    assert users(of_groups + GROUPS + NODES) == ["x", "own", "pi", "pi"]
    assert [node.port for node in rig(of_groups + GROUPS + NODES).nodes.values()] == [None, None, 2222, 2222]


def test_an_option_changes_a_default_or_one_node() -> None:
    text = "defaults: {user: pi}\n" + NODES
    assert users(text, "defaults.user=root") == ["root", "own", "root", "root"]
    assert users(text, "nodes.a.user=root") == ["root", "own", "pi", "pi"]


def test_sudo_and_interface_reach_every_node_but_keys_of_ssh_only_those_that_ssh_reaches() -> None:
    text = "defaults: {user: pi, sudo: true, data_interface: eth1}\nnodes: {a: {address: x}, b: {transport: local}}\n"
    made = rig(text).nodes
    assert [(node.user, node.sudo, node.data_interface) for node in made.values()] == [
        ("pi", True, "eth1"),
        (None, True, "eth1"),
    ]


def test_a_node_can_refuse_a_default() -> None:
    text = "defaults: {sudo: true}\nnodes: {a: {address: x, sudo: false}, b: {address: y}}\n"
    assert [node.sudo for node in rig(text).nodes.values()] == [False, True]


def test_two_groups_that_differ_are_refused_unless_the_node_has_its_own() -> None:
    groups = "groups: {left: [a, b], right: [b, n1]}\n"
    assert refused("defaults: {groups: {left: {port: 1}, right: {port: 2}}}\n" + groups + NODES) == [
        'r.yaml:1:52: defaults: node "b" is also in group "left", with another port. Give it at the node.'
    ]
    own = "defaults: {groups: {left: {user: x}, right: {user: y}}}\n"
    assert users(own + groups + NODES) == ["x", "own", "y", None]


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ("{user: 7}", "1:18: user"),
        ("{usr: pi}", '1:12: unknown key "usr"'),
        ("{address: x}", '1:12: unknown key "address"'),
        ("{groups: {middle: {user: x}}}", '1:21: defaults: there is no group "middle"'),
        ("{groups: {left: 3}}", "1:27: "),
        ("{groups: 3}", "1:20: "),
        ("3", "1:11: "),
        ("{key: /there/is/none}", "1:17: key"),
    ],
)
def test_each_mistake_is_told_once_with_its_place(defaults: str, said: str) -> None:
    (mistake,) = refused(f"defaults: {defaults}\n{GROUPS}{NODES}")
    assert mistake.startswith(f"r.yaml:{said}")


def test_a_virtual_rig_has_none() -> None:
    (mistake,) = refused("defaults: {sudo: true}\nvirtual: namespaces\nnodes: {a: , b: }\n")
    assert mistake.startswith("r.yaml:1:1: defaults: for real nodes only")
