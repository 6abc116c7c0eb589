"""The rig file: what it becomes, and every mistake at its place."""

from pathlib import Path

import pytest
from builders import message, rig_from

from rigctl.base.errors import InputError
from rigctl.records import Link
from rigctl.rig.load import bundled_rigs, load_rig

REAL = "nodes: {a: {address: x}, b: {address: y}}\n"
HOST = "expected a host name or IP address"
VIRTUAL = "nodes: {a: , b: }\n"
SPACES = "virtual: namespaces\nnodes: {a: "


def test_a_real_rig_has_all_that_ssh_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for key in (tmp_path / "key", tmp_path / "home" / "id"):
        key.write_text("")
    text = (
        "title: Two rooms\nnotes: n\nswitch: {name: Blox}\nlinks: {rate: 1G, mtu: 9000}\nnodes:\n"
        "  a: {address: a.lab, key: key, user: pi}\n"
        "  b: {address: fe80::1%eth0, port: 2222, key: ~/id, known_hosts: kh, jump: 'x@gate.lab:22',\n"
        "      data_address: 'FD00::1', data_interface: enp3s0, sudo: yes, rate: 2.5 Gbit/s, mtu: 1500}\n"
    )
    rig = rig_from(tmp_path, text)
    assert (rig.name, rig.title, rig.switch, rig.notes) == ("r", "Two rooms", "Blox", "n")
    assert (rig.virtual, rig.text, rig.source) == (None, text, tmp_path / "r.yaml")
    a, b = rig.nodes["a"], rig.nodes["b"]
    assert (a.address, a.key, a.user) == ("a.lab", tmp_path / "key", "pi")
    assert (a.port, a.sudo, a.link) == (None, False, Link(10**9, 9000))
    assert (b.port, b.key, b.known_hosts) == (2222, tmp_path / "home" / "id", tmp_path / "kh")
    assert (b.jump, b.data_address, b.data_interface) == ("x@gate.lab:22", "fd00::1", "enp3s0")
    assert (b.sudo, b.link) == (True, Link(2_500_000_000, 1500))


def test_the_bundled_rigs_are_as_their_names_say() -> None:
    gigablox, loopback = load_rig("gigablox"), load_rig("loopback")
    assert (gigablox.virtual, gigablox.switch, loopback.virtual) == ("namespaces", "GigaBlox", "loopback")
    links = {name: node.link for name, node in gigablox.nodes.items()}
    assert links == {f"pi{n}": Link(10**9, 1500) for n in range(1, 5)}
    assert {node.link for node in loopback.nodes.values()} == {Link(None, 65536)}
    assert "no shaping" in loopback.notes
    assert set(bundled_rigs()) >= {"gigablox", "loopback"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("password: hunter2", 'r.yaml:2:7: key "password": passwords are not kept in files.'),
        ("port: 70000", 'r.yaml:2:13: port "70000": expected 1 to 65535'),
        ("user: 'a b'", 'r.yaml:2:13: user "a b": expected a user name'),
        ("key: ./no-key", 'r.yaml:2:12: key "./no-key": there is no file no-key.'),
        ("key: ~nobody-here/id", 'r.yaml:2:12: key "~nobody-here/id": there is no file'),
        ("jump: a b", 'r.yaml:2:13: jump "a b": expected [user@]host[:port]'),
        ("data_address: pi1.lan", 'r.yaml:2:21: data_address "pi1.lan": expected an IP address'),
        ("sudo: maybe", 'r.yaml:2:13: sudo "maybe": expected true or false.'),
        ("mtu: 100", 'r.yaml:2:12: mtu "100": expected 576 to 65536'),
        ("rtt: 5ms", "r.yaml:2:7: rtt: for virtual rigs with namespaces only"),
    ],
)
def test_a_mistake_of_a_node_is_told_at_its_place(tmp_path: Path, line: str, expected: str) -> None:
    told = message(tmp_path, f"nodes:\n  a: {{{line}, address: x}}\n  b: {{address: y}}\n").replace("file /", "file ")
    assert told.replace(str(tmp_path)[1:] + "/", "").startswith(expected), told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: x\n", '1:1: "nodes" is missing. Expected: the nodes by name'),
        ("nodes: {}\n", "1:8: nodes: the rig has none."),
        ("nodes: {a: {address: x}}\n", "1:8: nodes: there is only one."),
        ("nodes: {a: 5, b: {address: x}}\n", "1:12: a: expected keys and values, found the number 5."),
        ("nodes: {a: , b: {address: x}}\n", '1:9: node "a": "address" is missing.'),
        ("nodes: {a: {address: x}, b: {address: x}}\n", '1:39: node "b": has the same address as "a".'),
        (f"virtual: vms\n{VIRTUAL}", '1:10: virtual "vms": unknown. Known: namespaces, loopback, machines.'),
        (f"{SPACES}{{rtt: 11s}}, b: }}\n", '2:18: rtt "11s": expected 0.1 ms to 10 s, as in 20ms'),
        (f"{SPACES}{{sysctl: {{a.b: 1}}}}, b: }}\n", '2:22: sysctl "a.b": expected one below net'),
        (f"{SPACES}{{arch: x86_64}}, b: }}\n", "2:13: arch: for virtual rigs with machines"),
        ("virtual: machines\nnodes: {a: {arch: vax}, b: }\n", '2:19: arch "vax": unknown. Known: x86_64'),
        (f"virtual: machines\nlinks: {{nic: ne2k}}\n{VIRTUAL}", '2:14: nic "ne2k": unknown. Known:'),
        (f"virtual: machines\nswitches: {{x: X}}\n{VIRTUAL}", "2:1: switches: a rig"),
        (f"virtual: loopback\nlinks: {{rtt: 1ms}}\n{VIRTUAL}", "2:9: rtt: for virtual rigs with"),
        ("virtual: loopback\nnodes: {a: {user: x}, b: }\n", '2:13: node "a": "user" is for real nodes'),
        (f"ip_version: 6\n{REAL}", "1:1: ip_version: for virtual rigs only"),
        (f"virtual: loopback\nip_version: 5\n{VIRTUAL}", '2:13: ip_version "5": expected 4 or 6.'),
        (f"data_ports: 529-52\n{REAL}", '1:13: data_ports "529-52": runs backwards. Write 52-529.'),
        (f"data_ports: 80-90\n{REAL}", '1:13: data_ports "80-90": expected ports from 1024 to 65535, as 5200-5'),
        (f"data_ports: [1, 2]\n{REAL}", "1:13: data_ports: expected a range of ports, as in 5200-5299, found a list."),
        ("nodes: {a: {address: -oProxyCommand=x}}\n", '1:22: address "-oProxyCommand=x": expected a host name or IP'),
        ("nodes: {a: {address: a@b}}\n", '1:22: address "a@b": expected a host only. The user goes into its'),
        ("nodes: {a: {address: 5}}\n", f"1:22: address: {HOST}, found the number 5. Put it in quotes"),
        ("nodes: {a: {address: ''}}\n", f"1:22: address: {HOST}, found an empty one."),
        (f"switch: {{}}\n{REAL}", '1:1: "name" is missing.'),
        (f"links: {{speed: 1G}}\n{REAL}", '1:9: unknown key "speed". Known: rate, mtu, rtt, nic.'),
    ],
)
def test_a_mistake_of_the_file_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert message(tmp_path, text).startswith(f"r.yaml:{expected}")


