"""`rigctl rig init`: hosts of Ansible inventories; a lab of real OpenSSH, lldpd, and a bridge whose table snmpd serves.

pi1 and pi2 hear the switch by LLDP, pi3 has no lldpd, pi4 is the only node behind a second switch, and nobody has the
address of pi5.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import bridge_mib
import pytest
from cases import from_file
from openssh import new_key
from openssh_lab import Lab, announcing, bridge, cable, linked, serve, sh, switched
from processes import DEADLINE_S, end, eventually
from user import ended

from rigctl.base.errors import InputError
from rigctl.discovery.inventory import Inventory, inventory_targets, read_inventory, split_reference
from rigctl.discovery.targets import Target
from rigctl.rig.inventory import Rig
from rigctl.rig.load import load_rig

HOSTS = {"pi1": "10.98.0.1", "pi2": "10.98.0.2", "pi3": "10.98.0.3"}
BEHIND, NOBODY, CONTROLLER, SWITCH = "10.98.0.4", "10.98.0.5", "10.98.0.9", "10.98.0.254"
COMMUNITY = "only-for-tests"
PORTS = {"q": 161, "d": 1161}  # of snmpd, by the form of its table


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("riginit"), f"riginit{os.getpid()}")
    with switched(made), ExitStack() as running:
        sh("ip", "-n", made.host("switch"), "address", "add", f"{SWITCH}/24", "dev", "br0")
        sh("ip", "-n", made.host("switch"), "link", "set", "lo", "up")
        new_key(made.folder / "id")
        for name, address in {**HOSTS, "ctl": CONTROLLER}.items():
            cable(made, name, address)
        second_switch(made)
        # One of its addresses is on no other host's network.
        sh("ip", "-n", made.host("pi1"), "address", "add", "172.17.0.1/16", "dev", "eth0")
        for command in (*announcing("switch"), "sleep", "infinity"), *(snmpd(made, kind) for kind in PORTS):
            running.callback(end, subprocess.Popen(made.inside("switch", *command)), politely_for_s=5)
        for name, address in {**HOSTS, "pi4": BEHIND}.items():
            running.callback(end, serve(made, name, address, lldp=name in ("pi1", "pi2")), politely_for_s=5)
        home(made)
        until_ready(made)
        yield made


def second_switch(lab: Lab) -> None:
    """pi4's, between it and the first; more addresses have been seen behind it."""
    second = lab.host("second")
    bridge(second)
    linked(lab, second, "up0", "uplink")
    sh("ip", "-n", second, "link", "set", "up0", "master", "br0")
    cable(lab, "pi4", BEHIND, "second")
    for number in range(6):
        mac = f"02:aa:00:00:00:0{number}"
        sh("bridge", "-n", lab.host("switch"), "fdb", "add", mac, "dev", "uplink", "master", "static")


def snmpd(lab: Lab, kind: str) -> list[str]:
    config = lab.folder / f"snmpd-{kind}.conf"
    config.write_text(
        f"rocommunity {COMMUNITY} default\nsysName GigaBlox\n[snmp] persistentDir {lab.folder}\n[snmpd]\n"
        f"pass_persist .1.3.6.1.2.1.17 {sys.executable} {bridge_mib.__file__} br0 {kind}\n"
    )
    command = ["snmpd", "-f", "-C", "-c", str(config), "-Lf", str(lab.folder / "snmpd.log"), "-I", "-smux"]
    return ["env", "MIBS=", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command, f"udp:{SWITCH}:{PORTS[kind]}"]


def home(lab: Lab) -> None:
    """Make a ~/.ssh as a user has it: a key and the keys of the hosts."""
    folder = lab.folder / ".ssh"
    folder.mkdir(mode=0o700)
    (lab.folder / "id").rename(folder / "id_ed25519")
    addresses = {**HOSTS, "pi4": BEHIND}
    known = [f"{addresses[name]} {(lab.folder / name / 'host_key.pub').read_text()}" for name in addresses]
    (folder / "known_hosts").write_text("".join(known))


def until_ready(lab: Lab) -> None:
    """Wait until SSH and both tables of snmpd answer, and lldpd has heard its neighbour."""
    ssh = ["ssh", "-F", "none", "-i", str(lab.folder / ".ssh/id_ed25519"), "-o", "BatchMode=yes"]
    ssh += ["-o", f"UserKnownHostsFile={lab.folder}/.ssh/known_hosts"]
    heard = "lldpcli show neighbors | grep -q SysName:.*switch"
    for name, address in {**HOSTS, "pi4": BEHIND}.items():
        until_it_works(lab, *ssh, f"root@{address}", heard if name in ("pi1", "pi2") else "true")
    for port in PORTS.values():
        until_it_works(lab, "snmpwalk", "-v2c", "-c", COMMUNITY, f"{SWITCH}:{port}", "1.3.6.1.2.1.17.1.4")


def until_it_works(lab: Lab, *words: str) -> None:
    command = lab.inside("ctl", *words)
    eventually(lambda: subprocess.run(command, capture_output=True, timeout=DEADLINE_S).returncode == 0, words[-1])


