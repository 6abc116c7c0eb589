"""The rig of the kernel's drivers/net selftests: what its variables become, and what each wrong one says."""

from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.rig.kselftest import endpoints_of
from rigctl.rig.load import load_rig, rig_of
from rigctl.yamlfile import MistakesError
from rigctl.yamlfile.read import parse_document

BY_SSH = {
    "NETIF": "eth0",
    "LOCAL_V4": "192.0.2.1",
    "REMOTE_V4": "192.0.2.2",
    "REMOTE_TYPE": "ssh",
    "REMOTE_ARGS": "root@dut2.lan",
}
BY_NETNS = BY_SSH | {"REMOTE_TYPE": "netns", "REMOTE_ARGS": "peer"}
NAMES = (*BY_SSH, "LOCAL_V6", "REMOTE_V6")
REMEDY = ". Set the variables as the kernel's tests need them"


def given(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_the_bundled_rig_reaches_a_remote_host_by_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, BY_SSH)
    rig = load_rig("kselftest", sets=["kselftest.port=2222", "kselftest.rate=25G"])
    here, there = rig.nodes["local"], rig.nodes["remote"]
    assert (here.transport, here.data_interface, here.data_address) == ("local", "eth0", "192.0.2.1")
    assert (there.transport, there.address, there.user) == ("ssh", "dut2.lan", "root")
    assert (there.data_interface, there.data_address) == (None, "192.0.2.2")
    assert (here.port, there.port, here.link.rate_bps) == (None, 2222, 25 * 10**9)
    assert rig.notes == "Environment of the kernel's drivers/net selftests: eth0, host dut2.lan."


def test_a_namespace_is_reached_by_its_name_and_ipv6_is_taken_where_both_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given(monkeypatch, BY_NETNS | {"LOCAL_V6": "2001:DB8::1", "REMOTE_V6": "2001:db8::2"})
    rig = load_rig("kselftest", sets=["kselftest.user=pi"])
    there = rig.nodes["remote"]
    assert (there.transport, there.address, there.user) == ("netns", "peer", None)
    assert [node.data_address for node in rig.nodes.values()] == ["2001:db8::1", "2001:db8::2"]
    assert rig.ip_version == 6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"NETIF": ""}, ["NETIF is not set: expected the interface under test"]),
        ({"NETIF": "eth/0"}, ['NETIF is "eth/0": expected the interface under test']),
        ({"LOCAL_V4": "", "REMOTE_V4": ""}, ["LOCAL_V4 and LOCAL_V6 are not set: expected the addresses of both ends"]),
        ({"REMOTE_V4": " "}, ["REMOTE_V4 is not set: expected the IPv4 address of the remote end"]),
        ({"LOCAL_V6": "2001:db8::1"}, ["REMOTE_V6 is not set: expected the IPv6 address of the remote end"]),
        ({"LOCAL_V4": "2001:db8::1"}, ['LOCAL_V4 is "2001:db8::1": expected the IPv4 address of the local end']),
        ({"REMOTE_V4": "192.0.2.1/24"}, ['REMOTE_V4 is "192.0.2.1/24": expected the IPv4 address']),
        ({"REMOTE_V4": "192.0.2.1"}, ["LOCAL_V4 and REMOTE_V4 are both 192.0.2.1: expected two addresses"]),
        ({"REMOTE_TYPE": "vsock\x1b[2J"}, ['REMOTE_TYPE is "vsock?[2J": expected ssh or netns']),
        ({"REMOTE_ARGS": "-oProxyCommand=x"}, ['REMOTE_ARGS is "-oProxyCommand=x": expected [user@]host']),
        ({"REMOTE_ARGS": "-x@dut"}, ['REMOTE_ARGS is "-x@dut": expected [user@]host']),
        ({"REMOTE_ARGS": "@dut"}, ['REMOTE_ARGS is "@dut": expected [user@]host']),
        ({"REMOTE_TYPE": "netns"}, ['REMOTE_ARGS is "root@dut2.lan": expected the name of a network namespace']),
        ({"REMOTE_TYPE": "netns", "REMOTE_ARGS": "../x"}, ['REMOTE_ARGS is "../x": expected the name of a network']),
        (
            dict.fromkeys(NAMES, ""),
            ["NETIF is not set", "LOCAL_V4 and LOCAL_V6 are not set", "REMOTE_TYPE is not set", "REMOTE_ARGS is not"],
        ),
    ],
)
def test_each_variable_that_is_missing_or_wrong_is_named_in_one_message(
    change: dict[str, str], expected: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        endpoints_of(BY_SSH | change)
    told, remedy, _ = str(caught.value).partition(REMEDY)
    assert remedy
    said = told.removeprefix("kselftest: ").split("; ")
    for sentence, start in zip(said, expected, strict=True):
        assert sentence.startswith(start)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kselftest: {}\nnodes: {a: {address: x}}\n", "1:1: kselftest: the rig file has kselftest and nodes."),
        ("kselftest:\n  address: x\n", "2:3: kselftest: address follows from the environment. Leave it out."),
        ("kselftest: {rate: 1Q}\n", '1:19: rate "1Q"'),
        ("kselftest: [x]\n", "1:12: kselftest: expected keys and values"),
    ],
)
def test_a_mistake_in_the_section_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    given(monkeypatch, BY_SSH)
    with pytest.raises(MistakesError) as caught:
        rig_of(parse_document("lab.yaml", text), Path("lab.yaml"))
    assert f"lab.yaml:{said}" in str(caught.value)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("{transport: netns, data_address: 192.0.2.1}", 'node "a": "address" is missing. With transport netns'),
        ("{transport: netns, address: p, data_address: 192.0.2.1, sudo: true}", 'node "a": "sudo" is for hosts;'),
        ("{transport: netns, address: p}", 'node "a": "data_interface" is missing. With transport netns'),
        ("{transport: netns, address: p, data_address: 192.0.2.1, port: 22}", 'node "a": "port" is for SSH'),
    ],
)
def test_a_namespace_as_a_node_of_any_rig_needs_its_name_and_a_data_address(node: str, said: str) -> None:
    text = f"nodes:\n  a: {node}\n  b: {{address: b.lan}}\n"
    with pytest.raises(MistakesError) as caught:
        rig_of(parse_document("lab.yaml", text), Path("lab.yaml"))
    assert said in str(caught.value)
