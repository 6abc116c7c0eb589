"""The rig file: what it becomes, its switches, shorthands and Slurm allocations, and every mistake at its place."""

import json
import re
from pathlib import Path

import pytest
from builders import message, rig_from
from cases import from_file

from rigctl.base.errors import InputError
from rigctl.records import Link, Port, Trunk
from rigctl.rig import allocation
from rigctl.rig.allocation import Member, members_of, node_names
from rigctl.rig.inventory import Cli, Snmp, Switch
from rigctl.rig.load import load_rig, rig_names, rig_of
from rigctl.rig.ranges import expand_names
from rigctl.yamlfile import MistakesError
from rigctl.yamlfile.fields import FieldError
from rigctl.yamlfile.read import parse_document


@pytest.mark.parametrize(
    ("name", "accepted"),
    [("e", True), ("Ethernet 2", True), ("ü" * 256, True), ("x" * 257, False), ("a/b", False)],
)
def test_names_of_interfaces_may_have_blanks_as_on_windows(tmp_path: Path, name: str, accepted: bool) -> None:
    text = f"nodes:\n  a: {{address: a, data_interface: '{name}'}}\n  b: {{address: b}}\n"
    if accepted:
        assert rig_from(tmp_path, text).nodes["a"].data_interface == name
    else:
        assert "expected an interface name of 1 to 256 characters, as in eth0" in message(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        *((name, True) for name in ("John Doe", "Jürgen", "LAB\\O'Brien", "anna@lab.local", "pi")),
        *((name, False) for name in ("-oProxyCommand=x", "a:b", "a b\tc", "a/b", 'a"b', " ", "x" * 65)),
    ],
)
def test_names_of_users_are_those_that_windows_has(tmp_path: Path, name: str, accepted: bool) -> None:
    text = f"nodes:\n  a: {{address: a, user: {json.dumps(name)}}}\n  b: {{address: b}}\n"
    if accepted:
        assert rig_from(tmp_path, text).nodes["a"].user == name
    else:
        assert "expected a user name" in message(tmp_path, text)


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
    assert set(rig_names()) >= {"gigablox", "loopback"}


@from_file
def test_a_mistake_of_a_node_is_told_at_its_place(tmp_path: Path, line: str, expected: str) -> None:
    told = message(tmp_path, f"nodes:\n  a: {{{line}, address: x}}\n  b: {{address: y}}\n").replace("file /", "file ")
    assert told.replace(str(tmp_path)[1:] + "/", "").startswith(expected), told
    assert "hunter2" not in told


@from_file
def test_a_mistake_of_the_file_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert message(tmp_path, text).startswith(f"r.yaml:{expected}")


def test_all_mistakes_of_the_file_are_told_at_once(tmp_path: Path) -> None:
    text = "swich: x\nlinks: {rate: q}\nnodes:\n  a: {port: 0}\n  b c: {address: y, password: hush}\n"
    told = message(tmp_path, text)
    places = [line.split(": ")[0] for line in told.splitlines() if line.startswith("r.yaml")]
    assert places == [f"r.yaml:{place}" for place in ("1:1", "2:15", "4:13", "5:3", "5:21")]
    assert "hush" not in told


def test_an_unknown_rig_lists_the_bundled_ones() -> None:
    bundled = "10gbe, 10gbe-mended, das2, das2-loop, fast-ethernet, "
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


@from_file
def test_the_ip_version_is_that_of_the_data_addresses(tmp_path: Path, first: str, second: str, version: int) -> None:
    assert rig_from(tmp_path, f"nodes: {{n1: {{{first}}}, n2: {{{second}}}}}\n").ip_version == version


def of(a: str = "", b: str = "") -> str:
    """Return two real nodes, with these keys after their address."""
    return f"nodes: {{a: {{address: x{a and f', {a}'}}}, b: {{address: y{b and f', {b}'}}}}}\n"


PLAIN = of()


def test_two_switches_their_ports_and_their_trunk(tmp_path: Path) -> None:
    rig = rig_from(
        tmp_path,
        "switches:\n"
        "  force10: {title: Force10 E600, address: 10.1.1.1, poll: 500ms,\n"
        "            snmp: {version: 3, port: 1161, auth: SHA-256, priv: aes128}}\n"
        "  cisco: {address: c6509.lan, cli: {kind: cisco_ios, port: 2022, known_hosts: kh}}\n"
        "trunk: {rate: 8G, ports: {force10: Te 0/1, cisco: [Te1/1, Te1/2]}}\n"
        "nodes:\n"
        "  n[1..2]: {address: 'n{n}.lan', switch: force10, switch_port: 'Gi 1/{n}'}\n"
        "  m: {address: m.lan, switch: cisco}\n",
    )
    snmp, cli = Snmp("3", 1161, "sha256", "aes"), Cli("cisco_ios", 2022, tmp_path / "kh")
    force10 = Switch("force10", "Force10 E600", address="10.1.1.1", snmp=snmp, poll_s=0.5)
    assert rig.switches == {"force10": force10, "cisco": Switch("cisco", "cisco", address="c6509.lan", cli=cli)}
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
    # Ports of MikroTik SwOS and RouterOS, Edgecore DCS203, Extreme VSP 9012 (LibreNMS, tests/snmpsim).
    for name in ("SFP+1", "trunk: blank (eth1)", "Eth6/3(Port1)", "Slot 1, Port 1"):
        assert rig_from(tmp_path, text.replace("port: 1", f"port: '{name}'")).ports == (Port("one", name, node="a"),)


@from_file
def test_a_mistake_of_switches_trunk_or_groups_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(tmp_path, text)


