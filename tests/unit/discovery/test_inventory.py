"""Ansible inventories in both forms: hosts, groups, variables, and each mistake with its line and column."""

from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.discovery.inventory import inventory_targets, read_inventory, split_reference
from rigctl.discovery.targets import Target

INI = """\
# the lab
alone ansible_host=10.0.0.9 ansible_port=2222
[servers]
pi[01:03].lan ansible_user=pi   # with a comment
[clients]
nuc ansible_host=10.0.0.7 ansible_ssh_private_key_file="keys/nuc key"
here ansible_connection=local
[lab:children]
servers
clients
[lab:vars]
ansible_user=root
[all:vars]
ansible_port=22022
"""
YAML = """\
all:
  hosts:
    alone: {ansible_host: 10.0.0.9, ansible_port: 2222}
  vars: {ansible_port: 22022}
  children:
    lab:
      vars: {ansible_user: root}
      children:
        servers:
          hosts:
            pi[01:03].lan: {ansible_user: pi}
        clients:
          hosts:
            nuc:
              ansible_host: 10.0.0.7
              ansible_ssh_private_key_file: keys/nuc key
            here: {ansible_connection: local}
"""


def targets(folder: Path, text: str, *groups: str, name: str = "hosts.ini") -> list[Target]:
    path = folder / name
    path.write_text(text)
    return inventory_targets(read_inventory(path), groups)


def refused(folder: Path, text: str, name: str) -> str:
    with pytest.raises(InputError) as caught:
        targets(folder, text, name=name)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(("text", "name"), [(INI, "hosts.ini"), (INI, "hosts"), (YAML, "hosts.yml"), (YAML, "hosts")])
def test_both_forms_give_the_same_hosts_with_how_ssh_goes(tmp_path: Path, text: str, name: str) -> None:
    found = {target.text: target for target in targets(tmp_path, text, name=name)}
    assert sorted(found) == ["alone", "nuc", "pi01.lan", "pi02.lan", "pi03.lan"]
    assert (found["alone"].host, found["alone"].port, found["alone"].user) == ("10.0.0.9", 2222, None)
    assert (found["pi02.lan"].host, found["pi02.lan"].port, found["pi02.lan"].user) == ("pi02.lan", 22022, "pi")
    assert (found["nuc"].host, found["nuc"].user, found["nuc"].key) == ("10.0.0.7", "root", tmp_path / "keys/nuc key")
    assert set(found["nuc"].groups) == {"lab", "clients"}
    assert found["alone"].groups == ()


def test_a_group_chooses_its_hosts_and_those_of_its_children(tmp_path: Path) -> None:
    assert [target.text for target in targets(tmp_path, INI, "clients")] == ["nuc"]
    assert len(targets(tmp_path, INI, "lab")) == 4
    assert len(targets(tmp_path, INI, "servers", "clients")) == 4
    assert len(targets(tmp_path, INI, "all")) == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a\nx\n", 'hosts.ini:1:1: section "[a": expected [GROUP]'),
        ("[a]\nx ansible_port=many\n", 'hosts.ini:2:3: ansible_port "many": expected a whole number'),
        ("[a:children]\nb\n", 'hosts.ini:2:1: group "a": there is no group "b"'),
        ("[a:children]\nb\n[b:children]\na\n", 'hosts.ini:2:1: group "a": "b" contains it in turn'),
        ("[a]\nx\n[a:vars]\nansible_user={{ me }}\n", "hosts.ini:4:1: ansible_user"),
        ("[a]\nx\n[a:vars]\njust words\n", "hosts.ini:4:1: expected NAME=VALUE"),
        ('x ansible_user="pi\n', "hosts.ini:1:16: the quote is not closed"),
        ("n[3:1]\n", "hosts.ini:1:1: host "),
        ("-x\n", 'hosts.ini:1:1: host "-x": expected a host name'),
        ("# nothing\n", "hosts.ini: names no host"),
        ("all: [a, b]\n", 'hosts.yaml:1:6: group "all": expected a mapping with hosts, vars or children'),
        ("all:\n  host: {a: }\n", 'hosts.yaml:2:3: group "all": "host" is unknown. Known: hosts, vars, children'),
        ("all:\n  hosts:\n    a: {ansible_port: 0}\n", 'hosts.yaml:3:23: ansible_port "0": expected 1 to 65535'),
        ("all:\n  vars: {ansible_user: !vault x}\n", "hosts.yaml:2:24: tag"),
    ],
)
def test_a_mistake_of_either_form_has_its_line_and_column(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text, name=expected.partition(":")[0])


def test_a_file_and_its_group_are_told_apart(tmp_path: Path) -> None:
    assert split_reference("hosts.ini:web,db") == (Path("hosts.ini"), ("web", "db"))
    assert split_reference("hosts.ini") == (Path("hosts.ini"), ())
    odd = tmp_path / "a:b"
    odd.write_text("x\n")
    assert split_reference(str(odd)) == (odd, ())
