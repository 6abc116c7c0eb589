"""Ranges of node names: what they stand for, and what is no range."""

from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.rig.ranges import expand_names
from rigctl.yamlfile.fields import FieldError


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
    with pytest.raises(FieldError) as caught:
        expand_names(text)
    assert expected in str(caught.value)


def test_a_range_of_nodes_is_so_many_nodes_in_its_place(tmp_path: Path) -> None:
    keys = 'address: "10.0.0.{n}", data_address: "10.1.0.{n}", user: "{name}"'
    text = f"nodes:\n  z: {{address: z.lan}}\n  n[08..10]: {{{keys}}}\n"
    rig = rig_from(tmp_path, text)
    assert list(rig.nodes) == ["z", "n08", "n09", "n10"]
    assert [node.address for node in rig.nodes.values()] == ["z.lan", "10.0.0.8", "10.0.0.9", "10.0.0.10"]
    assert (rig.nodes["n08"].data_address, rig.nodes["n08"].user) == ("10.1.0.8", "n08")
    assert rig.text == text


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            "  n[2..1]: {address: x}\n  b: {address: y}\n  c: {address: z}\n",
            'r.yaml:2:3: node "n[2..1]": 2..1 runs backwards.',
        ),
        (
            "  n[1..2]: {address: 'a{n}'}\n  n2: {address: y}\n",
            "r.yaml:3:3: nodes: n2 is given twice, first in line 2. Keep one of them.",
        ),
        (
            "  n2: {address: y}\n  n[1..2]: {address: 'a{n}'}\n",
            "r.yaml:3:3: nodes: n2 is given twice, first in line 2. Keep one of them.",
        ),
        ("  n[1..2]: {address: a}\n", 'r.yaml:2:22: node "n2": has the same address as "n1".'),
    ],
)
def test_a_mistake_of_a_range_is_told_at_its_place(tmp_path: Path, nodes: str, expected: str) -> None:
    assert message(tmp_path, f"nodes:\n{nodes}").startswith(expected)


def test_what_is_wrong_with_all_nodes_of_a_range_is_told_once(tmp_path: Path) -> None:
    told = message(tmp_path, "nodes:\n  n[1..12]: {mtu: 5, adress: x}\n")
    assert [line for line in told.splitlines() if line.startswith("r.yaml")] == [
        'r.yaml:2:19: mtu "5": expected 576 to 65536, as in 1500.',
        'r.yaml:2:22: unknown key "adress". Did you mean "address"?',
    ]


def test_what_all_nodes_of_a_range_lack_is_told_once(tmp_path: Path) -> None:
    told = message(tmp_path, "nodes:\n  n[1..12]: {mtu: 1500}\n")
    assert told.count("is missing") == 1
    assert 'node "n1": "address" is missing.' in told
    assert 'in a range: "{name}.lan"' in told