def loaded(lab: Lab, name: str) -> Rig:
    return load_rig(str(lab.folder / name))


def test_a_rig_file_of_what_was_found_is_planned_and_run_as_it_is(lab: Lab) -> None:
    switch = f"gigablox={SWITCH}:{COMMUNITY}"
    out = lab.rigctl("rig", "init", "root@10.98.0.[1-5]", "--switch", switch, "-o", "lab.yaml")
    text = (lab.folder / "lab.yaml").read_text()
    assert out.startswith("A rig of 4 nodes was written to lab.yaml, 1 host left out."), out
    rig = loaded(lab, "lab.yaml")
    addresses = {"10-98-0-1": "10.98.0.1", "10-98-0-2": "10.98.0.2", "10-98-0-3": "10.98.0.3", "10-98-0-4": BEHIND}
    assert {name: node.data_address for name, node in rig.nodes.items()} == addresses
    assert {node.data_interface for node in rig.nodes.values()} == {"eth0"}
    assert {node.link.mtu for node in rig.nodes.values()} == {1500}
    assert {node.link.rate_bps for node in rig.nodes.values()} == {None}  # a veth's speed means nothing
    ports = {port.node: port.name for port in rig.ports}
    own = {f"10-98-0-{number}": f"pi{number}" for number in (1, 2, 3)}
    assert ports == own | {"10-98-0-4": "uplink"}, text  # no other node's address is there
    assert "switch_port: pi1  # by LLDP" in text
    assert "switch_port: pi3  # by the forwarding table\n" in text
    assert re.search(r"switch_port: uplink  # by the forwarding table; \d+ other addresses are there", text), text
    assert f"#   root@{NOBODY}: no route to {NOBODY} port 22" in text
    assert COMMUNITY not in text
    text = "pairs: [10-98-0-1 -> 10-98-0-4]\nduration: 1s\nmax_skew: 1s\nmatrix: {window: [64K]}\n"
    (lab.folder / "s.yaml").write_text(text)
    assert "Total time: 1 s" in lab.rigctl("plan", "s.yaml", "--rig", "lab.yaml")
    lab.rigctl("run", "s.yaml", "--rig", "lab.yaml", "--no-report")
    (row,) = json.loads(lab.rigctl("export", "--format", "json", "--level", "pairs"))
    assert row["status"] == "ok"
    assert row["goodput_mbps"] > 0


def test_a_switch_that_knows_no_vlans_is_read_too_and_described_as_a_rig_file_does(lab: Lab) -> None:
    option = f"core={{address: {SWITCH}, snmp: {{port: {PORTS['d']}}}}}"
    words = ("rig", "init", "root@10.98.0.[3-4]", "--json", "--switch", option, "-o", "two.yaml")
    document = json.loads(lab.rigctl(*words, RIGCTL_CORE_COMMUNITY=COMMUNITY))
    assert [(node["switch"], node["switch_port"]) for node in document["nodes"]] == [
        ("core", "pi3"),
        ("core", "uplink"),
    ]
    core = loaded(lab, "two.yaml").switches["core"]
    assert (core.title, core.address) == ("GigaBlox", SWITCH)


def test_with_a_dash_the_file_is_printed_and_the_table_goes_to_standard_error(lab: Lab) -> None:
    words = ("rig", "init", "root@10.98.0.1,root@10.98.0.2", "-o", "-")
    done = ended(words, lab.folder, lab.environment, network=lab.network)
    (lab.folder / "printed.yaml").write_bytes(done.stdout)
    assert list(loaded(lab, "printed.yaml").nodes) == ["10-98-0-1", "10-98-0-2"]
    assert b"A rig of 2 nodes was printed." in done.stderr


def test_an_inventory_gives_names_groups_and_how_ssh_goes(lab: Lab) -> None:
    (lab.folder / "hosts.ini").write_text(
        "[servers]\nleft ansible_host=10.98.0.1\n[clients]\nright ansible_host=10.98.0.2\nfar ansible_host=10.98.0.3\n"
        "[lab:children]\nservers\nclients\n[all:vars]\nansible_user=root\n"
        f"ansible_ssh_private_key_file={lab.folder}/.ssh/id_ed25519\n"
    )
    lab.rigctl("rig", "init", "--from", "hosts.ini:lab", "-o", "named.yaml")
    rig = loaded(lab, "named.yaml")
    assert list(rig.nodes) == ["left", "right", "far"]
    assert rig.groups == {"servers": ("left",), "clients": ("right", "far"), "lab": ("left", "right", "far")}
    assert (rig.nodes["far"].user, rig.nodes["far"].key) == ("root", lab.folder / ".ssh/id_ed25519")


def test_where_no_host_is_usable_nothing_is_written(lab: Lab) -> None:
    errors = lab.rigctl("rig", "init", "root@10.98.0.[1-2]:2222", "-o", "none.yaml", code=3)
    assert "no host is usable; a rig needs 2 nodes. Nothing was written." in errors
    assert "root@10.98.0.1:2222: connection refused by 10.98.0.1 port 2222." in errors
    assert not (lab.folder / "none.yaml").exists()


