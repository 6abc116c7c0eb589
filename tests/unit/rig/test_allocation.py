"""Nodes of a Slurm allocation: what scontrol says of them, and how a rig file takes them."""

import re
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.rig import allocation
from rigctl.rig.allocation import Member, members_of, node_names
from rigctl.rig.load import load_rig, rig_of
from rigctl.yamlfile import MistakesError
from rigctl.yamlfile.read import parse_document

TOLD = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1 NodeAddr=10.87.0.11 NodeHostName=n1 OS=Linux 6.1 #1 SMP State=ALLOCATED
NodeName=n2 Arch=x86_64 NodeAddr=n2.lan NodeHostName=n2-host Reason=NodeName is wrong [root@2026]
NodeName=n3 State=UNKNOWN
"""


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [Member(f"n{number}", f"10.87.0.1{number}") for number in range(1, 5)]
    monkeypatch.setattr(allocation, "members_here", lambda srun: members)
    monkeypatch.setenv("SLURM_JOB_ID", "7")


def test_nodes_and_their_addresses_are_read_from_scontrol() -> None:
    assert members_of(TOLD) == [Member("n1", "10.87.0.11"), Member("n2", "n2.lan"), Member("n3", "n3")]


def test_names_that_do_not_fit_are_numbered() -> None:
    assert node_names(["r1n1", "gpu-2"]) == ["r1n1", "gpu-2"]
    long = [f"queue-dy-c5n18xlarge-{number}" for number in range(1, 11)]
    assert node_names(long)[::9] == ["node01", "node10"]


@pytest.mark.usefixtures("four")
def test_the_bundled_rig_has_the_nodes_of_the_allocation() -> None:
    made = load_rig("slurm")
    assert [(node.name, node.address, node.transport, node.data_address) for node in made.nodes.values()] == [
        (f"n{number}", f"n{number}", "srun", f"10.87.0.1{number}") for number in range(1, 5)
    ]
    assert made.groups == {"left": ("n1", "n2"), "right": ("n3", "n4")}
    assert made.notes == "Slurm job 7: n1, n2, n3, n4."


PORT = 'lab.yaml:4:3: node "n1": "port" is for SSH, and its transport is srun. Leave it out.'
LOCAL = "transport: local\nnodes: {a: {}, b: {data_address: 1.2.3.4}}\n"
BESIDE = "nodes: {a: {address: x}, b: {address: y}}\nslurm: {}\n"


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("text", "said", "counted"),
    [
        ("transport: srun\nslurm:\n  data_interface: ib0\n  port: 22\n", PORT, "is for SSH"),
        (BESIDE, "lab.yaml:2:1: slurm: ", "Leave one of them out"),
        (LOCAL, "lab.yaml:2:", '"data_interface" is missing'),
    ],
)
def test_a_mistake_is_told_once_with_its_place(text: str, said: str, counted: str) -> None:
    with pytest.raises(MistakesError, match=re.escape(said)) as caught:
        rig_of(parse_document("lab.yaml", text), Path("lab.yaml"), ())
    assert str(caught.value).count(counted) == 1


def test_outside_an_allocation_one_message_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(InputError, match=r"no Slurm allocation .*salloc -N 2 .* --rig slurm"):
        load_rig("slurm")
