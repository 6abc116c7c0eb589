"""`--rig-set PATH=VALUE`: what it changes, and what it cannot."""

from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.rig.inventory import Rig

TEXT = (
    "switches: {force10: F, cisco: C}\nvirtual: namespaces\nlinks: {rate: 1G}\n"
    "nodes:\n  n[1..3]: {switch: force10}\n  m: {switch: cisco}\ntrunk: {rate: 8G}\n"
)


def changed(folder: Path, *sets: str) -> Rig:
    return rig_from(folder, TEXT, sets)


def test_a_value_is_replaced_and_the_text_stays(tmp_path: Path) -> None:
    rig = changed(tmp_path, "trunk.rate=10G", "links.mtu=9000")
    assert rig.trunk is not None
    assert rig.trunk.rate_bps == 10**10
    assert {(node.link.rate_bps, node.link.mtu) for node in rig.nodes.values()} == {(10**9, 9000)}
    assert rig.text == TEXT


def test_a_node_of_a_range_may_be_changed_alone_or_with_others(tmp_path: Path) -> None:
    rig = changed(tmp_path, "nodes.n2.rate=100M", "nodes.n[2..3].mtu=9000")
    assert [node.link.rate_bps for node in rig.nodes.values()] == [10**9, 10**8, 10**9, 10**9]
    assert [node.link.mtu for node in rig.nodes.values()] == [1500, 9000, 9000, 1500]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("trunk.rate", "--rig-set trunk.rate: expected PATH=VALUE, as in --rig-set trunk.rate=10G."),
        ("trnk.rate=5", '--rig-set trnk.rate=5: unknown key "trnk". Did you mean "trunk"?'),
        ("trunk.rate=10Q", '--rig-set trunk.rate=10Q: rate "10Q": unknown unit "Q". Use k, M or G (bit/s), as in 1G.'),
        ("trunk=8G", "--rig-set trunk=8G: trunk: expected keys and values, found a text."),
        ("nodes.n4.rate=1G", '--rig-set nodes.n4.rate=1G: the rig file has no node "n4".'),
        ("nodes.n1=1G", "--rig-set nodes.n1=1G: expected a key of one of the nodes, as in"),
        (
            "switches.cisc.mtu=9000",
            '--rig-set switches.cisc.mtu=9000: the rig file has no switch "cisc". Did you mean "cisco"?',
        ),
        ("nodes.n1.adress=x", '--rig-set nodes.n1.adress=x: unknown key "adress". Did you mean "address"?'),
        ("nodes.n1.address=x", '--rig-set nodes.n1.address=x: node "n1": "address" is for real nodes'),
    ],
)
def test_what_cannot_be_set_is_told_with_its_option(tmp_path: Path, given: str, expected: str) -> None:
    assert message(tmp_path, TEXT, [given]).startswith(expected)


def test_all_wrong_options_are_told_at_once(tmp_path: Path) -> None:
    wrong = ["a=1", "nodes.q.mtu=1", "trunk.rate=x"]
    told = message(tmp_path, TEXT, wrong).splitlines()
    assert [line.split(": ")[0] for line in told] == [f"--rig-set {option}" for option in wrong]