def test_all_mistakes_of_the_file_are_told_at_once(tmp_path: Path) -> None:
    text = "swich: x\nlinks: {rate: q}\nnodes:\n  a: {port: 0}\n  b c: {address: y, password: hush}\n"
    told = message(tmp_path, text)
    places = [line.split(": ")[0] for line in told.splitlines() if line.startswith("r.yaml")]
    assert places == [f"r.yaml:{place}" for place in ("1:1", "2:15", "4:13", "5:3", "5:21")]
    assert "hush" not in told


def test_an_unknown_rig_lists_the_bundled_ones() -> None:
    bundled = "10gbe, 10gbe-mended, das2, fast-ethernet, "
    with pytest.raises(InputError, match=rf'unknown rig "gigablok"\. Did you mean "gigablox"\? Bundled: {bundled}'):
        load_rig("gigablok")


def test_data_ports_hold_for_all_nodes_but_those_that_say_otherwise(tmp_path: Path) -> None:
    nodes = "nodes: {a: {address: a.lan}, b: {address: b.lan, data_ports: 6000..6009}}\n"
    rig = rig_from(tmp_path, f"data_ports: 5200-5299\n{nodes}")
    assert [node.data_ports for node in rig.nodes.values()] == [(5200, 5299), (6000, 6009)]
    assert rig_from(tmp_path, nodes).nodes["a"].data_ports is None


def test_a_link_of_a_virtual_rig_has_mtu_1500_where_its_file_does_not_say(tmp_path: Path) -> None:
    rig = rig_from(tmp_path, "virtual: namespaces\nnodes: {a: , b: {mtu: 9000, sysctl: {net/core/rmem_max: 1}}}\n")
    assert [node.link.mtu for node in rig.nodes.values()] == [1500, 9000]
    assert rig.nodes["b"].sysctls == (("net.core.rmem_max", "1"),)
    assert rig_from(tmp_path, "virtual: loopback\nnodes: {a: , b: }\n").nodes["a"].link.mtu is None


@pytest.mark.parametrize(
    ("first", "second", "version"),
    [
        ("address: fd00::1", "address: fd00::2", 6),
        ("address: fd00::1", "address: 10.0.0.2", 4),
        ("address: n1.lan, data_address: fd00::1", "address: n2.lan", 6),
        ("address: fd00::1, data_interface: eth1", "address: fd00::2, data_interface: eth1", 4),
    ],
)
def test_the_ip_version_is_that_of_the_data_addresses(tmp_path: Path, first: str, second: str, version: int) -> None:
    assert rig_from(tmp_path, f"nodes: {{n1: {{{first}}}, n2: {{{second}}}}}\n").ip_version == version
