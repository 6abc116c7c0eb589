"""Hosts of Ansible inventories, as Ansible reads them: what is taken over, left out with a note, or refused."""

import os
import sys
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.discovery.inventory import Inventory, inventory_targets, read_inventory, split_reference
from rigctl.discovery.targets import Target

INI = """\
alone ansible_host=10.0.0.9 ansible_port=2222 ansible_ssh_args='-C -o ControlMaster=auto'
[servers]
pi[01:03].lan ansible_user=pi   # with a comment
[clients]
nuc ansible_host=10.0.0.7 ansible_ssh_private_key_file="keys/nuc key"
here ansible_connection=local
[behind]
far1 ansible_connection=ansible.builtin.ssh ansible_ssh_common_args='-o ProxyJump=admin@gate.example'
far2 ansible_user=pi@corp.example ansible_ssh_common_args='-J gate.example:2222 -o StrictHostKeyChecking=no'
far3 ansible_user="{{ me }}"
far4 ansible_port=many
[lab:children]
servers
clients
[lab:vars]
ansible_user=root
[all:vars]
ansible_port=22022
"""
# zeta stands first, and of two groups of one depth the later name wins.
PRECEDENCE = """\
all:
  children:
    zeta: {hosts: {node1: }, vars: {ansible_port: 2201}}
    alpha: {hosts: {node1: }, vars: {ansible_port: 2202, common: &common {ansible_user: pi}}}
    merged: {hosts: {node2: {<<: *common, ansible_host: 10.0.0.2, ansible_become_pass: !vault secret}}}
"""


@pytest.fixture(autouse=True)
def ansible(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "ansible"))


def taken(folder: Path, name: str, text: str, *groups: str) -> tuple[dict[str, Target], list[str]]:
    (folder / name).write_text(text)
    targets, notes = inventory_targets(read_inventory(folder / name), groups)
    return {target.text: target for target in targets}, notes


def test_hosts_have_groups_and_how_ssh_goes_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/nuc key").touch()
    (tmp_path / "hosts").write_text(INI)
    inventory = read_inventory(tmp_path / "hosts")
    targets, notes = inventory_targets(inventory)
    found = {target.text: target for target in targets}
    assert sorted(found) == ["alone", "far1", "far2", "nuc", "pi01.lan", "pi02.lan", "pi03.lan"]
    assert found["alone"] == Target("alone", "10.0.0.9", port=2222, name="alone")
    assert found["pi02.lan"].host == "pi02.lan"
    assert (found["pi02.lan"].user, found["pi02.lan"].port) == ("pi", 22022)
    assert (found["nuc"].user, found["nuc"].key) == ("root", tmp_path / "keys/nuc key")
    assert set(found["nuc"].groups) == {"lab", "clients"}
    assert [found[host].jump for host in ("far1", "far2")] == ["admin@gate.example", "gate.example:2222"]
    assert found["far2"].user == "pi@corp.example"
    assert sorted(notes) == sorted(
        [
            'here: left out: ansible_connection is "local", not SSH',
            'ansible_ssh_common_args: "StrictHostKeyChecking no" is not taken over',
            "far3: left out: ansible_user: templates are not filled in. Write the value itself",
            'far4: left out: ansible_port "many": expected a whole number from 1 to 65535, as in 22',
        ]
    )
    assert sorted(target.text for target in inventory_targets(inventory, ["lab"])[0]) == sorted(found)[3:]
    assert len(inventory_targets(inventory, ["servers", "behind"])[0]) == 5
    with pytest.raises(InputError, match=r'hosts: there is no group "serves"\. Did you mean "servers"\?'):
        inventory_targets(inventory, ["serves"])


def test_which_variable_applies_is_ansibles_answer(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/merged.yml").write_text("ansible_port: 2203\n")
    found, notes = taken(tmp_path, "hosts.yml", PRECEDENCE)
    assert found["node1"].port == 2201
    assert found["node2"] == Target("node2", "10.0.0.2", "pi", 2203, name="node2", groups=("merged",))
    assert notes == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("hosts", "[a]\nx\n[a:vars]\njust words\n", "hosts: Ansible cannot .*Expected key=value, got: just words$"),
        ("hosts.yml", "all:\n  hosts: [a\n", r"hosts.yml:\d:\d: Ansible cannot read it: .*flow sequence"),
        ("cloud.yml", "plugin: amazon.aws.aws_ec2\n", "cloud.yml: Ansible cannot read it: .*unknown plugin 'amazon"),
    ],
)
def test_what_ansible_cannot_read_is_refused_with_its_reason(
    tmp_path: Path, name: str, text: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        taken(tmp_path, name, text)


def test_an_inventory_without_a_host_for_ssh_is_refused() -> None:
    with pytest.raises(InputError, match="hosts: names no host"):
        inventory_targets(Inventory(Path("hosts"), {}, {"all": ["ungrouped"]}, {}))
    only = Inventory(Path("hosts"), {"all": ["here"]}, {}, {"here": {"ansible_connection": "local"}})
    with pytest.raises(InputError, match='hosts: here: left out: ansible_connection is "local", not SSH'):
        inventory_targets(only)


def test_without_ansible_one_message_says_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"ansible-core by pip or apt, or name the hosts, as in 'node\[01-24\]'"):
        taken(tmp_path, "hosts", "x\n")
    with pytest.raises(InputError, match="none: no such file"):
        read_inventory(tmp_path / "none")


def test_a_file_and_its_group_are_told_apart(tmp_path: Path) -> None:
    assert split_reference("hosts.ini:web,db") == (Path("hosts.ini"), ("web", "db"))
    assert split_reference("hosts.ini") == (Path("hosts.ini"), ())
    odd = tmp_path / "a:b"
    odd.write_text("x\n")
    assert split_reference(str(odd)) == (odd, ())