@pytest.mark.parametrize(
    "switch", ["community: hush", "snmp: {community: hush}", "cli: {kind: cisco_ios, password: hush}", "secret: hush"]
)
def test_credentials_of_a_switch_are_refused_and_not_repeated(tmp_path: Path, switch: str) -> None:
    told = message(tmp_path, f"switches: {{s: {{address: x, {switch}}}}}\n{PLAIN}")
    assert "credentials come from the environment or a 0600 file, see docs/reference/switches.md" in told
    assert "hush" not in told


TEXT = (
    "switches: {force10: F, cisco: C}\nvirtual: namespaces\nlinks: {rate: 1G}\n"
    "nodes:\n  n[1..3]: {switch: force10}\n  m: {switch: cisco}\ntrunk: {rate: 8G}\n"
)
RANGES = "nodes: {a: {address: a.lan}, b: {address: b.lan, user: own}, 'n[1..2]': {address: '{name}.lan'}}\n"
GROUPS = "groups: {left: [a, b], right: 'n[1..2]'}\n"


def users(folder: Path, text: str, *sets: str) -> list[str | None]:
    return [node.user for node in rig_from(folder, text, sets).nodes.values()]


@from_file
def test_a_range_stands_for_its_names_with_their_zeros(text: str, names: list[str]) -> None:
    assert expand_names(text) == names


@from_file
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
    text = "defaults: {user: pi}\n" + RANGES
    assert users(tmp_path, text) == ["pi", "own", "pi", "pi"]
    assert users(tmp_path, text, "defaults.user=root") == ["root", "own", "root", "root"]
    assert users(tmp_path, text, "nodes.a.user=root") == ["root", "own", "pi", "pi"]
    of_groups = f"defaults: {{user: pi, groups: {{left: {{user: x}}, right: {{port: 2222}}}}}}\n{GROUPS}{RANGES}"
    assert users(tmp_path, of_groups) == ["x", "own", "pi", "pi"]
    assert [node.port for node in rig_from(tmp_path, of_groups).nodes.values()] == [None, None, 2222, 2222]
    apart = "defaults: {groups: {left: {user: x}, right: {user: y}}}\ngroups: {left: [a, b], right: [b, n1]}\n"
    assert users(tmp_path, apart + RANGES) == ["x", "own", "y", None]


def test_keys_of_ssh_reach_only_the_nodes_that_ssh_reaches_and_a_node_can_refuse_a_default(tmp_path: Path) -> None:
    nodes = "nodes: {a: {address: x}, b: {transport: local}, c: {address: y, sudo: false}}\n"
    rig = rig_from(tmp_path, "defaults: {user: pi, sudo: true, data_interface: eth1}\n" + nodes)
    found = [(node.user, node.sudo, node.data_interface) for node in rig.nodes.values()]
    assert found == [("pi", True, "eth1"), (None, True, "eth1"), ("pi", False, "eth1")]


@from_file
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


@from_file
def test_what_cannot_be_set_is_told_with_its_option(tmp_path: Path, given: str, expected: str) -> None:
    assert message(tmp_path, TEXT, [given]).startswith(f"--rig-set {given}: {expected}")


def test_all_wrong_options_are_told_at_once(tmp_path: Path) -> None:
    wrong = ["a=1", "nodes.q.mtu=1", "trunk.rate=x"]
    told = message(tmp_path, TEXT, wrong).splitlines()
    assert [line.split(": ")[0] for line in told] == [f"--rig-set {option}" for option in wrong]


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


PORT = 'lab.yaml:4:3: node "n1": "port" is for SSH, and the node has transport srun. Leave it out.'
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


@pytest.mark.parametrize("place", ["rig", "node"])
def test_the_transport_openssh_takes_the_keys_of_ssh(place: str) -> None:
    whole, own = ("transport: openssh\n", "") if place == "rig" else ("", "transport: openssh, ")
    nodes = f"nodes:\n  a: {{{own}address: a.lan, port: 2222}}\n  b: {{{own}address: b.lan, jump: admin@gate}}\n"
    text = f"{whole}defaults: {{user: pi}}\n{nodes}"
    made = rig_of(parse_document("lab.yaml", text), Path("lab.yaml"), ())
    assert [(node.transport, node.user, node.port, node.jump) for node in made.nodes.values()] == [
        ("openssh", "pi", 2222, None),
        ("openssh", "pi", None, "admin@gate"),
    ]


HET = ["n[1-2],gpu03", "m[01-03]", "fat"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_heterogeneous_job_has_the_nodes_of_all_its_components(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", HET[0])  # Slurm's own: of the first component
    monkeypatch.setenv("SLURM_HET_SIZE", str(size))
    for number, listed in enumerate(HET[:size]):
        monkeypatch.setenv(f"SLURM_JOB_NODELIST_HET_GROUP_{number}", listed)
    assert allocation.node_lists() == HET[:size]
    places = {"n2": 0, "gpu03": 0, "m02": 1, "fat": 2, "n3": None}
    expected = {name: at if at is not None and at < size > 1 else None for name, at in places.items()}
    assert {name: allocation.component_of(name) for name in places} == expected


@pytest.mark.parametrize("size", ["", "0", "x", "-1", "9999999"])
def test_another_job_has_one_list(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", HET[0])
    monkeypatch.setenv("SLURM_HET_SIZE", size)
    assert allocation.node_lists() == HET[:1]
    assert allocation.component_of("n1") is None


def test_outside_an_allocation_one_message_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(InputError, match=r"no Slurm allocation .*salloc -N 2 .* --rig slurm"):
        load_rig("slurm")