INVENTORIES = Path(__file__).with_name("inventory")


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
    shutil.copy(INVENTORIES / "hosts", tmp_path)
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
            'ansible_ssh_common_args: "StrictHostKeyChecking no" is ignored',
            "far3: left out: ansible_user: templates are not filled in. Write the value itself",
            'far4: left out: ansible_port "many": expected a whole number from 1 to 65535, as in 22',
        ]
    )
    assert sorted(target.text for target in inventory_targets(inventory, ["lab"])[0]) == sorted(found)[3:]
    assert len(inventory_targets(inventory, ["servers", "behind"])[0]) == 5
    with pytest.raises(InputError, match=r'hosts: there is no group "serves"\. Did you mean "servers"\?'):
        inventory_targets(inventory, ["serves"])


CONSTRUCTED = """plugin: ansible.builtin.constructed
strict: true
compose:
  ansible_user: "'ubuntu'"
  ansible_port: 2200 + (inventory_hostname | regex_search('[0-9]+') | int)
  ansible_host: private_ip
  ansible_ssh_common_args: "'-o ProxyCommand=\\"ssh -W %h:%p -q ops@' ~ gate ~ '\\"'"
"""


def test_values_that_a_plugin_composes_are_those_that_ansible_uses(tmp_path: Path) -> None:
    hosts = "all:\n  vars: {gate: bastion.lan}\n  hosts:\n"
    hosts += "".join(f"    n{number}: {{private_ip: 10.0.0.{number}}}\n" for number in (1, 2, 3))
    (tmp_path / "inv").mkdir()
    (tmp_path / "inv/1-hosts.yaml").write_text(hosts)
    (tmp_path / "inv/2-compose.yaml").write_text(CONSTRUCTED)
    targets, notes = inventory_targets(read_inventory(tmp_path / "inv"))
    assert [(target.name, target.host, target.user, target.port, target.jump) for target in targets] == [
        (f"n{number}", f"10.0.0.{number}", "ubuntu", 2200 + number, "ops@bastion.lan") for number in (1, 2, 3)
    ]
    assert notes == []


def of_host(**variables: object) -> tuple[list[Target], list[str]]:
    both = {"a": variables, "b": {}}
    return inventory_targets(Inventory(Path("hosts"), {"all": list(both)}, {}, both))


def test_a_vault_secret_and_a_value_of_another_kind_are_named(tmp_path: Path) -> None:
    for value in ({"__ansible_vault": "$ANSIBLE_VAULT;1.1"}, {"__ansible_unsafe": "x", "more": "y"}):
        (target,), notes = of_host(ansible_user=value)
        assert target.name == "b"
        assert notes == ["a: left out: ansible_user: a vault secret is not decrypted. Write the value itself"]


@from_file
def test_a_proxy_command_by_ssh_is_a_jump_host(args: str, jump: str, ignored: str) -> None:
    (target, _), notes = of_host(ansible_ssh_common_args=args)
    assert target.jump == (jump or None)
    expected = [
        f'ansible_ssh_common_args: "{each}" of the jump host is ignored' for each in ignored.split("; ") if each
    ]
    assert notes == expected


@pytest.mark.parametrize(
    "command", ["nc -X connect %h %p", "ssh gate nc %h %p", "ssh -W other:22 gate", "ssh -W %h:%p"]
)
def test_another_proxy_command_is_ignored_and_named(command: str) -> None:
    (target, _), notes = of_host(ansible_ssh_common_args=f"-o 'ProxyCommand {command}'")
    assert (target.jump, notes) == (None, [f'ansible_ssh_common_args: "ProxyCommand {command}" is ignored'])


def test_notes_are_told_also_where_no_host_is_usable(lab: Lab) -> None:
    (lab.folder / "proxied").write_text(
        "[all]\nn1 ansible_host=10.98.0.1 ansible_port=2222\nn2 ansible_host=10.98.0.2 ansible_port=2222\n"
        "[all:vars]\nansible_ssh_common_args='-o ProxyCommand=\"nc -X connect %h %p\" -o IdentityAgent=none'\n"
    )
    errors = lab.rigctl("rig", "init", "--from", "proxied", "-o", "none.yaml", code=3)
    assert "no host is usable" in errors
    assert 'Note: ansible_ssh_common_args: "ProxyCommand nc -X connect %h %p" is ignored.' in errors
    assert 'Note: ansible_ssh_common_args: "IdentityAgent none" is ignored.' in errors


def test_which_variable_applies_is_ansibles_answer(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/merged.yml").write_text("ansible_port: 2203\n")
    found, notes = taken(tmp_path, "hosts.yml", (INVENTORIES / "hosts.yml").read_text())
    assert found["node1"].port == 2201
    assert found["node2"] == Target("node2", "10.0.0.2", "pi", 2203, name="node2", groups=("merged",))
    assert notes == []


@from_file
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
